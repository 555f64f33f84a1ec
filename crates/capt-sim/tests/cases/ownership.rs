//! Whose is it? Caches that lag, names that collide, parents that come again.

use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::Simulation;
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{FILES, condition, create, documents, key, ready},
    help::{
        assert_still, cluster_key, eks, fresh, fresh_as, infrastructure, infrastructure_key, is_gone, minutes, plane,
        plane_key, vpc, wait, writes_to,
    },
    workspaces::{self, APPLY, NAMESPACE, WORKSPACE, writes},
};

fn vpc_apply() -> ObjectKey {
    key(Kind::Apply, "demo-vpc")
}

/// What was made, each with how often.
pub(crate) fn made(simulation: &Simulation) -> Vec<String> {
    let mut made: Vec<String> = simulation
        .requests
        .iter()
        .filter_map(|(request, result)| match (request, result) {
            (Request::Create { target, .. }, Ok(())) => Some(target.to_string()),
            _ => None,
        })
        .collect();
    made.sort();
    made
}

#[test]
fn cb_084_a_child_that_the_cache_does_not_show_is_not_made_twice() {
    let mut simulation = fresh();
    simulation.run_capt();
    simulation.step_core();
    simulation.run_capt();
    assert!(!is_gone(&simulation, &vpc_apply()));
    // The view from before is all that the next passes have.
    let mut simulation = fresh();
    simulation.run_capt();
    simulation.step_core();
    let kept = simulation.api.get(&infrastructure_key()).unwrap().clone();
    assert!(kept["metadata"]["ownerReferences"].is_array());
    simulation.resync();
    simulation.lags = true;
    for _ in 0..5 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(1));
        simulation.resync();
    }
    simulation.lags = false;
    wait(&mut simulation, minutes(5));
    assert_eq!(made(&simulation), made(&ready()));
    assert_eq!(plane(&simulation)["state"], "Ready");
}

#[test]
fn cb_085_names_of_children_need_no_memory() {
    let mut simulation = fresh();
    for _ in 0..80 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(10));
        simulation.step_core();
        simulation.step_provider();
        // A new leader after each single write.
        simulation.run_capt_until_crash(1);
    }
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert_eq!(made(&simulation), made(&ready()));
}

#[test]
fn cb_086_what_looks_like_a_duplicate_is_left_alone() {
    let mut simulation = ready();
    let mut twin = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap().clone();
    twin["metadata"] = json!({"namespace": "default", "name": "demo-eks-other-apply",
        "labels": twin["metadata"]["labels"], "annotations": {"cluster.x-k8s.io/paused": ""}});
    simulation.api.create(&key(Kind::Apply, "demo-eks-other-apply"), twin);
    let before = simulation.requests.len();
    wait(&mut simulation, minutes(60));
    assert_eq!(writes_to(&simulation, before, "delete"), [""; 0]);
    assert_eq!(plane(&simulation)["state"], "Ready");
    // And it outlives the control plane, which did not make it.
    simulation.api.delete(&cluster_key(), None);
    wait(&mut simulation, minutes(10));
    assert!(!is_gone(&simulation, &key(Kind::Apply, "demo-eks-other-apply")));
    assert!(is_gone(&simulation, &plane_key()));
}

