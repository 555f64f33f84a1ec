//! An object and its schema: the paths in it, differences, merging, removing.
//!
//! Maps are taken apart field by field and lists as their schema says; what a schema does not declare
//! counts as a map if it is one, and as one value otherwise.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{FieldSet, Step};
use crate::apiserver::schema::{ListType, Schema, Type};

/// What an update changed.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Not there before.
    pub added: FieldSet,
    /// There with another value.
    pub modified: FieldSet,
    /// No longer there.
    pub removed: FieldSet,
}

/// How a value is taken apart.
enum Parts<'a> {
    Whole,
    Map(&'a Map<String, Value>),
    List(Vec<(Step, &'a Value)>),
}

fn parts<'a>(schema: &Schema, value: &'a Value) -> Parts<'a> {
    match value {
        Value::Object(fields) if !schema.atomic_map => Parts::Map(fields),
        Value::Array(items) if schema.list != ListType::Atomic => {
            Parts::List(items.iter().map(|item| (step(&schema.list, item), item)).collect())
        }
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Parts::Whole
        }
    }
}

fn step(list: &ListType, item: &Value) -> Step {
    match list {
        ListType::Map(keys) => {
            Step::Key(keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.to_string()))).collect())
        }
        ListType::Set | ListType::Atomic => Step::Value(item.to_string()),
    }
}

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

/// Why `value` is none of its schema: the path and what is there instead. Only types and keys count.
pub fn problem(schema: &Schema, value: &Value) -> Option<String> {
    problem_at(schema, value, "")
}

