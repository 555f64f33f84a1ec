//! Takeover: a Workspace that was not made by its apply is marked and left as it is.

use crate::workspaces::{
    APPLY, NAMESPACE, TEMPLATE, WORKSPACE, annotate, annotation, apply, assert_rest, events, key, message,
    pending_hash, ready, shown, spec, status, template, workspace, workspace_writes, world, writes,
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::Simulation;
use serde_json::{Value, json};

const BASELINE: &str = "capt.cluster.x-k8s.io/takeover-baseline";
const RELEASE: &str = "capt.cluster.x-k8s.io/apply-pending";

/// The spec as it was rendered years ago: no reference is left in it.
fn rendered(module: &str) -> Value {
    let mut spec = spec();
    spec["forProvider"]["module"] = json!(module);
    spec["forProvider"]["vars"][0]["value"] = json!("10.0.0.0/16");
    spec
}

/// What the Go implementation leaves: nothing on the Workspace says whose it is, the apply's status
/// names it, and conditions have no generation.
fn from_go(live: &Value) -> Simulation {
    let mut simulation = world();
    simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| {
        apply["metadata"]["finalizers"] = json!(["infrastructure.cluster.x-k8s.io/finalizer"]);
        apply["status"] = json!({
            "applied": true, "workspaceName": WORKSPACE, "lastAppliedTime": "2024-11-22T09:39:55Z",
            "conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2024-11-22T09:52:50Z", "message": ""},
                {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-11-22T09:52:50Z", "message": ""},
            ],
        });
    });
    simulation.api.create(
        &workspace(),
        json!({
            "apiVersion": "tf.upbound.io/v1beta1", "kind": "Workspace",
            "metadata": {"name": WORKSPACE, "labels": {"team": "a"},
                "annotations": {"crossplane.io/external-name": WORKSPACE, "owner": "somebody",
                    "crossplane.io/external-create-pending": "2024-11-22T09:40:01Z",
                    "crossplane.io/external-create-succeeded": "2024-11-22T09:52:47Z"}},
            "spec": live,
        }),
    );
    simulation.api.edit(&workspace(), |workspace| {
        workspace["metadata"]["finalizers"] = json!(["finalizer.managedresource.crossplane.io"]);
        workspace["status"] = json!({"atProvider": {"checksum": "0", "outputs": {"id": "10.0.0.0/16"}}, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-11-22T09:52:50Z"},
            {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2024-11-22T09:52:50Z"},
        ]});
    });
    simulation
}

fn edit_template(simulation: &mut Simulation, module: &str) {
    simulation.api.edit(&key(Kind::Template, TEMPLATE), |template| {
        template["spec"]["template"]["spec"]["forProvider"]["module"] = json!(module);
    });
}

fn live(simulation: &Simulation) -> Value {
    simulation.api.get(&workspace()).unwrap()["spec"].clone()
}

/// Every patch that touched the spec of a Workspace.
fn spec_writes(simulation: &Simulation) -> Vec<Value> {
    simulation
        .writes()
        .filter_map(|request| match request {
            Request::MergePatch { target, body } if target.kind == Kind::Workspace(WorkspaceApi::Cluster) => {
                body.get("spec").cloned()
            }
            _ => None,
        })
        .collect()
}

