//! Argo CD's checks in a real Lua: what they say of our objects in every state, and of Clusters.

use capt_deploy::argocd::{CHECKS, CLUSTER};
use capt_status::{
    State, Time,
    condition::{self, Verdict, types},
    kstatus::{Manifest, argo},
    machine::{self, Cause},
    reason,
};
use capt_tests::{documents, root};
use mlua::{Lua, LuaSerdeExt, Table};
use serde_json::{Value, json};

/// Health and message that `script` gives `object`, run as Argo CD does: Lua 5.1, the object as `obj`.
fn health(script: &str, object: &Value) -> (String, String) {
    let lua = Lua::new();
    // An absent field is nil in Argo CD, also where JSON says null.
    let options = mlua::serde::SerializeOptions::new().serialize_none_to_null(false).serialize_unit_to_null(false);
    lua.globals().set("obj", lua.to_value_with(object, options).unwrap()).unwrap();
    let answer: Table = lua.load(script).eval().unwrap();
    (answer.get("status").unwrap(), answer.get("message").unwrap())
}

#[test]
fn our_objects_in_every_state() {
    let (_, script) = CHECKS[0];
    let mut seen = Vec::new();
    for state in State::ALL {
        for served in [false, true] {
            let cause = Cause::new("Because", "because");
            let verdicts = machine::verdicts(state, served, state == State::Failed, &cause, served);
            let paused = Verdict::new(types::PAUSED, true, reason!("Paused"), "paused");
            for pause in [false, true] {
                let verdicts = verdicts.iter().cloned().chain(pause.then(|| paused.clone())).collect();
                let conditions = condition::merge(&[], verdicts, 2, Time::from_unix(0));
                for (observed, failure) in [(2, Value::Null), (1, Value::Null), (2, json!("no more addresses"))] {
                    let mut object = json!({
                        "kind": "CAPTCluster",
                        "metadata": {"generation": 2},
                        "status": {"observedGeneration": observed, "conditions": conditions},
                    });
                    if !failure.is_null() {
                        object["status"]["failureMessage"] = failure;
                    }
                    let found = health(script, &object);
                    let manifest: Manifest = serde_json::from_value(object.clone()).unwrap();
                    let (expected, message) = argo::health(&manifest.object());
                    assert_eq!(found, (expected.as_str().to_owned(), message.into_owned()), "{state:?} {object}");
                    seen.push(found.0);
                }
            }
        }
    }
    for health in ["Healthy", "Progressing", "Degraded", "Suspended"] {
        assert!(seen.iter().any(|found| found == health), "no state is {health}");
    }
    let nothing = json!({"kind": "CAPTCluster", "metadata": {"generation": 1}});
    assert_eq!(health(script, &nothing).0, "Progressing", "healthy before anything was looked at");
}

#[test]
fn clusters_of_both_versions() {
    let available = |status: &str| json!([{"type": "Available", "status": status, "message": "because"}]);
    for (spec, status, expected) in [
        (json!({}), Value::Null, "Progressing"),
        (json!({"paused": true}), json!({"phase": "Provisioned"}), "Suspended"),
        (json!({}), json!({"phase": "Provisioning"}), "Progressing"),
        (json!({}), json!({"phase": "Failed", "failureMessage": "no"}), "Degraded"),
        (json!({}), json!({"phase": "Provisioned", "observedGeneration": 1}), "Progressing"),
        (json!({}), json!({"phase": "Provisioned", "conditions": available("True")}), "Healthy"),
        (json!({}), json!({"phase": "Provisioned", "conditions": available("False")}), "Progressing"),
        // v1beta1: Ready False of that version is noise as long as Available says otherwise.
        (
            json!({}),
            json!({
                "phase": "Provisioned",
                "conditions": [{"type": "Ready", "status": "False"}],
                "v1beta2": {"conditions": available("True")},
            }),
            "Healthy",
        ),
        (json!({}), json!({"phase": "Provisioned", "v1beta2": {"conditions": available("Unknown")}}), "Progressing"),
        (json!({}), json!({"phase": "Deleting"}), "Progressing"),
    ] {
        let mut object = json!({"kind": "Cluster", "metadata": {"generation": 2}, "spec": spec});
        if !status.is_null() {
            object["status"] = status;
        }
        assert_eq!(health(CLUSTER, &object).0, expected, "{object}");
    }
}

#[test]
fn the_config_map_names_kinds_that_there_are() {
    let stored = documents(&root().join("deploy/argocd/argocd-cm.yaml")).unwrap();
    let data = stored[0]["data"].as_object().unwrap();
    let crds = capt_api::crds::all();
    for (kind, script) in CHECKS {
        assert_eq!(data[&format!("resource.customizations.health.{kind}")], script);
        let (group, kind) = kind.split_once('_').unwrap();
        let ours = crds.iter().any(|crd| crd.spec.group == group && crd.spec.names.kind == kind);
        assert!(ours || (group, kind) == ("cluster.x-k8s.io", "Cluster"), "{group} {kind}");
    }
}
