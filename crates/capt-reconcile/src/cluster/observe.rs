//! What the pass of a Cluster depends on.

use std::sync::Arc;

use capt_api::{
    CAPTCluster, CAPTControlPlane,
    foreign::{ClusterVersion, ClusterView, RefView},
};

use super::mode::ClusterStatus;
use crate::{
    object::{Kind, ObjectKey},
    pass::Settings,
    world::{Seen, View},
};

/// What the pass of a Cluster depends on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Cluster.
    pub cluster: Arc<ClusterView>,
    /// What the operator was told.
    pub settings: Settings,
    /// Whether core was ever seen at work on any Cluster.
    pub core_seen: bool,
    /// What `spec.infrastructureRef` names.
    pub infrastructure: Referenced<CAPTCluster>,
    /// What `spec.controlPlaneRef` names.
    pub control_plane: Referenced<CAPTControlPlane>,
}

/// What a reference of a Cluster leads to.
#[derive(Debug, Clone)]
pub enum Referenced<T> {
    /// There is no reference.
    None,
    /// An object of somebody else's kind.
    Foreign(String),
    /// It was not read, since core takes care of it.
    NotRead,
    /// An object of ours.
    Ours(ObjectKey, Seen<Arc<T>>),
}

impl<T> Referenced<T> {
    /// The object, if it is there.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Ours(_, seen) => seen.present().map(AsRef::as_ref),
            Self::None | Self::Foreign(_) | Self::NotRead => None,
        }
    }
}

/// Takes out of the world what the pass of `cluster` depends on. Where core clearly takes care of it and nothing is
/// to be repaired, the provider objects are not read, so that their changes start no pass.
pub fn observe(view: &View<'_>, cluster: Arc<ClusterView>, settings: Settings) -> Observed {
    let by_core = cluster.shows_core() && settings.cluster_status != ClusterStatus::Standalone;
    let repairs = cluster.version == ClusterVersion::V1Beta1 && cluster.failure_message.is_some();
    let reads = !by_core || repairs;
    let namespace = cluster.meta.namespace.clone().unwrap_or_default();
    Observed {
        core_seen: view.core_seen(),
        infrastructure: referenced(cluster.infrastructure_ref.as_ref(), Kind::CaptCluster, &namespace, reads, |key| {
            view.captcluster_at(key)
        }),
        control_plane: referenced(
            cluster.control_plane_ref.as_ref(),
            Kind::CaptControlPlane,
            &namespace,
            reads,
            |key| view.control_plane_at(key),
        ),
        cluster,
        settings,
    }
}

fn referenced<T>(
    reference: Option<&RefView>,
    kind: Kind,
    namespace: &str,
    reads: bool,
    read: impl FnOnce(ObjectKey) -> Seen<Arc<T>>,
) -> Referenced<T> {
    let Some(reference) = reference else { return Referenced::None };
    if reference.kind != kind.name() || reference.group != kind.group() {
        return Referenced::Foreign(format!("{}.{}", reference.kind, reference.group));
    }
    if !reads {
        return Referenced::NotRead;
    }
    let key = ObjectKey::new(kind, namespace, &reference.name);
    let seen = read(key.clone());
    Referenced::Ours(key, seen)
}
