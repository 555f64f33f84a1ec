//! A pause goes down to the Workspace and comes up again, and a move or a restore loses nothing.

use crate::workspaces::{
    APPLY, TEMPLATE, annotate, annotation, apply, assert_rest, key, message, ready, shown, status, workspace,
    workspace_writes, world, writes,
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::Simulation;
use serde_json::{Value, json};

const PAUSED: &str = "crossplane.io/paused";
const MARKER: &str = "capt.cluster.x-k8s.io/paused";
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";

fn pause(simulation: &mut Simulation, value: Option<&str>) {
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| match value {
        Some(value) => apply["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!(value),
        None => drop(apply["metadata"]["annotations"].as_object_mut().unwrap().remove("cluster.x-k8s.io/paused")),
    });
}

#[test]
fn a_pause_reaches_the_workspace_and_is_lifted_last() {
    let mut simulation = ready();
    assert_eq!(annotation(&simulation, &key(Kind::Apply, APPLY), BLOCK_MOVE), "true", "a move has to wait");
    let seen = simulation.requests.len();
    // Any value pauses, as Cluster API has it.
    pause(&mut simulation, Some("false"));
    simulation.run_capt();
    assert_eq!(writes(&simulation, seen), ["status WorkspaceTemplateApply/team/demo-apply", "patch Workspace/demo"]);
    assert_eq!(
        [annotation(&simulation, &workspace(), PAUSED), annotation(&simulation, &workspace(), MARKER)],
        ["true"; 2]
    );
    assert_eq!(annotation(&simulation, &key(Kind::Apply, APPLY), BLOCK_MOVE), "true", "a run may be in flight");
    // The provider has seen it.
    assert!(simulation.run());
    assert_eq!(annotation(&simulation, &key(Kind::Apply, APPLY), BLOCK_MOVE), Value::Null);
    assert_eq!(shown(&simulation, "Paused"), "True Paused");
    assert_eq!(shown(&simulation, "Ready"), "True Available", "everything else stays as it was");
    assert_rest(&mut simulation);

    // While paused nothing reaches the Workspace, not even a deletion.
    simulation.api.edit(&key(Kind::Template, TEMPLATE), |template| {
        template["spec"]["template"]["spec"]["forProvider"]["module"] = json!("# an edit");
    });
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);

    pause(&mut simulation, None);
    simulation.run_capt();
    let lines = writes(&simulation, seen);
    assert_eq!(
        lines,
        [
            "json-patch WorkspaceTemplateApply/team/demo-apply",
            "patch Workspace/demo",
            "status WorkspaceTemplateApply/team/demo-apply",
            "patch Workspace/demo",
        ],
        "a move has to wait again, the spec, the word that it has resumed, and last the Workspace"
    );
    assert!(simulation.run());
    assert_eq!(annotation(&simulation, &workspace(), PAUSED), Value::Null);
    assert_eq!(annotation(&simulation, &workspace(), MARKER), Value::Null);
    assert_eq!(
        [shown(&simulation, "Paused"), shown(&simulation, "Synced")],
        ["False NotPaused", "True ReconcileSuccess"]
    );
    assert_rest(&mut simulation);
}

