//! The kubeconfig and the CA: where they come from, and that they stay current.

use crate::common::{CA, FILES, condition, create, documents, key, simulation, status, terraform};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{Simulation, provider::Outputs};
use capt_status::{Span, Time};
use serde_json::{Value, json};

const ASKED: &str = "crossplane.io/reconcile-requested-at";

fn kubeconfig(signed: Time) -> String {
    let date: String = signed.to_string().chars().filter(|char| !"-:".contains(*char)).collect();
    let token = URL_SAFE_NO_PAD.encode(format!("https://sts.invalid/?X-Amz-Date={date}&X-Amz-Expires=60"));
    format!("apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: \"k8s-aws-v1.{token}\"\n")
}

/// Terraform signs a token whenever it is asked to look, and first at the beginning.
fn signs_when_asked(workspace: &Value) -> Outputs {
    let mut outputs = terraform(workspace);
    if outputs.sensitive.contains_key("kubeconfig") {
        let asked = workspace["metadata"]["annotations"][ASKED].as_str().map(|text| text.parse().unwrap());
        outputs.sensitive.insert("kubeconfig".into(), kubeconfig(asked.unwrap_or_default()));
    }
    outputs
}

/// Terraform signs a token once.
fn signs_once(workspace: &Value) -> Outputs {
    let mut workspace = workspace.clone();
    workspace["metadata"]["annotations"].as_object_mut().unwrap().remove(ASKED);
    signs_when_asked(&workspace)
}

fn ready_with(terraform: fn(&Value) -> Outputs) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready");
    simulation
}

/// The EKS template without its own kubeconfig.
fn eks_template() -> Value {
    let mut object = documents("eks-template.yaml").remove(0);
    let module = object["spec"]["template"]["spec"]["forProvider"]["module"].as_str().unwrap();
    object["spec"]["template"]["spec"]["forProvider"]["module"] =
        json!(module.replace("output \"kubeconfig\"", "output \"other\""));
    object
}

fn plane(simulation: &Simulation) -> Value {
    status(simulation, Kind::CaptControlPlane, "demo")
}

fn secret(simulation: &Simulation, name: &str, entry: &str) -> String {
    let secret = simulation.api.get(&key(Kind::Secret, name)).unwrap_or_else(|| panic!("no Secret {name}"));
    String::from_utf8(STANDARD.decode(secret["data"][entry].as_str().unwrap()).unwrap()).unwrap()
}

/// Whether the kubeconfig that people and core use was signed within the last quarter of an hour.
fn is_fresh(simulation: &Simulation) -> bool {
    let (shown, now) = (secret(simulation, "demo-kubeconfig", "value"), simulation.api.now.as_unix());
    (0..15 * 60).any(|age| shown == kubeconfig(Time::from_unix(now - age)))
}

/// How often the provider was asked to look, and how many statuses were written, since `before`.
fn asked(simulation: &Simulation, before: usize) -> (usize, usize) {
    let since = &simulation.requests[before..];
    let asks = since.iter().filter(|(request, _)| {
        matches!(request, Request::MergePatch { body, .. } if body["metadata"]["annotations"].get(ASKED).is_some())
    });
    let statuses = since.iter().filter(|(request, _)| matches!(request, Request::ApplyStatus { .. }));
    (asks.count(), statuses.count())
}

#[test]
fn a_token_is_replaced_before_it_expires_and_nobody_notices() {
    for by_apply in [false, true] {
        let mut simulation = simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "cluster.yaml"]);
        simulation.terraform(signs_when_asked);
        let mut objects = if by_apply { documents("kubeconfig-template.yaml") } else { documents("eks-template.yaml") };
        if by_apply {
            objects.push(eks_template());
        }
        for object in objects {
            create(&mut simulation, object);
        }
        assert!(simulation.run_for(Span::from_minutes(1)));
        let before = simulation.requests.len();
        for minute in 0..120 {
            assert!(simulation.run_for(Span::from_minutes(1)));
            assert!(is_fresh(&simulation), "minute {minute}");
            assert_eq!(condition(&plane(&simulation), "SecretsReady")["status"], "True");
        }
        let (asks, statuses) = asked(&simulation, before);
        assert!((11..=13).contains(&asks), "{asks} in two hours");
        assert_eq!(statuses, 0, "a token is no news");
    }
}

#[test]
fn a_token_that_nobody_replaces_is_told_and_asked_for_and_late_success_counts() {
    let mut simulation = ready_with(signs_once);
    assert!(simulation.run_for(Span::from_minutes(14)));
    assert_eq!(plane(&simulation)["state"], "Ready");
    let before = simulation.requests.len();
    assert!(simulation.run_for(Span::from_minutes(60)));
    let after = plane(&simulation);
    assert_eq!([&after["state"], &after["secretsReady"]], [&json!("Degraded"), &json!(false)], "{after:#}");
    assert_eq!(condition(&after, "SecretsReady")["reason"], "KubeconfigExpired");
    assert_eq!([&after["ready"], &after["initialized"]], [true; 2]);
    let (asks, statuses) = asked(&simulation, before);
    assert!((11..=13).contains(&asks), "every five minutes: {asks}");
    assert!(statuses <= 3, "told once: {statuses}");
    simulation.terraform(signs_when_asked);
    assert!(simulation.run_for(Span::from_minutes(6)));
    assert_eq!(plane(&simulation)["state"], "Ready");
}

