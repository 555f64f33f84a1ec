//! Whose a Workspace is, from what stands on it and what applies say.

use serde_json::{Value, json};

use super::*;
use crate::{
    object::Object,
    world::{Coverage, World},
};

fn apply(namespace: &str, name: &str, uid: &str, recorded: Option<&str>) -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {"templateRef": {"name": "t"}},
        "status": {"applied": recorded.is_some(), "workspaceName": recorded}})
}

fn workspace(name: &str, label: Option<&str>, owner: Option<(&str, &str)>) -> Value {
    let mut value = json!({"metadata": {"name": name, "uid": "w-uid"}, "spec": {}});
    if let Some(uid) = label {
        value["metadata"]["labels"] = json!({OWNER_UID_LABEL: uid});
    }
    if let Some((namespace, name)) = owner {
        value["metadata"]["annotations"] = json!({OWNER_NAMESPACE_ANNOTATION: namespace, OWNER_NAME_ANNOTATION: name});
    }
    value
}

fn claim_of(own: Value, others: &[Value], found: Value) -> Claim {
    let mut world = World::with_coverage(Coverage::Live);
    let mut add = |kind, value: Value| {
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
        world.watched(ObjectKey::new(kind, &text("namespace"), &text("name")), 1, Object::parse(kind, &value));
    };
    let parsed: WorkspaceTemplateApply = serde_json::from_value(own.clone()).unwrap();
    add(Kind::Apply, own);
    for other in others {
        add(Kind::Apply, other.clone());
    }
    add(Kind::Workspace(WorkspaceApi::Cluster), found);
    claim(&View::new(&world), &parsed, WorkspaceApi::Cluster)
}

fn owner_of(own: Value, others: &[Value], found: Value) -> Owner {
    claim_of(own, others, found).found.present().unwrap().1.clone()
}