#[test]
fn drift_from_before_the_takeover_is_shown_and_waits_for_its_release() {
    let mut simulation = from_go(&rendered("# an old module"));
    let foreign = simulation.api.get(&workspace()).unwrap()["metadata"].clone();
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0]);
    assert_eq!(live(&simulation), rendered("# an old module"), "it runs as it did");
    assert_eq!(writes(&simulation, 0).iter().filter(|line| line.starts_with("create")).count(), 0);
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "True SpecDiffers");
    assert_eq!(
        [shown(&simulation, "Ready"), shown(&simulation, "Synced")],
        ["True Available", "True ReconcileSuccess"]
    );
    assert_eq!([status(&simulation, "applied"), status(&simulation, "wasReady")], [json!(false), json!(true)]);
    let text = message(&simulation, "PendingTakeoverChanges");
    assert!(text.contains("forProvider.module") && !text.contains("an old module"), "fields and no values: {text}");
    let hash = pending_hash(&simulation);
    assert_eq!(annotation(&simulation, &workspace(), BASELINE), json!(hash));
    assert_eq!(status(&simulation, "takeoverBaseline"), json!(hash));
    let metadata = &simulation.api.get(&workspace()).unwrap()["metadata"];
    assert_eq!(metadata["labels"]["team"], "a", "foreign labels stay");
    for (name, value) in foreign["annotations"].as_object().unwrap() {
        assert_eq!(metadata["annotations"][name], *value, "{name} stays");
    }
    assert_rest(&mut simulation);

    // Another hash is another difference: it releases nothing.
    annotate(&mut simulation, &key(Kind::Apply, APPLY), RELEASE, "000000000000");
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0]);

    // What the user changes meanwhile waits with it, and makes an old release worthless.
    annotate(&mut simulation, &key(Kind::Apply, APPLY), RELEASE, "");
    edit_template(&mut simulation, "# a newer module");
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["variables"]["cidr"] = json!("10.1.0.0/16"));
    assert!(simulation.run());
    let text = message(&simulation, "PendingTakeoverChanges");
    assert!(text.contains("forProvider.module") && text.contains("forProvider.vars[cidr]"), "{text}");
    assert_eq!(annotation(&simulation, &workspace(), BASELINE), json!(hash), "the baseline is that of the takeover");
    annotate(&mut simulation, &key(Kind::Apply, APPLY), RELEASE, &hash);
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0], "released was another difference");

    let newer = pending_hash(&simulation);
    assert_ne!(newer, hash);
    annotate(&mut simulation, &key(Kind::Apply, APPLY), RELEASE, &newer);
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation).len(), 1);
    assert_eq!(live(&simulation)["forProvider"]["module"], "# a newer module");
    assert_eq!(live(&simulation)["forProvider"]["vars"][0]["value"], "10.1.0.0/16");
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "False NothingPending");
    assert_eq!([status(&simulation, "applied"), status(&simulation, "takeoverBaseline")], [json!(true), Value::Null]);
    assert_eq!(annotation(&simulation, &workspace(), BASELINE), Value::Null);
    assert_eq!(annotation(&simulation, &key(Kind::Apply, APPLY), RELEASE), Value::Null, "it is used up");
    assert_rest(&mut simulation);

    // From now on it is as any other.
    edit_template(&mut simulation, "# the newest module");
    assert!(simulation.run());
    assert_eq!(live(&simulation)["forProvider"]["module"], "# the newest module");
}

#[test]
fn where_both_agreed_at_the_takeover_later_changes_are_applied_as_usual() {
    let mut simulation = from_go(&rendered("output \"id\" { value = var.cidr }"));
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, 0), ["patch Workspace/demo"], "nothing but whose it is");
    assert_eq!(spec_writes(&simulation), [json!(null); 0]);
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "", "nothing ever waited");
    assert_eq!(status(&simulation, "applied"), true);
    assert_eq!(events(&simulation), ["WorkspaceAdopted"]);
    assert_rest(&mut simulation);
    edit_template(&mut simulation, "# an edit");
    assert!(simulation.run());
    assert_eq!(live(&simulation)["forProvider"]["module"], "# an edit");
}

#[test]
fn a_difference_that_goes_away_ends_the_takeover() {
    let mut simulation = from_go(&rendered("# an old module"));
    assert!(simulation.run());
    edit_template(&mut simulation, "# an old module");
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0]);
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "False NothingPending");
    assert_eq!(annotation(&simulation, &workspace(), BASELINE), Value::Null);
    assert_rest(&mut simulation);
}

#[test]
fn a_takeover_without_a_template_marks_and_waits() {
    let mut simulation = from_go(&rendered("# an old module"));
    simulation.api.delete(&key(Kind::Template, TEMPLATE), None);
    assert!(simulation.run());
    assert_eq!(
        [shown(&simulation, "Synced"), shown(&simulation, "Ready")],
        ["False TemplateNotFound", "True Available"]
    );
    assert_eq!(annotation(&simulation, &workspace(), BASELINE), "not-rendered");
    assert_rest(&mut simulation);
    simulation.api.create(&key(Kind::Template, TEMPLATE), template(&spec()));
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "True SpecDiffers");
    assert_eq!(spec_writes(&simulation), [json!(null); 0]);
}

