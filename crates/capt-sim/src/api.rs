//! The API server: objects, versions, preconditions, finalizers, garbage collection.
//!
//! Answers [`Request`]s as kube-apiserver does, as far as the executor sends them: uid and
//! resourceVersion, generation, status apart from spec, no new version for a write that changes
//! nothing, 404, 409 and AlreadyExists, merge patch, JSON patch, apply of the status by one manager
//! per object, deletionTimestamp while there are finalizers, owners' children collected after them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use capt_reconcile::{
    executor::{Refusal, Request, Response},
    object::{Kind, ObjectKey},
};
use capt_status::Time;
use serde_json::{Value, json};

/// A change that a watch would deliver.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Which object.
    pub key: ObjectKey,
    /// Version of the change.
    pub resource_version: u64,
    /// When it was.
    pub at: Time,
    /// The object; `None` if it is gone.
    pub object: Option<Arc<Value>>,
}

/// The API server.
#[derive(Debug, Default)]
pub struct Api {
    objects: HashMap<ObjectKey, Arc<Value>>,
    /// Their keys, in order.
    keys: BTreeSet<ObjectKey>,
    /// Who refers to an owner, by its uid.
    owned: Index,
    /// Who carries a label, by `name=value`.
    labelled: Index,
    /// Made when their owners were gone already.
    orphans: Vec<ObjectKey>,
    version: u64,
    uids: u64,
    changes: Vec<Change>,
    /// Virtual wall clock.
    pub now: Time,
}

