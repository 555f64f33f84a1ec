//! A simulated world with the project's own examples in it.

#![allow(dead_code, unreachable_pub)] // each test binary uses its part of it

use std::path::Path;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::Settings,
};
use capt_sim::{Simulation, provider::Outputs};
use serde_json::{Value, json};

/// A cluster and the templates it needs.
pub const FILES: [&str; 3] = ["vpc-template.yaml", "eks-template.yaml", "cluster.yaml"];

pub const CA: &str = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";

/// What Terraform puts out for the examples' templates.
pub fn terraform(workspace: &Value) -> Outputs {
    let variables = capt_sim::terraform::variables(workspace);
    let mut outputs = Outputs::default();
    let module = workspace["spec"]["forProvider"]["module"].as_str().unwrap_or_default();
    if module.contains("output \"vpc_id\"") {
        outputs.plain.insert("vpc_id".into(), json!("vpc-0123"));
        outputs.plain.insert("private_subnets".into(), json!(["subnet-a", "subnet-b"]));
        outputs.plain.insert("azs".into(), json!(["eu-west-1a", "eu-west-1b"]));
    }
    if module.contains("output \"cluster_endpoint\"") {
        let name = variables.get("cluster_name").copied().unwrap_or_default();
        outputs.plain.insert("cluster_endpoint".into(), json!(format!("https://{name}.eks.invalid")));
        let ca = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, CA);
        outputs.plain.insert("cluster_certificate_authority_data".into(), json!(ca));
        outputs.plain.insert("cluster_name".into(), json!(name));
        outputs.plain.insert("cluster_version".into(), json!(variables.get("kubernetes_version")));
    }
    if module.contains("output \"kubeconfig\"") {
        outputs.sensitive.insert("kubeconfig".into(), "apiVersion: v1\nkind: Config\n".into());
    }
    outputs
}

pub fn key(kind: Kind, name: &str) -> ObjectKey {
    ObjectKey::new(kind, "default", name)
}

pub fn documents(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple::<Value>(&text).unwrap()
}

/// The examples' clusters, each in a namespace `team-<number>` of its own, with namespaced Workspaces and run until
/// all are ready.
pub fn teams(clusters: usize) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Namespaced, &[]);
    for number in 0..clusters {
        create_cluster(&mut simulation, &format!("team-{number}"), "demo");
    }
    assert!(simulation.run());
    for number in 0..clusters {
        let key = ObjectKey::new(Kind::CaptControlPlane, &format!("team-{number}"), "demo");
        assert_eq!(simulation.api.get(&key).unwrap()["status"]["state"], "Ready");
    }
    simulation
}

/// The examples' cluster as `name` in `namespace`, with the templates it needs.
pub fn create_cluster(simulation: &mut Simulation, namespace: &str, name: &str) {
    // A namespaced Workspace has its Secret in its own namespace.
    let own =
        [(r#""namespace":"default""#, format!(r#""namespace":"{namespace}""#)), (r#""demo""#, format!(r#""{name}""#))];
    for object in FILES.iter().flat_map(|file| documents(file)) {
        let text = own.iter().fold(object.to_string(), |text, (old, new)| text.replace(old, new));
        create(simulation, serde_json::from_str(&text).unwrap());
    }
}

/// Users create with the API server in between, so cluster and provider objects come together.
pub fn create(simulation: &mut Simulation, object: Value) {
    let group = object["apiVersion"].as_str().unwrap().split_once('/').unwrap().0.to_owned();
    let kind = Kind::find(&group, object["kind"].as_str().unwrap()).unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    simulation.api.create(&ObjectKey::new(kind, &namespace, &name), object);
}

pub fn simulation(api: WorkspaceApi, files: &[&str]) -> Simulation {
    let mut simulation = Simulation::new(Settings { workspace_api: api, ..Settings::default() }, terraform);
    for file in files {
        for object in documents(file) {
            create(&mut simulation, object);
        }
    }
    simulation
}

/// The examples' cluster with cluster-scoped Workspaces, run until it is ready.
pub fn ready() -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    simulation
}

pub fn status(simulation: &Simulation, kind: Kind, name: &str) -> Value {
    simulation.api.get(&key(kind, name)).unwrap_or_else(|| panic!("no {} {name}", kind.name()))["status"].clone()
}

pub fn condition(status: &Value, type_: &str) -> Value {
    status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|condition| condition["type"] == type_)
        .cloned()
        .unwrap_or_default()
}