#[test]
fn an_orphan_is_a_workspace_that_stays_and_whose_apply_is_gone() {
    let count = |label: &str, deleting: bool| {
        let mut world = World::with_coverage(Coverage::Live);
        let mut found = workspace("x", Some(label), Some(("a", label)));
        if deleting {
            found["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let (own, kind) = (apply("a", "x-apply", "1", None), Kind::Workspace(WorkspaceApi::Cluster));
        world.watched(ObjectKey::new(Kind::Apply, "a", "x-apply"), 1, Object::parse(Kind::Apply, &own));
        world.watched(ObjectKey::new(kind, "", "x"), 1, Object::parse(kind, &found));
        orphans(&View::new(&world)).unwrap().len()
    };
    assert_eq!(count("1", false), 0, "its apply is there");
    assert_eq!(count("x-apply", false), 0, "its apply is there with another uid, as after a restore");
    assert_eq!(count("gone", false), 1);
    assert_eq!(count("gone", true), 0, "it goes");
}

#[test]
fn the_label_with_our_uid_is_the_proof() {
    assert_eq!(owner_of(apply("a", "x-apply", "1", None), &[], workspace("x", Some("1"), None)), Owner::Ours);
}

#[test]
fn the_same_name_in_another_namespace_is_somebody_elses() {
    let other = apply("b", "x-apply", "2", Some("x"));
    let found = workspace("x", Some("2"), Some(("b", "x-apply")));
    let expected = Owner::Foreign("WorkspaceTemplateApply/b/x-apply".to_owned());
    assert_eq!(owner_of(apply("a", "x-apply", "1", None), &[other], found), expected);
}

#[test]
fn after_a_restore_the_annotations_prove_it() {
    let found = workspace("x", Some("old"), Some(("a", "x-apply")));
    assert_eq!(owner_of(apply("a", "x-apply", "1", None), &[], found.clone()), Owner::Adopted);
    assert!(matches!(owner_of(apply("c", "x-apply", "1", None), &[], found), Owner::Foreign(_)));
}

#[test]
fn one_that_go_made_is_ours_only_if_we_recorded_it_and_nobody_else_did() {
    let found = workspace("x", None, None);
    assert_eq!(owner_of(apply("a", "x-apply", "1", Some("x")), &[], found.clone()), Owner::Adopted);
    assert!(matches!(owner_of(apply("a", "x-apply", "1", None), &[], found.clone()), Owner::Foreign(_)));
    let other = apply("b", "x-apply", "2", Some("x"));
    assert!(matches!(owner_of(apply("a", "x-apply", "1", Some("x")), &[other], found), Owner::Foreign(_)));
}

#[test]
fn the_terraform_state_that_an_apply_remembers_tells_two_workspaces_of_one_name_apart() {
    let with_state = |mut object: Value, state: &str| {
        object["metadata"]["annotations"][EXTERNAL_NAME_ANNOTATION] = json!(state);
        object
    };
    let found = with_state(workspace("x", None, None), "x");
    let mut by_status = apply("a", "x-apply", "1", Some("x"));
    by_status["status"]["externalName"] = json!("a-x");
    let by_annotation = with_state(apply("a", "x-apply", "1", Some("x")), "a-x");
    let rightful = apply("b", "x-apply", "2", Some("x"));
    for other in [by_status, by_annotation] {
        assert_eq!(owner_of(rightful.clone(), std::slice::from_ref(&other), found.clone()), Owner::Adopted);
        assert!(matches!(owner_of(other, std::slice::from_ref(&rightful), found.clone()), Owner::Foreign(_)));
    }
    let same = with_state(apply("a", "x-apply", "1", Some("x")), "x");
    assert!(matches!(owner_of(same, &[rightful], found), Owner::Foreign(_)), "both remember this one");
}

#[test]
fn strangers_are_those_under_the_recorded_name_that_belong_to_others() {
    let of = |recorded: Option<&str>, labels: [&str; 2]| {
        let own = apply("a", "x-apply", "1", recorded);
        let parsed: WorkspaceTemplateApply = serde_json::from_value(own).unwrap();
        let mut world = World::with_coverage(Coverage::Live);
        for (api, label) in WorkspaceApi::ALL.into_iter().zip(labels) {
            let found = workspace("x", Some(label), Some(("b", "x-apply")));
            let kind = Kind::Workspace(api);
            world.watched(ObjectKey::new(kind, "a", "x"), 1, Object::parse(kind, &found));
        }
        strangers(&View::new(&world), &parsed)
    };
    let [cluster, namespaced] = keys("a", "x");
    assert_eq!(of(Some("x"), ["2", "1"]), [cluster]);
    assert_eq!(of(Some("x"), ["1", "2"]), [namespaced]);
    assert_eq!(of(Some("x"), ["1", "1"]), []);
    assert_eq!(of(Some("y"), ["2", "2"]), []);
    assert_eq!(of(None, ["2", "2"]), []);
}

#[test]
fn the_user_may_name_one_to_adopt() {
    let mut own = apply("a", "x-apply", "1", None);
    own["metadata"]["annotations"] = json!({ADOPT_ANNOTATION: "w-uid"});
    assert_eq!(owner_of(own, &[], workspace("x", None, None)), Owner::Adopted);
}

#[test]
fn ours_goes_before_what_is_not_known_elsewhere_and_the_unknown_before_all_else() {
    let own = apply("a", "x-apply", "1", None);
    let parsed: WorkspaceTemplateApply = serde_json::from_value(own).unwrap();
    let find = |known: WorkspaceApi, label: &str| {
        let mut world = World::default();
        let kind = Kind::Workspace(known);
        world.set_coverage(Kind::Apply, Coverage::Live);
        world.set_coverage(kind, Coverage::Live);
        let found = workspace("x", Some(label), Some(("b", "x-apply")));
        world.watched(ObjectKey::new(kind, "a", "x"), 1, Object::parse(kind, &found));
        claim(&View::new(&world), &parsed, WorkspaceApi::Cluster)
    };
    // Of the other API nothing is known.
    let first = find(WorkspaceApi::Cluster, "1");
    assert_eq!((first.api, first.ours().is_some(), first.is_unknown()), (WorkspaceApi::Cluster, true, false));
    let first = find(WorkspaceApi::Namespaced, "1");
    assert_eq!((first.api, first.ours().is_some(), first.is_unknown()), (WorkspaceApi::Cluster, false, true));
    let other = find(WorkspaceApi::Cluster, "2");
    assert_eq!((other.api, other.ours().is_some(), other.is_unknown()), (WorkspaceApi::Namespaced, false, true));
}

#[test]
fn what_an_apply_has_goes_before_what_it_may_take_over() {
    let find = |in_cluster: Option<&str>, in_namespace: Option<&str>| {
        let mut own = apply("a", "x-apply", "1", None);
        own["metadata"]["annotations"] = json!({ADOPT_ANNOTATION: "w-uid"});
        let parsed: WorkspaceTemplateApply = serde_json::from_value(own.clone()).unwrap();
        let mut world = World::with_coverage(Coverage::Live);
        for (name, value) in [("x-apply", own), ("y-apply", apply("a", "y-apply", "2", None))] {
            world.watched(ObjectKey::new(Kind::Apply, "a", name), 1, Object::parse(Kind::Apply, &value));
        }
        for (api, label) in [(WorkspaceApi::Cluster, in_cluster), (WorkspaceApi::Namespaced, in_namespace)] {
            let (kind, found) = (Kind::Workspace(api), workspace("x", label, None));
            world.watched(ObjectKey::new(kind, "a", "x"), 1, Object::parse(kind, &found));
        }
        let claim = claim(&View::new(&world), &parsed, WorkspaceApi::Cluster);
        (claim.api, claim.found.present().unwrap().1.clone())
    };
    let (cluster, namespaced) = (WorkspaceApi::Cluster, WorkspaceApi::Namespaced);
    assert_eq!(find(Some("2"), Some("1")), (namespaced, Owner::Ours), "and not the one that the user's word promises");
    assert_eq!(find(None, Some("1")), (namespaced, Owner::Ours));
    assert_eq!(find(Some("2"), None), (namespaced, Owner::Adopted));
    assert_eq!(find(None, Some("2")), (cluster, Owner::Adopted));
    assert_eq!(find(Some("2"), Some("2")), (cluster, Owner::Promised));
}

#[test]
fn names_are_those_of_the_go_implementation() {
    for (apply, expected) in [("x-apply", "x"), ("x", "x"), ("-apply", "-apply"), ("x-apply-apply", "x-apply")] {
        assert_eq!(workspace_name(apply), expected);
    }
}

#[test]
fn external_names_differ_between_namespaces_and_fit_a_label() {
    assert_eq!(external_name(WorkspaceApi::Cluster, "ns", "x"), "x");
    assert_eq!(external_name(WorkspaceApi::Namespaced, "ns", "x"), "ns-x");
    let (a, b) = ("a".repeat(60), "b".repeat(60));
    let long = external_name(WorkspaceApi::Namespaced, &a, &b);
    assert_eq!((long.len(), long.starts_with(&a[..54])), (63, true), "{long}");
    assert!(long != external_name(WorkspaceApi::Namespaced, &a, &"c".repeat(60)), "{long}");
}
