//! Writes: create, update, patch, apply and delete, as the generic registry of the API server does them.
//!
//! The order of the steps is the API server's, since it decides which of several faults is reported.

use std::sync::Arc;

use capt_status::Time;
use serde_json::{Value, json};

use super::{
    ApiServer,
    fields::{
        managed::{Managers, Terms, Writer},
        typed,
    },
    meta,
    resources::{Nature, Resource, Version},
    schema::{shape, validate::validate},
    status::{About, Cause, Status},
    store::Id,
};

/// What a request does with fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// Refuses.
    Strict,
    /// Drops them and warns.
    #[default]
    Warn,
    /// Drops them.
    Ignore,
}

/// Where and how to write.
#[derive(Debug, Clone)]
pub struct Write {
    /// The resource.
    pub resource: Arc<Resource>,
    /// The version in which the request speaks.
    pub version: String,
    /// The object; its name is empty for a POST.
    pub id: Id,
    /// Whether it is the status subresource.
    pub status: bool,
    /// Field manager.
    pub manager: String,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// What happens to unknown fields.
    pub unknown: Unknown,
    /// The time of the API server.
    pub now: Time,
}

/// A write that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// 200 or 201.
    pub code: u16,
    /// The object, in the stored version, or a `Status` for one that is gone.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Which documents a PATCH carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386. A strategic merge patch of the built-in kinds here is nothing else.
    Merge,
    /// RFC 6902.
    Json,
}

/// How children of a deleted object go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// After it.
    Background,
    /// Before it.
    Foreground,
    /// Not at all.
    Orphan,
}

/// Options of a DELETE.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must have this resourceVersion.
    pub resource_version: Option<String>,
    /// What happens to its children; `None` for what an earlier deletion said, else in the background.
    pub propagation: Option<Propagation>,
}

/// Finalizer of an object that waits for its children.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object whose children are to stay.
pub const ORPHAN: &str = "orphan";

