//! What is made, made again, waited for and deleted, and what is left alone.

use crate::workspaces::{
    APPLY, NAMESPACE, TEMPLATE, annotate, annotation, apply, assert_rest, condition, events, key, message, ready,
    shown, status, workspace, workspace_writes, world, writes,
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::{Executor, Outcome, Step},
    object::{Kind, Object, ObjectKey},
    ownership,
    plan::{Action, Op, Plan},
    world::{Coverage, View, World},
};
use capt_sim::Simulation;
use capt_sim::provider::{Ending, Outputs};
use capt_status::Span;
use serde_json::{Value, json};

/// The Workspace is gone as by a removed finalizer.
fn vanish(simulation: &mut Simulation, workspace: &ObjectKey) {
    simulation.api.edit(workspace, |object| object["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(workspace, None);
}

#[test]
fn a_workspace_that_vanishes_before_it_was_ready_is_made_again_with_its_terraform_state() {
    let mut simulation = world();
    simulation.terraform(|_| Outputs { result: Ending::Failure("VpcLimitExceeded".to_owned()), ..Outputs::default() });
    let mut object = apply(APPLY);
    // Namespaced, where the state is not that of the name.
    object["metadata"]["annotations"] = json!({"capt.cluster.x-k8s.io/workspace-api": "namespaced"});
    simulation.api.create(&key(Kind::Apply, APPLY), object);
    assert!(simulation.run());
    let workspace = key(Kind::Workspace(WorkspaceApi::Namespaced), "demo");
    let name = annotation(&simulation, &workspace, "crossplane.io/external-name");
    assert_eq!(name, "team-demo");
    assert_eq!(
        [
            annotation(&simulation, &key(Kind::Apply, APPLY), "crossplane.io/external-name"),
            status(&simulation, "externalName")
        ],
        [name.clone(), name.clone()]
    );
    assert_eq!(status(&simulation, "wasReady"), Value::Null);
    vanish(&mut simulation, &workspace);
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["create Workspace/team/demo"]);
    assert_eq!(annotation(&simulation, &workspace, "crossplane.io/external-name"), name);
    assert!(events(&simulation).contains(&"WorkspaceRecreated"), "{:?}", events(&simulation));
}

/// Carries out what a pass over [`APPLY`] wants, after `meanwhile`, of which the pass knows nothing.
fn carry_out_after(simulation: &mut Simulation, meanwhile: impl FnOnce(&mut Simulation)) -> Outcome {
    let plan = simulation.plan(&key(Kind::Apply, APPLY)).unwrap();
    let makes = |action: &Action| matches!(action.op, Op::Create { .. }) && action.target == workspace();
    assert!(plan.actions.iter().any(makes), "{plan:?}");
    meanwhile(simulation);
    let mut executor = Executor::new(&plan);
    loop {
        match executor.next() {
            Step::Send(request) => {
                let response = simulation.api.respond(&request);
                executor.answer(&response);
            }
            Step::Done(outcome) => return outcome,
        }
    }
}

#[test]
fn a_workspace_is_made_again_only_for_an_apply_that_is_as_it_was_seen() {
    type Way = fn(&mut Simulation);
    let never_ready: Way = |simulation| {
        simulation
            .terraform(|_| Outputs { result: Ending::Failure("VpcLimitExceeded".to_owned()), ..Outputs::default() });
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        assert!(simulation.run());
        vanish(simulation, &workspace());
    };
    let released: Way = |simulation| {
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        assert!(simulation.run());
        vanish(simulation, &workspace());
        annotate(simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/recreate-workspace", APPLY);
    };
    for way in [never_ready, released] {
        let mut simulation = world();
        way(&mut simulation);
        // Its deletion is not seen yet, or it is gone altogether.
        let applies = key(Kind::Apply, APPLY);
        for gone in [false, true] {
            let outcome = carry_out_after(&mut simulation, |simulation| {
                simulation.api.delete(&applies, None);
                if gone {
                    simulation.api.edit(&applies, |apply| apply["metadata"]["finalizers"] = json!([]));
                }
            });
            assert!(matches!(outcome, Outcome::Conflict { action: 0, .. }), "{outcome:?}");
            assert_eq!(simulation.api.get(&workspace()), None);
            simulation = world();
            way(&mut simulation);
        }
        // Where nothing happened it is made.
        assert_eq!(carry_out_after(&mut simulation, |_| {}), Outcome::Applied);
        assert!(simulation.api.get(&workspace()).is_some());
    }
}

#[test]
fn nothing_is_made_for_an_apply_whose_owner_is_gone_or_going() {
    let plane = key(Kind::CaptControlPlane, "demo");
    let mut owned = apply(APPLY);
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
        "kind": "CAPTControlPlane", "name": "demo", "uid": "uid-of-owner", "controller": true}]);
    // A request on its way made it when its owner was gone; the garbage collector has not found it yet.
    let mut simulation = world();
    simulation.api.put(&key(Kind::Apply, APPLY), owned.clone());
    assert!(simulation.run());
    assert_eq!(simulation.api.get(&workspace()), None);
    assert_eq!(shown(&simulation, "Synced"), "False NotWanted");
    assert_rest(&mut simulation);
    // Its owner is still there and goes.
    let mut simulation = world();
    simulation.api.put(&key(Kind::Apply, APPLY), owned.clone());
    let mut going = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane",
        "metadata": {"namespace": NAMESPACE, "name": "demo", "uid": "uid-of-owner", "finalizers": ["example.com/busy"],
            "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"version": "1.31", "workspaceTemplateRef": {"name": TEMPLATE}}});
    simulation.api.put(&plane, going.clone());
    let makes = |plan: &Plan| plan.actions.iter().any(|action| action.target == workspace());
    let plan = simulation.plan(&key(Kind::Apply, APPLY)).unwrap();
    assert!(!makes(&plan) && plan.note.contains("is being deleted"), "{plan:?}");
    // It is not going, and uses an apply of another name.
    going["metadata"]["deletionTimestamp"].take();
    simulation.api.put(&plane, going.clone());
    let plan = simulation.plan(&key(Kind::Apply, APPLY)).unwrap();
    assert!(!makes(&plan) && plan.note.contains("uses another apply"), "{plan:?}");
    // Were it this one, it would be made.
    going["spec"]["workspaceTemplateApplyName"] = json!(APPLY);
    simulation.api.put(&plane, going);
    assert!(makes(&simulation.plan(&key(Kind::Apply, APPLY)).unwrap()));
}

