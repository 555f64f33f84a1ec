//! The release in the hands of clusterctl: `generate cluster`, `init`, `upgrade`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use capt_deploy::{clusterctl::Provider, settings};
use capt_stack::{Stack, Tier, tool};
use capt_tests::root;
use serde_json::{Value, json};

use crate::{
    go,
    run::{Said, crds, documents, run_with, stored},
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
    let stack = Stack::builder(Tier::Core).install(cert_manager()).start().await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let repository = Repository::new(stack.directory());
    let arguments = [
        "init",
        "--core=cluster-api:v1.14.2",
        "--bootstrap=-",
        "--infrastructure=capt",
        "--control-plane=capt",
        // The stack's API server is none of a node's; clusterctl would count its version as too new or old.
        "--validate=false",
    ];
    let said = repository.run(Some(&stack), &[], &arguments).unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    assert_eq!(crds(&client).await.len(), 6);
    let deployment =
        stored(&client, "apps/v1", "Deployment", Some(settings::NAMESPACE), settings::DEPLOYMENT).await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["args"], json!(settings::arguments()));
    // The text that clusterctl could have taken for a variable.
    let name = "workspacetemplates.infrastructure.cluster.x-k8s.io";
    let crd = stored(&client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name).await.unwrap();
    assert!(crd.to_string().contains("${VARIABLE}") && !crd.to_string().contains("$${"));
    for (namespace, name) in
        [(settings::NAMESPACE, "infrastructure-capt"), (settings::CONTROL_PLANE_NAMESPACE, "control-plane-capt")]
    {
        let version = "clusterctl.cluster.x-k8s.io/v1alpha3";
        let provider = stored(&client, version, "Provider", Some(namespace), name).await.unwrap();
        assert_eq!(provider["version"], settings::version(), "{provider}");
    }
}