#[test]
fn a_baseline_survives_the_loss_of_either_place() {
    for lose in [
        (|simulation: &mut Simulation| {
            simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["status"] = json!({}));
        }) as fn(&mut Simulation),
        |simulation| {
            simulation.api.edit(&workspace(), |workspace| {
                workspace["metadata"]["annotations"].as_object_mut().unwrap().remove(BASELINE);
            });
        },
    ] {
        let mut simulation = from_go(&rendered("# an old module"));
        assert!(simulation.run());
        let hash = pending_hash(&simulation);
        lose(&mut simulation);
        assert!(simulation.run());
        assert_eq!(spec_writes(&simulation), [json!(null); 0]);
        assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "True SpecDiffers");
        assert_eq!(annotation(&simulation, &workspace(), BASELINE), json!(hash));
        assert_eq!(status(&simulation, "takeoverBaseline"), json!(hash));
    }
}

#[test]
fn a_retained_workspace_is_taken_over_by_the_next_apply_of_that_name() {
    for (module, waits) in [("output \"id\" { value = var.cidr }", false), ("# edited meanwhile", true)] {
        let mut simulation = ready();
        simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["spec"]["retainWorkspaceOnDelete"] = json!(true));
        simulation.api.delete(&key(Kind::Apply, APPLY), None);
        assert!(simulation.run());
        assert!(simulation.api.get(&key(Kind::Apply, APPLY)).is_none(), "the apply is gone");
        let kept = simulation.api.get(&workspace()).unwrap().clone();
        assert!(kept["metadata"]["deletionTimestamp"].is_null(), "its Workspace is not");
        edit_template(&mut simulation, module);
        let seen = simulation.requests.len();
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        assert!(simulation.run());
        assert_eq!(workspace_writes(&simulation, seen), ["patch Workspace/demo"]);
        assert_eq!(live(&simulation), kept["spec"], "{module}");
        let uid = &simulation.api.get(&key(Kind::Apply, APPLY)).unwrap()["metadata"]["uid"];
        let metadata = &simulation.api.get(&workspace()).unwrap()["metadata"];
        assert_eq!(metadata["labels"]["capt.cluster.x-k8s.io/owner-uid"], *uid);
        assert_eq!(metadata["uid"], kept["metadata"]["uid"], "the same Workspace");
        assert_eq!(shown(&simulation, "PendingTakeoverChanges") == "True SpecDiffers", waits);
        assert_rest(&mut simulation);
    }
}

#[test]
fn a_crash_after_any_write_of_a_takeover_ends_the_same() {
    let end = |simulation: &Simulation| {
        let mut workspace = simulation.api.get(&workspace()).unwrap().clone();
        workspace["metadata"]["resourceVersion"] = Value::Null;
        let conditions: Vec<String> =
            ["Synced", "Ready", "PendingTakeoverChanges", "Stalled"].map(|type_| shown(simulation, type_)).to_vec();
        (workspace, conditions)
    };
    let mut undisturbed = from_go(&rendered("# an old module"));
    assert!(undisturbed.run());
    let writes = undisturbed.writes().count();
    for crash in 0..=writes {
        let mut simulation = from_go(&rendered("# an old module"));
        simulation.run_capt_until_crash(crash);
        assert!(simulation.run());
        assert_eq!(end(&simulation), end(&undisturbed), "crash after {crash} writes");
        assert_eq!(spec_writes(&simulation), [json!(null); 0]);
    }
}

#[test]
fn one_of_unknown_origin_is_taken_over_by_the_users_word_alone() {
    let mut simulation = from_go(&rendered("# an old module"));
    // The status names nothing, as after a restore.
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["status"] = json!({}));
    let before = simulation.api.get(&workspace()).unwrap().clone();
    simulation.run_capt();
    assert_eq!(shown(&simulation, "Synced"), "False NameCollision");
    assert_eq!(*simulation.api.get(&workspace()).unwrap(), before, "not touched, byte for byte");
    let uid = before["metadata"]["uid"].as_str().unwrap();
    assert!(message(&simulation, "Synced").contains(uid), "it says what to write");
    annotate(&mut simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/adopt", uid);
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "True SpecDiffers");
    assert_eq!(live(&simulation), before["spec"]);
    assert_rest(&mut simulation);
}

