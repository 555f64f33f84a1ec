//! Random lives: whatever users, core, the provider and crashes do in whatever order, CAPT comes to
//! rest, tells no lie on the way and takes nothing back.

use std::collections::BTreeMap;

use crate::common::{FILES, documents, key, simulation, status};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
    pass::KINDS,
};
use capt_sim::Simulation;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    Capt,
    CaptCrashesAfter(usize),
    Core,
    Provider,
    Version(u8),
    Template(u8),
    Pause(bool),
    DeleteCluster,
    Clock(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Capt),
        3 => (0usize..4).prop_map(Event::CaptCrashesAfter),
        6 => Just(Event::Core),
        6 => Just(Event::Provider),
        1 => (30u8..34).prop_map(Event::Version),
        1 => (0u8..3).prop_map(Event::Template),
        1 => any::<bool>().prop_map(Event::Pause),
        1 => Just(Event::DeleteCluster),
        1 => (-600i64..4000).prop_map(Event::Clock),
    ]
}

fn happen(simulation: &mut Simulation, event: Event) {
    match event {
        Event::Capt => {
            simulation.run_capt();
        }
        Event::CaptCrashesAfter(writes) => simulation.run_capt_until_crash(writes),
        Event::Core => {
            simulation.step_core();
        }
        Event::Provider => {
            simulation.step_provider();
        }
        Event::Version(minor) => {
            simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
                object["spec"]["version"] = json!(format!("1.{minor}"));
            });
        }
        Event::Template(number) => {
            simulation.api.edit(&key(Kind::Template, "vpc-template"), |template| {
                let module = &mut template["spec"]["template"]["spec"]["forProvider"]["module"];
                let text =
                    module.as_str().unwrap().lines().filter(|line| !line.starts_with("# edit")).collect::<Vec<_>>();
                *module = json!(format!("{}\n# edit {number}\n", text.join("\n")));
            });
        }
        Event::Pause(paused) => {
            simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(paused));
        }
        Event::DeleteCluster => {
            simulation.api.delete(&key(Kind::Cluster, "demo"), None);
        }
        Event::Clock(seconds) => {
            let now = simulation.api.now.as_unix().saturating_add(seconds).max(0);
            simulation.api.now = capt_status::Time::from_unix(now);
        }
    }
}

/// What must never be taken back while an object lives.
fn latches(simulation: &Simulation) -> BTreeMap<String, Value> {
    let mut latches = BTreeMap::new();
    for (kind, paths) in [
        (Kind::CaptCluster, &["/ready", "/initialization/provisioned", "/vpcId", "/endpoint"][..]),
        (
            Kind::CaptControlPlane,
            &[
                "/ready",
                "/initialized",
                "/initialization/controlPlaneInitialized",
                "/endpoint",
                "/workspaceStatus/atProvider",
            ],
        ),
    ] {
        if let Some(object) = simulation.api.get(&key(kind, "demo")) {
            for path in paths {
                if let Some(value) = object["status"].pointer(path).filter(|value| **value != json!(false)) {
                    latches.insert(format!("{} {path}", object["metadata"]["uid"]), value.clone());
                }
            }
        }
    }
    latches
}

/// Checks each status write since `seen` against the one before it of the same object: a
/// lastTransitionTime moves with the status, never without, and never back.
fn transitions(
    simulation: &Simulation,
    seen: usize,
    last: &mut BTreeMap<String, (String, String)>,
) -> Result<(), TestCaseError> {
    for (request, result) in &simulation.requests[seen..] {
        let (Request::ApplyStatus { target: _, manager: _, body }, Ok(())) = (request, result) else { continue };
        for condition in body["status"]["conditions"].as_array().into_iter().flatten() {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            let name = format!("{} {}", body["metadata"]["uid"], text("type"));
            let (status, time) = (text("status"), text("lastTransitionTime"));
            if let Some((before, at)) = last.insert(name.clone(), (status.clone(), time.clone())) {
                prop_assert!(before != status || at == time, "{name} moved without a change");
                prop_assert!(at <= time, "{name} went back");
            }
        }
    }
    Ok(())
}

