//! Health checks for Argo CD, which shows kinds that it does not know as healthy at once.
//!
//! The script for our kinds is capt-status's; the one for Cluster stands beside this file. It must
//! not judge anything itself.

use capt_status::kstatus::argo;
use serde_json::{Map, Value, json};

use crate::text;

/// The script for Cluster.
pub const CLUSTER: &str = include_str!("../templates/cluster-health.lua");

/// Kinds as Argo CD names them, and their scripts.
pub const CHECKS: [(&str, &str); 4] = [
    ("infrastructure.cluster.x-k8s.io_CAPTCluster", argo::LUA),
    ("controlplane.cluster.x-k8s.io_CAPTControlPlane", argo::LUA),
    ("infrastructure.cluster.x-k8s.io_WorkspaceTemplateApply", argo::LUA),
    ("cluster.x-k8s.io_Cluster", CLUSTER),
];

/// The ConfigMap that Argo CD reads, with these checks alone: to be merged into the one that is there.
pub fn config_map() -> Result<String, text::Error> {
    let checks: Map<String, Value> =
        CHECKS.iter().map(|(kind, lua)| (format!("resource.customizations.health.{kind}"), json!(lua))).collect();
    text::yaml(&[json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": "argocd",
            "labels": {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"},
        },
        "data": checks,
    })])
    .map(|text| {
        let how = "# kubectl apply --server-side --field-manager=capt -f argocd-cm.yaml\n";
        text.replacen(text::HEAD, &format!("{}{how}", text::HEAD), 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With another set of settings the namespace would be ours by mistake.
    #[test]
    fn it_is_argo_cds_own_config_map() {
        let text = config_map().unwrap();
        assert!(!text.contains(crate::settings::NAMESPACE));
        assert_eq!(text.matches("resource.customizations.health.").count(), CHECKS.len());
    }
}
