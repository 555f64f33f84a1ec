//! An apply that lost its owner references, as by a deletion that orphans or by a restore: it goes back to whom it
//! names, nothing is made a second time beside it, and nobody deletes what a user has cut off.

use capt_api::{
    foreign::WorkspaceApi,
    names::{OWNER_ANNOTATION, OWNER_UID_LABEL},
};
use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::Simulation;
use capt_status::Span;
use serde_json::{Value, json};

use crate::common::{condition, key, ready, status};

const VPC: &str = "demo-vpc";
const EKS: &str = "demo-eks-controlplane-apply";

fn owners(simulation: &Simulation, apply: &str) -> Value {
    simulation.api.get(&key(Kind::Apply, apply)).unwrap()["metadata"]["ownerReferences"].clone()
}

fn lose_owners(simulation: &mut Simulation) {
    for apply in [VPC, EKS] {
        simulation.api.edit(&key(Kind::Apply, apply), |apply| apply["metadata"]["ownerReferences"] = Value::Null);
    }
}

fn edit(simulation: &mut Simulation, kind: Kind, body: &Value) {
    simulation.api.edit(&key(kind, "demo"), |object| json_patch::merge(object, body));
}

/// What Terraform made and destroyed of the VPC and the EKS cluster.
fn terraform(simulation: &Simulation) -> Vec<(String, u32, u32)> {
    let states = simulation.provider.states().iter().filter(|(_, counts)| counts.created > 0);
    states.map(|(name, counts)| (name.clone(), counts.created, counts.destroyed)).collect()
}

/// Writes since `before`, but to statuses.
fn writes(simulation: &Simulation, before: usize) -> Vec<Request> {
    let is_write = |request: &&Request| {
        request.is_write() && !matches!(request, Request::ApplyStatus { .. } | Request::MergeStatus { .. })
    };
    simulation.requests[before..].iter().map(|(request, _)| request).filter(is_write).cloned().collect()
}

#[test]
fn it_goes_back_to_whom_it_names_and_nothing_else_is_written() {
    let mut simulation = ready();
    let (before, made) = ([VPC, EKS].map(|apply| owners(&simulation, apply)), terraform(&simulation));
    lose_owners(&mut simulation);
    let requests = simulation.requests.len();
    assert!(simulation.run_for(Span::from_minutes(10)));
    assert_eq!([VPC, EKS].map(|apply| owners(&simulation, apply)), before);
    let writes = writes(&simulation, requests);
    let [Request::MergePatch { target: first, body: one }, Request::MergePatch { target: second, body: other }] =
        &writes[..]
    else {
        panic!("{writes:?}")
    };
    assert_eq!([first.kind, second.kind], [Kind::Apply; 2]);
    for body in [one, other] {
        let mut metadata = body["metadata"].as_object().unwrap().clone();
        for precondition in ["uid", "resourceVersion"] {
            assert!(metadata.remove(precondition).is_some());
        }
        assert_eq!(
            (body.as_object().unwrap().len(), metadata.keys().map(String::as_str).collect::<Vec<_>>()),
            (1, vec!["ownerReferences"])
        );
    }
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        assert_eq!(status(&simulation, kind, "demo")["state"], "Ready");
    }
    assert_eq!(terraform(&simulation), made);
}

/// As after `kubectl delete --cascade=orphan` and a new `kubectl apply`.
#[test]
fn a_provider_object_that_is_made_again_takes_back_what_the_one_before_made() {
    let mut simulation = ready();
    let made = terraform(&simulation);
    lose_owners(&mut simulation);
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        let mut again = simulation.api.get(&key(kind, "demo")).unwrap().clone();
        simulation.api.edit(&key(kind, "demo"), |object| object["metadata"]["finalizers"] = json!([]));
        simulation.api.delete(&key(kind, "demo"), None);
        let metadata = again["metadata"].as_object_mut().unwrap();
        metadata.retain(|field, _| ["namespace", "name", "ownerReferences", "labels"].contains(&field.as_str()));
        simulation.api.create(&key(kind, "demo"), again);
    }
    assert!(simulation.run_for(Span::from_minutes(10)));
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        assert_eq!(status(&simulation, kind, "demo")["state"], "Ready", "{}", status(&simulation, kind, "demo"));
    }
    for (apply, kind) in [(VPC, Kind::CaptCluster), (EKS, Kind::CaptControlPlane)] {
        let uid = &simulation.api.get(&key(kind, "demo")).unwrap()["metadata"]["uid"];
        assert_eq!(owners(&simulation, apply)[0]["uid"], *uid);
    }
    assert_eq!(terraform(&simulation), made);
}

