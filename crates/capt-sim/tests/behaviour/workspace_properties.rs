//! Random lives of one apply: whatever happens in whatever order, its Workspace is not doubled, replaced
//! or destroyed, and everything comes to rest.

use crate::workspaces::{APPLY, TEMPLATE, apply, key, spec, template, terraform, workspace, world};
use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    Capt,
    CaptCrashesAfter(usize),
    Provider,
    Module(u8),
    Variable(u8),
    LiveEdit(u8),
    Template(bool),
    Terraform(bool),
    Pause(bool),
    /// Somebody pauses the Workspace and not the apply.
    ForeignPause(bool),
    StatusLost,
    Reborn,
    Vanish,
    /// The user deletes the apply.
    Delete,
    /// The user makes it again.
    Create,
    /// The user releases the difference that is shown.
    Release,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Capt),
        3 => (0usize..5).prop_map(Event::CaptCrashesAfter),
        8 => Just(Event::Provider),
        2 => (0u8..3).prop_map(Event::Module),
        2 => (0u8..3).prop_map(Event::Variable),
        1 => (0u8..3).prop_map(Event::LiveEdit),
        1 => any::<bool>().prop_map(Event::Template),
        1 => any::<bool>().prop_map(Event::Terraform),
        2 => any::<bool>().prop_map(Event::Pause),
        1 => any::<bool>().prop_map(Event::ForeignPause),
        1 => Just(Event::StatusLost),
        1 => Just(Event::Reborn),
        1 => Just(Event::Vanish),
        1 => Just(Event::Delete),
        2 => Just(Event::Create),
        1 => Just(Event::Release),
    ]
}

/// What is known from outside of the life so far.
#[derive(Default)]
struct Life {
    /// The Workspace was ready, and no destroy has ended that.
    was_ready: bool,
    /// The user has deleted the apply that is there.
    deleted_by_user: bool,
    /// Requests that were judged.
    seen: usize,
}

fn set_annotation(object: &mut Value, name: &str, value: Option<&str>) {
    match value {
        Some(value) => object["metadata"]["annotations"][name] = json!(value),
        None => drop(object["metadata"]["annotations"].as_object_mut().map(|all| all.remove(name))),
    }
}

fn happen(simulation: &mut Simulation, life: &mut Life, event: Event) {
    let (own, its) = (key(Kind::Apply, APPLY), workspace());
    let module = |number: u8| json!(format!("# edit {number}"));
    match event {
        Event::Capt => drop(simulation.run_capt()),
        Event::CaptCrashesAfter(writes) => simulation.run_capt_until_crash(writes),
        Event::Provider => drop(simulation.step_provider()),
        Event::Module(number) => drop(simulation.api.edit(&key(Kind::Template, TEMPLATE), |template| {
            template["spec"]["template"]["spec"]["forProvider"]["module"] = module(number);
        })),
        Event::Variable(number) => drop(simulation.api.edit(&own, |apply| {
            apply["spec"]["variables"]["cidr"] = json!(format!("10.{number}.0.0/16"));
        })),
        Event::LiveEdit(number) => drop(simulation.api.edit(&its, |workspace| {
            workspace["spec"]["forProvider"]["module"] = module(number);
        })),
        Event::Template(true) => drop(simulation.api.create(&key(Kind::Template, TEMPLATE), template(&spec()))),
        Event::Template(false) => drop(simulation.api.delete(&key(Kind::Template, TEMPLATE), None)),
        Event::Terraform(true) => simulation.terraform(terraform),
        Event::Terraform(false) => simulation.terraform(|_| Outputs {
            result: Ending::Failure("creating EC2 VPC: VpcLimitExceeded".to_owned()),
            ..Outputs::default()
        }),
        Event::Pause(on) => drop(simulation.api.edit(&own, |apply| {
            set_annotation(apply, "cluster.x-k8s.io/paused", on.then_some(""));
        })),
        Event::ForeignPause(on) => drop(simulation.api.edit(&its, |workspace| {
            if workspace["metadata"]["annotations"].get("capt.cluster.x-k8s.io/paused").is_none() {
                set_annotation(workspace, "crossplane.io/paused", on.then_some("true"));
            }
        })),
        Event::StatusLost => drop(simulation.api.edit(&own, |apply| apply["status"] = json!({}))),
        Event::Reborn => {
            simulation.api.edit(&own, |apply| {
                apply["metadata"]["uid"] = json!(format!("{}x", apply["metadata"]["uid"].as_str().unwrap()));
                apply["status"] = json!({});
            });
            simulation.restart();
        }
        Event::Vanish => {
            // What nobody has seen nobody can know.
            simulation.run_capt();
            simulation.api.edit(&its, |workspace| workspace["metadata"]["finalizers"] = json!([]));
            simulation.api.delete(&its, None);
        }
        Event::Delete => {
            life.deleted_by_user |= simulation.api.get(&own).is_some();
            simulation.api.delete(&own, None);
        }
        Event::Create => {
            if simulation.api.get(&own).is_none() {
                simulation.api.create(&own, apply(APPLY));
                life.deleted_by_user = false;
            }
        }
        Event::Release => {
            let conditions = simulation.api.get(&own).map(|apply| apply["status"]["conditions"].to_string());
            let after = conditions.as_deref().and_then(|text| text.split_once("apply-pending: "));
            if let Some(hash) = after.and_then(|(_, after)| after.split_whitespace().next()).map(str::to_owned) {
                simulation.api.edit(&own, |apply| {
                    set_annotation(apply, "capt.cluster.x-k8s.io/apply-pending", Some(&hash));
                });
            }
        }
    }
}

