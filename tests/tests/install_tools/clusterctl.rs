//! The release in the hands of clusterctl: `generate cluster`, `init`, `upgrade`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use capt_deploy::{clusterctl::Provider, settings};
use capt_stack::{Stack, Tier, tool};
use capt_tests::root;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    go,
    run::{Said, crds, deployment, documents, run_with, stored},
};

/// Directories as clusterctl reads them, one for each provider and version, and its configuration.
struct Repository(PathBuf);

impl Repository {
    fn new(directory: &Path) -> Self {
        let repository = Self(directory.join("repository"));
        for provider in Provider::ALL {
            let release = repository.release(&provider.label(), &settings::version());
            fs::copy(root().join("metadata.yaml"), release.join("metadata.yaml")).unwrap();
            for entry in fs::read_dir(root().join("deploy/clusterctl")).unwrap() {
                let file = entry.unwrap().path();
                fs::copy(&file, release.join(file.file_name().unwrap())).unwrap();
            }
        }
        // Cluster API core runs already; clusterctl only has to know that it does.
        let core = repository.release("cluster-api", "v1.14.2");
        let series = json!([{"major": 1, "minor": 14, "contract": "v1beta2"}]);
        fs::write(core.join("metadata.yaml"), metadata(&series)).unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}});
        fs::write(core.join("core-components.yaml"), namespace.to_string()).unwrap();

        let mut providers =
            vec![json!({"name": "cluster-api", "type": "CoreProvider", "url": core.join("core-components.yaml")})];
        for (provider, kind) in Provider::ALL.into_iter().zip(["InfrastructureProvider", "ControlPlaneProvider"]) {
            let release = repository.release(&provider.label(), &settings::version());
            providers.push(json!({
                "name": settings::PROVIDER, "type": kind, "url": release.join(provider.file()),
            }));
        }
        fs::write(repository.configuration(), json!({"providers": providers}).to_string()).unwrap();
        repository
    }

    /// Adds a release of both providers that differs from this one by its `version` alone.
    fn also(&self, version: &str) {
        for provider in Provider::ALL {
            let (from, to) =
                (self.release(&provider.label(), &settings::version()), self.release(&provider.label(), version));
            for file in ["metadata.yaml", provider.file()] {
                let text = fs::read_to_string(from.join(file)).unwrap();
                fs::write(to.join(file), text.replace(&settings::version(), version)).unwrap();
            }
        }
    }

    /// Adds a release of both providers as the Go implementation had it.
    fn of_go(&self, version: &str) {
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        for provider in Provider::ALL {
            let release = self.release(&provider.label(), version);
            fs::copy(root().join("metadata.yaml"), release.join("metadata.yaml")).unwrap();
            let (group, rest) = match provider {
                Provider::Infrastructure => (
                    "infrastructure.cluster.x-k8s.io",
                    vec![
                        namespace(settings::NAMESPACE),
                        go::deployment(&json!({"control-plane": "controller-manager"})),
                    ],
                ),
                Provider::ControlPlane => {
                    ("controlplane.cluster.x-k8s.io", vec![namespace(settings::CONTROL_PLANE_NAMESPACE)])
                }
            };
            let crds = go::crds().into_iter().filter(|crd| crd["spec"]["group"] == group);
            let documents: Vec<String> = rest.into_iter().chain(crds).map(|object| object.to_string()).collect();
            fs::write(release.join(provider.file()), documents.join("\n---\n")).unwrap();
        }
    }

    fn release(&self, label: &str, version: &str) -> PathBuf {
        let release = self.0.join(label).join(version);
        fs::create_dir_all(&release).unwrap();
        release
    }

    fn configuration(&self) -> PathBuf {
        self.0.join("clusterctl.yaml")
    }

    fn run(&self, stack: Option<&Stack>, variables: &[(&str, &str)], arguments: &[&str]) -> Said {
        let configuration = self.configuration().display().to_string();
        let arguments = [arguments, &["--config", &configuration]].concat();
        // Otherwise it asks the network whether it is outdated.
        let variables = [variables, &[("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")]].concat();
        run_with(&tool("clusterctl").unwrap(), stack, &variables, &arguments)
    }
}

fn metadata(series: &Value) -> String {
    json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series})
        .to_string()
}

