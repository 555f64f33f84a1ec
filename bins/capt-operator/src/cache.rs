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
    executor::{Effect, Request},
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
        let Some(target) = request.written() else { return BTreeSet::new() };
        let mut state = self.state();
        let said = state.world.relations(target).to_vec();
        match request.effect(&answer) {
            Effect::Nothing => return BTreeSet::new(),
            Effect::Gone => state.world.deleted(target, 0),
            Effect::Stored => {
                let Kept { key, resource_version, object } = keep::from_value(target.kind, answer);
                // The watch may be past it, with this object's event on its way, or it is gone.
                if key != *target || !state.world.written(key, resource_version, object) {
                    return BTreeSet::new();
                }
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

#[cfg(test)]
mod tests;
