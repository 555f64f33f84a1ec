//! The Kustomize base: the objects as they are, and the lists of files that belong together.

use serde_json::{Value, json};

use crate::{settings, text, workload};

/// A `kustomization.yaml` that takes `resources`, files or directories beside it.
pub fn kustomization(resources: &[String]) -> Result<String, text::Error> {
    text::yaml(&[json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    })])
}

/// The operator itself, without CRDs and roles, which have files of their own.
pub fn manager() -> Result<String, text::Error> {
    let documents: [Value; 5] = [
        workload::namespace(settings::NAMESPACE),
        workload::service_account(),
        workload::deployment(),
        workload::metrics_service(),
        workload::disruption_budget(),
    ];
    text::yaml(&documents)
}
