//! The known defects of the Go implementation in the two provider objects, by the numbers under which they
//! are listed: none may come back. Each test fails with the defect put in.

use crate::common::{CA, FILES, condition, create, documents, key, ready, simulation, status, terraform};
use base64::{Engine, engine::general_purpose::STANDARD};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

fn plane(simulation: &Simulation) -> Value {
    status(simulation, Kind::CaptControlPlane, "demo")
}

fn eks() -> ObjectKey {
    key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane")
}

/// Terraform as in the examples, but for one output.
fn with_output(name: &'static str, value: Value) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let mut outputs = terraform(workspace);
        if outputs.plain.contains_key("cluster_endpoint") {
            outputs.plain.insert(name.into(), value.clone());
        }
        outputs
    }
}

/// Terraform as in the examples, but the EKS module ends so.
fn eks_ends(result: Ending) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let is_eks = workspace["metadata"]["name"] == "demo-eks-controlplane";
        Outputs { result: if is_eks { result.clone() } else { Ending::Success }, ..terraform(workspace) }
    }
}

fn created_with(terraform: impl Fn(&Value) -> Outputs + 'static) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(terraform);
    assert!(simulation.run());
    simulation
}

/// Statuses of `kind` that were written since `before`.
fn statuses(simulation: &Simulation, kind: Kind, before: usize) -> Vec<Value> {
    let status = |request: &Request| {
        request.applied_status().filter(|(target, _)| target.kind == kind).map(|(_, status)| status.clone())
    };
    simulation.requests[before..].iter().filter_map(|(request, _)| status(request)).collect()
}

#[test]
fn s01_the_host_is_a_host_and_the_port_that_of_the_output() {
    let simulation = created_with(with_output("cluster_endpoint", json!("https://api.invalid:6443")));
    let object = simulation.api.get(&key(Kind::CaptControlPlane, "demo")).unwrap();
    assert_eq!(object["spec"]["controlPlaneEndpoint"], json!({"host": "api.invalid", "port": 6443}));
}

#[test]
fn s02_s03_an_endpoint_from_the_secret_is_read_as_it_is_and_by_the_same_parser() {
    let simulation = created_with(|workspace| {
        let mut outputs = terraform(workspace);
        if let Some(Value::String(url)) = outputs.plain.remove("cluster_endpoint") {
            outputs.sensitive.insert("cluster_endpoint".into(), url);
        }
        outputs
    });
    let from_status = ready();
    for field in ["endpoint", "state", "initialized"] {
        assert_eq!(plane(&simulation)[field], plane(&from_status)[field], "{field}");
    }
}

#[test]
fn s04_s05_without_an_endpoint_nothing_is_ready() {
    for value in [json!(""), json!("  "), Value::Null, json!({"host": "a"}), json!("https://")] {
        let simulation = created_with(with_output("cluster_endpoint", value.clone()));
        let plane = plane(&simulation);
        assert_eq!(
            [&plane["state"], &plane["ready"], &plane["initialized"]],
            [&json!("Configuring"), &json!(false), &json!(false)],
            "{value}"
        );
        assert_eq!(condition(&plane, "Ready")["status"], "False");
        assert_eq!(condition(&plane, "EndpointAvailable")["reason"], "EndpointNotReady");
    }
}

#[test]
fn s06_initialized_stays_whatever_happens() {
    let mut simulation = ready();
    simulation.terraform(eks_ends(Ending::Failure("something odd".to_owned())));
    assert!(simulation.run_for(Span::from_minutes(60)));
    let plane = plane(&simulation);
    assert_eq!(plane["state"], "Degraded");
    assert_eq!([&plane["initialized"], &plane["initialization"]["controlPlaneInitialized"]], [true; 2]);
}

