//! Laws of every pass, asked along random lives with failures, pauses, crashes and edits: each status is an
//! allowed step from the one before, a second pass has nothing to do, order does not matter, and what a life
//! ends in does not depend on the way there.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

mod common;

use std::collections::BTreeMap;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
    pass::KINDS,
    plan::{Op, Plan},
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::{Span, State, Time};
use common::{FILES, create, key, simulation, status, terraform};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How Terraform ends from now on.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Works,
    Odd,
    Wrong,
    Hangs,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Capt,
    CaptCrashesAfter(usize),
    Core,
    Provider,
    Terraform(Mood),
    Tag(u8),
    Module(u8),
    Pause(bool),
    Clock(i64),
    Runs,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => Just(Event::Capt),
        3 => (0usize..4).prop_map(Event::CaptCrashesAfter),
        4 => Just(Event::Core),
        5 => Just(Event::Provider),
        3 => prop_oneof![Just(Mood::Works), Just(Mood::Odd), Just(Mood::Wrong), Just(Mood::Hangs)].prop_map(Event::Terraform),
        2 => (0u8..3).prop_map(Event::Tag),
        1 => (0u8..3).prop_map(Event::Module),
        1 => any::<bool>().prop_map(Event::Pause),
        2 => (-60i64..2400).prop_map(Event::Clock),
        2 => Just(Event::Runs),
    ]
}

fn happen(simulation: &mut Simulation, event: Event) {
    match event {
        Event::Capt => {
            simulation.run_capt();
            // What a clock that jumped makes due.
            simulation.resync();
            simulation.run_capt();
        }
        Event::CaptCrashesAfter(writes) => simulation.run_capt_until_crash(writes),
        Event::Core => drop(simulation.step_core()),
        Event::Provider => drop(simulation.step_provider()),
        Event::Terraform(mood) => simulation.terraform(move |workspace| {
            let result = match mood {
                Mood::Works => Ending::Success,
                Mood::Odd => Ending::Failure("something odd".to_owned()),
                Mood::Wrong => Ending::Failure("InvalidParameterException: unsupported Kubernetes version".to_owned()),
                Mood::Hangs => Ending::Hang,
            };
            Outputs { result, ..terraform(workspace) }
        }),
        Event::Tag(number) => drop(simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
            object["spec"]["additionalTags"]["a"] = json!(number.to_string());
        })),
        Event::Module(number) => drop(simulation.api.edit(&key(Kind::Template, "vpc-template"), |template| {
            let module = &mut template["spec"]["template"]["spec"]["forProvider"]["module"];
            let text: Vec<&str> = module.as_str().unwrap().lines().filter(|line| !line.starts_with("# edit")).collect();
            *module = json!(format!("{}\n# edit {number}\n", text.join("\n")));
        })),
        Event::Pause(paused) => {
            drop(simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(paused)));
        }
        Event::Clock(seconds) => {
            simulation.api.now = Time::from_unix(simulation.api.now.as_unix().saturating_add(seconds).max(0));
        }
        Event::Runs => drop(simulation.run_for(Span::from_minutes(3))),
    }
}

/// Keys of what has passes.
fn keys(simulation: &Simulation) -> Vec<ObjectKey> {
    simulation.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect()
}