impl Write {
    pub(super) fn about(&self) -> About<'_> {
        About { group: &self.resource.group, kind: &self.resource.plural, name: &self.id.name }
    }

    fn invalid(&self, causes: &[Cause]) -> Status {
        let about = About { group: &self.resource.group, kind: &self.resource.kind, name: &self.id.name };
        Status::invalid(&about, causes)
    }

    fn served(&self) -> Result<&Version, Status> {
        self.resource.version(&self.version).ok_or_else(Status::no_such_resource)
    }

    fn writer(&self, applies: bool) -> Writer {
        Writer {
            manager: self.manager.clone(),
            applies,
            api_version: self.resource.api_version(&self.version),
            subresource: if self.status { "status".to_owned() } else { String::new() },
        }
    }

    /// Top-level fields that this endpoint does not write.
    fn reset(&self, version: &Version) -> &'static [&'static str] {
        match (self.status, version.status) {
            (true, _) => &["metadata", "spec"],
            (false, true) => &["status"],
            (false, false) => &[],
        }
    }

    fn terms<'a>(&self, version: &'a Version) -> Terms<'a> {
        Terms { schema: &version.schema, reset: self.reset(version), now: self.now }
    }

    /// Checks that `object` says what the path says.
    fn matches_path(&self, object: &Value) -> Result<(), Status> {
        let (api_version, kind) = (self.resource.api_version(&self.version), &self.resource.kind);
        if !object.is_object() || object["kind"].as_str().is_none_or(str::is_empty) {
            return Err(Status::bad_request("Object 'Kind' is missing in the request"));
        }
        if object["kind"] != json!(kind) || object["apiVersion"] != json!(api_version) {
            let found = format!("{}, Kind={}", object["apiVersion"], object["kind"]);
            return Err(Status::bad_request(format!(
                "{found} in the request does not match {api_version}, Kind={kind}"
            )));
        }
        let said = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, namespace) = (said("name"), said("namespace"));
        if !self.id.name.is_empty() && name != self.id.name {
            let message = "the name of the object does not match the name on the URL";
            return Err(Status::bad_request(format!("{message} ({name}, {})", self.id.name)));
        }
        if self.resource.namespaced && !namespace.is_empty() && namespace != self.id.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// Brings `object` into the form in which it is stored.
    fn shaped(&self, version: &Version, object: &mut Value) -> Result<Vec<String>, Status> {
        if let Some(fields) = object.as_object_mut() {
            fields.entry("metadata").or_insert_with(|| json!({}));
        }
        let mut dropped = shape::metadata(object);
        if self.resource.namespaced {
            object["metadata"]["namespace"] = json!(self.id.namespace);
        }
        if self.resource.nature == Nature::Custom {
            dropped.extend(shape::prune(&version.schema, object));
            shape::default(&version.schema, object);
        }
        meta::completed(self.resource.nature, object);
        match self.unknown {
            Unknown::Strict if !dropped.is_empty() => {
                let words: Vec<String> = dropped.iter().map(|path| format!("unknown field \"{path}\"")).collect();
                Err(Status::bad_request(format!("strict decoding error: {}", words.join(", "))))
            }
            Unknown::Warn => Ok(dropped.iter().map(|path| format!("unknown field \"{path}\"")).collect()),
            Unknown::Strict | Unknown::Ignore => Ok(Vec::new()),
        }
    }

    fn check(&self, version: &Version, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let mut causes = meta::broken_rules(&self.resource, object, old);
        if self.resource.nature == Nature::Custom {
            causes.extend(validate(&version.schema, object, old));
            // Rules are asked about objects of the right form only.
            let is_formless = |cause: &Cause| {
                [
                    "FieldValueNotSupported",
                    "FieldValueRequired",
                    "FieldValueTooLong",
                    "FieldValueTooMany",
                    "FieldValueTypeInvalid",
                ]
                .contains(&cause.reason)
            };
            if !causes.iter().any(is_formless) {
                causes.extend(version.rules.broken_by(object, old));
            } else if !version.rules.is_empty() {
                let message = "Invalid value: null: some validation rules were not checked because the object was \
                               invalid; correct the existing errors to complete validation";
                causes.push(Cause::new("FieldValueInvalid", "<nil>", message));
            }
        }
        if causes.is_empty() { Ok(()) } else { Err(self.invalid(&causes)) }
    }
}

