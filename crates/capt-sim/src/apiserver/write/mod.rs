//! Writes: create, update, patch, apply and delete, as the generic registry of the API server does them.
//!
//! The order of the steps is the API server's, since it decides which of several faults is reported.

mod apply;
mod delete;
mod update;

use std::sync::Arc;

use capt_status::Time;
use serde_json::{Value, json};

use super::{
    ApiServer,
    fields::managed::{Managers, Terms, Writer},
    meta,
    resources::{Nature, Resource, Version},
    schema::{shape, validate::validate},
    status::{About, Cause, Status},
    store::Id,
};
pub use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub use update::PatchKind;

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

impl Write {
    pub(in crate::apiserver) fn about(&self) -> About<'_> {
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

    pub(in crate::apiserver) fn removed(&mut self, resource: &Resource, id: &Id) {
        if let Some(object) = self.store.remove(id)
            && resource.nature == Nature::Definition
            && let Some(gone) = Resource::from_definition(&object)
        {
            self.resources.remove(&gone.group, &gone.plural);
        }
    }
}
