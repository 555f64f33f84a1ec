//! A cluster's whole life in the simulated world, from the project's own examples.

use crate::common::{CA, FILES, condition, create, documents, key, simulation, status};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::Simulation;
use serde_json::json;

fn ready(api: WorkspaceApi) -> Simulation {
    let mut simulation = simulation(api, &FILES);
    assert!(simulation.run(), "it never comes to rest");
    simulation
}

/// Writes as lines "verb kind/name", in order.
fn lines(simulation: &Simulation) -> Vec<String> {
    simulation
        .writes()
        .map(|request| match request {
            Request::Create { target, .. } => format!("create {target}"),
            Request::MergePatch { target, .. } => format!("patch {target}"),
            Request::JsonPatch { target, .. } => format!("json-patch {target}"),
            Request::ApplyStatus { target, .. } | Request::MergeStatus { target, .. } => format!("status {target}"),
            Request::Delete { target, .. } => format!("delete {target}"),
            Request::Get { .. } | Request::List { .. } => unreachable!("writes only"),
        })
        .collect()
}

#[test]
fn a_cluster_becomes_ready_and_says_so_everywhere() {
    for api in WorkspaceApi::ALL {
        let simulation = ready(api);
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!(plane["state"], "Ready", "{plane:#}");
        assert_eq!(plane["phase"], "Ready");
        assert_eq!([&plane["ready"], &plane["initialized"], &plane["secretsReady"]], [true; 3]);
        assert_eq!(plane["endpoint"], "demo.eks.invalid:443");
        assert_eq!(plane["version"], "v1.31.0");
        assert_eq!(plane["workspaceStatus"]["atProvider"]["outputs"]["cluster_name"], "demo");
        let object = simulation.api.get(&key(Kind::CaptControlPlane, "demo")).unwrap();
        assert_eq!(object["spec"]["controlPlaneEndpoint"], json!({"host": "demo.eks.invalid", "port": 443}));
        assert_eq!(plane["observedGeneration"], object["metadata"]["generation"]);
        for condition in plane["conditions"].as_array().unwrap() {
            assert_eq!(condition["observedGeneration"], object["metadata"]["generation"], "{condition}");
        }
        let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
        assert_eq!(infrastructure["state"], "Ready", "{infrastructure:#}");
        assert_eq!(infrastructure["vpcId"], "vpc-0123");
        assert_eq!(infrastructure["endpoint"], "demo.eks.invalid:443");
        assert_eq!(infrastructure["failureDomains"][0]["name"], "eu-west-1a");
        let apply = status(&simulation, Kind::Apply, "demo-vpc");
        assert_eq!(apply["applied"], true);
        assert_eq!(condition(&apply, "Ready")["status"], "True");
        assert_eq!(status(&simulation, Kind::Cluster, "demo")["phase"], "Provisioned");
        let eks = simulation.api.get(&key(Kind::Workspace(api), "demo-eks-controlplane")).unwrap();
        let variables = eks["spec"]["forProvider"]["vars"].to_string();
        assert!(variables.contains("vpc-0123") && variables.contains("subnet-a"), "the VPC's outputs: {variables}");
    }
}

/// Releases of core that know only v1beta1 read a map where later ones read a list, and fail on anything else.
#[test]
fn where_only_v1beta1_is_served_no_failure_domains_are_published() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    assert!(status(&simulation, Kind::CaptCluster, "demo")["failureDomains"].is_array());
    let refer = |group: &str, kind: &str| {
        json!({"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind, "name": "demo",
            "namespace": "default"})
    };
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| {
        cluster["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
        cluster["spec"]["infrastructureRef"] = refer("infrastructure", "CAPTCluster");
        cluster["spec"]["controlPlaneRef"] = refer("controlplane", "CAPTControlPlane");
    });
    assert!(simulation.run());
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!(infrastructure["failureDomains"], json!(null), "{infrastructure:#}");
    assert_eq!([&infrastructure["state"], &infrastructure["vpcId"]], ["Ready", "vpc-0123"]);
}

