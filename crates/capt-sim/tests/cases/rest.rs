//! Controllers that never come to rest.

use std::collections::{BTreeMap, BTreeSet};

use capt_reconcile::{executor::Request, object::Kind, pass::KINDS};
use capt_sim::{Simulation, provider::Ending};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{condition, key, ready, terraform},
    help::{
        assert_still, cluster_key, created_with, ends, events_of, failure, fresh, fresh_as, infrastructure,
        infrastructure_key, minutes, plane, plane_key, wait, with_output_beside, writes_to, written,
    },
    workspaces::{self, APPLY, writes},
};

#[test]
fn cb_001_a_transition_time_does_not_move_with_the_passes() {
    let mut simulation = ready();
    let before = condition(&plane(&simulation), "Ready");
    assert_still(&mut simulation, &[10]);
    // Not even with a write that is about something else.
    simulation.api.now = simulation.api.now.plus(Span::from_seconds(10));
    simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    assert!(simulation.run());
    let after = condition(&plane(&simulation), "Ready");
    assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"]);
    assert_ne!(after["observedGeneration"], before["observedGeneration"], "it was written anew");
}

#[test]
fn cb_002_passes_of_different_seconds_write_as_little_as_those_of_one() {
    assert_still(&mut ready(), &[0, 1, 1, 60]);
}

#[test]
fn cb_003_the_time_of_the_last_apply_is_the_time_of_the_last_apply() {
    let mut simulation = workspaces::ready();
    let of = |simulation: &Simulation, field: &str| workspaces::status(simulation, field);
    let before = [of(&simulation, "lastAppliedTime"), of(&simulation, "lastAppliedRevision")];
    assert!(before[0].is_string());
    assert_still(&mut simulation, &[90]);
    // Nor with a status that is written for another reason.
    simulation.terraform(|_| capt_sim::provider::Outputs { result: failure("odd"), ..Default::default() });
    wait(&mut simulation, minutes(2));
    assert_eq!(workspaces::shown(&simulation, "Ready"), "True Available");
    assert!(!workspaces::shown(&simulation, "Synced").starts_with("True"));
    assert_eq!([of(&simulation, "lastAppliedTime"), of(&simulation, "lastAppliedRevision")], before);
}

#[test]
fn cb_004_an_own_status_write_asks_for_no_further_pass() {
    let mut simulation = fresh();
    // After every pass that wrote a status the same pass over the same world has nothing more to do.
    for _ in 0..40 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(20));
        simulation.run_capt();
        for key in [plane_key(), infrastructure_key(), key(Kind::Apply, "demo-vpc")] {
            if let Some(plan) = simulation.plan(&key) {
                assert_eq!(plan.actions, [], "{key}");
                assert!(plan.next.is_none_or(|next| next > simulation.api.now), "{key}: {:?}", plan.next);
            }
        }
        if !simulation.step_core() && !simulation.step_provider() {
            break;
        }
    }
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert_eq!(simulation.plan(&plane_key()).unwrap().next, None, "only an event can change anything");
}

#[test]
fn cb_006_a_message_does_not_depend_on_the_order_of_what_it_lists() {
    let messages = [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]].map(|order| {
        let mut simulation = workspaces::world();
        let mut apply = workspaces::apply(APPLY);
        apply["spec"]["waitForSecrets"] = order.iter().map(|name| json!({"name": name, "namespace": "team"})).collect();
        simulation.api.create(&workspaces::key(Kind::Apply, APPLY), apply);
        assert!(simulation.run());
        assert_still(&mut simulation, &[1, 1, 60]);
        workspaces::message(&simulation, "Synced")
    });
    assert!(messages[0].contains("Secret/team/a"), "{}", messages[0]);
    assert_eq!([&messages[0]; 2], [&messages[1], &messages[2]]);
}