#[test]
fn s07_an_error_that_passes_is_no_failure_reason() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(eks_ends(Ending::Failure("ThrottlingException: Rate exceeded".to_owned())));
    assert!(simulation.run_for(Span::from_seconds(20)));
    for (kind, name) in [(Kind::CaptControlPlane, "demo"), (Kind::CaptCluster, "demo")] {
        let status = status(&simulation, kind, name);
        assert_eq!([&status["failureReason"], &status["failureMessage"]], [&Value::Null; 2], "{status:#}");
    }
    assert_eq!(plane(&simulation)["state"], "Recovering");
    // Not even a refused write.
    let mut simulation = ready();
    let before = simulation.requests.len();
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    simulation.run_capt_until_crash(0);
    assert!(simulation.run());
    for status in statuses(&simulation, Kind::CaptControlPlane, before) {
        assert_eq!(status["failureReason"], Value::Null);
    }
}

#[test]
fn s08_each_object_has_one_writer_and_a_failure_of_one_is_not_cleared_by_the_other() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation
        .terraform(eks_ends(Ending::Failure("InvalidParameterException: unsupported Kubernetes version".to_owned())));
    assert!(simulation.run_for(Span::from_minutes(60)));
    assert_eq!(plane(&simulation)["failureReason"], "InvalidConfiguration");
    assert_eq!(status(&simulation, Kind::CaptCluster, "demo")["failureReason"], Value::Null);
    let before = simulation.requests.len();
    simulation.resync();
    assert!(simulation.run_for(Span::from_minutes(24 * 60)));
    assert_eq!(simulation.requests[before..], [], "no ping-pong");
    for (request, _) in &simulation.requests {
        if let Request::ApplyStatus { target, manager, body: _ } = request {
            let expected = match target.kind {
                Kind::CaptCluster => "capt-captcluster",
                Kind::CaptControlPlane => "capt-controlplane",
                Kind::Apply => "capt-apply",
                Kind::Cluster | Kind::Template | Kind::Workspace(_) | Kind::Secret => "nobody",
            };
            assert_eq!(*manager, expected, "{target}");
        }
    }
}

#[test]
fn s09_a_pass_writes_a_status_once_and_says_one_thing() {
    // The EKS Workspace is ready, the kubeconfig is not: one status, and it is not Ready first.
    let simulation = created_with(|workspace| {
        let mut outputs = terraform(workspace);
        outputs.sensitive.clear();
        outputs
    });
    let written = statuses(&simulation, Kind::CaptControlPlane, 0);
    assert!(written.iter().all(|status| condition(status, "Ready")["status"] == "False"), "{written:#?}");
    let generations: Vec<&Value> = written.iter().map(|status| &status["observedGeneration"]).collect();
    assert!(generations.is_sorted_by_key(|generation| generation.as_i64()), "{generations:?}");
}

#[test]
fn s10_last_known_outputs_stay_when_the_workspace_says_nothing() {
    let mut simulation = ready();
    let known = plane(&simulation)["workspaceStatus"]["atProvider"].clone();
    assert!(known["outputs"]["cluster_endpoint"].is_string());
    for (what, edit) in [
        ("no atProvider", (|workspace: &mut Value| workspace["status"]["atProvider"] = Value::Null) as fn(&mut Value)),
        ("no outputs", |workspace| workspace["status"]["atProvider"] = json!({})),
        ("no conditions", |workspace| workspace["status"]["conditions"] = Value::Null),
        ("no status", |workspace| workspace["status"] = Value::Null),
    ] {
        simulation.api.edit(&eks(), edit);
        simulation.run_capt();
        assert_eq!(plane(&simulation)["workspaceStatus"]["atProvider"], known, "{what}");
    }
}

#[test]
fn s11_synced_counts_and_a_message_is_no_failure() {
    let mut simulation = ready();
    // Ready stays True on the Workspace; only Synced tells.
    simulation.terraform(eks_ends(Ending::Failure("something odd".to_owned())));
    assert!(simulation.run());
    assert_eq!(condition(&plane(&simulation), "WorkspaceSynced")["status"], "False");
    assert_eq!(plane(&simulation)["state"], "Degraded");
    // A message on Ready=False is what the provider says while it works.
    let mut simulation = created_with(|workspace| Outputs { result: Ending::Hang, ..terraform(workspace) });
    let vpc = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc");
    simulation.api.edit(&vpc, |workspace| {
        workspace["status"]["conditions"] = json!([
            {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 1},
            {"type": "Ready", "status": "False", "reason": "Creating", "message": "still at work"},
        ]);
    });
    simulation.run_capt();
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!(infrastructure["state"], "Provisioning", "{infrastructure:#}");
    assert_eq!(condition(&infrastructure, "VPCFailed")["status"], "False");
}

