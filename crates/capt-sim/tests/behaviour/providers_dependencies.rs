//! What provider objects say of what they depend on, during whole lives.

use crate::common::{FILES, condition, create, documents, key, ready, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::Kind,
    pass::{Features, Settings},
};
use capt_sim::Simulation;
use capt_status::Span;
use serde_json::{Value, json};

const EKS: &str = "WorkspaceTemplateApply/default/demo-eks-controlplane-apply";
const VPC: &str = "WorkspaceTemplateApply/default/demo-vpc";

/// Each object of the graph with its word.
fn words(status: &Value) -> Vec<String> {
    let nodes = status["dependencies"]["nodes"].as_object().unwrap();
    nodes.iter().map(|(key, node)| format!("{key} {}", node["status"].as_str().unwrap())).collect()
}

fn edges(status: &Value, from: &str) -> Vec<String> {
    let targets = status["dependencies"]["edges"][from].as_array().unwrap();
    targets.iter().map(|target| target.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_ready_cluster_shows_what_it_depends_on() {
    let simulation = ready();
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(
        words(&plane),
        [
            "CAPTCluster/default/demo Provisioned",
            "CAPTControlPlane/default/demo Ready",
            "Cluster/default/demo Present",
            "Secret/default/demo-ca Present",
            "Secret/default/demo-eks-connection Present",
            "Secret/default/demo-kubeconfig Present",
            "Secret/default/demo-vpc-vpc-connection Present",
            "Workspace/demo-eks-controlplane Provisioned",
            "Workspace/demo-vpc Provisioned",
            "WorkspaceTemplate/default/eks-template Present",
            "WorkspaceTemplate/default/vpc-template Present",
            &format!("{EKS} Provisioned"),
            &format!("{VPC} Provisioned"),
        ]
    );
    assert_eq!(edges(&plane, EKS), ["Workspace/demo-eks-controlplane", "WorkspaceTemplate/default/eks-template", VPC]);
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!(infrastructure["dependencies"]["nodes"]["CAPTCluster/default/demo"]["status"], "Ready");
    assert_eq!(edges(&infrastructure, VPC), ["Workspace/demo-vpc", "WorkspaceTemplate/default/vpc-template"]);
}

/// Runs everybody step by step, a quarter of an hour between two steps: whatever waits for a while, or is worth
/// a write only later, gets its time.
fn live_slowly(simulation: &mut Simulation) {
    for _ in 0..40 {
        simulation.run_capt();
        let by_core = simulation.step_core();
        let by_provider = simulation.step_provider();
        simulation.run_capt();
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(60));
        if !by_core && !by_provider {
            break;
        }
    }
}

#[test]
fn the_graph_costs_no_write_of_its_own_however_slow_a_life_is() {
    let lives = [true, false].map(|dependencies| {
        let features = Features { dependencies, ..Features::default() };
        let mut simulation = Simulation::new(Settings { features, ..Settings::default() }, terraform);
        for file in FILES {
            for object in documents(file) {
                create(&mut simulation, object);
            }
        }
        live_slowly(&mut simulation);
        assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
        assert!(simulation.run_for(Span::from_minutes(60)));
        simulation.api.delete(&key(Kind::Cluster, "demo"), None);
        live_slowly(&mut simulation);
        assert!(simulation.run() && simulation.api.get(&key(Kind::CaptControlPlane, "demo")).is_none());
        let writes: Vec<String> = simulation
            .writes()
            .map(|request| match request {
                Request::Create { target, body: _ } => format!("create {target}"),
                Request::MergePatch { target, body: _ } => format!("patch {target}"),
                Request::JsonPatch { target, operations: _ } => format!("json-patch {target}"),
                Request::ApplyStatus { target, manager: _, body: _ }
                | Request::MergeStatus { target, manager: _, body: _ } => {
                    format!("status {target}")
                }
                Request::Delete { target, uid: _, resource_version: _ } => format!("delete {target}"),
                Request::Get { target: _ } | Request::List { kind: _, selector: _ } => unreachable!("writes only"),
            })
            .collect();
        writes
    });
    assert!(lives[0].len() > 20, "{lives:#?}");
    assert_eq!(lives[0], lives[1]);
}

#[test]
fn what_is_switched_off_is_not_in_the_status() {
    let off = Features { progress: false, dependencies: false, recovery: true };
    let mut simulation = Simulation::new(Settings { features: off, ..Settings::default() }, terraform);
    for file in FILES {
        for object in documents(file) {
            create(&mut simulation, object);
        }
    }
    assert!(simulation.run());
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        let status = status(&simulation, kind, "demo");
        assert_eq!(
            (&status["state"], &status["dependencies"], &status["progress"]),
            (&json!("Ready"), &Value::Null, &Value::Null)
        );
    }
}