#[test]
fn the_secrets_are_those_of_the_contract() {
    let simulation = ready(WorkspaceApi::Cluster);
    let secret = simulation.api.get(&key(Kind::Secret, "demo-kubeconfig")).unwrap();
    assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
    assert_eq!(secret["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "demo");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "CAPTControlPlane");
    let ca = simulation.api.get(&key(Kind::Secret, "demo-ca")).unwrap();
    let decoded =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, ca["data"]["tls.crt"].as_str().unwrap());
    assert_eq!(String::from_utf8(decoded.unwrap()).unwrap(), CA);
}

#[test]
fn the_writes_of_a_whole_life_are_these_and_no_more() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    assert!(simulation.run(), "the deletion never comes to rest");
    let expected = [
        "status CAPTCluster/default/demo",
        "status CAPTControlPlane/default/demo",
        "json-patch CAPTCluster/default/demo",
        "create WorkspaceTemplateApply/default/demo-vpc",
        "status CAPTCluster/default/demo",
        "json-patch CAPTControlPlane/default/demo",
        "status CAPTControlPlane/default/demo",
        "create Workspace/demo-vpc",
        // Which Terraform state it has, where a move does not lose it.
        "patch WorkspaceTemplateApply/default/demo-vpc",
        "status WorkspaceTemplateApply/default/demo-vpc",
        "status CAPTCluster/default/demo",
        "create WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "status CAPTControlPlane/default/demo",
        "status WorkspaceTemplateApply/default/demo-vpc",
        "create Workspace/demo-eks-controlplane",
        "patch WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "status WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "patch CAPTControlPlane/default/demo",
        "create Secret/default/demo-ca",
        "create Secret/default/demo-kubeconfig",
        "status CAPTControlPlane/default/demo",
        "status WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "status CAPTCluster/default/demo",
        "delete WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "status CAPTControlPlane/default/demo",
        "delete Workspace/demo-eks-controlplane",
        "status WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "json-patch WorkspaceTemplateApply/default/demo-eks-controlplane-apply",
        "json-patch CAPTControlPlane/default/demo",
        "delete WorkspaceTemplateApply/default/demo-vpc",
        "status CAPTCluster/default/demo",
        "delete Workspace/demo-vpc",
        "status WorkspaceTemplateApply/default/demo-vpc",
        "json-patch WorkspaceTemplateApply/default/demo-vpc",
        "json-patch CAPTCluster/default/demo",
    ];
    assert_eq!(lines(&simulation), expected);
    assert!(
        simulation.requests.iter().all(|(request, result)| !request.is_write() || result.is_ok()),
        "no write is refused"
    );
    let left: Vec<String> =
        simulation.api.keys().filter(|key| key.kind != Kind::Template).map(ToString::to_string).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_world_at_rest_stays_at_rest() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    let before = simulation.requests.len();
    for seconds in [1, 60, 30 * 60, 24 * 3600] {
        simulation.api.now = simulation.api.now.plus(capt_status::Span::from_seconds(seconds));
        assert!(!simulation.resync(), "{:#?}", &simulation.requests[before..]);
    }
    assert_eq!(simulation.requests.len(), before, "not even a read");
}

#[test]
fn an_upgrade_reaches_the_workspace_and_drops_no_latch() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    let before = simulation.requests.len();
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    simulation.run_capt();
    let during = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&during["state"], &during["phase"]], ["Provisioning", "Creating"]);
    assert_eq!([&during["ready"], &during["initialized"]], [true; 2]);
    assert_eq!(condition(&during, "Ready")["status"], "True");
    assert_eq!(condition(&during, "RollingOut")["status"], "True");
    assert_eq!(during["version"], "v1.31.0", "still running");
    assert!(simulation.run());
    let after = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&after["state"], &after["version"]], ["Ready", "v1.32.0"]);
    let creates = simulation.requests[before..].iter().filter(|(request, _)| matches!(request, Request::Create { .. }));
    assert_eq!(creates.count(), 0, "nothing is made anew");
}

#[test]
fn a_missing_template_is_named_and_a_pass_comes_when_it_appears() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "cluster.yaml"]);
    assert!(simulation.run());
    let apply = status(&simulation, Kind::Apply, "demo-eks-controlplane-apply");
    assert_eq!(condition(&apply, "Synced")["reason"], "TemplateNotFound");
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    let ready = condition(&plane, "Ready");
    assert_eq!(ready["reason"], "TemplateNotFound");
    assert!(ready["message"].as_str().unwrap().contains("default/eks-template"), "{ready}");
    for object in documents("eks-template.yaml") {
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
}