#[test]
fn s12_timeouts_are_evaluated_where_they_stand_in_go_too() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    simulation.terraform(eks_ends(Ending::Hang));
    for mut object in documents("cluster.yaml") {
        if object["kind"] == "CAPTControlPlane" {
            object["spec"]["controlPlaneConfig"]["timeouts"] = json!({"controlPlaneTimeout": 7});
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run_for(Span::from_minutes(6)));
    assert_eq!(plane(&simulation)["state"], "Provisioning");
    assert!(simulation.run_for(Span::from_minutes(2)));
    assert_eq!(
        [&plane(&simulation)["state"], &condition(&plane(&simulation), "Ready")["reason"]],
        ["Failed", "ControlPlaneTimeout"]
    );
}

#[test]
fn s13_a_pause_is_kept_by_both_objects() {
    let mut simulation = ready();
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
    assert!(simulation.run());
    let before = simulation.requests.len();
    simulation.terraform(eks_ends(Ending::Failure("something odd".to_owned())));
    simulation
        .api
        .edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    simulation.api.edit(&key(Kind::CaptCluster, "demo"), |object| object["metadata"]["labels"]["a"] = json!("b"));
    assert!(simulation.run_for(Span::from_minutes(60)));
    for (request, _) in &simulation.requests[before..] {
        let Request::ApplyStatus { target, manager: _, body } = request else { panic!("{request:?}") };
        let paused = condition(&body["status"], "Paused");
        assert_eq!([&paused["status"], &paused["reason"]], ["True", "Paused"], "{target}");
    }
    assert_eq!(plane(&simulation)["state"], "Ready", "nothing moves");
}

#[test]
fn s14_every_status_and_condition_tells_the_generation_it_speaks_of() {
    let simulation = ready();
    for (kind, name) in [(Kind::CaptCluster, "demo"), (Kind::CaptControlPlane, "demo"), (Kind::Apply, "demo-vpc")] {
        let object = simulation.api.get(&key(kind, name)).unwrap();
        let generation = &object["metadata"]["generation"];
        assert_eq!(object["status"]["observedGeneration"], *generation, "{name}");
        for condition in object["status"]["conditions"].as_array().unwrap() {
            assert_eq!(condition["observedGeneration"], *generation, "{condition}");
        }
    }
}

#[test]
fn s15_s16_without_its_cluster_an_object_waits_and_deletes_nothing() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.run_capt();
    for (kind, type_) in [(Kind::CaptCluster, "WaitingForCluster"), (Kind::CaptControlPlane, "Creating")] {
        let status = status(&simulation, kind, "demo");
        assert_eq!([&status["state"], &condition(&status, type_)["status"]], ["Pending", "True"], "{status:#}");
    }
    assert!(statuses(&simulation, Kind::Cluster, 0).is_empty());
    assert!(simulation.writes().all(|request| matches!(request, Request::ApplyStatus { .. })));
    // The Cluster goes without its children, as by force: nothing of them is deleted.
    let mut simulation = ready();
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["metadata"]["finalizers"] = json!([]));
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        // As in a backup that is brought back: the owner is named, and garbage collection has not run.
        simulation.api.edit(&key(kind, "demo"), |object| {
            object["metadata"]["ownerReferences"][0]["uid"] = json!("another");
        });
    }
    let before = simulation.requests.len();
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    simulation.run_capt();
    assert!(simulation.requests[before..].iter().all(|(request, _)| !matches!(request, Request::Delete { .. })));
    assert_eq!(plane(&simulation)["ready"], true);
}

