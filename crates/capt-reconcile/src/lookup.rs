//! A map that is asked and never walked through, for what is looked up at each pass.
//!
//! Its order is random, and nothing here shows it, so that it cannot get into a plan. What has to be walked through is
//! kept in order elsewhere.

// The one place where that is safe.
#![expect(clippy::disallowed_types, reason = "nothing walks through it")]

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

use foldhash::fast::RandomState;

/// The map.
#[derive(Debug, Clone)]
pub(crate) struct Lookup<K, V>(HashMap<K, V, RandomState>);

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Hash + Eq, V> Lookup<K, V> {
    /// An empty one with room for so many.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, RandomState::default()))
    }

    /// Whether there is nothing in it.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is something at `key`.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// What is at `key`.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// What is at `key`, with the key that is there.
    pub(crate) fn entry(&self, key: &K) -> Option<(&K, &V)> {
        self.0.get_key_value(key)
    }

    /// What is at `key`, to change it.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// Puts `value` at `key`; what was there, if anything. The key that was there stays.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Takes out what is at `key`.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }
}

impl<K: Hash + Eq + Clone, V: Default> Lookup<K, V> {
    /// What is at `key`, made where there is nothing, and a copy of the key that is there.
    pub(crate) fn or_default(&mut self, key: K) -> (K, &mut V) {
        match self.0.entry(key) {
            Entry::Occupied(entry) => (entry.key().clone(), entry.into_mut()),
            Entry::Vacant(entry) => (entry.key().clone(), entry.insert(V::default())),
        }
    }
}