impl Api {
    /// The object at `key`.
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key).map(Arc::as_ref)
    }

    /// The object at `key`, to keep.
    pub fn shared(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// The keys of all objects.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.keys.iter()
    }

    /// The keys of all objects of `kind`.
    pub fn keys_of(&self, kind: Kind) -> Vec<ObjectKey> {
        self.keys.range(ObjectKey::before(kind, None)..).take_while(|key| key.kind == kind).cloned().collect()
    }

    /// Changes after the version `seen`, in order.
    pub fn changes(&self, seen: u64) -> &[Change] {
        let first = self.changes.partition_point(|change| change.resource_version <= seen);
        self.changes.get(first..).unwrap_or_default()
    }

    /// The version of the last change; each change raises it by one.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Forgets all changes up to the version `seen` that a list would not show: whoever starts anew still finds each
    /// object as it is. Does nothing as long as there is little to gain.
    pub fn compact(&mut self, seen: u64) {
        let objects = &self.objects;
        if self.changes.len() < objects.len() + objects.len() / 16 + 16 {
            return;
        }
        self.changes.retain(|Change { key, resource_version, at: _, object }| {
            let is_current = || objects.get(key).zip(object.as_ref()).is_some_and(|(now, then)| Arc::ptr_eq(now, then));
            *resource_version > seen || is_current()
        });
    }

    /// Carries out a request.
    pub fn respond(&mut self, request: &Request) -> Response {
        match request {
            Request::Create { target, body } => self.create(target, body.clone()),
            Request::MergePatch { target, body } => self.update(target, &body["metadata"], |object| {
                json_patch::merge(object, body);
                Ok(())
            }),
            Request::JsonPatch { target, operations } => {
                let Ok(patch) = serde_json::from_value::<json_patch::Patch>(json!(operations)) else {
                    return refuse(400, "BadRequest", "not a JSON patch");
                };
                let version = operations
                    .iter()
                    .find(|operation| operation["path"] == "/metadata/resourceVersion")
                    .map_or(Value::Null, |operation| operation["value"].clone());
                self.update(target, &json!({"resourceVersion": version}), |object| {
                    json_patch::patch(object, &patch).map_err(|error| error.to_string())
                })
            }
            Request::ApplyStatus { target, manager: _, body } => {
                self.update_with(target, &body["metadata"], |before| Ok(with_status(before, &body["status"])))
            }
            Request::MergeStatus { target, manager: _, body } => self.update(target, &body["metadata"], |object| {
                json_patch::merge(&mut object["status"], &body["status"]);
                Ok(())
            }),
            Request::Delete { target, uid, resource_version } => {
                let stored = self.objects.get(target).map(|object| &object["metadata"]["resourceVersion"]);
                match (resource_version, stored) {
                    (Some(version), Some(stored)) if *stored != json!(version) => {
                        refuse(409, "Conflict", "the resourceVersion in the precondition is another one")
                    }
                    (Some(_) | None, Some(_) | None) => match self.delete(target, Some(uid)) {
                        Response::Object(object) if !self.objects.contains_key(target) => {
                            let details = json!({"name": target.name, "uid": object["metadata"]["uid"]});
                            let status = json!({"kind": "Status", "status": "Success", "details": details});
                            Response::Object(Arc::new(status))
                        }
                        response => response,
                    },
                }
            }
            Request::Get { target } => match self.objects.get(target) {
                Some(object) => Response::Object(Arc::clone(object)),
                None => not_found(target),
            },
            Request::List { kind, selector } => {
                let keys = self.labelled.get(selector).filter(|key| key.kind == *kind);
                Response::Items(keys.filter_map(|key| self.get(key)).cloned().collect())
            }
        }
    }

    /// POST of an object that a user or another controller makes.
    pub fn create(&mut self, key: &ObjectKey, mut object: Value) -> Response {
        if self.objects.contains_key(key) {
            return refuse(409, "AlreadyExists", &format!("{key} already exists"));
        }
        self.uids += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!(self.now);
        // A POST does not write a status.
        if let (true, Some(fields)) = (has_status(key.kind), object.as_object_mut()) {
            fields.remove("status");
        }
        if self.is_orphan(key, &object) {
            self.orphans.push(key.clone());
        }
        Response::Object(self.store(key, object))
    }

    /// Whether `object` has owners and none of them is there.
    fn is_orphan(&self, key: &ObjectKey, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let is_gone = |owner: &Value| {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
            let namespace = key.namespace.as_deref().unwrap_or_default();
            Kind::find(group, text("kind")).is_some_and(|kind| {
                let owner = self.get(&ObjectKey::new(kind, namespace, text("name")));
                owner.is_none_or(|owner| owner["metadata"]["uid"] != text("uid"))
            })
        };
        !owners.is_empty() && owners.iter().all(is_gone)
    }

    /// The garbage collector finds what was made when its owners were gone already; true if it did.
    pub fn collect(&mut self) -> bool {
        let orphans = std::mem::take(&mut self.orphans);
        let before = self.version;
        for key in orphans {
            if self.get(&key).is_some_and(|object| self.is_orphan(&key, object)) {
                self.delete(&key, None);
            }
        }
        self.version != before
    }

    /// Puts an object in as it is, resourceVersion and all; no change is told.
    pub fn restore(&mut self, key: &ObjectKey, object: Value) {
        self.keep(key, Some(&Arc::new(object)));
    }

    /// Puts an object in as it is stored: its status, its finalizers, and its uid if it has one. Watches
    /// tell of it.
    pub fn put(&mut self, key: &ObjectKey, mut object: Value) {
        self.uids += 1;
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.uids));
        }
        if metadata["generation"].is_null() {
            metadata["generation"] = json!(1);
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!(self.now);
        }
        self.store(key, object);
    }

    /// PATCH that another controller makes; `edit` changes the object, spec and status alike.
    pub fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value)) -> Response {
        self.update(key, &Value::Null, |object| {
            edit(object);
            Ok(())
        })
    }

    /// DELETE by a user or another controller.
    pub fn delete(&mut self, key: &ObjectKey, uid: Option<&str>) -> Response {
        let Some(object) = self.objects.get(key) else { return not_found(key) };
        if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
            return refuse(409, "Conflict", "the uid in the precondition is another one");
        }
        if finalizers(object).is_empty() {
            let object = Arc::clone(object);
            return self.remove(key, object);
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            let mut object = Value::clone(object);
            object["metadata"]["deletionTimestamp"] = json!(self.now);
            object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
            return Response::Object(self.store(key, object));
        }
        Response::Object(Arc::clone(object))
    }

    fn update(
        &mut self,
        key: &ObjectKey,
        precondition: &Value,
        edit: impl FnOnce(&mut Value) -> Result<(), String>,
    ) -> Response {
        self.update_with(key, precondition, |before| {
            let mut after = before.clone();
            edit(&mut after)?;
            Ok(after)
        })
    }

    fn update_with(
        &mut self,
        key: &ObjectKey,
        precondition: &Value,
        edit: impl FnOnce(&Value) -> Result<Value, String>,
    ) -> Response {
        let Some(before) = self.objects.get(key).cloned() else { return not_found(key) };
        for field in ["uid", "resourceVersion"] {
            if precondition[field].is_string() && precondition[field] != before["metadata"][field] {
                return refuse(409, "Conflict", &format!("the object has been modified: {field} differs"));
            }
        }
        let mut after = match edit(&before) {
            Ok(after) => after,
            Err(message) => return refuse(422, "Invalid", &message),
        };
        if after == *before {
            return Response::Object(before);
        }
        if after["spec"] != before["spec"] {
            after["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        }
        if !after["metadata"]["deletionTimestamp"].is_null() && finalizers(&after).is_empty() {
            return self.remove(key, Arc::new(after));
        }
        Response::Object(self.store(key, after))
    }

    fn store(&mut self, key: &ObjectKey, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let stored = Arc::new(object);
        self.keep(key, Some(&stored));
        let (resource_version, at) = (self.version, self.now);
        self.changes.push(Change { key: key.clone(), resource_version, at, object: Some(Arc::clone(&stored)) });
        stored
    }

    /// Replaces what is at `key`, and keeps in mind whose it is.
    fn keep(&mut self, key: &ObjectKey, object: Option<&Arc<Value>>) {
        let before = match object {
            Some(object) => self.objects.insert(key.clone(), Arc::clone(object)),
            None => self.objects.remove(key),
        };
        match (before.is_some(), object.is_some()) {
            (false, true) => self.keys.insert(key.clone()),
            (true, false) => self.keys.remove(key),
            (true, true) | (false, false) => false,
        };
        let (before, after) = (before.as_deref(), object.map(AsRef::as_ref));
        let metadata = |field: &str| [before, after].map(|object| object.map(|object| &object["metadata"][field]));
        for (index, field, said) in
            [(&mut self.owned, "ownerReferences", owners as Said), (&mut self.labelled, "labels", labels as Said)]
        {
            let [before, after] = metadata(field);
            // Most changes say nothing new of others.
            if before != after {
                index.replace(key, before.map(said), after.map(said));
            }
        }
    }

    fn remove(&mut self, key: &ObjectKey, object: Arc<Value>) -> Response {
        self.version += 1;
        self.keep(key, None);
        let (resource_version, at) = (self.version, self.now);
        self.changes.push(Change { key: key.clone(), resource_version, at, object: None });
        let owner = object["metadata"]["uid"].as_str().unwrap_or_default();
        let children: Vec<ObjectKey> = self.owned.get(owner).cloned().collect();
        // Those that somebody else owns too stay.
        let is_only = |child: &Value| owners(&child["metadata"]["ownerReferences"]).iter().all(|uid| uid == owner);
        let only = |child: &ObjectKey| self.get(child).is_some_and(is_only);
        let children: Vec<ObjectKey> = children.into_iter().filter(only).collect();
        for child in children {
            self.delete(&child, None);
        }
        Response::Object(object)
    }
}

/// Which objects say something, by what they say.
#[derive(Debug, Default)]
struct Index(BTreeMap<String, BTreeSet<ObjectKey>>);

impl Index {
    /// The objects that say `what`, in order.
    fn get(&self, what: &str) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(what).into_iter().flatten()
    }

    /// The object at `key` said `before` and says `after`.
    fn replace(&mut self, key: &ObjectKey, before: Option<Vec<String>>, after: Option<Vec<String>>) {
        for what in before.unwrap_or_default() {
            if let Some(keys) = self.0.get_mut(&what) {
                keys.remove(key);
                if keys.is_empty() {
                    self.0.remove(&what);
                }
            }
        }
        for what in after.unwrap_or_default() {
            self.0.entry(what).or_default().insert(key.clone());
        }
    }
}

