//! Deletions that hang, leak, or destroy what nobody deleted.

use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::{Simulation, provider::Ending};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{condition, key, ready, terraform},
    help::{
        assert_still, cluster_key, eks, ends, failure, fresh, fresh_as, infrastructure, infrastructure_key, is_gone,
        left, minutes, plane, plane_key, refusal, statuses, vpc, wait, writes_to,
    },
    workspaces::{self, APPLY, TEMPLATE},
};

const FINALIZER: &str = "controlplane.cluster.x-k8s.io/captcontrolplane";

/// The Cluster goes without its children, as by force.
fn lose_cluster(simulation: &mut Simulation) {
    simulation.api.edit(&cluster_key(), |cluster| cluster["metadata"]["finalizers"] = json!([]));
    // Nobody collects what names another uid.
    for key in [plane_key(), infrastructure_key()] {
        simulation.api.edit(&key, |object| {
            if let Some(owner) = object["metadata"]["ownerReferences"].get_mut(0) {
                owner["uid"] = json!("another");
            }
        });
    }
    simulation.api.delete(&cluster_key(), None);
    assert!(is_gone(simulation, &cluster_key()));
}

#[test]
fn cb_067_a_control_plane_goes_without_its_cluster() {
    let mut simulation = ready();
    lose_cluster(&mut simulation);
    simulation.api.delete(&plane_key(), None);
    wait(&mut simulation, minutes(5));
    assert!(is_gone(&simulation, &plane_key()) && is_gone(&simulation, &eks()));
    assert!(!is_gone(&simulation, &vpc()), "and takes nothing with it that is not its own");
}

#[test]
fn cb_068_what_has_no_owner_yet_can_be_deleted_at_once() {
    let mut simulation = fresh();
    simulation.run_capt();
    for key in [infrastructure_key(), plane_key()] {
        assert_eq!(simulation.api.get(&key).unwrap()["metadata"].get("finalizers"), None, "{key}");
        simulation.api.delete(&key, None);
        assert!(is_gone(&simulation, &key));
    }
}

#[test]
fn cb_069_no_finalizer_is_added_to_what_is_being_deleted() {
    for key in [plane_key(), infrastructure_key()] {
        let mut simulation = ready();
        simulation.api.edit(&key, |object| object["metadata"]["finalizers"] = json!(["somebody.else/finalizer"]));
        simulation.api.delete(&key, None);
        let before = simulation.requests.len();
        simulation.run_capt();
        // What depends on it may tell that it goes.
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(10));
        simulation.resync();
        assert_still(&mut simulation, &[1, 3600]);
        assert_eq!(writes_to(&simulation, before, &key.to_string()), [""; 0], "{key}");
        assert_eq!(simulation.api.get(&key).unwrap()["metadata"]["finalizers"], json!(["somebody.else/finalizer"]));
    }
}

/// The EKS Workspace is being deleted and its destroy fails with this text.
fn destroy_fails(simulation: &mut Simulation, text: &str) {
    simulation.api.delete(&plane_key(), None);
    simulation.run_capt();
    assert!(!simulation.api.get(&eks()).unwrap()["metadata"]["deletionTimestamp"].is_null());
    simulation.api.edit(&eks(), |workspace| {
        workspace["status"]["conditions"] = json!([{"type": "Synced", "status": "False", "reason": "ReconcileError",
            "message": format!("delete failed: cannot destroy Terraform configuration: {text}")}]);
    });
    simulation.run_capt();
}

#[test]
fn cb_070_a_destroy_that_fails_is_told_and_waited_for() {
    let mut simulation = ready();
    destroy_fails(&mut simulation, "something odd in the provider");
    let status = plane(&simulation);
    assert_eq!([&status["state"], &status["phase"]], ["Deleting", "Deleting"]);
    let told = condition(&status, "Deleting");
    assert!(told["message"].as_str().unwrap().contains("something odd in the provider"), "{told:#}");
    assert!(simulation.api.get(&plane_key()).unwrap()["metadata"]["finalizers"].to_string().contains(FINALIZER));
    // For days.
    let before = simulation.requests.len();
    for _ in 0..48 {
        simulation.api.now = simulation.api.now.plus(minutes(60));
        simulation.resync();
    }
    assert!(simulation.requests[before..].iter().filter(|(request, _)| request.is_write()).count() <= 4);
    assert_eq!(plane(&simulation)["state"], "Deleting");
    assert!(simulation.run(), "and goes on by itself");
    assert!(is_gone(&simulation, &plane_key()));
}

