//! What the Go implementation's installation leaves in a cluster, as far as ours meets it: names,
//! selectors, the filled-in update strategy, CRDs without any mark that keeps them, and kinds that
//! we do not have.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// The kind of the template that ours replaces, and one that ours does not have.
const OWN_KINDS: [(&str, &str, &str); 2] = [
    ("controlplane.cluster.x-k8s.io", "captcontrolplanetemplates", "CaptControlPlaneTemplate"),
    ("infrastructure.cluster.x-k8s.io", "captmachines", "CaptMachine"),
];

/// A CRD whose schema takes everything.
pub(crate) fn crd(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Its CRDs, with schemas that take everything.
pub(crate) fn crds() -> Vec<Value> {
    let shared = capt_api::crds::all()
        .into_iter()
        .filter(|crd| !["CAPTControlPlaneTemplate", "CAPTClusterTemplate"].contains(&crd.spec.names.kind.as_str()));
    let shared = shared.map(|of| crd(&of.spec.group, &of.spec.names.plural, &of.spec.names.kind));
    shared.chain(OWN_KINDS.map(|(group, plural, kind)| crd(group, plural, kind))).collect()
}

/// Its Deployment; `selector` differs between its kustomization and its chart.
pub(crate) fn deployment(selector: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "capt-controller-manager", "namespace": "capt-system", "labels": {"control-plane": "controller-manager"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "containers": [{
                        "name": "manager",
                        "image": "ghcr.io/appthrust/capt:v0.2.1",
                        "command": ["/manager"],
                        "args": ["--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:8081"],
                        "env": [{"name": "KUBERNETES_CLUSTER_DOMAIN", "value": "cluster.local"}],
                        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8081}},
                        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}},
                    }],
                    "securityContext": {"runAsNonRoot": true},
                    "serviceAccountName": "capt-controller-manager",
                },
            },
        },
    })
}

/// Its chart: everything as plain templates.
pub(crate) fn chart(directory: &Path) {
    fs::create_dir_all(directory.join("templates")).unwrap();
    fs::write(directory.join("Chart.yaml"), "apiVersion: v2\nname: capt\nversion: 0.2.1\nappVersion: v0.2.1\n")
        .unwrap();
    let selector = json!({
        "control-plane": "controller-manager",
        "app.kubernetes.io/name": "capt",
        "app.kubernetes.io/instance": "capt",
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "capt-controller-manager", "namespace": "capt-system"},
    });
    for (index, object) in crds().into_iter().chain([deployment(&selector), account]).enumerate() {
        fs::write(directory.join(format!("templates/{index}.yaml")), object.to_string()).unwrap();
    }
}