impl ApiServer {
    /// POST.
    pub fn create(&mut self, write: &Write, mut object: Value) -> Result<Done, Status> {
        let version = write.served()?.clone();
        write.matches_path(&object)?;
        let warnings = write.shaped(&version, &mut object)?;
        let mut write = write.clone();
        write.id.name = match (object["metadata"]["name"].as_str(), object["metadata"]["generateName"].as_str()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(prefix)) => format!("{prefix}{}", self.suffix()),
            (None, None) => {
                return Err(write.invalid(&[Cause::new(
                    "FieldValueRequired",
                    "metadata.name",
                    "Required value: name or generateName is required",
                )]));
            }
        };
        if version.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        self.made(&write, &version, object, Managers::default(), false, warnings)
    }

    /// Stores a new object whose content is decided.
    fn made(
        &mut self,
        write: &Write,
        version: &Version,
        mut object: Value,
        mut managers: Managers,
        applied: bool,
        warnings: Vec<String>,
    ) -> Result<Done, Status> {
        self.admit(write)?;
        let uid = self.uid();
        let metadata = &mut object["metadata"];
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"] {
            meta::clear(metadata, field);
        }
        metadata["name"] = json!(write.id.name);
        metadata["uid"] = json!(uid);
        metadata["creationTimestamp"] = json!(write.now);
        if meta::has_generation(write.resource.nature) {
            metadata["generation"] = json!(1);
        }
        meta::born(write.resource.nature, &mut object);
        write.check(version, &object, None)?;
        if self.store.get(&write.id).is_some() {
            return Err(Status::already_exists(&write.about()));
        }
        if meta::text(&object, "resourceVersion").is_some() {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        }
        if !applied {
            let empty = json!({"apiVersion": object["apiVersion"], "kind": object["kind"]});
            managers.update(write.terms(version), &empty, &object, &write.writer(false));
        }
        object["metadata"]["managedFields"] = managers.to_value();
        meta::clear_nulls(&mut object["metadata"]);
        object["apiVersion"] = json!(write.resource.api_version(&write.resource.versions[0].name));
        let object = if write.dry_run { Arc::new(object) } else { self.put(write, object) };
        Ok(Done { code: 201, object: Value::clone(&object), warnings })
    }

    /// PUT.
    pub fn replace(&mut self, write: &Write, object: Value) -> Result<Done, Status> {
        write.matches_path(&object)?;
        // What cannot be decoded is refused before anybody looks whether it is there.
        write.shaped(write.served()?, &mut object.clone())?;
        let old = Arc::clone(self.found(write)?);
        if let Some(uid) = meta::text(&object, "uid").filter(|uid| Some(*uid) != meta::text(&old, "uid")) {
            let found = meta::text(&old, "uid").unwrap_or_default();
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
            return Err(Status::conflict(&write.about(), &why));
        }
        if meta::text(&object, "resourceVersion").is_none() && write.resource.nature == Nature::Custom {
            let cause = Cause::new(
                "FieldValueInvalid",
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            );
            // Of the resource and not, as any other, of the kind.
            return Err(Status::invalid(&write.about(), &[cause]));
        }
        self.updated(write, &old, object, None)
    }

    /// PATCH, but for apply.
    pub fn patch(&mut self, write: &Write, kind: PatchKind, body: &Value) -> Result<Done, Status> {
        let old = Arc::clone(self.found(write)?);
        let mut new = Value::clone(&old);
        new["apiVersion"] = json!(write.resource.api_version(&write.version));
        match kind {
            PatchKind::Merge if !body.is_object() => return Err(Status::bad_request("a merge patch is an object")),
            PatchKind::Merge => json_patch::merge(&mut new, body),
            PatchKind::Json => {
                let operations = body.as_array().ok_or_else(|| Status::bad_request("a JSON patch is a list"))?;
                for operation in operations {
                    let Some(operation) = as_understood(operation, &new) else { continue };
                    let patch: json_patch::Patch = serde_json::from_value(json!([operation]))
                        .map_err(|error| Status::bad_request(error.to_string()))?;
                    json_patch::patch(&mut new, &patch).map_err(|error| Status::unprocessable(&error.to_string()))?;
                }
            }
        }
        write.matches_path(&new)?;
        self.updated(write, &old, new, None).map_err(|status| match status.reason {
            // What a patch makes is decoded as the value of a field.
            "BadRequest" => {
                let cause = Cause::new("FieldValueInvalid", "patch", format!("Invalid value: {}", status.message));
                Status::invalid(&About { group: "", kind: "", name: "" }, &[cause])
            }
            _ => status,
        })
    }

    /// PATCH with `application/apply-patch+yaml`.
    pub fn apply(&mut self, write: &Write, config: &Value, force: bool) -> Result<Done, Status> {
        if write.manager.is_empty() {
            let about = About { group: "meta.k8s.io", kind: "PatchOptions", name: "" };
            let cause = Cause::new("FieldValueRequired", "fieldManager", "Required value: is required for apply patch");
            return Err(Status::invalid(&about, &[cause]));
        }
        let version = write.served()?.clone();
        let mut config = config.clone();
        if config["metadata"]["managedFields"].is_array() {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        write.matches_path(&config)?;
        let old = match self.found(write) {
            Ok(old) => Some(Arc::clone(old)),
            Err(status) if write.status => return Err(status),
            Err(_) => None,
        };
        shape::known_metadata(&mut config);
        let unknown = match write.resource.nature {
            Nature::Custom => shape::prune(&version.schema, &mut config).into_iter().next(),
            Nature::Namespace | Nature::Secret | Nature::Definition | Nature::Event | Nature::Plain => None,
        };
        let problem = match unknown {
            Some(path) => Some(format!(".{path}: field not declared in schema")),
            None => typed::problem(&version.schema, &config),
        };
        if let Some(problem) = problem {
            let (api_version, kind) = (write.resource.api_version(&write.version), &write.resource.kind);
            let of = format!("{}/{}; {api_version}, Kind={kind}", write.id.namespace, write.id.name);
            return Err(Status::internal(format!("failed to create typed patch object ({of}): {problem}")));
        }
        let Some(old) = old else { return self.applied_anew(write, &version, config) };
        let mut managers = Managers::read(&old["metadata"]["managedFields"]);
        let mut live = Value::clone(&old);
        live["apiVersion"] = json!(write.resource.api_version(&write.version));
        meta::clear(&mut live["metadata"], "managedFields");
        let writer = write.writer(true);
        if old["metadata"]["managedFields"].is_null() {
            let before = Writer { manager: "before-first-apply".to_owned(), applies: false, ..writer.clone() };
            let empty = json!({"apiVersion": live["apiVersion"], "kind": live["kind"]});
            managers.update(write.terms(&version), &empty, &live, &before);
        }
        let merged = managers
            .apply(write.terms(&version), &live, &config, &writer, force)
            .map_err(|conflicts| Status::apply_conflict(&conflicts))?;
        self.updated(write, &old, merged, Some(managers))
    }

    fn applied_anew(&mut self, write: &Write, version: &Version, mut config: Value) -> Result<Done, Status> {
        if let Some(uid) = meta::text(&config, "uid") {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&write.about(), &why));
        }
        if meta::text(&config, "resourceVersion").is_some() {
            return Err(Status::modified(&write.about()));
        }
        let mut managers = Managers::default();
        let applied = managers.apply(write.terms(version), &json!({}), &config, &write.writer(true), true);
        config = applied.map_err(|conflicts| Status::apply_conflict(&conflicts))?;
        let warnings = write.shaped(version, &mut config)?;
        if version.status
            && let Some(fields) = config.as_object_mut()
        {
            fields.remove("status");
        }
        self.made(write, version, config, managers, true, warnings)
    }

    /// Everything that follows once it is known what `old` becomes.
    fn updated(
        &mut self,
        write: &Write,
        old: &Arc<Value>,
        mut new: Value,
        applied: Option<Managers>,
    ) -> Result<Done, Status> {
        let version = write.served()?.clone();
        let warnings = write.shaped(&version, &mut new)?;
        if meta::text(&new, "resourceVersion").is_some_and(|wanted| Some(wanted) != meta::text(old, "resourceVersion"))
        {
            return Err(Status::modified(&write.about()));
        }
        let given = new["metadata"]["managedFields"].clone();
        if write.status {
            let status = new["status"].take();
            let given_status = if status.is_null() { None } else { Some(status) };
            new = Value::clone(old);
            match given_status {
                Some(status) => new["status"] = status,
                None => meta::clear(&mut new, "status"),
            }
        } else if version.status {
            match old.get("status") {
                Some(status) => new["status"] = status.clone(),
                None => meta::clear(&mut new, "status"),
            }
        }
        let causes = meta::fixed_fields(&new, old);
        if !causes.is_empty() {
            return Err(write.invalid(&causes));
        }
        meta::keep_system_fields(&mut new, old);
        new["apiVersion"] = json!(write.resource.api_version(&write.version));
        let managers = match applied {
            Some(managers) => managers,
            None => after_update(write, &version, old, &new, &given),
        };
        new["apiVersion"] = json!(write.resource.api_version(&write.resource.versions[0].name));
        new["metadata"]["managedFields"] = managers.to_value();
        meta::clear_nulls(&mut new["metadata"]);
        if !write.status
            && meta::has_generation(write.resource.nature)
            && meta::differs_beyond(&new, old, version.status)
        {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            new["metadata"]["generation"] = json!(generation);
        }
        write.check(&version, &new, Some(old))?;
        if is_same(&new, old) {
            return Ok(Done { code: 200, object: Value::clone(old), warnings });
        }
        if write.dry_run {
            return Ok(Done { code: 200, object: new, warnings });
        }
        let goes = meta::text(&new, "deletionTimestamp").is_some() && meta::finalizers(&new).is_empty();
        let object = if goes && write.resource.nature != Nature::Namespace {
            self.removed(&write.resource, &write.id);
            Arc::new(new)
        } else {
            self.put(write, new)
        };
        Ok(Done { code: 200, object: Value::clone(&object), warnings })
    }

    /// Stores `object` as it is, spec and status at once and whatever the rules say today: it may have
    /// been stored under other ones, or by a restore. Versions, managers and finalizers work as ever.
    pub fn rewrite(&mut self, write: &Write, mut object: Value) -> Result<Done, Status> {
        let version = write.served()?.clone();
        let old = Arc::clone(self.found(write)?);
        shape::metadata(&mut object);
        object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        let plain = |object: &Value| {
            let mut object = object.clone();
            meta::clear(&mut object["metadata"], "managedFields");
            object
        };
        let mut managers = Managers::read(&object["metadata"]["managedFields"]);
        let terms = Terms { reset: &[], ..write.terms(&version) };
        managers.update(terms, &plain(&old), &plain(&object), &write.writer(false));
        object["metadata"]["managedFields"] = managers.to_value();
        meta::clear_nulls(&mut object["metadata"]);
        if meta::has_generation(write.resource.nature) && meta::differs_beyond(&object, &old, version.status) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        if is_same(&object, &old) {
            return Ok(Done { code: 200, object: Value::clone(&old), warnings: Vec::new() });
        }
        let goes = meta::text(&object, "deletionTimestamp").is_some() && meta::finalizers(&object).is_empty();
        let object = if goes {
            self.removed(&write.resource, &write.id);
            Arc::new(object)
        } else {
            self.put(write, object)
        };
        Ok(Done { code: 200, object: Value::clone(&object), warnings: Vec::new() })
    }

    /// DELETE of one object.
    pub fn delete(&mut self, write: &Write, options: &DeleteOptions) -> Result<Done, Status> {
        let old = Arc::clone(self.found(write)?);
        let about = About { kind: &write.resource.kind, ..write.about() };
        for (field, label, wanted, perhaps) in [
            ("uid", "UID", &options.uid, "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", &options.resource_version, "modified"),
        ] {
            let found = meta::text(&old, field).unwrap_or_default();
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
                let why = format!(
                    "the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). The \
                     object might have been {perhaps}"
                );
                return Err(Status::conflict(&about, &why));
            }
        }
        let mut object = Value::clone(&old);
        let before = meta::finalizers(&old);
        let extra = match options.propagation {
            Some(Propagation::Background) => None,
            Some(Propagation::Foreground) => Some(FOREGROUND),
            Some(Propagation::Orphan) => Some(ORPHAN),
            // As an earlier deletion said.
            None => [ORPHAN, FOREGROUND].into_iter().find(|finalizer| before.contains(finalizer)),
        };
        let mut finalizers: Vec<String> = meta::finalizers(&object).into_iter().map(str::to_owned).collect();
        finalizers
            .retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN || Some(finalizer.as_str()) == extra);
        if let Some(extra) = extra.filter(|extra| !finalizers.iter().any(|finalizer| finalizer == extra)) {
            finalizers.push(extra.to_owned());
        }
        object["metadata"]["finalizers"] = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
        meta::clear_nulls(&mut object["metadata"]);
        let stays = !finalizers.is_empty() || write.resource.nature == Nature::Namespace;
        if write.dry_run {
            return Ok(Done { code: 200, object, warnings: Vec::new() });
        }
        if !stays && before.len() != finalizers.len() && options.resource_version.is_some() {
            // The API server takes the finalizer away first and then misses the version that was named.
            self.put(write, object);
            return Err(Status::modified(&write.about()));
        }
        if !stays {
            self.removed(&write.resource, &write.id);
            let details = json!({"name": write.id.name, "group": write.resource.group, "kind": write.resource.plural, "uid": old["metadata"]["uid"]});
            let gone =
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            return Ok(Done { code: 200, object: gone, warnings: Vec::new() });
        }
        if meta::text(&object, "deletionTimestamp").is_none() {
            object["metadata"]["deletionTimestamp"] = json!(write.now);
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            if let Some(generation) = old["metadata"]["generation"].as_i64() {
                object["metadata"]["generation"] = json!(generation + 1);
            }
            if write.resource.nature == Nature::Namespace {
                object["status"]["phase"] = json!("Terminating");
            }
        }
        let object = if object == *old { old } else { self.put(write, object) };
        Ok(Done { code: 200, object: Value::clone(&object), warnings: Vec::new() })
    }

    fn found(&self, write: &Write) -> Result<&Arc<Value>, Status> {
        self.store.get(&write.id).ok_or_else(|| Status::not_found(&write.about()))
    }

    /// Whether something may be made in the namespace.
    fn admit(&self, write: &Write) -> Result<(), Status> {
        if !write.resource.namespaced {
            return Ok(());
        }
        let namespace = &write.id.namespace;
        let id =
            Id { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: namespace.clone() };
        match self.store.get(&id) {
            None => Err(Status::not_found(&About { group: "", kind: "namespaces", name: namespace })),
            Some(found) if meta::text(found, "deletionTimestamp").is_some() => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let mut status = Status::forbidden(&write.about(), &why);
                status.details["causes"] = json!([{"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]);
                Err(status)
            }
            Some(_) => Ok(()),
        }
    }

    fn put(&mut self, write: &Write, object: Value) -> Arc<Value> {
        if write.resource.nature == Nature::Definition
            && let Some(resource) = Resource::from_definition(&object)
        {
            self.resources.insert(resource);
        }
        self.store.put(&write.id, object)
    }

    pub(super) fn removed(&mut self, resource: &Resource, id: &Id) {
        if let Some(object) = self.store.remove(id)
            && resource.nature == Nature::Definition
            && let Some(gone) = Resource::from_definition(&object)
        {
            self.resources.remove(&gone.group, &gone.plural);
        }
    }
}

/// The managers after an update that is no apply; `given` are the entries that the request carries.
fn after_update(write: &Write, version: &Version, old: &Value, new: &Value, given: &Value) -> Managers {
    let is_reset =
        !write.status && given.as_array().is_some_and(|entries| entries.is_empty() || *entries == [json!({})]);
    if is_reset {
        return Managers::default();
    }
    let stored = &old["metadata"]["managedFields"];
    let mut managers = Managers::read(if write.status || given.is_null() { stored } else { given });
    if managers == Managers::default() {
        return managers;
    }
    let plain = |object: &Value| {
        let mut object = object.clone();
        meta::clear(&mut object["metadata"], "managedFields");
        object["apiVersion"] = new["apiVersion"].clone();
        object
    };
    managers.update(write.terms(version), &plain(old), &plain(new), &write.writer(false));
    managers
}

/// Whether an update says nothing new; the times of managers do not count.
fn is_same(new: &Value, old: &Value) -> bool {
    let managers = |object: &Value| Managers::read(&object["metadata"]["managedFields"]);
    let same_but = |field: &str| {
        let strip = |object: &Value| {
            let mut object = object.clone();
            meta::clear(&mut object["metadata"], field);
            object
        };
        strip(new) == strip(old)
    };
    new == old || (same_but("managedFields") && managers(new).says_the_same(&managers(old)))
}

/// An operation of a JSON patch as the API server's library understands it and ours does not: `test` of null
/// against a field that is not there holds, and `replace` adds such a field. `None` if it does nothing.
fn as_understood(operation: &Value, object: &Value) -> Option<Value> {
    let mut operation = operation.clone();
    let path = operation["path"].as_str().unwrap_or_default();
    if object.pointer(path).is_some() {
        return Some(operation);
    }
    let is_in_map = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent)).is_some_and(Value::is_object);
    if operation["op"] == "test" && operation["value"].is_null() {
        return None;
    }
    if operation["op"] == "replace" && is_in_map {
        operation["op"] = json!("add");
    }
    Some(operation)
}
