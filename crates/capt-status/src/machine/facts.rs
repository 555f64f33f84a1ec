//! What a pass found out about one object, abstract enough to enumerate.
//!
//! Made at the edge of capt-reconcile. Texts travel beside the facts in a [`Cause`], so that a
//! decision depends on nothing that cannot be listed.

use alloc::{borrow::Cow, string::String};

use crate::failure::Class;

/// What a pass found out about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Which of the two provider kinds it is.
    pub role: Role,
    /// Alive, paused or on its way out.
    pub lifecycle: Lifecycle,
    /// Whether the owner Cluster is known.
    pub owner: Owner,
    /// Whether the object's own spec can be worked with.
    pub inputs: Inputs,
    /// What must be there before the Workspace: the VPC for a control plane, nothing for a CAPTCluster.
    pub infrastructure: Infrastructure,
    /// The Workspace that does the work.
    pub workspace: Workspace,
    /// Whether an apply may be running, so that nothing may be asked of the provider now.
    pub busy: bool,
    /// What is collected once the Workspace is ready.
    pub configuration: Configuration,
    /// Checks of what serves.
    pub checks: Checks,
    /// Whether the failure has the reason of the one that the status shows.
    pub same_failure: bool,
    /// Whether the user changed the spec, asked for a retry or answered a failure otherwise since the status was
    /// written.
    pub user_changed: bool,
}

/// Which of the two provider kinds an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// CAPTCluster.
    Infrastructure,
    /// CAPTControlPlane.
    ControlPlane,
}

/// Alive, paused or on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// No deletionTimestamp.
    Active,
    /// Paused: nothing moves, no deadline runs.
    Paused,
    /// deletionTimestamp is set.
    Deleting(Teardown),
}

/// How far a deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Teardown {
    /// Something still has to go, and goes.
    Waiting,
    /// Something does not go, for a failure of this class.
    Blocked(Class),
}

/// Whether the owner Cluster is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// No owner reference to a Cluster, or that Cluster is not there.
    Missing,
    /// The Cluster is there.
    Known,
}

/// Whether the object's own spec can be worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inputs {
    /// Something that it refers to is not there yet.
    Unresolved,
    /// It can.
    Valid,
    /// It needs a change by the user.
    Invalid,
    /// It asks for a change that cannot be made on what exists.
    Unsupported,
}

/// What must be there before the Workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Infrastructure {
    /// The provider has not begun on it.
    Queued,
    /// The provider is at it.
    Begun,
    /// There, or not needed.
    Ready,
}

/// The Workspace that does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workspace {
    /// Not there, or the provider has not begun on it.
    Queued,
    /// The provider works on the current generation.
    Applying,
    /// The provider reports an error of this class, or the Workspace cannot be used.
    Failing(Class),
    /// Synced and Ready, both of the current generation.
    Ready,
}

/// What is collected once the Workspace is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Configuration {
    /// Something is missing.
    Incomplete,
    /// Everything is there.
    Complete,
}

/// Checks of what serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checks {
    /// None fails.
    Passing,
    /// At least one fails.
    Failing,
}

impl Facts {
    /// Whether everything is there that `Ready` promises.
    pub const fn is_complete(&self) -> bool {
        matches!(
            (self.inputs, self.infrastructure, self.workspace, self.configuration),
            (Inputs::Valid, Infrastructure::Ready, Workspace::Ready, Configuration::Complete)
        )
    }

    /// Class of the failure that stands in the way, if one does.
    pub const fn failure(&self) -> Option<Class> {
        match (self.inputs, self.workspace) {
            (Inputs::Invalid | Inputs::Unsupported, _) => Some(Class::Config),
            (Inputs::Unresolved | Inputs::Valid, Workspace::Failing(class)) => Some(class),
            (Inputs::Unresolved | Inputs::Valid, Workspace::Queued | Workspace::Applying | Workspace::Ready) => None,
        }
    }
}

/// Why an object is not simply Ready: a reason for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// CamelCase reason.
    pub reason: Cow<'static, str>,
    /// Text that names the object that is waited for.
    pub message: String,
}

impl Cause {
    /// A cause from its parts.
    pub fn new(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}
