//! Reasons of conditions: the CamelCase words that programs match on, each in one place.
//!
//! Those of failures that the provider reports are [`capt_status::failure::Reason`]s.

#![allow(missing_docs)] // each constant is its own text; the meaning stands where it is used

use capt_status::Class;

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
pub const WORKSPACE_DELETING: &str = "WorkspaceDeleting";
pub const WORKSPACE_PAUSED: &str = "WorkspacePaused";
pub const WORKSPACE_RECREATED: &str = "WorkspaceRecreated";
pub const WORKSPACE_ADOPTED: &str = "WorkspaceAdopted";
pub const WORKSPACE_ORPHANED: &str = "WorkspaceOrphaned";
pub const OBSERVE_ONLY: &str = "ObserveOnly";
pub const NOT_WANTED: &str = "NotWanted";
pub const DEPENDENCY_CYCLE: &str = "CyclicDependency";
pub const WORKSPACE_SYNCED: &str = "ReconcileSuccess";
pub const CREATING: &str = "Creating";
pub const AVAILABLE: &str = "Available";
pub const NO_VPC_CONFIGURED: &str = "NoVPCConfigured";
pub const VPC_ID_NOT_FOUND: &str = "VPCIDNotFound";
pub const ENDPOINT_NOT_READY: &str = "EndpointNotReady";
pub const ENDPOINT_CHANGED: &str = "EndpointChanged";
pub const ENDPOINT_OVERRIDDEN: &str = "EndpointOverridden";
pub const NAME_TOO_LONG: &str = "NameTooLong";
pub const CA_NOT_READY: &str = "CertificateAuthorityNotReady";
pub const KUBECONFIG_NOT_READY: &str = "KubeconfigNotReady";
pub const KUBECONFIG_TEMPLATE_NOT_FOUND: &str = "KubeconfigTemplateNotFound";
pub const KUBECONFIG_EXPIRED: &str = "KubeconfigExpired";
pub const CONNECTION_DOWN: &str = "ConnectionDown";
pub const VPC_RETAINED: &str = "VPCRetained";
pub const SECRET_NOT_OURS: &str = "SecretNotOurs";
pub const UNSUPPORTED_CHANGE: &str = "UnsupportedChange";
pub const VARIABLES_TOO_LARGE: &str = "VariablesTooLarge";
pub const REGION_MISSING: &str = "RegionMissing";
pub const CLUSTER_DELETING: &str = "ClusterDeleting";
pub const CLUSTER_STATUS_STANDALONE: &str = "ClusterStatusStandalone";
pub const FOREIGN_OPERATOR: &str = "ForeignOperator";
pub const NOT_WATCHED: &str = "NotWatched";
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
pub const READY: &str = "Ready";
pub const DELETING: &str = "Deleting";

/// Why `Synced` of an apply is False where the apply itself is the reason; what the provider reports has
/// a [`capt_status::Reason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyReason {
    TemplateNotFound,
    UndefinedVariable,
    InvalidTemplate,
    NameCollision,
    WorkspaceMissing,
    WorkspaceDeleting,
    WorkspacePaused,
    WaitingForSecrets,
    WaitingForWorkspaces,
    NotWanted,
    UnsupportedChange,
    DependencyCycle,
}

/// What it means to the owner of an apply that the apply is not in sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Something that the apply refers to is not there yet.
    Unresolved,
    /// Something else has to be ready first.
    Waiting,
    /// Somebody paused the Workspace; it may serve.
    Paused,
    /// It fails, and what may be done about it.
    Failing(Class),
}

impl ApplyReason {
    pub const ALL: [Self; 12] = [
        Self::TemplateNotFound,
        Self::UndefinedVariable,
        Self::InvalidTemplate,
        Self::NameCollision,
        Self::WorkspaceMissing,
        Self::WorkspaceDeleting,
        Self::WorkspacePaused,
        Self::WaitingForSecrets,
        Self::WaitingForWorkspaces,
        Self::NotWanted,
        Self::UnsupportedChange,
        Self::DependencyCycle,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TemplateNotFound => TEMPLATE_NOT_FOUND,
            Self::UndefinedVariable => UNDEFINED_VARIABLE,
            Self::InvalidTemplate => INVALID_TEMPLATE,
            Self::NameCollision => NAME_COLLISION,
            Self::WorkspaceMissing => WORKSPACE_MISSING,
            Self::WorkspaceDeleting => WORKSPACE_DELETING,
            Self::WorkspacePaused => WORKSPACE_PAUSED,
            Self::WaitingForSecrets => WAITING_FOR_SECRETS,
            Self::WaitingForWorkspaces => WAITING_FOR_WORKSPACES,
            Self::NotWanted => NOT_WANTED,
            Self::UnsupportedChange => UNSUPPORTED_CHANGE,
            Self::DependencyCycle => DEPENDENCY_CYCLE,
        }
    }

    pub fn find(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == reason)
    }

    /// Whether it passes by itself, so that it is no news for anybody.
    pub const fn is_waiting(self) -> bool {
        match self.meaning() {
            Meaning::Waiting | Meaning::Unresolved => true,
            Meaning::Paused | Meaning::Failing(_) => false,
        }
    }

    pub const fn meaning(self) -> Meaning {
        match self {
            Self::TemplateNotFound => Meaning::Unresolved,
            Self::WaitingForSecrets | Self::WaitingForWorkspaces | Self::NotWanted => Meaning::Waiting,
            Self::WorkspacePaused => Meaning::Paused,
            Self::WorkspaceDeleting => Meaning::Failing(Class::Transient),
            Self::UndefinedVariable
            | Self::InvalidTemplate
            | Self::NameCollision
            | Self::WorkspaceMissing
            | Self::UnsupportedChange
            | Self::DependencyCycle => Meaning::Failing(Class::Config),
        }
    }
}

#[cfg(test)]
mod tests {
    use capt_status::Reason;

    use super::*;

    #[test]
    fn a_reason_of_an_apply_is_found_by_its_name_and_none_of_the_provider() {
        for reason in ApplyReason::ALL {
            assert_eq!(ApplyReason::find(reason.as_str()), Some(reason));
            assert_eq!(Reason::find(reason.as_str()), None, "one word, one meaning");
        }
        for reason in Reason::ALL {
            assert_eq!(ApplyReason::find(reason.as_str()), None, "{reason}");
        }
    }
}
