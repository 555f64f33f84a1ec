//! Failures that pass and are kept, and failures that are kept from view.

use capt_reconcile::{executor::Response, object::Kind};
use capt_sim::provider::Ending;
use serde_json::{Value, json};

use crate::{
    common::{condition, key, ready, status, terraform},
    help::{
        eks, ends, failure, fresh, infrastructure, infrastructure_key, minutes, plane, plane_key, refusal, statuses,
        vpc, wait,
    },
};

#[test]
fn cb_052_a_failure_that_passes_is_never_a_failure_reason() {
    for error in ["ThrottlingException: Rate exceeded", "dial tcp: lookup eks.eu-west-1.amazonaws.com: i/o timeout"] {
        let mut simulation = fresh();
        simulation.terraform(ends("demo", failure(error)));
        wait(&mut simulation, minutes(2));
        assert_eq!(infrastructure(&simulation)["state"], "Recovering", "{error}");
        assert!(condition(&infrastructure(&simulation), "Ready")["message"].as_str().unwrap().len() > 20);
        simulation.terraform(terraform);
        wait(&mut simulation, minutes(5));
        assert_eq!(plane(&simulation)["state"], "Ready");
        for key in [plane_key(), infrastructure_key()] {
            for status in statuses(&simulation, &key, 0) {
                assert_eq!([&status["failureReason"], &status["failureMessage"]], [&Value::Null; 2], "{error}");
            }
        }
    }
}

#[test]
fn cb_053_an_outage_of_the_api_server_is_no_state_of_a_cluster() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    wait(&mut simulation, minutes(1));
    let before = (plane(&simulation), simulation.requests.len());
    let mut left = 3;
    simulation.refuse(move |_| {
        left -= 1;
        (left >= 0).then(|| refusal(504, "Timeout"))
    });
    simulation.terraform(terraform);
    wait(&mut simulation, minutes(5));
    let refused = simulation.requests[before.1..].iter().filter(|(_, result)| *result == Err(504)).count();
    assert_eq!((refused, &before.0["state"]), (3, &json!("Provisioning")));
    for status in statuses(&simulation, &plane_key(), before.1) {
        assert_ne!(status["state"], "Failed");
        assert_eq!(status["failureReason"], Value::Null);
        assert!(!status.to_string().contains("504"));
    }
    assert_eq!(plane(&simulation)["state"], "Ready");
}

#[test]
fn cb_055_success_after_a_timeout_is_success() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    wait(&mut simulation, minutes(90));
    let failed = plane(&simulation);
    assert_eq!([&failed["state"], &condition(&failed, "Ready")["reason"]], ["Failed", "ControlPlaneTimeout"]);
    assert!(failed["failureReason"].is_string());
    simulation.terraform(terraform);
    assert!(simulation.run());
    let after = plane(&simulation);
    assert_eq!([&after["state"], &after["phase"]], ["Ready", "Ready"]);
    assert_eq!([&after["failureReason"], &after["failureMessage"]], [&Value::Null; 2]);
    assert_eq!([&condition(&after, "Failed")["status"], &condition(&after, "Stalled")["status"]], ["False", "False"]);
}

#[test]
fn cb_056_a_message_of_a_workspace_that_is_being_made_is_no_failure() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    wait(&mut simulation, minutes(1));
    simulation.api.edit(&eks(), |workspace| {
        let generation = workspace["metadata"]["generation"].clone();
        workspace["status"]["conditions"] = json!([
            {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": generation},
            {"type": "Ready", "status": "False", "reason": "Creating", "message": "error-like words of something at work"},
        ]);
    });
    wait(&mut simulation, minutes(5));
    let plane = plane(&simulation);
    assert_eq!([&plane["phase"], &plane["state"]], ["Creating", "Provisioning"]);
    assert!(!condition(&plane, "Ready")["message"].as_str().unwrap().is_empty());
    assert_eq!(condition(&plane, "Failed")["status"], "False");
    assert_eq!(plane["failureReason"], Value::Null);
}

#[test]
fn cb_057_what_was_invalid_is_looked_at_again_when_it_can_be_valid() {
    let mut simulation = fresh();
    let template = simulation.api.get(&key(Kind::Template, "eks-template")).unwrap().clone();
    simulation.api.delete(&key(Kind::Template, "eks-template"), None);
    wait(&mut simulation, minutes(120));
    let failed = plane(&simulation);
    assert_eq!([&failed["state"], &failed["failureReason"]], ["Failed", "InvalidConfiguration"], "{failed:#}");
    let generation = simulation.api.get(&plane_key()).unwrap()["metadata"]["generation"].clone();
    simulation.api.create(&key(Kind::Template, "eks-template"), template);
    assert!(simulation.run(), "no clock is needed");
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert_eq!(plane(&simulation)["failureReason"], Value::Null);
    let now = simulation.api.get(&plane_key()).unwrap()["metadata"]["generation"].as_i64().unwrap();
    assert!(now - generation.as_i64().unwrap() <= 1, "nobody but us wrote its spec");
}