/// clusterctl looks for cert-manager and takes it that its kinds can be stored for a sign that it
/// runs. Nothing of ours uses it.
fn cert_manager() -> String {
    let kinds = [("issuers", "Issuer"), ("certificates", "Certificate")].map(|(plural, kind)| {
        let mut crd = go::crd("cert-manager.io", plural, kind);
        crd["spec"]["versions"][0]["name"] = json!("v1");
        crd.to_string()
    });
    kinds.join("\n---\n")
}

const VARIABLES: [(&str, &str); 4] = [
    ("AWS_REGION", "eu-west-1"),
    ("VPC_TEMPLATE_NAME", "vpc"),
    ("CONTROLPLANE_TEMPLATE_NAME", "eks"),
    ("VPC_ID", "vpc-0123456789abcdef0"),
];

const FLAVOURS: [(&str, &[&str]); 4] = [
    ("", &["CAPTCluster", "CAPTControlPlane", "Cluster", "WorkspaceTemplate", "WorkspaceTemplate"]),
    ("existing-templates", &["CAPTCluster", "CAPTControlPlane", "Cluster"]),
    ("existing-vpc", &["CAPTCluster", "CAPTControlPlane", "Cluster"]),
    ("topology", &["CAPTClusterTemplate", "CAPTControlPlaneTemplate", "Cluster", "ClusterClass"]),
];

/// Every flavour gives objects that the API server and core's webhooks take, and Terraform text that
/// Terraform can read.
#[tokio::test]
#[ignore = "needs the real stack and clusterctl: just test-install"]
async fn every_flavour_is_generated_and_taken_by_the_api_server() {
    let crds: Vec<String> = capt_api::crds::all().iter().map(|crd| serde_json::to_string(crd).unwrap()).collect();
    let stack = Stack::builder(Tier::Core).install(crds.join("\n---\n")).start().await.unwrap();
    let repository = Repository::new(stack.directory());
    for (flavour, kinds) in FLAVOURS {
        let namespace = format!("flavour-{flavour}").trim_end_matches('-').to_owned();
        let infrastructure = format!("--infrastructure={}:{}", settings::PROVIDER, settings::version());
        let mut arguments = vec![
            "generate",
            "cluster",
            "one",
            &infrastructure,
            "--kubernetes-version=v1.31.4",
            "--target-namespace",
            &namespace,
        ];
        if !flavour.is_empty() {
            arguments.extend(["--flavor", flavour]);
        }
        let said = repository.run(Some(&stack), &VARIABLES, &arguments);
        let yaml = said.unwrap_or_else(|said| panic!("{flavour}: {said}"));
        let objects = documents(&yaml);
        let mut found: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, kinds, "{flavour}");
        let modules: Vec<&str> = objects
            .iter()
            .filter_map(|object| object["spec"]["template"]["spec"]["forProvider"]["module"].as_str())
            .collect();
        for module in modules {
            can_be_read_by_terraform(module);
        }

        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        stack.apply(&namespace.to_string()).await.unwrap();
        // Strict: a field that the CRD does not know is an error.
        let file = stack.directory().join("flavour.yaml");
        fs::write(&file, &yaml).unwrap();
        let create = ["create", "--validate=strict", "-f", file.to_str().unwrap()];
        run_with(stack.kubectl().unwrap(), Some(&stack), &[], &create)
            .unwrap_or_else(|said| panic!("{flavour}: {said}"));
    }
    made_by_the_class(&stack).await;
}