/// No status says Ready without what makes it so.
fn is_honest(simulation: &Simulation) {
    let Some(object) = simulation.api.get(&key(Kind::CaptControlPlane, "demo")) else { return };
    let status = &object["status"];
    if status["state"] == "Ready" && status["observedGeneration"] == object["metadata"]["generation"] {
        assert!(object["spec"]["controlPlaneEndpoint"]["host"].is_string(), "Ready without an endpoint");
        assert!(simulation.api.get(&key(Kind::Secret, "demo-kubeconfig")).is_some(), "Ready without a kubeconfig");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_life_comes_to_rest_and_takes_nothing_back(events in prop::collection::vec(event(), 0..40)) {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        // A Cluster that goes before core has seen it leaves its provider objects to the user.
        simulation.step_core();
        let mut kept: BTreeMap<String, Value> = BTreeMap::new();
        let (mut last, mut seen) = (BTreeMap::new(), 0);
        for event in events {
            happen(&mut simulation, event);
            let now = latches(&simulation);
            for (name, value) in &kept {
                let uid = name.split(' ').next().unwrap();
                if now.keys().any(|name| name.starts_with(uid)) {
                    prop_assert!(now.contains_key(name), "{name} was {value} and is gone after {event:?}");
                }
            }
            transitions(&simulation, seen, &mut last)?;
            seen = simulation.requests.len();
            is_honest(&simulation);
            kept = now;
        }
        simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
        prop_assert!(simulation.run(), "it never comes to rest");
        let before = simulation.requests.len();
        prop_assert!(!simulation.resync());
        prop_assert_eq!(simulation.requests.len(), before, "at rest, and a pass asks for something");
        if simulation.api.get(&key(Kind::Cluster, "demo")).is_some() {
            let plane = status(&simulation, Kind::CaptControlPlane, "demo");
            // A version that EKS cannot go to is told, and that is all.
            let refused = crate::common::condition(&plane, "Healthy")["reason"] == "UnsupportedChange";
            prop_assert_eq!(&plane["state"], if refused { "Degraded" } else { "Ready" });
            prop_assert_eq!(&status(&simulation, Kind::CaptCluster, "demo")["state"], "Ready");
        } else {
            let left: Vec<String> =
                simulation.api.keys().filter(|key| key.kind != Kind::Template).map(ToString::to_string).collect();
            prop_assert!(left.is_empty(), "left behind: {left:?}");
        }
        // Each Workspace was made once and, at most, deleted once: nothing was doubled or replaced.
        let mut counts: BTreeMap<(&str, ObjectKey), usize> = BTreeMap::new();
        for (request, result) in &simulation.requests {
            match request {
                Request::Create { target, .. } if result.is_ok() => *counts.entry(("create", target.clone())).or_default() += 1,
                Request::Delete { target, .. } if result.is_ok() => *counts.entry(("delete", target.clone())).or_default() += 1,
                Request::Create { .. }
                | Request::Delete { .. }
                | Request::MergePatch { .. }
                | Request::JsonPatch { .. }
                | Request::ApplyStatus { .. }
                | Request::MergeStatus { .. }
                | Request::Get { .. }
                | Request::List { .. } => {}
            }
        }
        for ((verb, target), count) in counts {
            prop_assert!(count == 1, "{verb} {target} {count} times");
        }
    }

    #[test]
    fn a_plan_does_not_depend_on_the_order_in_which_things_were_seen(steps in 0usize..30, order in any::<u64>()) {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        for step in 0..steps {
            happen(&mut simulation, [Event::Core, Event::Capt, Event::Provider][step % 3]);
        }
        // One more event that CAPT has not acted on, so that there is something to plan.
        happen(&mut simulation, Event::Provider);
        let keys: Vec<ObjectKey> = simulation.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect();
        for key in keys {
            let plan = simulation.plan(&key);
            prop_assert_eq!(&plan, &simulation.plan_shuffled(&key, order));
        }
    }
}

#[test]
fn the_examples_are_what_the_properties_run_on() {
    assert!(FILES.iter().all(|file| !documents(file).is_empty()));
}
