//! DELETE, with preconditions, finalizers and what happens to children.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiServer, Done, Write};
use crate::apiserver::{
    meta,
    resources::Nature,
    status::{About, Status},
};

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

impl ApiServer {
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
}
