//! What the API server serves: our CRDs, which version of Cluster, which kinds of Workspace.
//!
//! Asked once at start. It must not decide what a missing API means for an object: a kind that is
//! not served simply has no objects.

use std::{collections::BTreeMap, time::Duration};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{cluster::mode::ClusterCrd, object::Kind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::ListParams};
use tokio::time::timeout;

use crate::causes::chain;

/// Kinds that must be served, since they are ours.
const OURS: [Kind; 4] = [Kind::CaptCluster, Kind::CaptControlPlane, Kind::Template, Kind::Apply];
/// Versions of Cluster that can be read, the preferred one first.
pub const CLUSTER_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Why it cannot be told what is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error("no answer from the API server within {0:?}")]
    Timeout(Duration),
    /// No answer, or a refusal.
    #[error("cannot ask the API server what it serves: {}", chain(.0))]
    Api(#[source] Box<kube::Error>),
    /// Our CRDs are not there.
    #[error(
        "the API server does not serve {missing}: install the CRDs with `capt-operator crds | kubectl apply --server-side -f -`"
    )]
    MissingCrds {
        /// Plural names with group.
        missing: String,
    },
}

/// Name of the CRD of Cluster.
const CLUSTER_CRD: &str = "clusters.cluster.x-k8s.io";
/// Label on what clusterctl or Cluster API's own manifests install: the provider it belongs to.
const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The kinds, each with the version in which it is read.
    kinds: BTreeMap<Kind, &'static str>,
    /// Where the CRD of Cluster comes from.
    cluster_crd: ClusterCrd,
}

impl Served {
    /// The kinds and their versions.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, &'static str)> {
        self.kinds.iter().map(|(kind, version)| (*kind, *version))
    }

    /// Version in which a Cluster is read; the preferred one where none is served.
    pub fn cluster_version(&self) -> &'static str {
        self.kinds.get(&Kind::Cluster).copied().unwrap_or(CLUSTER_VERSIONS[0])
    }

    /// Where the CRD of Cluster comes from.
    pub const fn cluster_crd(&self) -> ClusterCrd {
        self.cluster_crd
    }

    /// The API in which new Workspaces are made if nobody chose one: the cluster-scoped one, which
    /// the Go implementation used, unless only the namespaced one is served.
    pub fn workspace_api(&self) -> WorkspaceApi {
        let serves = |api| self.kinds.contains_key(&Kind::Workspace(api));
        if serves(WorkspaceApi::Namespaced) && !serves(WorkspaceApi::Cluster) {
            WorkspaceApi::Namespaced
        } else {
            WorkspaceApi::Cluster
        }
    }
}

/// Asks the API server, waiting for each answer no longer than `patience`.
pub async fn discover(client: &Client, patience: Duration) -> Result<Served, Error> {
    let mut served = BTreeMap::new();
    let mut missing = Vec::new();
    // Several kinds share a group.
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in Kind::ALL {
        let versions: &[&'static str] = match kind {
            Kind::Cluster => &CLUSTER_VERSIONS,
            // Part of every API server.
            Kind::Secret => {
                served.insert(kind, kind.version());
                continue;
            }
            Kind::CaptCluster | Kind::CaptControlPlane | Kind::Template | Kind::Apply | Kind::Workspace(_) => {
                &[kind.version()]
            }
        };
        for version in versions {
            let group_version = format!("{}/{version}", kind.group());
            if !known.contains_key(&group_version) {
                let plurals = plurals(client, &group_version, patience).await?;
                known.insert(group_version.clone(), plurals);
            }
            if known[&group_version].iter().any(|plural| plural == kind.plural()) {
                served.insert(kind, *version);
                break;
            }
        }
        if OURS.contains(&kind) && !served.contains_key(&kind) {
            missing.push(format!("{}.{}", kind.plural(), kind.group()));
        }
    }
    if !missing.is_empty() {
        return Err(Error::MissingCrds { missing: missing.join(", ") });
    }
    let cluster_crd =
        if served.contains_key(&Kind::Cluster) { cluster_crd(client, patience).await } else { ClusterCrd::Unknown };
    Ok(Served { kinds: served, cluster_crd })
}

