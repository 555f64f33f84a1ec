//! Rules for what the provider fetches before it runs: modules, providers, state.

use super::Rule;
use crate::failure::class::Class::Config;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        Config,
        "ModuleNotFound",
        "Correct the module's source, path, version or Git reference: it does not exist there.",
    )
    .causes(&[
        "unreadable module directory",
        "unable to evaluate directory symlink",
        "cannot be found in the module registry",
        "module not found",
        "module version requirements have changed",
        "unresolvable module version constraint",
        "no available version is compatible with",
        "repository not found",
        "repository .. not found",
        "could not find remote branch",
        "couldn't find remote ref",
        "remote branch .. not found",
        "error: pathspec",
        "did not match any file(s) known to git",
        "reference is not a tree",
        "not our ref",
        "does not appear to be a git repository",
        "invalid module source",
        "unsupported module source",
        "invalid module instance path",
        "module source has changed",
        "relative path .. outside of module package",
        "local module path escapes module package",
        "subdir .. not found",
        "subdirectory .. does not exist",
        "unknown revision",
        "error downloading .. bad response code: 404",
        "error downloading .. 404",
        "could not download module .. response code: 404",
        "could not download module .. 404",
        "requested url returned error: 404",
        "download failed for url .. 404",
        "no terraform configuration files",
        "terraform initialized in an empty directory",
        "no configuration files",
        "relative paths require a module with a pwd",
    ])
    .texts(&["host key verification failed", "error: error downloading", "no versions for module"])
    .vague(&[
        "failed to retrieve available versions for module",
        "failed to download module",
        "could not download module",
        "get remote terraform module",
    ]),
    Rule::new(
        Config,
        "ProviderNotFound",
        "Correct required_providers: this provider or this version does not exist for this platform.",
    )
    .causes(&[
        "invalid version constraint",
        "does not have a provider named",
        "no available releases match the given constraints",
        "no available releases match",
        "does not have a package available for your current platform",
        "missing required provider",
        "invalid provider source",
        "invalid provider source hostname",
        "invalid provider registry host",
        "invalid provider version constraint",
        "provider type mismatch",
        "incompatible provider version",
        "host .. does not provide a provider registry",
        "does not offer a terraform provider registry",
        "invalid provider version number",
        "conflicting provider version",
        "no version matches the given constraints",
        "provider requirements cannot be satisfied by locked dependencies",
        "exec format error",
    ]),
    Rule::new(
        Config,
        "LockFileMismatch",
        "Remove .terraform.lock.hcl from the module, or add the checksums of the provider's platform to it.",
    )
    .causes(&[
        "doesn't match any of the checksums",
        "does not match any of the checksums",
        "checksums previously recorded",
        "locked provider .. does not match configured version constraint",
    ]),
    Rule::new(
        Config,
        "TerraformVersionUnsupported",
        "Use a module that works with the terraform of the provider's image, or an image with another terraform.",
    )
    .causes(&[
        "unsupported terraform core version",
        "unsupported opentofu core version",
        "does not support terraform version",
        "does not support opentofu version",
        "requires terraform version",
    ]),
    Rule::new(
        Config,
        "StateVersionUnsupported",
        "Go back to the terraform or provider version that wrote the state, or to a newer one.",
    )
    .causes(&[
        "unsupported state file format",
        "state snapshot was created by",
        "managed by newer provider version",
        "was created by a newer provider version",
        "unsupported state file version",
        "state file version .. not supported",
        "state was created by a newer",
        "is newer than current",
    ]),
    Rule::new(
        Config,
        "BackendMisconfigured",
        "Correct the backend configuration: bucket, table, region or key do not exist or do not fit.",
    )
    .causes(&[
        "s3 bucket does not exist",
        "referenced s3 bucket must have been previously created",
        "s3 bucket .. does not exist",
        "backend configuration changed",
        "invalid backend configuration",
        "invalid backend type",
        "unsupported backend type",
        "unset variables .. backend",
        "backend type .. not supported",
        "error configuring the backend",
        "requested resource not found",
        "failed to get existing workspaces: s3 bucket",
        "acquiring the state lock .. resourcenotfoundexception",
        "missing region value",
        "the attribute \"bucket\" is required by the backend",
        "is required by the backend",
        "failed to decode current backend config",
        "requested bucket from .. actual location",
        "must be addressed using the specified endpoint",
    ])
    .codes(&[
        "PermanentRedirect",
        "BucketRegionError",
        "IllegalLocationConstraintException",
        "AuthorizationHeaderMalformed",
        "NoSuchBucket",
        "InvalidBucketName",
    ])
    .vague(&["statuscode: 301", "status code: 301", "initializing backend"]),
    Rule::new(
        Config,
        "CertificateUntrusted",
        "Give the provider the CA of the server or proxy, or correct the server's certificate.",
    )
    .causes(&[
        "x509",
        "certificate signed by unknown authority",
        "server certificate verification failed",
        "ssl certificate problem",
        "self-signed certificate",
        "certificate has expired",
        "certificate is not valid",
        "certificate verify failed",
        "first record does not look like a tls handshake",
        "gave http response to https client",
    ]),
];
