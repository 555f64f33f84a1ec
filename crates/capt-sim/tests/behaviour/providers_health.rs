//! Whether the API server answers, and what else is told of a control plane without deciding over it.

use crate::common::{FILES, condition, create, key, ready, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
    world::Probe,
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

fn check(status: &Value, name: &str) -> Value {
    let checks = status["health"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).cloned().unwrap_or_default()
}

/// Core says that its probe succeeds or fails from now on.
fn core_says(simulation: &mut Simulation, answers: bool) {
    let now = simulation.api.now;
    let condition = json!({"type": "RemoteConnectionProbe", "status": if answers { "True" } else { "False" },
        "reason": "ProbeResult", "message": "", "lastTransitionTime": now});
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["status"]["conditions"] = json!([condition]));
}

/// Every latch, and what core reads.
fn contract(status: &Value) -> Vec<Value> {
    let mut read: Vec<Value> =
        ["ready", "initialized", "initialization", "endpoint", "version"].map(|field| status[field].clone()).into();
    read.extend(["Ready", "Available", "Initialized"].map(|type_| condition(status, type_)["status"].clone()));
    read
}

#[test]
fn a_connection_that_stays_down_is_degraded_and_moves_nothing_that_core_reads() {
    let mut simulation = ready();
    let before = contract(&plane(&simulation));
    core_says(&mut simulation, true);
    assert!(simulation.run_for(Span::from_minutes(1)));
    assert_eq!(check(&plane(&simulation), "ConnectionCheck")["status"], "Passed");
    let writes = simulation.requests.len();
    core_says(&mut simulation, false);
    assert!(simulation.run_for(Span::from_minutes(4)));
    assert_eq!(plane(&simulation)["state"], "Ready", "it may pass");
    assert!(simulation.run_for(Span::from_minutes(2)));
    let down = plane(&simulation);
    assert_eq!(down["state"], "Degraded", "{down:#}");
    assert_eq!(check(&down, "ConnectionCheck")["status"], "Failed");
    assert_eq!(condition(&down, "Healthy")["reason"], "ConnectionDown");
    assert_eq!(contract(&down), before);
    assert_eq!(down["failureReason"], Value::Null);
    core_says(&mut simulation, true);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert!(
        simulation.requests[writes..].iter().all(|(request, _)| matches!(request, Request::ApplyStatus { .. })),
        "nothing but statuses"
    );
}

#[test]
fn a_probe_that_flaps_causes_no_write() {
    let mut simulation = ready();
    core_says(&mut simulation, true);
    assert!(simulation.run_for(Span::from_minutes(1)));
    let before = simulation.requests.len();
    for _ in 0..20 {
        core_says(&mut simulation, false);
        assert!(simulation.run_for(Span::from_minutes(2)));
        core_says(&mut simulation, true);
        assert!(simulation.run_for(Span::from_minutes(2)));
    }
    assert_eq!(simulation.requests[before..], []);
}

#[test]
fn a_probe_of_our_own_counts_like_that_of_core() {
    let mut simulation = ready();
    let key = key(Kind::CaptControlPlane, "demo");
    let silent = Probe { answers: false, since: simulation.api.now, message: "connection refused".to_owned() };
    simulation.probe(&key, Some(silent));
    assert!(simulation.run_for(Span::from_minutes(6)));
    let down = plane(&simulation);
    assert_eq!(down["state"], "Degraded", "{down:#}");
    assert!(condition(&down, "Healthy")["message"].as_str().unwrap().contains("connection refused"));
    simulation.probe(&key, Some(Probe { answers: true, since: simulation.api.now, message: String::new() }));
    assert_eq!(plane(&simulation)["state"], "Ready");
    assert!(simulation.run_for(Span::from_minutes(1)));
    assert_eq!(check(&plane(&simulation), "ConnectionCheck")["status"], "Passed");
}

#[test]
fn what_the_outputs_say_of_the_cluster_is_shown_and_stays() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(|workspace| {
        let mut outputs = terraform(workspace);
        if outputs.plain.contains_key("cluster_endpoint") {
            let arn = "arn:aws:iam::1:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB";
            outputs.plain.insert("oidc_provider_arn".into(), json!(arn));
        }
        outputs
    });
    assert!(simulation.run());
    let shown = json!({"clusterName": "demo", "oidcIssuer": "https://oidc.eks.eu-west-1.amazonaws.com/id/AB",
        "oidcProviderArn": "arn:aws:iam::1:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB"});
    assert_eq!(plane(&simulation)["eks"], shown);
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["eks"], shown);
}

