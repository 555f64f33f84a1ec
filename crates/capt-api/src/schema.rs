//! Shapes that a derive cannot express: bounded maps, free-form objects, conditions as a map.
//!
//! Bounds here are far above anything in use; they exist so that the API server can tell the cost
//! of a rule and no object grows without end.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Longest text that fits into an object at all: etcd takes requests of at most 1.5 MiB.
pub(crate) const MAX_TEXT: u64 = 1_572_864;

/// Longest name of a Kubernetes object.
pub(crate) const MAX_NAME: u64 = 253;

/// A map of strings with at most `ENTRIES` entries of at most `LENGTH` characters.
pub(crate) fn string_map<const ENTRIES: u64, const LENGTH: u64>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": ENTRIES,
        "additionalProperties": {"type": "string", "maxLength": LENGTH},
    })
}

/// A list of at most `ITEMS` strings of at most `LENGTH` characters.
pub(crate) fn string_list<const ITEMS: u64, const LENGTH: u64>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": ITEMS,
        "items": {"type": "string", "maxLength": LENGTH},
    })
}

/// An object of any content, kept as it is.
pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Any JSON value, kept as it is.
pub(crate) fn free_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A list of `T` that is a map by the field `type`, for server-side apply.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": generator.subschema_for::<capt_status::Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// A list of `T` that is a map by the field `name`, for server-side apply.
pub(crate) fn map_by_name<T: JsonSchema, const ITEMS: u64>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": ITEMS,
        "items": generator.subschema_for::<T>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    })
}