/// Core makes the provider objects of the class with the Cluster's name and the variables' values.
async fn made_by_the_class(stack: &Stack) {
    let client = stack.admin_client().await.unwrap();
    let made = |version: &'static str, kind: &'static str| {
        let client = client.clone();
        async move {
            capt_stack::eventually(kind, std::time::Duration::from_mins(1), || async {
                let object = stored(&client, version, kind, Some("flavour-topology"), "one").await;
                object.ok_or_else(|| format!("no {kind} one yet"))
            })
            .await
            .unwrap()
        }
    };
    let cluster = made("infrastructure.cluster.x-k8s.io/v1beta1", "CAPTCluster").await;
    assert_eq!(cluster["spec"], json!({"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}}));
    let control_plane = made("controlplane.cluster.x-k8s.io/v1beta1", "CAPTControlPlane").await;
    let spec = json!({
        "version": "v1.31.4",
        "workspaceTemplateRef": {"name": "eks"},
        "controlPlaneConfig": {"region": "eu-west-1", "endpointAccess": {"public": true, "private": true}},
        "additionalTags": {"Environment": "dev", "ManagedBy": "capt"},
    });
    assert_eq!(control_plane["spec"], spec);
}

fn can_be_read_by_terraform(module: &str) {
    let directory = std::env::temp_dir().join(format!("capt-module-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("main.tf");
    fs::write(&file, module).unwrap();
    let terraform = std::env::var_os("TERRAFORM").unwrap_or_else(|| "terraform".into());
    let output = Command::new(terraform).args(["fmt", "-check", "-diff"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "terraform fmt: {said}\n{module}");
    fs::remove_dir_all(directory).unwrap();
}

/// A variable without a value stops `generate`; it never ends up in an object.
#[test]
#[ignore = "needs clusterctl: just test-install"]
fn a_missing_variable_is_named() {
    let directory = std::env::temp_dir().join(format!("capt-clusterctl-{}", std::process::id()));
    let repository = Repository::new(&directory);
    let template = root().join("deploy/clusterctl/cluster-template-existing-vpc.yaml").display().to_string();
    let arguments =
        ["generate", "cluster", "one", "--kubernetes-version=v1.31.4", "--target-namespace=teams", "--from", &template];
    let refused = repository.run(None, &VARIABLES[..2], &arguments).unwrap_err();
    assert!(refused.contains("[CONTROLPLANE_TEMPLATE_NAME, VPC_ID]"), "{refused}");
    fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
#[ignore = "needs the real stack and clusterctl: just test-install"]
async fn init_installs_both_providers() {
    let (stack, client, repository) = cluster().await;
    init(&repository, &stack, &settings::version());
    assert_eq!(crds(&client).await.len(), 6);
    assert_eq!(container(&client).await["args"], json!(settings::arguments()));
    // The text that clusterctl could have taken for a variable.
    let name = "workspacetemplates.infrastructure.cluster.x-k8s.io";
    let crd = stored(&client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name).await.unwrap();
    assert!(crd.to_string().contains("${VARIABLE}") && !crd.to_string().contains("$${"));
    assert_eq!(installed(&client).await, [settings::version(), settings::version()]);
}

/// A management cluster with core in it, and the releases.
async fn cluster() -> (Stack, Client, Repository) {
    let stack = Stack::builder(Tier::Core).install(cert_manager()).start().await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let repository = Repository::new(stack.directory());
    (stack, client, repository)
}

fn init(repository: &Repository, stack: &Stack, version: &str) {
    let (infrastructure, control_plane) =
        (format!("--infrastructure=capt:{version}"), format!("--control-plane=capt:{version}"));
    let arguments = [
        "init",
        "--core=cluster-api:v1.14.2",
        "--bootstrap=-",
        &infrastructure,
        &control_plane,
        // The stack's API server is none of a node's; clusterctl would count its version as too new or old.
        "--validate=false",
    ];
    let said = repository.run(Some(stack), &[], &arguments).unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
}

/// The operator's container as it is stored.
async fn container(client: &Client) -> Value {
    deployment(client).await.unwrap()["spec"]["template"]["spec"]["containers"][0].take()
}

/// The versions of both providers that clusterctl has noted.
async fn installed(client: &Client) -> [String; 2] {
    let mut versions = [String::new(), String::new()];
    let places =
        [(settings::NAMESPACE, "infrastructure-capt"), (settings::CONTROL_PLANE_NAMESPACE, "control-plane-capt")];
    for ((namespace, name), version) in places.into_iter().zip(&mut versions) {
        let api = "clusterctl.cluster.x-k8s.io/v1alpha3";
        let provider = stored(client, api, "Provider", Some(namespace), name).await.unwrap();
        provider["version"].as_str().unwrap().clone_into(version);
    }
    versions
}

/// A cluster whose objects say that it runs: without its CRDs, finalizers or statuses it would be lost.
const RUNNING: &str = "\
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: CAPTCluster,
 metadata: {name: running, namespace: default, finalizers: [infrastructure.cluster.x-k8s.io/captcluster]},
 spec: {region: eu-west-1, vpcTemplateRef: {name: vpc}}}
---
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: WorkspaceTemplateApply,
 metadata: {name: running-vpc, namespace: default, finalizers: [infrastructure.cluster.x-k8s.io/workspacetemplateapply]},
 spec: {templateRef: {name: vpc}}}
---
{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: CAPTControlPlane,
 metadata: {name: running, namespace: default},
 spec: {version: v1.31.4, workspaceTemplateRef: {name: eks}}}
";

async fn objects(client: &Client) -> Vec<Value> {
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta1";
    let kinds = [
        (infrastructure, "CAPTCluster", "running"),
        (infrastructure, "WorkspaceTemplateApply", "running-vpc"),
        ("controlplane.cluster.x-k8s.io/v1beta1", "CAPTControlPlane", "running"),
    ];
    let mut found = Vec::new();
    for (version, kind, name) in kinds {
        let mut object = stored(client, version, kind, Some("default"), name).await;
        if let Some(object) = &mut object {
            object["metadata"]["managedFields"].take();
            object["metadata"]["resourceVersion"].take();
        }
        found.push(object.unwrap_or_else(|| panic!("{kind} {name} is gone")));
    }
    found
}

/// clusterctl deletes what the old release installed before it installs the new one. It leaves CRDs, and with them
/// every cluster, alone; on the way back too.
#[tokio::test]
#[ignore = "needs the real stack and clusterctl: just test-install"]
async fn an_upgrade_and_the_way_back_keep_every_cluster() {
    let (stack, client, repository) = cluster().await;
    let (current, next) = (settings::version(), "v0.6.999");
    repository.also(next);
    init(&repository, &stack, &current);
    stack.apply(RUNNING).await.unwrap();
    let before = (crds(&client).await, objects(&client).await);
    assert_eq!(before.0.len(), 6);

    let plan = repository.run(Some(&stack), &[], &["upgrade", "plan"]).unwrap();
    assert!(plan.contains(next), "{plan}");
    for version in [next, &current] {
        println!("{}", upgrade(&repository, &stack, version).unwrap_or_else(|said| panic!("to {version}: {said}")));
        assert_eq!(installed(&client).await, [version, version]);
        assert_eq!((crds(&client).await, objects(&client).await), before, "to {version}");
        let image = container(&client).await["image"].take();
        assert!(image.as_str().unwrap().ends_with(version), "{image}");
    }
}

fn upgrade(repository: &Repository, stack: &Stack, version: &str) -> Said {
    let to = [
        format!("--infrastructure={}/capt:{version}", settings::NAMESPACE),
        format!("--control-plane={}/capt:{version}", settings::CONTROL_PLANE_NAMESPACE),
    ];
    repository.run(Some(stack), &[], &["upgrade", "apply", &to[0], &to[1]])
}

/// The template CRD stands in the way, as the documentation says, and nothing is lost before, meanwhile or after.
#[tokio::test]
#[ignore = "needs the real stack and clusterctl: just test-install"]
async fn an_upgrade_from_the_go_implementation_keeps_every_cluster() {
    let (stack, client, repository) = cluster().await;
    let (current, old) = (settings::version(), "v0.5.999");
    repository.of_go(old);
    init(&repository, &stack, old);
    stack.apply(RUNNING).await.unwrap();
    let before = (crds(&client).await, objects(&client).await);

    let refused = upgrade(&repository, &stack, &current).unwrap_err();
    let template = "captcontrolplanetemplates.controlplane.cluster.x-k8s.io";
    assert!(refused.contains(template), "{refused}");
    assert_eq!((crds(&client).await, objects(&client).await), before, "half-way");

    let kubectl = stack.kubectl().unwrap();
    let ours = root().join("crds").join(format!("{template}.yaml")).display().to_string();
    run_with(kubectl, Some(&stack), &[], &["delete", "crd", template]).unwrap();
    run_with(kubectl, Some(&stack), &[], &["apply", "--server-side", "-f", &ours]).unwrap();
    println!("{}", upgrade(&repository, &stack, &current).unwrap_or_else(|said| panic!("{said}")));
    assert_eq!(installed(&client).await, [current.as_str(), current.as_str()]);
    assert_eq!(objects(&client).await, before.1);
    let after = crds(&client).await;
    for (name, uid) in before.0.iter().filter(|(name, _)| name != template) {
        assert!(after.contains(&(name.clone(), uid.clone())), "{name} is gone or was made anew");
    }
    assert_eq!(container(&client).await["command"], json!([settings::PROGRAM]));
}
