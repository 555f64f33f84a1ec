//! Conditions that flip, hide, lie or belong to somebody else.

use capt_reconcile::{
    cluster::mode::ClusterStatus, executor::Request, object::Kind, pass::KINDS, pass::Settings, plan::Op,
};
use capt_sim::{Simulation, provider::Ending};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{FILES, condition, create, documents, ready, status, terraform},
    help::{
        assert_still, cluster_key, ends, failure, fresh, fresh_as, infrastructure, infrastructure_key, minutes, plane,
        plane_key, statuses, wait, written,
    },
};

fn foreign() -> Value {
    json!({"type": "example.com/Audited", "status": "False", "reason": "Because", "message": "m",
        "lastTransitionTime": "1970-01-01T00:00:00Z"})
}

#[test]
fn cb_013_conditions_of_others_are_neither_sent_nor_moved() {
    let settings = Settings { cluster_status: ClusterStatus::Standalone, ..Settings::default() };
    let mut simulation = Simulation::new(settings, terraform);
    for object in FILES.iter().flat_map(|file| documents(file)) {
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    for key in [plane_key(), infrastructure_key(), cluster_key()] {
        simulation.api.edit(&key, |object| object["status"]["conditions"].as_array_mut().unwrap().push(foreign()));
    }
    let before = simulation.requests.len();
    simulation.terraform(ends("demo", failure("odd")));
    wait(&mut simulation, minutes(5));
    simulation.terraform(terraform);
    simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    wait(&mut simulation, minutes(5));
    let mut statuses = 0;
    for (request, _) in &simulation.requests[before..] {
        match request {
            Request::ApplyStatus { target, manager: _, body } => {
                statuses += 1;
                assert_eq!(condition(&body["status"], "example.com/Audited"), Value::Null, "{target}");
            }
            // The list of a Cluster goes as a whole.
            Request::MergeStatus { target, manager: _, body } if body["status"]["conditions"].is_array() => {
                assert_eq!(condition(&body["status"], "example.com/Audited"), foreign(), "{target}");
            }
            other => assert!(!matches!(written(other), Some((key, _)) if key.kind == Kind::Cluster), "{other:?}"),
        }
    }
    assert!(statuses > 4);
    for (kind, name) in [(Kind::CaptControlPlane, "demo"), (Kind::CaptCluster, "demo"), (Kind::Cluster, "demo")] {
        assert_eq!(condition(&status(&simulation, kind, name), "example.com/Audited"), foreign(), "{name}");
    }
}

#[test]
fn cb_014_a_spec_that_stays_wrong_is_told_once_and_the_same() {
    let mut simulation = fresh_as(|kind, object| {
        if kind == "CAPTCluster" {
            object["spec"].as_object_mut().unwrap().remove("vpcTemplateRef");
        }
    });
    assert!(simulation.run());
    let told = infrastructure(&simulation);
    assert_eq!(condition(&told, "Stalled")["reason"], "NoVPCConfigured", "{told:#}");
    for _ in 0..10 {
        assert_still(&mut simulation, &[7]);
        simulation.restart();
    }
    assert_eq!(infrastructure(&simulation), told);
}

#[test]
fn cb_015_synced_that_flips_moves_no_latch_and_fails_nothing() {
    let mut simulation = ready();
    for round in 0..6 {
        let fails = round % 2 == 0;
        if fails {
            simulation.terraform(ends("eks", failure("odd")));
        } else {
            simulation.terraform(terraform);
        }
        wait(&mut simulation, minutes(2));
        let plane = plane(&simulation);
        assert_eq!([&plane["ready"], &plane["initialized"]], [true; 2]);
        assert_eq!([&plane["phase"], &condition(&plane, "Ready")["status"]], ["Ready", "True"]);
        assert_eq!(plane["failureReason"], Value::Null);
        assert_eq!(condition(&plane, "WorkspaceSynced")["status"], if fails { "False" } else { "True" });
    }
}

#[test]
fn cb_016_ready_does_not_hide_what_has_not_been_in_sync_for_hours() {
    let mut simulation = ready();
    simulation.terraform(ends("eks", failure("the words of the provider")));
    wait(&mut simulation, minutes(120));
    let plane = plane(&simulation);
    assert_eq!(condition(&plane, "Ready")["status"], "True");
    for type_ in ["Healthy", "WorkspaceSynced"] {
        let told = condition(&plane, type_);
        assert_eq!(told["status"], "False");
        assert!(told["message"].as_str().unwrap().contains("the words of the provider"), "{told:#}");
    }
}

/// Every plan of a life, failures included, writes the status of its object at most once, and says it last.
#[test]
fn cb_021_a_pass_writes_its_status_once() {
    let mut simulation = fresh();
    let (mut plans, mut with_more) = (0, 0);
    for round in 0..60 {
        simulation.terraform(ends("eks", if round < 40 { failure("odd") } else { Ending::Success }));
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(20));
        simulation.step_core();
        simulation.step_provider();
        let keys: Vec<_> = simulation.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect();
        for key in keys {
            let plan = simulation.plan(&key).unwrap();
            let is_status = |op: &Op| match op {
                Op::ApplyStatus { .. } | Op::MergeStatus { .. } => true,
                Op::Create { .. } | Op::MergePatch { .. } | Op::JsonPatch { .. } | Op::Delete => false,
            };
            let places: Vec<usize> =
                plan.actions.iter().enumerate().filter(|(_, action)| is_status(&action.op)).map(|(at, _)| at).collect();
            assert!(places.is_empty() || places == [plan.actions.len() - 1], "{plan:#?}");
            plans += usize::from(!places.is_empty());
            with_more += usize::from(!places.is_empty() && plan.actions.len() > 1);
        }
        simulation.resync();
    }
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert!(plans > 15 && with_more > 3, "{plans} {with_more}");
}