#[test]
fn another_name_makes_nothing_beside_it() {
    let of_each = [(Kind::CaptCluster, VPC), (Kind::CaptControlPlane, EKS)];
    for ((kind, name), parses) in of_each.into_iter().flat_map(|which| [(which, true), (which, false)]) {
        let mut simulation = ready();
        let made = terraform(&simulation);
        // Nobody has put the owner back before the name changes.
        edit(&mut simulation, Kind::Cluster, &json!({"spec": {"paused": true}}));
        assert!(simulation.run_for(Span::from_minutes(1)));
        lose_owners(&mut simulation);
        if !parses {
            let broken = json!({"spec": {"writeConnectionSecretToRef": {"namespace": null, "name": 1}}});
            simulation.api.edit(&key(Kind::Apply, name), |apply| json_patch::merge(apply, &broken));
        }
        edit(&mut simulation, kind, &json!({"spec": {"workspaceTemplateApplyName": "another"}, "status": null}));
        edit(&mut simulation, Kind::Cluster, &json!({"spec": {"paused": null}, "status": null}));
        assert!(simulation.run_for(Span::from_minutes(60)));
        assert_eq!(terraform(&simulation), made, "{kind:?}");
        if parses {
            let told = condition(&status(&simulation, Kind::Apply, "another"), "Synced");
            assert!(told["message"].as_str().is_some_and(|text| text.contains(name)), "{told}");
        }
    }
}

#[test]
fn one_that_does_not_fit_is_left_alone_and_the_message_says_how_to_give_it_back() {
    let says = |owner: Value| json!({"metadata": {"annotations": {OWNER_ANNOTATION: owner}}});
    let misfits = [
        says(Value::Null),
        says(json!("CAPTCluster/other")),
        says(json!("CAPTControlPlane/demo")),
        json!({"spec": {"templateRef": {"name": "eks-template"}}}),
    ];
    for misfit in misfits {
        let mut simulation = ready();
        let made = terraform(&simulation);
        lose_owners(&mut simulation);
        simulation.api.edit(&key(Kind::Apply, VPC), |apply| json_patch::merge(apply, &misfit));
        assert!(simulation.run_for(Span::from_minutes(10)));
        assert_eq!(owners(&simulation, VPC), Value::Null);
        let told = condition(&status(&simulation, Kind::CaptCluster, "demo"), "Healthy");
        assert_eq!(told["reason"], "NameCollision", "{misfit}");
        assert!(told["message"].as_str().unwrap().contains(OWNER_ANNOTATION), "{told}");
        assert_eq!(terraform(&simulation), made);
        simulation.api.edit(&key(Kind::Apply, VPC), |apply| {
            apply["metadata"]["annotations"][OWNER_ANNOTATION] = json!("CAPTCluster/demo");
            apply["spec"]["templateRef"]["name"] = json!("vpc-template");
        });
        assert!(simulation.run_for(Span::from_minutes(10)));
        assert_eq!(status(&simulation, Kind::CaptCluster, "demo")["state"], "Ready");
        assert_eq!(terraform(&simulation), made);
    }
}

#[test]
fn what_a_user_has_cut_off_outlives_its_provider_objects() {
    let mut simulation = ready();
    let made = terraform(&simulation);
    // The collector takes the references away while the provider objects are being deleted.
    for kind in [Kind::CaptControlPlane, Kind::CaptCluster] {
        simulation.api.delete(&key(kind, "demo"), None);
    }
    lose_owners(&mut simulation);
    assert!(simulation.run_for(Span::from_minutes(30)));
    for apply in [VPC, EKS] {
        let apply = simulation.api.get(&key(Kind::Apply, apply)).unwrap();
        assert_eq!(apply["metadata"]["deletionTimestamp"], Value::Null);
    }
    assert!(simulation.api.get(&key(Kind::CaptCluster, "demo")).is_none());
    assert_eq!(terraform(&simulation), made);
}

/// A Workspace without a label, as Go made them, that two applies have recorded: whoever goes leaves it to the other.
#[test]
fn an_apply_that_goes_does_not_wait_for_a_workspace_that_another_one_records() {
    let mut simulation = ready();
    let workspace = key(Kind::Workspace(WorkspaceApi::Cluster), VPC);
    let mut other = simulation.api.get(&key(Kind::Apply, VPC)).unwrap().clone();
    other["metadata"] = json!({"namespace": "default", "name": "second-vpc", "finalizers": other["metadata"]["finalizers"],
        "annotations": {"crossplane.io/external-name": VPC}});
    let recorded = other["status"].clone();
    simulation.api.create(&key(Kind::Apply, "second-vpc"), other);
    simulation.api.edit(&key(Kind::Apply, "second-vpc"), |apply| apply["status"] = recorded);
    simulation.api.edit(&workspace, |workspace| workspace["metadata"]["labels"][OWNER_UID_LABEL] = Value::Null);
    assert!(simulation.run_for(Span::from_minutes(1)));
    let made = terraform(&simulation);
    simulation.api.delete(&key(Kind::Apply, "second-vpc"), None);
    assert!(simulation.run_for(Span::from_minutes(10)), "it comes to rest");
    assert!(simulation.api.get(&key(Kind::Apply, "second-vpc")).is_none());
    // And the other one has it back.
    let uid = &simulation.api.get(&key(Kind::Apply, VPC)).unwrap()["metadata"]["uid"];
    assert_eq!(simulation.api.get(&workspace).unwrap()["metadata"]["labels"][OWNER_UID_LABEL], *uid);
    assert_eq!(status(&simulation, Kind::CaptCluster, "demo")["state"], "Ready");
    assert_eq!(terraform(&simulation), made);
}
