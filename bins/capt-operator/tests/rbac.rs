//! The role allows what the operator does, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeSet, fs, path::Path};

use capt_reconcile::{object::Kind, pass};
use serde_json::Value;

/// Every `verb group/resource` of the role.
fn allowed() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/rbac/role.yaml");
    let role: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&role["kind"], &role["metadata"]["name"]), (&"ClusterRole".into(), &"capt-operator".into()));
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    assert!(allowed.insert(format!("{verb} {group}/{resource}")), "{verb} {group}/{resource} twice");
                }
            }
        }
    }
    allowed
}

#[test]
fn the_role_allows_exactly_what_the_operator_does() {
    let mut needed = BTreeSet::new();
    for kind in Kind::ALL {
        let name = format!("{}/{}", kind.group(), kind.plural());
        let mut verbs = vec!["get", "list", "watch"];
        match kind {
            // Ours to read only.
            Kind::Template => {}
            // Of a Cluster the endpoint: a URL of the Go implementation, or where no core copies it.
            Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane => verbs.push("patch"),
            // What an owner reference leads to is left to the garbage collector.
            Kind::Secret => verbs.extend(["create", "patch"]),
            Kind::Apply | Kind::Workspace(_) => verbs.extend(["create", "patch", "delete"]),
        }
        needed.extend(verbs.into_iter().map(|verb| format!("{verb} {name}")));
    }
    for kind in pass::KINDS {
        let name = format!("{}/{}", kind.group(), kind.plural());
        needed.insert(format!("patch {name}/status"));
        // A Cluster owns what we make for it by way of the provider objects only.
        if kind != Kind::Cluster {
            needed.insert(format!("update {name}/finalizers"));
        }
    }
    needed.extend(["create", "patch"].map(|verb| format!("{verb} events.k8s.io/events")));
    needed.extend(["list", "watch"].map(|verb| format!("{verb} apiextensions.k8s.io/customresourcedefinitions")));
    assert_eq!(allowed(), needed);
}