#[test]
fn cb_072_a_failed_apply_is_deleted_like_a_good_one() {
    for ending in [failure("InvalidParameterException: no"), failure("odd"), Ending::Hang] {
        let mut simulation = fresh();
        simulation.terraform(ends("eks", ending));
        wait(&mut simulation, minutes(90));
        assert_eq!(plane(&simulation)["state"], "Failed");
        simulation.api.delete(&plane_key(), None);
        wait(&mut simulation, minutes(2));
        assert!(is_gone(&simulation, &plane_key()) && is_gone(&simulation, &eks()));
        assert_eq!(writes_to(&simulation, 0, "delete Workspace/demo-eks").len(), 1);
    }
}

#[test]
fn cb_073_an_apply_goes_without_template_and_owner() {
    let mut simulation = workspaces::ready();
    simulation.api.edit(&workspaces::key(Kind::Apply, APPLY), |apply| {
        apply["metadata"]["ownerReferences"] = json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
            "kind": "CAPTControlPlane", "name": "gone", "uid": "gone", "controller": true}]);
    });
    simulation.api.delete(&workspaces::key(Kind::Template, TEMPLATE), None);
    simulation.api.delete(&workspaces::key(Kind::Apply, APPLY), None);
    assert!(simulation.run());
    assert_eq!(left(&simulation), [""; 0]);
}

/// Whenever the deletion comes, nothing of the control plane is left.
#[test]
fn cb_074_a_deletion_at_any_moment_leaves_nothing() {
    let all = ready().writes().count();
    for writes in 0..=all {
        let mut simulation = fresh();
        simulation.step_core();
        // The process dies after this many writes, and the user deletes before it is back.
        let mut left_over = writes;
        for _ in 0..60 {
            let before = simulation.writes().count();
            simulation.run_capt_until_crash(left_over);
            left_over -= (simulation.writes().count() - before).min(left_over);
            if left_over == 0 {
                break;
            }
            simulation.step_core();
            simulation.step_provider();
        }
        simulation.api.delete(&cluster_key(), None);
        wait(&mut simulation, minutes(5));
        assert_eq!(left(&simulation), [""; 0], "after {writes} writes");
    }
    // Because a child carries from its birth what it is found by.
    let simulation = ready();
    for request in simulation.writes() {
        if let Request::Create { target, body } = request {
            let metadata = &body["metadata"];
            assert_eq!(metadata["labels"]["cluster.x-k8s.io/cluster-name"], "demo", "{target}");
            let marks =
                [&metadata["ownerReferences"][0]["uid"], &metadata["labels"]["capt.cluster.x-k8s.io/owner-uid"]];
            assert!(marks.iter().any(|mark| mark.is_string()), "{target}: {metadata:#}");
        }
    }
}

#[test]
fn cb_075_owner_references_are_there_before_anything_is_ready() {
    let mut simulation = fresh();
    simulation.terraform(ends("vpc", Ending::Hang));
    wait(&mut simulation, minutes(1));
    let apply = simulation.api.get(&key(Kind::Apply, "demo-vpc")).unwrap();
    let owner = &apply["metadata"]["ownerReferences"][0];
    assert_eq!(
        [&owner["kind"], &owner["name"], &owner["controller"]],
        [&json!("CAPTCluster"), &json!("demo"), &json!(true)]
    );
    simulation.api.delete(&plane_key(), None);
    simulation.run_capt();
    assert!(is_gone(&simulation, &plane_key()), "nothing was made for it");
    simulation.api.delete(&cluster_key(), None);
    wait(&mut simulation, minutes(5));
    assert_eq!(left(&simulation), [""; 0]);
}

