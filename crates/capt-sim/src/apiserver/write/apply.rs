//! PATCH with `application/apply-patch+yaml`: server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiServer, Done, Write};
use crate::apiserver::{
    fields::{
        managed::{Managers, Writer},
        typed,
    },
    meta,
    resources::{Nature, Version},
    schema::shape,
    status::{About, Cause, Status},
};

impl ApiServer {
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
        let mut merged = managers
            .apply(write.terms(&version), &live, &config, &writer, force)
            .map_err(|conflicts| Status::apply_conflict(&conflicts))?;
        let warnings = write.shaped(&version, &mut merged)?;
        self.updated(write, &version, &old, merged, Some(managers), warnings)
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
}
