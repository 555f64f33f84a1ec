//! Garbage collection and the end of namespaces: what kube-controller-manager does, one step at a time.

use std::{collections::BTreeSet, sync::Arc};

use capt_status::Time;
use serde_json::{Value, json};

use super::{
    ApiServer, meta,
    resources::Resource,
    store::Id,
    write::{DeleteOptions, FOREGROUND, ORPHAN, PatchKind, Propagation, Unknown, Write},
};

impl ApiServer {
    /// One round: whatever can go now goes. True if something was written.
    pub fn collect(&mut self, now: Time) -> bool {
        let before = self.store.version();
        self.finish_namespaces(now);
        self.finish_definitions(now);
        self.collect_orphans(now);
        self.finish_owners(now);
        self.store.version() != before
    }

    fn uids(&self) -> BTreeSet<String> {
        self.store.all().filter_map(|(_, object)| meta::text(object, "uid").map(str::to_owned)).collect()
    }

    /// Deletes objects none of whose owners exists.
    fn collect_orphans(&mut self, now: Time) {
        let uids = self.uids();
        let lost: Vec<Id> = self
            .store
            .all()
            .filter(|(_, object)| {
                let owners = owners(object);
                !owners.is_empty()
                    && meta::text(object, "deletionTimestamp").is_none()
                    && owners.iter().all(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in lost {
            self.discard(&id, Propagation::Background, now);
        }
    }

    /// Objects that wait for their children, or that are to leave them behind.
    fn finish_owners(&mut self, now: Time) {
        let waiting: Vec<(Id, Arc<Value>)> = self
            .store
            .all()
            .filter(|(_, object)| meta::text(object, "deletionTimestamp").is_some())
            .map(|(id, object)| (id.clone(), Arc::clone(object)))
            .collect();
        for (id, owner) in waiting {
            let finalizers = meta::finalizers(&owner);
            let uid = owner["metadata"]["uid"].clone();
            let children: Vec<(Id, Value)> = self
                .store
                .all()
                .filter_map(|(id, child)| {
                    let reference = owners(child).into_iter().find(|reference| reference["uid"] == uid);
                    reference.map(|reference| (id.clone(), reference))
                })
                .collect();
            if finalizers.contains(&ORPHAN) {
                for (child, _) in &children {
                    self.edit_owners(child, |owners| owners.retain(|reference| reference["uid"] != uid), now);
                }
                self.drop_finalizer(&id, ORPHAN, now);
            } else if finalizers.contains(&FOREGROUND) {
                let blocks = children.iter().any(|(_, reference)| reference["blockOwnerDeletion"] == true);
                for (child, _) in &children {
                    self.discard(child, Propagation::Foreground, now);
                }
                if !blocks {
                    self.drop_finalizer(&id, FOREGROUND, now);
                }
            }
        }
    }

    /// Empties namespaces that are being deleted, and removes them.
    fn finish_namespaces(&mut self, now: Time) {
        let ending: Vec<String> = self
            .store
            .list("", "namespaces", None)
            .filter(|(_, namespace)| meta::text(namespace, "deletionTimestamp").is_some())
            .map(|(id, _)| id.name.clone())
            .collect();
        for namespace in ending {
            let inside: Vec<Id> =
                self.store.all().filter(|(id, _)| id.namespace == namespace).map(|(id, _)| id.clone()).collect();
            for id in &inside {
                self.discard(id, Propagation::Background, now);
            }
            if !self.store.all().any(|(id, _)| id.namespace == namespace) {
                let id =
                    Id { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: namespace };
                if let Some(resource) = self.resource_of(&id) {
                    self.removed(&resource, &id);
                }
            }
        }
    }

    /// Deletes the objects of a CRD that is being deleted, and then lets it go.
    fn finish_definitions(&mut self, now: Time) {
        let ending: Vec<(Id, Resource)> = self
            .store
            .all()
            .filter(|(_, object)| {
                meta::finalizers(object).contains(&meta::CLEANUP) && meta::text(object, "deletionTimestamp").is_some()
            })
            .filter_map(|(id, object)| Some((id.clone(), Resource::from_definition(object)?)))
            .collect();
        for (id, resource) in ending {
            let objects: Vec<Id> =
                self.store.list(&resource.group, &resource.plural, None).map(|(id, _)| id.clone()).collect();
            for object in &objects {
                self.discard(object, Propagation::Background, now);
            }
            if self.store.list(&resource.group, &resource.plural, None).next().is_none() {
                self.drop_finalizer(&id, meta::CLEANUP, now);
            }
        }
    }

    fn resource_of(&self, id: &Id) -> Option<Arc<Resource>> {
        self.resources.get(&id.group, &id.plural).cloned()
    }

    /// A write to `id` by this controller.
    pub(crate) fn write_to(&self, id: &Id, manager: &str, now: Time) -> Option<Write> {
        let resource = self.resource_of(id)?;
        Some(Write {
            version: resource.versions.first()?.name.clone(),
            id: id.clone(),
            status: false,
            manager: manager.to_owned(),
            dry_run: false,
            unknown: Unknown::Ignore,
            resource,
            now,
        })
    }

    fn discard(&mut self, id: &Id, propagation: Propagation, now: Time) {
        let is_leaving = self.store.get(id).is_none_or(|object| meta::text(object, "deletionTimestamp").is_some());
        if let Some(write) = self.write_to(id, "kube-controller-manager", now).filter(|_| !is_leaving) {
            // One that went meanwhile is gone, as wanted.
            let _ = self.delete(&write, &DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() });
        }
    }

    fn drop_finalizer(&mut self, id: &Id, finalizer: &str, now: Time) {
        let Some(object) = self.store.get(id).cloned() else { return };
        let left: Vec<&str> = meta::finalizers(&object).into_iter().filter(|found| *found != finalizer).collect();
        self.patch_metadata(id, &json!({"finalizers": left}), now);
    }

    fn edit_owners(&mut self, id: &Id, edit: impl FnOnce(&mut Vec<Value>), now: Time) {
        let Some(object) = self.store.get(id).cloned() else { return };
        let mut owners = owners(&object);
        edit(&mut owners);
        self.patch_metadata(id, &json!({"ownerReferences": owners}), now);
    }

    fn patch_metadata(&mut self, id: &Id, metadata: &Value, now: Time) {
        if let Some(write) = self.write_to(id, "kube-controller-manager", now) {
            // Refused only if the object went; then there is nothing left to do.
            let _ = self.patch(&write, PatchKind::Merge, &json!({"metadata": metadata}));
        }
    }
}

fn owners(object: &Value) -> Vec<Value> {
    object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_unix(0);

    fn secret(server: &mut ApiServer, name: &str, owner: Option<(&str, bool)>) -> String {
        let owners: Vec<Value> = owner
            .map(|(uid, blocks)| json!({"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": uid, "blockOwnerDeletion": blocks}))
            .into_iter()
            .collect();
        let object =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "ownerReferences": owners}});
        let done = server.make("", "secrets", "default", object, NOW).unwrap();
        done.object["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn names(server: &ApiServer) -> Vec<String> {
        server.store().list("", "secrets", None).map(|(id, _)| id.name.clone()).collect()
    }