/// A release that cannot be carried out yet stays good for the difference that was shown, and no other.
#[test]
fn a_release_of_a_paused_workspace_is_no_release_of_what_changes_meanwhile() {
    let mut simulation = from_go(&rendered("# an old module"));
    annotate(&mut simulation, &workspace(), "crossplane.io/paused", "true");
    let mut elsewhere = from_go(&rendered("# an old module"));
    assert!(elsewhere.run());
    let hash = pending_hash(&elsewhere);
    annotate(&mut simulation, &key(Kind::Apply, APPLY), RELEASE, &hash);
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0], "somebody paused it");
    edit_template(&mut simulation, "# edited meanwhile");
    simulation.api.edit(&workspace(), |workspace| {
        workspace["metadata"]["annotations"].as_object_mut().unwrap().remove("crossplane.io/paused");
    });
    assert!(simulation.run());
    assert_eq!(spec_writes(&simulation), [json!(null); 0], "released was another difference");
    assert_eq!(shown(&simulation, "PendingTakeoverChanges"), "True SpecDiffers");
}

#[test]
fn two_that_are_told_to_take_the_same_one_do_not_fight() {
    let mut simulation = ready();
    let uid = simulation.api.get(&workspace()).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let mut other = apply(APPLY);
    other["metadata"]["namespace"] = json!("other");
    other["metadata"]["annotations"] = json!({"capt.cluster.x-k8s.io/adopt": uid});
    other["spec"]["templateRef"]["namespace"] = json!(NAMESPACE);
    let other_key = capt_reconcile::object::ObjectKey::new(Kind::Apply, "other", APPLY);
    annotate(&mut simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/adopt", &uid);
    simulation.api.create(&other_key, other);
    let before = simulation.api.get(&workspace()).unwrap().clone();
    assert!(simulation.run());
    assert_eq!(*simulation.api.get(&workspace()).unwrap(), before, "who has it keeps it");
    // Once the one that has it is not told so, the other's word counts.
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| {
        apply["metadata"]["annotations"].as_object_mut().unwrap().remove("capt.cluster.x-k8s.io/adopt");
    });
    assert!(simulation.run());
    let label =
        simulation.api.get(&workspace()).unwrap()["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"].clone();
    assert_eq!(label, simulation.api.get(&other_key).unwrap()["metadata"]["uid"]);
    assert_eq!(shown(&simulation, "Synced"), "False NameCollision");
    assert_eq!(live(&simulation), before["spec"]);
    assert_rest(&mut simulation);
}

#[test]
fn a_word_that_is_not_taken_up_yet_does_nothing_to_what_another_apply_has() {
    for goes in [false, true] {
        let mut simulation = ready();
        let uid = simulation.api.get(&workspace()).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        let mut other = apply(APPLY);
        other["metadata"]["namespace"] = json!("other");
        other["metadata"]["finalizers"] = json!(["infrastructure.cluster.x-k8s.io/finalizer"]);
        other["metadata"]["annotations"] = json!({"capt.cluster.x-k8s.io/adopt": uid});
        let other_key = capt_reconcile::object::ObjectKey::new(Kind::Apply, "other", APPLY);
        let before = simulation.api.get(&workspace()).unwrap().clone();
        if goes {
            simulation.api.create(&other_key, other);
            simulation.api.delete(&other_key, None);
        } else {
            other["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
            simulation.api.create(&other_key, other);
        }
        assert!(simulation.run(), "they do not fight");
        assert_eq!(*simulation.api.get(&workspace()).unwrap(), before, "{goes}");
        assert_eq!(simulation.api.get(&other_key).is_none(), goes);
        assert_rest(&mut simulation);
    }
}

/// A whole cluster as the Go implementation leaves it: nothing says whose a Workspace is, applies have no
/// label, no word of ours and not the variables that it did not know.
fn cluster_of_go() -> Simulation {
    let mut simulation = crate::common::simulation(WorkspaceApi::Cluster, &crate::common::FILES);
    assert!(simulation.run());
    for (apply, workspace, unknown) in
        [("demo-vpc", "demo-vpc", "region"), ("demo-eks-controlplane-apply", "demo-eks-controlplane", "addons")]
    {
        simulation.api.edit(&crate::common::key(Kind::Apply, apply), |apply| {
            let metadata = apply["metadata"].as_object_mut().unwrap();
            metadata.remove("annotations");
            metadata.remove("labels");
            apply["spec"]["variables"].as_object_mut().unwrap().remove(unknown);
            apply["status"] = json!({"applied": true, "workspaceName": workspace});
        });
        simulation.api.edit(&crate::common::key(Kind::Workspace(WorkspaceApi::Cluster), workspace), |object| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.remove("labels");
            metadata["annotations"] = json!({"crossplane.io/external-name": workspace,
                "crossplane.io/external-create-succeeded": "2024-11-22T09:52:47Z",
                "crossplane.io/external-create-pending": "2024-11-22T09:40:01Z"});
        });
    }
    simulation.restart();
    simulation
}