#[test]
fn that_it_was_made_is_remembered_with_the_next_write_and_at_the_latest_after_a_minute() {
    let made = || {
        let mut simulation = world();
        simulation.terraform(|_| Outputs { result: Ending::Hang, ..Outputs::default() });
        simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
        assert!(simulation.run());
        let at = simulation.api.now;
        annotate(&mut simulation, &workspace(), "crossplane.io/external-create-succeeded", &at.to_string());
        let seen = simulation.requests.len();
        assert!(simulation.run());
        assert_eq!(writes(&simulation, seen), [""; 0], "the provider is about to find it ready");
        (simulation, seen, at)
    };
    // A minute later the wait is over: the plan said so itself.
    let (mut simulation, seen, at) = made();
    simulation.api.now = at.plus(Span::from_seconds(59));
    assert!(!simulation.resync());
    simulation.api.now = at.plus(Span::from_seconds(60));
    assert!(simulation.resync());
    assert_eq!(writes(&simulation, seen), ["status WorkspaceTemplateApply/team/demo-apply"]);
    assert_eq!(status(&simulation, "wasReady"), true);
    vanish(&mut simulation, &workspace());
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0], "never a second one");

    // Whatever else is told tells this as well: first that somebody deletes it, then that it is gone.
    let (mut simulation, seen, _) = made();
    simulation.api.delete(&workspace(), None);
    assert!(simulation.run());
    assert_eq!(writes(&simulation, seen), ["status WorkspaceTemplateApply/team/demo-apply"; 2]);
    assert_eq!(
        [status(&simulation, "wasReady"), json!(shown(&simulation, "Synced"))],
        [json!(true), json!("False WorkspaceMissing")]
    );

    // A clock that was wrong delays nothing.
    let (mut simulation, seen, _) = made();
    annotate(&mut simulation, &workspace(), "crossplane.io/external-create-succeeded", "2099-01-01T00:00:00Z");
    assert!(simulation.run());
    assert_eq!(writes(&simulation, seen), ["status WorkspaceTemplateApply/team/demo-apply"]);
}