/// Where the CRD of Cluster comes from; what cannot be read proves nothing.
async fn cluster_crd(client: &Client, patience: Duration) -> ClusterCrd {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let only = ListParams::default().fields(&format!("metadata.name={CLUSTER_CRD}"));
    let found = match timeout(patience, crds.list_metadata(&only)).await {
        Ok(Ok(list)) => list.items.into_iter().next(),
        Ok(Err(_)) | Err(_) => None,
    };
    match found {
        None => ClusterCrd::Unknown,
        Some(crd) if crd.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(PROVIDER_LABEL)) => {
            ClusterCrd::OfCore
        }
        Some(_) => ClusterCrd::Bare,
    }
}

/// Plural names of what is served in `group_version`.
async fn plurals(client: &Client, group_version: &str, patience: Duration) -> Result<Vec<String>, Error> {
    match timeout(patience, client.list_api_group_resources(group_version)).await {
        Err(_) => Err(Error::Timeout(patience)),
        Ok(Ok(list)) => Ok(list.resources.into_iter().map(|resource| resource.name).collect()),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(Vec::new()),
        Ok(Err(error)) => Err(Error::Api(Box::new(error))),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server that serves these resources, as `group/version/plural`.
    fn server(resources: &'static [&'static str]) -> Client {
        let service = tower::service_fn(move |request: http::Request<Body>| async move {
            let group_version = request.uri().path().trim_start_matches("/apis/").to_owned();
            let found: Vec<_> = resources
                .iter()
                .filter_map(|resource| resource.strip_prefix(&group_version)?.strip_prefix('/'))
                .map(|plural| json!({"name": plural, "singularName": "", "namespaced": true, "kind": "K", "verbs": []}))
                .collect();
            let (code, body) = if found.is_empty() {
                (
                    404,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "NotFound", "code": 404}),
                )
            } else {
                (
                    200,
                    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found}),
                )
            };
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
        });
        Client::new(service, "default")
    }

    const SECOND: Duration = Duration::from_secs(1);
    const OUR_KINDS: [&str; 4] = [
        "infrastructure.cluster.x-k8s.io/v1beta1/captclusters",
        "infrastructure.cluster.x-k8s.io/v1beta1/workspacetemplates",
        "infrastructure.cluster.x-k8s.io/v1beta1/workspacetemplateapplies",
        "controlplane.cluster.x-k8s.io/v1beta1/captcontrolplanes",
    ];

    macro_rules! resources {
        ($($resource:literal),*) => {
            &[OUR_KINDS[0], OUR_KINDS[1], OUR_KINDS[2], OUR_KINDS[3], $($resource),*]
        };
    }

    #[tokio::test]
    async fn the_newest_cluster_that_is_served_is_read() {
        let both = resources!["cluster.x-k8s.io/v1beta1/clusters", "cluster.x-k8s.io/v1beta2/clusters"];
        assert_eq!(discover(&server(both), SECOND).await.unwrap().cluster_version(), "v1beta2");
        let old = resources!["cluster.x-k8s.io/v1beta1/clusters"];
        assert_eq!(discover(&server(old), SECOND).await.unwrap().cluster_version(), "v1beta1");
    }

    #[tokio::test]
    async fn workspaces_are_made_where_they_are_served() {
        for (resources, expected) in [
            (resources![], WorkspaceApi::Cluster),
            (
                resources!["tf.upbound.io/v1beta1/workspaces", "tf.m.upbound.io/v1beta1/workspaces"],
                WorkspaceApi::Cluster,
            ),
            (resources!["tf.m.upbound.io/v1beta1/workspaces"], WorkspaceApi::Namespaced),
        ] as [(&'static [&'static str], _); 3]
        {
            let served = discover(&server(resources), SECOND).await.unwrap();
            assert_eq!(served.workspace_api(), expected);
            let kinds: Vec<Kind> = served.kinds().map(|(kind, _)| kind).collect();
            assert_eq!(kinds.len(), resources.len() + 1, "{kinds:?}: what is served, and Secrets");
        }
    }

    #[tokio::test]
    async fn missing_crds_are_named_with_the_command_that_installs_them() {
        let error =
            discover(&server(&["infrastructure.cluster.x-k8s.io/v1beta1/captclusters"]), SECOND).await.unwrap_err();
        let message = error.to_string();
        assert!(message.contains("captcontrolplanes.controlplane.cluster.x-k8s.io"), "{message}");
        assert!(message.contains("capt-operator crds | kubectl apply --server-side -f -"), "{message}");
        assert!(!message.contains("captclusters."), "{message}");
    }
}