#[test]
fn cb_007_a_list_in_another_order_is_no_change() {
    let mut simulation = created_with(with_output_beside("vpc_id", "azs", json!(["c", "a", "b"])));
    let shown = infrastructure(&simulation)["failureDomains"].clone();
    let names: Vec<&str> = shown.as_array().unwrap().iter().map(|zone| zone["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let before = simulation.requests.len();
    for order in [["b", "c", "a"], ["a", "b", "c"], ["c", "b", "a"]] {
        simulation.terraform(with_output_beside("vpc_id", "azs", json!(order)));
        assert!(simulation.run());
        assert_eq!(infrastructure(&simulation)["failureDomains"], shown);
    }
    assert_eq!(writes_to(&simulation, before, "CAPTCluster"), [""; 0]);
}

#[test]
fn cb_009_a_failure_that_lasts_makes_one_event_and_few_writes() {
    let mut simulation = fresh();
    simulation.api.delete(&key(Kind::Template, "vpc-template"), None);
    wait(&mut simulation, minutes(25));
    let told = |simulation: &Simulation| {
        let apply = events_of(simulation, &key(Kind::Apply, "demo-vpc"));
        apply.iter().chain(&events_of(simulation, &infrastructure_key())).copied().collect::<Vec<_>>()
    };
    let once: Vec<&str> = told(&simulation);
    let distinct: BTreeSet<&&str> = once.iter().collect();
    assert_eq!(distinct.len(), once.len(), "{once:?}");
    let before = simulation.requests.len();
    // The deadline passes, which is one more thing to tell; then nothing is.
    wait(&mut simulation, minutes(60));
    let after = told(&simulation).len();
    wait(&mut simulation, minutes(60));
    assert_eq!(told(&simulation).len(), after);
    assert!(writes(&simulation, before).len() < 20, "{:?}", writes(&simulation, before));
}

#[test]
fn cb_010_all_controllers_together_come_to_rest_soon() {
    let mut simulation = ready();
    for disturb in [
        (|cluster: &mut Value| cluster["metadata"]["annotations"]["a"] = json!("b")) as fn(&mut Value),
        |cluster| cluster["spec"]["controlPlaneEndpoint"] = Value::Null,
        |cluster| cluster["status"]["phase"] = json!("Pending"),
    ] {
        simulation.api.edit(&cluster_key(), disturb);
        let mut rounds = 0;
        while simulation.run_capt() | simulation.step_core() | simulation.step_provider() {
            rounds += 1;
            assert!(rounds <= 8, "they write on and on");
        }
        assert_still(&mut simulation, &[1, 60]);
    }
}

#[test]
fn cb_011_a_child_that_is_as_wanted_is_not_written() {
    let mut simulation = ready();
    let specs = |simulation: &Simulation| {
        ["demo-vpc", "demo-eks-controlplane-apply"]
            .map(|name| simulation.api.get(&key(Kind::Apply, name)).unwrap()["spec"].clone())
    };
    let before = (simulation.requests.len(), specs(&simulation));
    for _ in 0..3 {
        simulation.restart();
        simulation.resync();
        assert!(simulation.run());
    }
    assert_eq!(writes(&simulation, before.0), [""; 0]);
    assert_eq!(specs(&simulation), before.1);
}

#[test]
fn cb_012_every_field_has_one_writer_and_a_ready_object_no_timer() {
    let mut simulation = ready();
    let mut writers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (request, _) in &simulation.requests {
        match request {
            Request::ApplyStatus { target, manager, body } => {
                for field in body["status"].as_object().unwrap().keys() {
                    writers.entry(format!("{target} {field}")).or_default().insert(manager);
                }
            }
            other => {
                let endpoint = written(other).filter(|(_, body)| body["spec"].get("controlPlaneEndpoint").is_some());
                if let Some((target, _)) = endpoint {
                    assert_eq!(*target, plane_key(), "the endpoint is written there alone");
                }
            }
        }
    }
    assert!(writers.len() > 20 && writers.values().all(|managers| managers.len() == 1), "{writers:?}");
    let keys: Vec<_> = simulation.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect();
    for key in keys {
        assert_eq!(simulation.plan(&key).unwrap().next, None, "{key}: nothing is polled");
    }
}

/// A deadline that stands is the only thing that starts a pass by itself, and it is far away.
#[test]
fn cb_064_a_deadline_that_is_due_makes_no_loop() {
    let mut simulation = fresh_as(|kind, object| {
        if kind == "CAPTControlPlane" {
            object["spec"]["timeouts"] = json!({"controlPlaneTimeout": 3});
        }
    });
    simulation.terraform(ends("eks", Ending::Hang));
    let mut wrote = 0;
    for second in 0..400 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(1));
        simulation.step_core();
        simulation.step_provider();
        let before = simulation.requests.len();
        simulation.resync();
        wrote += usize::from(simulation.requests.len() > before);
        let plan = simulation.plan(&plane_key()).unwrap();
        assert!(plan.next.is_none_or(|next| next > simulation.api.now), "second {second}: {:?}", plan.next);
    }
    assert_eq!(plane(&simulation)["state"], "Failed");
    assert!(wrote < 30, "{wrote} of 400 passes wrote");
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
}
