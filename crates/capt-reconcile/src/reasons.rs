//! Reasons of conditions: the CamelCase words that programs match on, each in one place.

#![allow(missing_docs)] // each constant is its own text; the meaning stands where it is used

pub const WAITING_FOR_CLUSTER: &str = "WaitingForCluster";
pub const WAITING_FOR_VPC: &str = "WaitingForVPC";
pub const WAITING_FOR_WORKSPACE: &str = "WaitingForWorkspace";
pub const WAITING_FOR_SECRETS: &str = "WaitingForSecrets";
pub const WAITING_FOR_WORKSPACES: &str = "WaitingForWorkspaces";
pub const WAITING_FOR_DEPENDENTS: &str = "WaitingForDependents";
pub const WAITING_FOR_DELETION: &str = "WaitingForDeletion";
pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
pub const UNDEFINED_VARIABLE: &str = "UndefinedVariable";
pub const INVALID_TEMPLATE: &str = "InvalidTemplate";
pub const NAME_COLLISION: &str = "NameCollision";
pub const WORKSPACE_MISSING: &str = "WorkspaceMissing";
pub const WORKSPACE_ERROR: &str = "ReconcileError";
pub const WORKSPACE_DELETING: &str = "WorkspaceDeleting";
pub const WORKSPACE_SYNCED: &str = "ReconcileSuccess";
pub const CREATING: &str = "Creating";
pub const AVAILABLE: &str = "Available";
pub const NO_VPC_CONFIGURED: &str = "NoVPCConfigured";
pub const VPC_ID_NOT_FOUND: &str = "VPCIDNotFound";
pub const ENDPOINT_NOT_READY: &str = "EndpointNotReady";
pub const ENDPOINT_CHANGED: &str = "EndpointChanged";
pub const CA_NOT_READY: &str = "CertificateAuthorityNotReady";
pub const KUBECONFIG_NOT_READY: &str = "KubeconfigNotReady";
pub const KUBECONFIG_TEMPLATE_NOT_FOUND: &str = "KubeconfigTemplateNotFound";
pub const SECRET_NOT_OURS: &str = "SecretNotOurs";
pub const REGION_MISSING: &str = "RegionMissing";
pub const CLUSTER_DELETING: &str = "ClusterDeleting";
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
pub const READY: &str = "Ready";
pub const DELETING: &str = "Deleting";
