//! The CEL rules of a kind (`x-kubernetes-validations`), compiled once.

use std::fmt;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::apiserver::status::Cause;

/// The rules of one version of a kind.
pub struct Rules {
    /// `None` where the schema has no rules: then nothing is evaluated.
    compiled: Option<(CompiledSchema, Validator)>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rules({})", self.compiled.is_some())
    }
}

impl Rules {
    /// Compiles the rules in `openAPIV3Schema`.
    pub fn compile(schema: &Value) -> Self {
        Self { compiled: has_rules(schema).then(|| (compile_schema(schema), Validator::new())) }
    }

    /// The rules that `object` breaks. A rule about what an update leaves as it was is not asked.
    pub fn broken_by(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let Some((compiled, validator)) = &self.compiled else { return Vec::new() };
        let Err(errors) = validator.validate_compiled(compiled, object, old) else { return Vec::new() };
        let causes = errors.into_vec().into_iter().filter(|error| {
            old.is_none_or(|old| {
                let before = at(old, &error.field_path);
                before.is_none() || before != at(object, &error.field_path)
            })
        });
        causes
            .map(|error| {
                let field = if error.field_path.is_empty() { "<nil>".to_owned() } else { error.field_path };
                Cause::new("FieldValueInvalid", field, format!("Invalid value: {}", error.message))
            })
            .collect()
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
}
