//! What the Go implementation left is taken over: values repaired, nothing made anew, nothing of a user
//! overwritten.

use crate::common::{FILES, condition, key, ready, simulation, status};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

fn plane(simulation: &Simulation) -> Value {
    simulation.api.get(&key(Kind::CaptControlPlane, "demo")).unwrap().clone()
}

fn endpoint(simulation: &Simulation, kind: Kind) -> Value {
    simulation.api.get(&key(kind, "demo")).unwrap()["spec"]["controlPlaneEndpoint"].clone()
}

/// Terraform as in the examples, but the EKS module is not done yet.
fn eks_hangs(workspace: &Value) -> Outputs {
    let result = if workspace["metadata"]["name"] == "demo-vpc" { Ending::Success } else { Ending::Hang };
    Outputs { result, ..crate::common::terraform(workspace) }
}

/// Writes to a Cluster since `before`.
fn cluster_writes(simulation: &Simulation, before: usize) -> Vec<Request> {
    let of_cluster = |request: &Request| request.written().is_some_and(|target| target.kind == Kind::Cluster);
    simulation.requests[before..].iter().map(|(request, _)| request.clone()).filter(of_cluster).collect()
}

#[test]
fn a_url_in_the_place_of_a_host_is_repaired_once_in_both_specs() {
    let mut simulation = ready();
    let url = json!({"host": "https://demo.eks.invalid", "port": 443});
    for kind in [Kind::CaptControlPlane, Kind::Cluster] {
        simulation.api.edit(&key(kind, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = url.clone());
    }
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["status"]["endpoint"] = Value::Null);
    let before = simulation.requests.len();
    assert!(simulation.run());
    let repaired = json!({"host": "demo.eks.invalid", "port": 443});
    assert_eq!(
        [endpoint(&simulation, Kind::CaptControlPlane), endpoint(&simulation, Kind::Cluster)],
        [repaired.clone(), repaired.clone()]
    );
    let writes = cluster_writes(&simulation, before);
    let [Request::MergePatch { target: _, body }] = &writes[..] else { panic!("{writes:?}") };
    assert_eq!(body["spec"], json!({"controlPlaneEndpoint": repaired}));
    assert!(body["metadata"]["uid"].is_string() && body["metadata"]["resourceVersion"].is_string(), "{body}");
    assert_eq!(body.as_object().unwrap().len(), 2, "nothing but the endpoint and the precondition: {body}");
}

#[test]
fn the_endpoint_of_a_cluster_is_written_for_nothing_else() {
    for host in ["mine.invalid", "https://mine.invalid", "https://demo.eks.invalid:6443", "https://"] {
        let mut simulation = ready();
        let value = json!({"host": host, "port": 443});
        simulation
            .api
            .edit(&key(Kind::Cluster, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = value.clone());
        let before = simulation.requests.len();
        assert!(simulation.run());
        assert_eq!(endpoint(&simulation, Kind::Cluster), value);
        assert_eq!(cluster_writes(&simulation, before), [], "{host}");
    }
}

#[test]
fn an_endpoint_that_the_user_set_is_never_overwritten() {
    let mine = json!({"host": "api.mine.invalid", "port": 6443});
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(eks_hangs);
    assert!(simulation.run());
    simulation
        .api
        .edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = mine.clone());
    simulation.terraform(crate::common::terraform);
    assert!(simulation.run());
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane), mine);
    let status = plane(&simulation)["status"].clone();
    assert_eq!([&status["endpoint"], &status["state"]], ["api.mine.invalid:6443", "Ready"]);
    // And later.
    let other = json!({"host": "api.other.invalid", "port": 443});
    simulation
        .api
        .edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = other.clone());
    assert!(simulation.run());
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane), other);
    assert_eq!(plane(&simulation)["status"]["endpoint"], "api.other.invalid:443");
    let told = condition(&plane(&simulation)["status"], "EndpointAvailable");
    assert_eq!([&told["status"], &told["reason"]], ["True", "EndpointOverridden"]);
}

#[test]
fn another_endpoint_of_a_cluster_that_serves_is_told_and_not_written() {
    let mut simulation = ready();
    simulation.terraform(|workspace| {
        let mut outputs = crate::common::terraform(workspace);
        if outputs.plain.contains_key("cluster_endpoint") {
            outputs.plain.insert("cluster_endpoint".into(), json!("https://other.eks.invalid"));
        }
        outputs
    });
    let spec = endpoint(&simulation, Kind::CaptControlPlane);
    assert!(simulation.run());
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane), spec);
    let told = condition(&plane(&simulation)["status"], "EndpointAvailable");
    assert_eq!([&told["status"], &told["reason"]], ["True", "EndpointChanged"]);
    assert!(told["message"].as_str().unwrap().contains("other.eks.invalid:443"), "{told}");
    assert!(!simulation.resync(), "and stays told");
    // The user takes it.
    simulation
        .api
        .edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = Value::Null);
    assert!(simulation.run());
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane)["host"], "other.eks.invalid");
    assert_eq!(condition(&plane(&simulation)["status"], "EndpointAvailable")["reason"], "Available");
}

