//! Wire type of the dependency graph (requirements 003): nodes by key, edges from dependent to dependency.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

/// The objects an object depends on; at most 32 nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Dependencies {
    /// Objects, by "Kind/namespace/name".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(extend("maxProperties" = 32)))]
    pub nodes: BTreeMap<String, DependencyNode>,
    /// For each object, the keys of the objects it depends on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "edges"))]
    pub edges: BTreeMap<String, Vec<String>>,
    /// Whether objects were left out to stay within the limit.
    #[serde(default)]
    pub truncated: bool,
}

#[cfg(feature = "schemars")]
fn edges(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    // A key holds a kind, a namespace and a name.
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 512}},
    })
}

/// One object of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct DependencyNode {
    /// Kind of the object.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 253)))]
    pub type_: String,
    /// Name of the object.
    #[cfg_attr(feature = "schemars", schemars(length(max = 253)))]
    pub name: String,
    /// Namespace of the object; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 63)))]
    pub namespace: Option<String>,
    /// Its state in one word.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub status: String,
}