#[test]
fn cb_076_a_deletion_waits_for_no_readiness() {
    let mut simulation = fresh();
    simulation.terraform(ends("demo", failure("odd")));
    wait(&mut simulation, minutes(1));
    assert_ne!(
        simulation.api.get(&cluster_key()).unwrap()["status"]["initialization"]["infrastructureProvisioned"],
        true
    );
    simulation.api.delete(&plane_key(), None);
    simulation.run_capt();
    assert!(is_gone(&simulation, &plane_key()));
    // Nor does one that was ready, when its Cluster says that nothing is ready any more.
    let mut simulation = ready();
    simulation.terraform(ends("demo", failure("odd")));
    simulation.api.edit(&cluster_key(), |cluster| cluster["status"] = json!({}));
    simulation.api.edit(&infrastructure_key(), |object| object["status"] = json!({}));
    simulation.api.delete(&plane_key(), None);
    for _ in 0..10 {
        simulation.run_capt();
        simulation.step_provider();
    }
    assert!(is_gone(&simulation, &plane_key()) && is_gone(&simulation, &eks()));
}

#[test]
fn cb_077_the_vpc_goes_after_every_control_plane_of_its_cluster() {
    let mut simulation = ready();
    // A second control plane, of another name.
    let mut second = simulation.api.get(&plane_key()).unwrap().clone();
    second["metadata"] = json!({"namespace": "default", "name": "second", "finalizers": ["somebody.else/finalizer"],
        "ownerReferences": second["metadata"]["ownerReferences"], "labels": second["metadata"]["labels"]});
    second["spec"]["workspaceTemplateApplyName"] = Value::Null;
    simulation.api.create(&key(Kind::CaptControlPlane, "second"), second);
    for key in [infrastructure_key(), plane_key(), key(Kind::CaptControlPlane, "second")] {
        simulation.api.delete(&key, None);
    }
    wait(&mut simulation, minutes(5));
    assert!(is_gone(&simulation, &plane_key()) && is_gone(&simulation, &eks()));
    assert!(simulation.api.get(&vpc()).unwrap()["metadata"]["deletionTimestamp"].is_null());
    let told = condition(&infrastructure(&simulation), "Deleting");
    assert!(told["message"].as_str().unwrap().contains("CAPTControlPlane/default/second"), "{told:#}");
    simulation.api.edit(&key(Kind::CaptControlPlane, "second"), |object| object["metadata"]["finalizers"] = json!([]));
    wait(&mut simulation, minutes(5));
    assert!(is_gone(&simulation, &vpc()) && is_gone(&simulation, &infrastructure_key()));
}

#[test]
fn cb_079_an_invalid_object_can_be_deleted() {
    for both in [true, false] {
        let mut simulation = fresh_as(|kind, object| {
            if kind == "CAPTCluster" && both {
                object["spec"]["existingVpcId"] = json!("vpc-1");
            } else if kind == "CAPTCluster" {
                object["spec"].as_object_mut().unwrap().remove("vpcTemplateRef");
            }
        });
        wait(&mut simulation, minutes(60));
        simulation.api.delete(&infrastructure_key(), None);
        simulation.api.delete(&plane_key(), None);
        wait(&mut simulation, minutes(5));
        assert!(is_gone(&simulation, &infrastructure_key()), "{both}");
    }
}

#[test]
fn cb_080_nobody_waits_for_somebody_who_waits_for_him() {
    let mut simulation = ready();
    simulation.api.delete(&cluster_key(), None);
    let mut rounds = 0;
    while simulation.run_capt() | simulation.step_core() | simulation.step_provider() {
        rounds += 1;
        assert!(rounds < 30, "{:?}", left(&simulation));
    }
    assert_eq!(left(&simulation), [""; 0]);
}