#[test]
fn somebody_elses_pause_is_never_lifted() {
    let mut simulation = ready();
    annotate(&mut simulation, &workspace(), PAUSED, "true");
    assert!(simulation.run());
    assert_eq!(
        [shown(&simulation, "Synced"), shown(&simulation, "Ready")],
        ["False WorkspacePaused", "True Available"]
    );
    pause(&mut simulation, Some(""));
    assert!(simulation.run());
    assert_eq!(annotation(&simulation, &workspace(), MARKER), Value::Null, "it is not ours");
    assert_eq!(annotation(&simulation, &key(Kind::Apply, APPLY), BLOCK_MOVE), Value::Null, "it is paused all the same");
    pause(&mut simulation, None);
    assert!(simulation.run());
    assert_eq!(annotation(&simulation, &workspace(), PAUSED), "true");
    // What should change waits and says for whom.
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["variables"]["cidr"] = json!("10.9.0.0/16"));
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    assert!(message(&simulation, "Synced").contains("forProvider.vars[cidr]"), "{}", message(&simulation, "Synced"));
    assert_eq!(status(&simulation, "applied"), false);
    simulation.api.edit(&workspace(), |workspace| {
        workspace["metadata"]["annotations"].as_object_mut().unwrap().remove(PAUSED);
    });
    assert!(simulation.run());
    let live = simulation.api.get(&workspace()).unwrap()["spec"]["forProvider"]["vars"][0]["value"].clone();
    assert_eq!([live, status(&simulation, "applied")], [json!("10.9.0.0/16"), json!(true)]);
}

#[test]
fn a_paused_deletion_waits_and_a_resumed_one_goes_on() {
    let mut simulation = ready();
    pause(&mut simulation, Some(""));
    assert!(simulation.run());
    simulation.api.delete(&key(Kind::Apply, APPLY), None);
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    pause(&mut simulation, None);
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["patch Workspace/demo", "delete Workspace/demo"]);
    assert!(simulation.api.get(&workspace()).is_none() && simulation.api.get(&key(Kind::Apply, APPLY)).is_none());
}

#[test]
fn an_apply_that_is_born_paused_makes_nothing_and_holds_nothing() {
    let mut simulation = world();
    let mut object = apply(APPLY);
    object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    simulation.api.create(&key(Kind::Apply, APPLY), object);
    assert!(simulation.run());
    assert_eq!(writes(&simulation, 0), ["status WorkspaceTemplateApply/team/demo-apply"]);
    pause(&mut simulation, None);
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Ready"), "True Available");
}

/// The whole of a cluster, from the project's examples.
fn cluster() -> Simulation {
    let mut simulation = crate::common::simulation(WorkspaceApi::Cluster, &crate::common::FILES);
    assert!(simulation.run());
    simulation
}

fn all_workspaces(simulation: &Simulation) -> Vec<ObjectKey> {
    simulation.api.keys().filter(|key| matches!(key.kind, Kind::Workspace(_))).cloned().collect()
}