/// What a field of the metadata says, for an index.
type Said = fn(&Value) -> Vec<String>;

/// `labels`, as selectors name them.
fn labels(labels: &Value) -> Vec<String> {
    let labels = labels.as_object().into_iter().flatten();
    labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect()
}

/// uids in `ownerReferences`.
fn owners(references: &Value) -> Vec<String> {
    let uid = |reference: &Value| reference["uid"].as_str().unwrap_or_default().to_owned();
    references.as_array().into_iter().flatten().map(uid).collect()
}

fn has_status(kind: Kind) -> bool {
    match kind {
        Kind::Secret => false,
        Kind::Cluster
        | Kind::CaptCluster
        | Kind::CaptControlPlane
        | Kind::Template
        | Kind::Apply
        | Kind::Workspace(_) => true,
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}

/// What an apply by the only manager leaves: its own fields, and the conditions of other writers.
fn with_status(before: &Value, status: &Value) -> Value {
    let fields = before.as_object().into_iter().flatten().filter(|(field, _)| *field != "status");
    let mut object: Value = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    object["status"] = status.clone();
    let applied = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_applied = |type_: &Value| applied.iter().any(|condition| condition["type"] == *type_);
    let stored = before["status"]["conditions"].as_array().into_iter().flatten();
    let mut foreign: Vec<Value> = stored
        .filter(|condition| {
            condition["type"].as_str().is_some_and(|type_| type_.contains('/')) && !is_applied(&condition["type"])
        })
        .cloned()
        .collect();
    if !foreign.is_empty() {
        match &mut object["status"]["conditions"] {
            Value::Array(conditions) => conditions.append(&mut foreign),
            none => *none = Value::Array(foreign),
        }
    }
    object
}

fn not_found(key: &ObjectKey) -> Response {
    refuse(404, "NotFound", &format!("{key} not found"))
}

fn refuse(code: u16, reason: &str, message: &str) -> Response {
    Response::Refused(Refusal { code, reason: reason.to_owned(), message: message.to_owned() })
}
