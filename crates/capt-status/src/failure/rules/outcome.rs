//! Rules for what the provider itself says about a run: it was stopped, it was never started, its result is lost.

use super::Rule;
use crate::failure::class::Class::{Config, Transient, Unknown};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        Unknown,
        "StateSaveFailed",
        "Stop retrying: the new state was not stored. Push errored.tfstate or import what was created, then go on.",
    )
    .decisive(&["failed to save state", "failed to persist state", "errored.tfstate", "error saving state"]),
    Rule::new(
        Transient,
        "OperationTimedOut",
        "Wait: the next attempt goes on from the stored state. If it happens each time, raise the provider's --timeout.",
    )
    .decisive(&[
        "shutdown while running terraform command: context deadline exceeded",
        "waiting for child process .. context deadline exceeded",
        "sending sigterm to child process .. context deadline exceeded",
    ]),
    Rule::new(
        Transient,
        "OperationInterrupted",
        "Wait: the provider was stopped while it worked, and goes on after its restart.",
    )
    .decisive(&[
        "shutdown while running terraform command",
        "execution halted",
        "waiting for child process to terminate",
        "sending sigterm to child process",
    ])
    .texts(&[
        "interrupt received",
        "stopping operation",
        "signal: interrupt",
        "signal: terminated",
        "operation was canceled",
        "operation cancelled",
        "operation canceled",
        "plan was interrupted",
        "apply was interrupted",
    ])
    .vague(&["context canceled", "context cancelled", "request cancelled", "request canceled", "was cancelled"]),
    Rule::new(
        Config,
        "CreationResultUnknown",
        "Look whether the infrastructure was created, then remove annotation crossplane.io/external-create-pending.",
    )
    .decisive(&["cannot determine creation result"]),
    Rule::new(
        Config,
        "ManagementPolicyUnsupported",
        "Change spec.managementPolicies to a combination that Crossplane supports.",
    )
    .decisive(&["spec.managementpolicies` is set to", "managementpolicies .. is not supported"]),
    Rule::new(
        Config,
        "ExternalResourceMissing",
        "It is only observed and does not exist: create it elsewhere, or allow Create in managementPolicies.",
    )
    .decisive(&["external resource does not exist"]),
    Rule::new(
        Config,
        "ConnectionSecretConflict",
        "The Secret belongs to something else: remove it, or choose another name in writeConnectionSecretToRef.",
    )
    .decisive(&[
        "refusing to modify uncontrolled secret",
        "existing secret is not controlled by",
        "connection secret .. is not controlled by",
    ]),
    Rule::new(
        Config,
        "ProviderConfigMissing",
        "Create the ProviderConfig that providerConfigRef names, or correct the reference.",
    )
    .causes(&[
        "cannot get provider config .. not found",
        "cannot get providerconfig .. not found",
        "cannot get referenced providerconfig .. not found",
        "cannot get referenced provider config .. not found",
        "providerconfig.tf.upbound.io .. not found",
        "providerconfigref is not given",
        "no providerconfigref",
    ]),
    Rule::new(
        Config,
        "CredentialsSecretMissing",
        "Create the Secret that the ProviderConfig takes its credentials from, with the key it names.",
    )
    .causes(&[
        "cannot get credentials secret .. not found",
        "cannot get credentials: .. not found",
        "cannot extract credentials",
        "credentials secret .. does not contain",
        "no credentials secret referenced",
        "cannot extract from secret key when none specified",
    ]),
    Rule::new(Transient, "SourceNotReady", "Wait until Flux has fetched the source; look at it if that takes long.")
        .causes(&[
            "artefact for .. is not ready",
            "artifact for .. is not ready",
            "artifact .. not ready",
            "source is not ready",
        ]),
];
