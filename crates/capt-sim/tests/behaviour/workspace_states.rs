//! What an apply says of every state that a Workspace shows in its life, and that it then rests.

use std::path::Path;

use crate::workspaces::{
    APPLY, NAMESPACE, TEMPLATE, WORKSPACE, apply, key, message, shown, spec, status, template, workspace_writes, world,
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::Simulation;
use capt_status::Reason;
use serde_json::{Value, json};

fn merged(mut base: Value, patch: &Value) -> Value {
    for (name, value) in patch.as_object().into_iter().flatten() {
        if value.is_null() {
            base.as_object_mut().unwrap().remove(name);
        } else {
            base[name] = value.clone();
        }
    }
    base
}

/// A world in which the Workspace of the apply, made by it, is as `state` says.
///
/// The template is the Workspace's own spec, so that there is nothing to write to it.
fn in_state(state: &Value) -> (Simulation, ObjectKey) {
    let api = if state["namespaced"] == true { WorkspaceApi::Namespaced } else { WorkspaceApi::Cluster };
    let mut simulation = world();
    let live = merged(spec(), &state["spec"]);
    let mut wanted = live.clone();
    if let Some(policy) = state["spec"].get("deletionPolicy").filter(|policy| policy.is_null()) {
        wanted["deletionPolicy"] = if policy.is_null() { json!("Delete") } else { policy.clone() };
    }
    if wanted["writeConnectionSecretToRef"]["namespace"].is_null() {
        wanted["writeConnectionSecretToRef"]["namespace"] = json!(NAMESPACE);
    }
    if api == WorkspaceApi::Namespaced {
        wanted["providerConfigRef"].as_object_mut().unwrap().remove("kind");
    }
    simulation.api.edit(&key(Kind::Template, TEMPLATE), |object| *object = merged(object.clone(), &template(&wanted)));
    let mut object = apply(APPLY);
    if api == WorkspaceApi::Namespaced {
        object["metadata"]["annotations"] = json!({"capt.cluster.x-k8s.io/workspace-api": "namespaced"});
    }
    simulation.api.create(&key(Kind::Apply, APPLY), object);
    simulation.run_capt();
    let workspace = key(Kind::Workspace(api), WORKSPACE);
    simulation.api.edit(&workspace, |object| {
        let generation = state["generation"].as_i64().unwrap_or(1);
        for (name, value) in state["annotations"].as_object().into_iter().flatten() {
            object["metadata"]["annotations"][name] = value.clone();
        }
        object["metadata"]["finalizers"] = state["finalizers"].clone();
        object["metadata"]["generation"] = json!(generation);
        if state["deleting"] == true {
            object["metadata"]["deletionTimestamp"] = json!("2024-11-24T08:00:00Z");
        }
        object["status"] = state["status"].clone();
    });
    (simulation, workspace)
}

/// What the apply says, as the fixtures have it.
fn check(name: &str, simulation: &Simulation, expect: &Value) {
    let both = format!("{name}: {} / {}", message(simulation, "Synced"), message(simulation, "Ready"));
    for (type_, field) in [("Synced", "synced"), ("Ready", "ready")] {
        let (shown, expected) = (shown(simulation, type_), expect[field].as_str().unwrap());
        // Where the reason is that of the failure, the class is asked for instead.
        assert!(shown == expected || !expected.contains(' ') && shown.starts_with(expected), "{shown}: {both}");
    }
    for (type_, field) in [("Reconciling", "reconciling"), ("Stalled", "stalled")] {
        let is_true = shown(simulation, type_).starts_with("True");
        assert_eq!(is_true, expect[field].as_bool().unwrap(), "{type_}: {both}");
    }
    assert_eq!(status(simulation, "applied"), expect["applied"], "{both}");
    if let Some(class) = expect["class"].as_str() {
        let shown = shown(simulation, "Synced");
        let reason = shown.split(' ').nth(1).unwrap();
        let found = Reason::find(reason).unwrap_or_else(|| panic!("{reason}: {both}"));
        assert_eq!(format!("{:?}", found.class()), class, "{reason}: {both}");
    }
    if let Some(part) = expect["says"].as_str() {
        assert!(both.contains(part), "{part} in {both}");
    }
}

fn rests(name: &str, simulation: &mut Simulation) {
    let before = simulation.requests.len();
    for _ in 0..3 {
        simulation.api.now = simulation.api.now.plus(capt_status::Span::from_seconds(3600));
        simulation.resync();
    }
    assert_eq!(simulation.requests.len(), before, "{name}: {:#?}", &simulation.requests[before..]);
}

#[test]
fn each_state_is_told_as_it_is_and_changes_nothing() {
    let states: Vec<Value> = serde_saphyr::from_str(include_str!("../workspaces/states.yaml")).unwrap();
    assert!(states.len() >= 28, "{}", states.len());
    for state in states {
        let name = state["state"].as_str().unwrap();
        let (mut simulation, workspace) = in_state(&state);
        let before = simulation.api.get(&workspace).unwrap().clone();
        let seen = simulation.requests.len();
        simulation.run_capt();
        check(name, &simulation, &state["expect"]);
        assert_eq!(workspace_writes(&simulation, seen), [""; 0], "{name}");
        assert_eq!(*simulation.api.get(&workspace).unwrap(), before, "{name}");
        rests(name, &mut simulation);
    }
}

/// Recorded states of real Workspaces, where they are at hand: each first line says what they mean.
#[test]
fn recorded_states_are_told_as_they_are() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/workspaces");
    let Ok(entries) = std::fs::read_dir(&directory) else { return };
    let mut seen = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("secret") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let meaning = text.lines().find_map(|line| line.strip_prefix("# expect: ")).unwrap();
        let meaning: Value = serde_json::from_str(meaning).unwrap();
        let recorded: Value = serde_saphyr::from_str(&text).unwrap();
        let metadata = &recorded["metadata"];
        let mut spec = recorded["spec"].clone();
        if recorded["apiVersion"] == "tf.m.upbound.io/v1beta1" {
            spec["deletionPolicy"] = Value::Null;
        } else {
            spec["writeConnectionSecretToRef"]["namespace"] = json!(NAMESPACE);
        }
        let state = json!({
            "generation": metadata["generation"], "annotations": metadata["annotations"],
            "finalizers": metadata["finalizers"], "deleting": !metadata["deletionTimestamp"].is_null(),
            "spec": spec, "status": recorded["status"],
            "namespaced": recorded["apiVersion"] == "tf.m.upbound.io/v1beta1",
        });
        let (mut simulation, workspace) = in_state(&state);
        let before = simulation.api.get(&workspace).unwrap().clone();
        simulation.run_capt();
        assert_eq!(*simulation.api.get(&workspace).unwrap(), before, "{name}");
        let said = format!("{name}: {} {}", shown(&simulation, "Synced"), message(&simulation, "Synced"));
        assert_eq!(shown(&simulation, "Ready").starts_with("True"), meaning["readyNow"] == true, "{said}");
        match meaning["lastReconcile"].as_str().unwrap() {
            "error" if meaning["deleting"] == false => {
                assert!(shown(&simulation, "Synced").starts_with("False"), "{said}");
            }
            "paused" => assert_eq!(shown(&simulation, "Synced"), "False WorkspacePaused", "{said}"),
            "none" | "ok" | "stale" | "error" if meaning["deleting"] == true => {
                assert_eq!(shown(&simulation, "Synced"), "False WorkspaceDeleting", "{said}");
            }
            "none" | "ok" | "stale" => assert_eq!(shown(&simulation, "Synced"), "True ReconcileSuccess", "{said}"),
            other => panic!("{name}: {other}"),
        }
        if meaning["inProgress"] == true {
            assert!(shown(&simulation, "Reconciling").starts_with("True"), "{said}");
        }
        let note = meaning["note"].as_str().unwrap();
        if let Some(class) = ["Config", "Permission", "Quota", "Transient"]
            .into_iter()
            .find(|class| note.split([':', ';']).next().unwrap().to_lowercase().ends_with(&class.to_lowercase()))
        {
            let shown = shown(&simulation, "Synced");
            let reason = Reason::find(shown.split(' ').nth(1).unwrap()).unwrap_or_else(|| panic!("{said}"));
            assert_eq!(format!("{:?}", reason.class()), class, "{said}");
        }
        rests(&name, &mut simulation);
        seen += 1;
    }
    assert_eq!(seen, 28);
}