#[test]
fn a_paused_cluster_pauses_all_of_its_workspaces_and_resumes_from_above() {
    let mut simulation = cluster();
    simulation.api.edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
    assert!(simulation.run());
    let workspaces = all_workspaces(&simulation);
    assert_eq!(workspaces.len(), 2);
    for workspace in &workspaces {
        assert_eq!(annotation(&simulation, workspace, PAUSED), "true", "{workspace}");
    }
    for apply in ["demo-vpc", "demo-eks-controlplane-apply"] {
        assert_eq!(
            annotation(&simulation, &crate::common::key(Kind::Apply, apply), BLOCK_MOVE),
            Value::Null,
            "{apply}"
        );
    }
    assert_rest(&mut simulation);
    let seen = simulation.requests.len();
    simulation.api.edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
    assert!(simulation.run());
    let position = |line: &str| {
        let lines = writes(&simulation, seen);
        lines.iter().position(|found| found == line).unwrap_or_else(|| panic!("no {line} in {lines:#?}"))
    };
    for (owner, apply, workspace) in [
        ("CAPTCluster/default/demo", "demo-vpc", "demo-vpc"),
        ("CAPTControlPlane/default/demo", "demo-eks-controlplane-apply", "demo-eks-controlplane"),
    ] {
        let owner = position(&format!("status {owner}"));
        let apply = position(&format!("status WorkspaceTemplateApply/default/{apply}"));
        let workspace = position(&format!("patch Workspace/{workspace}"));
        assert!(owner < apply && apply < workspace, "{owner} {apply} {workspace}");
    }
    for workspace in &workspaces {
        assert_eq!(annotation(&simulation, workspace, PAUSED), Value::Null, "{workspace}");
    }
    assert_eq!(crate::common::status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    assert_rest(&mut simulation);
}

#[test]
fn an_apply_resumes_after_its_owner_has() {
    let mut simulation = cluster();
    simulation.api.edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
    assert!(simulation.run());
    simulation.api.edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
    let apply = crate::common::key(Kind::Apply, "demo-eks-controlplane-apply");
    // The control plane still says that it is paused, so this one stays.
    let plan = simulation.plan(&apply).unwrap();
    assert!(!plan.actions.iter().any(|action| matches!(action.target.kind, Kind::Workspace(_))), "{plan:#?}");
    assert!(plan.note.contains("CAPTControlPlane/default/demo has not resumed yet"), "{}", plan.note);
    simulation.api.edit(&crate::common::key(Kind::CaptControlPlane, "demo"), |object| {
        for condition in object["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Paused" {
                condition["status"] = json!("False");
            }
        }
    });
    let plan = simulation.plan(&apply).unwrap();
    assert!(plan.actions.iter().any(|action| matches!(action.target.kind, Kind::Workspace(_))), "{plan:#?}");
}

#[test]
fn a_paused_control_plane_pauses_its_own_workspace_and_no_other() {
    let mut simulation = cluster();
    annotate(&mut simulation, &crate::common::key(Kind::CaptControlPlane, "demo"), "cluster.x-k8s.io/paused", "");
    assert!(simulation.run());
    let paused =
        |name: &str| annotation(&simulation, &crate::common::key(Kind::Workspace(WorkspaceApi::Cluster), name), PAUSED);
    assert_eq!([paused("demo-eks-controlplane"), paused("demo-vpc")], [json!("true"), Value::Null]);
    assert_rest(&mut simulation);
}

/// What a move or a restore does to an object: another uid, no status, and whether the owner references
/// follow.
fn reborn(simulation: &mut Simulation, references_follow: bool) {
    let keys: Vec<ObjectKey> = simulation.api.keys().cloned().collect();
    let new = |uid: &Value| json!(format!("{}-reborn", uid.as_str().unwrap_or_default()));
    for key in keys {
        simulation.api.edit(&key, |object| {
            object["metadata"]["uid"] = new(&object["metadata"]["uid"]);
            // The provider writes no Secret of another uid; the garbage collector would take it, and it came back.
            if references_follow || key.kind == Kind::Secret {
                for reference in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
                    reference["uid"] = new(&reference["uid"]);
                }
            }
            // The provider's own objects come back as they were, or it would not know them.
            if !matches!(key.kind, Kind::Workspace(_) | Kind::Secret) {
                object.as_object_mut().unwrap().remove("status");
            }
        });
    }
    simulation.restart();
}

/// Whatever is done to a Workspace is neither its birth, its death nor another Terraform state.
fn assert_harmless(simulation: &Simulation, seen: usize) {
    for (request, _) in &simulation.requests[seen..] {
        match request {
            Request::Create { target, .. } | Request::Delete { target, .. } => {
                assert!(!matches!(target.kind, Kind::Workspace(_)), "{request:?}");
            }
            Request::MergePatch { target, body } if matches!(target.kind, Kind::Workspace(_)) => {
                assert_eq!(body["metadata"]["annotations"].get("crossplane.io/external-name"), None, "{request:?}");
                assert_eq!(body.get("spec"), None, "{request:?}");
            }
            Request::MergePatch { .. }
            | Request::JsonPatch { .. }
            | Request::ApplyStatus { .. }
            | Request::MergeStatus { .. }
            | Request::Get { .. }
            | Request::List { .. } => {}
        }
    }
}