/// Judges what CAPT has written since the last time.
fn judge(simulation: &Simulation, life: &mut Life, event: Event) -> Result<(), TestCaseError> {
    for (request, result) in &simulation.requests[life.seen..] {
        if result.is_err() {
            continue;
        }
        match request {
            Request::Create { target, body } if *target == workspace() => {
                prop_assert!(!life.was_ready, "{event:?}: it was ready and is made again");
                prop_assert_eq!(&body["metadata"]["annotations"]["crossplane.io/external-name"], "demo");
            }
            Request::Delete { target, .. } if *target == workspace() => {
                prop_assert!(life.deleted_by_user, "{event:?}: nobody deleted the apply");
            }
            Request::MergePatch { target, body } if *target == workspace() => {
                let external_name = body["metadata"]["annotations"].get("crossplane.io/external-name");
                prop_assert_eq!(external_name, None);
            }
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
    life.seen = simulation.requests.len();
    match simulation.api.get(&workspace()) {
        Some(workspace) => {
            let ready = workspace["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            // What nobody saw, because it was paused or not running, nobody can know of one that vanished.
            let seen = simulation.api.get(&key(Kind::Apply, APPLY)).is_some_and(|apply| {
                let told = apply["status"]["conditions"].as_array().into_iter().flatten();
                told.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            });
            life.was_ready |= ready && seen;
        }
        // Destroyed by the provider for the user, and not vanished.
        None if life.deleted_by_user && simulation.api.get(&key(Kind::Apply, APPLY)).is_none() => {
            life.was_ready = false;
        }
        None => {}
    }
    Ok(())
}

/// The same plan whatever the order in which things were seen.
fn order_does_not_matter(simulation: &Simulation) -> Result<(), TestCaseError> {
    let first = simulation.plan_shuffled(&key(Kind::Apply, APPLY), 0);
    for order in 1..5 {
        prop_assert_eq!(&simulation.plan_shuffled(&key(Kind::Apply, APPLY), order), &first);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_life_doubles_replaces_or_destroys(events in prop::collection::vec(event(), 1..50)) {
        let mut simulation = world();
        let mut life = Life::default();
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        for (index, event) in events.into_iter().enumerate() {
            simulation.api.now = simulation.api.now.plus(capt_status::Span::from_seconds(1));
            happen(&mut simulation, &mut life, event);
            judge(&simulation, &mut life, event)?;
            // Each look builds several worlds.
            if index % 7 == 0 {
                order_does_not_matter(&simulation)?;
            }
        }
        // Everybody behaves again.
        for event in [Event::Pause(false), Event::ForeignPause(false), Event::Template(true), Event::Terraform(true)] {
            happen(&mut simulation, &mut life, event);
        }
        prop_assert!(simulation.run(), "it never comes to rest");
        judge(&simulation, &mut life, Event::Capt)?;
        let before = simulation.requests.len();
        for seconds in [1, 3600, 24 * 3600] {
            simulation.api.now = simulation.api.now.plus(capt_status::Span::from_seconds(seconds));
            prop_assert!(!simulation.resync(), "{:?}", &simulation.requests[before..]);
        }
        // It ends in one of three ways: as it should, waiting for a person, or gone because the user said so.
        let end = simulation.api.get(&key(Kind::Apply, APPLY)).map(|apply| apply["status"]["conditions"].clone());
        let shows = |type_: &str, status: &str| {
            end.as_ref().and_then(Value::as_array).into_iter().flatten().any(|condition| {
                condition["type"] == type_ && condition["status"] == status
            })
        };
        match &end {
            None => prop_assert!(life.deleted_by_user),
            Some(told) => prop_assert!(shows("Ready", "True") || shows("Stalled", "True"), "{told}"),
        }
        if shows("Ready", "True") && !shows("PendingTakeoverChanges", "True") {
            let live = &simulation.api.get(&workspace()).unwrap()["spec"]["forProvider"];
            let wanted = &simulation.api.get(&key(Kind::Template, TEMPLATE)).unwrap()["spec"]["template"]["spec"]["forProvider"];
            prop_assert_eq!(&live["module"], &wanted["module"]);
        }
    }
}
