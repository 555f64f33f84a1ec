//! What differs between a live Workspace spec and a rendered one, by meaning.
//!
//! The API server fills in defaults and the provider drops empty lists when it writes an object
//! back, so bytes prove nothing. Fields of the Workspace API that we know are ours as a whole: one
//! that is no longer rendered is removed. Fields that we do not know are somebody else's and stay.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Fields of `spec` that a rendering owns. `publishConnectionDetailsTo` is not among them: newer
/// providers prune it, so it would differ for ever.
const SPEC: [&str; 4] = ["deletionPolicy", "managementPolicies", "providerConfigRef", "writeConnectionSecretToRef"];

/// Fields of `spec.forProvider` that a rendering owns.
const FOR_PROVIDER: [&str; 14] = [
    "module",
    "source",
    "inlineFormat",
    "entrypoint",
    "env",
    "vars",
    "varmap",
    "varFiles",
    "initArgs",
    "planArgs",
    "applyArgs",
    "destroyArgs",
    "enableTerraformCLILogging",
    "remotePullPolicy",
];

/// A difference: the merge patch of `spec` that removes it, and the fields it touches.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Merge patch of `spec`.
    pub patch: Value,
    /// Paths below `spec`.
    pub fields: Vec<String>,
}

/// What must change in `live` so that it means the same as `rendered`.
pub fn difference(rendered: &Value, live: &Value) -> Option<Difference> {
    let mut fields = Vec::new();
    let mut patch = changes(rendered, live, &SPEC, "", &mut fields);
    let for_provider =
        changes(&rendered["forProvider"], &live["forProvider"], &FOR_PROVIDER, "forProvider.", &mut fields);
    if !for_provider.is_empty() {
        patch.insert("forProvider".to_owned(), Value::Object(for_provider));
    }
    (!patch.is_empty()).then_some(Difference { patch: Value::Object(patch), fields })
}

fn changes(
    rendered: &Value,
    live: &Value,
    owned: &[&str],
    prefix: &str,
    fields: &mut Vec<String>,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in owned {
        let (want, have) = (rendered.get(name), live.get(name));
        if meaning(name, want) != meaning(name, have) {
            fields.extend(names(&format!("{prefix}{name}"), want, have));
            patch.insert((*name).to_owned(), merge(want, have));
        }
    }
    patch
}

/// The path of a field that differs, or those of its elements where they have names: which variable
/// differs and not only that one does.
fn names(path: &str, want: Option<&Value>, have: Option<&Value>) -> Vec<String> {
    let (want, have) = (elements(want), elements(have));
    let differs = |name: &&String| want.get(*name) != have.get(*name);
    let named: BTreeSet<&String> = want.keys().chain(have.keys()).filter(differs).collect();
    if named.is_empty() {
        return vec![path.to_owned()];
    }
    named.into_iter().map(|name| format!("{path}[{name}]")).collect()
}

/// The elements of a map, or of a list whose elements have a `key` or a `name`.
fn elements(value: Option<&Value>) -> BTreeMap<String, &Value> {
    match value {
        Some(Value::Object(fields)) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| {
                let name = item.get("key").or_else(|| item.get("name"))?.as_str()?;
                Some((name.to_owned(), item))
            })
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => BTreeMap::new(),
    }
}

/// What a field means: defaults filled in, empty values left out.
fn meaning(name: &str, value: Option<&Value>) -> Value {
    let default = match name {
        "deletionPolicy" => json!("Delete"),
        "managementPolicies" => json!(["*"]),
        "providerConfigRef" => json!({"name": "default"}),
        "entrypoint" => json!(""),
        "remotePullPolicy" => json!("Always"),
        "enableTerraformCLILogging" => json!(false),
        _ => Value::Null,
    };
    match value {
        None | Some(Value::Null) => default,
        // An empty list of policies pauses the Workspace, so it is not the same as none.
        Some(value) if name == "managementPolicies" => value.clone(),
        Some(value) => match without_empty(value) {
            Value::Null => default,
            Value::Object(mut fields) if name == "providerConfigRef" => {
                // The namespaced API fills the kind in.
                if fields.get("kind") == Some(&json!("ClusterProviderConfig")) {
                    fields.remove("kind");
                }
                Value::Object(fields)
            }
            Value::Array(files) if name == "varFiles" => files.into_iter().map(with_format).collect(),
            other => other,
        },
    }
}

