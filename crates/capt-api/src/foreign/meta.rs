//! Metadata and conditions of any object, and the accessors that the other views are made of.

use std::collections::BTreeMap;

use capt_status::Time;
use serde_json::Value;

/// `metadata` of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewMeta {
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name; empty if it is missing.
    pub name: String,
    /// Uid; empty if it is missing, as in a file.
    pub uid: String,
    /// Resource version; empty if it is missing.
    pub resource_version: String,
    /// Generation; 0 if it is missing.
    pub generation: i64,
    /// When the API server took it; absent in a file.
    pub created: Option<Time>,
    /// Whether a deletion timestamp is set.
    pub deleting: bool,
    /// Labels with a string as value.
    pub labels: BTreeMap<String, String>,
    /// Annotations with a string as value.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Owner references that name a kind and an object.
    pub owner_references: Vec<OwnerView>,
}

/// An owner reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OwnerView {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid; empty if it is missing.
    pub uid: String,
    /// Whether the owner is the controller.
    pub controller: bool,
}

impl OwnerView {
    /// Group of the owner; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// A condition of somebody's object: only type and status are sure to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ForeignCondition {
    /// `True`, `False`, `Unknown`, or whatever stands there.
    pub status: String,
    /// Reason; empty if absent.
    pub reason: String,
    /// Message; empty if absent.
    pub message: String,
    /// Generation that it was set upon.
    pub observed_generation: Option<i64>,
    /// When the status changed, as it is written there.
    pub last_transition_time: Option<String>,
}

impl ForeignCondition {
    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether the status is `False`.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }
}

impl ViewMeta {
    /// Metadata of `object`.
    pub fn parse(object: &Value) -> Self {
        let meta = &object["metadata"];
        Self {
            namespace: text(meta, "namespace").filter(|namespace| !namespace.is_empty()),
            name: text(meta, "name").unwrap_or_default(),
            uid: text(meta, "uid").unwrap_or_default(),
            resource_version: text(meta, "resourceVersion").unwrap_or_default(),
            generation: meta["generation"].as_i64().unwrap_or_default(),
            created: meta["creationTimestamp"].as_str().and_then(|time| time.parse().ok()),
            deleting: !meta["deletionTimestamp"].is_null(),
            labels: texts(&meta["labels"]),
            annotations: texts(&meta["annotations"]),
            finalizers: list(&meta["finalizers"]).filter_map(Value::as_str).map(str::to_owned).collect(),
            owner_references: list(&meta["ownerReferences"]).filter_map(owner).collect(),
        }
    }
}

fn owner(reference: &Value) -> Option<OwnerView> {
    Some(OwnerView {
        api_version: text(reference, "apiVersion").unwrap_or_default(),
        kind: text(reference, "kind")?,
        name: text(reference, "name")?,
        uid: text(reference, "uid").unwrap_or_default(),
        controller: flag(&reference["controller"]),
    })
}

/// The condition of type `type_` in a list of conditions.
pub(super) fn condition(conditions: &Value, type_: &str) -> Option<ForeignCondition> {
    let found = list(conditions).find(|condition| condition["type"] == type_)?;
    Some(ForeignCondition {
        status: text(found, "status")?,
        reason: text(found, "reason").unwrap_or_default(),
        message: text(found, "message").unwrap_or_default(),
        observed_generation: found["observedGeneration"].as_i64(),
        last_transition_time: text(found, "lastTransitionTime"),
    })
}

/// A string field.
pub(super) fn text(object: &Value, field: &str) -> Option<String> {
    object[field].as_str().map(str::to_owned)
}

/// Whether the value is `true`.
pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    map.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The items of a list; none if it is none.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
