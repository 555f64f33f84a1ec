//! What has to be right before the first pass: our CRDs, as new as this program, and the rights it
//! needs. What is wrong is told in full and with the command that mends it, and asked again.

use std::{collections::BTreeMap, time::Duration};

use kube::Client;

use crate::{
    causes::chain,
    crd_check,
    discovery::{self, Served, discover},
    permissions,
    rbac::{Need, RULES, Rule},
};

/// Name of the CRD that held another kind in the Go implementation.
const REPLACED_CRD: &str = "captcontrolplanetemplates.controlplane.cluster.x-k8s.io";

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is served cannot be told, or is not enough.
    #[error(transparent)]
    Discovery(#[from] discovery::Error),
    /// No answer, or a refusal.
    #[error("cannot ask the API server what is installed and allowed: {}", chain(.0))]
    Api(#[source] Box<kube::Error>),
    /// The CRDs are of another version.
    #[error(
        "the CRDs are older than this program and lack {lacking}: install them with `capt-operator crds | kubectl apply --server-side -f -`"
    )]
    OldCrds {
        /// Each with some of the fields that it lacks.
        lacking: String,
    },
    /// Something is not allowed.
    #[error("not allowed to {missing}: install the roles with `capt-operator rbac | kubectl apply -f -`")]
    Rights {
        /// Verbs and resources.
        missing: String,
    },
}

/// What this process is going to do, as far as it needs rights for it.
#[derive(Debug, Clone, Default)]
pub struct Plans {
    /// Where it looks; empty for everywhere.
    pub namespaces: Vec<String>,
    /// Namespace of its lease, if it takes one.
    pub lease: Option<String>,
    /// Whether it asks who may read the metrics.
    pub metrics: bool,
}

/// Checks everything, waiting for each answer no longer than `patience`.
pub async fn check(client: &Client, plans: &Plans, patience: Duration) -> Result<Served, Error> {
    let served = discover(client, patience).await?;
    let missing = missing_rights(client, plans, patience).await.map_err(|error| Error::Api(Box::new(error)))?;
    if !missing.is_empty() {
        return Err(Error::Rights { missing: missing.join(", ") });
    }
    let mut lacking = crd_check::lacking(client, patience).await.map_err(|error| Error::Api(Box::new(error)))?;
    if lacking.remove(REPLACED_CRD).is_some() {
        tracing::warn!(
            "the CRD {REPLACED_CRD} is an older one: templates of control planes do not work until it is replaced, \
             see docs/migration.md"
        );
    }
    if lacking.is_empty() { Ok(served) } else { Err(Error::OldCrds { lacking: list(&lacking) }) }
}

async fn missing_rights(client: &Client, plans: &Plans, patience: Duration) -> Result<Vec<String>, kube::Error> {
    let Plans { namespaces, lease, metrics } = plans;
    let needed = |need: Need| RULES.into_iter().filter(move |rule: &Rule| rule.need == need);
    let mut missing = Vec::new();
    let everywhere = [None];
    let places: Vec<Option<&str>> = if namespaces.is_empty() {
        everywhere.to_vec()
    } else {
        namespaces.iter().map(|it| Some(it.as_str())).collect()
    };
    for place in places {
        missing.extend(permissions::missing(client, needed(Need::Passes), place, patience).await?);
    }
    if let Some(namespace) = lease {
        missing.extend(permissions::missing(client, needed(Need::Lease), Some(namespace), patience).await?);
    }
    if *metrics {
        missing.extend(permissions::missing(client, needed(Need::Metrics), None, patience).await?);
    }
    Ok(missing.iter().map(ToString::to_string).collect())
}

fn list(lacking: &BTreeMap<String, Vec<String>>) -> String {
    let each = lacking.iter().map(|(name, fields)| format!("{} of {name}", fields.join(", ")));
    each.collect::<Vec<_>>().join("; ")
}
