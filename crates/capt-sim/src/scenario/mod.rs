//! A scenario: the objects of a world, what happens to them and when, and what is expected.
//!
//! ```yaml
//! apiVersion: capt.cluster.x-k8s.io/v1alpha1
//! kind: Scenario
//! metadata: {name: create}
//! spec:
//!   description: A cluster is made.
//!   files: [../cluster.yaml]
//!   until: 1h
//!   expect:
//!   - object: CAPTControlPlane/default/demo
//!     has: {/status/state: Ready}
//! ```
//!
//! [`parse`] reads one, [`play`] plays it; `simulate` prints what is played, and the proofs play it again
//! with each fault at each point. Nothing here reads a file.

pub mod chances;
mod expect;
mod json;
pub mod play;
pub mod terraform;
pub mod timeline;

use std::{collections::BTreeMap, fmt};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    hash,
    object::{Kind, ObjectKey},
};
use capt_status::Span;
use serde::Deserialize;
use serde_json::Value;

use crate::core::Release;
pub use chances::Chances;
pub use terraform::Behaviour;

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not YAML, or not a scenario.
    #[error("the scenario does not parse: {0}")]
    Parse(String),
    /// Not one of ours.
    #[error("expected `apiVersion: {API_VERSION}` and `kind: Scenario`, found {0}")]
    Kind(String),
    /// A file that it names cannot be read.
    #[error("the file {name} that the scenario names cannot be read: {problem}")]
    File {
        /// Which one.
        name: String,
        /// Why.
        problem: String,
    },
    /// An object of a kind that is not in the world, or without a name.
    #[error("this is no object of the world, give apiVersion, kind and metadata.name of a known kind: {0}")]
    Object(String),
    /// Not the name of an object.
    #[error("`{0}` names no object; write Kind/namespace/name, or Workspace/name for a cluster-scoped one")]
    Name(String),
    /// An entry of `events` that says nothing or too much.
    #[error("the event at {0} must say exactly one thing that happens")]
    Event(Span),
    /// A chance that is none.
    #[error("the chances add up to {0}, and must not to more than 1")]
    Chances(f64),
}

/// The version of the document.
pub const API_VERSION: &str = "capt.cluster.x-k8s.io/v1alpha1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

/// Where Workspaces are made.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
enum Scope {
    #[default]
    Cluster,
    Namespaced,
}

impl From<Scope> for WorkspaceApi {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Cluster => Self::Cluster,
            Scope::Namespaced => Self::Namespaced,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    description: String,
    #[serde(default)]
    workspace_scope: Scope,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    stored: Vec<Value>,
    copies: Option<Copies>,
    #[serde(default)]
    patches: Vec<Patch>,
    #[serde(default)]
    terraform: Vec<Behaviour>,
    #[serde(default)]
    core: Release,
    #[serde(default)]
    workers: Option<usize>,
    #[serde(default)]
    events: Vec<RawEvent>,
    #[serde(default)]
    chances: Option<Chances>,
    until: Span,
    #[serde(default)]
    expect: Vec<Expectation>,
}

/// Many objects of one: `demo` becomes `demo-0`, `demo-1` and so on wherever it stands alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Copies {
    of: String,
    count: u32,
}

/// A change of an object of `files` before it is made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    object: String,
    body: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawEvent {
    at: Span,
    create: Option<Value>,
    patch: Option<Patch>,
    delete: Option<String>,
    conditions: Option<RawConditions>,
    terraform: Option<Behaviour>,
    restart: Option<Process>,
    workspace_scope: Option<Scope>,
    clock: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConditions {
    object: String,
    set: Vec<Value>,
}

/// A process that can be restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// CAPT.
    Capt,
    /// The provider, in whatever it was doing.
    Provider,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// A user makes an object.
    Create(ObjectKey, Value),
    /// Somebody merges this into an object, spec and status alike.
    Patch(ObjectKey, Value),
    /// A user deletes an object.
    Delete(ObjectKey),
    /// Another controller sets these conditions of an object and leaves the others.
    Conditions(ObjectKey, Vec<Value>),
    /// Terraform behaves like this from now on.
    Terraform(Behaviour),
    /// A process dies and comes back.
    Restart(Process),
    /// CAPT dies and comes back, and makes new Workspaces in this API.
    RestartWith(WorkspaceApi),
    /// The clock jumps by so many seconds.
    Clock(i64),
}