#[test]
fn a_workspace_that_was_ready_is_not_made_again_and_says_so_once() {
    let mut simulation = ready();
    vanish(&mut simulation, &workspace());
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    assert_eq!([shown(&simulation, "Synced"), shown(&simulation, "Ready")], ["False WorkspaceMissing"; 2]);
    assert_eq!(status(&simulation, "applied"), false);
    assert_eq!(events(&simulation).iter().filter(|reason| **reason == "WorkspaceMissing").count(), 1);
    assert_rest(&mut simulation);
    assert_eq!(events(&simulation).iter().filter(|reason| **reason == "WorkspaceMissing").count(), 1, "told once");
    // Another apply's name releases nothing.
    annotate(&mut simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/recreate-workspace", "other-apply");
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    annotate(&mut simulation, &key(Kind::Apply, APPLY), "capt.cluster.x-k8s.io/recreate-workspace", APPLY);
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["create Workspace/demo"]);
    // One word, one creation.
    vanish(&mut simulation, &workspace());
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["create Workspace/demo"]);
}

#[test]
fn the_owner_may_say_the_word_and_it_is_good_for_one_creation() {
    let mut simulation = crate::common::simulation(WorkspaceApi::Cluster, &crate::common::FILES);
    assert!(simulation.run());
    let workspace = crate::common::key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane");
    let plane = crate::common::key(Kind::CaptControlPlane, "demo");
    vanish(&mut simulation, &workspace);
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_none());
    let word = "capt.cluster.x-k8s.io/recreate-workspace";
    annotate(&mut simulation, &plane, word, "demo-eks-controlplane-apply");
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_some(), "released");
    assert_eq!(annotation(&simulation, &plane, word), Value::Null, "used up");
    assert_eq!(crate::common::status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    vanish(&mut simulation, &workspace);
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_none());
}

/// An apply in the team's namespace that waits for others by name.
fn waiting(simulation: &mut Simulation, name: &str, waits_for: &[&str]) {
    let mut object = apply(name);
    object["spec"]["waitForWorkspaces"] = waits_for.iter().map(|name| json!({"name": name})).collect();
    object["spec"]["writeConnectionSecretToRef"] =
        json!({"name": format!("{name}-connection"), "namespace": NAMESPACE});
    simulation.api.create(&key(Kind::Apply, name), object);
}

fn of(name: &str) -> ObjectKey {
    key(Kind::Workspace(WorkspaceApi::Cluster), name)
}

#[test]
fn a_circle_makes_nothing_and_names_its_path() {
    let mut simulation = world();
    waiting(&mut simulation, "a", &["b"]);
    waiting(&mut simulation, "b", &["c"]);
    waiting(&mut simulation, "c", &["a"]);
    waiting(&mut simulation, "outside", &["a"]);
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, 0), [""; 0]);
    let (status, reason, message) = condition(&simulation, "b", "Stalled");
    assert_eq!([status, reason], ["True", "CyclicDependency"]);
    let path = ["b", "c", "a", "b"].map(|name| format!("WorkspaceTemplateApply/team/{name}")).join(" -> ");
    assert!(message.contains(&path), "{message}");
    assert_eq!(condition(&simulation, "outside", "Synced").1, "WaitingForWorkspaces", "it is none of it");
    assert_rest(&mut simulation);
    // One of them is taken out.
    simulation.api.edit(&key(Kind::Apply, "c"), |apply| apply["spec"]["waitForWorkspaces"] = json!([]));
    assert!(simulation.run());
    let order: Vec<String> = workspace_writes(&simulation, 0);
    assert_eq!(order[..3], ["create Workspace/c", "create Workspace/b", "create Workspace/a"]);
}

/// Three that have Workspaces and were made to wait for each other afterwards.
fn circle() -> Simulation {
    let mut simulation = world();
    for (name, waits_for) in [("c", &[][..]), ("b", &["c"]), ("a", &["b"])] {
        waiting(&mut simulation, name, waits_for);
    }
    assert!(simulation.run());
    simulation.api.edit(&key(Kind::Apply, "c"), |apply| apply["spec"]["waitForWorkspaces"] = json!([{"name": "a"}]));
    assert!(simulation.run());
    assert_eq!(condition(&simulation, "c", "Ready").0, "True", "what is there waits for nothing");
    simulation
}

