//! The objects that run the operator, with their default settings.
//!
//! Made from [`settings`] alone; Kustomize takes them as they are, clusterctl with
//! its labels, and the chart's defaults have to render the same.

use serde_json::{Value, json};

use crate::settings;

/// The namespace, which asks for the strictest pod security.
pub fn namespace(name: &str) -> Value {
    let mut labels = settings::labels();
    labels["pod-security.kubernetes.io/enforce"] = json!("restricted");
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// The service account that the role bindings name.
pub fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(settings::SERVICE_ACCOUNT, &settings::labels()),
    })
}

/// The Deployment.
///
/// Two processes must not run at once, also not for a moment, where the older one is the Go
/// implementation, which knows nothing of our lease: hence `Recreate`. The program is named, since a
/// server-side apply would leave what another manager wrote there, the Go implementation's `/manager`.
pub fn deployment() -> Value {
    let (key, value) = settings::SELECTOR;
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(settings::DEPLOYMENT, &settings::workload_labels()),
        "spec": {
            "replicas": settings::REPLICAS,
            "selector": {"matchLabels": {key: value}},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {
                    "labels": settings::workload_labels(),
                    "annotations": {"kubectl.kubernetes.io/default-container": settings::CONTAINER},
                },
                "spec": {
                    "containers": [{
                        "name": settings::CONTAINER,
                        "image": format!("{}:{}", settings::IMAGE, settings::version()),
                        "command": [settings::PROGRAM],
                        "args": settings::arguments(),
                        "ports": settings::ports(),
                        "livenessProbe": probe("/livez"),
                        "readinessProbe": probe("/readyz"),
                        "resources": settings::resources(),
                        "securityContext": settings::container_security(),
                    }],
                    "securityContext": settings::pod_security(),
                    "serviceAccountName": settings::SERVICE_ACCOUNT,
                    "terminationGracePeriodSeconds": settings::GRACE_SECONDS,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                },
            },
        },
    })
}

/// Where `/metrics` is scraped.
pub fn metrics_service() -> Value {
    let (key, value) = settings::SELECTOR;
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(METRICS_SERVICE, &settings::workload_labels()),
        "spec": {
            "selector": {key: value},
            "ports": [{"name": "metrics", "port": settings::METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"}],
        },
    })
}

/// At most one replica is evicted at a time. With a single one this does not hold up a drain.
pub fn disruption_budget() -> Value {
    let (key, value) = settings::SELECTOR;
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(settings::DEPLOYMENT, &settings::labels()),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {key: value}}},
    })
}

/// Who may talk to the operator and to whom it may talk.
///
/// In: probes and metrics. Out: the API server alone, by its ports, since its address is known to the cluster only;
/// `api_servers` are its addresses where they are known. No name is looked up: a pod has the address in its environment.
pub fn network_policy(api_servers: &[&str]) -> Value {
    let (key, value) = settings::SELECTOR;
    let ports =
        |ports: &[i64]| -> Vec<Value> { ports.iter().map(|port| json!({"port": port, "protocol": "TCP"})).collect() };
    let mut egress = json!({"ports": ports(&settings::API_SERVER_PORTS)});
    if !api_servers.is_empty() {
        egress["to"] = api_servers.iter().map(|cidr| json!({"ipBlock": {"cidr": cidr}})).collect();
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(settings::DEPLOYMENT, &settings::labels()),
        "spec": {
            "podSelector": {"matchLabels": {key: value}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": ports(&[settings::HEALTH_PORT, settings::METRICS_PORT])}],
            "egress": [egress],
        },
    })
}

/// Name of the service; the Go implementation's.
const METRICS_SERVICE: &str = "capt-controller-manager-metrics-service";

/// Everything is said, so that nothing of an older Deployment stays.
fn probe(path: &str) -> Value {
    json!({"httpGet": {"path": path, "port": "health", "scheme": "HTTP"}, "periodSeconds": 10})
}

fn metadata(name: &str, labels: &Value) -> Value {
    json!({"name": name, "namespace": settings::NAMESPACE, "labels": labels})
}
