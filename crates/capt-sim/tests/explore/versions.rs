//! Objects by number: each content that an object ever has is stored once, and its number serves as
//! its resourceVersion, so that a state of the world is a handful of integers.
//!
//! The one difference to a real API server: an object that returns to an earlier content has its
//! earlier resourceVersion again, so a write that was planned for it is let through.

use std::collections::HashMap;

use capt_reconcile::object::{Kind, Object, ObjectKey};
use serde_json::{Value, json};

/// Most objects that a world may have.
pub const SLOTS: usize = 24;

/// Number of an object's content; 0 is "not there".
pub type VersionId = u32;

/// Number of an object.
pub type Slot = u8;

/// One content of one object.
#[derive(Debug)]
pub struct Version {
    pub value: Value,
    pub object: Object,
    pub uid: String,
    /// uids of its owners.
    pub owners: Vec<String>,
}

/// Everything that was ever seen.
#[derive(Debug, Default)]
pub struct Versions {
    keys: Vec<ObjectKey>,
    slots: HashMap<ObjectKey, Slot>,
    ids: HashMap<String, VersionId>,
    stored: Vec<Version>,
}

impl Versions {
    pub fn slot(&mut self, key: &ObjectKey) -> Slot {
        if let Some(slot) = self.slots.get(key) {
            return *slot;
        }
        let slot = u8::try_from(self.keys.len()).unwrap();
        assert!(usize::from(slot) < SLOTS, "too many objects: {key}");
        self.keys.push(key.clone());
        self.slots.insert(key.clone(), slot);
        slot
    }

    /// The slot of `key`, if it ever had an object.
    pub fn known_slot(&self, key: &ObjectKey) -> Option<Slot> {
        self.slots.get(key).copied()
    }

    pub fn key(&self, slot: Slot) -> &ObjectKey {
        &self.keys[usize::from(slot)]
    }

    pub fn slots(&self) -> impl Iterator<Item = (Slot, &ObjectKey)> {
        self.keys.iter().enumerate().map(|(slot, key)| (u8::try_from(slot).unwrap(), key))
    }

    pub fn slots_of(&self, kind: Kind, namespace: Option<&str>) -> Vec<Slot> {
        let is_of = |key: &ObjectKey| {
            key.kind == kind && namespace.is_none_or(|namespace| key.namespace.as_deref() == Some(namespace))
        };
        self.slots().filter(|(_, key)| is_of(key)).map(|(slot, _)| slot).collect()
    }

    pub fn get(&self, id: VersionId) -> &Version {
        &self.stored[usize::try_from(id).unwrap() - 1]
    }

    /// The number of `value`, whatever its resourceVersion says.
    pub fn intern(&mut self, key: &ObjectKey, mut value: Value) -> VersionId {
        let slot = self.slot(key);
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let content = format!("{slot} {value}");
        if let Some(id) = self.ids.get(&content) {
            return *id;
        }
        let id = VersionId::try_from(self.stored.len() + 1).unwrap();
        value["metadata"]["resourceVersion"] = json!(id.to_string());
        let owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owners = owners.map(|owner| owner["uid"].as_str().unwrap_or_default().to_owned()).collect();
        let uid = value["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let object = Object::parse(key.kind, &value);
        self.stored.push(Version { value, object, uid, owners });
        self.ids.insert(content, id);
        id
    }
}
