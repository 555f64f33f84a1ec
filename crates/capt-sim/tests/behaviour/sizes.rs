//! However much Terraform, the provider and other writers put into an object: what CAPT says stays small.

use crate::common::{FILES, condition, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::Kind;
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

const INPUT: usize = 4 << 20;
const LARGEST_STATUS: usize = 256 << 10;
const LONGEST_MESSAGE: usize = 1 << 10;

/// Every text below a field of this name.
fn messages<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name.to_lowercase().ends_with("message") || name == "reason" => found.push(text),
                    _ => messages(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| messages(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn assert_small(simulation: &mut Simulation, name: &str) {
    for key in simulation.api.keys() {
        if !matches!(key.kind, Kind::CaptCluster | Kind::CaptControlPlane | Kind::Apply) {
            continue;
        }
        let status = &simulation.api.get(key).unwrap()["status"];
        assert!(status.is_object(), "{name}: {key} says nothing");
        let size = status.to_string().len();
        assert!(size <= LARGEST_STATUS, "{name}: the status of {key} has {size} bytes");
        let mut texts = Vec::new();
        messages(status, &mut texts);
        for text in texts {
            assert!(text.len() <= LONGEST_MESSAGE, "{name}: {key} says {} bytes", text.len());
        }
    }
    for (about, event) in &simulation.events {
        assert!(event.note.len() <= LONGEST_MESSAGE, "{name}: an event about {about} has {} bytes", event.note.len());
    }
    let seen = simulation.writes().count();
    assert!(!simulation.resync(), "{name}: what is cut off is no reason to write");
    assert_eq!(simulation.writes().count(), seen, "{name}");
}

fn with_output(name: &'static str, value: &Value) -> impl Fn(&Value) -> Outputs + 'static + use<> {
    let value = value.clone();
    move |workspace: &Value| {
        let mut outputs = terraform(workspace);
        outputs.plain.insert(name.to_owned(), value.clone());
        outputs
    }
}

#[test]
fn outputs_of_any_size_leave_a_small_status() {
    let text = "x".repeat(INPUT);
    let many: Vec<Value> = (0..INPUT / 16).map(|number| json!(format!("zone-{number:08}"))).collect();
    let nested = (0..2000).fold(json!("end"), |inner, _| json!([inner]));
    let values =
        [json!(text), json!(many), nested, json!({ text.as_str(): true }), json!("\u{1f980}".repeat(INPUT / 4))];
    let names =
        ["something", "vpc_id", "azs", "cluster_endpoint", "cluster_version", "cluster_certificate_authority_data"];
    for name in names {
        for value in &values {
            let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
            simulation.terraform(with_output(name, value));
            simulation.run_for(Span::from_minutes(5));
            let kind = value.to_string().chars().take(20).collect::<String>();
            assert_small(&mut simulation, &format!("{name} = {kind}"));
        }
    }
}

/// What no object could hold is told where it comes from, and nothing is tried again and again.
#[test]
fn a_vpc_that_puts_out_too_much_is_told_on_the_control_plane() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(with_output("cidrs", &json!("x".repeat(INPUT))));
    assert!(simulation.run());
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    let stalled = condition(&plane, "Stalled");
    assert_eq!([&stalled["status"], &stalled["reason"]], ["True", "VariablesTooLarge"], "{plane:#}");
    assert!(stalled["message"].as_str().unwrap().contains("vpc_cidrs"), "{stalled}");
    assert!(simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).is_none());
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
}

#[test]
fn as_many_outputs_as_there_may_be_leave_a_small_status() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(|workspace| {
        let mut outputs = terraform(workspace);
        outputs.plain.extend((0..INPUT / 64).map(|number| (format!("output_{number:040}"), json!(number))));
        outputs.sensitive.extend((0..1000).map(|number| (format!("secret_{number}"), "s".repeat(1000))));
        outputs
    });
    simulation.run_for(Span::from_minutes(5));
    assert_small(&mut simulation, "many outputs");
}

#[test]
fn failures_of_any_size_leave_a_small_status() {
    let line = "Error: creating EKS Cluster (demo): AccessDeniedException: no permission for eks:CreateCluster\n";
    let wide = "\u{1f980}\u{301}".repeat(INPUT / 8);
    for message in [line.repeat(INPUT / line.len()), "x".repeat(INPUT), wide, "\u{1b}[31m".repeat(INPUT / 5)] {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        let kind: String = message.chars().take(12).collect();
        simulation
            .terraform(move |workspace| Outputs { result: Ending::Failure(message.clone()), ..terraform(workspace) });
        simulation.run_for(Span::from_minutes(24 * 60));
        assert_small(&mut simulation, &kind);
    }
}

/// What other writers left in the status of an object of ours is theirs and not sent.
#[test]
fn what_others_say_is_not_sent_again() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "R", "message": "m".repeat(INPUT),
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        simulation.api.edit(&key(kind, "demo"), |object| {
            object["status"]["conditions"].as_array_mut().unwrap().push(theirs.clone());
            object["spec"]["timeouts"] = json!({"controlPlaneTimeout": 31, "vpcReadyTimeout": 16});
        });
    }
    let seen = simulation.requests.len();
    assert!(simulation.run());
    for (request, answer) in &simulation.requests[seen..] {
        assert!(format!("{request:?}").len() < LARGEST_STATUS, "{answer:?}");
    }
}