#[test]
fn without_recovery_nothing_is_tried_after_a_failure() {
    let attempts = |recovery| {
        let features = Features { recovery, ..Features::default() };
        let mut simulation = Simulation::new(Settings { features, ..Settings::default() }, |workspace| {
            let mut outputs = terraform(workspace);
            outputs.result = capt_sim::provider::Ending::Failure(
                "RequestError: send request failed: connection reset by peer".to_owned(),
            );
            outputs
        });
        for file in FILES {
            for object in documents(file) {
                create(&mut simulation, object);
            }
        }
        assert!(simulation.run_for(Span::from_minutes(10)));
        let asks = |request: &&Request| {
            matches!(request, Request::MergePatch { target, body }
            if matches!(target.kind, Kind::Workspace(_)) && body.to_string().contains("reconcile-requested-at"))
        };
        simulation.writes().filter(asks).count()
    };
    assert!(attempts(true) > 0);
    assert_eq!(attempts(false), 0);
}

#[test]
fn a_circle_is_told_with_its_path_and_what_serves_goes_on() {
    // The VPC's apply shall wait for the EKS apply, which waits for it.
    let wait = json!([{"name": "demo-eks-controlplane-apply"}]);
    let mut serving = ready();
    serving.api.edit(&key(Kind::Apply, "demo-vpc"), |apply| apply["spec"]["waitForWorkspaces"] = wait.clone());
    assert!(serving.run_for(Span::from_minutes(5)));
    let plane = status(&serving, Kind::CaptControlPlane, "demo");
    assert_eq!(
        (&plane["state"], &plane["ready"], &plane["initialized"]),
        (&json!("Degraded"), &json!(true), &json!(true))
    );
    let told = condition(&plane, "Healthy");
    assert_eq!(told["reason"], "CyclicDependency");
    let path = format!("{VPC} -> {EKS} -> {VPC} wait for each other");
    assert!(told["message"].as_str().unwrap().starts_with(&path), "{told}");
    assert_eq!(condition(&plane, "Available")["status"], "True");
    let deletes = serving.writes().filter(|write| matches!(write, Request::Delete { .. })).count();
    assert_eq!(deletes, 0);
    serving.api.edit(&key(Kind::Apply, "demo-vpc"), |apply| apply["spec"]["waitForWorkspaces"] = json!([]));
    assert!(serving.run_for(Span::from_minutes(5)));
    assert_eq!(status(&serving, Kind::CaptControlPlane, "demo")["state"], "Ready");
}

/// Nothing can ever begin, since a Secret that the VPC waits for is written by what waits for the VPC.
#[test]
fn a_circle_by_way_of_a_secret_fails_a_creation_at_once() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.step_core();
    simulation.run_capt();
    let apply = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"name": "dns", "namespace": "default"},
        "spec": {"templateRef": {"name": "vpc-template"}, "waitForWorkspaces": [{"name": "demo-vpc"}],
            "writeConnectionSecretToRef": {"name": "zone", "namespace": "default"}}});
    create(&mut simulation, apply);
    simulation.api.delete(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc"), None);
    simulation.api.edit(&key(Kind::Apply, "demo-vpc"), |apply| {
        apply["spec"]["waitForSecrets"] = json!([{"name": "zone", "namespace": "default"}]);
    });
    simulation.run_capt();
    let failed = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!(
        (&failed["state"], &failed["failureReason"]),
        (&json!("Failed"), &json!("InvalidConfiguration")),
        "{failed:#}"
    );
    let message = failed["failureMessage"].as_str().unwrap();
    assert!(
        message.contains(
            "Secret/default/zone -> WorkspaceTemplateApply/default/dns -> WorkspaceTemplateApply/default/demo-vpc"
        ),
        "{message}"
    );
}