#[test]
fn a_kubeconfig_template_makes_the_kubeconfig_where_the_module_has_none() {
    let mut simulation =
        simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "kubeconfig-template.yaml", "cluster.yaml"]);
    for mut object in documents("eks-template.yaml") {
        let module = object["spec"]["template"]["spec"]["forProvider"]["module"].as_str().unwrap();
        object["spec"]["template"]["spec"]["forProvider"]["module"] =
            json!(module.replace("output \"kubeconfig\"", "output \"other\""));
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(plane["state"], "Ready", "{plane:#}");
    assert!(simulation.api.get(&key(Kind::Apply, "demo-kubeconfig-apply")).is_some());
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    assert!(simulation.run());
    assert!(simulation.api.keys().all(|key| key.kind == Kind::Template));
}

#[test]
fn two_namespaces_with_equal_names_do_not_share_a_workspace() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    let before = simulation.requests.len();
    for file in FILES {
        for mut object in documents(file) {
            object["metadata"]["namespace"] = json!("other");
            create(&mut simulation, object);
        }
    }
    assert!(simulation.run());
    let apply = simulation.api.get(&ObjectKey::new(Kind::Apply, "other", "demo-vpc")).unwrap();
    assert_eq!(condition(&apply["status"], "Synced")["reason"], "NameCollision");
    let infrastructure = simulation.api.get(&ObjectKey::new(Kind::CaptCluster, "other", "demo")).unwrap();
    assert_eq!(condition(&infrastructure["status"], "VPCFailed")["reason"], "NameCollision");
    let is_workspace = |target: &ObjectKey| target.kind == Kind::Workspace(WorkspaceApi::Cluster);
    let touched = simulation.requests[before..].iter().any(|(request, _)| request.written().is_some_and(is_workspace));
    assert!(!touched, "the other one's Workspace is left alone");
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    simulation.api.delete(&ObjectKey::new(Kind::Cluster, "other", "demo"), None);
    assert!(simulation.run());
    assert!(simulation.api.get(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc")).is_some(), "and survives");
    assert!(simulation.api.keys().all(|key| key.namespace.as_deref() != Some("other") || key.kind == Kind::Template));
}

#[test]
fn a_workspace_that_vanished_is_told_and_not_made_again() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    let workspace = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane");
    simulation.api.edit(&workspace, |object| object["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(&workspace, None);
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_none(), "nothing is made in its place");
    let apply = status(&simulation, Kind::Apply, "demo-eks-controlplane-apply");
    assert_eq!(condition(&apply, "Synced")["reason"], "WorkspaceMissing");
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&plane["state"], &plane["ready"]], [&json!("Degraded"), &json!(true)]);
    assert_eq!(plane["workspaceStatus"]["atProvider"]["outputs"]["cluster_name"], "demo", "last known outputs stay");
    simulation.api.edit(&key(Kind::Apply, "demo-eks-controlplane-apply"), |apply| {
        apply["metadata"]["annotations"]["capt.cluster.x-k8s.io/recreate-workspace"] =
            json!("demo-eks-controlplane-apply");
    });
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready", "released by the user's word");
    let apply = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap();
    let word = apply["metadata"]["annotations"].get("capt.cluster.x-k8s.io/recreate-workspace");
    assert_eq!(word, None, "it is good for one creation");
}

#[test]
fn a_restore_without_status_and_workspace_makes_no_second_cluster() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    let workspace = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane");
    simulation.api.edit(&workspace, |object| object["metadata"]["finalizers"] = json!([]));
    simulation.api.delete(&workspace, None);
    for (kind, name) in [(Kind::CaptControlPlane, "demo"), (Kind::Apply, "demo-eks-controlplane-apply")] {
        simulation.api.edit(&key(kind, name), |object| object["status"] = json!({}));
    }
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_none(), "the endpoint in the spec says that one may still run");
    let apply = status(&simulation, Kind::Apply, "demo-eks-controlplane-apply");
    assert_eq!(condition(&apply, "Synced")["reason"], "WorkspaceMissing");
}

