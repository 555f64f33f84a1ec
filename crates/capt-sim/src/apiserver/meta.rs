//! Metadata and the few rules of built-in kinds.
//!
//! What the API server adds to, keeps of and demands from the metadata of any object.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    resources::{Nature, Resource},
    status::Cause,
};

/// A text in the metadata that is there and not empty.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object["metadata"][field].as_str().filter(|text| !text.is_empty())
}

/// The finalizers.
pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Removes a field.
pub(super) fn clear(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

/// Removes fields that are null.
pub(super) fn clear_nulls(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

/// Whether objects of this nature count their changes.
pub(super) fn has_generation(nature: Nature) -> bool {
    match nature {
        Nature::Custom | Nature::Definition => true,
        Nature::Namespace | Nature::Secret | Nature::Event | Nature::Plain => false,
    }
}

/// What is written into an object of a built-in kind that says it in another way.
pub(super) fn completed(nature: Nature, object: &mut Value) {
    match nature {
        Nature::Secret => {
            if let Some(Value::Object(texts)) = object.get_mut("stringData").map(Value::take) {
                for (name, value) in texts {
                    object["data"][name] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
                }
            }
            clear(object, "stringData");
            if object["type"].as_str().is_none_or(str::is_empty) {
                object["type"] = json!("Opaque");
            }
            without_empty_data(object);
        }
        Nature::Plain => without_empty_data(object),
        Nature::Custom | Nature::Namespace | Nature::Definition | Nature::Event => {}
    }
}

fn without_empty_data(object: &mut Value) {
    if object["data"].is_null() || object["data"].as_object().is_some_and(serde_json::Map::is_empty) {
        clear(object, "data");
    }
}

/// What an object of a built-in kind has from the beginning.
pub(super) fn born(nature: Nature, object: &mut Value) {
    match nature {
        Nature::Namespace => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        Nature::Definition => {
            let now = object["metadata"]["creationTimestamp"].clone();
            let condition = |type_: &str, reason: &str, message: &str| json!({"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
            let versions = object["spec"]["versions"].as_array().cloned().unwrap_or_default();
            let stored =
                versions.iter().find(|version| version["storage"] == true).map(|version| version["name"].clone());
            object["status"] = json!({
                "acceptedNames": object["spec"]["names"],
                "storedVersions": [stored],
                "conditions": [
                    condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                    condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                ],
            });
            object["metadata"]["finalizers"] = json!([CLEANUP]);
        }
        Nature::Custom | Nature::Secret | Nature::Event | Nature::Plain => {}
    }
}

/// Finalizer of a CRD until its objects are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fields of the metadata that a request tries to change and cannot.
pub(super) fn fixed_fields(new: &Value, old: &Value) -> Vec<Cause> {
    let uid = text(new, "uid").filter(|uid| Some(*uid) != text(old, "uid"));
    let changed = uid.map(|uid| {
        Cause::new("FieldValueInvalid", "metadata.uid", format!("Invalid value: \"{uid}\": field is immutable"))
    });
    changed.into_iter().collect()
}

/// Restores what only the API server writes.
pub(super) fn keep_system_fields(new: &mut Value, old: &Value) {
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "namespace",
        "name",
    ] {
        match old["metadata"].get(field) {
            Some(value) => new["metadata"][field] = value.clone(),
            None => clear(&mut new["metadata"], field),
        }
    }
}

/// Whether the objects differ beyond metadata and, if it is apart, status.
pub(super) fn differs_beyond(new: &Value, old: &Value, status_apart: bool) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        clear(&mut object, "metadata");
        clear(&mut object, "apiVersion");
        if status_apart {
            clear(&mut object, "status");
        }
        object
    };
    strip(new) != strip(old)
}

/// Rules about metadata that `object` breaks.
pub(super) fn broken_rules(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "name").unwrap_or_default();
    if old.is_none() && !is_subdomain(name) {
        let label = if resource.nature == Nature::Namespace { "label" } else { "subdomain" };
        causes.push(Cause::new("FieldValueInvalid", "metadata.name", format!("Invalid value: \"{name}\": a lowercase RFC 1123 {label} must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character")));
    }
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        if !is_qualified(key) {
            causes.push(Cause::new("FieldValueInvalid", "metadata.labels", format!("Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character")));
        }
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 || (!value.is_empty() && !is_name(value)) {
            causes.push(Cause::new("FieldValueInvalid", "metadata.labels", format!("Invalid value: \"{value}\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character")));
        }
    }
    for (index, finalizer) in finalizers(object).into_iter().enumerate() {
        let is_known = match resource.nature {
            Nature::Custom | Nature::Definition => true,
            Nature::Namespace | Nature::Secret | Nature::Event | Nature::Plain => {
                finalizer.contains('/') || ["foregroundDeletion", "kubernetes", "orphan"].contains(&finalizer)
            }
        };
        let mut wrong = |field: String, what: &str| {
            causes.push(Cause::new("FieldValueInvalid", field, format!("Invalid value: \"{finalizer}\": {what}")));
        };
        if !is_qualified(finalizer) {
            let what = "name part must consist of alphanumeric characters, '-', '_' or '.'";
            wrong("metadata.finalizers".to_owned(), what);
        }
        if !is_known {
            let what = "name is neither a standard finalizer name nor is it fully qualified";
            wrong(format!("metadata.finalizers[{index}]"), what);
        }
    }
    for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::new(
                    "FieldValueInvalid",
                    format!("metadata.ownerReferences.{field}"),
                    "Invalid value: \"\": must not be empty",
                ));
            }
        }
    }
    let controllers = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|owner| owner["controller"] == true);
    if controllers.count() > 1 {
        causes.push(Cause::new(
            "FieldValueInvalid",
            "metadata.ownerReferences",
            "Invalid value: Only one reference can have Controller set to true",
        ));
    }
    if let Some(old) = old.filter(|old| text(old, "deletionTimestamp").is_some()) {
        let before = finalizers(old);
        let added: Vec<&str> = finalizers(object).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            causes.push(Cause::new("FieldValueForbidden", "metadata.finalizers", format!("Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}")));
        }
    }
    if let (Nature::Secret, Some(old)) = (resource.nature, old) {
        if old["type"] != object["type"] {
            causes.push(Cause::new(
                "FieldValueInvalid",
                "type",
                format!("Invalid value: {}: field is immutable", object["type"]),
            ));
        }
        if old["immutable"] == true && (old["data"] != object["data"] || object["immutable"] != true) {
            causes.push(Cause::new(
                "FieldValueForbidden",
                "data",
                "Forbidden: field is immutable when `immutable` is set",
            ));
        }
    }
    if resource.nature == Nature::Secret {
        for (name, value) in object["data"].as_object().into_iter().flatten() {
            if value.as_str().is_none_or(|text| STANDARD.decode(text).is_err()) {
                causes.push(Cause::new("FieldValueInvalid", format!("data[{name}]"), "Invalid value: not base64"));
            }
        }
    }
    causes
}

fn is_subdomain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && text.starts_with(|character: char| character.is_ascii_alphanumeric())
        && text.ends_with(|character: char| character.is_ascii_alphanumeric())
}

pub(super) fn is_qualified(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && name.len() <= 63 && is_name(name)
}
