//! Small changes of JSON that scenarios need.

use serde_json::Value;

/// `value` with every string that is `from` replaced by `to`.
pub(super) fn renamed(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) if text == from => Value::String(to.to_owned()),
        Value::Array(items) => items.iter().map(|item| renamed(item, from, to)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), renamed(field, from, to))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The beginning of a value, for messages.
pub(super) fn start(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
