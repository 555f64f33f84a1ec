//! The kubeconfig: where it comes from, that it can be used, and that it follows its source.

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{Simulation, provider::Outputs};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{
    common::{condition, create, documents, key, ready, simulation, terraform},
    help::{assert_still, created_with, fresh, is_gone, minutes, plane, plane_key, wait, workspace_key, writes_to},
};

const SECRET: &str = "Secret/default/demo-kubeconfig";

fn secret() -> ObjectKey {
    key(Kind::Secret, "demo-kubeconfig")
}

/// The Secret that the provider fills.
fn source() -> ObjectKey {
    key(Kind::Secret, "demo-eks-connection")
}

fn encoded(text: &str) -> Value {
    json!(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text))
}

fn config(server: &str) -> String {
    format!("apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: {server}\n  name: demo\n")
}

/// Terraform as in the examples, with this kubeconfig.
fn puts_out(kubeconfig: impl Into<String>) -> impl Fn(&Value) -> Outputs {
    let kubeconfig = kubeconfig.into();
    move |workspace| {
        let mut outputs = terraform(workspace);
        if outputs.sensitive.contains_key("kubeconfig") {
            outputs.sensitive.insert("kubeconfig".into(), kubeconfig.clone());
        }
        outputs
    }
}

#[test]
fn cb_040_a_kubeconfig_without_https_is_not_published() {
    for server in ["34.1.2.3", "http://34.1.2.3", "\"demo.eks.invalid:443\""] {
        let mut simulation = created_with(puts_out(config(server)));
        let plane_status = plane(&simulation);
        assert_eq!([&plane_status["secretsReady"], &plane_status["initialized"]], [false; 2], "{server}");
        let told = condition(&plane_status, "SecretsReady");
        assert_eq!(told["reason"], "KubeconfigNotReady");
        assert!(told["message"].as_str().unwrap().contains("https://"), "{told:#}");
        assert!(is_gone(&simulation, &secret()), "{server}");
        // Mended, it is published.
        simulation.terraform(puts_out(config("https://demo.eks.invalid")));
        wait(&mut simulation, minutes(1));
        assert_eq!(plane(&simulation)["state"], "Ready");
    }
    // One that serves is not replaced by one that cannot.
    let mut simulation = created_with(puts_out(config("https://demo.eks.invalid")));
    let before = simulation.api.get(&secret()).unwrap().clone();
    simulation.terraform(puts_out(config("demo.eks.invalid")));
    wait(&mut simulation, minutes(60));
    assert_eq!(*simulation.api.get(&secret()).unwrap(), before);
    assert_eq!([&plane(&simulation)["state"], &plane(&simulation)["initialized"]], [&json!("Degraded"), &json!(true)]);
}

#[test]
fn cb_046_a_kubeconfig_that_is_as_its_source_is_not_written() {
    let mut simulation = ready();
    let (before, seen) = (simulation.api.get(&secret()).unwrap().clone(), simulation.requests.len());
    for _ in 0..5 {
        assert_still(&mut simulation, &[1, 60]);
        simulation.restart();
        wait(&mut simulation, minutes(10));
    }
    assert_eq!(*simulation.api.get(&secret()).unwrap(), before);
    assert_eq!(writes_to(&simulation, seen, SECRET), [""; 0]);
}

#[test]
fn cb_047_a_secret_that_is_there_already_is_no_end() {
    let mut simulation = ready();
    simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
    simulation.terraform(puts_out("newer"));
    // As a rotation: deleted, and made again by somebody else's hand, while CAPT sees neither.
    let owned = simulation.api.get(&secret()).unwrap()["metadata"]["ownerReferences"].clone();
    simulation.api.delete(&secret(), None);
    simulation.run_capt();
    simulation.api.delete(&secret(), None);
    simulation.lags = true;
    let body = json!({"metadata": {"namespace": "default", "name": "demo-kubeconfig", "ownerReferences": owned},
        "data": {"value": encoded("old")}});
    simulation.api.create(&secret(), body);
    simulation.resync();
    simulation.lags = false;
    wait(&mut simulation, minutes(2));
    let found = simulation.api.get(&secret()).unwrap();
    assert_eq!(
        [&found["data"]["value"], &found["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"]],
        [&encoded("newer"), &json!("demo")]
    );
    assert_eq!(plane(&simulation)["state"], "Ready");
}

#[test]
fn cb_048_a_secret_of_another_owner_is_never_skipped_without_a_word() {
    let mut simulation = ready();
    let owner =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "demo", "uid": "uid-of-cluster"}]);
    simulation.api.edit(&secret(), |secret| secret["metadata"]["ownerReferences"] = owner);
    assert!(simulation.run());
    assert_eq!(condition(&plane(&simulation), "SecretsReady")["reason"], "Available", "as long as it is current");
    let before = simulation.api.get(&secret()).unwrap().clone();
    simulation.terraform(puts_out("newer"));
    wait(&mut simulation, minutes(1));
    assert_eq!(*simulation.api.get(&secret()).unwrap(), before, "it is somebody else's");
    let told = condition(&plane(&simulation), "SecretsReady");
    assert_eq!([&told["status"], &told["reason"]], ["True", "SecretNotOurs"], "{told:#}");
    assert!(told["message"].as_str().unwrap().contains(SECRET), "{told:#}");
    // An empty one cannot be used.
    simulation.api.edit(&secret(), |secret| secret["data"] = json!({}));
    wait(&mut simulation, minutes(1));
    let told = condition(&plane(&simulation), "SecretsReady");
    assert_eq!([&told["status"], &told["reason"]], ["False", "SecretNotOurs"], "{told:#}");
}