#[test]
fn cb_058_a_dependency_that_comes_after_its_time_is_taken() {
    let mut simulation = fresh();
    simulation.terraform(ends("vpc", Ending::Hang));
    wait(&mut simulation, minutes(120));
    assert_eq!(infrastructure(&simulation)["state"], "Failed");
    assert_eq!(plane(&simulation)["state"], "Failed");
    assert_eq!(condition(&infrastructure(&simulation), "Ready")["reason"], "WorkspaceReadyTimeout");
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!([&infrastructure(&simulation)["state"], &plane(&simulation)["state"]], ["Ready", "Ready"]);
}

/// Whatever comes out of a request but success, the pass is started again.
#[test]
fn cb_118_no_outcome_loses_an_object() {
    for answer in [
        refusal(409, "Conflict"),
        refusal(404, "NotFound"),
        refusal(422, "Invalid"),
        refusal(429, "TooManyRequests"),
        refusal(500, "InternalError"),
        Response::NoAnswer("connection reset".to_owned()),
    ] {
        for skip in [0, 1, 3, 5, 9] {
            let mut simulation = fresh();
            let (answer, mut count) = (answer.clone(), 0);
            let told = format!("{answer:?} {skip}");
            simulation.refuse(move |request| {
                count += usize::from(request.is_write());
                (request.is_write() && count == skip + 1).then(|| answer.clone())
            });
            wait(&mut simulation, minutes(5));
            assert_eq!(plane(&simulation)["state"], "Ready", "{told}");
            assert_eq!(status(&simulation, Kind::Cluster, "demo")["phase"], "Provisioned", "{told}");
        }
    }
}

/// Three changes between two passes: what counts is the last of them.
#[test]
fn cb_119_events_that_fall_together_are_one_and_the_last_counts() {
    let mut simulation = ready();
    let conditions = simulation.api.get(&vpc()).unwrap()["status"]["conditions"].clone();
    for ends_ready in [true, false, true] {
        for is_ready in [false, true, ends_ready] {
            simulation.api.edit(&vpc(), |workspace| {
                workspace["status"]["conditions"] = conditions.clone();
                if !is_ready {
                    workspace["status"]["conditions"][0] = json!({"type": "Synced", "status": "False",
                        "reason": "ReconcileError", "message": "update failed: something odd"});
                }
            });
        }
        simulation.run_capt();
        let expected = if ends_ready { "Ready" } else { "Degraded" };
        assert_eq!(infrastructure(&simulation)["state"], expected);
    }
}

#[test]
fn cb_137_too_many_requests_are_no_state_either() {
    for reason in ["TooManyRequests", "storage is (re)initializing"] {
        let mut simulation = fresh();
        simulation.refuse({
            let mut left = 12;
            move |_| {
                left -= 1;
                (left >= 0).then(|| refusal(429, reason))
            }
        });
        wait(&mut simulation, minutes(10));
        assert_eq!(plane(&simulation)["state"], "Ready", "{reason}");
        assert!(simulation.requests.iter().any(|(_, result)| *result == Err(429)));
        for status in statuses(&simulation, &plane_key(), 0) {
            assert_eq!(status["failureReason"], Value::Null);
        }
    }
}

#[test]
fn cb_132_an_edit_of_the_version_reaches_what_was_made() {
    let mut simulation = ready();
    let uid = simulation.api.get(&eks()).unwrap()["metadata"]["uid"].clone();
    simulation.api.edit(&plane_key(), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run());
    let apply = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap();
    assert_eq!(apply["spec"]["variables"]["kubernetes_version"], "1.32");
    let workspace = simulation.api.get(&eks()).unwrap();
    let variables = workspace["spec"]["forProvider"]["vars"].as_array().unwrap();
    assert!(variables.iter().any(|variable| variable["value"] == "1.32"), "{variables:?}");
    assert_eq!(workspace["metadata"]["uid"], uid);
    assert_eq!(plane(&simulation)["version"], "v1.32.0");
    // What cannot be made is said and not made.
    simulation.api.edit(&plane_key(), |object| object["spec"]["version"] = json!("1.40"));
    wait(&mut simulation, minutes(5));
    let apply = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap();
    assert_eq!(apply["spec"]["variables"]["kubernetes_version"], "1.32");
    assert_eq!(condition(&plane(&simulation), "Healthy")["reason"], "UnsupportedChange");
}
