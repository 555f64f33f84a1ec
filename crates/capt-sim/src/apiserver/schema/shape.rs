//! Unknown fields, nulls and defaults: what the API server does to an object before it looks at it.

use serde_json::Value;

use super::Schema;

/// Drops what the schema does not know; the paths of what was dropped, such as `spec.color`.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune_at(schema, value, "", &mut dropped);
    dropped
}

fn prune_at(schema: &Schema, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                let known = schema.knows(name);
                if !known {
                    dropped.push(join(path, name));
                }
                known
            });
            for (name, value) in fields {
                prune_at(schema.field(name).0, value, &join(path, name), dropped);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(schema.item(), item, &format!("{path}[{index}]"), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in defaults, and drops nulls of fields that cannot be null.
pub fn default(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                match (&property.default, fields.get(name)) {
                    (Some(default), None) => {
                        fields.insert(name.clone(), default.clone());
                    }
                    (Some(default), Some(Value::Null)) if !property.nullable => {
                        fields.insert(name.clone(), default.clone());
                    }
                    (Some(_) | None, _) => {}
                }
            }
            fields.retain(|name, value| !value.is_null() || schema.field(name).0.nullable);
            for (name, value) in fields {
                default(schema.field(name).0, value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| default(schema.item(), item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The fields of ObjectMeta; others do not survive.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Puts the metadata into the form in which it is stored; the paths of what was dropped.
pub fn metadata(object: &mut Value) -> Vec<String> {
    let dropped = known_metadata(object);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        // `managedFields: []` is a word of its own: forget who manages what.
        metadata.retain(|name, value| name == "managedFields" || !is_empty(value));
    }
    dropped
}

/// Drops the metadata that no object has; the paths of it.
pub fn known_metadata(object: &mut Value) -> Vec<String> {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return Vec::new() };
    let is_known = |name: &String| METADATA.contains(&name.as_str());
    let dropped = metadata.keys().filter(|name| !is_known(name)).map(|name| format!("metadata.{name}")).collect();
    metadata.retain(|name, _| is_known(name));
    // What an owner reference does not say is empty, and is refused as that.
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if let Some(owner) = owner.as_object_mut() {
                owner.entry(field).or_insert_with(|| Value::from(""));
            }
        }
    }
    dropped
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        }}));
        let mut value =
            json!({"a": {"b": "1", "c": "2"}, "free": {"q": 1}, "map": {"k": {"x": "1", "y": "2"}}, "z": 1});
        assert_eq!(prune(&schema, &mut value), ["z", "a.c", "map.k.y"]);
        assert_eq!(value, json!({"a": {"b": "1"}, "free": {"q": 1}, "map": {"k": {"x": "1"}}}));
    }

    #[test]
    fn defaults_fill_what_is_absent_or_null_and_nulls_go() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
            "n": {"type": "string", "nullable": true},
            "m": {"type": "string"},
            "d": {"type": "integer", "default": 3},
        }}));
        let mut value = json!({"n": null, "m": null, "d": null});
        default(&schema, &mut value);
        assert_eq!(value, json!({"a": {"b": "x"}, "n": null, "d": 3}));
    }

    #[test]
    fn empty_metadata_is_no_metadata() {
        let mut object = json!({"metadata": {"name": "a", "labels": {}, "colour": "x", "managedFields": []}});
        assert_eq!(metadata(&mut object), ["metadata.colour"]);
        assert_eq!(object, json!({"metadata": {"name": "a", "managedFields": []}}));
    }
}
