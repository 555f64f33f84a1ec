//! What lists, events and our own writes do to the cache, and which passes they start.

use serde_json::json;

use super::*;

fn apply(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Apply, "ns", name)
}

fn object(kind: Kind, name: &str, version: u64, rest: Value) -> Kept {
    let mut value = rest;
    value["metadata"]["name"] = json!(name);
    value["metadata"]["namespace"] = json!("ns");
    value["metadata"]["uid"] = json!(format!("uid-{name}"));
    value["metadata"]["resourceVersion"] = json!(version.to_string());
    keep::from_value(kind, value)
}

fn an_apply(name: &str, version: u64) -> Kept {
    let rest = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "spec": {"templateRef": {"name": "template"}},
    });
    object(Kind::Apply, name, version, rest)
}

/// Everything is served and listed; there is one apply, observed once.
fn cache() -> Cache {
    let cache = Cache::new(&BTreeSet::from(Kind::ALL), Settings::default(), Scope::default());
    assert_eq!(cache.applied(an_apply("a", 5)), BTreeSet::new(), "no pass before all lists are complete");
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let listed = if kind == Kind::Apply { BTreeSet::from([apply("a")]) } else { BTreeSet::new() };
        let woken = cache.listed(kind, None, &listed);
        let last = index + 1 == Kind::ALL.len();
        assert_eq!(woken, if last { listed_all() } else { BTreeSet::new() }, "{kind:?}");
    }
    assert!(matches!(observed(&cache, "a"), Some(Observation::Complete(_))));
    cache
}

fn observed(cache: &Cache, name: &str) -> Option<Observation> {
    match cache.observe(&apply(name)) {
        Look::OutOfScope => None,
        Look::InScope { observation, unwatched: _ } => Some(observation),
    }
}

fn listed_all() -> BTreeSet<ObjectKey> {
    BTreeSet::from([apply("a")])
}

#[test]
fn what_a_pass_missed_starts_it_when_it_appears_and_when_it_goes() {
    let cache = cache();
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplate",
        "spec": {"template": {"spec": {}}},
    });
    assert_eq!(cache.applied(object(Kind::Template, "template", 6, template.clone())), listed_all());
    assert_eq!(cache.applied(object(Kind::Template, "other", 7, template)), BTreeSet::new());
    let key = ObjectKey::new(Kind::Template, "ns", "template");
    assert_eq!(cache.deleted(&key, 8), listed_all());
    assert_eq!(cache.deleted(&key, 8), BTreeSet::new(), "it was gone already");
}

#[test]
fn an_object_that_a_new_list_lacks_is_an_event() {
    let cache = cache();
    assert_eq!(cache.listed(Kind::Apply, None, &BTreeSet::new()), listed_all());
    assert!(matches!(observed(&cache, "a"), Some(Observation::Gone)));
}

#[test]
fn our_own_write_starts_passes_once_and_its_echo_starts_none() {
    let cache = cache();
    let request = Request::MergePatch { target: apply("a"), body: json!({}) };
    let answer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "9"},
        "spec": {"templateRef": {"name": "template"}},
    });
    assert_eq!(cache.answered(&request, answer), listed_all());
    assert_eq!(cache.applied(an_apply("a", 9)), BTreeSet::new(), "the echo");
    assert_eq!(cache.applied(an_apply("a", 10)), listed_all());
}

#[test]
fn an_answer_about_what_is_gone_since_starts_no_pass() {
    let cache = cache();
    cache.applied(an_apply("b", 20));
    let deletion = Request::Delete { target: apply("gone"), uid: "u".into(), resource_version: None };
    let answer = json!({
        "metadata": {"name": "gone", "namespace": "ns", "resourceVersion": "9", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["f"]},
    });
    assert_eq!(
        cache.answered(&deletion, answer.clone()),
        BTreeSet::new(),
        "the same would be asked for without an end"
    );
    let mut later = answer;
    later["metadata"]["resourceVersion"] = json!("21");
    assert_eq!(cache.answered(&deletion, later), BTreeSet::from([apply("gone")]));
}

#[test]
fn a_write_that_changed_nothing_starts_no_pass() {
    let cache = cache();
    let body = json!({"metadata": {"uid": "uid-a", "resourceVersion": "9"}});
    let request = Request::MergePatch { target: apply("a"), body };
    let answer = |version: &str| {
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
            "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": version},
            "spec": {"templateRef": {"name": "template"}},
        })
    };
    assert_eq!(cache.answered(&request, answer("9")), BTreeSet::new(), "it would be asked for over and over");
    assert_eq!(cache.answered(&request, answer("10")), listed_all());
}