#[test]
fn cb_081_a_delete_that_is_refused_is_made_again_and_calmly() {
    let mut simulation = ready();
    let end = simulation.api.now.plus(minutes(20));
    simulation.api.delete(&plane_key(), None);
    let refused = std::rc::Rc::new(std::cell::Cell::new(0));
    let (counter, before) = (std::rc::Rc::clone(&refused), simulation.requests.len());
    simulation.refuse(move |request| match request {
        Request::Delete { .. } => {
            counter.set(counter.get() + 1);
            Some(refusal(409, "Conflict"))
        }
        _ => None,
    });
    wait(&mut simulation, minutes(20));
    assert!(refused.get() > 1);
    for status in statuses(&simulation, &plane_key(), before) {
        assert_eq!([&status["state"], &status["failureReason"]], [&json!("Deleting"), &Value::Null]);
    }
    assert!(simulation.api.now >= end);
    simulation.refuse(|_| None);
    wait(&mut simulation, minutes(2));
    assert!(is_gone(&simulation, &plane_key()) && is_gone(&simulation, &eks()));
}

#[test]
fn cb_082_a_retained_vpc_outlives_its_parents_whoever_takes_them_away() {
    let mut simulation = fresh_as(|kind, object| {
        if kind == "CAPTCluster" {
            object["spec"]["retainVpcOnDelete"] = json!(true);
        }
    });
    assert!(simulation.run());
    let before = simulation.api.get(&vpc()).unwrap().clone();
    // The garbage collector takes the apply, as it does where a finalizer was removed by force.
    for key in [infrastructure_key(), plane_key(), cluster_key()] {
        simulation.api.edit(&key, |object| object["metadata"]["finalizers"] = json!([]));
        simulation.api.delete(&key, None);
    }
    wait(&mut simulation, minutes(5));
    assert!(is_gone(&simulation, &key(Kind::Apply, "demo-vpc")));
    assert_eq!(*simulation.api.get(&vpc()).unwrap(), before);
}

#[test]
fn cb_083_a_cluster_that_is_not_seen_is_no_deletion() {
    let mut simulation = ready();
    let objects = [vpc(), eks()].map(|key| simulation.api.get(&key).unwrap().clone());
    let before = simulation.requests.len();
    lose_cluster(&mut simulation);
    wait(&mut simulation, minutes(180));
    assert_eq!(writes_to(&simulation, before, "delete"), [""; 0]);
    assert_eq!([vpc(), eks()].map(|key| simulation.api.get(&key).unwrap().clone()), objects);
    for status in [plane(&simulation), infrastructure(&simulation)] {
        assert_eq!(status["ready"], true);
        assert_eq!(condition(&status, "Deleting")["status"], "False");
    }
    let told = condition(&infrastructure(&simulation), "WaitingForCluster");
    assert_eq!(told["status"], "True");
}

#[test]
fn cb_101_a_finalizer_that_is_there_twice_goes_as_a_whole_and_alone() {
    let mut simulation = ready();
    for key in [plane_key(), infrastructure_key()] {
        simulation.api.edit(&key, |object| {
            let own = object["metadata"]["finalizers"][0].clone();
            object["metadata"]["finalizers"] = json!([own, own, "somebody.else/finalizer", own]);
        });
    }
    assert_still(&mut simulation, &[1]);
    simulation.terraform(terraform);
    simulation.api.delete(&plane_key(), None);
    simulation.api.delete(&infrastructure_key(), None);
    wait(&mut simulation, minutes(5));
    for key in [plane_key(), infrastructure_key()] {
        let left = &simulation.api.get(&key).unwrap()["metadata"]["finalizers"];
        // The VPC waits for the control plane, which somebody else holds.
        if key == plane_key() {
            assert_eq!(*left, json!(["somebody.else/finalizer"]));
            simulation.api.edit(&key, |object| object["metadata"]["finalizers"] = json!([]));
            wait(&mut simulation, minutes(5));
        } else {
            assert_eq!(*left, json!(["somebody.else/finalizer"]));
        }
    }
    let removals = simulation.writes().filter_map(|request| match request {
        Request::JsonPatch { operations, .. } if operations.iter().any(|operation| operation["op"] == "remove") => {
            Some(operations)
        }
        _ => None,
    });
    for operations in removals {
        assert_eq!(operations[0]["path"], "/metadata/resourceVersion", "{operations:?}");
        let tests = operations.iter().filter(|operation| operation["op"] == "test").count();
        let removes = operations.iter().filter(|operation| operation["op"] == "remove").count();
        assert!(tests >= removes, "{operations:?}");
    }
}
