//! What the pass of a CAPTCluster depends on.

use std::sync::Arc;

use capt_api::{CAPTCluster, CAPTControlPlane, foreign::ClusterView, names::MANAGED_BY_ANNOTATION};
use capt_status::machine::Timeouts;
use kube::ResourceExt;

use crate::{
    child::Child,
    dependencies::Graph,
    meta,
    object::Kind,
    pass::{Features, Settings},
    pause,
    world::{Seen, View},
};

/// What the pass of a CAPTCluster depends on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The CAPTCluster.
    pub captcluster: Arc<CAPTCluster>,
    /// What the operator was told to do and to leave.
    pub features: Features,
    /// How long each timer may run where the spec does not say.
    pub timeouts: Timeouts,
    /// What it depends on, where that is tracked.
    pub dependencies: Option<Graph>,
    /// Why it is paused, if it is.
    pub paused: Option<String>,
    /// Whether somebody else manages it.
    pub externally_managed: bool,
    /// The owner Cluster; absent without an owner reference.
    pub cluster: Seen<Arc<ClusterView>>,
    /// The apply of the VPC.
    pub vpc: Child,
    /// The control planes of the same Cluster; `None` if not all are known.
    pub control_planes: Option<Vec<Arc<CAPTControlPlane>>>,
}

/// Takes out of the world what the pass of `captcluster` depends on.
pub fn observe(view: &View<'_>, captcluster: Arc<CAPTCluster>, settings: Settings) -> Observed {
    let owner = meta::owner_cluster_name(captcluster.as_ref());
    let namespace = captcluster.namespace().unwrap_or_default();
    let key = meta::key_of(Kind::CaptCluster, captcluster.as_ref());
    Observed {
        features: settings.features,
        timeouts: settings.timeouts,
        dependencies: settings.features.dependencies.then(|| Graph::observe(view, [key], settings)),
        paused: pause::reason(view, Kind::CaptCluster, captcluster.as_ref(), owner),
        externally_managed: captcluster.annotations().contains_key(MANAGED_BY_ANNOTATION),
        cluster: owner.map_or(Seen::Absent { live: false }, |name| view.cluster(&namespace, name)),
        vpc: vpc(view, &captcluster, settings),
        control_planes: control_planes(view, &captcluster),
        captcluster,
    }
}

/// The VPC's apply.
pub(crate) fn vpc(view: &View<'_>, captcluster: &CAPTCluster, settings: Settings) -> Child {
    let template = captcluster.spec.vpc_template_ref.as_ref();
    Child::observe(view, (Kind::CaptCluster, captcluster), &apply_name(captcluster), template, settings)
}

/// Name of the VPC's apply: the stored one, else `<captcluster>-vpc`.
pub fn apply_name(captcluster: &CAPTCluster) -> String {
    captcluster
        .spec
        .workspace_template_apply_name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("{}-vpc", captcluster.name_any()))
}

/// The control planes of the CAPTCluster's Cluster; none without an owner, `None` if not all are known.
pub fn control_planes(view: &View<'_>, captcluster: &CAPTCluster) -> Option<Vec<Arc<CAPTControlPlane>>> {
    let Some(cluster) = meta::owner_cluster_name(captcluster) else { return Some(Vec::new()) };
    view.control_planes_of(captcluster.namespace().as_deref(), cluster)
}
