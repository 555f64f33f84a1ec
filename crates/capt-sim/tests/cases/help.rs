//! What the cases have in common: the examples' cluster, how Terraform ends, what was written since.

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::{Refusal, Request, Response},
    object::{Kind, ObjectKey},
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{FILES, create, documents, key, simulation, status, terraform},
    workspaces::writes,
};

/// The status of the control plane.
pub(crate) fn plane(simulation: &Simulation) -> Value {
    status(simulation, Kind::CaptControlPlane, "demo")
}

/// The status of the CAPTCluster.
pub(crate) fn infrastructure(simulation: &Simulation) -> Value {
    status(simulation, Kind::CaptCluster, "demo")
}

pub(crate) fn plane_key() -> ObjectKey {
    key(Kind::CaptControlPlane, "demo")
}

pub(crate) fn infrastructure_key() -> ObjectKey {
    key(Kind::CaptCluster, "demo")
}

pub(crate) fn cluster_key() -> ObjectKey {
    key(Kind::Cluster, "demo")
}

pub(crate) fn workspace_key(name: &str) -> ObjectKey {
    key(Kind::Workspace(WorkspaceApi::Cluster), name)
}

pub(crate) fn eks() -> ObjectKey {
    workspace_key("demo-eks-controlplane")
}

pub(crate) fn vpc() -> ObjectKey {
    workspace_key("demo-vpc")
}

/// Terraform as in the examples, but Workspaces with `part` in their name end so.
pub(crate) fn ends(part: &'static str, result: Ending) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let is_it = workspace["metadata"]["name"].as_str().is_some_and(|name| name.contains(part));
        if is_it { Outputs { result: result.clone(), ..terraform(workspace) } } else { terraform(workspace) }
    }
}

/// A run of Terraform that fails with this text.
pub(crate) fn failure(text: &str) -> Ending {
    Ending::Failure(text.to_owned())
}

/// Terraform as in the examples, but with this output of the EKS module.
pub(crate) fn with_output(name: &'static str, value: Value) -> impl Fn(&Value) -> Outputs {
    with_output_beside("cluster_endpoint", name, value)
}

/// Terraform as in the examples, but with this output of the module that has `beside`.
pub(crate) fn with_output_beside(beside: &'static str, name: &'static str, value: Value) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let mut outputs = terraform(workspace);
        if outputs.plain.contains_key(beside) {
            outputs.plain.insert(name.into(), value.clone());
        }
        outputs
    }
}

/// The examples' cluster, not run yet.
pub(crate) fn fresh() -> Simulation {
    simulation(WorkspaceApi::Cluster, &FILES)
}

/// The examples' cluster with this Terraform, not run yet.
pub(crate) fn fresh_with(terraform: impl Fn(&Value) -> Outputs + 'static) -> Simulation {
    let mut simulation = fresh();
    simulation.terraform(terraform);
    simulation
}

/// The same, run until it is at rest.
pub(crate) fn created_with(terraform: impl Fn(&Value) -> Outputs + 'static) -> Simulation {
    let mut simulation = fresh_with(terraform);
    assert!(simulation.run(), "it never comes to rest");
    simulation
}

/// The examples' cluster with each of its objects changed by `edit`, not run yet.
pub(crate) fn fresh_as(edit: impl Fn(&str, &mut Value)) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    for mut object in documents("cluster.yaml") {
        let kind = object["kind"].as_str().unwrap().to_owned();
        edit(&kind, &mut object);
        create(&mut simulation, object);
    }
    simulation
}

/// Lets `span` pass.
pub(crate) fn wait(simulation: &mut Simulation, span: Span) {
    assert!(simulation.run_for(span), "it never comes to rest");
}

pub(crate) const fn minutes(minutes: i64) -> Span {
    Span::from_minutes(minutes)
}

/// Statuses of `target` that were written since `before` requests had been made.
pub(crate) fn statuses(simulation: &Simulation, target: &ObjectKey, before: usize) -> Vec<Value> {
    let status = |request: &Request| {
        request.applied_status().filter(|(found, _)| *found == target).map(|(_, status)| status.clone())
    };
    simulation.requests[before..].iter().filter_map(|(request, _)| status(request)).collect()
}

/// The object that a request writes, and the body of it where it has one.
pub(crate) fn written(request: &Request) -> Option<(&ObjectKey, Value)> {
    match request {
        Request::Create { target, body }
        | Request::MergePatch { target, body }
        | Request::ApplyStatus { target, manager: _, body }
        | Request::MergeStatus { target, manager: _, body } => Some((target, body.clone())),
        Request::JsonPatch { target, operations } => Some((target, json!(operations))),
        Request::Delete { target, uid: _, resource_version: _ } => Some((target, Value::Null)),
        Request::Get { .. } | Request::List { .. } => None,
    }
}

/// Nothing at all is asked or written when passes run now and after each of these times.
pub(crate) fn assert_still(simulation: &mut Simulation, after: &[i64]) {
    let before = simulation.requests.len();
    for seconds in [0].iter().chain(after) {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(*seconds));
        simulation.resync();
    }
    assert_eq!(simulation.requests[before..], [], "nothing happened, so nothing is asked or written");
}

/// Writes to objects whose line has `part` in it, since `before`.
pub(crate) fn writes_to(simulation: &Simulation, before: usize, part: &str) -> Vec<String> {
    let mut lines = writes(simulation, before);
    lines.retain(|line| line.contains(part));
    lines
}

/// Reasons of the events so far about the object at `key`.
pub(crate) fn events_of(simulation: &Simulation, key: &ObjectKey) -> Vec<&'static str> {
    simulation.events.iter().filter(|(of, _)| of == key).map(|(_, event)| event.reason).collect()
}

/// The API server says no.
pub(crate) fn refusal(code: u16, reason: &str) -> Response {
    Response::Refused(Refusal { code, reason: reason.to_owned(), message: format!("refused with {code}") })
}

pub(crate) fn is_gone(simulation: &Simulation, key: &ObjectKey) -> bool {
    simulation.api.get(key).is_none()
}

/// Keys of everything but templates.
pub(crate) fn left(simulation: &Simulation) -> Vec<String> {
    simulation.api.keys().filter(|key| key.kind != Kind::Template).map(ToString::to_string).collect()
}
