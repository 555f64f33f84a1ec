//! What is served: built-in resources and those that CRDs define.
//!
//! A [`Resource`] says how objects of a kind are named, found, shown and checked. Nothing here knows
//! the objects themselves.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::schema::{Schema, rules::Rules};

/// A printer column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `date` and so on.
    pub type_: String,
    /// JSONPath below the object, with a leading dot.
    pub path: String,
    /// Above 0: shown by `-o wide` only.
    pub priority: i64,
}

/// One version of a resource.
#[derive(Debug, Clone)]
pub struct Version {
    /// Such as `v1beta1`.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Columns beside NAME.
    pub columns: Vec<Column>,
    /// Parsed schema.
    pub schema: Arc<Schema>,
    /// Compiled CEL rules.
    pub rules: Arc<Rules>,
    /// The schema as it is published.
    pub published: Value,
}

/// What a kind is to the API server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Defined by a CRD.
    Custom,
    /// Holds other objects.
    Namespace,
    /// Its `stringData` becomes `data`.
    Secret,
    /// Defines a kind.
    Definition,
    /// An event, in either group.
    Event,
    /// Any other built-in kind.
    Plain,
}

/// A resource.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group, empty for core.
    pub group: String,
    /// Its versions; the first is preferred and stored.
    pub versions: Vec<Version>,
    /// Kind of the objects.
    pub kind: String,
    /// Kind of a list.
    pub list_kind: String,
    /// Name in paths.
    pub plural: String,
    /// Name for one object.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What it is to the API server.
    pub nature: Nature,
    /// Paths that can be selected by beside name and namespace, such as `.spec.region`.
    pub selectable: Vec<String>,
}

impl Resource {
    /// The served version with this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name && version.served)
    }

    /// `group/version` of a version of this resource.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// The resource that a CRD defines; `None` if the CRD lacks what every CRD has.
    pub fn from_definition(crd: &Value) -> Option<Self> {
        let spec = &crd["spec"];
        let names = &spec["names"];
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let mut versions: Vec<(bool, Version)> = Vec::new();
        let mut selectable = Vec::new();
        for version in spec["versions"].as_array()? {
            let published = version["schema"]["openAPIV3Schema"].clone();
            let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
            let fields = version["selectableFields"].as_array().into_iter().flatten();
            selectable.extend(fields.filter_map(|field| field["jsonPath"].as_str().map(str::to_owned)));
            versions.push((
                version["storage"] == true,
                Version {
                    name: version["name"].as_str()?.to_owned(),
                    served: version["served"] == true,
                    status: version["subresources"]["status"].is_object(),
                    columns: columns.filter_map(column).collect(),
                    schema: Arc::new(Schema::of_kind(&published)),
                    rules: Arc::new(Rules::compile(&published)),
                    published,
                },
            ));
        }
        versions.sort_by_key(|(is_stored, _)| !is_stored);
        let (kind, plural) = (names["kind"].as_str()?.to_owned(), names["plural"].as_str()?.to_owned());
        Some(Self {
            group: spec["group"].as_str()?.to_owned(),
            versions: versions.into_iter().map(|(_, version)| version).collect(),
            list_kind: names["listKind"].as_str().map_or_else(|| format!("{kind}List"), str::to_owned),
            singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            nature: Nature::Custom,
            selectable,
            kind,
            plural,
        })
    }

    fn built_in(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool, nature: Nature) -> Self {
        Self {
            group: group.to_owned(),
            versions: vec![Version {
                name: version.to_owned(),
                served: true,
                status: matches!(nature, Nature::Namespace | Nature::Definition),
                columns: Vec::new(),
                schema: Arc::new(match kind {
                    "Secret" | "ConfigMap" => Schema::of_kind(&data()),
                    _ => Schema::open(),
                }),
                rules: Arc::new(Rules::compile(&Value::Null)),
                published: json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            }],
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            nature,
            selectable: Vec::new(),
        }
    }
}

/// What is known of kinds that hold data: their maps are merged key by key.
fn data() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "data": texts, "binaryData": texts, "stringData": texts,
        "type": {"type": "string"}, "immutable": {"type": "boolean"},
    }})
}

fn column(value: &Value) -> Option<Column> {
    Some(Column {
        name: value["name"].as_str()?.to_owned(),
        type_: value["type"].as_str()?.to_owned(),
        path: value["jsonPath"].as_str()?.to_owned(),
        priority: value["priority"].as_i64().unwrap_or_default(),
    })
}

/// Everything that is served, by group and plural.
#[derive(Debug, Clone)]
pub struct Resources(BTreeMap<(String, String), Arc<Resource>>);

/// Group of CRDs.
pub const DEFINITIONS: &str = "apiextensions.k8s.io";
/// Group of the newer events.
pub const EVENTS: &str = "events.k8s.io";

impl Default for Resources {
    fn default() -> Self {
        let mut resources = Self(BTreeMap::new());
        for (group, version, kind, plural, namespaced, nature, short) in [
            ("", "v1", "Namespace", "namespaces", false, Nature::Namespace, "ns"),
            ("", "v1", "Secret", "secrets", true, Nature::Secret, ""),
            ("", "v1", "ConfigMap", "configmaps", true, Nature::Plain, "cm"),
            ("", "v1", "ServiceAccount", "serviceaccounts", true, Nature::Plain, "sa"),
            ("", "v1", "Event", "events", true, Nature::Event, "ev"),
            (EVENTS, "v1", "Event", "events", true, Nature::Event, "ev"),
            (
                DEFINITIONS,
                "v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                false,
                Nature::Definition,
                "crd",
            ),
            ("coordination.k8s.io", "v1", "Lease", "leases", true, Nature::Plain, ""),
        ] {
            let mut resource = Resource::built_in(group, version, kind, plural, namespaced, nature);
            resource.short_names.extend((!short.is_empty()).then(|| short.to_owned()));
            resources.insert(resource);
        }
        resources
    }
}

impl Resources {
    /// Adds a resource or replaces it.
    pub fn insert(&mut self, resource: Resource) {
        self.0.insert((resource.group.clone(), resource.plural.clone()), Arc::new(resource));
    }

    /// Takes a resource away.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.0.remove(&(group.to_owned(), plural.to_owned()));
    }

    /// The resource with this group and plural.
    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.0.get(&(group.to_owned(), plural.to_owned()))
    }

    /// The resource of a kind.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.all().find(|resource| resource.group == group && resource.kind == kind)
    }

    /// All of them, by group and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.0.values()
    }
}