#[test]
fn tags_addons_and_access_reach_the_template() {
    let simulation = ready();
    let apply = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap();
    let variables = &apply["spec"]["variables"];
    for (name, value) in [
        ("tags_Environment", "demo"),
        ("tags_ManagedBy", "capt"),
        ("endpoint_public_access", "true"),
        ("endpoint_private_access", "true"),
        ("public_access_cidrs", "[\"192.0.2.0/24\"]"),
        ("cluster_name", "demo"),
        ("kubernetes_version", "1.31"),
        ("region", "eu-west-1"),
    ] {
        assert_eq!(variables[name], value, "{name}");
    }
    let addons: Value = serde_json::from_str(variables["addons"].as_str().unwrap()).unwrap();
    assert_eq!(
        addons[1],
        json!({"name": "coredns", "version": "v1.11.3-eksbuild.1", "configurationValues": "{\"replicaCount\": 2}"})
    );
}

/// Applies as the Go implementation makes them for each control plane, and their templates.
fn with_spot(templates: &[&str], applies: &[&str]) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.step_core();
    for name in templates {
        create(
            &mut simulation,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplate",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"template": {"spec": {"forProvider": {"source": "Inline", "module": format!("# {name}")}, "providerConfigRef": {"name": "aws"}}}},
            }),
        );
    }
    let uid = simulation.api.get(&key(Kind::CaptControlPlane, "demo")).unwrap()["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "name": "demo", "uid": uid, "controller": true});
    for name in applies {
        create(
            &mut simulation,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
                "metadata": {"name": format!("demo-{name}"), "namespace": "default", "ownerReferences": [owner]},
                "spec": {"templateRef": {"name": name, "namespace": "default"}},
            }),
        );
    }
    simulation
}

/// Terraform that finds the role, or not, and makes it so.
fn role(exists: bool, make: Ending) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let mut outputs = terraform(workspace);
        match workspace["metadata"]["name"].as_str().unwrap() {
            "demo-spot-role-check" => {
                outputs.plain.insert("role_exists".into(), json!(exists));
            }
            "demo-spot-role-create" => {
                outputs.plain.insert("role_arn".into(), json!("arn"));
                outputs.result = make.clone();
            }
            _ => {}
        }
        outputs
    }
}

#[test]
fn the_spot_role_has_its_own_condition_and_fails_nothing() {
    const BOTH: &[&str] = &["spot-role-check", "spot-role-create"];
    let failure = Ending::Failure("AccessDenied: no".to_owned());
    for (templates, applies, exists, make, expected, creates) in [
        (BOTH, BOTH, true, Ending::Success, Some(("True", "RoleExists")), false),
        (BOTH, BOTH, false, Ending::Success, Some(("True", "RoleCreated")), false),
        (BOTH, BOTH, false, failure, Some(("False", "AccessDenied")), false),
        (BOTH, &BOTH[..1], false, Ending::Success, Some(("True", "RoleCreated")), true),
        (&BOTH[..1], &BOTH[..1], false, Ending::Success, Some(("False", "TemplateNotFound")), false),
        (BOTH, &[][..], false, Ending::Success, None, false),
    ] {
        let mut simulation = with_spot(templates, applies);
        simulation.terraform(role(exists, make));
        assert!(simulation.run());
        let plane = plane(&simulation);
        assert_eq!(plane["state"], "Ready", "{plane:#}");
        let shown = condition(&plane, "SpotRoleReady");
        match expected {
            None => assert_eq!(shown, Value::Null),
            Some((is, why)) => assert_eq!([&shown["status"], &shown["reason"]], [is, why], "{shown}"),
        }
        let made = simulation.requests.iter().any(|(request, _)| {
            matches!(request, Request::Create { target, .. } if target.kind == Kind::Apply && target.name.contains("spot"))
        });
        assert_eq!(made, creates);
        assert!(!simulation.resync(), "at rest");
        // With the control plane they go, and nobody waits.
        simulation.api.delete(&key(Kind::Cluster, "demo"), None);
        assert!(simulation.run());
        let left: Vec<&ObjectKey> = simulation.api.keys().filter(|key| key.kind != Kind::Template).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