#[test]
fn a_kubeconfig_that_does_not_expire_is_left_in_peace() {
    let mut simulation = ready_with(terraform);
    let before = simulation.requests.len();
    assert!(simulation.run_for(Span::from_minutes(7 * 24 * 60)));
    assert_eq!(simulation.requests[before..], []);
}

#[test]
fn a_token_is_kept_fresh_while_the_cluster_is_updated() {
    let mut simulation =
        simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "cluster.yaml", "kubeconfig-template.yaml"]);
    simulation.terraform(signs_when_asked);
    create(&mut simulation, eks_template());
    assert!(simulation.run_for(Span::from_minutes(1)));
    simulation.terraform(|workspace| {
        let hangs = workspace["metadata"]["name"] == "demo-eks-controlplane";
        let result = if hangs { capt_sim::provider::Ending::Hang } else { capt_sim::provider::Ending::Success };
        Outputs { result, ..signs_when_asked(workspace) }
    });
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    for _ in 0..25 {
        assert!(simulation.run_for(Span::from_minutes(1)));
        assert_eq!(plane(&simulation)["state"], "Provisioning");
        assert!(is_fresh(&simulation), "at {}", simulation.api.now);
    }
}

#[test]
fn the_template_of_the_kubeconfig_is_looked_for_in_order_and_its_lack_is_told() {
    let template = |namespace: &str, name: &str| {
        let mut object = documents("kubeconfig-template.yaml").remove(0);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        object
    };
    let named = template("default", "mine");
    let well_known = [template("team", "eks-kubeconfig-template"), template("default", "eks-kubeconfig-template")];
    for (templates, reference, expected) in [
        (well_known.to_vec(), Value::Null, Some(("team", "eks-kubeconfig-template"))),
        (well_known[1..].to_vec(), Value::Null, Some(("default", "eks-kubeconfig-template"))),
        (
            [&well_known[..], &[named]].concat(),
            json!({"name": "mine", "namespace": "default"}),
            Some(("default", "mine")),
        ),
        (well_known.to_vec(), json!({"name": "other"}), None),
        (vec![], Value::Null, None),
    ] {
        let mut simulation = simulation(WorkspaceApi::Cluster, &[]);
        let mut objects = documents("cluster.yaml");
        objects.extend(documents("vpc-template.yaml"));
        objects.push(eks_template());
        for mut object in objects {
            object["metadata"]["namespace"] = json!("team");
            if object["kind"] == "CAPTControlPlane" && !reference.is_null() {
                object["spec"]["kubeconfigTemplateRef"] = reference.clone();
            }
            let text = object.to_string().replace("\"namespace\":\"default\"", "\"namespace\":\"team\"");
            let mut object: Value = serde_json::from_str(&text).unwrap();
            if object["kind"] == "CAPTControlPlane" && !reference.is_null() {
                object["spec"]["kubeconfigTemplateRef"] = reference.clone();
            }
            create(&mut simulation, object);
        }
        for object in templates {
            create(&mut simulation, object);
        }
        assert!(simulation.run());
        let team = |kind, name: &str| simulation.api.get(&ObjectKey::new(kind, "team", name)).cloned();
        let plane = team(Kind::CaptControlPlane, "demo").unwrap()["status"].clone();
        if let Some((namespace, name)) = expected {
            let apply = team(Kind::Apply, "demo-kubeconfig-apply").unwrap();
            let template = &apply["spec"]["templateRef"];
            // Its own namespace is not spelled out.
            let found = (template["namespace"].as_str().unwrap_or("team"), template["name"].as_str().unwrap());
            assert_eq!((found, template.get("namespace").is_some()), ((namespace, name), namespace != "team"));
            let secret = &apply["spec"]["writeConnectionSecretToRef"];
            assert_eq!(*secret, json!({"name": "demo-outputs-kubeconfig", "namespace": "team"}));
            assert_eq!(plane["state"], "Ready", "{plane:#}");
        } else {
            assert_eq!(team(Kind::Apply, "demo-kubeconfig-apply"), None);
            let secrets = condition(&plane, "SecretsReady");
            assert_eq!(secrets["reason"], "KubeconfigTemplateNotFound");
            assert_eq!([&plane["state"], &plane["initialized"]], [&json!("Configuring"), &json!(false)]);
        }
    }
}