#[test]
fn a_circle_that_is_being_deleted_does_not_hold_itself_up() {
    let mut simulation = circle();
    for name in ["a", "b"] {
        simulation.api.delete(&key(Kind::Apply, name), None);
    }
    // One of it shall stay, and who it needs, directly or not, stays with it.
    assert!(simulation.run());
    let seen = simulation.requests.len();
    let told = condition(&simulation, "a", "Deleting");
    assert_eq!(told.1, "WaitingForDependents", "{told:?}");
    assert!(told.2.contains("team/c"), "{told:?}");
    for name in ["a", "b", "c"] {
        let deleted = simulation.api.get(&of(name)).unwrap()["metadata"]["deletionTimestamp"].clone();
        assert_eq!(deleted, Value::Null, "{name} is needed");
    }
    simulation.api.delete(&key(Kind::Apply, "c"), None);
    simulation.run_capt();
    let told = condition(&simulation, "b", "Deleting").2;
    let path = ["b", "c", "a", "b"].map(|name| format!("WorkspaceTemplateApply/team/{name}")).join(" -> ");
    assert!(told.contains(&path), "{told}");
    assert!(simulation.run());
    let mut deleted = workspace_writes(&simulation, seen);
    deleted.sort();
    assert_eq!(deleted, ["delete Workspace/a", "delete Workspace/b", "delete Workspace/c"]);
    assert!(simulation.api.keys().all(|key| key.kind == Kind::Template || key.kind == Kind::Secret));
}

#[test]
fn who_waits_outside_of_a_deleted_circle_still_holds_it() {
    let mut simulation = circle();
    waiting(&mut simulation, "outside", &["a"]);
    assert!(simulation.run());
    for name in ["a", "b", "c"] {
        simulation.api.delete(&key(Kind::Apply, name), None);
    }
    assert!(simulation.run());
    assert_eq!(condition(&simulation, "a", "Deleting").1, "WaitingForDependents");
    assert!(simulation.api.get(&of("a")).is_some());
    simulation.api.delete(&key(Kind::Apply, "outside"), None);
    assert!(simulation.run());
    assert!(simulation.api.keys().all(|key| !matches!(key.kind, Kind::Workspace(_))));
}

#[test]
fn an_apply_that_does_not_parse_holds_up_whom_it_needs_and_nobody_else() {
    let mut simulation = world();
    for name in ["a", "b"] {
        waiting(&mut simulation, name, &[]);
    }
    waiting(&mut simulation, "odd", &["a"]);
    assert!(simulation.run());
    simulation.api.edit(&key(Kind::Apply, "odd"), |apply| apply["spec"]["variables"] = json!("none"));
    for name in ["a", "b"] {
        simulation.api.delete(&key(Kind::Apply, name), None);
    }
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), ["delete Workspace/b"]);
    let told = condition(&simulation, "a", "Deleting");
    assert_eq!(told.1, "WaitingForDependents", "{told:?}");
    assert!(told.2.contains("team/odd"), "{told:?}");
    // What it waits for cannot be read: it may be anybody.
    simulation.api.edit(&key(Kind::Apply, "odd"), |apply| apply["spec"]["waitForWorkspaces"] = json!("none"));
    waiting(&mut simulation, "c", &[]);
    assert!(simulation.run());
    simulation.api.delete(&key(Kind::Apply, "c"), None);
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    simulation.api.edit(&key(Kind::Apply, "odd"), |apply| {
        apply["spec"]["variables"] = json!({});
        apply["spec"]["waitForWorkspaces"] = json!([]);
    });
    assert!(simulation.run());
    let mut deleted = workspace_writes(&simulation, seen);
    deleted.retain(|write| write.starts_with("delete"));
    deleted.sort();
    assert_eq!(deleted, ["delete Workspace/a", "delete Workspace/c"]);
}

/// Two applies record one Workspace that carries no mark; one of them does not parse.
#[test]
fn an_apply_that_does_not_parse_still_counts_when_it_is_asked_whose_a_workspace_is() {
    let mut simulation = world();
    waiting(&mut simulation, "a", &[]);
    assert!(simulation.run());
    let unmarked = |workspace: &mut Value| workspace["metadata"]["labels"] = json!({});
    let mut other = apply("odd");
    other["spec"]["variables"] = json!("none");
    simulation.api.create(&key(Kind::Apply, "odd"), other);
    simulation.api.edit(&key(Kind::Apply, "odd"), |apply| apply["status"] = json!({"workspaceName": "a"}));
    simulation.api.edit(&of("a"), unmarked);
    let seen = simulation.requests.len();
    assert!(simulation.run());
    assert_eq!(workspace_writes(&simulation, seen), [""; 0]);
    assert_eq!(condition(&simulation, "a", "Synced").1, "NameCollision");
}

