//! The CEL rules of a kind (`x-kubernetes-validations`), compiled once.

use std::{collections::BTreeMap, fmt};

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::apiserver::status::Cause;

/// The rules of one version of a kind.
pub struct Rules {
    /// `None` where the schema has no rules: then nothing is evaluated.
    compiled: Option<(CompiledSchema, Validator)>,
    /// Where the rules that say so report what is wrong, from the place that they are about.
    field_paths: BTreeMap<String, String>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rules({})", self.compiled.is_some())
    }
}

impl Rules {
    /// Compiles the rules in `openAPIV3Schema`.
    pub fn compile(schema: &Value) -> Self {
        let mut field_paths = BTreeMap::new();
        collect_field_paths(schema, &mut field_paths);
        Self { compiled: has_rules(schema).then(|| (compile_schema(schema), Validator::new())), field_paths }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.compiled.is_none()
    }

    /// The rules that `object` breaks. A rule about what an update leaves as it was is not asked.
    pub fn broken_by(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let Some((compiled, validator)) = &self.compiled else { return Vec::new() };
        let Err(errors) = validator.validate_compiled(compiled, object, old) else { return Vec::new() };
        let causes = errors.into_vec().into_iter().filter(|error| {
            old.is_none_or(|old| {
                // A rule is about the place where it stands, not about the field that it reports.
                let reported = self.field_paths.get(&error.rule).map_or("", String::as_str);
                let place = error.field_path.strip_suffix(reported).unwrap_or(&error.field_path);
                let before = at(old, place);
                before.is_none() || before != at(object, place)
            })
        });
        causes
            .map(|error| {
                let field = match error.field_path.trim_start_matches('.') {
                    "" => "<nil>".to_owned(),
                    field => field.to_owned(),
                };
                let (reason, word) = match error.reason.as_deref() {
                    Some("FieldValueForbidden") => ("FieldValueForbidden", "Forbidden"),
                    Some("FieldValueRequired") => ("FieldValueRequired", "Required value"),
                    Some("FieldValueDuplicate") => ("FieldValueDuplicate", "Duplicate value"),
                    Some(_) | None => ("FieldValueInvalid", "Invalid value"),
                };
                Cause::new(reason, field, format!("{word}: {}", error.message))
            })
            .collect()
    }
}

fn collect_field_paths(schema: &Value, found: &mut BTreeMap<String, String>) {
    let text = |rule: &Value, field: &str| rule[field].as_str().map(str::to_owned);
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        if let (Some(rule), Some(path)) = (text(rule, "rule"), text(rule, "fieldPath")) {
            found.insert(rule, path);
        }
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|value| collect_field_paths(value, found)),
        Value::Array(items) => items.iter().for_each(|item| collect_field_paths(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| (name == "x-kubernetes-validations" && value.is_array()) || has_rules(value)),
        Value::Array(items) => items.iter().any(has_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What stands at a path such as `spec.addons[0].name`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        value = match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            Value::Object(fields) => fields.get(step.trim_matches('"'))?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_holds_for_what_is_new_and_for_transitions() {
        let rules = Rules::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "not bad"}]},
            "b": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]},
        }}}}));
        let object = |a: &str, b: &str| json!({"spec": {"a": a, "b": b}});
        assert!(rules.broken_by(&object("good", "x"), None).is_empty());
        assert_eq!(rules.broken_by(&object("bad", "x"), None)[0].field, "spec.a");
        assert!(rules.broken_by(&object("bad", "x"), Some(&object("bad", "x"))).is_empty(), "it was there before");
        assert_eq!(rules.broken_by(&object("good", "y"), Some(&object("good", "x")))[0].field, "spec.b");
    }

    #[test]
    fn a_rule_is_asked_when_its_place_changes_wherever_it_reports() {
        let rules = Rules::compile(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "!has(self.a) || !has(self.b)", "message": "not both", "fieldPath": ".a"}],
        }}}));
        let (both, one) = (json!({"spec": {"a": "1", "b": "1"}}), json!({"spec": {"a": "1"}}));
        assert_eq!(rules.broken_by(&both, Some(&one))[0].field, "spec.a");
        assert!(rules.broken_by(&both, Some(&both)).is_empty());
    }
}
