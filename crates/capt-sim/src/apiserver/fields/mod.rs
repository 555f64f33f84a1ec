//! Server-side apply: who manages which field, and what follows when somebody applies.
//!
//! * [`FieldSet`]: paths into an object, in the form of `fieldsV1`;
//! * [`typed`]: an object's paths, what two objects differ in, merging and removing;
//! * [`managed`]: the entries of `metadata.managedFields` and the two ways to change them.
//!
//! It follows structured-merge-diff, the library that the API server uses.

pub mod managed;
pub mod typed;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of a map.
    Field(String),
    /// An item of a list-map, by the JSON of its keys.
    Key(BTreeMap<String, String>),
    /// An item of a set, by its JSON.
    Value(String),
}

impl Step {
    fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let fields: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(json) => format!("v:{json}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "v" => Some(Self::Value(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::Key(keys.into_iter().map(|(name, value)| (name, value.to_string())).collect()))
            }
            _ => None,
        }
    }
}

/// A set of paths into an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet(BTreeMap<Step, Node>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// Whether the path up to here is in the set.
    member: bool,
    below: FieldSet,
}

impl FieldSet {
    /// Whether there is no path in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path; the empty one is not a field.
    pub fn insert(&mut self, path: &[Step]) {
        if let [first, rest @ ..] = path {
            let node = self.0.entry(first.clone()).or_default();
            if rest.is_empty() {
                node.member = true;
            } else {
                node.below.insert(rest);
            }
        }
    }

    /// Whether the path of one step is in it.
    pub fn has(&self, step: &Step) -> bool {
        self.0.get(step).is_some_and(|node| node.member)
    }

    /// The paths that go on below `step`.
    pub fn below(&self, step: &Step) -> Option<&Self> {
        self.0.get(step).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (step, node) in &other.0 {
            let into = union.0.entry(step.clone()).or_default();
            into.member |= node.member;
            into.below = into.below.union(&node.below);
        }
        union
    }

    /// What is in this one and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |mine, theirs| mine && !theirs)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |mine, theirs| mine && theirs)
    }

    fn zip(&self, other: &Self, keep: fn(bool, bool) -> bool) -> Self {
        let nothing = Node::default();
        let kept = self.0.iter().filter_map(|(step, node)| {
            let theirs = other.0.get(step).unwrap_or(&nothing);
            let below = node.below.zip(&theirs.below, keep);
            let member = keep(node.member, theirs.member);
            (member || !below.is_empty()).then(|| (step.clone(), Node { member, below }))
        });
        Self(kept.collect())
    }

    /// Without `fields` of the top level and whatever is below them.
    #[must_use]
    pub fn without(&self, fields: &[&str]) -> Self {
        let mut rest = self.clone();
        rest.0.retain(|step, _| !matches!(step, Step::Field(name) if fields.contains(&name.as_str())));
        rest
    }

    /// All its paths, as people read them: `.status.conditions[type="Ready"].status`.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.paths_below("", &mut paths);
        paths
    }

    fn paths_below(&self, prefix: &str, paths: &mut Vec<String>) {
        for (step, node) in &self.0 {
            let step = match step {
                Step::Field(name) => format!(".{name}"),
                Step::Value(json) => format!("[={json}]"),
                Step::Key(keys) => {
                    let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    format!("[{}]", keys.join(","))
                }
            };
            let path = format!("{prefix}{step}");
            if node.member {
                paths.push(path.clone());
            }
            node.below.paths_below(&path, paths);
        }
    }

    /// As `fieldsV1`.
    pub fn to_value(&self) -> Value {
        let fields = self.0.iter().map(|(step, node)| {
            let mut below = node.below.to_value();
            if let (true, false, Value::Object(below)) = (node.member, node.below.is_empty(), &mut below) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (step.to_text(), below)
        });
        Value::Object(fields.collect())
    }

    /// From `fieldsV1`; what cannot be understood is left out.
    pub fn from_value(value: &Value) -> Self {
        let nodes = value.as_object().into_iter().flatten().filter_map(|(text, below)| {
            let step = Step::from_text(text)?;
            let is_leaf = below.as_object().is_none_or(Map::is_empty);
            Some((step, Node { member: is_leaf || below.get(".").is_some(), below: Self::from_value(below) }))
        });
        Self(nodes.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: &Value) -> FieldSet {
        FieldSet::from_value(value)
    }

    #[test]
    fn the_wire_form_is_read_and_written() {
        let wire = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}}});
        assert_eq!(set(&wire).to_value(), wire);
        assert!(set(&wire).paths().contains(&".status.conditions[type=\"Ready\"].status".to_owned()));
    }

    #[test]
    fn sets_are_added_and_taken_apart_path_by_path() {
        let (a, b) = (set(&json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}})), set(&json!({"f:a": {"f:x": {}}})));
        assert_eq!(a.difference(&b).to_value(), json!({"f:a": {".": {}, "f:y": {}}}));
        assert_eq!(a.intersection(&b), b);
        assert_eq!(b.union(&a), a);
        assert!(b.difference(&a).is_empty());
    }
}
