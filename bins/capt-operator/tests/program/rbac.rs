//! The roles allow what the operator does, and nothing else, and the files hold them.

use std::{collections::BTreeSet, fs, path::Path};

use capt_operator::rbac::{self, Need, RULES};
use capt_reconcile::{object::Kind, pass};

#[test]
fn the_files_are_what_the_table_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for (file, text) in [
        ("rbac/role.yaml", rbac::role()),
        ("rbac/role-binding.yaml", rbac::role_binding()),
        ("rbac/leader-election.yaml", rbac::lease_role()),
        // For the chart, which gives them the namespaces of the release.
        ("rbac-namespaces/cluster-role.yaml", rbac::limited_cluster_role()),
        ("rbac-namespaces/role.yaml", rbac::limited_role("default")),
    ] {
        let path = directory.join(file);
        if std::env::var_os("UPDATE_DEPLOY").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{file} is stale: run `just deploy`");
    }
}

/// Every `verb group/resource` that is needed for `need`, each once.
fn allowed(needs: &[Need]) -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    for rule in RULES.iter().filter(|rule| needs.contains(&rule.need)) {
        for group in rule.groups {
            for resource in rule.resources {
                for verb in rule.verbs {
                    assert!(allowed.insert(format!("{verb} {group}/{resource}")), "{verb} {group}/{resource} twice");
                }
            }
        }
    }
    allowed
}

/// Every `verb group/resource` of a role as it is printed.
fn printed(role: &str) -> BTreeSet<String> {
    let role = role.split("---\n").next().unwrap();
    let role: serde_json::Value = serde_saphyr::from_str(role).unwrap();
    let texts = |rule: &serde_json::Value, field: &str| -> Vec<String> {
        rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                all.extend(texts(rule, "verbs").into_iter().map(|verb| format!("{verb} {group}/{resource}")));
            }
        }
    }
    all
}

#[test]
fn an_operator_of_some_namespaces_may_do_the_same_there_and_little_elsewhere() {
    let (everywhere, there) = (printed(&rbac::limited_cluster_role()), printed(&rbac::limited_role("a")));
    let both: BTreeSet<String> = everywhere.union(&there).cloned().collect();
    assert_eq!(both, allowed(&[Need::Passes, Need::Metrics]));
    // Only what has no namespace is written outside of them.
    let written: BTreeSet<&str> = everywhere
        .iter()
        .filter(|right| !["get ", "list ", "watch "].iter().any(|verb| right.starts_with(verb)))
        .filter_map(|right| right.split_once(' ').map(|(_, resource)| resource))
        .collect();
    let without_namespace =
        ["authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews", "tf.upbound.io/workspaces"];
    assert_eq!(written, without_namespace.into());
    assert!(!everywhere.iter().any(|right| right.ends_with("/secrets")), "Secrets are read in those namespaces only");
    let namespaces = ["a".to_owned(), "b".to_owned()];
    assert_eq!(rbac::all(&namespaces).matches("kind: RoleBinding").count(), 3, "and that of the lease");
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
    needed
        .extend(["get", "list", "watch"].map(|verb| format!("{verb} apiextensions.k8s.io/customresourcedefinitions")));
    needed.extend(rbac::LEFT_OVER.iter().map(|plural| format!("list infrastructure.cluster.x-k8s.io/{plural}")));
    assert_eq!(allowed(&[Need::Passes]), needed);
    let metrics = ["create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews"];
    assert_eq!(allowed(&[Need::Metrics]), metrics.map(str::to_owned).into());
}
