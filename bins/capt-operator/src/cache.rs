//! What is known of the cluster, shared by watches and passes, and which passes an event starts.
//!
//! World and triggers change under one lock. A pass observes and leaves its reads behind in one
//! step, an event changes the world and asks who read it in one step; so an event comes either
//! before an observation, which then shows it, or after it, and then finds the reads. Nothing here
//! waits or does I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use capt_api::foreign::{ClusterView, SecretView, ViewMeta, WorkspaceView};
use capt_reconcile::{
    executor::Request,
    object::{Kind, Object, ObjectKey},
    ownership::{self, Orphan},
    pass::{self, Observation, Settings},
    triggers::Triggers,
    world::{Coverage, Read, Relation, View, World},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::{
    keep::{self, Kept},
    rival::{self, Lookout},
    scope::Scope,
};

/// The shared view of the cluster.
#[derive(Debug)]
pub struct Cache {
    state: Mutex<State>,
    settings: Settings,
    scope: Scope,
    lookout: Lookout,
}

/// What a pass finds when it looks.
#[derive(Debug)]
pub enum Look {
    /// Another operator has passes for the object. An event on what that depends on starts another look.
    OutOfScope,
    /// The object is ours.
    InScope {
        /// What its pass depends on.
        observation: Observation,
        /// What the pass read in namespaces that are not watched, unless an earlier pass of it did.
        unwatched: BTreeSet<ObjectKey>,
    },
}

#[derive(Debug)]
struct State {
    world: World,
    triggers: Triggers,
    /// Kinds and namespaces (absent for all) whose first list has not arrived. Until there are none no
    /// pass starts.
    incomplete: BTreeSet<(Kind, Option<String>)>,
    /// What each pass read in namespaces that are not watched.
    unwatched: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Cache {
    /// A cache that waits for the first list of each kind in `served`, in each namespace of `scope`. A
    /// kind that is not served has no objects, for certain.
    pub fn new(served: &BTreeSet<Kind>, settings: Settings, scope: Scope) -> Self {
        let mut world = World::default();
        scope.limit(&mut world);
        for kind in Kind::ALL {
            if !served.contains(&kind) {
                world.set_coverage(kind, Coverage::Live);
            }
        }
        let incomplete = served.iter().flat_map(|kind| scope.places(*kind).into_iter().map(|place| (*kind, place)));
        let state = State {
            world,
            triggers: Triggers::default(),
            incomplete: incomplete.collect(),
            unwatched: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), settings, scope, lookout: Lookout::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No method leaves the state half changed at a point where it could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object is there or changed. Returns the objects whose passes this concerns.
    pub fn applied(&self, kept: Kept) -> BTreeSet<ObjectKey> {
        let Kept { key, resource_version, object } = kept;
        let mut state = self.state();
        let news = state.world.peek(&key).is_none_or(|known| says_something_new(known, &object));
        let update = rival::update_of(&object);
        let said = state.world.relations(&key).to_vec();
        let changed = state.world.watched(key.clone(), resource_version, object);
        if let Some(update) = update.filter(|_| changed && self.scope.holds(&View::new(&state.world), &key)) {
            let listing = state.incomplete.iter().any(|(kind, _)| *kind == key.kind);
            self.lookout.saw(&key, update, listing);
        }
        if changed && news { state.concerned(&key, &said) } else { BTreeSet::new() }
    }

    /// An object is gone.
    pub fn deleted(&self, key: &ObjectKey, resource_version: u64) -> BTreeSet<ObjectKey> {
        let mut state = self.state();
        let known = state.world.peek(key).is_some();
        let said = state.world.relations(key).to_vec();
        state.world.deleted(key, resource_version);
        self.lookout.gone(key);
        if known { state.concerned(key, &said) } else { BTreeSet::new() }
    }

    /// A list of `kind` in a namespace, or in all, is complete; `listed` are all its objects. The last
    /// first list makes passes possible and concerns every object that has passes.
    pub fn listed(&self, kind: Kind, namespace: Option<&str>, listed: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let mut state = self.state();
        let gone = state.world.relisted(kind, namespace, listed);
        if state.incomplete.remove(&(kind, namespace.map(str::to_owned))) {
            if !state.incomplete.iter().any(|(other, _)| *other == kind) {
                state.world.set_coverage(kind, Coverage::Cached);
            }
            if state.incomplete.is_empty() {
                self.lookout.look_again();
                return pass::KINDS.into_iter().flat_map(|kind| state.world.keys(kind)).cloned().collect();
            }
        }
        gone.iter().flat_map(|(key, said)| state.concerned(key, said)).collect()
    }

    /// Takes over the answer to a write of ours, so that the next pass sees it at once; the passes that it concerns.
    pub fn answered(&self, request: &Request, answer: Value) -> BTreeSet<ObjectKey> {
        let Some(target) = request.written().filter(|_| !request.changed_nothing(&answer)) else {
            return BTreeSet::new();
        };
        let deletes = matches!(request, Request::Delete { .. });
        let mut state = self.state();
        let said = state.world.relations(target).to_vec();
        if is_gone(&answer, deletes) {
            // Version 0: the answer does not tell at which version the object went.
            state.world.deleted(target, 0);
        } else {
            let Kept { key, resource_version, object } = keep::from_value(target.kind, answer);
            if key != *target {
                return BTreeSet::new();
            }
            if !state.world.written(key, resource_version, object) {
                // The watch is past it and this object's event is on its way, or it is gone.
                return BTreeSet::new();
            }
        }
        // Also when a watch was faster: its event may have come before the reads that count now.
        state.concerned(target, &said)
    }

    /// What a pass over the object at `key` depends on, whose it is included; from now on events on it
    /// concern this pass.
    pub fn observe(&self, key: &ObjectKey) -> Look {
        let mut guard = self.state();
        let state = &mut *guard;
        let view = View::new(&state.world);
        if !self.scope.holds(&view, key) {
            state.triggers.replace(key, view.into_reads());
            state.unwatched.remove(key);
            return Look::OutOfScope;
        }
        let observation = pass::observe(&view, key, self.settings);
        let reads = view.into_reads();
        let elsewhere = reads.iter().filter_map(|read| match read {
            Read::Object(target) if !state.world.covers(target) => Some(target.clone()),
            Read::Object(_) | Read::List(_, _) | Read::Related(_) => None,
        });
        let mut unwatched: BTreeSet<ObjectKey> = elsewhere.collect();
        let known = if unwatched.is_empty() {
            state.unwatched.remove(key)
        } else {
            state.unwatched.insert(key.clone(), unwatched.clone())
        };
        unwatched.retain(|target| known.as_ref().is_none_or(|known| !known.contains(target)));
        match &observation {
            Observation::Gone => state.triggers.forget(key),
            Observation::Malformed(_) | Observation::Complete(_) => state.triggers.replace(key, reads),
        }
        Look::InScope { observation, unwatched }
    }

    /// Workspaces whose apply is gone; `None` as long as not everything is known. Records no reads.
    pub fn orphans(&self) -> Option<Vec<Orphan>> {
        ownership::orphans(&View::new(&self.state().world))
    }

    /// Who else writes.
    pub const fn lookout(&self) -> &Lookout {
        &self.lookout
    }

    /// Whether the first list of every kind has arrived.
    pub fn is_complete(&self) -> bool {
        self.state().incomplete.is_empty()
    }

    /// Lets `look` look at everything that is known, and at what of it has passes here; nothing changes
    /// meanwhile, so it must be short.
    pub fn inspect(&self, look: impl FnOnce(&World, &Scope)) {
        look(&self.state().world, &self.scope);
    }

    /// The status of an object that has passes, as it is known; null if there is none.
    pub fn status(&self, key: &ObjectKey) -> Value {
        let status = match self.state().world.peek(key) {
            Some(Object::CaptCluster(object)) => object.status.as_ref().map(serde_json::to_value),
            Some(Object::ControlPlane(object)) => object.status.as_ref().map(serde_json::to_value),
            Some(Object::Apply(object)) => object.status.as_ref().map(serde_json::to_value),
            Some(
                Object::Cluster(_)
                | Object::Template(_)
                | Object::Workspace(_)
                | Object::Secret(_)
                | Object::Malformed(_),
            )
            | None => None,
        };
        // What was parsed can be written.
        status.and_then(Result::ok).unwrap_or_default()
    }

    /// uid and resourceVersion of an object that has passes, for the log; empty where it is not known.
    pub fn identity(&self, key: &ObjectKey) -> (String, String) {
        let of_ours = |meta: &ObjectMeta| {
            (meta.uid.clone().unwrap_or_default(), meta.resource_version.clone().unwrap_or_default())
        };
        let of_view = |meta: &ViewMeta| (meta.uid.clone(), meta.resource_version.clone());
        match self.state().world.peek(key) {
            Some(Object::CaptCluster(object)) => of_ours(&object.metadata),
            Some(Object::ControlPlane(object)) => of_ours(&object.metadata),
            Some(Object::Apply(object)) => of_ours(&object.metadata),
            Some(Object::Template(object)) => of_ours(&object.metadata),
            Some(Object::Cluster(object)) => of_view(&object.meta),
            Some(Object::Workspace(object)) => of_view(&object.meta),
            Some(Object::Secret(object)) => of_view(&object.meta),
            Some(Object::Malformed(object)) => of_view(&object.meta),
            None => Default::default(),
        }
    }

    /// uid of an object that has passes.
    pub fn uid(&self, key: &ObjectKey) -> Option<String> {
        match self.state().world.peek(key)? {
            Object::CaptCluster(object) => object.metadata.uid.clone(),
            Object::ControlPlane(object) => object.metadata.uid.clone(),
            Object::Apply(object) => object.metadata.uid.clone(),
            Object::Cluster(object) => Some(object.meta.uid.clone()),
            Object::Template(_) | Object::Workspace(_) | Object::Secret(_) | Object::Malformed(_) => None,
        }
    }
}

impl State {
    /// The passes that a change of the object at `key` concerns, which said `before` of others.
    fn concerned(&self, key: &ObjectKey, before: &[Relation]) -> BTreeSet<ObjectKey> {
        if !self.incomplete.is_empty() {
            return BTreeSet::new();
        }
        self.triggers.concerned(key, before.iter().chain(self.world.relations(key)))
    }
}

/// Whether `new` says something that `known` did not, as far as a pass can see. Other operators
/// rewrite their objects more often than they change what matters here; core in particular writes
/// the status of a Cluster whenever ours changes, which must not start a pass again.
fn says_something_new(known: &Object, new: &Object) -> bool {
    quiet(known).is_none_or(|known| Some(known) != quiet(new))
}

/// An object of somebody else without what changes and decides nothing.
#[derive(Debug, PartialEq)]
enum Quiet {
    Cluster(Box<ClusterView>),
    Workspace(Box<WorkspaceView>),
    Secret(Box<SecretView>),
}

/// `None` for our own objects: each change of them counts.
fn quiet(object: &Object) -> Option<Quiet> {
    match object {
        Object::Cluster(view) => {
            let mut view = ClusterView::clone(view);
            view.meta.resource_version.clear();
            view.meta.generation = 0;
            // What core says of its own work; that it is there at all is news.
            view.observed_generation = view.observed_generation.map(|_| 0);
            view.phase = None;
            view.status.clear();
            if let Some(probe) = &mut view.remote_connection_probe {
                probe.message.clear();
                probe.observed_generation = None;
            }
            Some(Quiet::Cluster(Box::new(view)))
        }
        Object::Workspace(view) => {
            let mut view = WorkspaceView::clone(view);
            view.meta.resource_version.clear();
            Some(Quiet::Workspace(Box::new(view)))
        }
        Object::Secret(view) => {
            let mut view = SecretView::clone(view);
            view.meta.resource_version.clear();
            Some(Quiet::Secret(Box::new(view)))
        }
        Object::CaptCluster(_)
        | Object::ControlPlane(_)
        | Object::Template(_)
        | Object::Apply(_)
        | Object::Malformed(_) => None,
    }
}

/// Whether `answer` says that the object is gone: a Status answers a deletion that is complete, and
/// an object that is being deleted goes with its last finalizer.
fn is_gone(answer: &Value, deletes: bool) -> bool {
    let metadata = &answer["metadata"];
    let no_finalizer = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
    (deletes && answer["kind"] == "Status") || (!metadata["deletionTimestamp"].is_null() && no_finalizer)
}

#[cfg(test)]
mod tests {
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
        for (request, answer) in [(last_finalizer, answer), (deletion, json!({"kind": "Status", "status": "Success"}))]
        {
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
}
