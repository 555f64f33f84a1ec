//! What of an object two runs must have in common, whenever things happened in them.

use serde_json::{Value, json};

/// Names of fields that tell when and how, which a fault may change.
const VOLATILE: [&str; 22] = [
    // Of managed fields.
    "time",
    "uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastAppliedTime",
    "lastAttemptTime",
    "nextAttemptTime",
    // Since when, and whether one that has passed is still told after the clock went back.
    "deadlines",
    "progress",
    "recovery",
    "crossplane.io/reconcile-requested-at",
    "lastAppliedRevision",
    "lastFailedRevision",
    "crossplane.io/external-create-pending",
    "crossplane.io/external-create-succeeded",
    "crossplane.io/external-create-failed",
    "capt.cluster.x-k8s.io/owner-uid",
    // What core took over of a failure, which it never takes back.
    "deprecated",
];

/// What of `value` does not depend on when things happened.
pub fn lasting(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
            let mut kept: serde_json::Map<String, Value> =
                kept.map(|(name, field)| (name.clone(), lasting(field))).collect();
            if let Some(Value::Array(conditions)) = kept.get_mut("conditions") {
                // Says that something was pending once, if only in a view that was behind.
                conditions.retain(|condition| condition["reason"] != "NothingPending");
                conditions.sort_by_key(|condition| condition["type"].to_string());
            }
            if let Some(Value::Array(managed)) = kept.get_mut("managedFields") {
                // In the order of their times.
                managed.sort_by_key(ToString::to_string);
            }
            kept.retain(|_, field| !field.is_null() && *field != json!({}));
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(lasting).collect(),
        // Messages say which uid an annotation has to name.
        Value::String(text) if text.contains("uid-") => Value::String(without_uids(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn without_uids(text: &str) -> String {
    let mut parts = text.split("uid-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "uid" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The first place where two values differ.
pub fn difference(path: &str, wanted: &Value, found: &Value) -> String {
    if let (Value::Object(wanted), Value::Object(found)) = (wanted, found) {
        for name in wanted.keys().chain(found.keys()) {
            let (wanted, found) = (wanted.get(name).unwrap_or(&Value::Null), found.get(name).unwrap_or(&Value::Null));
            if wanted != found {
                return difference(&format!("{path}/{name}"), wanted, found);
            }
        }
    }
    if let (Value::Array(wanted), Value::Array(found)) = (wanted, found)
        && wanted.len() == found.len()
        && let Some(index) = (0..wanted.len()).find(|index| wanted[*index] != found[*index])
    {
        return difference(&format!("{path}/{index}"), &wanted[index], &found[index]);
    }
    let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
    format!("{path} is {} and not {}", short(found), short(wanted))
}