#[test]
fn waiting_means_a_value_and_the_apply_of_a_name_before_the_workspace_of_that_name() {
    let mut simulation = world();
    let mut object = apply(APPLY);
    object["spec"]["waitForSecrets"] = json!([{"name": "input", "namespace": ""}]);
    object["spec"]["waitForWorkspaces"] = json!([{"name": "other"}]);
    simulation.api.create(&key(Kind::Apply, APPLY), object);
    let secret = key(Kind::Secret, "input");
    simulation.api.create(&secret, json!({"metadata": {"name": "input", "namespace": NAMESPACE}}));
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Synced"), "False WaitingForSecrets");
    simulation.api.edit(&secret, |secret| secret["data"] = json!({"key": ""}));
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Synced"), "False WaitingForSecrets", "an empty value is none");
    simulation.api.edit(&secret, |secret| secret["data"] = json!({"key": "eA=="}));
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Synced"), "False WaitingForWorkspaces");
    // A Workspace of that name is ready, but there is an apply of that name which is not.
    let mut not_ready = apply("other");
    not_ready["spec"]["templateRef"]["name"] = json!("missing");
    simulation.api.create(&key(Kind::Apply, "other"), not_ready);
    simulation
        .api
        .create(&of("other"), json!({"metadata": {"name": "other", "annotations": {}}, "spec": {"forProvider": {}}}));
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Synced"), "False WaitingForWorkspaces");
    assert!(message(&simulation, "Synced").contains("WorkspaceTemplateApply/team/other"));
    simulation.api.edit(&key(Kind::Apply, "other"), |apply| apply["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(&key(Kind::Apply, "other"), None);
    assert!(simulation.run());
    assert_eq!(shown(&simulation, "Ready"), "True Available", "without the apply it is the Workspace");
}

#[test]
fn foreign_fields_of_a_workspace_stay_byte_for_byte() {
    let mut simulation = ready();
    simulation.api.edit(&workspace(), |workspace| {
        workspace["metadata"]["labels"]["cost-center"] = json!("42");
        workspace["metadata"]["annotations"]["somebody"] = json!("else");
        workspace["spec"]["someNewField"] = json!({"a": [1, null, {}]});
        workspace["spec"]["forProvider"]["another"] = json!([]);
    });
    assert!(simulation.run());
    let foreign = |simulation: &Simulation| {
        let workspace = simulation.api.get(&workspace()).unwrap();
        json!([
            workspace["metadata"]["labels"]["cost-center"],
            workspace["metadata"]["annotations"]["somebody"],
            workspace["spec"]["someNewField"],
            workspace["spec"]["forProvider"]["another"],
            workspace["metadata"]["annotations"]["crossplane.io/external-name"]
        ])
    };
    let before = foreign(&simulation);
    simulation.api.edit(&key(Kind::Template, TEMPLATE), |template| {
        template["spec"]["template"]["spec"]["forProvider"]["module"] = json!("# an edit");
    });
    assert!(simulation.run());
    assert_eq!(simulation.api.get(&workspace()).unwrap()["spec"]["forProvider"]["module"], "# an edit");
    assert_eq!(foreign(&simulation), before);
}

fn orphans(simulation: &Simulation) -> Vec<String> {
    let mut world = World::with_coverage(Coverage::Cached);
    for key in simulation.api.keys() {
        world.watched(key.clone(), 1, Object::parse(key.kind, simulation.api.get(key).unwrap()));
    }
    let view = View::new(&world);
    ownership::orphans(&view).unwrap().into_iter().map(|orphan| format!("{} {}", orphan.key, orphan.message)).collect()
}

#[test]
fn a_workspace_whose_apply_is_gone_is_told_and_left_alone() {
    let mut simulation = ready();
    assert_eq!(orphans(&simulation), [""; 0]);
    simulation.api.edit(&key(Kind::Apply, APPLY), |apply| apply["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(&key(Kind::Apply, APPLY), None);
    let before = simulation.api.get(&workspace()).unwrap().clone();
    assert!(simulation.run());
    let told = orphans(&simulation);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("Workspace/demo ") && told[0].contains("team/demo-apply"), "{told:?}");
    assert_eq!(*simulation.api.get(&workspace()).unwrap(), before);
    // Nobody's Workspaces are no orphans, and what is not known is not told.
    simulation.api.create(&of("somebodys"), json!({"metadata": {"name": "somebodys"}, "spec": {}}));
    assert_eq!(orphans(&simulation).len(), 1);
    assert_eq!(ownership::orphans(&View::new(&World::default())), None);
    simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
    assert!(simulation.run());
    assert_eq!(orphans(&simulation), [""; 0], "taken over again");
    assert_eq!(writes(&simulation, 0).iter().filter(|line| line.starts_with("delete")).count(), 0);
}
