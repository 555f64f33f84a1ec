//! `Cluster.status` over whole lives: beside core it is core's alone, without core it is what core would say.

use crate::common::{FILES, create, documents, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    cluster::mode::{ClusterCrd, ClusterStatus},
    executor::Request,
    object::Kind,
    pass::Settings,
};
use capt_sim::Simulation;
use capt_status::Span;
use proptest::prelude::*;
use serde_json::json;

fn with(settings: Settings) -> Simulation {
    let mut simulation = Simulation::new(settings, terraform);
    for object in FILES.iter().flat_map(|file| documents(file)) {
        create(&mut simulation, object);
    }
    simulation
}

fn standalone() -> Simulation {
    with(Settings { cluster_crd: ClusterCrd::Bare, ..Settings::default() })
}

/// CAPT and the provider until nobody writes any more; no core.
fn run_without_core(simulation: &mut Simulation) {
    for _ in 0..200 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(1));
        let by_capt = simulation.run_capt();
        if !simulation.step_provider() && !by_capt {
            return;
        }
    }
    panic!("it never comes to rest");
}

fn writes_to_clusters(simulation: &Simulation) -> Vec<&Request> {
    let is_of_cluster = |request: &&Request| request.written().is_some_and(|target| target.kind == Kind::Cluster);
    simulation.writes().filter(is_of_cluster).collect()
}

#[test]
fn beside_core_a_whole_life_writes_nothing_to_the_cluster() {
    let mut simulation = with(Settings { cluster_crd: ClusterCrd::Bare, ..Settings::default() });
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::Cluster, "demo")["phase"], "Provisioned");
    // Long enough for everybody to believe that there is no core.
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(60));
    simulation.resync();
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    assert!(simulation.run());
    assert_eq!(writes_to_clusters(&simulation), Vec::<&Request>::new());
    assert!(simulation.api.keys().all(|key| key.kind == Kind::Template), "and it is gone");
}

#[test]
fn without_core_a_life_reaches_provisioned_and_comes_to_rest() {
    let mut simulation = standalone();
    run_without_core(&mut simulation);
    assert_eq!(simulation.writes().count(), 2, "without an owner the provider objects wait, and core may be slow");
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(5));
    simulation.resync();
    run_without_core(&mut simulation);
    let cluster = simulation.api.get(&key(Kind::Cluster, "demo")).unwrap().clone();
    assert_eq!(cluster["status"]["phase"], "Provisioned");
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["port"], 443);
    assert_eq!(
        cluster["status"]["initialization"],
        json!({"infrastructureProvisioned": true, "controlPlaneInitialized": true})
    );
    assert_eq!(crate::common::condition(&cluster["status"], "Available")["status"], "True");
    assert!(cluster["status"]["observedGeneration"].is_null(), "the sign of core");
    let events: Vec<&str> = simulation
        .events
        .iter()
        .filter(|(object, _)| object.kind == Kind::Cluster)
        .map(|(_, event)| event.reason)
        .collect();
    assert_eq!(events, ["ClusterStatusStandalone", "Provisioning", "Provisioned"]);
    let before = simulation.requests.len();
    for minutes in [1, 30, 24 * 60] {
        simulation.api.now = simulation.api.now.plus(Span::from_minutes(minutes));
        simulation.resync();
    }
    assert_eq!(simulation.requests.len(), before, "at rest nothing is asked or written");
}

/// The provider's own status is stored before the Cluster's follows from it.
#[test]
fn the_cluster_is_written_last() {
    let mut simulation = with(Settings { cluster_status: ClusterStatus::Standalone, ..Settings::default() });
    run_without_core(&mut simulation);
    let place = |wanted: &dyn Fn(&Request) -> bool| simulation.writes().position(wanted).unwrap();
    let ready = place(&|request| {
        matches!(request, Request::ApplyStatus { target, body, .. }
        if target.kind == Kind::CaptControlPlane && body["status"]["initialized"] == true)
    });
    let told = place(&|request| {
        matches!(request, Request::MergeStatus { body, .. }
        if body["status"]["initialization"]["controlPlaneInitialized"] == true)
    });
    assert!(ready < told, "{ready} {told}");
}

#[test]
fn without_core_the_deletion_of_a_cluster_leaves_nothing() {
    let mut simulation = with(Settings { cluster_status: ClusterStatus::Standalone, ..Settings::default() });
    run_without_core(&mut simulation);
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    run_without_core(&mut simulation);
    let left: Vec<String> =
        simulation.api.keys().filter(|key| key.kind != Kind::Template).map(ToString::to_string).collect();
    assert_eq!(left, Vec::<String>::new());
}

/// When core is installed later it finds what it would have written itself.
#[test]
fn core_that_comes_later_takes_over_without_a_fight() {
    let mut simulation = standalone();
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(6));
    simulation.resync();
    run_without_core(&mut simulation);
    let before = writes_to_clusters(&simulation).len();
    assert!(simulation.run(), "with core in it");
    assert!(!simulation.resync());
    assert_eq!(writes_to_clusters(&simulation).len(), before, "core is there");
    assert_eq!(status(&simulation, Kind::Cluster, "demo")["phase"], "Provisioned");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever insists on standalone beside a core gets two writers of one formula: they come to rest.
    #[test]
    fn the_two_writers_never_fight(steps in prop::collection::vec(0usize..4, 0..60)) {
        let mut simulation = with(Settings { cluster_status: ClusterStatus::Standalone, ..Settings::default() });
        for step in steps {
            match step {
                0 => { simulation.run_capt(); }
                1 => { simulation.step_core(); }
                2 => { simulation.step_provider(); }
                _ => {
                    let paused = simulation.api.get(&key(Kind::Cluster, "demo")).unwrap()["spec"]["paused"] == true;
                    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(!paused));
                }
            }
        }
        simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
        prop_assert!(simulation.run(), "it never comes to rest");
        let before = simulation.requests.len();
        prop_assert!(!simulation.resync());
        prop_assert!(!simulation.step_core());
        prop_assert_eq!(simulation.requests.len(), before);
        let cluster = status(&simulation, Kind::Cluster, "demo");
        prop_assert_eq!(&cluster["phase"], "Provisioned");
    }
}

#[test]
fn the_default_is_contract_until_something_else_is_known() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(60));
    run_without_core(&mut simulation);
    assert_eq!(writes_to_clusters(&simulation), Vec::<&Request>::new());
}
