//! What has to be right before the first pass: our CRDs, as new as this program, and the rights it
//! needs. What is wrong is told in full and with the command that mends it, and asked again.

use std::{collections::BTreeMap, time::Duration};

use kube::Client;

use crate::{
    causes::chain,
    crd_check,
    discovery::{self, Served, discover},
    permissions::{self, Right},
    rbac::{Need, READ_EVERYWHERE, RULES, Reach, Rule},
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
    #[error("cannot ask the API server what is installed: {}", chain(.0))]
    Api(#[source] Box<kube::Error>),
    /// What is allowed is not known.
    #[error("cannot ask the API server what is allowed: {0}")]
    Permissions(#[from] permissions::Error),
    /// The CRDs are of another version.
    #[error(
        "the CRDs are older than this program and lack {lacking}: install them with `capt-operator crds | kubectl apply --server-side -f -`"
    )]
    OldCrds {
        /// Each with some of the fields that it lacks.
        lacking: String,
    },
    /// Something is not allowed.
    #[error("not allowed to {missing}: install the roles with `capt-operator rbac{namespaces} | kubectl apply -f -`")]
    Rights {
        /// Verbs and resources.
        missing: String,
        /// Flags that name our namespaces.
        namespaces: String,
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
    let missing = permissions::missing(client, rights(plans), patience).await?;
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let namespaces = plans.namespaces.iter().map(|namespace| format!(" --namespace={namespace}"));
        return Err(Error::Rights { missing: missing.join(", "), namespaces: namespaces.collect() });
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

/// What has to be allowed.
fn rights(plans: &Plans) -> Vec<Right> {
    let Plans { namespaces, lease, metrics } = plans;
    let needed = |need: Need| RULES.into_iter().filter(move |rule: &Rule| rule.need == need);
    let mut all = Vec::new();
    if namespaces.is_empty() {
        all.extend(permissions::rights(needed(Need::Passes), None));
    } else {
        let of = |reach: Reach| needed(Need::Passes).filter(move |rule| rule.reach == reach);
        all.extend(permissions::rights(of(Reach::Everywhere).chain(READ_EVERYWHERE), None));
        for namespace in namespaces {
            all.extend(permissions::rights(of(Reach::Namespaces), Some(namespace)));
        }
    }
    if let Some(namespace) = lease {
        all.extend(permissions::rights(needed(Need::Lease), Some(namespace)));
    }
    if *metrics {
        all.extend(permissions::rights(needed(Need::Metrics), None));
    }
    all
}

fn list(lacking: &BTreeMap<String, Vec<String>>) -> String {
    let each = lacking.iter().map(|(name, fields)| format!("{} of {name}", fields.join(", ")));
    each.collect::<Vec<_>>().join("; ")
}
