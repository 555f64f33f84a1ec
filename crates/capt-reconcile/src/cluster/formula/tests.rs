//! Where core copies and latches, and where it does not.

use super::*;

fn cluster(fields: &Value) -> ClusterView {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"namespace": "ns", "name": "c"},
    });
    for (field, value) in fields.as_object().unwrap() {
        object[field] = value.clone();
    }
    ClusterView::parse(&object)
}

fn going() -> Value {
    json!({"metadata": {"namespace": "ns", "name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}})
}

fn control_plane(initialized: bool, deleting: bool) -> CAPTControlPlane {
    let mut object = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane",
        "metadata": {"namespace": "ns", "name": "c"},
        "spec": {
            "version": "1.31", "workspaceTemplateRef": {"name": "t"},
            "controlPlaneEndpoint": {"host": "api.example.com", "port": 443},
        },
        "status": {"initialized": initialized},
    });
    if deleting {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(object).unwrap()
}

fn input<'a>(cluster: &'a ClusterView, control_plane: Provider<'a, CAPTControlPlane>) -> Input<'a> {
    Input { cluster, infrastructure: Provider::Unreferenced, control_plane }
}

#[test]
fn a_cluster_that_names_no_infrastructure_needs_none_until_it_is_deleted() {
    let provisioned = |fields: &Value| input(&cluster(fields), Provider::Unreferenced).provisioned();
    assert!(provisioned(&json!({})));
    assert!(!provisioned(&going()));
    let mut latched = going();
    latched["status"] = json!({"initialization": {"infrastructureProvisioned": true}});
    assert!(provisioned(&latched), "what it was once it stays");
    let new = cluster(&json!({}));
    let missing = Input { infrastructure: Provider::Missing, ..input(&new, Provider::Unreferenced) };
    assert!(!missing.provisioned(), "it names one");
}

#[test]
fn an_endpoint_is_copied_from_an_initialized_control_plane_into_a_cluster_that_stays() {
    let copied = |fields: &Value, control_plane: &CAPTControlPlane| {
        let cluster = cluster(fields);
        input(&cluster, Provider::There(control_plane)).endpoint().map(|endpoint| endpoint.host.clone())
    };
    let ready = control_plane(true, false);
    assert_eq!(copied(&json!({}), &ready), Some("api.example.com".to_owned()));
    assert_eq!(copied(&json!({}), &control_plane(false, false)), None, "nobody answers there");
    assert_eq!(copied(&json!({}), &control_plane(true, true)), None, "the control plane goes");
    assert_eq!(copied(&going(), &ready), None, "the Cluster goes");
    let own = json!({"spec": {"controlPlaneEndpoint": {"host": "own.example.com", "port": 443}}});
    assert_eq!(copied(&own, &ready), None, "it has one");
}

#[test]
fn a_gate_of_the_user_counts_with_its_polarity() {
    let now: Time = "2026-01-01T00:00:00Z".parse().unwrap();
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": now});
    let object = |group: &str, kind: &str, spec: Value, type_: &str| {
        json!({
            "apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind,
            "metadata": {"namespace": "ns", "name": "c"}, "spec": spec,
            "status": {"ready": true, "initialized": true, "conditions": [condition(type_, "True")]},
        })
    };
    let infrastructure = object("infrastructure", "CAPTCluster", json!({"region": "r"}), "Ready");
    let infrastructure: CAPTCluster = serde_json::from_value(infrastructure).unwrap();
    let spec = json!({"version": "1.31", "workspaceTemplateRef": {"name": "t"}});
    let control_plane = object("controlplane", "CAPTControlPlane", spec, "Available");
    let control_plane: CAPTControlPlane = serde_json::from_value(control_plane).unwrap();
    for (polarity, gate, expected) in [
        ("Positive", "True", "True"),
        ("Positive", "False", "False"),
        ("Negative", "True", "False"),
        ("Negative", "False", "True"),
    ] {
        let gates = json!([{"conditionType": "example.com/Gate", "polarity": polarity}]);
        let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "c"});
        let cluster = cluster(&json!({"spec": {
            "availabilityGates": gates,
            "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "CAPTCluster"),
            "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "CAPTControlPlane"),
        }}));
        let input = Input {
            cluster: &cluster,
            infrastructure: Provider::There(&infrastructure),
            control_plane: Provider::There(&control_plane),
        };
        let stored = json!({"conditions": [condition("example.com/Gate", gate)]});
        let status = input.status(&stored, now).unwrap();
        let available = status["conditions"].as_array().unwrap().iter().find(|found| found["type"] == "Available");
        assert_eq!(available.unwrap()["status"], expected, "{polarity} {gate}");
    }
}