#[test]
fn s17_the_owner_is_found_by_its_kind_and_group_and_never_written() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    // Names as a ClusterClass generates them, and an owner of another group before the real one.
    for mut object in documents("cluster.yaml") {
        match object["kind"].as_str().unwrap() {
            "Cluster" => {
                object["spec"]["infrastructureRef"]["name"] = json!("demo-x7k2p");
                object["spec"]["controlPlaneRef"]["name"] = json!("demo-9qz4l");
            }
            kind => {
                let name = if kind == "CAPTCluster" { "demo-x7k2p" } else { "demo-9qz4l" };
                object["metadata"]["name"] = json!(name);
                object["metadata"]["ownerReferences"] =
                    json!([{"apiVersion": "other.io/v1", "kind": "Cluster", "name": "wrong", "uid": "u"}]);
            }
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    let status = status(&simulation, Kind::CaptControlPlane, "demo-9qz4l");
    assert_eq!(status["state"], "Ready", "{status:#}");
    assert!(simulation.api.get(&key(Kind::Secret, "demo-kubeconfig")).is_some(), "named after the Cluster");
    for request in simulation.writes() {
        if let Request::MergePatch { target, body } = request {
            assert!(body["metadata"].get("ownerReferences").is_none(), "{target}: {body}");
        }
    }
}

#[test]
fn s18_a_vpc_that_is_retained_survives_whatever_is_deleted_first() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    for mut object in documents("cluster.yaml") {
        if object["kind"] == "CAPTCluster" {
            object["spec"]["retainVpcOnDelete"] = json!(true);
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    let apply = simulation.api.get(&key(Kind::Apply, "demo-vpc")).unwrap();
    assert_eq!(apply["spec"]["retainWorkspaceOnDelete"], true, "said long before");
    // A namespace goes: the apply is deleted at the same time as everything else.
    for kind in [Kind::Apply, Kind::CaptControlPlane, Kind::CaptCluster, Kind::Cluster] {
        let keys: Vec<ObjectKey> = simulation.api.keys().filter(|key| key.kind == kind).cloned().collect();
        for key in keys {
            simulation.api.delete(&key, None);
        }
    }
    assert!(simulation.run());
    let vpc = simulation.api.get(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc")).unwrap();
    assert!(vpc["metadata"]["deletionTimestamp"].is_null());
    assert!(simulation.api.get(&key(Kind::CaptCluster, "demo")).is_none());
    let told = simulation.events.iter().find(|(_, event)| event.reason == "VPCRetained");
    assert!(told.is_some_and(|(_, event)| event.note.contains("vpc-0123")), "{:?}", simulation.events);
    // Taken back, it goes.
    let mut simulation = ready();
    for retain in [true, false] {
        simulation
            .api
            .edit(&key(Kind::CaptCluster, "demo"), |object| object["spec"]["retainVpcOnDelete"] = json!(retain));
        assert!(simulation.run());
        let apply = simulation.api.get(&key(Kind::Apply, "demo-vpc")).unwrap();
        assert_eq!(apply["spec"]["retainWorkspaceOnDelete"], retain);
        assert_eq!(status(&simulation, Kind::CaptCluster, "demo")["state"], "Ready");
    }
}

#[test]
fn s19_vpc_failed_goes_with_the_failure() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(|workspace| Outputs {
        result: Ending::Failure("VpcLimitExceeded: no more".into()),
        ..terraform(workspace)
    });
    assert!(simulation.run());
    let failed = condition(&status(&simulation, Kind::CaptCluster, "demo"), "VPCFailed");
    assert_eq!([&failed["status"], &failed["reason"]], ["True", "VpcQuotaExceeded"]);
    simulation.terraform(terraform);
    assert!(simulation.run());
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!(condition(&infrastructure, "VPCFailed")["status"], "False");
    assert_eq!(infrastructure["workspaceTemplateStatus"].get("lastFailureMessage"), None);
}

#[test]
fn s20_nothing_is_written_that_is_there_already() {
    let mut simulation = ready();
    let before = simulation.requests.len();
    for _ in 0..5 {
        simulation.resync();
        simulation.restart();
        assert!(simulation.run_for(Span::from_minutes(17)));
    }
    assert_eq!(simulation.requests[before..], []);
}

#[test]
fn s28_secrets_ready_needs_a_kubeconfig_and_the_ca_follows_its_source() {
    let mut simulation = created_with(|workspace| {
        let mut outputs = terraform(workspace);
        if let Some(kubeconfig) = outputs.sensitive.get_mut("kubeconfig") {
            kubeconfig.clear();
        }
        outputs
    });
    assert_eq!(plane(&simulation)["secretsReady"], false);
    assert!(simulation.api.get(&key(Kind::Secret, "demo-kubeconfig")).is_none(), "no empty value");
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["secretsReady"], true);
    let new = CA.replace("QQ==", "Qg==");
    simulation.terraform(with_output("cluster_certificate_authority_data", json!(STANDARD.encode(&new))));
    assert!(simulation.run());
    let ca = simulation.api.get(&key(Kind::Secret, "demo-ca")).unwrap();
    assert_eq!(ca["data"]["tls.crt"], STANDARD.encode(&new));
}

#[test]
fn s29_nothing_is_read_from_or_written_to_another_namespace_by_itself() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &[]);
    let mut objects = documents("cluster.yaml");
    objects.extend(FILES[..2].iter().flat_map(|file| documents(file)));
    for object in objects {
        let text = object.to_string().replace("\"namespace\":\"default\"", "\"namespace\":\"team\"");
        create(&mut simulation, serde_json::from_str(&text).unwrap());
    }
    assert!(simulation.run());
    let status = &simulation.api.get(&ObjectKey::new(Kind::CaptControlPlane, "team", "demo")).unwrap()["status"];
    assert_eq!(status["state"], "Ready", "{status:#}");
    let elsewhere: Vec<String> = simulation
        .api
        .keys()
        .filter(|key| key.namespace.as_deref().is_some_and(|namespace| namespace != "team"))
        .map(ToString::to_string)
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn s30_a_deletion_leaves_the_cluster_alone_and_errors_nowhere() {
    let mut simulation = ready();
    let endpoint = simulation.api.get(&key(Kind::Cluster, "demo")).unwrap()["spec"]["controlPlaneEndpoint"].clone();
    assert!(endpoint["host"].is_string());
    let before = simulation.requests.len();
    simulation.api.delete(&key(Kind::CaptControlPlane, "demo"), None);
    assert!(simulation.run_for(Span::from_minutes(5)));
    assert!(simulation.api.get(&key(Kind::CaptControlPlane, "demo")).is_none());
    assert_eq!(simulation.api.get(&key(Kind::Cluster, "demo")).unwrap()["spec"]["controlPlaneEndpoint"], endpoint);
    for (request, result) in &simulation.requests[before..] {
        assert!(!request.is_write() || result.is_ok(), "{request:?}");
    }
}

