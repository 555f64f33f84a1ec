//! What is known of the cluster, and what a pass read of it.
//!
//! Fed by watches (the operator), by documents (`plan -f`) or by a simulator. It answers a question
//! with [`Seen`], which keeps "not there" and "not known" apart. Reading goes through a [`View`],
//! which records each read; a recorded read says which later events concern the pass, so every
//! dependency is watched because it was read and none has to be listed by hand.

mod relation;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use capt_status::Time;

use crate::{
    lookup::Lookup,
    object::{Kind, Object, ObjectKey},
};
pub use relation::Relation;
pub(crate) use relation::target;
pub use view::{Read, Reads, View};

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// The cache is not complete, or the object does not parse: nothing may be concluded.
    Unknown,
    /// Not there. `live` tells whether that was read from the API server itself and not from a
    /// cache that may lag; only then it justifies a destructive or regressive decision.
    Absent {
        /// Read live.
        live: bool,
    },
    /// There.
    Present(T),
}

impl<T> Seen<T> {
    /// The object if it is there.
    pub const fn present(&self) -> Option<&T> {
        match self {
            Self::Present(object) => Some(object),
            Self::Unknown | Self::Absent { live: _ } => None,
        }
    }

    /// Whether nothing may be concluded.
    pub const fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Absent { live: _ } | Self::Present(_) => false,
        }
    }

    /// The same knowledge of what `f` makes of the object.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Unknown => Seen::Unknown,
            Self::Absent { live } => Seen::Absent { live },
            Self::Present(object) => Seen::Present(f(object)),
        }
    }
}

/// How much is known of the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The first list has not arrived.
    Incomplete,
    /// A cache that follows the API server and may lag.
    Cached,
    /// All there is, by definition: the input of `plan -f`, or an API that is not served.
    Live,
}

#[derive(Debug, Clone)]
struct Entry {
    object: Object,
    resource_version: u64,
    /// What it says of others.
    relations: Vec<Relation>,
}

/// What a probe of a control plane's API server said, by whoever feeds the world; there need not be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Whether it answered.
    pub answers: bool,
    /// Since when it does, or does not.
    pub since: Time,
    /// Why it does not; never a secret.
    pub message: String,
}

/// The objects that are known.
#[derive(Debug, Clone, Default)]
pub struct World {
    objects: Lookup<ObjectKey, Entry>,
    /// Their keys in order, to list them.
    keys: BTreeSet<ObjectKey>,
    /// Who says so.
    related: Lookup<Relation, BTreeSet<ObjectKey>>,
    coverage: BTreeMap<Kind, Coverage>,
    /// Single objects that are not known although their kind is.
    unknown: BTreeSet<ObjectKey>,
    /// Probes of API servers, by control plane.
    probes: BTreeMap<ObjectKey, Probe>,
    /// Newest resourceVersion seen on the watch of a kind; of one namespace where the kind is limited.
    watched: BTreeMap<(Kind, Option<String>), u64>,
    /// Kinds of which only some namespaces are known.
    limits: BTreeMap<Kind, BTreeSet<String>>,
    /// Whether any Cluster ever carried what only Cluster API core leaves behind.
    core_seen: bool,
}

impl World {
    /// A world without objects, of each kind of which that much is known.
    pub fn with_coverage(coverage: Coverage) -> Self {
        Self { coverage: Kind::ALL.map(|kind| (kind, coverage)).into(), ..Self::default() }
    }

    /// Says how much is known of `kind`; without it a kind is [`Coverage::Incomplete`].
    pub fn set_coverage(&mut self, kind: Kind, coverage: Coverage) {
        self.coverage.insert(kind, coverage);
    }

    /// Says that of `kind` only objects in `namespaces` are known; ignored for cluster-scoped kinds. What is
    /// elsewhere is neither there nor absent.
    pub fn limit(&mut self, kind: Kind, namespaces: BTreeSet<String>) {
        if kind.is_namespaced() {
            self.limits.insert(kind, namespaces);
        }
    }

