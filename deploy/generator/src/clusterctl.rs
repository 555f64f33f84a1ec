//! What clusterctl reads of a release: `metadata.yaml` and the components of both providers.
//!
//! clusterctl replaces `${...}` in these files, so a literal one is escaped here.

use serde_json::{Value, json};

use crate::{Source, settings, text, workload};

/// Label by which clusterctl knows whose an object is.
pub const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";

/// Release series and their contracts, newest first. Up to 0.5 they are the Go implementation's:
/// clusterctl needs them to upgrade from there.
const SERIES: [(u32, u32, &str); 6] =
    [(0, 6, "v1beta2"), (0, 5, "v1beta2"), (0, 4, "v1beta1"), (0, 3, "v1beta1"), (0, 2, "v1beta1"), (0, 1, "v1beta1")];

/// A provider in the eyes of clusterctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// CAPTCluster, Workspaces, and the process that serves both.
    Infrastructure,
    /// CAPTControlPlane: its kinds alone.
    ControlPlane,
}

impl Provider {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Infrastructure, Self::ControlPlane];

    /// As clusterctl labels its objects and names its directory.
    pub fn label(self) -> String {
        match self {
            Self::Infrastructure => format!("infrastructure-{}", settings::PROVIDER),
            Self::ControlPlane => format!("control-plane-{}", settings::PROVIDER),
        }
    }

    /// Name of the file with its components.
    pub fn file(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure-components.yaml",
            Self::ControlPlane => "control-plane-components.yaml",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure.cluster.x-k8s.io",
            Self::ControlPlane => "controlplane.cluster.x-k8s.io",
        }
    }
}

/// Which contract each release series follows.
pub fn metadata() -> Result<String, text::Error> {
    let series: Vec<Value> = SERIES
        .iter()
        .map(|(major, minor, contract)| json!({"major": major, "minor": minor, "contract": contract}))
        .collect();
    text::yaml(&[json!({
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": series,
    })])
}

/// The components of `provider`.
pub fn components(provider: Provider, source: &Source) -> Result<String, text::Error> {
    let crds = source.crds.iter().filter(|crd| crd["spec"]["group"] == provider.group()).cloned();
    let mut documents: Vec<Value> = match provider {
        Provider::Infrastructure => std::iter::once(workload::namespace(settings::NAMESPACE))
            .chain(crds)
            .chain([workload::service_account()])
            .chain(source.rbac.iter().cloned())
            .chain([workload::deployment(), workload::metrics_service(), workload::disruption_budget()])
            .collect(),
        Provider::ControlPlane => {
            std::iter::once(workload::namespace(settings::CONTROL_PLANE_NAMESPACE)).chain(crds).collect()
        }
    };
    for document in &mut documents {
        document["metadata"]["labels"][PROVIDER_LABEL] = json!(provider.label());
    }
    Ok(text::yaml(&documents)?.replace("${", "$${"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_this_version_is_listed_first() {
        let this = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap()).collect::<Vec<u32>>();
        assert_eq!((SERIES[0].0, SERIES[0].1), (this[0], this[1]), "add the series to metadata.yaml");
        assert!(SERIES.is_sorted_by(|newer, older| (newer.0, newer.1) > (older.0, older.1)));
    }
}