#[test]
fn a_retained_vpc_survives() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "eks-template.yaml"]);
    for mut object in documents("cluster.yaml") {
        if object["kind"] == "CAPTCluster" {
            object["spec"]["retainVpcOnDelete"] = json!(true);
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    assert!(simulation.run());
    let left: Vec<String> =
        simulation.api.keys().filter(|key| key.kind != Kind::Template).map(ToString::to_string).collect();
    assert_eq!(left, ["Workspace/demo-vpc", "Secret/default/demo-vpc-vpc-connection"]);
    let vpc = simulation.api.get(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc")).unwrap();
    assert!(vpc["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn a_namespace_deletion_keeps_the_order() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    // Everything at once, the VPC's apply first.
    for kind in [Kind::Apply, Kind::CaptCluster, Kind::CaptControlPlane, Kind::Cluster] {
        let keys: Vec<ObjectKey> = simulation.api.keys().filter(|key| key.kind == kind).cloned().collect();
        for key in keys {
            simulation.api.delete(&key, None);
        }
    }
    simulation.run_capt();
    let vpc = simulation.api.get(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc")).unwrap();
    assert!(vpc["metadata"]["deletionTimestamp"].is_null(), "kept while the control plane is there");
    let apply = status(&simulation, Kind::Apply, "demo-vpc");
    assert_eq!(condition(&apply, "Deleting")["reason"], "WaitingForDependents");
    assert!(simulation.run());
    assert!(simulation.api.keys().all(|key| key.kind == Kind::Template));
    let deletes: Vec<String> =
        lines(&simulation).into_iter().filter(|line| line.starts_with("delete Workspace/")).collect();
    assert_eq!(deletes, ["delete Workspace/demo-eks-controlplane", "delete Workspace/demo-vpc"]);
}

#[test]
fn while_paused_nothing_but_the_condition_is_written() {
    let mut simulation = ready(WorkspaceApi::Cluster);
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
    let conditions = |simulation: &Simulation| {
        let plane = status(simulation, Kind::CaptControlPlane, "demo");
        let mut types: Vec<String> = plane["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|condition| condition["type"].as_str().unwrap().to_owned())
            .collect();
        types.sort();
        types
    };
    let shown = conditions(&simulation);
    simulation.run_capt();
    assert_eq!(conditions(&simulation), shown, "none is lost");
    let before = lines(&simulation).len();
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    simulation.run_capt();
    // The condition says that it was seen; the spec goes nowhere.
    assert_eq!(lines(&simulation)[before..], ["status CAPTControlPlane/default/demo"]);
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(condition(&plane, "Paused")["status"], "True");
    assert_eq!(plane["state"], "Ready");
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["version"], "v1.32.0");
}

/// A process dies after any of its first writes, the next one has another `--workspace-api`, and what the dead one had
/// still sent arrives at last: it finds the Workspace there, whoever made it.
#[test]
fn another_default_api_makes_no_second_workspace_beside_a_request_on_its_way() {
    for (before, after) in
        [(WorkspaceApi::Cluster, WorkspaceApi::Namespaced), (WorkspaceApi::Namespaced, WorkspaceApi::Cluster)]
    {
        let is_creation = |request: &&Request| matches!(request, Request::Create { target, body: _ } if matches!(target.kind, Kind::Workspace(_)));
        let late = ready(before).writes().find(is_creation).unwrap().clone();
        let mut was_late = 0;
        for writes in 0..8 {
            let mut simulation = simulation(before, &FILES);
            simulation.step_core();
            simulation.run_capt_until_crash(writes);
            let was_sent = simulation.api.get(&key(Kind::Apply, "demo-vpc")).is_some();
            simulation.restart_with(after);
            assert!(simulation.run());
            if was_sent {
                was_late += 1;
                simulation.api.respond(&late);
                assert!(simulation.run());
            }
            let made =
                WorkspaceApi::ALL.map(|api| simulation.api.get(&key(Kind::Workspace(api), "demo-vpc")).is_some());
            assert_eq!(made.into_iter().filter(|is_there| *is_there).count(), 1, "{before:?} {writes}: {made:?}");
            assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
        }
        assert!(was_late > 2);
    }
}