#[test]
fn an_apply_of_go_keeps_its_secret_in_default() {
    let mut simulation =
        simulation(WorkspaceApi::Cluster, &["vpc-template.yaml", "kubeconfig-template.yaml", "cluster.yaml"]);
    create(&mut simulation, eks_template());
    simulation.step_core();
    let uid = simulation.api.get(&key(Kind::CaptControlPlane, "demo")).unwrap()["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "name": "demo", "uid": uid});
    create(
        &mut simulation,
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
            "metadata": {"name": "demo-kubeconfig-apply", "namespace": "default", "ownerReferences": [owner]},
            "spec": {
                "templateRef": {"name": "eks-kubeconfig-template", "namespace": "default"},
                "writeConnectionSecretToRef": {"name": "old-outputs-kubeconfig", "namespace": "default"},
                "waitForWorkspaces": [{"name": "demo-eks-controlplane-apply"}],
                "variables": {"cluster_name": "demo", "region": "eu-west-1", "cluster_endpoint": "old", "cluster_certificate_authority_data": "old"},
            },
        }),
    );
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready", "{:#}", plane(&simulation));
    assert!(simulation.api.get(&key(Kind::Secret, "demo-outputs-kubeconfig")).is_none());
    assert_eq!(
        secret(&simulation, "old-outputs-kubeconfig", "kubeconfig"),
        secret(&simulation, "demo-kubeconfig", "value")
    );
}

/// A cluster whose control plane has another name, and a Secret that may be the CA that Go wrote.
fn with_ca(data: &Value, is_owned: bool) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    for mut object in documents("cluster.yaml") {
        if object["kind"] == "Cluster" {
            object["spec"]["controlPlaneRef"]["name"] = json!("plane");
        } else if object["kind"] == "CAPTControlPlane" {
            object["metadata"]["name"] = json!("plane");
        }
        create(&mut simulation, object);
    }
    let uid = simulation.api.get(&key(Kind::CaptControlPlane, "plane")).unwrap()["metadata"]["uid"].clone();
    let owners = json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "name": "plane", "uid": uid}]);
    let mut body =
        json!({"metadata": {"name": "plane-ca", "namespace": "default", "labels": {"a": "b"}}, "data": data});
    if is_owned {
        body["metadata"]["ownerReferences"] = owners;
    }
    simulation.api.create(&key(Kind::Secret, "plane-ca"), body);
    assert!(simulation.run());
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "plane")["state"], "Ready");
    simulation
}

#[test]
fn the_ca_secret_of_go_is_kept_in_step_and_never_made() {
    let old = STANDARD.encode("-----BEGIN CERTIFICATE-----\nb2xk\n-----END CERTIFICATE-----\n");
    let of_go = json!({"ca.crt": old, "tls.crt": old});
    for (data, is_owned, follows) in [
        (of_go.clone(), true, true),
        (of_go.clone(), false, true),
        (json!({"ca.crt": old, "tls.crt": old, "tls.key": "a2V5"}), false, false),
        (json!({"ca.crt": old}), false, false),
        (json!({"ca.crt": "bm8gY2VydA==", "tls.crt": old}), false, false),
    ] {
        let simulation = with_ca(&data, is_owned);
        let found = simulation.api.get(&key(Kind::Secret, "plane-ca")).unwrap();
        if follows {
            let expected = STANDARD.encode(CA);
            assert_eq!(found["data"], json!({"ca.crt": expected, "tls.crt": expected}));
            assert_eq!(found["metadata"]["labels"], json!({"a": "b"}), "the rest is as it was");
        } else {
            assert_eq!(found["data"], data, "somebody else's");
        }
        assert!(simulation.api.get(&key(Kind::Secret, "demo-ca")).is_some());
    }
    let simulation = ready_with(terraform);
    let secrets: Vec<&str> =
        simulation.api.keys().filter(|key| key.kind == Kind::Secret).map(|key| key.name.as_str()).collect();
    assert_eq!(secrets, ["demo-ca", "demo-eks-connection", "demo-kubeconfig", "demo-vpc-vpc-connection"]);
}

/// While the Workspace is not ready, what counts is what is there, not what was told last.
#[test]
fn secrets_are_ready_as_long_as_they_are_there_whatever_becomes_of_the_workspace() {
    let workspace = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane");
    let connection = key(Kind::Secret, "demo-eks-connection");
    for connection_first in [true, false] {
        let mut simulation = ready_with(terraform);
        assert_eq!(plane(&simulation)["secretsReady"], true);
        for object in if connection_first { [&connection, &workspace] } else { [&workspace, &connection] } {
            simulation.api.edit(object, |object| object["metadata"]["finalizers"] = json!([]));
            simulation.api.delete(object, None);
            simulation.run_capt();
        }
        let shown = plane(&simulation);
        assert_eq!(condition(&shown, "WorkspaceReady")["reason"], "WorkspaceMissing");
        assert_eq!(shown["secretsReady"], true, "{connection_first}");
        assert_eq!(condition(&shown, "SecretsReady")["status"], "True", "{connection_first}");
        simulation.api.delete(&key(Kind::Secret, "demo-kubeconfig"), None);
        simulation.run_capt();
        let shown = plane(&simulation);
        assert_eq!(shown["secretsReady"], false, "nothing is left that could be used");
        assert_eq!(condition(&shown, "SecretsReady")["status"], "False");
    }
}
