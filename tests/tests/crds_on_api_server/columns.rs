//! What `kubectl get` shows.

use capt_stack::{Tier, shared};
use serde_json::{Value, json};

use crate::server::Server;

fn columns(table: &Value, wide: bool) -> Vec<(String, String)> {
    let definitions = table["columnDefinitions"].as_array().unwrap();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    definitions
        .iter()
        .zip(cells)
        .filter(|(definition, _)| (definition["priority"] != 0) == wide)
        .map(|(definition, cell)| {
            let text = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
            (definition["name"].as_str().unwrap().to_uppercase(), text)
        })
        .filter(|(name, _)| name != "AGE")
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, cell)| ((*name).to_owned(), (*cell).to_owned())).collect()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_columns_are_those_of_the_requirements() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "columns", &capt_api::crds::all()).await;
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});

    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "CAPTCluster",
        "metadata": {"name": "test-cluster"},
        "spec": {"region": "eu-west-1"},
    });
    server.create(&cluster).await.unwrap();
    let status = json!({
        "ready": true, "vpcId": "vpc-123456789", "endpoint": "10.0.0.1:6443", "phase": "Ready", "state": "Ready",
        "conditions": [condition("Available", "Available"), condition("Ready", "Ready")],
    });
    server.set_status(&cluster, &status).await.unwrap();
    let table = server.table(&cluster).await.unwrap();
    let shown =
        [("NAME", "test-cluster"), ("VPC-ID", "vpc-123456789"), ("READY", "true"), ("ENDPOINT", "10.0.0.1:6443")];
    assert_eq!(columns(&table, false), pairs(&shown));
    let wide = [("PHASE", "Ready"), ("STATE", "Ready"), ("AVAILABLE", "True"), ("REASON", "Ready")];
    assert_eq!(columns(&table, true), pairs(&wide));

    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
        "kind": "CAPTControlPlane",
        "metadata": {"name": "test-cluster"},
        "spec": {"version": "1.31", "workspaceTemplateRef": {"name": "eks"}},
    });
    server.create(&control_plane).await.unwrap();
    let status = json!({
        "ready": true, "endpoint": "10.0.0.1:6443", "phase": "Ready", "state": "Degraded", "version": "v1.31.4",
        "conditions": [condition("Available", "Available"), condition("Ready", "Degraded")],
    });
    server.set_status(&control_plane, &status).await.unwrap();
    let table = server.table(&control_plane).await.unwrap();
    let shown = [
        ("NAME", "test-cluster"),
        ("READY", "true"),
        ("PHASE", "Ready"),
        ("VERSION", "1.31"),
        ("ENDPOINT", "10.0.0.1:6443"),
    ];
    assert_eq!(columns(&table, false), pairs(&shown));
    let wide = [("STATE", "Degraded"), ("AVAILABLE", "True"), ("RUNNING", "v1.31.4"), ("REASON", "Degraded")];
    assert_eq!(columns(&table, true), pairs(&wide));

    let apply = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "WorkspaceTemplateApply",
        "metadata": {"name": "test-cluster-vpc"},
        "spec": {"templateRef": {"name": "vpc"}},
    });
    server.create(&apply).await.unwrap();
    let status = json!({
        "applied": true, "workspaceName": "test-cluster-vpc",
        "conditions": [condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")],
    });
    server.set_status(&apply, &status).await.unwrap();
    let table = server.table(&apply).await.unwrap();
    let shown = [("NAME", "test-cluster-vpc"), ("WORKSPACE", "test-cluster-vpc"), ("APPLIED", "true")];
    assert_eq!(columns(&table, false), pairs(&shown));
    let wide = [("READY", "True"), ("SYNCED", "True"), ("TEMPLATE", "vpc")];
    assert_eq!(columns(&table, true), pairs(&wide));
}
