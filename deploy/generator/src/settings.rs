//! The table: every name, number and flag that the install files share.
//!
//! First in the flow; the other modules give it the forms that kubectl, clusterctl and Helm read. It
//! must not know any of those forms.

use serde_json::{Value, json};

/// Name of the provider, for clusterctl and in labels; the Go implementation's.
pub const PROVIDER: &str = "capt";
/// Namespace of the operator; the Go implementation's.
pub const NAMESPACE: &str = "capt-system";
/// Namespace that clusterctl books the control plane provider in. It holds nothing else: one
/// process serves both providers, and it belongs to the infrastructure provider.
pub const CONTROL_PLANE_NAMESPACE: &str = "capt-control-plane-system";
/// Name of the Deployment; the Go implementation's, so that it is replaced and never runs beside.
pub const DEPLOYMENT: &str = "capt-controller-manager";
/// Name of the container; clusterctl wants it so.
pub const CONTAINER: &str = "manager";
/// Name of the service account, the one that the role bindings name.
pub const SERVICE_ACCOUNT: &str = "capt-operator";
/// Image without its tag.
pub const IMAGE: &str = "ghcr.io/appthrust/capt";
/// User and group of the process: `nonroot` of distroless images.
pub const USER: i64 = 65532;
/// How many replicas run; with leader election one works and the others wait.
pub const REPLICAS: i64 = 1;
/// Seconds between SIGTERM and the kill; the lease is handed over in the first of them.
pub const GRACE_SECONDS: i64 = 10;

/// The label that selects the pods. A selector cannot be changed, so it is the Go implementation's.
pub const SELECTOR: (&str, &str) = ("control-plane", "controller-manager");

/// Path of the program in the image.
pub const PROGRAM: &str = "/capt-operator";
/// The command of the program.
pub const COMMAND: &str = "run";
/// Flags of the process and their values, by name as the chart renders them; a test compares them with the command line itself.
pub const FLAGS: [(&str, &str); 4] =
    [("health-address", ":9440"), ("leader-elect", "true"), ("log-format", "json"), ("metrics-address", ":8443")];

/// Port of `/livez` and `/readyz`; that of the flag.
pub const HEALTH_PORT: i64 = 9440;
/// Port of `/metrics`, over TLS; that of the flag.
pub const METRICS_PORT: i64 = 8443;

/// Ports on which API servers serve: that of the service `kubernetes`, and what most have behind it.
pub const API_SERVER_PORTS: [i64; 2] = [443, 6443];

/// The release, as images and clusterctl name it.
pub fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

/// The arguments of the container.
pub fn arguments() -> Vec<String> {
    let flags = FLAGS.iter().map(|(flag, value)| format!("--{flag}={value}"));
    std::iter::once(COMMAND.to_owned()).chain(flags).collect()
}

/// Requests and limits of the container.
///
/// There is no limit on the processor: throttling would let a lease run out.
pub fn resources() -> Value {
    json!({
        "requests": {"cpu": "10m", "memory": "64Mi"},
        "limits": {"memory": "256Mi"},
    })
}

/// What the container may do: nothing but write to its sockets.
pub fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
    })
}

/// What the pod may do; together with [`container_security`] this is the `restricted` standard.
pub fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// Ports of the container.
pub fn ports() -> Value {
    json!([
        {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
    ])
}

/// Labels of every object.
pub fn labels() -> Value {
    json!({"app.kubernetes.io/name": PROVIDER})
}

/// Labels of the Deployment and its pods.
pub fn workload_labels() -> Value {
    json!({"app.kubernetes.io/name": PROVIDER, SELECTOR.0: SELECTOR.1})
}