#[test]
fn an_object_goes_with_its_last_finalizer_and_with_a_completed_deletion() {
    let answer = json!({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "9", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let last_finalizer = Request::JsonPatch { target: apply("a"), operations: vec![] };
    let deletion = Request::Delete { target: apply("a"), uid: "uid-a".into(), resource_version: None };
    for (request, answer) in [(last_finalizer, answer), (deletion, json!({"kind": "Status", "status": "Success"}))] {
        let cache = cache();
        assert_eq!(cache.answered(&request, answer), listed_all());
        assert!(matches!(observed(&cache, "a"), Some(Observation::Gone)));
    }
}

#[test]
fn a_status_that_core_rewrites_starts_no_pass() {
    let cluster = |version, phase: &str, paused: bool| {
        let rest = json!({"spec": {"paused": paused}, "status": {"phase": phase, "observedGeneration": version}});
        match object(Kind::Cluster, "c", version, rest).object {
            Object::Cluster(view) => Object::Cluster(view),
            other => panic!("{other:?}"),
        }
    };
    let known = cluster(1, "Pending", false);
    assert!(!says_something_new(&known, &cluster(2, "Provisioning", false)));
    assert!(says_something_new(&known, &cluster(3, "Pending", true)));
}

#[test]
fn an_api_that_is_not_served_has_no_objects_and_delays_nothing() {
    let cache = Cache::new(&BTreeSet::from([Kind::Apply]), Settings::default(), Scope::default());
    cache.applied(an_apply("a", 5));
    assert_eq!(cache.listed(Kind::Apply, None, &listed_all()), listed_all());
}

/// As [`cache()`] within `scope`, with `objects`; returns what the last list woke as well.
fn limited(scope: &Scope, objects: Vec<Kept>) -> (Cache, BTreeSet<ObjectKey>) {
    let cache = Cache::new(&BTreeSet::from(Kind::ALL), Settings::default(), scope.clone());
    let keys: BTreeSet<ObjectKey> = objects.iter().map(|kept| kept.key.clone()).collect();
    for kept in objects {
        cache.applied(kept);
    }
    let mut woken = BTreeSet::new();
    for kind in Kind::ALL {
        for place in scope.places(kind) {
            woken = cache.listed(kind, place.as_deref(), &keys);
        }
    }
    (cache, woken)
}

#[test]
fn what_is_referred_to_in_a_namespace_that_is_not_watched_is_told_once_and_is_not_absent() {
    let scope = Scope { namespaces: BTreeSet::from(["ns".to_owned()]), ..Scope::default() };
    let rest = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "spec": {"templateRef": {"name": "template", "namespace": "shared"},
            "waitForSecrets": [{"name": "s", "namespace": "elsewhere"}]},
    });
    let (cache, woken) = limited(&scope, vec![object(Kind::Apply, "a", 5, rest)]);
    assert_eq!(woken, listed_all());
    let told = |cache: &Cache| match cache.observe(&apply("a")) {
        Look::InScope { observation: Observation::Complete(_), unwatched } => unwatched,
        other => panic!("{other:?}"),
    };
    // The template is not: templates are read everywhere.
    assert_eq!(told(&cache), BTreeSet::from([ObjectKey::new(Kind::Secret, "elsewhere", "s")]));
    assert_eq!(told(&cache), BTreeSet::new(), "once");
}

#[test]
fn a_list_of_one_namespace_takes_nothing_away_from_another() {
    let scope = Scope { namespaces: BTreeSet::from(["ns".to_owned(), "other".to_owned()]), ..Scope::default() };
    let captcluster = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
        "spec": {"region": "eu-west-1"}});
    let (cache, _) = limited(&scope, vec![object(Kind::CaptCluster, "c", 5, captcluster)]);
    let key = ObjectKey::new(Kind::CaptCluster, "ns", "c");
    assert_eq!(cache.listed(Kind::CaptCluster, Some("other"), &BTreeSet::new()), BTreeSet::new());
    let complete = |look| matches!(look, Look::InScope { observation: Observation::Complete(_), unwatched: _ });
    assert!(complete(cache.observe(&key)));
    assert_eq!(cache.listed(Kind::CaptCluster, Some("ns"), &BTreeSet::new()), BTreeSet::from([key]));
}

#[test]
fn an_object_comes_into_scope_when_its_owner_is_labelled_and_leaves_it_again() {
    let scope = Scope { filter: Some("blue".to_owned()), ..Scope::default() };
    let owner = |version: u64, label: &str| {
        let mut kept = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
            "spec": {"region": "eu-west-1"}, "metadata": {"labels": {"cluster.x-k8s.io/watch-filter": label}}});
        kept["metadata"]["uid"] = json!("uid-c");
        object(Kind::CaptCluster, "c", version, kept)
    };
    let child = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "spec": {"templateRef": {"name": "template"}},
        "metadata": {"ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "CAPTCluster", "name": "c", "uid": "uid-c", "controller": true}]},
    });
    let (cache, _) = limited(&scope, vec![object(Kind::Apply, "a", 5, child), owner(6, "green")]);
    assert!(observed(&cache, "a").is_none(), "another operator's");
    let woken = cache.applied(owner(7, "blue"));
    assert!(woken.contains(&apply("a")), "its owner decides: {woken:?}");
    assert!(matches!(observed(&cache, "a"), Some(Observation::Complete(_))));
    assert!(cache.applied(owner(8, "green")).contains(&apply("a")));
    assert!(observed(&cache, "a").is_none());
}
