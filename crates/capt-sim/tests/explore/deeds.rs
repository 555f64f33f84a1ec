//! What users and the world do to a cluster, each at most once in a life, at any moment.

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use serde_json::{Value, json};

/// Something that happens from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// A user deletes an object.
    Delete(ObjectKey),
    /// A user merges this into an object.
    Edit(ObjectKey, Value),
    /// From now on runs of Terraform for this Workspace fail, until the world heals.
    Fail(String, &'static str),
    /// The same, and it never heals.
    FailForGood(String, &'static str),
    /// From now on this output of the Workspace has another value, until the world heals.
    Puts(String, &'static str, Value),
}

impl Deed {
    /// Whether it says what Terraform makes of the Workspace `name`.
    pub fn is_about_runs_of(&self, name: &str) -> bool {
        match self {
            Self::Fail(of, _) | Self::FailForGood(of, _) | Self::Puts(of, _, _) => of == name,
            Self::Delete(_) | Self::Edit(..) => false,
        }
    }

    /// Whether it is over when the world heals.
    pub const fn heals(&self) -> bool {
        match self {
            Self::Fail(..) | Self::Puts(..) => true,
            Self::FailForGood(..) | Self::Delete(_) | Self::Edit(..) => false,
        }
    }
}

pub fn key(kind: Kind, name: &str) -> ObjectKey {
    ObjectKey::new(kind, "default", name)
}

pub fn delete_cluster() -> Deed {
    Deed::Delete(key(Kind::Cluster, "demo"))
}

pub fn upgrade() -> Deed {
    Deed::Edit(key(Kind::CaptControlPlane, "demo"), json!({"spec": {"version": "1.32"}}))
}

pub fn retag() -> Deed {
    Deed::Edit(key(Kind::CaptControlPlane, "demo"), json!({"spec": {"additionalTags": {"Owner": "platform"}}}))
}

/// Another controller writes a condition of its own into our status.
pub fn audit() -> Deed {
    let condition = json!({"type": "example.com/Audited", "status": "True", "reason": "Audited", "message": "",
        "lastTransitionTime": "2027-01-15T08:00:00Z"});
    Deed::Edit(key(Kind::CaptControlPlane, "demo"), json!({"status": {"conditions": [condition]}}))
}

pub fn pause() -> Deed {
    Deed::Edit(key(Kind::Cluster, "demo"), json!({"spec": {"paused": true}}))
}

pub fn unpause() -> Deed {
    Deed::Edit(key(Kind::Cluster, "demo"), json!({"spec": {"paused": null}}))
}

pub fn retry() -> Deed {
    let annotations = json!({"capt.cluster.x-k8s.io/retry": "1"});
    Deed::Edit(key(Kind::CaptControlPlane, "demo"), json!({"metadata": {"annotations": annotations}}))
}

pub fn workspace(api: WorkspaceApi, name: &str) -> ObjectKey {
    key(Kind::Workspace(api), name)
}