#[test]
fn an_apply_is_not_taken_over_before_its_owner_has_said_what_it_wants() {
    let mut simulation = cluster_of_go();
    let vpc = crate::common::key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc");
    // In a module this is a name of its own, which Go left alone; the new variable has the same name.
    let line = "\nlocals { zones = [for region in [\"a\"] : \"${region}-1\"] }\n";
    simulation.api.edit(&crate::common::key(Kind::Template, "vpc-template"), |template| {
        let module = &mut template["spec"]["template"]["spec"]["forProvider"]["module"];
        *module = json!(format!("{}{line}", module.as_str().unwrap()));
    });
    simulation.api.edit(&vpc, |workspace| {
        let module = &mut workspace["spec"]["forProvider"]["module"];
        *module = json!(format!("{}{line}", module.as_str().unwrap()));
    });
    let spec_before = simulation.api.get(&vpc).unwrap()["spec"].clone();
    let plan = simulation.plan(&crate::common::key(Kind::Apply, "demo-vpc")).unwrap();
    assert!(!plan.actions.iter().any(|action| action.target == vpc), "{plan:#?}");
    simulation.restart();
    assert!(simulation.run());
    assert_eq!(simulation.api.get(&vpc).unwrap()["spec"], spec_before, "what runs is not changed by a new variable");
    let apply = simulation.api.get(&crate::common::key(Kind::Apply, "demo-vpc")).unwrap();
    let told = crate::common::condition(&apply["status"], "PendingTakeoverChanges");
    assert_eq!(told["status"], "True", "{apply:#}");
    assert_eq!(crate::common::status(&simulation, Kind::CaptCluster, "demo")["state"], "Ready");
    assert_rest(&mut simulation);
}

#[test]
fn a_cluster_of_go_is_taken_over_without_a_word_to_terraform() {
    let mut simulation = cluster_of_go();
    let specs = |simulation: &Simulation| -> Vec<Value> {
        let workspaces = simulation.api.keys().filter(|key| matches!(key.kind, Kind::Workspace(_)));
        workspaces.map(|key| simulation.api.get(key).unwrap()["spec"].clone()).collect()
    };
    let (before, seen) = (specs(&simulation), simulation.requests.len());
    assert!(simulation.run());
    assert_eq!(specs(&simulation), before);
    let lines = writes(&simulation, seen);
    assert!(!lines.iter().any(|line| line.starts_with("create") || line.starts_with("delete")), "{lines:#?}");
    let plane = crate::common::status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&plane["state"], &plane["endpoint"]], ["Ready", "demo.eks.invalid:443"]);
    for apply in ["demo-vpc", "demo-eks-controlplane-apply"] {
        let object = simulation.api.get(&crate::common::key(Kind::Apply, apply)).unwrap();
        assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "demo");
        assert_eq!(crate::common::condition(&object["status"], "Ready")["status"], "True");
    }
    assert_rest(&mut simulation);
    // An upgrade afterwards goes through as any other, where both agreed.
    simulation
        .api
        .edit(&crate::common::key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run());
    assert_eq!(crate::common::status(&simulation, Kind::CaptControlPlane, "demo")["version"], "v1.32.0");
}
