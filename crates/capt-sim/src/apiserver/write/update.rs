//! PUT and PATCH, and everything that follows once it is known what an object becomes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiServer, Done, Write};
use crate::apiserver::{
    fields::managed::{Managers, Terms},
    meta,
    resources::{Nature, Version},
    schema::shape,
    status::{About, Cause, Status},
};

/// Which documents a PATCH carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386. A strategic merge patch of the built-in kinds here is nothing else.
    Merge,
    /// RFC 6902.
    Json,
}

impl ApiServer {
    /// PUT.
    pub fn replace(&mut self, write: &Write, mut object: Value) -> Result<Done, Status> {
        let version = write.served()?.clone();
        write.matches_path(&object)?;
        // What cannot be decoded is refused before anybody looks whether it is there.
        let warnings = write.shaped(&version, &mut object)?;
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
        self.updated(write, &version, &old, object, None, warnings)
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
        let version = write.served()?.clone();
        // What a patch makes is decoded as the value of a field.
        let warnings = write.shaped(&version, &mut new).map_err(|status| {
            let cause = Cause::new("FieldValueInvalid", "patch", format!("Invalid value: {}", status.message));
            Status::invalid(&About { group: "", kind: "", name: "" }, &[cause])
        })?;
        self.updated(write, &version, &old, new, None, warnings)
    }

    /// Everything that follows once it is known what `old` becomes.
    pub(super) fn updated(
        &mut self,
        write: &Write,
        version: &Version,
        old: &Arc<Value>,
        mut new: Value,
        applied: Option<Managers>,
        warnings: Vec<String>,
    ) -> Result<Done, Status> {
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
            None => after_update(write, version, old, &new, &given),
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
        write.check(version, &new, Some(old))?;
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