#[test]
fn cb_087_a_deletion_of_before_does_not_reach_what_came_after() {
    let mut simulation = ready();
    simulation.api.delete(&plane_key(), None);
    // CAPT sees the deletion, and then nothing for a long time: everything goes and comes again.
    simulation.plan(&plane_key());
    simulation.lags = true;
    let apply = key(Kind::Apply, "demo-eks-controlplane-apply");
    let mut again = simulation.api.get(&plane_key()).unwrap().clone();
    let mut child = simulation.api.get(&apply).unwrap().clone();
    for key in [&plane_key(), &apply] {
        simulation.api.edit(key, |object| object["metadata"]["finalizers"] = json!([]));
        simulation.api.delete(key, None);
        assert!(is_gone(&simulation, key));
    }
    again["metadata"] = json!({"namespace": "default", "name": "demo", "ownerReferences": again["metadata"]["ownerReferences"],
        "labels": again["metadata"]["labels"], "finalizers": again["metadata"]["finalizers"]});
    simulation.api.create(&plane_key(), again);
    let uid = simulation.api.get(&plane_key()).unwrap()["metadata"]["uid"].clone();
    child["metadata"]["ownerReferences"][0]["uid"] = uid;
    child["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    simulation.api.create(&apply, child);
    let before = (simulation.requests.len(), simulation.api.get(&apply).unwrap().clone());
    for _ in 0..5 {
        simulation.resync();
    }
    assert!(simulation.requests[before.0..].iter().all(|(request, result)| !request.is_write() || result.is_err()));
    assert!(writes_to(&simulation, before.0, "delete").len() > 1, "it was tried");
    assert_eq!(*simulation.api.get(&apply).unwrap(), before.1);
}

#[test]
fn cb_088_states_that_nobody_saw_make_no_difference() {
    let change = |simulation: &mut Simulation, sees_all: bool| {
        // The apply is deleted with its Workspace and made again by its owner's next pass.
        let look = |simulation: &mut Simulation| {
            if sees_all {
                simulation.run_capt();
            }
        };
        for step in 0..4 {
            simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!(step.to_string()));
            look(simulation);
            simulation.api.edit(&eks(), |workspace| {
                workspace["status"]["conditions"][0] = json!({"type": "Synced", "status": if step % 2 == 0 { "False" } else { "True" },
                    "reason": if step % 2 == 0 { "ReconcileError" } else { "ReconcileSuccess" }, "message": "update failed: odd"});
            });
            look(simulation);
            simulation.api.edit(&cluster_key(), |cluster| cluster["spec"]["paused"] = json!(step % 2 == 0));
            look(simulation);
        }
    };
    let end = |sees_all: bool| {
        let mut simulation = ready();
        change(&mut simulation, sees_all);
        wait(&mut simulation, minutes(10));
        let spec = |key: &ObjectKey| simulation.api.get(key).unwrap()["spec"].clone();
        let specs = [spec(&eks()), spec(&vpc()), spec(&key(Kind::Apply, "demo-eks-controlplane-apply"))];
        let status = plane(&simulation);
        (specs, status["state"].clone(), status["endpoint"].clone(), status["observedGeneration"].clone())
    };
    assert_eq!(end(true), end(false));
    assert_eq!(end(false).1, "Ready");
}

#[test]
fn cb_090_a_crash_right_after_the_workspace_was_made_makes_no_second_one() {
    let creation = workspaces::ready().writes().position(|request| matches!(request, Request::Create { .. })).unwrap();
    for crash in [creation, creation + 1] {
        let mut simulation = workspaces::world();
        simulation.api.create(&workspaces::key(Kind::Apply, APPLY), workspaces::apply(APPLY));
        simulation.run_capt_until_crash(crash);
        assert_eq!(is_gone(&simulation, &workspaces::workspace()), crash == creation);
        assert!(simulation.run());
        assert_eq!(workspaces::shown(&simulation, "Ready"), "True Available");
        assert_eq!(writes(&simulation, 0).iter().filter(|line| *line == "create Workspace/demo").count(), 1);
        assert_eq!(workspaces::status(&simulation, "workspaceName"), WORKSPACE);
    }
}

/// Every write but a creation is refused if its object is gone, or is another one.
#[test]
fn cb_092_no_patch_makes_an_object() {
    let mut simulation = ready();
    simulation.api.edit(&plane_key(), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run());
    simulation.api.delete(&cluster_key(), None);
    assert!(simulation.run());
    let mut patches = 0;
    for request in simulation.writes() {
        match request {
            Request::MergePatch { target, body } | Request::MergeStatus { target, manager: _, body } => {
                assert!(
                    body["metadata"]["resourceVersion"].is_string() || body["metadata"]["uid"].is_string(),
                    "{target}"
                );
            }
            Request::ApplyStatus { target, manager: _, body } => {
                assert!(body["metadata"]["resourceVersion"].is_string(), "{target}");
                assert!(body.get("spec").is_none(), "{target}: an apply of a status alone makes nothing");
            }
            Request::JsonPatch { target, operations } => {
                assert_eq!(operations[0]["path"], "/metadata/resourceVersion", "{target}");
            }
            Request::Delete { target, uid, .. } => assert!(!uid.is_empty(), "{target}"),
            Request::Create { .. } | Request::Get { .. } | Request::List { .. } => continue,
        }
        patches += 1;
    }
    assert!(patches > 20);
    // A view from before the end: everything that it asks for is refused.
    let mut simulation = ready();
    simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    simulation.plan(&plane_key());
    simulation.lags = true;
    for key in [plane_key(), key(Kind::Apply, "demo-eks-controlplane-apply")] {
        simulation.api.edit(&key, |object| object["metadata"]["finalizers"] = json!([]));
        simulation.api.delete(&key, None);
    }
    simulation.resync();
    assert!(
        is_gone(&simulation, &plane_key()) && is_gone(&simulation, &key(Kind::Apply, "demo-eks-controlplane-apply"))
    );
}