    /// Whether it would be known if there were an object at `key`, once its kind is.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match (self.limits.get(&key.kind), &key.namespace) {
            (None, _) | (Some(_), None) => true,
            (Some(namespaces), Some(namespace)) => namespaces.contains(namespace),
        }
    }

    /// Newest resourceVersion that the watch which delivers `key` has shown.
    fn newest(&mut self, key: &ObjectKey) -> &mut u64 {
        let namespace = if self.limits.contains_key(&key.kind) { key.namespace.clone() } else { None };
        self.watched.entry((key.kind, namespace)).or_default()
    }

    /// Takes over what a probe of the API server of the control plane at `key` said; `None` if it is not
    /// probed any more. Whoever calls this starts the pass of that object.
    pub fn set_probe(&mut self, key: ObjectKey, probe: Option<Probe>) {
        match probe {
            Some(probe) => self.probes.insert(key, probe),
            None => self.probes.remove(&key),
        };
    }

    /// Says that nothing is known of one object.
    pub fn set_unknown(&mut self, key: ObjectKey) {
        self.unknown.insert(key);
    }

    /// Takes over what a watch or a list delivered. An older state than the one that is known
    /// (the answer to our own write) is ignored. Returns whether the known state changed.
    pub fn watched(&mut self, key: ObjectKey, resource_version: u64, object: Object) -> bool {
        let newest = self.newest(&key);
        *newest = resource_version.max(*newest);
        if self
            .objects
            .get(&key)
            .is_some_and(|known| known.resource_version >= resource_version && resource_version > 0)
        {
            return false;
        }
        self.store(key, object, resource_version);
        true
    }

    /// Takes over the answer to our own write, so that the next pass sees it at once. Ignored when
    /// the watch is already past it: the object may be gone by then. Returns whether the object is known as it
    /// was answered, or later; where it is not, the next pass would ask for the same again.
    pub fn written(&mut self, key: ObjectKey, resource_version: u64, object: Object) -> bool {
        let past = *self.newest(&key) >= resource_version;
        let known = self.objects.get(&key).is_some_and(|known| known.resource_version >= resource_version);
        if !past && !known {
            self.store(key, object, resource_version);
        }
        known || !past
    }

    fn store(&mut self, key: ObjectKey, object: Object, resource_version: u64) {
        if let Object::Cluster(cluster) = &object {
            self.core_seen |= cluster.shows_core();
        }
        let relations = relation::of(&key, &object);
        // Most changes say nothing new of others.
        if self.relations(&key) != relations {
            self.forget(&key);
            for relation in &relations {
                self.related.or_default(relation.clone()).1.insert(key.clone());
            }
        }
        if let Some(entry) = self.objects.get_mut(&key) {
            *entry = Entry { object, resource_version, relations };
        } else {
            self.keys.insert(key.clone());
            self.objects.insert(key, Entry { object, resource_version, relations });
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.keys.remove(key);
        for relation in self.objects.remove(key).into_iter().flat_map(|entry| entry.relations) {
            if let Some(keys) = self.related.get_mut(&relation) {
                keys.remove(key);
                if keys.is_empty() {
                    self.related.remove(&relation);
                }
            }
        }
    }

    /// Takes over that an object is gone.
    pub fn deleted(&mut self, key: &ObjectKey, resource_version: u64) {
        let newest = self.newest(key);
        *newest = resource_version.max(*newest);
        self.forget(key);
    }

    /// Takes over a complete list, of a namespace or of all: what is known of `kind` there and not in `listed`
    /// is gone. Returns the keys that went, each with what the object said of others.
    pub fn relisted(
        &mut self,
        kind: Kind,
        namespace: Option<&str>,
        listed: &BTreeSet<ObjectKey>,
    ) -> Vec<(ObjectKey, Vec<Relation>)> {
        let known = self.of(kind, namespace).filter(|(key, _)| !listed.contains(*key));
        let gone: Vec<(ObjectKey, Vec<Relation>)> =
            known.map(|(key, entry)| (key.clone(), entry.relations.clone())).collect();
        for (key, _) in &gone {
            self.forget(key);
        }
        gone
    }

    /// The keys of all objects of `kind` that are known.
    pub fn keys(&self, kind: Kind) -> impl Iterator<Item = &ObjectKey> {
        self.of(kind, None).map(|(key, _)| key)
    }

    /// The objects of `kind`, of one namespace or of all. Keys are ordered by kind, namespace and name,
    /// so nothing else is looked at.
    fn of(&self, kind: Kind, namespace: Option<&str>) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        let first = ObjectKey::before(kind, namespace);
        let keys = self.keys.range(first.clone()..).take_while(move |key| {
            key.kind == first.kind && (first.namespace.is_none() || key.namespace == first.namespace)
        });
        keys.filter_map(|key| Some((key, self.objects.get(key)?)))
    }

    /// What the object at `key` says of others; it is the same before and after a change that says nothing new of
    /// them.
    pub fn relations(&self, key: &ObjectKey) -> &[Relation] {
        self.objects.get(key).map_or(&[], |entry| &entry.relations)
    }

    /// The keys of the objects that say `relation`, in order.
    pub fn related<'w>(&'w self, relation: &Relation) -> impl Iterator<Item = &'w ObjectKey> + use<'w> {
        self.related.get(relation).into_iter().flatten()
    }

    /// The object at `key`, without recording a read.
    pub fn peek(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key).map(|entry| &entry.object)
    }

    /// What is known of the object at `key`, and its key for whoever keeps it: of a known object there is one.
    fn get(&self, key: ObjectKey) -> (ObjectKey, Seen<&Object>) {
        if self.unknown.contains(&key) {
            return (key, Seen::Unknown);
        }
        if let Some((known, entry)) = self.objects.entry(&key) {
            return (known.clone(), Seen::Present(&entry.object));
        }
        let seen = match self.coverage.get(&key.kind).filter(|_| self.covers(&key)) {
            None | Some(Coverage::Incomplete) => Seen::Unknown,
            Some(Coverage::Cached) => Seen::Absent { live: false },
            Some(Coverage::Live) => Seen::Absent { live: true },
        };
        (key, seen)
    }
}