#[test]
fn s31_the_vpc_waits_for_every_control_plane_of_its_cluster_whatever_its_name() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    for mut object in documents("cluster.yaml") {
        if object["kind"] == "Cluster" {
            object["spec"]["controlPlaneRef"]["name"] = json!("other-name");
        } else if object["kind"] == "CAPTControlPlane" {
            object["metadata"]["name"] = json!("other-name");
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    simulation.api.delete(&key(Kind::CaptCluster, "demo"), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&key(Kind::Apply, "demo-vpc")).unwrap()["metadata"]["deletionTimestamp"].is_null());
    let deleting = condition(&status(&simulation, Kind::CaptCluster, "demo"), "Deleting");
    assert!(deleting["message"].as_str().unwrap().contains("CAPTControlPlane/default/other-name"), "{deleting}");
    simulation.api.delete(&key(Kind::CaptControlPlane, "other-name"), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&key(Kind::CaptCluster, "demo")).is_none());
}

#[test]
fn s32_a_change_of_what_an_object_depends_on_starts_its_pass_and_no_clock_does() {
    let mut simulation = ready();
    simulation.terraform(eks_ends(Ending::Failure("something odd".to_owned())));
    let now = simulation.api.now;
    assert!(simulation.step_provider());
    simulation.run_capt();
    assert_eq!(plane(&simulation)["state"], "Degraded");
    assert_eq!(simulation.api.now, now, "at once");
}
