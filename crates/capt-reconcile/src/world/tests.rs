//! What a world and a view of it tell: absent and unknown, own writes and late events, lists, relations.

use std::sync::Arc;

use capt_api::{WorkspaceTemplateApply, foreign::WorkspaceApi};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::meta;

fn secret(name: &str) -> (ObjectKey, Object) {
    let value = json!({"metadata": {"name": name, "namespace": "ns"}});
    (ObjectKey::new(Kind::Secret, "ns", name), Object::parse(Kind::Secret, &value))
}

fn world() -> World {
    let mut world = World::default();
    world.set_coverage(Kind::Secret, Coverage::Cached);
    world
}

#[test]
fn absent_and_unknown_are_told_apart() {
    let mut world = World::default();
    assert!(View::new(&world).secret("ns", "a").is_unknown());
    world.set_coverage(Kind::Secret, Coverage::Cached);
    assert!(matches!(View::new(&world).secret("ns", "a"), Seen::Absent { live: false }));
    world.set_coverage(Kind::Secret, Coverage::Live);
    assert!(matches!(View::new(&world).secret("ns", "a"), Seen::Absent { live: true }));
    world.set_unknown(ObjectKey::new(Kind::Secret, "ns", "a"));
    assert!(View::new(&world).secret("ns", "a").is_unknown());
}

#[test]
fn an_own_write_is_seen_at_once_and_no_older_event_undoes_it() {
    let mut world = world();
    let (key, object) = secret("a");
    world.watched(key.clone(), 5, object.clone());
    assert!(world.written(key.clone(), 9, object.clone()));
    assert!(!world.watched(key.clone(), 7, object.clone()), "older than our own write");
    assert!(!world.watched(key.clone(), 9, object.clone()), "the echo of our own write");
    assert!(world.watched(key.clone(), 10, object.clone()));
    assert!(world.written(key, 9, object), "the watch was faster, and what it brought counts");
}

#[test]
fn the_late_answer_to_a_write_does_not_bring_a_deleted_object_back() {
    // Some tell of a deletion under the version that the object had.
    for (answered, deleted) in [(9, 12), (9, 9)] {
        let mut world = world();
        let (key, object) = secret("a");
        world.deleted(&key, deleted);
        assert!(!world.written(key.clone(), answered, object), "it is no news");
        assert!(world.peek(&key).is_none());
    }
}

#[test]
fn what_a_new_list_lacks_is_gone() {
    let mut world = world();
    let ((a, object), (b, other)) = (secret("a"), secret("b"));
    world.watched(a.clone(), 1, object);
    world.watched(b.clone(), 2, other);
    assert_eq!(world.relisted(Kind::Secret, None, &BTreeSet::from([a.clone()])), [(b, Vec::new())]);
    assert!(world.peek(&a).is_some());
}

#[test]
fn what_is_in_a_namespace_that_nobody_looks_at_is_unknown_and_not_absent() {
    let mut world = world();
    world.limit(Kind::Secret, BTreeSet::from(["ns".to_owned()]));
    let view = View::new(&world);
    assert!(matches!(view.secret("ns", "a"), Seen::Absent { live: false }));
    assert!(view.secret("other", "a").is_unknown());
    assert!(view.list(Kind::Secret, Some("ns")).is_some());
    for namespace in [Some("other"), None] {
        assert!(view.list(Kind::Secret, namespace).is_none(), "these are not all");
    }
    world.set_coverage(Kind::Template, Coverage::Cached);
    assert!(matches!(View::new(&world).template("other", "a"), Seen::Absent { live: false }), "another kind");
}

#[test]
fn a_cluster_scoped_kind_has_no_limit() {
    let kind = Kind::Workspace(WorkspaceApi::Cluster);
    let mut world = World::default();
    world.set_coverage(kind, Coverage::Cached);
    world.limit(kind, BTreeSet::from(["ns".to_owned()]));
    assert!(matches!(View::new(&world).workspace(ObjectKey::new(kind, "", "w")), Seen::Absent { live: false }));
    assert!(View::new(&world).workspaces(WorkspaceApi::Cluster).is_some());
}

#[test]
fn a_new_list_of_one_namespace_says_nothing_of_the_others() {
    let mut world = world();
    let (key, object) = secret("a");
    world.watched(key.clone(), 1, object);
    assert_eq!(world.relisted(Kind::Secret, Some("other"), &BTreeSet::new()), []);
    assert_eq!(world.relisted(Kind::Secret, Some("ns"), &BTreeSet::new()), [(key, Vec::new())]);
}

#[test]
fn how_far_the_watch_of_another_namespace_is_says_nothing_of_our_own_write() {
    let mut world = world();
    world.limit(Kind::Secret, BTreeSet::from(["ns".to_owned(), "other".to_owned()]));
    let (key, object) = secret("a");
    world.watched(ObjectKey::new(Kind::Secret, "other", "b"), 20, object.clone());
    assert!(world.written(key.clone(), 9, object));
    assert!(world.peek(&key).is_some(), "the watch of its namespace is not there yet");
}

#[test]
fn reads_are_recorded_whether_or_not_something_is_there() {
    let world = world();
    let view = View::new(&world);
    view.secret("ns", "a");
    view.applies();
    let expected =
        Reads::from_iter([Read::Object(ObjectKey::new(Kind::Secret, "ns", "a")), Read::List(Kind::Apply, None)]);
    assert_eq!(view.into_reads(), expected);
}

