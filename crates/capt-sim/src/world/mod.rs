//! The world of the sandbox: the full [`ApiServer`], and the models that live in it.
//!
//! * [`provider`](crate::provider): provider-terraform, which annotations on a Workspace make fail;
//! * [`core`](crate::core): Cluster API core. Both are the same as in the simulation.
//!
//! [`edit`](World::edit) and [`create`](World::create) are for these models: they write what they are
//! given. People and the operator come through [`service`](crate::service) and all of its checks.

use std::sync::Arc;

use capt_reconcile::object::{Kind, ObjectKey};
use capt_status::Time;
use serde_json::Value;

use crate::{
    apiserver::{
        ApiServer,
        store::Id,
        write::{DeleteOptions, Write},
    },
    objects::Objects,
};

/// The API server, and the time in it.
#[derive(Debug)]
pub struct World {
    server: ApiServer,
    /// Virtual wall clock.
    pub now: Time,
}

impl World {
    /// Around `server`.
    pub const fn new(server: ApiServer, now: Time) -> Self {
        Self { server, now }
    }

    /// The server itself.
    pub const fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The server, for requests of somebody who speaks HTTP; with the time.
    pub fn ask<T>(&mut self, request: impl FnOnce(&mut ApiServer, Time) -> T) -> T {
        request(&mut self.server, self.now)
    }

    /// Version of the last change.
    pub fn version(&self) -> u64 {
        self.server.store().version()
    }

    /// The object at `key`.
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.server.store().get(&id(key)).map(|object| &**object)
    }

    /// Where the objects of `kind` are.
    pub fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        let objects = self.server.store().list(kind.group(), kind.plural(), None);
        objects.map(|(id, _)| ObjectKey::new(kind, &id.namespace, &id.name)).collect()
    }

    /// One round of garbage and namespace collection; true if something was written.
    pub fn collect(&mut self) -> bool {
        self.server.collect(self.now)
    }

    /// Makes an object. What cannot be made now is tried again by whoever wants it.
    pub fn create(&mut self, key: &ObjectKey, object: Value) {
        self.write(key, |server, mut write| {
            write.id.name = String::new();
            if let Err(status) = server.create(&write, object) {
                debug_assert!(matches!(status.code, 403 | 404 | 409), "{status:?}");
            }
        });
    }

    /// Changes an object, spec and status alike; one that is gone stays gone.
    pub fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.get(key).cloned() else { return };
        edit(&mut object);
        self.write(key, |server, write| {
            let done = server.rewrite(&write, object);
            debug_assert!(done.is_ok(), "{done:?}");
        });
    }

    /// Deletes an object; one that is gone is gone.
    pub fn delete(&mut self, key: &ObjectKey) {
        self.write(key, |server, write| {
            let done = server.delete(&write, &DeleteOptions::default());
            debug_assert!(done.is_ok() || done.as_ref().is_err_and(|status| status.code == 404), "{done:?}");
        });
    }

    fn write(&mut self, key: &ObjectKey, carry_out: impl FnOnce(&mut ApiServer, Write)) {
        if let Some(write) = self.server.write_to(&id(key), "models", self.now) {
            carry_out(&mut self.server, write);
        }
    }
}

impl Objects for World {
    fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        Self::keys(self, kind)
    }

    fn get(&self, key: &ObjectKey) -> Option<&Value> {
        Self::get(self, key)
    }

    fn shared(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.server.store().get(&id(key)).cloned()
    }

    fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value)) {
        Self::edit(self, key, edit);
    }

    fn delete(&mut self, key: &ObjectKey) {
        Self::delete(self, key);
    }

    fn writes(&self) -> u64 {
        self.version()
    }

    fn create(&mut self, key: &ObjectKey, object: Value) {
        Self::create(self, key, object);
    }

    fn now(&self) -> Time {
        self.now
    }
}

/// Where `key` is in the store.
fn id(key: &ObjectKey) -> Id {
    Id {
        group: key.kind.group().to_owned(),
        plural: key.kind.plural().to_owned(),
        namespace: key.namespace.clone().unwrap_or_default(),
        name: key.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definitions;

    #[test]
    fn the_models_make_change_and_delete() {
        let mut world = World::new(definitions::server(Time::from_unix(0)).unwrap(), Time::from_unix(0));
        let key = ObjectKey::new(Kind::Secret, "default", "s");
        world.create(&key, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}));
        assert_eq!(world.keys(Kind::Secret), std::slice::from_ref(&key));
        world.edit(&key, |object| object["data"] = json!({"a": "eA=="}));
        assert_eq!(world.get(&key).unwrap()["data"]["a"], "eA==");
        world.delete(&key);
        assert!(world.keys(Kind::Secret).is_empty());
    }
}
