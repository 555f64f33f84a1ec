//! What a schema demands of an object, but for CEL rules.
//!
//! What an update leaves as it was is not judged again (ratcheting), so that an object that was stored
//! under an older schema stays writable.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{ListType, Schema, Type};
use crate::apiserver::status::Cause;

/// What is wrong with `value`; `old` is what stood there before an update.
pub fn validate(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    validate_at(schema, value, old, "", &mut causes);
    causes
}

fn validate_at(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    if old == Some(value) || (value.is_null() && schema.nullable) {
        return;
    }
    let mut wrong = |reason, message: String| causes.push(Cause::new(reason, path, message));
    if !fits(schema.type_, value) {
        let message = format!(
            "Invalid value: \"{}\": must be of type {}: \"{}\"",
            type_name(value),
            expected(schema.type_),
            type_name(value)
        );
        return wrong("FieldValueTypeInvalid", message);
    }
    if !schema.values.is_empty() && !schema.values.contains(value) {
        let allowed: Vec<String> = schema.values.iter().map(ToString::to_string).collect();
        wrong(
            "FieldValueNotSupported",
            format!("Unsupported value: {value}: supported values: {}", allowed.join(", ")),
        );
    }
    match value {
        Value::String(text) => text_at(schema, text, &mut wrong),
        Value::Number(number) => {
            let number_value = number.as_f64().unwrap_or_default();
            if let Some(least) = schema.range.0.filter(|least| number_value < *least) {
                let message = format!("Invalid value: {number}: should be greater than or equal to {least}");
                wrong("FieldValueInvalid", message);
            }
            if let Some(most) = schema.range.1.filter(|most| number_value > *most) {
                wrong("FieldValueInvalid", format!("Invalid value: {number}: should be less than or equal to {most}"));
            }
        }
        Value::Array(items) => {
            bounds(schema, items.len(), "item", &mut wrong);
            list_at(schema, items, old, path, causes);
        }
        Value::Object(fields) => {
            bounds(schema, fields.len(), "propertie", &mut wrong);
            for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
                causes.push(Cause::new("FieldValueRequired", join(path, name), "Required value"));
            }
            for (name, value) in fields {
                let old = old.and_then(|old| old.get(name));
                validate_at(schema.field(name).0, value, old, &join(path, name), causes);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn text_at(schema: &Schema, text: &str, wrong: &mut impl FnMut(&'static str, String)) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema.size.1.filter(|most| length > *most) {
        wrong("FieldValueTooLong", format!("Too long: may not be more than {most} bytes"));
    }
    if let Some(least) = schema.size.0.filter(|least| length < *least) {
        wrong("FieldValueInvalid", format!("Invalid value: \"{text}\": should be at least {least} chars long"));
    }
    if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        wrong("FieldValueInvalid", format!("Invalid value: \"{text}\": should match '{pattern}'"));
    }
    let formatted = match schema.format.as_str() {
        // What the API server's own parser takes is a little more; what it refuses is the same.
        "date-time" => text.parse::<capt_status::Time>().is_ok(),
        "byte" => STANDARD.decode(text).is_ok(),
        _ => true,
    };
    if !formatted {
        let format = &schema.format;
        wrong("FieldValueInvalid", format!("Invalid value: \"{text}\": must be of type {format}: \"{text}\""));
    }
}

fn bounds(schema: &Schema, size: usize, unit: &str, wrong: &mut impl FnMut(&'static str, String)) {
    let size = size as u64;
    if let Some(most) = schema.size.1.filter(|most| size > *most) {
        wrong("FieldValueTooMany", format!("Too many: {size}: must have at most {most} {unit}s"));
    }
    if let Some(least) = schema.size.0.filter(|least| size < *least) {
        wrong("FieldValueInvalid", format!("Invalid value: {size}: should have at least {least} {unit}s"));
    }
}

fn list_at(schema: &Schema, items: &[Value], old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let key = |item: &Value| -> Option<Vec<Value>> {
        match &schema.list {
            ListType::Atomic => None,
            ListType::Set => Some(vec![item.clone()]),
            ListType::Map(keys) => Some(keys.iter().map(|key| item[key].clone()).collect()),
        }
    };
    let before = old.and_then(Value::as_array);
    let mut seen = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        // Only items with a key can be told to be the same as before.
        let was = key(item).and_then(|key_of| before?.iter().find(|old| key(old).as_ref() == Some(&key_of)));
        validate_at(schema.item(), item, was, &path, causes);
        if let Some(key) = key(item) {
            if seen.contains(&key) {
                causes.push(Cause::new("FieldValueDuplicate", path, format!("Duplicate value: {item}")));
            }
            seen.push(key);
        }
    }
}

fn fits(type_: Type, value: &Value) -> bool {
    match type_ {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || value.is_i64() || value.is_u64(),
    }
}

fn expected(type_: Type) -> &'static str {
    match type_ {
        Type::Any => "any",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::IntOrString => "integer,string",
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<(String, &'static str)> {
        validate(&Schema::parse(schema), value, old).into_iter().map(|cause| (cause.field, cause.reason)).collect()
    }

    #[test]
    fn each_demand_of_a_schema_is_checked() {
        for (schema, value, reason) in [
            (json!({"type": "string"}), json!(1), "FieldValueTypeInvalid"),
            (json!({"type": "integer"}), json!(1.5), "FieldValueTypeInvalid"),
            (json!({"type": "string", "enum": ["a"]}), json!("b"), "FieldValueNotSupported"),
            (json!({"type": "string", "pattern": "^a+$"}), json!("b"), "FieldValueInvalid"),
            (json!({"type": "string", "maxLength": 1}), json!("bb"), "FieldValueTooLong"),
            (json!({"type": "string", "minLength": 1}), json!(""), "FieldValueInvalid"),
            (json!({"type": "string", "format": "date-time"}), json!("x"), "FieldValueInvalid"),
            (json!({"type": "integer", "minimum": 1}), json!(0), "FieldValueInvalid"),
            (json!({"type": "integer", "maximum": 1}), json!(2), "FieldValueInvalid"),
            (json!({"type": "array", "maxItems": 1}), json!([1, 2]), "FieldValueTooMany"),
            (json!({"type": "array", "x-kubernetes-list-type": "set"}), json!([1, 1]), "FieldValueDuplicate"),
            (json!({"type": "object", "required": ["a"]}), json!({}), "FieldValueRequired"),
            (json!({"type": "object", "maxProperties": 0}), json!({"a": 1}), "FieldValueTooMany"),
        ] {
            let found = fields(&schema, &value, None);
            assert_eq!(found.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), [reason], "{schema} {value}");
        }
    }

    #[test]
    fn what_was_there_before_is_not_judged_again() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "maxLength": 1},
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        }});
        let old = json!({"a": "too long", "l": [{"k": "x", "v": 9}]});
        assert!(fields(&schema, &old, Some(&old)).is_empty());
        let new = json!({"a": "still too long", "l": [{"k": "y", "v": 1}, {"k": "x", "v": 9}]});
        assert_eq!(fields(&schema, &new, Some(&old)), [("a".to_owned(), "FieldValueTooLong")]);
    }
}
