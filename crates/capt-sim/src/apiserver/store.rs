//! Objects and their history, under one counter of versions, as etcd keeps them.
//!
//! It knows nothing of what an object means; whoever writes has decided already.

use std::{collections::BTreeMap, collections::VecDeque, sync::Arc};

use serde_json::{Value, json};

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// API group, empty for core.
    pub group: String,
    /// Plural name of the resource.
    pub plural: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Version at which it happened.
    pub version: u64,
    /// Which object.
    pub id: Id,
    /// Before; `None` if it was made.
    pub old: Option<Arc<Value>>,
    /// After; `None` if it is gone.
    pub new: Option<Arc<Value>>,
}

/// All objects, and the last changes.
#[derive(Debug, Clone)]
pub struct Store {
    objects: BTreeMap<Id, Arc<Value>>,
    version: u64,
    changes: VecDeque<Change>,
    /// Changes up to here are forgotten.
    compacted: u64,
    /// How many changes are kept.
    keeps: usize,
}

impl Store {
    /// An empty store that remembers the last `keeps` changes.
    pub fn new(keeps: usize) -> Self {
        Self { objects: BTreeMap::new(), version: 0, changes: VecDeque::new(), compacted: 0, keeps }
    }

    /// The last version that was given.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version up to which changes are forgotten.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// The object at `id`.
    pub fn get(&self, id: &Id) -> Option<&Arc<Value>> {
        self.objects.get(id)
    }

    /// Objects of a resource, in one namespace or in all, by namespace and name.
    pub fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> impl Iterator<Item = (&Id, &Arc<Value>)> {
        let first = Id {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        let same = first.clone();
        self.objects.range(first..).take_while(move |(id, _)| {
            id.group == same.group
                && id.plural == same.plural
                && (same.namespace.is_empty() || id.namespace == same.namespace)
        })
    }

    /// Everything.
    pub fn all(&self) -> impl Iterator<Item = (&Id, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Stores `object` under a new version, which it carries from now on.
    pub fn put(&mut self, id: &Id, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let old = self.objects.insert(id.clone(), Arc::clone(&object));
        self.record(Change { version: self.version, id: id.clone(), old, new: Some(Arc::clone(&object)) });
        object
    }

    /// Removes the object at `id`; returns it as watchers see it go, with the version of its end.
    pub fn remove(&mut self, id: &Id) -> Option<Arc<Value>> {
        let old = self.objects.remove(id)?;
        self.version += 1;
        self.record(Change { version: self.version, id: id.clone(), old: Some(Arc::clone(&old)), new: None });
        let mut last = Value::clone(&old);
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Some(Arc::new(last))
    }

    /// Changes after `version`, oldest first; `None` if some of them are forgotten.
    pub fn since(&self, version: u64) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        let from = self.changes.partition_point(|change| change.version <= version);
        (version >= self.compacted).then(|| self.changes.range(from..))
    }

    /// Objects of a resource as they were at `version`; `None` if that is forgotten.
    pub fn list_at(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> Option<BTreeMap<Id, Arc<Value>>> {
        let mut then: BTreeMap<Id, Arc<Value>> =
            self.list(group, plural, namespace).map(|(id, object)| (id.clone(), Arc::clone(object))).collect();
        for change in self.since(version)?.rev() {
            let Change { version: _, id, old, new: _ } = change;
            if id.group == group && id.plural == plural && namespace.is_none_or(|namespace| id.namespace == namespace) {
                match old {
                    Some(old) => then.insert(id.clone(), Arc::clone(old)),
                    None => then.remove(id),
                };
            }
        }
        Some(then)
    }

    /// Forgets all changes up to now, as a compaction of etcd does.
    pub fn compact(&mut self) {
        self.changes.clear();
        self.compacted = self.version;
    }

    fn record(&mut self, change: Change) {
        self.changes.push_back(change);
        while self.changes.len() > self.keeps {
            if let Some(forgotten) = self.changes.pop_front() {
                self.compacted = forgotten.version;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        Id { group: String::new(), plural: "secrets".into(), namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_forgotten() {
        let mut store = Store::new(3);
        store.put(&id("a"), json!({"n": 1}));
        store.put(&id("b"), json!({}));
        store.put(&id("a"), json!({"n": 2}));
        store.remove(&id("b"));
        let at = |store: &Store, version| store.list_at("", "secrets", None, version);
        assert_eq!(at(&store, 2).unwrap().len(), 2);
        assert_eq!(at(&store, 2).unwrap()[&id("a")]["n"], 1);
        assert_eq!(at(&store, 4).unwrap().len(), 1);
        assert_eq!(store.compacted(), 1);
        assert!(at(&store, 0).is_none() && store.since(0).is_none());
        assert_eq!(store.since(3).unwrap().count(), 1);
    }
}
