//! When a VPC counts as one that was ready, so that nothing of it is made anew.

use capt_status::Class;
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

#[test]
fn the_conditions_of_the_go_implementation_say_one_thing() {
    let shown = |vpc: &Vpc, state: State| {
        let conditions = condition::merge(&[], own_verdicts(vpc, &vpc.cause, state, Owner::Known), 1, Time::default());
        [conditions::VPC_READY, conditions::VPC_CREATING, conditions::VPC_FAILED]
            .map(|type_| condition::is_true(&conditions, type_))
    };
    let queued = || Vpc::queued(Cause::new(reasons::NO_VPC_CONFIGURED, "why"));
    let made = || Vpc { cause: queued().cause, ..Vpc::ready("vpc-1".to_owned(), None) };
    let (ready, creating, failed, none) =
        ([true, false, false], [false, true, false], [false, false, true], [false; 3]);
    for state in [State::Pending, State::Validating, State::Provisioning, State::Configuring, State::Recovering] {
        assert_eq!(shown(&queued(), state), creating, "{state:?}");
        assert_eq!(shown(&made(), state), ready, "{state:?}, an update");
        let failing = Workspace::Failing(Class::Transient);
        assert_eq!(shown(&Vpc { workspace: failing, ..made() }, state), failed, "{state:?}");
        assert_eq!(shown(&Vpc { workspace: failing, ..queued() }, state), failed, "{state:?}");
        assert_eq!(shown(&Vpc { inputs: Inputs::Invalid, ..queued() }, state), failed, "{state:?}");
    }
    assert_eq!(shown(&made(), State::Ready), ready);
    assert_eq!(shown(&Vpc { inputs: Inputs::Unsupported, ..made() }, State::Degraded), ready);
    assert_eq!(shown(&queued(), State::Failed), failed);
    assert_eq!(shown(&queued(), State::Deleting), none);
}