impl fmt::Display for Deed {
    /// `delete Cluster/default/demo`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(key, _) => write!(f, "create {key}"),
            Self::Patch(key, body) => write!(f, "patch {key} with {body}"),
            Self::Delete(key) => write!(f, "delete {key}"),
            Self::Conditions(key, _) => write!(f, "conditions of {key}"),
            Self::Terraform(behaviour) => write!(f, "Terraform does something else with {}", behaviour.workspace),
            Self::Restart(Process::Capt) => f.write_str("restart capt"),
            Self::Restart(Process::Provider) => f.write_str("restart provider"),
            Self::RestartWith(WorkspaceApi::Cluster) => f.write_str("restart capt for cluster-scoped Workspaces"),
            Self::RestartWith(WorkspaceApi::Namespaced) => f.write_str("restart capt for namespaced Workspaces"),
            Self::Clock(seconds) => write!(f, "clock {seconds:+} s"),
        }
    }
}

/// Something that happens, and when after the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub at: Span,
    /// What.
    pub deed: Deed,
}

/// What is expected.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// When; at the end by default.
    pub at: Option<Span>,
    /// Of which object.
    pub object: Option<String>,
    /// It is not there.
    #[serde(default)]
    pub absent: bool,
    /// JSON pointers and what is there; null for nothing.
    #[serde(default)]
    pub has: BTreeMap<String, Value>,
    /// Types of conditions, and their status, or status and reason.
    #[serde(default)]
    pub conditions: BTreeMap<String, String>,
    /// The states that it went through, in order.
    pub states: Option<Vec<String>>,
    /// Reasons of events about it, each at least once.
    #[serde(default)]
    pub events: Vec<String>,
    /// Most writes of CAPT so far.
    pub writes_at_most: Option<usize>,
    /// How many objects of the kind of `kind` show this state.
    pub count: Option<Count>,
    /// Terraform states, and how often each was made and destroyed, as in `1 made, 0 destroyed`.
    #[serde(default)]
    pub terraform: BTreeMap<String, String>,
}

/// How many objects of a kind show a state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Kind.
    pub kind: String,
    /// State.
    pub state: String,
    /// How many.
    pub is: usize,
}

/// A scenario that was read.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// Where Workspaces are made.
    pub workspace_api: WorkspaceApi,
    /// Objects that are there from before, as they are stored.
    pub stored: Vec<(ObjectKey, Value)>,
    /// Objects that a user makes at the beginning.
    pub objects: Vec<(ObjectKey, Value)>,
    /// What Terraform does at the beginning.
    pub terraform: Vec<Behaviour>,
    /// Which release of Cluster API core there is.
    pub core: Release,
    /// How many runs of Terraform there may be at a time.
    pub workers: usize,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// What goes wrong by chance.
    pub chances: Option<Chances>,
    /// How long it is played.
    pub until: Span,
    /// What is expected.
    pub expect: Vec<Expectation>,
}

