//! Cluster of Cluster API, in the form of v1beta1 or v1beta2: the forms differ in where a fact
//! stands, not in what it says, so the view is one.

use serde_json::Value;

use super::meta::{ForeignCondition, ViewMeta, condition, flag, text};
use crate::{common::ApiEndpoint, names::conditions};

/// What we read of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// Metadata.
    pub meta: ViewMeta,
    /// `spec.paused`. The annotation is in `meta`.
    pub paused: bool,
    /// `spec.controlPlaneEndpoint`, if it has a host and a port.
    pub endpoint: Option<ApiEndpoint>,
    /// `spec.infrastructureRef`.
    pub infrastructure_ref: Option<RefView>,
    /// `spec.controlPlaneRef`.
    pub control_plane_ref: Option<RefView>,
    /// `status.phase`.
    pub phase: Option<String>,
    /// Whether core has seen the infrastructure provisioned.
    pub infrastructure_provisioned: bool,
    /// Whether core has seen the control plane initialized.
    pub control_plane_initialized: bool,
    /// Whether core reaches the API server.
    pub remote_connection_probe: Option<ForeignCondition>,
    /// `status.observedGeneration`; absent where no core runs.
    pub observed_generation: Option<i64>,
}

/// A reference of a Cluster to a provider object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RefView {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, where v1beta1 names one; the Cluster's own otherwise.
    pub namespace: Option<String>,
}

impl ClusterView {
    /// What `object` says; never fails.
    pub fn parse(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let initialization = &status["initialization"];
        Self {
            meta: ViewMeta::parse(object),
            paused: flag(&spec["paused"]),
            endpoint: endpoint(&spec["controlPlaneEndpoint"]),
            infrastructure_ref: reference(&spec["infrastructureRef"]),
            control_plane_ref: reference(&spec["controlPlaneRef"]),
            phase: text(status, "phase"),
            infrastructure_provisioned: flag(&initialization["infrastructureProvisioned"])
                || flag(&status["infrastructureReady"]),
            // In v1beta1 `controlPlaneReady` needs the latch and readiness; the condition is the latch.
            control_plane_initialized: flag(&initialization["controlPlaneInitialized"])
                || flag(&status["controlPlaneReady"])
                || any_condition(status, "ControlPlaneInitialized").is_some_and(|condition| condition.is_true()),
            remote_connection_probe: any_condition(status, conditions::REMOTE_CONNECTION_PROBE),
            observed_generation: status["observedGeneration"].as_i64(),
        }
    }
}

/// v1beta1 keeps the newer conditions under `status.v1beta2`, v1beta2 the older ones under
/// `status.deprecated.v1beta1`; the newer ones win.
fn any_condition(status: &Value, type_: &str) -> Option<ForeignCondition> {
    condition(&status["v1beta2"]["conditions"], type_)
        .or_else(|| condition(&status["conditions"], type_))
        .or_else(|| condition(&status["deprecated"]["v1beta1"]["conditions"], type_))
}

fn endpoint(value: &Value) -> Option<ApiEndpoint> {
    let port = i32::try_from(value["port"].as_i64()?).ok()?;
    let endpoint = ApiEndpoint { host: text(value, "host")?, port };
    endpoint.is_set().then_some(endpoint)
}

fn reference(value: &Value) -> Option<RefView> {
    let group = text(value, "apiGroup")
        .or_else(|| text(value, "apiVersion")?.split_once('/').map(|(group, _)| group.to_owned()))
        .unwrap_or_default();
    Some(RefView {
        group,
        kind: text(value, "kind")?,
        name: text(value, "name")?,
        namespace: text(value, "namespace").filter(|namespace| !namespace.is_empty()),
    })
}
