//! A world with one template and one apply, for tests of what becomes of its Workspace.

#![allow(dead_code, unreachable_pub)] // each test binary uses its part of it

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
    pass::Settings,
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "team";
pub const TEMPLATE: &str = "network";
pub const APPLY: &str = "demo-apply";
pub const WORKSPACE: &str = "demo";

pub fn key(kind: Kind, name: &str) -> ObjectKey {
    ObjectKey::new(kind, NAMESPACE, name)
}

/// The Workspace of [`APPLY`], cluster-scoped.
pub fn workspace() -> ObjectKey {
    key(Kind::Workspace(WorkspaceApi::Cluster), WORKSPACE)
}

/// The spec that the template has if a test says nothing else, as the API server fills it in.
pub fn spec() -> Value {
    json!({
        "deletionPolicy": "Delete",
        "managementPolicies": ["*"],
        "providerConfigRef": {"name": "aws"},
        "forProvider": {"source": "Inline", "module": "output \"id\" { value = var.cidr }",
            "vars": [{"key": "cidr", "value": "${cidr}"}]},
        "writeConnectionSecretToRef": {"name": "demo-connection", "namespace": NAMESPACE},
    })
}

pub fn template(spec: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplate",
        "metadata": {"namespace": NAMESPACE, "name": TEMPLATE},
        "spec": {"template": {"spec": spec}},
    })
}

pub fn apply(name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"templateRef": {"name": TEMPLATE}, "variables": {"cidr": "10.0.0.0/16"}},
    })
}

/// Terraform that succeeds and puts out what it was given.
pub fn terraform(workspace: &Value) -> Outputs {
    let mut outputs = Outputs { result: Ending::Success, ..Outputs::default() };
    outputs.plain.insert("id".into(), workspace["spec"]["forProvider"]["vars"][0]["value"].clone());
    outputs
}

/// A world with the template and nothing else in it.
pub fn world() -> Simulation {
    let mut simulation = Simulation::new(Settings::default(), terraform);
    simulation.api.create(&key(Kind::Template, TEMPLATE), template(&spec()));
    simulation
}

/// A world in which [`APPLY`] has made its Workspace and it is ready.
pub fn ready() -> Simulation {
    let mut simulation = world();
    simulation.api.create(&key(Kind::Apply, APPLY), apply(APPLY));
    assert!(simulation.run(), "it never comes to rest");
    assert_eq!(shown(&simulation, "Ready"), "True Available");
    simulation
}

pub fn annotate(simulation: &mut Simulation, key: &ObjectKey, name: &str, value: &str) {
    simulation.api.edit(key, |object| object["metadata"]["annotations"][name] = json!(value));
}

pub fn annotation(simulation: &Simulation, key: &ObjectKey, name: &str) -> Value {
    simulation.api.get(key).unwrap_or_else(|| panic!("no {key}"))["metadata"]["annotations"]
        .get(name)
        .cloned()
        .unwrap_or_default()
}

/// A condition of [`APPLY`] as "status reason".
pub fn shown(simulation: &Simulation, type_: &str) -> String {
    let (status, reason, _) = condition(simulation, APPLY, type_);
    format!("{status} {reason}").trim().to_owned()
}

/// The message of a condition of [`APPLY`].
pub fn message(simulation: &Simulation, type_: &str) -> String {
    condition(simulation, APPLY, type_).2
}

/// Status, reason and message of a condition of an apply; empty if there is none.
pub fn condition(simulation: &Simulation, apply: &str, type_: &str) -> (String, String, String) {
    let apply = simulation.api.get(&key(Kind::Apply, apply)).unwrap_or_else(|| panic!("no apply {apply}"));
    let found = apply["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == type_)
        .cloned()
        .unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

pub fn status(simulation: &Simulation, field: &str) -> Value {
    simulation.api.get(&key(Kind::Apply, APPLY)).unwrap()["status"][field].clone()
}

/// The writes since `seen` requests had been made, as lines "verb kind/name".
pub fn writes(simulation: &Simulation, seen: usize) -> Vec<String> {
    let line = |request: &Request| match request {
        Request::Create { target, .. } => Some(format!("create {target}")),
        Request::MergePatch { target, .. } => Some(format!("patch {target}")),
        Request::JsonPatch { target, .. } => Some(format!("json-patch {target}")),
        Request::ApplyStatus { target, .. } | Request::MergeStatus { target, .. } => Some(format!("status {target}")),
        Request::Delete { target, .. } => Some(format!("delete {target}")),
        Request::Get { .. } | Request::List { .. } => None,
    };
    simulation.requests[seen..].iter().filter_map(|(request, _)| line(request)).collect()
}

/// The same, only those to Workspaces.
pub fn workspace_writes(simulation: &Simulation, seen: usize) -> Vec<String> {
    let mut lines = writes(simulation, seen);
    lines.retain(|line| line.contains(" Workspace/"));
    lines
}

/// Reasons of the events so far.
pub fn events(simulation: &Simulation) -> Vec<&'static str> {
    simulation.events.iter().map(|(_, event)| event.reason).collect()
}

/// The hash that the condition about a takeover names.
pub fn pending_hash(simulation: &Simulation) -> String {
    let message = message(simulation, "PendingTakeoverChanges");
    let (_, after) = message.split_once("apply-pending: ").unwrap_or_else(|| panic!("no hash in {message}"));
    after.split_whitespace().next().unwrap().to_owned()
}

/// Nothing is written any more, now and much later.
pub fn assert_rest(simulation: &mut Simulation) {
    let before = simulation.requests.len();
    for seconds in [1, 3600, 24 * 3600] {
        simulation.api.now = simulation.api.now.plus(capt_status::Span::from_seconds(seconds));
        simulation.resync();
    }
    assert_eq!(writes(simulation, before), [""; 0], "nothing happened, so nothing is written");
}
