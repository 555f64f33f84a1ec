//! A pass over one object: [`observe`] what it depends on, then [`plan`] what to write.

use std::sync::Arc;

use capt_api::foreign::WorkspaceApi;
use capt_status::{
    Time,
    machine::{Limits, Timeouts},
};

use crate::{
    captcluster, captcontrolplane,
    cluster::{
        self,
        mode::{ClusterCrd, ClusterStatus},
    },
    object::{Kind, Malformed, Object, ObjectKey},
    plan::Plan,
    workspace_template_apply,
    world::{Seen, View},
};

/// What can be switched off, so that it is tried with some objects first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// `status.progress` is kept.
    pub progress: bool,
    /// `status.dependencies` is kept.
    pub dependencies: bool,
    /// Recovery actions are taken; without it nothing is tried and only a deadline ends the waiting.
    pub recovery: bool,
}

impl Default for Features {
    /// Everything.
    fn default() -> Self {
        Self { progress: true, dependencies: true, recovery: true }
    }
}

/// What the operator was told at start-up that decides what a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The API in which new Workspaces are made.
    pub workspace_api: WorkspaceApi,
    /// Who publishes the status of Clusters.
    pub cluster_status: ClusterStatus,
    /// Where the CRD of Cluster comes from.
    pub cluster_crd: ClusterCrd,
    /// What is done for provider objects.
    pub features: Features,
    /// How long each timer may run where no spec says otherwise.
    pub timeouts: Timeouts,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workspace_api: WorkspaceApi::Cluster,
            cluster_status: ClusterStatus::default(),
            cluster_crd: ClusterCrd::default(),
            features: Features::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// The kinds that have passes; a Cluster comes last, since its status follows from those of the others.
pub const KINDS: [Kind; 4] = [Kind::CaptCluster, Kind::CaptControlPlane, Kind::Apply, Kind::Cluster];

/// What a pass depends on, taken out of the world.
#[derive(Debug, Clone)]
pub enum Observed {
    /// Of a CAPTCluster.
    CaptCluster(Box<captcluster::Observed>),
    /// Of a CAPTControlPlane.
    ControlPlane(Box<captcontrolplane::Observed>),
    /// Of a WorkspaceTemplateApply.
    Apply(Box<workspace_template_apply::Observed>),
    /// Of a Cluster.
    Cluster(Box<cluster::Observed>),
}

/// Result of [`observe`].
#[derive(Debug, Clone)]
pub enum Observation {
    /// There is no such object (any more), or its kind has no passes.
    Gone,
    /// The object does not parse; the reason names the field.
    Malformed(Arc<Malformed>),
    /// What a pass depends on.
    Complete(Observed),
}

/// Takes out of the world what a pass over the object at `key` depends on.
pub fn observe(view: &View<'_>, key: &ObjectKey, settings: Settings) -> Observation {
    let observed = match key.kind {
        Kind::CaptCluster => present(view.captcluster_at(key.clone()))
            .map(|object| Observed::CaptCluster(Box::new(captcluster::observe(view, object, settings)))),
        Kind::CaptControlPlane => present(view.control_plane_at(key.clone()))
            .map(|object| Observed::ControlPlane(Box::new(captcontrolplane::observe(view, object, settings)))),
        Kind::Apply => present(view.apply_at(key.clone()))
            .map(|object| Observed::Apply(Box::new(workspace_template_apply::observe(view, object, settings)))),
        Kind::Cluster => present(view.cluster_at(key.clone()))
            .map(|object| Observed::Cluster(Box::new(cluster::observe(view, object, settings)))),
        Kind::Template | Kind::Workspace(_) | Kind::Secret => None,
    };
    match (observed, view.peek(key)) {
        (Some(observed), _) => Observation::Complete(observed),
        (None, Some(Object::Malformed(error))) => Observation::Malformed(Arc::clone(error)),
        (None, _) => Observation::Gone,
    }
}

/// The limits within which a provider object has to be done, from its spec and, where that says nothing, `timeouts`.
pub fn limits(object: &Object, timeouts: Timeouts) -> Option<Limits> {
    match object {
        Object::CaptCluster(object) => Some(captcluster::limits(object, timeouts)),
        Object::ControlPlane(object) => Some(captcontrolplane::limits(object, timeouts)),
        Object::Cluster(_)
        | Object::Template(_)
        | Object::Apply(_)
        | Object::Workspace(_)
        | Object::Secret(_)
        | Object::Malformed(_) => None,
    }
}

fn present<T>(seen: Seen<Arc<T>>) -> Option<Arc<T>> {
    match seen {
        Seen::Present(object) => Some(object),
        Seen::Unknown | Seen::Absent { live: _ } => None,
    }
}

/// What to write, given what was observed at `now`: total, deterministic, independent of order.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    match observed {
        Observed::CaptCluster(observed) => captcluster::plan(observed, now),
        Observed::ControlPlane(observed) => captcontrolplane::plan(observed, now),
        Observed::Apply(observed) => workspace_template_apply::plan(observed, now),
        Observed::Cluster(observed) => cluster::plan(observed, now),
    }
}

#[cfg(test)]
pub(crate) mod tests;
