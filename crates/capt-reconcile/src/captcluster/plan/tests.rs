//! When a VPC counts as one that was ready, so that nothing of it is made anew.

use serde_json::{Value, json};

use super::*;
use crate::{
    captcluster::observe,
    object::ObjectKey,
    pass::{Settings, tests::world},
    world::{Coverage, View, World},
};

/// What [`was_restored`] and [`may_recreate`] say.
fn says(world: &World) -> (bool, bool) {
    let view = View::new(world);
    let captcluster = view.captcluster("a", "v").present().unwrap().clone();
    let observed = observe(&view, captcluster, Settings::default());
    (was_restored(&observed), may_recreate(&observed))
}

#[test]
fn a_vpc_is_made_anew_only_if_nobody_remembers_one() {
    let of = |change: fn([&mut Value; 3])| says(&world(change));
    assert_eq!(of(|[_, _, _]| {}), (false, true));
    assert_eq!(of(|[_, vpc, _]| vpc["status"] = json!({"vpcId": "vpc-1"})), (false, false));
    let provisioned = json!({"initialization": {"infrastructureProvisioned": true}});
    assert_eq!(says(&world(|[cluster, _, _]| cluster["status"] = provisioned)), (true, false));
    let initialized = json!({"initialization": {"controlPlaneInitialized": true}});
    assert_eq!(says(&world(|[cluster, _, _]| cluster["status"] = initialized)), (false, false));
    assert_eq!(of(|[_, _, plane]| plane["status"] = json!({"ready": true})), (true, false));
    assert_eq!(of(|[_, _, plane]| plane["status"] = json!({"endpoint": "a:443"})), (false, false));
}

#[test]
fn what_is_not_known_may_remember_a_vpc() {
    let mut without_cluster = world(|[_, _, _]| {});
    without_cluster.set_unknown(ObjectKey::new(Kind::Cluster, "a", "c"));
    assert_eq!(says(&without_cluster), (false, false));
    let mut without_planes = world(|[_, _, _]| {});
    without_planes.set_coverage(Kind::CaptControlPlane, Coverage::Incomplete);
    assert_eq!(says(&without_planes), (false, false));
}
