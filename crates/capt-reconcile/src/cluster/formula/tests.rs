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

fn infrastructure(status: &Value) -> CAPTCluster {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
        "metadata": {"namespace": "ns", "name": "c"}, "spec": {"region": "r"}, "status": status,
    });
    serde_json::from_value(object).unwrap()
}

/// A Cluster of `version` that names both provider objects, with these fields beside.
fn referring(version: &str, fields: &Value) -> ClusterView {
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "c"});
    let mut object = json!({
        "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster", "metadata": {"namespace": "ns", "name": "c"},
        "spec": {
            "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "CAPTCluster"),
            "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "CAPTControlPlane"),
        },
    });
    for (field, value) in fields.as_object().unwrap() {
        object[field] = value.clone();
    }
    ClusterView::parse(&object)
}

const NOW: &str = "2026-01-01T00:00:00Z";
const BEFORE: &str = "2025-01-01T00:00:00Z";

fn status(input: Input<'_>, stored: &Value) -> Value {
    input.status(stored, NOW.parse().unwrap()).unwrap()
}

/// Status, reason and message of a condition.
fn told(status: &Value, type_: &str) -> [String; 3] {
    let condition = status["conditions"].as_array().unwrap().iter().find(|found| found["type"] == type_).unwrap();
    ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_provider_object_that_says_nothing_is_told_by_its_latch_and_its_absence() {
    let (there, plane) = (infrastructure(&json!({})), control_plane(false, false));
    let latches = json!({"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}});
    for (is_there, latch, deleting, [infrastructure, available, initialized]) in [
        (
            true,
            false,
            false,
            [
                "False NotReady CAPTCluster status.initialization.provisioned is false",
                "False NotAvailable CAPTControlPlane status.initialization.controlPlaneInitialized is false",
                "False NotInitialized Control plane not yet initialized",
            ],
        ),
        (true, true, false, ["True Provisioned ", "True Available ", "True Initialized "]),
        (true, true, true, ["True Provisioned ", "True Available ", "True Initialized "]),
        (
            false,
            false,
            false,
            [
                "False InfrastructureDoesNotExist CAPTCluster does not exist",
                "False ControlPlaneDoesNotExist CAPTControlPlane does not exist",
                "Unknown ControlPlaneDoesNotExist CAPTControlPlane does not exist",
            ],
        ),
        (
            false,
            false,
            true,
            [
                "False InfrastructureDoesNotExist CAPTCluster does not exist",
                "False ControlPlaneDoesNotExist CAPTControlPlane does not exist",
                "Unknown ControlPlaneDoesNotExist CAPTControlPlane does not exist",
            ],
        ),
        (
            false,
            true,
            false,
            [
                "False InfrastructureDeleted CAPTCluster has been deleted while the cluster still exists",
                "False ControlPlaneDeleted CAPTControlPlane has been deleted while the cluster still exists",
                "Unknown ControlPlaneDoesNotExist CAPTControlPlane does not exist",
            ],
        ),
        (
            false,
            true,
            true,
            [
                "False InfrastructureDeleted CAPTCluster has been deleted",
                "False ControlPlaneDeleted CAPTControlPlane has been deleted",
                "Unknown ControlPlaneDoesNotExist CAPTControlPlane does not exist",
            ],
        ),
    ] {
        let mut fields = if deleting { going() } else { json!({}) };
        if latch {
            fields["status"] = latches.clone();
        }
        let cluster = referring("v1beta2", &fields);
        let input = Input {
            cluster: &cluster,
            infrastructure: if is_there { Provider::There(&there) } else { Provider::Missing },
            control_plane: if is_there { Provider::There(&plane) } else { Provider::Missing },
        };
        let status = status(input, &json!({}));
        let found = ["InfrastructureReady", "ControlPlaneAvailable", "ControlPlaneInitialized"]
            .map(|type_| told(&status, type_).join(" "));
        assert_eq!(found, [infrastructure, available, initialized], "{is_there} {latch} {deleting}");
    }
}

#[test]
fn a_deletion_waits_for_the_control_plane_then_for_the_infrastructure() {
    let (there, plane) = (infrastructure(&json!({})), control_plane(false, false));
    let leaving = referring("v1beta2", &going());
    for (control_plane, infrastructure, reason, message) in [
        (Provider::There(&plane), Provider::There(&there), "WaitingForControlPlaneDeletion", "CAPTControlPlane"),
        (Provider::Missing, Provider::There(&there), "WaitingForInfrastructureDeletion", "CAPTCluster"),
        (Provider::Missing, Provider::Missing, "DeletionCompleted", ""),
    ] {
        let status = status(Input { cluster: &leaving, infrastructure, control_plane }, &json!({}));
        let message = if message.is_empty() {
            "Deletion completed".to_owned()
        } else {
            format!("Waiting for {message} to be deleted")
        };
        assert_eq!(
            (told(&status, "Deleting"), &status["phase"]),
            (["True".to_owned(), reason.to_owned(), message], &json!("Deleting"))
        );
    }
    let staying = referring("v1beta2", &json!({}));
    let status = status(
        Input { cluster: &staying, infrastructure: Provider::There(&there), control_plane: Provider::There(&plane) },
        &json!({}),
    );
    assert_eq!(told(&status, "Deleting"), ["False", "NotDeleting", ""]);
}

#[test]
fn either_contract_latches_and_an_empty_endpoint_is_none() {
    for (status, expected) in [
        (json!({}), false),
        (json!({"ready": true}), true),
        (json!({"initialization": {"provisioned": true}}), true),
        (json!({"initialization": {"provisioned": false}}), false),
    ] {
        let (cluster, object) = (referring("v1beta2", &json!({})), infrastructure(&status));
        let input = Input { infrastructure: Provider::There(&object), ..input(&cluster, Provider::Missing) };
        assert_eq!(input.provisioned(), expected, "{status}");
    }
    let (cluster, mut plane) = (referring("v1beta2", &json!({})), control_plane(true, false));
    plane.spec.control_plane_endpoint = Some(ApiEndpoint::default());
    assert_eq!(input(&cluster, Provider::There(&plane)).endpoint(), None);
}

#[test]
fn one_reference_is_enough_to_be_provisioning() {
    let reference = json!({"apiGroup": "a", "kind": "b", "name": "c"});
    for (spec, expected) in [
        (json!({"infrastructureRef": reference, "controlPlaneRef": reference}), "Provisioning"),
        (json!({"infrastructureRef": reference}), "Provisioning"),
        (json!({"controlPlaneRef": reference}), "Provisioning"),
        (json!({}), "Pending"),
    ] {
        let cluster = cluster(&json!({"spec": spec}));
        let input = Input { infrastructure: Provider::Missing, ..input(&cluster, Provider::Missing) };
        assert_eq!(input.phase(), expected, "{spec}");
    }
}

#[test]
fn what_is_empty_is_no_failure() {
    let object = infrastructure(&json!({"failureReason": "CreateError", "failureMessage": "vpc"}));
    let mut plane = control_plane(false, false);
    let told = plane.status.as_mut().unwrap();
    (told.failure_reason, told.failure_message) = (Some(String::new()), Some(String::new()));
    let cluster = referring("v1beta2", &json!({}));
    let both = Input { infrastructure: Provider::There(&object), ..input(&cluster, Provider::There(&plane)) };
    let (reason, text) = both.failure();
    assert_eq!(reason.as_deref(), Some("CreateError"));
    assert!(text.is_some_and(|text| text.ends_with("Kind=CAPTCluster with name \"c\": vpc")));
    assert_eq!(input(&cluster, Provider::There(&plane)).failure(), (None, None));
}

#[test]
fn what_others_wrote_stays_and_a_list_in_another_order_is_not_written_again() {
    let cluster = referring("v1beta2", &json!({}));
    let (there, plane) = (infrastructure(&json!({})), control_plane(false, false));
    let input =
        Input { cluster: &cluster, infrastructure: Provider::There(&there), control_plane: Provider::There(&plane) };
    let stored = json!({"deprecated": {"v1beta1": {"readyReplicas": 1, "failureReason": "Old"}}, "controlPlane": {"replicas": 3}});
    let mut first = status(input, &stored);
    assert_eq!(first["deprecated"], json!({"v1beta1": {"readyReplicas": 1}}));
    assert_eq!(first["controlPlane"], json!({"replicas": 3}));
    first["conditions"].as_array_mut().unwrap().reverse();
    assert_eq!(status(input, &first), first);
}

#[test]
fn the_old_version_latches_readiness_and_keeps_times() {
    let (there, mut plane) = (infrastructure(&json!({})), control_plane(false, false));
    let new = referring("v1beta1", &json!({}));
    let missing = Input { infrastructure: Provider::Missing, ..input(&new, Provider::Missing) };
    let nothing = status(missing, &json!({}));
    assert_eq!(nothing, json!({"phase": "Provisioning"}), "what is not there says nothing");

    let waiting =
        status(Input { infrastructure: Provider::There(&there), ..input(&new, Provider::There(&plane)) }, &json!({}));
    let condition = |type_: &str, reason: &str, message: &str| json!({"type": type_, "status": "False", "severity": "Info", "reason": reason, "message": message, "lastTransitionTime": NOW});
    let initialized = condition(
        "ControlPlaneInitialized",
        "WaitingForControlPlaneProviderInitialized",
        "Waiting for control plane provider to indicate the control plane has been initialized",
    );
    let told: Vec<Value> = waiting["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            let mut found = found.clone();
            found.as_object_mut().unwrap().entry("message").or_insert(json!(""));
            found
        })
        .collect();
    assert_eq!(
        told,
        [
            initialized,
            condition("ControlPlaneReady", "WaitingForControlPlane", ""),
            condition("InfrastructureReady", "WaitingForInfrastructure", ""),
        ]
    );
    assert_eq!((&waiting["infrastructureReady"], &waiting["controlPlaneReady"]), (&Value::Null, &Value::Null));

    // What says the same keeps its time; what does not has a new one.
    let mut stored = waiting.clone();
    for condition in stored["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = json!(BEFORE);
    }
    stored["conditions"][2]["reason"] = json!("Other");
    let again =
        status(Input { infrastructure: Provider::There(&there), ..input(&new, Provider::There(&plane)) }, &stored);
    let times: Vec<&Value> =
        again["conditions"].as_array().unwrap().iter().map(|found| &found["lastTransitionTime"]).collect();
    assert_eq!(times, [BEFORE, BEFORE, NOW]);

    // Ready once is ready, whatever the control plane says later.
    let was_ready = status(input(&new, Provider::There(&plane)), &json!({"controlPlaneReady": true}));
    assert_eq!(was_ready["controlPlaneReady"], true);
    plane.status.as_mut().unwrap().ready = true;
    let initialized = referring("v1beta1", &json!({"status": {"controlPlaneReady": true}}));
    let holds = status(
        Input { infrastructure: Provider::There(&there), ..input(&initialized, Provider::There(&plane)) },
        &json!({}),
    );
    assert_eq!(holds["controlPlaneReady"], true);
    let found = holds["conditions"].as_array().unwrap().iter().map(|found| (&found["type"], &found["status"]));
    let found: Vec<String> = found.map(|(type_, status)| format!("{type_} {status}")).collect();
    assert_eq!(
        found,
        [r#""ControlPlaneInitialized" "True""#, r#""ControlPlaneReady" "True""#, r#""InfrastructureReady" "False""#,]
    );
}

#[test]
fn a_pause_is_told_with_each_of_its_reasons() {
    let annotated = json!({"namespace": "ns", "name": "c", "annotations": {PAUSED_ANNOTATION: ""}});
    for (spec, metadata, expected) in [
        (json!({}), json!({}), None),
        (json!({"paused": true}), json!({}), Some("Cluster spec.paused is set to true")),
        (json!({}), annotated.clone(), Some("Cluster has the cluster.x-k8s.io/paused annotation")),
        (
            json!({"paused": true}),
            annotated,
            Some("Cluster spec.paused is set to true, Cluster has the cluster.x-k8s.io/paused annotation"),
        ),
    ] {
        assert_eq!(paused(&cluster(&json!({"spec": spec, "metadata": metadata}))).as_deref(), expected);
    }
}