/// Judges one status against the one before it of the same object.
fn judge(target: &ObjectKey, status: &Value, before: Option<&Value>, generation: i64) -> Result<(), TestCaseError> {
    prop_assert!(status.to_string().len() <= 256 * 1024, "{target}: too large");
    let observed = status["observedGeneration"].as_i64();
    prop_assert!(observed.is_none_or(|observed| observed <= generation), "{target}: {observed:?} of {generation}");
    for condition in status["conditions"].as_array().into_iter().flatten() {
        prop_assert!(condition["message"].as_str().unwrap().len() <= 1024, "{target}: {condition}");
        prop_assert!(!condition["reason"].as_str().unwrap().is_empty(), "{target}: {condition}");
        let of_before = before.map(|before| common::condition(before, condition["type"].as_str().unwrap()));
        if let Some(of_before) = of_before.filter(Value::is_object) {
            let times = [&of_before, condition].map(|told| told["lastTransitionTime"].as_str().unwrap().to_owned());
            let is_same = of_before["status"] == condition["status"];
            prop_assert!(!is_same || times[0] == times[1], "{target}: {condition} moved without a change");
            prop_assert!(times[0] <= times[1], "{target}: {condition} went back");
        }
    }
    if target.kind == Kind::Apply {
        return Ok(());
    }
    let state = |status: &Value| serde_json::from_value::<State>(status["state"].clone()).ok();
    let Some(now) = state(status) else {
        // A pause from birth has no state.
        prop_assert_eq!(common::condition(status, "Paused")["status"].clone(), json!("True"));
        return Ok(());
    };
    prop_assert_eq!(&status["phase"], &json!(now.phase()), "{}", target);
    prop_assert!(status["failureReason"].is_null() || now == State::Failed, "{target}: {now:?} with a failure reason");
    prop_assert_eq!(status["failureReason"].is_null(), status["failureMessage"].is_null());
    if let Some(before) = before {
        if let Some(last) = state(before) {
            prop_assert!(last == now || last.successors().contains(&now), "{target}: {last:?} -> {now:?}");
        }
        prop_assert!(before["observedGeneration"].as_i64() <= observed, "{target}: a generation is forgotten");
        for latch in
            ["/ready", "/initialized", "/initialization/provisioned", "/initialization/controlPlaneInitialized"]
        {
            let latched = before.pointer(latch) == Some(&json!(true));
            prop_assert!(!latched || status.pointer(latch) == Some(&json!(true)), "{target}: {latch} fell");
        }
        for known in ["/endpoint", "/vpcId", "/workspaceStatus/atProvider"] {
            let is_known = before.pointer(known).is_some_and(|value| !value.is_null());
            prop_assert!(!is_known || status.pointer(known).is_some(), "{target}: {known} is forgotten");
        }
    }
    Ok(())
}

/// What was judged so far: how many requests, and the last status of each object by its uid.
#[derive(Default)]
struct Judged {
    seen: usize,
    last: BTreeMap<String, Value>,
}

impl Judged {
    fn follow(&mut self, simulation: &Simulation) -> Result<(), TestCaseError> {
        for (request, result) in &simulation.requests[self.seen..] {
            let (Request::ApplyStatus { target, manager: _, body }, Ok(())) = (request, result) else { continue };
            let generation = simulation
                .api
                .get(target)
                .map_or(i64::MAX, |object| object["metadata"]["generation"].as_i64().unwrap());
            let before =
                self.last.insert(body["metadata"]["uid"].to_string() + &target.to_string(), body["status"].clone());
            judge(target, &body["status"], before.as_ref(), generation)?;
        }
        self.seen = simulation.requests.len();
        Ok(())
    }
}

/// What a status says, but for times, generations and what is a history on purpose.
fn told(simulation: &Simulation, key: &ObjectKey) -> Value {
    let status = simulation.api.get(key).unwrap()["status"].clone();
    let mut conditions: Vec<String> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|told| format!("{} {} {} {}", told["type"], told["status"], told["reason"], told["message"]))
        .collect();
    conditions.sort();
    let fields = [
        "state",
        "phase",
        "ready",
        "initialized",
        "initialization",
        "endpoint",
        "vpcId",
        "failureDomains",
        "secretsReady",
        "version",
        "failureReason",
        "failureMessage",
        "deadlines",
        "applied",
        "workspaceName",
        "externalName",
        "workspaceStatus",
    ];
    json!([fields.map(|field| status[field].clone()), status["workspaceTemplateStatus"]["outputs"], conditions])
}

/// A plan with what has no order in a fixed one.
fn meaning(plan: Option<Plan>) -> Vec<String> {
    let line = |op: &Op| match op {
        Op::ApplyStatus { manager, status } => {
            let mut status = status.clone();
            if let Some(conditions) = status["conditions"].as_array_mut() {
                conditions.sort_by_key(|condition| condition["type"].to_string());
            }
            format!("{manager} {status}")
        }
        // Places in a list depend on its order.
        Op::JsonPatch { operations } => format!("{} operations", operations.len()),
        Op::Create { body } | Op::MergePatch { body } | Op::MergeStatus { manager: _, status: body } => {
            body.to_string()
        }
        Op::Delete => String::new(),
    };
    plan.into_iter()
        .flat_map(|plan| plan.actions)
        .map(|action| format!("{} {}", action.target, line(&action.op)))
        .collect()
}