fn any_object() -> impl Strategy<Value = (ObjectKey, Option<Value>)> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let waits = prop::collection::vec((name(), prop::option::of(prop::sample::select(vec!["ns", "other"]))), 0..3);
    let owners = prop::collection::vec(
        (prop::sample::select(vec![Kind::Cluster, Kind::CaptCluster, Kind::CaptControlPlane]), name()),
        0..3,
    );
    // There, gone, does not parse but says enough, does not parse at all.
    (any::<bool>(), name(), prop::sample::select(vec!["ns", "other"]), waits, owners, 0..4u8).prop_map(
        |(is_apply, name, namespace, waits, owners, how)| {
            let kind = if is_apply { Kind::Apply } else { Kind::CaptControlPlane };
            let waits: Vec<Value> =
                waits.iter().map(|(name, namespace)| json!({"name": name, "namespace": namespace})).collect();
            let owner = |(kind, name): &(Kind, &str)| {
                json!({"apiVersion": kind.api_version(), "kind": kind.name(), "name": name, "uid": "u"})
            };
            let owners: Vec<Value> = owners.iter().map(owner).collect();
            let template = json!({"name": "t"});
            let mut value = json!({
                "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners},
                "spec": {"templateRef": template, "workspaceTemplateRef": template, "version": "1.31", "waitForWorkspaces": waits},
            });
            match how {
                2 => value["spec"]["templateRef"] = Value::Null,
                3 => value["spec"]["waitForWorkspaces"] = json!("everything"),
                _ => {}
            }
            (ObjectKey::new(kind, namespace, name), (how != 0).then_some(value))
        },
    )
}

proptest! {
    /// What is found by a relation is what a look at every object finds.
    #[test]
    fn a_relation_finds_what_a_search_finds(steps in prop::collection::vec(any_object(), 0..30)) {
        let mut world = World::default();
        world.set_coverage(Kind::Apply, Coverage::Cached);
        world.set_coverage(Kind::CaptControlPlane, Coverage::Cached);
        let mut keys = BTreeSet::new();
        for (number, (key, value)) in (1..).zip(&steps) {
            keys.insert(key.clone());
            match value {
                Some(value) => { world.watched(key.clone(), number, Object::parse(key.kind, value)); }
                None => world.deleted(key, number),
            }
        }
        let view = View::new(&world);
        for namespace in ["ns", "other"] {
            for name in ["a", "b", "c"] {
                let target_key = ObjectKey::new(Kind::Apply, namespace, name);
                let waits = |apply: &WorkspaceTemplateApply| {
                    let own = apply.metadata.namespace.as_deref().unwrap_or_default();
                    apply.spec.wait_for_workspaces.iter().any(|reference| target(reference, own) == target_key)
                };
                let keys_of = |applies: Vec<Arc<WorkspaceTemplateApply>>| -> Vec<ObjectKey> {
                    applies.iter().map(|apply| meta::key_of(Kind::Apply, apply.as_ref())).collect()
                };
                let searched = view.applies().map(|all| keys_of(all.into_iter().filter(|apply| waits(apply)).collect()));
                prop_assert_eq!(view.waiting_for(&target_key).map(keys_of), searched);

                let concerns = |key: &&ObjectKey, kind, owner: Kind| key.kind == kind && key.namespace.as_deref() == Some(namespace)
                    && owned(world.peek(key), owner, name);
                for owner in [Kind::CaptCluster, Kind::CaptControlPlane] {
                    let searched: Vec<&ObjectKey> = world.keys(Kind::Apply).filter(|key| concerns(key, Kind::Apply, owner)).collect();
                    let broken = searched.iter().any(|key| matches!(world.peek(key), Some(Object::Malformed(_))));
                    let found = view.applies_of(Some(namespace), owner, name).map(keys_of);
                    let searched = (!broken).then(|| searched.into_iter().cloned().collect());
                    prop_assert_eq!(found, searched);
                }
                let planes = world.keys(Kind::CaptControlPlane).filter(|key| concerns(key, Kind::CaptControlPlane, Kind::Cluster));
                let found = view.control_planes_of(Some(namespace), name);
                // Of several owners of that kind the first counts.
                prop_assert!(found.is_none_or(|found| found.len() <= planes.count()));
            }
        }
        for key in keys {
            world.deleted(&key, u64::MAX);
        }
        prop_assert!(world.related.is_empty(), "nothing is left behind: {:?}", world.related);
    }
}

/// Whether the metadata name this owner.
fn owned(object: Option<&Object>, kind: Kind, name: &str) -> bool {
    let is =
        |group: &str, its_kind: &str, its_name: &str| (group, its_kind, its_name) == (kind.group(), kind.name(), name);
    let typed = |owners: &[(String, String, String)]| owners.iter().any(|(group, kind, name)| is(group, kind, name));
    let of = |meta: &kube::core::ObjectMeta| -> Vec<(String, String, String)> {
        let owners = meta.owner_references.iter().flatten();
        owners
            .map(|owner| (meta::group(&owner.api_version).to_owned(), owner.kind.clone(), owner.name.clone()))
            .collect()
    };
    match object {
        Some(Object::Apply(apply)) => typed(&of(&apply.metadata)),
        Some(Object::ControlPlane(plane)) => typed(&of(&plane.metadata)),
        Some(Object::Malformed(malformed)) => {
            malformed.meta.owner_references.iter().any(|owner| is(owner.group(), &owner.kind, &owner.name))
        }
        _ => false,
    }
}