/// Reads a scenario; `read` gives the files that it names.
pub fn parse(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Scenario, Error> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| Error::Parse(error.to_string()))?;
    let document: Document = serde_json::from_value(value).map_err(|error| Error::Parse(error.to_string()))?;
    let Document { api_version, kind, metadata, spec } = document;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, "Scenario") {
        return Err(Error::Kind(format!("{api_version} {kind}")));
    }
    let mut objects = Vec::new();
    for file in &spec.files {
        let text = read(file).map_err(|problem| Error::File { name: file.clone(), problem })?;
        let documents = serde_saphyr::from_multiple::<Value>(&text)
            .map_err(|error| Error::File { name: file.clone(), problem: error.to_string() })?;
        objects.extend(documents);
    }
    objects.extend(spec.objects);
    let mut objects = objects.into_iter().map(keyed).collect::<Result<Vec<_>, Error>>()?;
    for Patch { object, body } in &spec.patches {
        let key = key(object)?;
        let patched = objects.iter_mut().find(|(known, _)| *known == key).ok_or_else(|| Error::Name(object.clone()))?;
        json_patch::merge(&mut patched.1, body);
    }
    if let Some(Copies { of, count }) = &spec.copies {
        let (copied, kept): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(key, _)| key.name == *of);
        objects = kept;
        for index in 0..*count {
            let name = format!("{of}-{index}");
            for (_, object) in &copied {
                objects.push(keyed(json::renamed(object, of, &name))?);
            }
        }
    }
    let mut events = spec.events.into_iter().map(event).collect::<Result<Vec<_>, Error>>()?;
    events.sort_by_key(|event| event.at);
    if let Some(chances) = &spec.chances {
        chances.check()?;
    }
    for name in spec.expect.iter().filter_map(|expectation| expectation.object.as_ref()) {
        key(name)?;
    }
    Ok(Scenario {
        name: metadata.name,
        description: spec.description,
        workspace_api: spec.workspace_scope.into(),
        stored: spec.stored.into_iter().map(keyed).collect::<Result<_, _>>()?,
        objects,
        terraform: spec.terraform,
        core: spec.core,
        workers: spec.workers.unwrap_or(1),
        events,
        chances: spec.chances,
        until: spec.until,
        expect: spec.expect,
    })
}

fn event(raw: RawEvent) -> Result<Event, Error> {
    let RawEvent { at, create, patch, delete, conditions, terraform, restart, workspace_scope, clock } = raw;
    let mut deeds = Vec::new();
    if let Some(object) = create {
        let (key, object) = keyed(object)?;
        deeds.push(Deed::Create(key, object));
    }
    if let Some(Patch { object, body }) = patch {
        deeds.push(Deed::Patch(key(&object)?, body));
    }
    if let Some(object) = delete {
        deeds.push(Deed::Delete(key(&object)?));
    }
    if let Some(RawConditions { object, set }) = conditions {
        deeds.push(Deed::Conditions(key(&object)?, set));
    }
    deeds.extend(terraform.map(Deed::Terraform));
    deeds.extend(restart.map(Deed::Restart));
    deeds.extend(workspace_scope.map(|scope| Deed::RestartWith(scope.into())));
    if let Some(text) = clock {
        let span = |text: &str| text.parse::<Span>().map(Span::as_seconds).map_err(|_| Error::Event(at));
        deeds.push(Deed::Clock(match text.strip_prefix('-') {
            Some(back) => -span(back)?,
            None => span(&text)?,
        }));
    }
    match (deeds.pop(), deeds.is_empty()) {
        (Some(deed), true) => Ok(Event { at, deed }),
        (Some(_), false) | (None, _) => Err(Error::Event(at)),
    }
}

fn keyed(object: Value) -> Result<(ObjectKey, Value), Error> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let group = text("/apiVersion").and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
    let kind = text("/kind").and_then(|kind| Kind::find(group, kind));
    match (kind, text("/metadata/name")) {
        (Some(kind), Some(name)) => {
            let key = ObjectKey::new(kind, text("/metadata/namespace").unwrap_or("default"), name);
            Ok((key, object))
        }
        (None, _) | (Some(_), None) => Err(Error::Object(json::start(&object))),
    }
}

/// The key of `Kind/namespace/name` or `Workspace/name`.
pub fn key(name: &str) -> Result<ObjectKey, Error> {
    let error = || Error::Name(name.to_owned());
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        ["Workspace", name] => Ok(ObjectKey::new(Kind::Workspace(WorkspaceApi::Cluster), "", name)),
        ["Workspace", namespace, name] => {
            Ok(ObjectKey::new(Kind::Workspace(WorkspaceApi::Namespaced), namespace, name))
        }
        [kind, namespace, name] => {
            let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(error)?;
            Ok(ObjectKey::new(kind, namespace, name))
        }
        _ => Err(error()),
    }
}

/// A number from 0 to 99 that is always the same for `name`.
fn percentile(name: &str) -> u8 {
    let digits = hash::of_text(name, 8);
    u8::try_from(u32::from_str_radix(&digits, 16).unwrap_or_default() % 100).unwrap_or_default()
}

#[cfg(test)]
mod tests;