#[test]
fn cb_049_a_new_token_reaches_the_kubeconfig_in_one_write() {
    let mut simulation = ready();
    let before = simulation.requests.len();
    simulation.terraform(puts_out("token: two"));
    wait(&mut simulation, minutes(10));
    assert_eq!(simulation.api.get(&secret()).unwrap()["data"]["value"], encoded("token: two"));
    assert_eq!(writes_to(&simulation, before, ""), [format!("patch {SECRET}")]);
    assert_eq!(plane(&simulation)["secretsReady"], true);
}

#[test]
fn cb_050_without_its_source_there_is_no_kubeconfig() {
    for text in [None, Some(""), Some("  "), Some("null")] {
        let mut simulation = created_with(move |workspace| {
            let mut outputs = terraform(workspace);
            if outputs.sensitive.remove("kubeconfig").is_some() {
                outputs.sensitive.extend(text.map(|text| ("kubeconfig".to_owned(), text.to_owned())));
            }
            outputs
        });
        wait(&mut simulation, minutes(3));
        assert!(simulation.api.get(&key(Kind::Secret, "demo-ca")).is_some(), "the CA is there");
        assert!(is_gone(&simulation, &secret()), "{text:?}");
        let plane = plane(&simulation);
        assert_eq!([&plane["secretsReady"], &plane["initialized"], &plane["ready"]], [false; 3]);
        assert_eq!(condition(&plane, "SecretsReady")["status"], "False");
    }
}

/// In `namespace`, a cluster whose kubeconfig a further Workspace makes.
fn with_kubeconfig_template(simulation: &mut Simulation, namespace: &str) {
    for file in ["vpc-template.yaml", "kubeconfig-template.yaml", "eks-template.yaml", "cluster.yaml"] {
        for document in documents(file) {
            let text =
                document.to_string().replace("\"namespace\":\"default\"", &format!("\"namespace\":\"{namespace}\""));
            let mut object: Value = serde_json::from_str(&text).unwrap();
            if file == "eks-template.yaml" {
                let module = object["spec"]["template"]["spec"]["forProvider"]["module"].as_str().unwrap();
                object["spec"]["template"]["spec"]["forProvider"]["module"] =
                    json!(module.replace("output \"kubeconfig\"", "output \"other\""));
            }
            create(simulation, object);
        }
    }
}

#[test]
fn cb_114_clusters_of_one_name_do_not_share_the_source_of_their_kubeconfig() {
    let settings = capt_reconcile::pass::Settings { workspace_api: WorkspaceApi::Namespaced, ..Default::default() };
    let mut simulation = Simulation::new(settings, |workspace| {
        let mut outputs = terraform(workspace);
        if let Some(kubeconfig) = outputs.sensitive.get_mut("kubeconfig") {
            *kubeconfig = format!("of {}", workspace["metadata"]["namespace"].as_str().unwrap());
        }
        outputs
    });
    for namespace in ["a", "b"] {
        with_kubeconfig_template(&mut simulation, namespace);
    }
    assert!(simulation.run());
    for namespace in ["a", "b"] {
        let found = |name: &str| simulation.api.get(&ObjectKey::new(Kind::Secret, namespace, name)).unwrap().clone();
        assert_eq!(found("demo-kubeconfig")["data"]["value"], encoded(&format!("of {namespace}")));
        assert_eq!(found("demo-outputs-kubeconfig")["data"]["kubeconfig"], encoded(&format!("of {namespace}")));
    }
    assert!(simulation.api.keys().all(|key| key.namespace.as_deref() != Some("default")));
}

#[test]
fn cb_116_a_changed_secret_starts_a_pass_at_once() {
    let mut simulation = ready();
    let now = simulation.api.now;
    simulation.api.edit(&source(), |secret| secret["data"]["kubeconfig"] = encoded("newer"));
    assert!(simulation.run_capt());
    assert_eq!(simulation.api.now, now);
    assert_eq!(simulation.api.get(&secret()).unwrap()["data"]["value"], encoded("newer"));
}

#[test]
fn cb_117_a_secret_that_comes_late_is_noticed() {
    let mut simulation = ready();
    let data = simulation.api.get(&source()).unwrap().clone();
    let mut simulation = {
        simulation = fresh();
        simulation.refuse(|_| None);
        simulation
    };
    // The Workspace is ready, and its connection Secret is not there.
    for _ in 0..40 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(1));
        simulation.step_core();
        simulation.step_provider();
        simulation.api.delete(&source(), None);
        simulation.run_capt();
    }
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(3));
    simulation.resync();
    assert_eq!(
        [&plane(&simulation)["state"], &plane(&simulation)["initialized"]],
        [&json!("Configuring"), &json!(false)]
    );
    simulation.api.create(&source(), data);
    simulation.run_capt();
    assert_eq!(plane(&simulation)["state"], "Ready", "by the event alone");
}

#[test]
fn cb_138_a_workspace_of_outputs_alone_is_ready_and_not_applied_again() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &[]);
    with_kubeconfig_template(&mut simulation, "default");
    assert!(simulation.run());
    let made = workspace_key("demo-kubeconfig");
    let status = simulation.api.get(&made).unwrap()["status"].clone();
    assert!(status["atProvider"].get("resources").is_none() && condition(&status, "Ready")["status"] == "True");
    assert_eq!(plane(&simulation)["state"], "Ready", "{:#}", plane(&simulation));
    let asks = |request: &&Request| matches!(request, Request::MergePatch { target, .. } if *target == made);
    assert_eq!(simulation.writes().filter(asks).count(), 0, "nobody asks for another apply");
    assert_still(&mut simulation, &[60, 3600]);
}