/// Another order of the lists whose order means nothing.
fn turned(mut object: Value, by: usize) -> Value {
    for list in ["/status/conditions", "/metadata/ownerReferences", "/metadata/finalizers"] {
        if let Some(Value::Array(items)) = object.pointer_mut(list) {
            let by = by % items.len().max(1);
            items.rotate_left(by);
        }
    }
    object
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_status_is_a_step_and_a_second_pass_has_nothing_to_do(events in prop::collection::vec(event(), 1..60)) {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        simulation.step_core();
        let mut judged = Judged::default();
        for event in events {
            happen(&mut simulation, event);
            judged.follow(&simulation)?;
            if matches!(event, Event::Capt) {
                for key in keys(&simulation) {
                    let plan = simulation.plan(&key).unwrap();
                    prop_assert_eq!(&plan.actions, &[], "{} after {:?}", key, event);
                    prop_assert!(plan.next.is_none_or(|next| next > simulation.api.now), "{key}: a loop");
                }
            }
        }
        // Everybody behaves again, and what was final needs the user's word.
        for event in [Event::Terraform(Mood::Works), Event::Pause(false), Event::Capt] {
            happen(&mut simulation, event);
        }
        for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
            simulation.api.edit(&key(kind, "demo"), |object| {
                object["metadata"]["annotations"]["capt.cluster.x-k8s.io/retry"] = json!("the last");
            });
        }
        prop_assert!(simulation.run_for(Span::from_minutes(60)), "it never comes to rest");
        judged.follow(&simulation)?;
        for key in keys(&simulation) {
            let object = simulation.api.get(&key).unwrap();
            if key.kind != Kind::Cluster {
                prop_assert_eq!(&object["status"]["observedGeneration"], &object["metadata"]["generation"], "{}", key);
            }
        }
        let (before, events) = (simulation.requests.len(), simulation.events.len());
        for seconds in [1, 60, 30 * 60, 24 * 3600] {
            simulation.api.now = simulation.api.now.plus(Span::from_seconds(seconds));
            prop_assert!(!simulation.resync());
        }
        prop_assert_eq!((simulation.requests.len(), simulation.events.len()), (before, events), "at rest");

        // The same as a life that went straight there.
        let mut fresh = common::simulation(WorkspaceApi::Cluster, &[]);
        for key in simulation.api.keys().cloned().collect::<Vec<_>>() {
            let mut object = simulation.api.get(&key).unwrap().clone();
            if matches!(key.kind, Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane | Kind::Template) {
                object["metadata"] = json!({"name": key.name, "namespace": key.namespace});
                for field in ["controlPlaneEndpoint", "workspaceTemplateApplyName", "paused"] {
                    object["spec"].as_object_mut().unwrap().remove(field);
                }
                create(&mut fresh, object);
            }
        }
        prop_assert!(fresh.run_for(Span::from_minutes(60)));
        prop_assert_eq!(&status(&fresh, Kind::CaptControlPlane, "demo")["state"], "Ready");
        for key in keys(&simulation).into_iter().filter(|key| key.kind != Kind::Cluster) {
            prop_assert_eq!(told(&simulation, &key), told(&fresh, &key), "{}", key);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// A hundred orders of what was seen, and of what has no order within each object.
    #[test]
    fn no_order_changes_a_plan(events in prop::collection::vec(event(), 1..30)) {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        simulation.step_core();
        for event in events {
            happen(&mut simulation, event);
        }
        // Something that CAPT has not acted on yet, so that there is something to plan.
        for event in [Event::Pause(false), Event::Tag(9), Event::Module(9), Event::Provider, Event::Core, Event::Clock(60)] {
            happen(&mut simulation, event);
        }
        let objects: Vec<(ObjectKey, Value)> =
            simulation.api.keys().map(|key| (key.clone(), simulation.api.get(key).unwrap().clone())).collect();
        let passes: Vec<ObjectKey> = keys(&simulation).into_iter().filter(|key| key.kind != Kind::Cluster).collect();
        let expected: Vec<Vec<String>> =
            passes.iter().map(|key| meaning(simulation.plan_shuffled(key, 0))).collect();
        prop_assert!(expected.iter().any(|plan| !plan.is_empty()));
        for order in 0..100 {
            for (index, (key, object)) in objects.iter().enumerate() {
                simulation.api.restore(key.clone(), turned(object.clone(), order + index));
            }
            for (key, expected) in passes.iter().zip(&expected) {
                prop_assert_eq!(&meaning(simulation.plan_shuffled(key, order as u64)), expected, "{}", key);
            }
        }
    }
}
