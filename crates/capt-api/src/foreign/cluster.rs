//! Cluster of Cluster API, in the form of v1beta1 or v1beta2: the forms differ in where a fact
//! stands, not in what it says, so the view is one.

use serde_json::Value;

use super::meta::{ForeignCondition, ViewMeta, condition, flag, list, text};
use crate::{
    common::ApiEndpoint,
    names::{CLUSTER_FINALIZER, conditions},
};

/// Version in which a Cluster was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClusterVersion {
    /// The form of Cluster API before 1.11.
    V1Beta1,
    /// The form since Cluster API 1.11.
    #[default]
    V1Beta2,
}

impl ClusterVersion {
    /// As in `apiVersion`, without the group.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

/// What we read of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// Version in which it was read.
    pub version: ClusterVersion,
    /// Metadata.
    pub meta: ViewMeta,
    /// `spec.paused`. The annotation is in `meta`.
    pub paused: bool,
    /// `spec.controlPlaneEndpoint`, if it has a host and a port.
    pub endpoint: Option<ApiEndpoint>,
    /// `spec.availabilityGates`: condition types, and whether False is good.
    pub availability_gates: Vec<(String, bool)>,
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
    /// Failure reason that core copied.
    pub failure_reason: Option<String>,
    /// Failure text that core copied, with its prefix.
    pub failure_message: Option<String>,
    /// The whole status as compact JSON, for whoever writes it in the place of core; empty if there is none.
    pub status: String,
}

/// A reference of a Cluster to a provider object in its own namespace. v1beta1 can name another one, which core's
/// webhook refuses and core would not look into; nobody may use what belongs to another namespace that way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RefView {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl ClusterView {
    /// What `object` says; never fails.
    pub fn parse(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let initialization = &status["initialization"];
        let version = match object["apiVersion"].as_str() {
            Some("cluster.x-k8s.io/v1beta1") => ClusterVersion::V1Beta1,
            Some(_) | None => ClusterVersion::V1Beta2,
        };
        let deprecated = &status["deprecated"]["v1beta1"];
        let failure = |field| text(status, field).or_else(|| text(deprecated, field)).filter(|text| !text.is_empty());
        Self {
            version,
            meta: ViewMeta::parse(object),
            paused: flag(&spec["paused"]),
            endpoint: endpoint(&spec["controlPlaneEndpoint"]),
            availability_gates: list(&spec["availabilityGates"])
                .filter_map(|gate| Some((text(gate, "conditionType")?, gate["polarity"] == "Negative")))
                .collect(),
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
            failure_reason: failure("failureReason"),
            failure_message: failure("failureMessage"),
            status: if status.is_object() { status.to_string() } else { String::new() },
        }
    }

    /// Whether the Cluster carries what only Cluster API core leaves behind. An owner reference on a provider
    /// object proves nothing: the Go implementation wrote one.
    pub fn shows_core(&self) -> bool {
        self.observed_generation.is_some() || self.meta.finalizers.iter().any(|name| name == CLUSTER_FINALIZER)
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
    Some(RefView { group, kind: text(value, "kind")?, name: text(value, "name")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn v1beta1() -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "metadata": {"name": "c", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "paused": true,
                "controlPlaneEndpoint": {"host": "a.invalid", "port": 443},
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster", "name": "c", "namespace": "ns"},
                "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "name": "c", "namespace": "ns"},
            },
            "status": {
                "phase": "Provisioned", "infrastructureReady": true, "controlPlaneReady": true, "observedGeneration": 3,
                "conditions": [{"type": "RemoteConnectionProbe", "status": "True"}],
                "v1beta2": {"conditions": [{"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed"}]},
            },
        })
    }

    fn v1beta2() -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "metadata": {"name": "c", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "paused": true,
                "controlPlaneEndpoint": {"host": "a.invalid", "port": 443},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CAPTCluster", "name": "c"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "CAPTControlPlane", "name": "c"},
            },
            "status": {
                "phase": "Provisioned", "observedGeneration": 3,
                "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
                "conditions": [{"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed"}],
                "deprecated": {"v1beta1": {"conditions": [{"type": "RemoteConnectionProbe", "status": "True"}]}},
            },
        })
    }

    #[test]
    fn both_versions_say_the_same() {
        let (mut old, new) = (ClusterView::parse(&v1beta1()), ClusterView::parse(&v1beta2()));
        assert_eq!((old.version, new.version), (ClusterVersion::V1Beta1, ClusterVersion::V1Beta2));
        assert!(old.shows_core() && old.status.contains("Provisioned"));
        (old.version, old.status) = (new.version, new.status.clone());
        assert_eq!(old, new);
        assert!(new.paused && new.meta.deleting && new.infrastructure_provisioned && new.control_plane_initialized);
        assert_eq!(new.infrastructure_ref.unwrap().group, "infrastructure.cluster.x-k8s.io");
        assert!(new.remote_connection_probe.unwrap().is_false());
    }

    #[test]
    fn an_endpoint_needs_host_and_port() {
        for endpoint in [
            json!({"host": "", "port": 0}),
            json!({"host": "a"}),
            json!({"port": 443}),
            json!({"host": "a", "port": 0}),
            json!("a:443"),
            json!({"host": "a", "port": 5_000_000_000_i64}),
        ] {
            let cluster = json!({"spec": {"controlPlaneEndpoint": endpoint}});
            assert_eq!(ClusterView::parse(&cluster).endpoint, None, "{cluster}");
        }
    }

    /// The latch of v1beta1 is the condition; `controlPlaneReady` alone waits for readiness.
    #[test]
    fn the_condition_alone_says_initialized() {
        let conditions = json!([{"type": "ControlPlaneInitialized", "status": "True"}]);
        let cluster = json!({"status": {"controlPlaneReady": false, "conditions": conditions}});
        assert!(ClusterView::parse(&cluster).control_plane_initialized);
        assert!(!ClusterView::parse(&json!({"status": {}})).control_plane_initialized);
    }
}
