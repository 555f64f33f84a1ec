//! Rules for refused identities and missing grants.

use super::Rule;
use crate::failure::class::Class::{Permission, Transient};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        Permission,
        "CredentialsMissing",
        "Give the provider credentials: a ProviderConfig with a Secret, or a service account with an IAM role.",
    )
    // The metadata service that nobody answers for is how absent credentials look on EC2 and in pods.
    .causes(&[
        "no ec2 imds role found",
        "ec2imds: getmetadata",
        "ec2imds",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
    ])
    .codes(&["NoCredentialProviders", "NoCredentialsError", "CredentialsNotLoaded"])
    .texts(&[
        "getting credentials: exec", "unable to locate credentials",
        "could not find default credentials",
        "no credentials were found",
        "static credentials are empty",
        "credentials not found",
        "no credential providers",
        "must provide credentials",
        "missing credentials",
        "shared config profile .. not",
        "failed to get shared config profile",
    ])
    .vague(&[
        "no valid credential sources",
        "no valid credential sources found",
        "failed to refresh cached credentials",
        "failed to retrieve credentials",
        "validating provider credentials",
        "error validating provider credentials",
        "error configuring terraform aws provider",
        "get credentials",
    ]),
    Rule::new(
        Permission,
        "ServiceLinkedRoleMissing",
        "Create the service-linked role once per account (aws iam create-service-linked-role), or grant iam:CreateServiceLinkedRole.",
    )
    .causes(&[
        "permission to create the service-linked role",
        "servicelinkedrolecreationnotpermitted",
        "iam:createservicelinkedrole",
        "service-linked role .. does not exist",
        "service linked role .. does not exist",
        "unable to assume the service linked role",
        "unable to assume the service-linked role",
        "invalid iam service-linked role",
    ]),
    Rule::new(
        Permission,
        "RoleTrustMissing",
        "Correct the trust policy of the IAM role: it does not let this service or service account assume it.",
    )
    .causes(&[
        "trust relationships of",
        "trust relationship",
        "trust policy is not correct",
        "trusted entity is not correct",
        "not authorized to perform sts:assumerole",
        "not authorized to perform: sts:assumerole",
        "not authorized to perform sts:assumerolewithwebidentity",
        "not authorized to perform: sts:assumerolewithwebidentity",
        "no openidconnect provider found",
        "could not be assumed because",
    ])
    .codes(&["InvalidIdentityToken", "InvalidIdentityTokenException", "IDPRejectedClaim"])
    .texts(&["cannot assume role", "unable to assume role", "trust policy", "is unable to assume"])
    .vague(&["cannot be assumed", "cannot assume iam role", "failed to assume role", "role cannot be assumed"]),
    Rule::new(
        Permission,
        "KmsKeyUnusable",
        "Let the key policy grant the service role (or the Auto Scaling service-linked role) the use of the KMS key.",
    )
    .causes(&[
        "client.internalerror",
        "kms key .. access",
        "kms: .. accessdenied",
        "does not have access to the kms key",
        "kms key does not exist or is not allowed to be used",
    ])
    .codes(&[
        "KMSAccessDeniedException",
        "KmsAccessDenied",
        "KMS.AccessDeniedException",
        "InaccessibleEncryptionKey",
    ]),
    Rule::new(
        Permission,
        "CredentialsExpired",
        "Renew the credentials in the Secret of the ProviderConfig, or use a role that renews itself.",
    )
    .while_changing("SessionExpired")
    .codes(&["ExpiredToken", "ExpiredTokenException", "RequestExpired", "ExpiredTokenID"])
    .texts(&[
        "token included in the request is expired",
        "token has expired",
        "token is expired",
        "token expired",
        "expired token",
        "credentials have expired",
        "credentials are expired",
        "credentials expired",
        "sso session .. has expired",
        "request has expired",
    ]),
    Rule::new(
        Transient,
        "SessionExpired",
        "Wait: the session ended while terraform worked; the next attempt gets a new one. If it repeats, lengthen the session.",
    ),
    Rule::new(
        Permission,
        "CredentialsInvalid",
        "Replace the credentials: the API does not know them. Check the key, the account and the clock of the node.",
    )
    .codes(&[
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "InvalidSignatureException",
        "RequestTimeTooSkewed",
        "InvalidSecurityToken",
        "AuthFailure",
        "UnauthenticatedException",
    ])
    .texts(&[
        "token included in the request is invalid",
        "security token .. is invalid",
        "access key id .. does not exist",
        "not able to validate the provided access credentials",
        "invalid credentials",
        "bad credentials",
        "signature expired",
        "signature we calculated does not match",
    ]),
    Rule::new(
        Permission,
        "SourceAccessDenied",
        "Give the provider credentials for the module, chart or image source (git-credentials, SSH key, registry token).",
    )
    .causes(&[
        "you may not have access", "private key will be ignored", "access to the resource is denied", "could not read username",
        "could not read password",
        "terminal prompts disabled",
        "permission denied (publickey",
        "permission denied, please try again",
        "authentication failed for",
        "http basic: access denied",
        "support for password authentication was removed",
        "requested url returned error: 401",
        "requested url returned error: 403",
        "remote: permission to",
        "remote: write access to repository not granted",
        "remote: invalid username or password",
        "required token could not be found",
        "pull access denied",
        "no basic auth credentials",
        "unauthorized: authentication required",
        "error downloading .. 401",
        "error downloading .. bad response code: 403",
        "could not download module .. 401",
        "could not download module .. response code: 403",
        "ssh: handshake failed: ssh: unable to authenticate",
        "proxy authentication required",
        "bad response code: 401",
        "bad response code: 403",
        "error looking up module versions: 401",
        "error looking up module versions: 403",
        "failed to authorize",
        "failed to fetch anonymous token",
        "failed to fetch oauth token",
        "failed to fetch .. 401 unauthorized",
        "failed to fetch .. 403 forbidden",
        "could not download chart .. 401",
        "could not download chart .. 403",
        "unexpected status .. 401 unauthorized",
        "unexpected status .. 403 forbidden",
        "unexpected http status: 401",
        "unexpected http status: 403",
        "denied on resource",
        "manifests .. 401 unauthorized",
        "manifests .. 403 forbidden",
        "access to this repository",
        "either does not exist or you do not have access",
        "don't have permission to view it",
    ])
    .texts(&["authentication failed", "authentication required", "incorrect username or password"]),
    Rule::new(
        Permission,
        "KubernetesUnauthorized",
        "Give the identity access to the cluster (EKS access entry or aws-auth), or renew its token.",
    )
    .causes(&["asked for the client to provide credentials", "must be logged in to the server"])
    .texts(&["401 unauthorized", "unauthorized", "status code: 401", "statuscode: 401"])
    .vague(&["response code: 401", "returned error: 401", "http 401"]),
    Rule::new(
        Permission,
        "KubernetesForbidden",
        "Grant the user or service account that the message names a Role with this verb and resource.",
    )
    .causes(&["is forbidden: user", "forbidden: user"])
    .texts(&[
        "is attempting to grant rbac permissions not currently held",
        "cannot .. in api group",
    ]),
    Rule::new(
        Permission,
        "SubscriptionMissing",
        "Subscribe the account to the service or the Marketplace product, and accept its terms.",
    )
    .codes(&["OptInRequired", "SubscriptionRequiredException", "NotSubscribed", "AddonSubscriptionNeeded"])
    .texts(&["accept terms and subscribe", "is not subscribed", "are not subscribed", "not signed up for"]),
    Rule::new(
        Permission,
        "AccountBlocked",
        "Ask AWS Support: the account is blocked or suspended, or the region is not enabled for it.",
    )
    .codes(&[
        "AccountProblem",
        "InactiveAccount",
        "AccountDisabled",
        "AllAccessDisabled",
        "RegionDisabledException",
    ])
    .texts(&[
        "account is currently blocked",
        "account is suspended",
        "account is closed",
        "region is not enabled",
        "not enabled in this region",
    ]),
    Rule::new(
        Permission,
        "AccessDenied",
        "Grant the identity that the message names the action that it names; look for explicit denies (SCP, permissions boundary).",
    )
    .codes(&[
        "AccessDenied",
        "AccessDeniedException",
        "AccessDeniedFault",
        "UnauthorizedOperation",
        "UnauthorizedAccess",
        "UnauthorizedException",
        "UnauthorizedClientException",
        "NotAuthorized",
        "NotAuthorizedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "AuthorizationException",
        "ForbiddenException",
        "OperationNotAllowedException",
        "AddonPermissionFailure",
        "AccessForbidden",
    ])
    .texts(&[
        "is not authorized to perform",
        "not authorized to perform",
        "is not authorized to",
        "not authorized",
        "explicit deny",
        "service control policy",
        "permissions boundary",
        "access denied",
        "access is denied",
        "permission denied",
        "permission_denied",
        "do not have permission",
        "do not have permissions",
        "does not have permission",
        "does not have permissions",
        "don't have permission",
        "do not have access",
        "does not have access",
        "do not have sufficient permission",
        "do not have the required permission",
        "does not have sufficient",
        "does not have the required permission",
        "insufficient permission",
        "insufficient permissions",
        "insufficient privileges",
        "missing permission",
        "missing permissions",
        "lacks permission",
        "lacks permissions",
        "lack of permission",
        "lack of permissions",
        "required permissions",
        "403 forbidden",
        "operation not permitted",
    ])
    .vague(&[
        "forbidden",
        "statuscode: 403",
        "status code: 403",
        "status: 403",
        "response code: 403",
        "returned error: 403",
        "http 403",
    ]),
];