fn problem_at(schema: &Schema, value: &Value, path: &str) -> Option<String> {
    let expected = |type_: &str| Some(format!("{path}: expected {type_}, got {value}"));
    match (schema.type_, value) {
        (Type::Any | Type::IntOrString, _) | (_, Value::Null) => None,
        (Type::Object, Value::Object(fields)) => {
            fields.iter().find_map(|(name, value)| problem_at(schema.field(name).0, value, &format!("{path}.{name}")))
        }
        (Type::Array, Value::Array(items)) => {
            let mut seen = Vec::new();
            items.iter().enumerate().find_map(|(at, item)| {
                let step = match &schema.list {
                    ListType::Atomic => return problem_at(schema.item(), item, &format!("{path}[{at}]")),
                    ListType::Map(keys) if item.is_object() => {
                        if let Some(key) = keys.iter().find(|key| item.get(*key).is_none()) {
                            return Some(format!("{path}: element {at}: associative list with keys has an element that omits key field \"{key}\""));
                        }
                        step(&schema.list, item)
                    }
                    ListType::Map(_) | ListType::Set => step(&schema.list, item),
                };
                if seen.contains(&step) {
                    return Some(format!("{path}: duplicate entries for key {step:?}"));
                }
                seen.push(step);
                problem_at(schema.item(), item, &format!("{path}[{at}]"))
            })
        }
        (Type::String, Value::String(_)) | (Type::Boolean, Value::Bool(_)) | (Type::Number, Value::Number(_)) => None,
        (Type::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => None,
        (Type::Object, _) => expected("map"),
        (Type::Array, _) => expected("list"),
        (Type::String, _) => expected("string"),
        (Type::Boolean, _) => expected("boolean"),
        (Type::Number | Type::Integer, _) => expected("numeric (int or float)"),
    }
}

/// The paths of an object that is applied: its leaves, and the items of lists and maps.
pub fn paths(schema: &Schema, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(schema, value, &mut Vec::new(), &mut set);
    set
}

fn collect(schema: &Schema, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match parts(schema, value) {
        Parts::Whole => set.insert(path),
        Parts::Map(fields) => {
            for (name, value) in fields {
                let (below, declared) = schema.field(name);
                path.push(field(name));
                let is_bare_map = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if !declared || is_bare_map {
                    set.insert(path);
                }
                collect(below, value, path, set);
                path.pop();
            }
        }
        Parts::List(items) => {
            for (step, item) in items {
                path.push(step);
                set.insert(path);
                collect(schema.item(), item, path, set);
                path.pop();
            }
        }
    }
}

/// Null, or without anything in it.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What `new` changes of `old`.
pub fn compare(schema: &Schema, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    compare_at(schema, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn compare_at(schema: &Schema, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<Step>, found: &mut Comparison) {
    if old == new {
        return;
    }
    match (old, new) {
        (None, Some(_)) => found.added.insert(path),
        (Some(_), None) => found.removed.insert(path),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let of = |value: Option<&'_ Value>| value.is_none_or(is_bare);
    let nothing = Value::Null;
    let (left, right) = (parts(schema, old.unwrap_or(&nothing)), parts(schema, new.unwrap_or(&nothing)));
    let is_map = |side: &Parts<'_>| matches!(side, Parts::Map(_));
    let is_list = |side: &Parts<'_>| matches!(side, Parts::List(_));
    let both = |kind: &dyn Fn(&Parts<'_>) -> bool| {
        (kind(&left) || old.is_none()) && (kind(&right) || new.is_none()) && (kind(&left) || kind(&right))
    };
    // Two that are both bare differ as values do, which keeps empty and absent apart.
    if of(old) && of(new) || !(both(&is_map) || both(&is_list)) {
        if old.is_some() && new.is_some() {
            found.modified.insert(path);
        }
        return;
    }
    let mut steps: BTreeMap<Step, (Option<&Value>, Option<&Value>)> = BTreeMap::new();
    for (side, is_new) in [(left, false), (right, true)] {
        let items: Vec<(Step, &Value)> = match side {
            Parts::Whole => Vec::new(),
            Parts::Map(fields) => fields.iter().map(|(name, value)| (field(name), value)).collect(),
            Parts::List(items) => items,
        };
        for (step, value) in items {
            let entry = steps.entry(step).or_default();
            *(if is_new { &mut entry.1 } else { &mut entry.0 }) = Some(value);
        }
    }
    for (step, (old, new)) in steps {
        let below = match &step {
            Step::Field(name) => schema.field(name).0,
            Step::Key(_) | Step::Value(_) => schema.item(),
        };
        path.push(step);
        compare_at(below, old, new, path, found);
        path.pop();
    }
}

/// `live` with what `config` says.
pub fn merge(schema: &Schema, live: Option<&Value>, config: &Value) -> Value {
    let Some(live) = live else { return config.clone() };
    match (parts(schema, live), parts(schema, config)) {
        (Parts::Map(old), Parts::Map(new)) => {
            let mut merged = old.clone();
            for (name, value) in new {
                merged.insert(name.clone(), merge(schema.field(name).0, old.get(name), value));
            }
            Value::Object(merged)
        }
        (Parts::List(old), Parts::List(new)) => Value::Array(merge_lists(schema, &old, &new)),
        (Parts::Whole | Parts::Map(_) | Parts::List(_), _) => config.clone(),
    }
}

/// The items of both, in an order that respects the order of the new ones and, beside them, of the old.
fn merge_lists(schema: &Schema, old: &[(Step, &Value)], new: &[(Step, &Value)]) -> Vec<Value> {
    let find = |list: &[(Step, &Value)], step: &Step| list.iter().position(|(other, _)| other == step);
    let merged = |step: &Step, value: &Value| {
        merge(schema.item(), find(old, step).and_then(|index| old.get(index)).map(|(_, value)| *value), value)
    };
    let mut shared = new.iter().map(|(step, _)| step).filter(|step| find(old, step).is_some());
    let mut next_shared = shared.next();
    let mut done: Vec<&Step> = Vec::new();
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        if let (Some((mine, _)), Some((theirs, value))) = (old.get(left), new.get(right)) {
            if mine == theirs {
                done.push(mine);
                out.push(merged(theirs, value));
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            if find(new, mine).is_some() && next_shared.is_some_and(|next| next != mine) {
                left += 1;
                continue;
            }
        }
        if let Some((mine, value)) = old.get(left) {
            if find(new, mine).is_none() {
                out.push((*value).clone());
                left += 1;
                continue;
            } else if done.contains(&mine) {
                left += 1;
            }
        }
        if let Some((theirs, value)) = new.get(right) {
            done.push(theirs);
            out.push(merged(theirs, value));
            right += 1;
            if next_shared == Some(theirs) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// `value` without the paths in `set`; `None` if nothing is left. A part of which nothing is left is null.
pub fn remove(schema: &Schema, value: &Value, set: &FieldSet) -> Option<Value> {
    match parts(schema, value) {
        Parts::Whole => Some(value.clone()),
        Parts::Map(fields) if fields.is_empty() => Some(value.clone()),
        Parts::Map(fields) => {
            let left: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, value)| {
                    let below = schema.field(name).0;
                    Some((name.clone(), remove_step(below, &field(name), value, set)?))
                })
                .collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
        Parts::List(items) if items.is_empty() => Some(value.clone()),
        Parts::List(items) => {
            let left: Vec<Value> =
                items.iter().filter_map(|(step, item)| remove_step(schema.item(), step, item, set)).collect();
            (!left.is_empty()).then_some(Value::Array(left))
        }
    }
}

fn remove_step(schema: &Schema, step: &Step, value: &Value, set: &FieldSet) -> Option<Value> {
    if set.has(step) {
        return None;
    }
    match set.below(step) {
        // What is left of it is null and not absent, so that whoever applied it keeps it.
        Some(below) => Some(remove(schema, value, below).unwrap_or_default()),
        None => Some(value.clone()),
    }
}

/// `set` with every declared field that it has something below of.
pub fn with_named_fields(schema: &Schema, set: &FieldSet) -> FieldSet {
    let nodes = set.0.iter().map(|(step, node)| {
        let (below, declared) = match step {
            Step::Field(name) => schema.field(name),
            Step::Key(_) | Step::Value(_) => (schema.item(), false),
        };
        let mut node = node.clone();
        node.member |= declared && !node.below.is_empty();
        node.below = with_named_fields(below, &node.below);
        (step.clone(), node)
    });
    FieldSet(nodes.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::of_kind(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "properties": {"type": {"type": "string"}, "s": {"type": "string"}}}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
            }},
        }}))
    }

    #[test]
    fn paths_stop_at_leaves_and_name_items() {
        let value = json!({"spec": {"a": "1", "conditions": [{"type": "R", "s": "T"}], "set": ["x"], "list": ["y"], "map": {"k": {"x": "1"}}}});
        let expected = json!({"f:spec": {"f:a": {}, "f:conditions": {"k:{\"type\":\"R\"}": {".": {}, "f:s": {}, "f:type": {}}},
            "f:set": {"v:\"x\"": {}}, "f:list": {}, "f:map": {"f:k": {".": {}, "f:x": {}}}}});
        assert_eq!(paths(&schema(), &value).to_value(), expected);
    }

    #[test]
    fn differences_name_what_is_new_gone_and_other() {
        let old = json!({"spec": {"a": "1", "list": ["y"]}});
        let new = json!({"spec": {"a": "2", "conditions": [{"type": "R"}]}});
        let found = compare(&schema(), &old, &new);
        assert_eq!(found.modified.to_value(), json!({"f:spec": {"f:a": {}}}));
        assert_eq!(found.removed.to_value(), json!({"f:spec": {"f:list": {}}}));
        let added = json!({"f:spec": {"f:conditions": {".": {}, "k:{\"type\":\"R\"}": {".": {}, "f:type": {}}}}});
        assert_eq!(found.added.to_value(), added);
    }

    #[test]
    fn lists_are_merged_as_their_type_says() {
        let live = json!({"spec": {"set": ["a", "b"], "list": ["a"], "conditions": [{"type": "A", "s": "1"}, {"type": "B", "s": "1"}]}});
        let config = json!({"spec": {"set": ["b", "c"], "list": ["z"], "conditions": [{"type": "B", "s": "2"}]}});
        let expected = json!({"spec": {"set": ["a", "b", "c"], "list": ["z"], "conditions": [{"type": "A", "s": "1"}, {"type": "B", "s": "2"}]}});
        assert_eq!(merge(&schema(), Some(&live), &config), expected);
    }

    #[test]
    fn what_is_removed_leaves_nothing_or_null_of_its_parents() {
        let value = json!({"spec": {"a": "1", "set": ["x"], "conditions": [{"type": "A", "s": "1"}]}});
        let set = FieldSet::from_value(
            &json!({"f:spec": {"f:set": {"v:\"x\"": {}}, "f:conditions": {"k:{\"type\":\"A\"}": {"f:s": {}}}}}),
        );
        let expected = json!({"spec": {"a": "1", "set": null, "conditions": [{"type": "A"}]}});
        assert_eq!(remove(&schema(), &value, &set), Some(expected));
    }
}
