//! The status shape, written as a controller writes it.

use capt_stack::{Tier, shared};
use capt_tests::missing;
use serde_json::{Value, json};

use crate::server::Server;

const TIME: &str = "2026-01-01T00:00:00Z";

fn common() -> Value {
    json!({
        "observedGeneration": 1,
        "specHash": "9f2c",
        "ready": true,
        "endpoint": "abcd.gr7.eu-west-1.eks.invalid:443",
        "state": "Failed",
        "phase": "Failed",
        "failureReason": "CreateError",
        "failureMessage": "quota exceeded",
        "deadlines": [{"name": "controlPlaneTimeout", "startedAt": TIME, "suspendedFor": "1h0m30s"}],
        "progress": {
            "currentOperation": "Create", "startedAt": TIME, "deadline": TIME, "percentComplete": 60,
            "milestone": "3 of 5", "estimatedTimeRemaining": "4m0s",
            "history": [{"operation": "Upgrade", "startedAt": TIME, "completedAt": TIME, "result": "Succeeded", "message": "m"}],
        },
        "health": {
            "status": "Unhealthy",
            "checks": [{"name": "SecretCheck", "status": "Failed", "reason": "R", "message": "m", "lastTransitionTime": TIME}],
        },
        "recovery": {
            "attempts": 1, "lastAttemptTime": TIME, "nextAttemptTime": TIME, "currentAction": "RetryWorkspace",
            "lastResult": "Succeeded", "escalated": true,
        },
        "dependencies": {
            "nodes": {"CAPTControlPlane/ns/name": {"type": "CAPTControlPlane", "name": "name", "namespace": "ns", "status": "Ready"}},
            "edges": {"CAPTControlPlane/ns/name": ["Cluster/ns/name"]},
            "truncated": true,
        },
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": TIME, "observedGeneration": 1},
        ],
    })
}

fn merged(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object is needed") };
    base.as_object_mut().unwrap().extend(more);
    base
}

/// Server-side apply of everything, then reading it back as the Rust types and comparing again: the
/// CRD, the wire and the types say the same.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_whole_status_is_stored_as_it_is() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "status", &capt_api::crds::all()).await;

    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster", "metadata": {"name": "whole"},
        "spec": {"region": "eu-west-1"},
    });
    let status = merged(
        common(),
        json!({
            "initialization": {"provisioned": true},
            "vpcId": "vpc-1", "vpcWorkspaceName": "whole-vpc",
            "failureDomains": [{"name": "eu-west-1a", "controlPlane": true, "attributes": {"id": "euw1-az1"}}],
            "workspaceTemplateStatus": {
                "ready": true, "workspaceName": "whole-vpc", "lastAppliedRevision": "1-a", "lastFailedRevision": "1-b",
                "lastFailureMessage": "m", "lastAppliedTime": TIME,
            },
        }),
    );
    server.create(&cluster).await.unwrap();
    let stored = server.apply_status(&cluster, &status, "capt-captcluster").await.unwrap();
    assert_eq!(stored["status"], status);
    let typed: capt_api::CAPTCluster = serde_json::from_value(stored).unwrap();
    assert_eq!(serde_json::to_value(typed.status).unwrap(), status);

    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "metadata": {"name": "whole"},
        "spec": {"version": "1.31", "workspaceTemplateRef": {"name": "eks"}},
    });
    let status = merged(
        common(),
        json!({
            "initialized": true, "secretsReady": true, "initialization": {"controlPlaneInitialized": true},
            "externalManagedControlPlane": true, "version": "v1.31.4", "versions": [{"version": "v1.31.4", "replicas": 1}],
            "workspaceTemplateStatus": {
                "ready": true, "state": "Available", "lastAppliedRevision": "1-a", "lastFailedRevision": "1-b",
                "lastFailureMessage": "m", "outputs": {"cluster_endpoint": "https://x.invalid"},
            },
            "workspaceStatus": {
                "ready": true, "state": "Available", "truncatedOutputs": ["karpenter"],
                "atProvider": {"checksum": "fff6", "outputs": {"list": [1, {"deep": null}], "flag": false}},
            },
        }),
    );
    server.create(&control_plane).await.unwrap();
    let stored = server.apply_status(&control_plane, &status, "capt-controlplane").await.unwrap();
    assert_eq!(stored["status"], status);
    let typed: capt_api::CAPTControlPlane = serde_json::from_value(stored).unwrap();
    assert_eq!(serde_json::to_value(typed.status).unwrap(), status);

    let apply = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply", "metadata": {"name": "whole"},
        "spec": {"templateRef": {"name": "vpc"}},
    });
    let status = json!({
        "observedGeneration": 1, "applied": true, "workspaceName": "whole", "lastAppliedTime": TIME,
        "lastAppliedRevision": "1-a", "externalName": "ns-whole", "conditions": common()["conditions"],
    });
    server.create(&apply).await.unwrap();
    let stored = server.apply_status(&apply, &status, "capt-apply").await.unwrap();
    assert_eq!(stored["status"], status);
    let typed: capt_api::WorkspaceTemplateApply = serde_json::from_value(stored).unwrap();
    assert_eq!(serde_json::to_value(typed.status).unwrap(), status);
}

/// Conditions are a map by type: two managers each keep their own, and an empty status of ours is
/// filled with nothing.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn managers_do_not_take_each_others_conditions() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "managers", &capt_api::crds::all()).await;
    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster", "metadata": {"name": "shared"},
        "spec": {"region": "eu-west-1"},
    });
    server.create(&cluster).await.unwrap();
    let stored =
        server.apply_status(&cluster, &json!({"deadlines": [{"name": "x", "startedAt": TIME}]}), "ours").await.unwrap();
    assert_eq!(stored["status"], json!({"deadlines": [{"name": "x", "startedAt": TIME}]}), "a status has no defaults");

    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": TIME});
    let audited = json!({"conditions": [condition("example.com/Audited", "True")]});
    server.apply_status(&cluster, &audited, "theirs").await.unwrap();
    let ours = json!({"conditions": [condition("Ready", "False")]});
    let stored = server.apply_status(&cluster, &ours, "ours").await.unwrap();
    assert_eq!(stored["status"]["conditions"].as_array().unwrap().len(), 2);
    let stored = server.apply_status(&cluster, &json!({}), "ours").await.unwrap();
    assert_eq!(missing(&audited, &stored["status"]), None);
    assert_eq!(stored["status"]["conditions"].as_array().unwrap().len(), 1);
}