/// A status as the Go implementation leaves it after an error that passed.
fn go_status() -> (Value, Value) {
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": "old", "lastTransitionTime": "2025-01-01T00:00:00Z"});
    let infrastructure = json!({
        "ready": true, "vpcId": "vpc-0123", "vpcWorkspaceName": "demo-vpc",
        "failureReason": "VPCReconciliationFailed", "failureMessage": "the object has been modified",
        "failureDomains": {"eu-west-1a": {"controlPlane": true}},
        "conditions": [condition("VPCReady", "True", "VPCReady"), condition("VPCFailed", "True", "VPCCreationFailed")],
    });
    let control_plane = json!({
        "ready": true, "initialized": true, "phase": "Failed",
        "failureReason": "WorkspaceReconciliationFailed", "failureMessage": "the object has been modified",
        "workspaceTemplateStatus": {"ready": true, "state": "Available", "lastAppliedRevision": "2025-01-01 00:00:00 +0000 UTC m=+1.5"},
        "conditions": [condition("Ready", "False", "Failed")],
    });
    (infrastructure, control_plane)
}

#[test]
fn what_go_left_in_a_status_is_repaired_and_nothing_is_made_anew() {
    let mut simulation = ready();
    let (infrastructure, control_plane) = go_status();
    simulation.api.edit(&key(Kind::CaptCluster, "demo"), |object| object["status"] = infrastructure);
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["status"] = control_plane);
    let before = simulation.requests.len();
    assert!(simulation.run());
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    let control_plane = status(&simulation, Kind::CaptControlPlane, "demo");
    for status in [&infrastructure, &control_plane] {
        assert_eq!([&status["state"], &status["phase"]], ["Ready", "Ready"], "{status:#}");
        assert_eq!([&status["failureReason"], &status["failureMessage"]], [&Value::Null; 2], "{status:#}");
        assert_eq!([&status["ready"], &condition(status, "Ready")["status"]], [&json!(true), &json!("True")]);
        assert!(status["observedGeneration"].is_i64());
    }
    assert_eq!(condition(&infrastructure, "VPCFailed")["status"], "False");
    assert_eq!(infrastructure["initialization"]["provisioned"], true);
    assert_eq!(infrastructure["failureDomains"][0]["name"], "eu-west-1a");
    assert_eq!(control_plane["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(
        [&control_plane["externalManagedControlPlane"], &control_plane["version"]],
        [&json!(true), &json!("v1.31.0")]
    );
    assert!(!control_plane["workspaceTemplateStatus"]["lastAppliedRevision"].as_str().unwrap().contains("UTC"));
    for (request, result) in &simulation.requests[before..] {
        assert!(matches!(request, Request::ApplyStatus { .. }), "{request:?}");
        assert_eq!(*result, Ok(()));
    }
}

#[test]
fn ready_without_an_endpoint_keeps_its_latch_and_is_not_called_ready() {
    let mut simulation = ready();
    simulation.terraform(|workspace| {
        let mut outputs = crate::common::terraform(workspace);
        outputs.plain.remove("cluster_endpoint");
        outputs
    });
    simulation.api.delete(&key(Kind::Secret, "demo-eks-connection"), None);
    simulation.step_provider();
    simulation.api.edit(&key(Kind::Cluster, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = Value::Null);
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
        object["spec"]["controlPlaneEndpoint"] = Value::Null;
        object["status"] = json!({"ready": true});
    });
    assert!(simulation.run());
    let status = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&status["state"], &status["ready"]], [&json!("Degraded"), &json!(true)], "{status:#}");
    assert_eq!(condition(&status, "EndpointAvailable")["status"], "False");
    assert_eq!(status["initialized"], false, "nothing says that it accepts requests");
}

#[test]
fn the_endpoint_of_the_cluster_is_taken_where_terraform_has_none() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(eks_hangs);
    assert!(simulation.run());
    simulation.api.edit(&key(Kind::Cluster, "demo"), |object| {
        object["spec"]["controlPlaneEndpoint"] = json!({"host": "lb.invalid", "port": 6443});
    });
    simulation.terraform(|workspace| {
        let mut outputs = crate::common::terraform(workspace);
        outputs.plain.remove("cluster_endpoint");
        outputs
    });
    assert!(simulation.run());
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane), json!({"host": "lb.invalid", "port": 6443}));
    assert_eq!(plane(&simulation)["status"]["state"], "Ready", "{:#}", plane(&simulation));
}

/// By what can be seen it is a restore that lost the Workspace.
#[test]
fn an_endpoint_that_was_there_before_anything_was_made_needs_a_word_of_the_user() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    let mine = json!({"host": "api.mine.invalid", "port": 6443});
    simulation
        .api
        .edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["controlPlaneEndpoint"] = mine.clone());
    assert!(simulation.run_for(Span::from_minutes(60)));
    let workspaces = |simulation: &Simulation| {
        simulation
            .api
            .keys()
            .filter(|key| matches!(key.kind, Kind::Workspace(_)))
            .map(|key| key.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(workspaces(&simulation), [""; 0], "neither a VPC nor a control plane");
    let apply = simulation.api.get(&key(Kind::Apply, "demo-vpc")).unwrap();
    let told = condition(&apply["status"], "Synced");
    assert_eq!(told["reason"], "WorkspaceMissing");
    assert!(
        told["message"].as_str().unwrap().contains("capt.cluster.x-k8s.io/recreate-workspace: demo-vpc"),
        "{told:#}"
    );
    for (kind, apply) in [(Kind::CaptCluster, "demo-vpc"), (Kind::CaptControlPlane, "demo-eks-controlplane-apply")] {
        simulation.api.edit(&key(kind, "demo"), |object| {
            object["metadata"]["annotations"]["capt.cluster.x-k8s.io/recreate-workspace"] = json!(apply);
        });
    }
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["status"]["state"], "Ready");
    assert_eq!(endpoint(&simulation, Kind::CaptControlPlane), mine);
}