#[test]
fn after_a_move_everything_is_found_again() {
    for references_follow in [true, false] {
        let mut simulation = cluster();
        simulation
            .api
            .edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
        assert!(simulation.run());
        let seen = simulation.requests.len();
        reborn(&mut simulation, references_follow);
        assert!(simulation.run());
        assert_harmless(&simulation, seen);
        simulation
            .api
            .edit(&crate::common::key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
        assert!(simulation.run());
        assert_harmless(&simulation, seen);
        let plane = crate::common::status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!([&plane["state"], &plane["endpoint"]], ["Ready", "demo.eks.invalid:443"], "{plane:#}");
        assert_eq!(crate::common::status(&simulation, Kind::CaptCluster, "demo")["vpcId"], "vpc-0123");
        for workspace in all_workspaces(&simulation) {
            let owner =
                simulation.api.get(&workspace).unwrap()["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"]
                    .clone();
            assert!(owner.as_str().unwrap().ends_with("-reborn"), "{workspace} is of the apply that is there: {owner}");
            assert_eq!(annotation(&simulation, &workspace, PAUSED), Value::Null);
        }
        assert_rest(&mut simulation);
    }
}

/// The garbage collector takes an object whose owner has another uid for one without an owner.
#[test]
fn what_the_garbage_collector_takes_after_a_restore_destroys_nothing() {
    for taken_over_before in [true, false] {
        let mut simulation = cluster();
        let seen = simulation.requests.len();
        reborn(&mut simulation, false);
        for (apply, workspace) in [("demo-vpc", "demo-vpc"), ("demo-eks-controlplane-apply", "demo-eks-controlplane")] {
            let apply = crate::common::key(Kind::Apply, apply);
            let uid = simulation.api.get(&apply).unwrap()["metadata"]["uid"].clone();
            if taken_over_before {
                let workspace = crate::common::key(Kind::Workspace(WorkspaceApi::Cluster), workspace);
                simulation.api.edit(&workspace, |workspace| {
                    workspace["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"] = uid;
                });
            }
            simulation.api.delete(&apply, None);
        }
        assert!(simulation.run());
        assert_harmless(&simulation, seen);
        for apply in ["demo-vpc", "demo-eks-controlplane-apply"] {
            let apply = simulation.api.get(&crate::common::key(Kind::Apply, apply)).unwrap();
            assert!(apply["metadata"]["deletionTimestamp"].is_null(), "its owner made it anew");
        }
        assert_eq!(crate::common::status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
        assert_eq!(all_workspaces(&simulation).len(), 2);
        assert_rest(&mut simulation);
        // And the user's own deletion still deletes.
        simulation.api.delete(&crate::common::key(Kind::Cluster, "demo"), None);
        assert!(simulation.run());
        assert_eq!(all_workspaces(&simulation), []);
    }
}

#[test]
fn owner_references_follow_a_changed_uid() {
    let mut simulation = cluster();
    reborn(&mut simulation, false);
    assert!(simulation.run());
    for (apply, owner) in [
        ("demo-vpc", crate::common::key(Kind::CaptCluster, "demo")),
        ("demo-eks-controlplane-apply", crate::common::key(Kind::CaptControlPlane, "demo")),
    ] {
        let references =
            simulation.api.get(&crate::common::key(Kind::Apply, apply)).unwrap()["metadata"]["ownerReferences"].clone();
        assert_eq!(references.as_array().map(Vec::len), Some(1), "{references}");
        assert_eq!(references[0]["uid"], simulation.api.get(&owner).unwrap()["metadata"]["uid"]);
    }
}

#[test]
fn a_restore_without_workspaces_makes_none_of_its_own_accord() {
    let mut simulation = ready();
    simulation.api.edit(&workspace(), |workspace| workspace["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(&workspace(), None);
    reborn(&mut simulation, true);
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    let both = [shown(&simulation, "Synced"), shown(&simulation, "Stalled")];
    assert_eq!(both, ["False WorkspaceMissing", "True WorkspaceMissing"]);
    annotate(&mut simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/recreate-workspace", APPLY);
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["create Workspace/demo"]);
    assert_eq!(
        annotation(&simulation, &workspace(), "crossplane.io/external-name"),
        "demo",
        "the same Terraform state"
    );
}
