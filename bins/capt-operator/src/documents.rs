//! The input of `plan`: YAML or JSON documents become the objects that passes read.
//!
//! An API server stands between a manifest and a pass in real life; what it would add and a pass
//! needs is added here in a way that is the same each time. Whatever it would refuse is an error
//! that names the place and what to do. Nothing here reads a file or decides anything.

use std::{collections::BTreeMap, fmt};

use capt_api::names::{CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP};
use capt_reconcile::{
    hash,
    object::{Kind, Object, ObjectKey},
    world::{Coverage, World},
};
use serde_json::{Value, json};

use crate::{discovery::CLUSTER_VERSIONS, tree::Node, typed};

/// Kinds of ours that no pass reads, and those of the Go implementation that have no successor.
const UNREAD: [&str; 8] = [
    "CAPTClusterTemplate",
    "CAPTControlPlaneTemplate",
    "CaptControlPlaneTemplate",
    "CaptMachine",
    "CaptMachineDeployment",
    "CaptMachineSet",
    "CaptMachineTemplate",
    "CaptInfraMachine",
];

/// A text and where it comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// File name, or `standard input`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the source.
    pub source: String,
    /// Which of its documents, from 1; empty ones do not count.
    pub document: usize,
    /// Line in the source, from 1; 0 if it is not known.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.source, self.document)?;
        if self.line > 0 { write!(f, ", line {}", self.line) } else { Ok(()) }
    }
}

/// What is wrong with the input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not YAML.
    #[error("{place}: not YAML: {problem}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        problem: String,
    },
    /// A field is missing, or says what it must not.
    #[error("{place}: {field}: {problem}")]
    Field {
        /// Where.
        place: Place,
        /// Path of the field.
        field: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The same object twice.
    #[error("{place}: {object} is there already ({first}): remove one of them")]
    Duplicate {
        /// Where the second one is.
        place: Place,
        /// Which object.
        object: Box<ObjectKey>,
        /// Where the first one is.
        first: Box<Place>,
    },
}

