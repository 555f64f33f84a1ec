//! The structural schema of a kind, parsed once from its CRD.
//!
//! * [`shape`]: unknown fields, nulls and defaults, before an object is looked at;
//! * [`validate`]: what the schema demands of an object;
//! * [`rules`]: its CEL rules.
//!
//! A kind without a schema (the built-in ones) is [`Schema::open`]: everything is kept, maps are
//! merged key by key and lists as a whole.

pub mod rules;
pub mod shape;
pub mod validate;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// JSON types of a structural schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Whatever it is.
    Any,
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
    /// `x-kubernetes-int-or-string`
    IntOrString,
}

/// How server-side apply merges a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// Item by item; an item is its own key.
    Set,
    /// Item by item; these fields are an item's key.
    Map(Vec<String>),
}

/// A node of a structural schema.
#[derive(Debug)]
pub struct Schema {
    /// Type of the value.
    pub type_: Type,
    /// Declared fields.
    pub properties: BTreeMap<String, Schema>,
    /// Schema of the values of a map.
    pub additional: Option<Box<Schema>>,
    /// Schema of the items of a list.
    pub items: Option<Box<Schema>>,
    /// Whether unknown fields are kept.
    pub preserve: bool,
    /// Whether null is a value.
    pub nullable: bool,
    /// What an absent value becomes.
    pub default: Option<Value>,
    /// How a list is merged.
    pub list: ListType,
    /// Whether a map is merged as a whole.
    pub atomic_map: bool,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// Allowed values; empty for all.
    pub values: Vec<Value>,
    /// Pattern of a text.
    pub pattern: Option<Regex>,
    /// `format`, empty if there is none.
    pub format: String,
    /// Lower and upper bound of a number.
    pub range: (Option<f64>, Option<f64>),
    /// Least and greatest length, number of items or number of fields.
    pub size: (Option<u64>, Option<u64>),
    /// Text for people.
    pub description: String,
}

static OPEN: Schema = Schema::any();

impl Schema {
    const fn any() -> Self {
        Self {
            type_: Type::Any,
            properties: BTreeMap::new(),
            additional: None,
            items: None,
            preserve: true,
            nullable: true,
            default: None,
            list: ListType::Atomic,
            atomic_map: false,
            required: Vec::new(),
            values: Vec::new(),
            pattern: None,
            format: String::new(),
            range: (None, None),
            size: (None, None),
            description: String::new(),
        }
    }

    /// Parses `openAPIV3Schema`; what it does not know it ignores, as the API server has checked it.
    pub fn parse(value: &Value) -> Self {
        let text = |field: &str| value[field].as_str().unwrap_or_default();
        let type_ = match text("type") {
            _ if value["x-kubernetes-int-or-string"] == true => Type::IntOrString,
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => Type::Any,
        };
        let texts = |field: &str| -> Vec<String> {
            value[field].as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let bound = |names: [&str; 3]| names.into_iter().find_map(|name| value[name].as_u64());
        Self {
            type_,
            properties: value["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), Self::parse(schema)))
                .collect(),
            additional: match &value["additionalProperties"] {
                schema @ Value::Object(_) => Some(Box::new(Self::parse(schema))),
                Value::Bool(true) => Some(Box::new(Self::any())),
                Value::Bool(false) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
            },
            items: value["items"].is_object().then(|| Box::new(Self::parse(&value["items"]))),
            preserve: value["x-kubernetes-preserve-unknown-fields"] == true,
            nullable: value["nullable"] == true,
            default: value.get("default").cloned(),
            list: match text("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map(texts("x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            atomic_map: text("x-kubernetes-map-type") == "atomic",
            required: texts("required"),
            values: value["enum"].as_array().cloned().unwrap_or_default(),
            pattern: value["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok()),
            format: text("format").to_owned(),
            range: (value["minimum"].as_f64(), value["maximum"].as_f64()),
            size: (
                bound(["minLength", "minItems", "minProperties"]),
                bound(["maxLength", "maxItems", "maxProperties"]),
            ),
            description: text("description").to_owned(),
        }
    }

    /// The schema of a whole object of a custom kind: what its CRD says, and the metadata of every object.
    pub fn of_kind(crd_schema: &Value) -> Self {
        let mut schema = Self::parse(crd_schema);
        schema.complete();
        schema
    }

    /// The schema of a built-in kind.
    pub fn open() -> Self {
        let mut schema = Self::any();
        schema.complete();
        schema
    }

    fn complete(&mut self) {
        let plain = |type_| Self { type_, ..Self::any() };
        let atomic = || Self { atomic_map: true, ..Self::any() };
        let list = |list, items| Self { type_: Type::Array, items: Some(Box::new(items)), list, ..Self::any() };
        for field in ["apiVersion", "kind"] {
            self.properties.insert(field.to_owned(), plain(Type::String));
        }
        let mut metadata = Self { type_: Type::Object, ..Self::any() };
        metadata.properties.extend([
            ("finalizers".to_owned(), list(ListType::Set, plain(Type::String))),
            ("ownerReferences".to_owned(), list(ListType::Map(vec!["uid".to_owned()]), atomic())),
            ("managedFields".to_owned(), list(ListType::Atomic, Self::any())),
        ]);
        for map in ["labels", "annotations"] {
            let map_of_texts = Self { additional: Some(Box::new(plain(Type::String))), ..plain(Type::Object) };
            metadata.properties.insert(map.to_owned(), map_of_texts);
        }
        self.properties.insert("metadata".to_owned(), metadata);
    }

    /// The schema of the field `name`, and whether the schema declares it by name.
    pub fn field(&self, name: &str) -> (&Self, bool) {
        match (self.properties.get(name), &self.additional) {
            (Some(schema), _) => (schema, true),
            (None, Some(schema)) => (schema, false),
            (None, None) => (&OPEN, false),
        }
    }

    /// The schema of the items of a list.
    pub fn item(&self) -> &Self {
        self.items.as_deref().unwrap_or(&OPEN)
    }

    /// Whether the schema knows the field `name`.
    pub fn knows(&self, name: &str) -> bool {
        self.preserve || self.additional.is_some() || self.properties.contains_key(name)
    }
}
