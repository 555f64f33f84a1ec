//! CAPTControlPlane, the EKS control plane of a Cluster.

use std::collections::BTreeMap;

use capt_status::{Condition, Deadline, Dependencies, Health, Phase, Progress, Recovery, RecoveryStrategy, State};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    common::{ApiEndpoint, TemplateReference, Timeouts},
    lenient::or_default,
    rules, schema,
};

/// An EKS control plane, made by a Terraform Workspace.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "CAPTControlPlane",
    doc = "CAPTControlPlane is the EKS control plane of a Cluster.",
    plural = "captcontrolplanes",
    singular = "captcontrolplane",
    shortname = "captcp",
    category = "cluster-api",
    category = "capt",
    namespaced,
    status = "CAPTControlPlaneStatus",
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    validation = rules::apply_name_stays("-eks-controlplane-apply"),
    validation = rules::version_does_not_go_back(),
    printcolumn(name = "READY", type_ = "boolean", json_path = ".status.ready", description = "Whether it was provisioned"),
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase", description = "Creating, Ready, Failed or Deleting"),
    printcolumn(name = "VERSION", type_ = "string", json_path = ".spec.version", description = "Kubernetes version"),
    printcolumn(name = "ENDPOINT", type_ = "string", json_path = ".status.endpoint", description = "API server"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "STATE", type_ = "string", json_path = ".status.state", priority = 1),
    printcolumn(name = "AVAILABLE", type_ = "string", json_path = ".status.conditions[?(@.type==\"Available\")].status", priority = 1),
    printcolumn(name = "RUNNING", type_ = "string", json_path = ".status.version", description = "Kubernetes version that runs", priority = 1),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::control_plane_region_stays())]
pub struct CAPTControlPlaneSpec {
    /// Kubernetes version as major.minor, for example 1.31; a leading v and a patch level are accepted.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::version_format())]
    pub version: String,
    /// Template that the EKS cluster is made from.
    pub workspace_template_ref: TemplateReference,
    /// Settings of the EKS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_config: Option<ControlPlaneConfig>,
    /// Tags of the AWS resources; template variables tags_KEY.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 4096>")]
    pub additional_tags: BTreeMap<String, String>,
    /// API server, filled in once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// Name of the WorkspaceTemplateApply for EKS; filled with the name in use if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub workspace_template_apply_name: Option<String>,
    /// Template that makes the kubeconfig, where the EKS template has no output of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_template_ref: Option<TemplateReference>,
    /// How long operations may take; wins over controlPlaneConfig.timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// What to do about failures that may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::recreation_is_confirmed())]
    pub recovery_strategy: Option<RecoveryStrategy>,
}

/// Settings of the EKS cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneConfig {
    /// AWS region, for example eu-west-1. Cannot be changed.
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::region_format())]
    pub region: String,
    /// Who can reach the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_access: Option<EndpointAccess>,
    /// EKS addons.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub addons: Vec<Addon>,
    /// Timeouts in the place where the Go implementation had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<GoTimeouts>,
}

/// Who can reach the API server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointAccess {
    /// Whether it can be reached from the internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
    /// Whether it can be reached from the VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<bool>,
    /// Networks that public access is limited to.
    #[serde(rename = "publicCIDRs", default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<256, 64>")]
    pub public_cidrs: Vec<String>,
}

/// An EKS addon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addon {
    /// Name of the addon, for example vpc-cni.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Version of the addon; the default of EKS if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub version: Option<String>,
    /// Configuration of the addon as a JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema::MAX_TEXT))]
    pub configuration_values: Option<String>,
}

/// Timeouts of the Go implementation, in whole minutes. No defaults, so that flags can apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoTimeouts {
    /// Minutes for the whole creation of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub control_plane_timeout: Option<i32>,
    /// Minutes until the VPC is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub vpc_ready_timeout: Option<i32>,
}

/// What was observed of the EKS cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CAPTControlPlaneStatus {
    /// Generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Hash of what the user can change in spec; a change restarts a failed object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub spec_hash: Option<String>,
    /// Whether the control plane was provisioned; never goes back (contract v1beta1).
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    /// Whether the API server has accepted requests; never goes back (contract v1beta1).
    #[serde(default, deserialize_with = "or_default")]
    pub initialized: bool,
    /// Whether the CA and kubeconfig Secrets are current.
    #[serde(default, deserialize_with = "or_default")]
    pub secrets_ready: bool,
    /// The same as `initialized` for contract v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ControlPlaneInitialization>,
    /// Always true: the control plane has no Machines and Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_managed_control_plane: Option<bool>,
    /// Kubernetes version that runs (contract v1beta1), for example v1.31.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// Kubernetes versions that run (contract v1beta2).
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub versions: Vec<ControlPlaneVersion>,
    /// API server as host:port.
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
    /// What is known of the cluster in AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eks: Option<EksDetails>,
    /// The apply of the EKS template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_template_status: Option<WorkspaceTemplateStatus>,
    /// The EKS Workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_status: Option<WorkspaceStatus>,
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

/// What the control plane has reached for good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneInitialization {
    /// Whether the API server has accepted requests; never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// A version of the control plane and how many machines run it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ControlPlaneVersion {
    /// Kubernetes version with a leading v.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// Number of machines; absent for EKS, which shows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub replicas: Option<i32>,
}

/// The cluster in AWS, as far as the outputs tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EksDetails {
    /// Name of the EKS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub cluster_name: Option<String>,
    /// ARN of the IAM identity provider of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub oidc_provider_arn: Option<String>,
    /// Issuer of the tokens of service accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2056))]
    pub oidc_issuer: Option<String>,
}

/// The apply of the EKS template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTemplateStatus {
    /// Whether the Workspace is ready.
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    /// Reason of the Workspace's Ready condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub state: Option<String>,
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
    /// Non-sensitive outputs: strings as they are, other values as compact JSON.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<1024, { schema::MAX_TEXT }>")]
    pub outputs: BTreeMap<String, String>,
}

/// The EKS Workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// Whether the Workspace is ready.
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    /// Reason of the Workspace's Ready condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub state: Option<String>,
    /// `status.atProvider` of the Workspace as last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub at_provider: Option<Value>,
    /// Outputs that were left out of atProvider because they are too large.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<1024, 1024>")]
    pub truncated_outputs: Vec<String>,
}