#[test]
fn cb_094_a_child_of_an_owner_of_before_is_no_failure_and_destroys_nothing() {
    for is_collected in [true, false] {
        let mut simulation = ready();
        let workspace = simulation.api.get(&eks()).unwrap()["metadata"]["uid"].clone();
        let apply = key(Kind::Apply, "demo-eks-controlplane-apply");
        // The owner was taken away by force and made again: what it owned names the uid of before.
        simulation.api.edit(&plane_key(), |object| object["metadata"]["uid"] = json!("uid-new"));
        let before = simulation.requests.len();
        if is_collected {
            simulation.api.delete(&apply, None);
        }
        wait(&mut simulation, minutes(10));
        let status = plane(&simulation);
        assert_eq!([&status["state"], &status["failureReason"]], [&json!("Ready"), &Value::Null], "{is_collected}");
        assert_eq!(simulation.api.get(&eks()).unwrap()["metadata"]["uid"], workspace, "{is_collected}");
        assert_eq!(simulation.api.get(&apply).unwrap()["metadata"]["ownerReferences"][0]["uid"], "uid-new");
        assert_eq!(writes_to(&simulation, before, "delete Workspace"), [""; 0]);
        assert_eq!(writes_to(&simulation, before, "create Workspace/"), [""; 0]);
    }
}

#[test]
fn cb_095_a_stranger_under_our_name_is_told_and_never_touched() {
    let mut simulation = fresh();
    // An apply of somebody else under the VPC's name.
    let stranger = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"namespace": "default", "name": "demo-vpc", "annotations": {"cluster.x-k8s.io/paused": ""}},
        "spec": {"templateRef": {"name": "vpc-template"}, "variables": {"mine": "1"}}});
    simulation.api.create(&vpc_apply(), stranger);
    // A Secret of somebody else under the name of the kubeconfig's.
    let secret =
        json!({"metadata": {"namespace": "default", "name": "demo-kubeconfig"}, "data": {"value": "bWluZQ=="}});
    simulation.api.create(&key(Kind::Secret, "demo-kubeconfig"), secret);
    simulation.run_capt();
    let spec = simulation.api.get(&vpc_apply()).unwrap()["spec"].clone();
    wait(&mut simulation, minutes(60));
    let told = condition(&infrastructure(&simulation), "VPCReady");
    assert_eq!([&told["status"], &told["reason"]], ["False", "NameCollision"], "{told:#}");
    simulation.api.delete(&cluster_key(), None);
    wait(&mut simulation, minutes(10));
    assert!(is_gone(&simulation, &infrastructure_key()), "it goes");
    let found = simulation.api.get(&vpc_apply()).unwrap();
    assert_eq!((&found["spec"], found["metadata"].get("deletionTimestamp")), (&spec, None));
    assert_eq!(simulation.api.get(&key(Kind::Secret, "demo-kubeconfig")).unwrap()["data"]["value"], "bWluZQ==");
    // A Workspace of somebody else.
    let mut simulation = workspaces::world();
    let found =
        json!({"metadata": {"name": WORKSPACE}, "spec": {"forProvider": {"source": "Inline", "module": "# mine"}}});
    simulation.api.create(&workspaces::workspace(), found);
    let before = simulation.api.get(&workspaces::workspace()).unwrap()["spec"].clone();
    simulation.api.create(&workspaces::key(Kind::Apply, APPLY), workspaces::apply(APPLY));
    assert!(simulation.run());
    assert!(workspaces::shown(&simulation, "Synced").contains("NameCollision"));
    simulation.api.delete(&workspaces::key(Kind::Apply, APPLY), None);
    assert!(simulation.run());
    assert_eq!(simulation.api.get(&workspaces::workspace()).unwrap()["spec"], before);
    assert_eq!(workspaces::workspace_writes(&simulation, 0), [""; 0]);
}

