//! CAPTCluster, the infrastructure of a Cluster: its VPC.

use std::collections::BTreeMap;

use capt_status::{
    Condition, Deadline, Dependencies, Health, Phase, Progress, Recovery, RecoveryStrategy, State, Time,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{TemplateReference, Timeouts},
    lenient::{failure_domains, or_default},
    rules, schema,
};

/// The VPC that a Cluster runs in: one to make from a template, or one that exists.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "CAPTCluster",
    doc = "CAPTCluster is the infrastructure of a Cluster on EKS: its VPC.",
    plural = "captclusters",
    singular = "captcluster",
    shortname = "captcl",
    category = "cluster-api",
    category = "capt",
    namespaced,
    status = "CAPTClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    validation = rules::apply_name_stays("-vpc"),
    printcolumn(name = "VPC-ID", type_ = "string", json_path = ".status.vpcId", description = "Id of the VPC"),
    printcolumn(name = "READY", type_ = "boolean", json_path = ".status.ready", description = "Whether it was provisioned"),
    printcolumn(name = "ENDPOINT", type_ = "string", json_path = ".status.endpoint", description = "API server of the Cluster"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(name = "STATE", type_ = "string", json_path = ".status.state", priority = 1),
    printcolumn(name = "AVAILABLE", type_ = "string", json_path = ".status.conditions[?(@.type==\"Available\")].status", priority = 1),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::one_vpc_source(), validation = rules::existing_vpc_stays(), validation = rules::vpc_template_stays())]
pub struct CAPTClusterSpec {
    /// AWS region, for example eu-west-1. Cannot be changed.
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::region_format(), validation = rules::region_stays())]
    pub region: String,
    /// Template that the VPC is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_template_ref: Option<TemplateReference>,
    /// Id of a VPC that exists and is used as it is. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::vpc_id_format())]
    pub existing_vpc_id: Option<String>,
    /// Whether the VPC stays when the CAPTCluster is deleted; false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_vpc_on_delete: Option<bool>,
    /// Further settings of the VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_config: Option<VpcConfig>,
    /// Name of the WorkspaceTemplateApply for the VPC; filled with the name in use if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub workspace_template_apply_name: Option<String>,
    /// How long operations may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::no_control_plane_timeout())]
    pub timeouts: Option<Timeouts>,
    /// What to do about failures that may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::recreation_is_confirmed())]
    pub recovery_strategy: Option<RecoveryStrategy>,
}

/// Settings of the VPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VpcConfig {
    /// Name of the VPC; the CAPTCluster's name with -vpc if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
}

/// What was observed of the VPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CAPTClusterStatus {
    /// Generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Hash of what the user can change in spec; a change restarts a failed object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub spec_hash: Option<String>,
    /// Whether the infrastructure was provisioned; never goes back (contract v1beta1).
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    /// The same for contract v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<InfrastructureInitialization>,
    /// API server of the Cluster as host:port, mirrored from the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 600))]
    pub endpoint: Option<String>,
    /// State of the state machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Short form of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Why it failed, as a token; only in state Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub failure_reason: Option<String>,
    /// Why it failed, in words; only in state Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10240))]
    pub failure_message: Option<String>,
    /// Id of the VPC; never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub vpc_id: Option<String>,
    /// Name of the Workspace that makes the VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub vpc_workspace_name: Option<String>,
    /// Zones of the VPC (contract v1beta2; the map of contract v1beta1 is read, never written).
    #[serde(default, deserialize_with = "failure_domains", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::map_by_name::<FailureDomain, 100>")]
    pub failure_domains: Vec<FailureDomain>,
    /// The apply of the VPC template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_template_status: Option<VpcTemplateStatus>,
    /// Deadlines that run.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::map_by_name::<Deadline, 16>")]
    pub deadlines: Vec<Deadline>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Health of what serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// What was tried after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// What this object depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Dependencies>,
    /// Aspects of the object's state.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What the infrastructure has reached for good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct InfrastructureInitialization {
    /// Whether it was provisioned; never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// A zone that machines can be placed in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name of the zone.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether it is suitable for control plane machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Further facts.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<64, 1024>")]
    pub attributes: BTreeMap<String, String>,
}

/// The apply of the VPC template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpcTemplateStatus {
    /// Whether the Workspace is ready.
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    /// Name of the Workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub workspace_name: Option<String>,
    /// Revision of the template that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub last_applied_revision: Option<String>,
    /// Revision of the template that failed last; cleared by success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub last_failed_revision: Option<String>,
    /// Why it failed; cleared by success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub last_failure_message: Option<String>,
    /// When the Workspace's spec was written last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_time: Option<Time>,
}
