//! The second tier: kube-controller-manager (garbage collection, namespace deletion, role
//! aggregation) and Cluster API core with its CRDs, conversion, webhooks and released roles.
//!
//! It does what cert-manager and kustomize do in a cluster: names, certificates, and URLs where the
//! released manifests point to a Service. It changes nothing else of them.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::assets::Part;
use crate::site::{Site, free_ports};
use crate::supervise::Process;
use crate::{Error, manifests, wait};

/// The user that Cluster API core is.
pub(crate) const USER: &str = "capi-manager";
/// The user that kube-controller-manager is; its controllers are service accounts of their own.
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The namespace of Cluster API core, and the prefix that its cluster-wide objects get.
const NAMESPACE: &str = "capi-system";
/// The role that the role aggregation controller fills from every labelled role.
const AGGREGATED_ROLE: &str = "capi-aggregated-manager-role";
/// Two seconds are usual for each step.
const LIMIT: Duration = Duration::from_mins(2);

/// Where Cluster API core will listen.
pub(crate) struct Ports {
    webhook: u16,
    health: u16,
    diagnostics: u16,
}

impl Ports {
    /// Three free ports.
    pub(crate) fn new() -> Result<Self, Error> {
        let [webhook, health, diagnostics] = free_ports()?;
        Ok(Self { webhook, health, diagnostics })
    }

    /// A webhook client configuration for `path`.
    fn client_config(&self, site: &Site, path: &str) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}{path}", self.webhook),
            "caBundle": site.authority.bundle(),
        })
    }
}

/// What has to be applied before the processes start: CRDs, namespace, roles.
pub(crate) fn prerequisites(site: &Site, ports: &Ports) -> Result<Vec<Value>, Error> {
    let source = site.assets.path(Part::Manifests)?.join("cluster-api");
    let mut documents = crds(site, ports, &source)?;
    documents.push(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
    }));
    for mut role in manifests::read(&source.join("rbac"))? {
        prefix(&mut role);
        if role.get("aggregationRule").is_none() {
            role["metadata"]["labels"] = json!({"cluster.x-k8s.io/aggregate-to-manager": "true"});
        } else if let Some(role) = role.as_object_mut() {
            // Its rules belong to the controller that aggregates them.
            role.remove("rules");
        }
        documents.push(role);
    }
    documents.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "capi-manager-rolebinding"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": AGGREGATED_ROLE,
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }));
    Ok(documents)
}

/// The released CRDs, converting through the local process and labelled as its own.
fn crds(site: &Site, ports: &Ports, source: &Path) -> Result<Vec<Value>, Error> {
    let mut crds = manifests::read(&source.join("crds"))?;
    for crd in &mut crds {
        crd["metadata"]["labels"]["cluster.x-k8s.io/provider"] = json!("cluster-api");
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": ports.client_config(site, "/convert"),
            },
        });
    }
    Ok(crds)
}

/// The released CRDs without anything that only core could answer.
pub(crate) fn bare_crds(site: &Site) -> Result<Vec<Value>, Error> {
    let mut crds = manifests::read(&site.assets.path(Part::Manifests)?.join("cluster-api/crds"))?;
    for crd in &mut crds {
        crd["spec"]["conversion"] = json!({"strategy": "None"});
    }
    Ok(crds)
}

/// Starts kube-controller-manager.
pub(crate) fn controller_manager(site: &Site) -> Result<Process, Error> {
    Ok(site.supervisor.spawn(
        "kube-controller-manager",
        site.command(Part::ControllerManager)?
            .arg("--kubeconfig")
            .arg(site.kubeconfig(CONTROLLER_MANAGER, None)?)
            .args(["--leader-elect=false", "--secure-port=0"])
            // Its own certificate lacks the rights of the single controllers.
            .arg("--use-service-account-credentials")
            .arg(
                "--controllers=garbage-collector-controller,namespace-controller,\
                 clusterrole-aggregation-controller",
            ),
    )?)
}

/// Starts both processes, then registers the webhooks, and waits until they answer.
pub(crate) async fn start(site: &Site, client: &Client, ports: &Ports) -> Result<Vec<Process>, Error> {
    let mut manager = controller_manager(site)?;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    // Core exits when it may not list its kinds; and a filled role shows that the manager works.
    let aggregated = || async {
        let role = roles.get(AGGREGATED_ROLE).await;
        match role.map_err(|error| error.to_string())?.rules {
            Some(filled) if !filled.is_empty() => Ok(()),
            _ => Err(format!("ClusterRole {AGGREGATED_ROLE} has no rules yet")),
        }
    };
    wait::ready(&mut [&mut manager], LIMIT, aggregated).await?;

    let pair = site.authority.server()?;
    let certificates = site.directory.join("webhook");
    std::fs::create_dir_all(&certificates)
        .map_err(|source| Error::file(&certificates.display().to_string(), source))?;
    site.write("webhook/tls.crt", &pair.certificate)?;
    site.write("webhook/tls.key", &pair.key)?;
    let mut core = site.supervisor.spawn(
        "capi-core",
        site.command(Part::CapiCore)?
            .env("POD_NAMESPACE", NAMESPACE)
            .arg("--kubeconfig")
            .arg(site.kubeconfig(USER, None)?)
            .arg("--leader-elect=false")
            .args(["--webhook-port", &ports.webhook.to_string()])
            .arg("--webhook-cert-dir")
            .arg(certificates)
            .args(["--health-addr", &format!("127.0.0.1:{}", ports.health)])
            .args(["--diagnostics-address", &format!("127.0.0.1:{}", ports.diagnostics)])
            .arg("--insecure-diagnostics")
            // On by default, it lets at most one pass per object and second through.
            // Off by default, but a ClusterClass needs it.
            .arg("--feature-gates=ReconcilerRateLimiting=false,ClusterTopology=true")
            .arg("--v=2"),
    )?;
    wait::ready(&mut [&mut manager, &mut core], LIMIT, || healthy(ports.health)).await?;

    let source = site.assets.path(Part::Manifests)?.join("cluster-api");
    let mut webhooks = manifests::read(&source.join("webhook"))?;
    for configuration in &mut webhooks {
        prefix(configuration);
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or("/").to_owned();
            webhook["clientConfig"] = ports.client_config(site, &path);
        }
    }
    manifests::apply(client, webhooks).await?;
    wait::ready(&mut [&mut manager, &mut core], LIMIT, || validates(client)).await?;
    Ok(vec![manager, core])
}

/// Gives a released object the name that it has in a cluster.
fn prefix(object: &mut Value) {
    if let Some(name) = object["metadata"]["name"].as_str() {
        object["metadata"]["name"] = json!(format!("capi-{name}"));
    }
}

/// Cluster API core's health endpoint: plain HTTP, and it says only that the webhook server listens.
async fn healthy(port: u16) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = ask.await.map_err(|error| format!("/readyz: {error}"))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.contains(" 200 ") { Ok(()) } else { Err(format!("/readyz: {status}")) }
}

/// The API server learns of new webhook configurations a moment after they are stored. Before that a
/// Cluster would pass unchecked, so a dry run of one that only the webhook refuses tells the moment.
async fn validates(client: &Client) -> Result<(), String> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster");
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind));
    let probe = DynamicObject::new("webhook-probe", &ApiResource::from_gvk(&kind)).data(json!({
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["no-cidr"]}}},
    }));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match clusters.create(&dry_run, &probe).await {
        Ok(_) => Err("a bad Cluster is not refused yet".to_owned()),
        Err(kube::Error::Api(status)) if status.message.contains("admission webhook") => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
