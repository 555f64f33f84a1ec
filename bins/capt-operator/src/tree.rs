//! A YAML or JSON document with the line of each of its values.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A value and the line on which it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// From 1; 0 if it is not known.
    pub line: u64,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value without lines.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// The items of the list under `key`.
    pub fn items(&self, key: &str) -> Option<&[Self]> {
        match &self.child(key)?.content {
            Content::List(items) => Some(items),
            Content::Scalar(_) | Content::Map(_) => None,
        }
    }

    /// Line of the value at `path`, as in `spec.vars[2].key`, or of the innermost value around it.
    pub fn line_of(&self, path: &str) -> u64 {
        let mut node = self;
        for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')) {
            match node.child(step) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.line
    }

    fn child(&self, step: &str) -> Option<&Self> {
        match &self.content {
            Content::Scalar(_) => None,
            Content::List(items) => items.get(step.parse::<usize>().ok()?),
            Content::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, node)| node),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined: _ } = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { line: referenced.line(), content: value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        // JSON has neither NaN nor infinity.
        let number = Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is no number of JSON")))?;
        Ok(Content::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Content::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
kind: A
metadata:
  name: a
spec:
  on: true
  list:
  - key: 1.5
  - key: '2'
  module: |
    one
    two
---
{\"kind\": \"B\", \"size\": 3}
";

    #[test]
    fn values_are_those_of_a_plain_parse() {
        let nodes: Vec<Node> = serde_saphyr::from_multiple(TEXT).unwrap();
        let values: Vec<Value> = serde_saphyr::from_multiple(TEXT).unwrap();
        assert_eq!(nodes.iter().map(Node::to_value).collect::<Vec<_>>(), values);
        assert_eq!(values[1], json!({"kind": "B", "size": 3}));
        assert_eq!(values[0]["spec"]["list"], json!([{"key": 1.5}, {"key": "2"}]));
    }

    #[test]
    fn every_value_knows_its_line() {
        let nodes: Vec<Node> = serde_saphyr::from_multiple(TEXT).unwrap();
        assert_eq!(nodes[0].line_of("metadata.name"), 3);
        assert_eq!(nodes[0].line_of("spec.list[1].key"), 8);
        assert_eq!(nodes[0].line_of("spec.list[1].other"), 8, "the innermost value around it");
        assert_eq!(nodes[0].line_of("."), 1);
        assert_eq!(nodes[1].line_of("size"), 13);
        assert_eq!(nodes[0].items("spec").map(<[_]>::len), None);
    }
}