#[test]
fn cb_022_no_write_of_a_spec_carries_a_status() {
    let mut simulation = ready();
    simulation.api.edit(&plane_key(), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run());
    simulation.api.delete(&cluster_key(), None);
    assert!(simulation.run());
    let mut specs = 0;
    for request in simulation.writes() {
        let body = match request {
            Request::Create { body, .. } | Request::MergePatch { body, .. } => body.clone(),
            Request::JsonPatch { operations, .. } => json!(operations),
            Request::ApplyStatus { body, .. } => {
                assert_eq!(body["metadata"].get("managedFields"), None);
                assert!(body.get("spec").is_none() && body["metadata"].get("finalizers").is_none(), "{body}");
                continue;
            }
            Request::MergeStatus { .. } | Request::Delete { .. } | Request::Get { .. } | Request::List { .. } => {
                continue;
            }
        };
        assert!(body.get("status").is_none() && !body.to_string().contains("\"/status"), "{body}");
        specs += 1;
    }
    assert!(specs > 8);
    // Nor do the types, where nothing is set.
    for document in documents("cluster.yaml") {
        if document["kind"] == "CAPTControlPlane" {
            let typed: capt_api::CAPTControlPlane = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(typed).unwrap(), document, "no empty list, no null, no status");
        }
    }
    assert_eq!(json!(capt_api::WorkspaceTemplateApplyStatus::default()).get("conditions"), None);
}

#[test]
fn cb_089_a_conflict_is_no_failure() {
    let mut simulation = ready();
    let (key, events) = (plane_key(), simulation.events.len());
    simulation.api.edit(&key, |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    // The cache is older than what is stored: each write is refused.
    let mut left = 5;
    simulation.refuse(move |request| match request {
        Request::ApplyStatus { target, .. } if target.kind == Kind::CaptControlPlane && left > 0 => {
            left -= 1;
            Some(crate::help::refusal(409, "Conflict"))
        }
        _ => None,
    });
    let before = simulation.requests.len();
    wait(&mut simulation, minutes(3));
    let refused = simulation.requests[before..].iter().filter(|(_, result)| *result == Err(409)).count();
    assert_eq!(refused, 5);
    for status in statuses(&simulation, &key, before) {
        assert_eq!([&status["failureReason"], &status["failureMessage"]], [&Value::Null; 2]);
    }
    assert_eq!(plane(&simulation)["state"], "Ready");
    let told: Vec<_> = simulation.events[events..].iter().map(|(_, event)| event.type_).collect();
    assert!(told.len() <= 2, "{:?}", &simulation.events[events..]);
}

/// The user deletes the apply's template reference and gives it back: nothing of the error stays.
#[test]
fn cb_019_a_phase_is_what_is_seen_and_not_what_was_stored() {
    let mut simulation = fresh_as(|kind, object| {
        if kind == "CAPTCluster" {
            object["spec"].as_object_mut().unwrap().remove("vpcTemplateRef");
        }
    });
    simulation.terraform(ends("demo", Ending::Hang));
    assert!(simulation.run());
    assert_eq!(
        [&infrastructure(&simulation)["phase"], &infrastructure(&simulation)["failureReason"]],
        ["Failed", "InvalidConfiguration"]
    );
    simulation
        .api
        .edit(&infrastructure_key(), |object| object["spec"]["vpcTemplateRef"] = json!({"name": "vpc-template"}));
    assert!(simulation.run());
    let after = infrastructure(&simulation);
    assert_eq!(after["phase"], "Creating", "{after:#}");
    assert_eq!([&after["failureReason"], &after["failureMessage"]], [&Value::Null; 2]);
    assert_eq!(condition(&after, "VPCFailed")["status"], "False");
    assert_eq!(condition(&after, "Stalled")["status"], "False");
}

#[test]
fn cb_130_a_message_of_any_length_is_cut_where_characters_end() {
    let dump = "päckchen \u{1f980} ".repeat(40_000);
    let mut simulation = fresh();
    let text = failure(&format!("creating EKS Cluster (demo): InvalidParameterException: {dump}"));
    assert!(dump.len() >= 600_000);
    simulation.terraform(ends("eks", text));
    wait(&mut simulation, minutes(5));
    for (kind, name) in [(Kind::CaptControlPlane, "demo"), (Kind::Apply, "demo-eks-controlplane-apply")] {
        let status = status(&simulation, kind, name);
        assert!(status.to_string().len() < 64 * 1024, "{name}");
        for condition in status["conditions"].as_array().unwrap() {
            let message = condition["message"].as_str().unwrap();
            assert!(message.len() <= 1024, "{}", message.len());
        }
    }
    assert!(plane(&simulation)["failureMessage"].as_str().unwrap().contains("InvalidParameterException"));
    for (_, event) in &simulation.events {
        assert!(event.note.len() <= 1024);
    }
}