    fn delete(server: &mut ApiServer, name: &str, propagation: Propagation) {
        let id = Id { group: String::new(), plural: "secrets".into(), namespace: "default".into(), name: name.into() };
        let write = server.write_to(&id, "user", NOW).unwrap();
        server.delete(&write, &DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() }).unwrap();
    }

    #[test]
    fn children_go_after_before_or_not_at_all() {
        for (propagation, at_once, in_the_end) in [
            (Propagation::Background, vec!["child", "grandchild"], vec![]),
            (Propagation::Foreground, vec!["child", "grandchild", "owner"], vec![]),
            (Propagation::Orphan, vec!["child", "grandchild", "owner"], vec!["child", "grandchild"]),
        ] {
            let mut server = ApiServer::default();
            let owner = secret(&mut server, "owner", None);
            let child = secret(&mut server, "child", Some((&owner, true)));
            secret(&mut server, "grandchild", Some((&child, false)));
            delete(&mut server, "owner", propagation);
            assert_eq!(names(&server), at_once, "{propagation:?}");
            while server.collect(NOW) {}
            assert_eq!(names(&server), in_the_end, "{propagation:?}");
        }
    }

    #[test]
    fn a_namespace_takes_what_is_in_it() {
        let mut server = ApiServer::default();
        secret(&mut server, "s", None);
        let id =
            Id { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: "default".into() };
        let write = server.write_to(&id, "user", NOW).unwrap();
        server.delete(&write, &DeleteOptions::default()).unwrap();
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}});
        assert_eq!(server.make("", "secrets", "default", object, NOW).unwrap_err().code, 403);
        while server.collect(NOW) {}
        assert!(names(&server).is_empty() && server.store().get(&id).is_none());
    }
}
