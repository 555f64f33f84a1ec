//! What the models of core and of the provider need of an API server, wherever its objects are kept.
//!
//! They write what they are given: no check and no precondition stands in their way.

use std::sync::Arc;

use capt_reconcile::object::{Kind, ObjectKey};
use capt_status::Time;
use serde_json::Value;

use crate::api::Api;

/// The objects that a model reads and writes.
pub trait Objects {
    /// Where the objects of `kind` are.
    fn keys(&self, kind: Kind) -> Vec<ObjectKey>;
    /// The object at `key`.
    fn get(&self, key: &ObjectKey) -> Option<&Value>;
    /// The same to keep while others are written; no copy.
    fn shared(&self, key: &ObjectKey) -> Option<Arc<Value>>;
    /// Makes an object.
    fn create(&mut self, key: &ObjectKey, object: Value);
    /// Changes an object, spec and status alike.
    fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value));
    /// Deletes an object.
    fn delete(&mut self, key: &ObjectKey);
    /// A number that grows with each write.
    fn writes(&self) -> u64;
    /// The time.
    fn now(&self) -> Time;
}

impl Objects for Api {
    fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        Self::keys_of(self, kind)
    }

    fn get(&self, key: &ObjectKey) -> Option<&Value> {
        Self::get(self, key)
    }

    fn shared(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        Self::shared(self, key)
    }

    fn create(&mut self, key: &ObjectKey, object: Value) {
        Self::create(self, key, object);
    }

    fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value)) {
        Self::edit(self, key, edit);
    }

    fn delete(&mut self, key: &ObjectKey) {
        Self::delete(self, key, None);
    }

    fn writes(&self) -> u64 {
        self.version()
    }

    fn now(&self) -> Time {
        self.now
    }
}