#[test]
fn cb_096_no_owner_reference_leads_to_another_namespace() {
    let mut simulation = fresh_as(|kind, object| {
        // Templates of another namespace, in which the objects that refer to them are not.
        if kind == "CAPTCluster" {
            object["spec"]["vpcTemplateRef"] = json!({"name": "vpc-template", "namespace": "shared"});
        }
    });
    let mut template = documents("vpc-template.yaml").remove(0);
    template["metadata"]["namespace"] = json!("shared");
    create(&mut simulation, template);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    for request in simulation.writes() {
        if let Request::Create { target, body } = request {
            for owner in body["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
                let of = |kind: &str| owner["kind"] == kind;
                let kind = if of("CAPTCluster") { Kind::CaptCluster } else { Kind::CaptControlPlane };
                let found = ObjectKey::new(kind, target.namespace.as_deref().unwrap(), owner["name"].as_str().unwrap());
                assert_eq!(simulation.api.get(&found).unwrap()["metadata"]["uid"], owner["uid"], "{target}");
            }
        }
    }
}

#[test]
fn cb_097_a_workspace_is_held_by_label_and_finalizer_and_not_by_an_owner() {
    let simulation = ready();
    for (workspace, apply) in [(vpc(), vpc_apply()), (eks(), key(Kind::Apply, "demo-eks-controlplane-apply"))] {
        let (workspace, apply) = (simulation.api.get(&workspace).unwrap(), simulation.api.get(&apply).unwrap());
        assert_eq!(workspace["metadata"].get("ownerReferences"), None);
        assert_eq!(workspace["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"], apply["metadata"]["uid"]);
        assert!(apply["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.len() == 1));
    }
}

#[test]
fn cb_098_other_owners_stay() {
    let other = json!({"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "u"});
    let with = other.clone();
    let mut simulation = fresh_as(move |kind, object| {
        if kind != "Cluster" {
            object["metadata"]["ownerReferences"] = json!([with]);
        }
    });
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    for key in [infrastructure_key(), plane_key()] {
        let owners = simulation.api.get(&key).unwrap()["metadata"]["ownerReferences"].clone();
        assert_eq!((owners.as_array().unwrap().len(), &owners[0], &owners[1]["kind"]), (2, &other, &json!("Cluster")));
    }
    // On an apply of ours whose owner reference has to be completed, too.
    let apply = key(Kind::Apply, "demo-vpc");
    simulation.api.edit(&apply, |apply| {
        apply["metadata"]["ownerReferences"][0]["uid"] = json!("before the move");
        apply["metadata"]["ownerReferences"].as_array_mut().unwrap().insert(0, other.clone());
    });
    assert!(simulation.run());
    let owners = simulation.api.get(&apply).unwrap()["metadata"]["ownerReferences"].clone();
    let uid = &simulation.api.get(&infrastructure_key()).unwrap()["metadata"]["uid"];
    assert_eq!((&owners[0], &owners[1]["uid"], owners.as_array().unwrap().len()), (&other, uid, 2));
}

#[test]
fn cb_099_parents_are_found_by_reference_and_not_by_name() {
    let mut simulation = fresh_as(|kind, object| {
        let name = match kind {
            "Cluster" => {
                object["spec"]["infrastructureRef"]["name"] = json!("prod-x7k2");
                object["spec"]["controlPlaneRef"]["name"] = json!("prod-9qz4");
                "prod"
            }
            "CAPTCluster" => "prod-x7k2",
            _ => "prod-9qz4",
        };
        object["metadata"]["name"] = json!(name);
    });
    // A Cluster of the CAPTCluster's own name, which has nothing to do with it.
    let mut decoy = documents("cluster.yaml").into_iter().find(|object| object["kind"] == "Cluster").unwrap();
    decoy["metadata"]["name"] = json!("prod-x7k2");
    decoy["spec"] = json!({"paused": true});
    create(&mut simulation, decoy);
    assert!(simulation.run());
    let status = |kind, name: &str| simulation.api.get(&key(kind, name)).unwrap()["status"].clone();
    assert_eq!(status(Kind::CaptCluster, "prod-x7k2")["state"], "Ready");
    assert_eq!(status(Kind::CaptControlPlane, "prod-9qz4")["state"], "Ready");
    assert_eq!(status(Kind::Cluster, "prod")["phase"], "Provisioned");
}

#[test]
fn cb_103_the_reference_to_the_cluster_is_cores_alone() {
    let mut simulation = fresh();
    let before = simulation.requests.len();
    simulation.run_capt();
    assert_still(&mut simulation, &[3600]);
    assert!(simulation.api.keys().all(|key| key.kind != Kind::Apply), "it waits for core");
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    for (request, _) in &simulation.requests[before..] {
        let line = match request {
            Request::MergePatch { body, .. } => body["metadata"].get("ownerReferences").map(ToString::to_string),
            Request::JsonPatch { operations, .. } => Some(json!(operations).to_string()),
            Request::Create { .. }
            | Request::ApplyStatus { .. }
            | Request::MergeStatus { .. }
            | Request::Delete { .. }
            | Request::Get { .. }
            | Request::List { .. } => None,
        };
        assert!(line.is_none_or(|line| !line.contains("ownerReferences")), "{request:?}");
    }
    // Core sets it without `controller`, and so it stays.
    for key in [infrastructure_key(), plane_key()] {
        let owners = &simulation.api.get(&key).unwrap()["metadata"]["ownerReferences"];
        assert_eq!((owners.as_array().unwrap().len(), owners[0].get("controller")), (1, None));
    }
}

#[test]
fn cb_113_a_workspace_of_one_name_is_one_applys() {
    let mut simulation = workspaces::ready();
    let before = simulation.api.get(&workspaces::workspace()).unwrap()["spec"].clone();
    let other = ObjectKey::new(Kind::Apply, "other", APPLY);
    let mut object = workspaces::apply(APPLY);
    object["metadata"]["namespace"] = json!("other");
    object["spec"]["templateRef"]["namespace"] = json!(NAMESPACE);
    object["spec"]["variables"]["cidr"] = json!("10.99.0.0/16");
    simulation.api.create(&other, object);
    wait(&mut simulation, minutes(10));
    let told = condition(&simulation.api.get(&other).unwrap()["status"], "Synced");
    assert_eq!(told["reason"], "NameCollision", "{told:#}");
    simulation.api.delete(&other, None);
    wait(&mut simulation, minutes(10));
    assert!(is_gone(&simulation, &other));
    let workspace = simulation.api.get(&workspaces::workspace()).unwrap();
    assert_eq!((&workspace["spec"], workspace["metadata"].get("deletionTimestamp")), (&before, None));
}

/// A writer that is not core sets a field of the Cluster's status that CAPT knows nothing of.
#[test]
fn cb_105_fields_of_other_writers_stay() {
    let settings = capt_reconcile::pass::Settings {
        cluster_status: capt_reconcile::cluster::mode::ClusterStatus::Standalone,
        ..Default::default()
    };
    let mut simulation = Simulation::new(settings, crate::common::terraform);
    for object in FILES.iter().flat_map(|file| documents(file)) {
        create(&mut simulation, object);
    }
    let mut wrote = 0;
    for round in 0..60 {
        // Between two passes, so that it comes between a read and a write of CAPT's.
        simulation.api.edit(&cluster_key(), |cluster| cluster["status"]["x"] = json!({"round": round}));
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(10));
        let before = simulation.requests.len();
        simulation.run_capt();
        simulation.step_provider();
        assert_eq!(simulation.api.get(&cluster_key()).unwrap()["status"]["x"], json!({"round": round}));
        wrote += simulation.requests[before..]
            .iter()
            .filter(|(request, _)| matches!(request, Request::MergeStatus { body, .. } if body["status"].get("x").is_none()))
            .count();
    }
    assert!(wrote > 1);
    assert_eq!(simulation.api.get(&cluster_key()).unwrap()["status"]["phase"], "Provisioned");
}