/// The objects of the input.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    /// Each object and where it was found.
    objects: BTreeMap<ObjectKey, (Value, Place)>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Documents {
    /// Reads all documents of all sources.
    pub fn read(sources: &[Source]) -> Result<Self, Error> {
        let mut documents = Self::default();
        for source in sources {
            let mut reader = source.text.as_bytes();
            for (index, parsed) in serde_saphyr::read::<_, Node>(&mut reader).enumerate() {
                let place = Place { source: source.name.clone(), document: index + 1, line: 0 };
                match parsed {
                    Ok(node) => documents.document(&node, &place)?,
                    Err(error) => {
                        let line = error.location().map_or(0, |location| location.line());
                        let problem = error.without_snippet().to_string();
                        return Err(Error::Syntax { place: Place { line, ..place }, problem });
                    }
                }
            }
        }
        Ok(documents)
    }

    /// The objects as a world in which everything is known: what is not in the input does not exist.
    pub fn into_world(self) -> World {
        let mut world = World::with_coverage(Coverage::Live);
        for (key, (value, _)) in self.objects {
            let version = value["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
            let object = Object::parse(key.kind, &value);
            world.watched(key, version.unwrap_or_default(), object);
        }
        world
    }

    fn document(&mut self, node: &Node, place: &Place) -> Result<(), Error> {
        let value = node.to_value();
        if value["kind"] == "List" && value["apiVersion"] == "v1" {
            // `kubectl get -o yaml` prints one of these.
            for item in node.items("items").unwrap_or_default() {
                self.document(item, place)?;
            }
            return Ok(());
        }
        let at = |path: &str| Place { line: node.line_of(path), ..place.clone() };
        let wrong =
            |field: &str, problem: String| Err(Error::Field { place: at(field), field: field.to_owned(), problem });
        for field in ["apiVersion", "kind"] {
            if value[field].as_str().is_none_or(str::is_empty) {
                return wrong(field, "missing: every object names its apiVersion and kind".to_owned());
            }
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind_name, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(kind) = Kind::find(group, kind_name) else {
            let ours = group == INFRASTRUCTURE_GROUP || group == CONTROL_PLANE_GROUP;
            if ours && !UNREAD.contains(&kind_name) {
                return wrong("kind", unknown_kind(group, kind_name));
            }
            self.notes.push(format!("{}: no pass reads {kind_name} ({api_version}), ignored", at("kind")));
            return Ok(());
        };
        let versions = versions(kind);
        if !versions.contains(&version) {
            let expected =
                versions.iter().map(|version| api_version_of(group, version)).collect::<Vec<_>>().join(" or ");
            return wrong("apiVersion", format!("{kind_name} is not read as {api_version}: convert it to {expected}"));
        }
        if name.is_empty() {
            return wrong("metadata.name", "missing: give the object a name".to_owned());
        }
        if let Err(error) = typed::check(kind, &value) {
            let field = error.path;
            return wrong(&field, format!("{}: {}", error.problem, error.fix));
        }
        let namespace = match text("/metadata/namespace") {
            "" => "default",
            namespace => namespace,
        };
        let key = ObjectKey::new(kind, namespace, name);
        if let Some(key) = undecodable(kind, &value) {
            return wrong(&format!("data.{key}"), "not base64: encode it, or move it to stringData".to_owned());
        }
        if let Some((_, first)) = self.objects.get(&key) {
            return Err(Error::Duplicate {
                place: at("metadata.name"),
                object: Box::new(key),
                first: Box::new(first.clone()),
            });
        }
        let value = completed(&key, value);
        self.objects.insert(key, (value, at(".")));
        Ok(())
    }
}

fn unknown_kind(group: &str, kind: &str) -> String {
    let known: Vec<&str> = Kind::ALL.into_iter().filter(|known| known.group() == group).map(Kind::name).collect();
    format!(
        "{kind} is no kind of {group} that is known here: correct it to {}, or leave the object out",
        known.join(" or ")
    )
}

fn versions(kind: Kind) -> Vec<&'static str> {
    match kind {
        Kind::Cluster => CLUSTER_VERSIONS.to_vec(),
        Kind::CaptCluster
        | Kind::CaptControlPlane
        | Kind::Template
        | Kind::Apply
        | Kind::Workspace(_)
        | Kind::Secret => vec![kind.version()],
    }
}

fn api_version_of(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The first key of a Secret whose value is not base64.
fn undecodable(kind: Kind, value: &Value) -> Option<String> {
    match kind {
        Kind::Secret => capt_api::foreign::SecretView::parse(value).undecodable.into_iter().next(),
        Kind::Cluster
        | Kind::CaptCluster
        | Kind::CaptControlPlane
        | Kind::Template
        | Kind::Apply
        | Kind::Workspace(_) => None,
    }
}

/// Adds what every stored object has and a manifest has not.
fn completed(key: &ObjectKey, mut value: Value) -> Value {
    let metadata = &mut value["metadata"];
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let mut fill = |field: &str, filling: Value| {
        if metadata[field].is_null() {
            metadata[field] = filling;
        }
    };
    fill("uid", json!(uid(key)));
    fill("resourceVersion", json!("1"));
    fill("generation", json!(1));
    value
}

/// A uid for an object that has none: it depends on where the object is and on nothing else.
fn uid(key: &ObjectKey) -> String {
    let digits = hash::of_text(&format!("{}/{key}", key.kind.group()), 32);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Documents, Error> {
        Documents::read(&[Source { name: "a.yaml".to_owned(), text: text.to_owned() }])
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    const CLUSTER: &str = "\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: CAPTCluster
metadata:
  name: demo
spec:
  region: eu-west-1
";

    #[test]
    fn a_manifest_becomes_a_stored_object() {
        let documents = read(CLUSTER).unwrap();
        let (key, (value, place)) = documents.objects.first_key_value().unwrap();
        assert_eq!(*key, ObjectKey::new(Kind::CaptCluster, "default", "demo"));
        let metadata = &value["metadata"];
        assert_eq!((&metadata["namespace"], &metadata["resourceVersion"]), (&json!("default"), &json!("1")));
        assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
        assert_eq!(place.to_string(), "a.yaml, document 1, line 1");
        let again = read(CLUSTER).unwrap();
        assert_eq!(again.objects.first_key_value().unwrap().1.0, *value, "the same each time");
    }

    #[test]
    fn what_is_given_stays() {
        let text =
            CLUSTER.replace("  name: demo\n", "  name: demo\n  namespace: ns\n  uid: u\n  resourceVersion: \"7\"\n");
        let documents = read(&text).unwrap();
        let (key, (value, _)) = documents.objects.first_key_value().unwrap();
        assert_eq!(key.namespace.as_deref(), Some("ns"));
        assert_eq!((&value["metadata"]["uid"], &value["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
    }

    #[test]
    fn lists_json_and_empty_documents_are_read() {
        let list = format!("---\n---\napiVersion: v1\nkind: List\nitems:\n- {}", CLUSTER.trim().replace('\n', "\n  "));
        let json = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}}"#;
        assert_eq!(read(&format!("{list}\n---\n{json}\n")).unwrap().objects.len(), 2);
    }

    #[test]
    fn a_field_that_does_not_parse_is_named_with_document_line_and_fix() {
        let text = format!("{CLUSTER}---\n{}", CLUSTER.replace("eu-west-1", "[1]"));
        let error = error(&text);
        assert!(error.starts_with("a.yaml, document 2, line 13: spec.region: "), "{error}");
        assert!(error.contains("write a string here"), "{error}");
    }

    #[test]
    fn what_no_api_server_would_take_is_an_error() {
        for (text, expected) in [
            ("a: [", "a.yaml, document 1, line 1: not YAML"),
            ("kind: CAPTCluster", "apiVersion: missing"),
            (
                &CLUSTER.replace("CAPTCluster", "CaptCluster"),
                "line 2: kind: CaptCluster is no kind of infrastructure.cluster.x-k8s.io",
            ),
            (&CLUSTER.replace("v1beta1", "v1alpha1"), "convert it to infrastructure.cluster.x-k8s.io/v1beta1"),
            (&CLUSTER.replace("  name: demo\n", "  labels: {}\n"), "metadata.name: missing"),
            (
                &format!("{CLUSTER}---\n{CLUSTER}"),
                "CAPTCluster/default/demo is there already (a.yaml, document 1, line 1)",
            ),
            ("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: '%'}}", "data.a: not base64"),
            (&CLUSTER.replace("  name: demo\n", "  name: demo\n  name: demo\n"), "duplicate"),
        ] {
            let error = error(text);
            assert!(error.contains(expected), "{error}\nlacks: {expected}");
        }
    }

    #[test]
    fn what_no_pass_reads_is_ignored_with_a_note() {
        for (api_version, kind) in [
            ("v1", "ConfigMap"),
            ("cluster.x-k8s.io/v1beta2", "MachineDeployment"),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "CAPTClusterTemplate"),
        ] {
            let documents = read(&format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")).unwrap();
            assert!(documents.objects.is_empty());
            assert_eq!(
                documents.notes,
                [format!("a.yaml, document 1, line 2: no pass reads {kind} ({api_version}), ignored")]
            );
        }
    }
}