/// A variable file with its format, which defaults to HCL.
fn with_format(mut file: Value) -> Value {
    if let Some(fields) = file.as_object_mut() {
        fields.entry("format").or_insert_with(|| json!("HCL"));
    }
    file
}

/// The value without nulls, empty lists and empty objects; an empty text means something.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.iter().map(without_empty).collect(),
        Value::Object(fields) => {
            let fields: Map<String, Value> = fields
                .iter()
                .map(|(name, field)| (name.clone(), without_empty(field)))
                .filter(|(_, field)| !field.is_null())
                .collect();
            if fields.is_empty() { Value::Null } else { Value::Object(fields) }
        }
    }
}

/// The merge patch value that turns `have` into `want`.
fn merge(want: Option<&Value>, have: Option<&Value>) -> Value {
    match (want, have) {
        (None, _) => Value::Null,
        (Some(Value::Object(want)), Some(Value::Object(have))) => {
            let mut patch: Map<String, Value> =
                have.keys().filter(|name| !want.contains_key(*name)).map(|name| (name.clone(), Value::Null)).collect();
            for (name, field) in want {
                if have.get(name) != Some(field) {
                    patch.insert(name.clone(), merge(Some(field), have.get(name)));
                }
            }
            Value::Object(patch)
        }
        (Some(want), _) => want.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Value {
        json!({
            "deletionPolicy": "Delete",
            "managementPolicies": ["*"],
            "providerConfigRef": {"name": "default"},
            "forProvider": {"module": "m", "source": "Inline", "entrypoint": "", "vars": [{"key": "a", "value": "1"}],
                "varFiles": [{"source": "SecretKey", "format": "HCL"}], "someNewField": 7},
            "someOtherField": true,
        })
    }

    #[test]
    fn defaults_and_dropped_empty_lists_are_no_difference() {
        let rendered = json!({"forProvider": {"module": "m", "source": "Inline", "vars": [{"key": "a", "value": "1"}],
            "env": [], "varmap": {}, "varFiles": [{"source": "SecretKey"}]}});
        assert_eq!(difference(&rendered, &live()), None);
    }

    #[test]
    fn a_changed_field_is_patched_and_nothing_else() {
        let rendered = json!({"forProvider": {"module": "m", "source": "Inline", "vars": [{"key": "a", "value": "2"}],
            "varFiles": [{"source": "SecretKey"}]}});
        let difference = difference(&rendered, &live()).unwrap();
        assert_eq!(difference.fields, ["forProvider.vars[a]"]);
        assert_eq!(difference.patch, json!({"forProvider": {"vars": [{"key": "a", "value": "2"}]}}));
    }

    #[test]
    fn a_field_that_is_no_longer_rendered_is_removed_and_an_unknown_one_stays() {
        let rendered =
            json!({"forProvider": {"module": "m", "source": "Inline", "varFiles": [{"source": "SecretKey"}]}});
        assert_eq!(difference(&rendered, &live()).unwrap().patch, json!({"forProvider": {"vars": null}}));
    }

    #[test]
    fn a_map_loses_the_keys_that_are_gone() {
        let live = json!({"forProvider": {"module": "m", "varmap": {"a": 1, "b": {"c": 1, "d": 2}}}});
        let rendered = json!({"forProvider": {"module": "m", "varmap": {"b": {"c": 3}}}});
        let expected = json!({"forProvider": {"varmap": {"a": null, "b": {"c": 3, "d": null}}}});
        assert_eq!(difference(&rendered, &live).unwrap().patch, expected);
    }

    #[test]
    fn an_empty_list_of_policies_is_a_pause_and_not_the_default() {
        let rendered = json!({"managementPolicies": [], "forProvider": {"module": "m"}});
        let live = json!({"managementPolicies": ["*"], "forProvider": {"module": "m"}});
        assert_eq!(difference(&rendered, &live).unwrap().patch, json!({"managementPolicies": []}));
    }
}
