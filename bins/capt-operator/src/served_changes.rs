//! Notices that the API server serves other kinds than at the start, for example since the
//! Terraform provider was installed later. One watch of the CRDs' metadata; nothing is kept of it.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::time::sleep;

use crate::{
    causes::chain,
    discovery::{self, Served, discover},
};

/// Groups whose CRDs matter.
const GROUPS: [&str; 5] = [
    ".cluster.x-k8s.io",
    ".infrastructure.cluster.x-k8s.io",
    ".controlplane.cluster.x-k8s.io",
    ".tf.upbound.io",
    ".tf.m.upbound.io",
];
/// A change of a CRD shows in what is served a moment later.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Returns once something else is served than `served`.
pub async fn wait(client: Client, served: Served, patience: Duration) {
    let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(crds, watcher::Config::default()).default_backoff());
    // Generation of each CRD that matters. Core rewrites metadata and status of CRDs, in particular when
    // it starts; what is served follows the spec alone.
    let mut generations = BTreeMap::new();
    while let Some(event) = events.next().await {
        let matters = match event {
            Ok(Event::Apply(crd)) => note(&mut generations, crd),
            Ok(Event::InitApply(crd)) => {
                note(&mut generations, crd);
                false
            }
            Ok(Event::Delete(crd)) => generations.remove(&crd.metadata.name.unwrap_or_default()).is_some(),
            // What changed between the last look and the start of this watch.
            Ok(Event::InitDone) => true,
            Ok(Event::Init) => false,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the watch of CRDs failed and is opened again");
                false
            }
        };
        if matters && changed(&client, &served, patience).await {
            return;
        }
    }
}

/// Records the generation of a CRD. Returns whether it is news about a group that matters.
fn note(generations: &mut BTreeMap<String, Option<i64>>, crd: PartialObjectMeta<CustomResourceDefinition>) -> bool {
    let name = crd.metadata.name.unwrap_or_default();
    let generation = crd.metadata.generation;
    GROUPS.iter().any(|group| name.ends_with(group)) && generations.insert(name, generation) != Some(generation)
}

async fn changed(client: &Client, served: &Served, patience: Duration) -> bool {
    for delay in DELAYS {
        sleep(delay).await;
        match discover(client, patience).await {
            Ok(now) if now == *served => {}
            // Also when our own CRDs are gone: then the start waits for them.
            Ok(_) | Err(discovery::Error::MissingCrds { missing: _ }) => return true,
            // The API server does not answer; the watches say so.
            Err(discovery::Error::Timeout(_) | discovery::Error::Api(_)) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_new_or_changed_spec_of_a_group_that_matters_is_news() {
        let crd = |name: &str, generation: i64| {
            serde_json::from_value(json!({"metadata": {"name": name, "generation": generation}})).unwrap()
        };
        let mut generations = BTreeMap::new();
        for (name, generation, expected) in [
            ("workspaces.tf.upbound.io", 1, true),
            ("workspaces.tf.upbound.io", 1, false),
            ("workspaces.tf.upbound.io", 2, true),
            ("clusters.cluster.x-k8s.io", 1, true),
            ("clusters.example.io", 1, false),
        ] {
            assert_eq!(note(&mut generations, crd(name, generation)), expected, "{name} {generation}");
        }
    }
}
