//! CAPTClusterTemplate and CAPTControlPlaneTemplate, what a ClusterClass makes the provider objects
//! from. Their specs leave out what belongs to one cluster alone.

use std::collections::BTreeMap;

use capt_status::RecoveryStrategy;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    captcluster::VpcConfig,
    common::{TemplateReference, Timeouts},
    control_plane::ControlPlaneConfig,
    lenient::or_default,
    rules, schema,
};

/// Template of CAPTCluster objects.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "CAPTClusterTemplate",
    doc = "CAPTClusterTemplate is what a ClusterClass makes CAPTCluster objects from.",
    plural = "captclustertemplates",
    singular = "captclustertemplate",
    shortname = "captclt",
    category = "cluster-api",
    category = "capt",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct CAPTClusterTemplateSpec {
    /// The template.
    pub template: CAPTClusterTemplateResource,
}

/// Metadata and spec of the CAPTCluster objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CAPTClusterTemplateResource {
    /// Labels and annotations of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the objects.
    pub spec: CAPTClusterTemplateResourceSpec,
}

/// Spec of CAPTCluster objects without what belongs to one cluster alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::one_vpc_source())]
pub struct CAPTClusterTemplateResourceSpec {
    /// AWS region, for example eu-west-1; a patch of the ClusterClass may set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::region_format())]
    pub region: Option<String>,
    /// Template that the VPC is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_template_ref: Option<TemplateReference>,
    /// Id of a VPC that exists and is used as it is.
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
    /// How long operations may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::no_control_plane_timeout())]
    pub timeouts: Option<Timeouts>,
    /// What to do about failures that may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::recreation_is_confirmed())]
    pub recovery_strategy: Option<RecoveryStrategy>,
}

/// Template of CAPTControlPlane objects.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "CAPTControlPlaneTemplate",
    doc = "CAPTControlPlaneTemplate is what a ClusterClass makes CAPTControlPlane objects from.",
    plural = "captcontrolplanetemplates",
    singular = "captcontrolplanetemplate",
    shortname = "captcpt",
    category = "cluster-api",
    category = "capt",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct CAPTControlPlaneTemplateSpec {
    /// The template.
    pub template: CAPTControlPlaneTemplateResource,
}

/// Metadata and spec of the CAPTControlPlane objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CAPTControlPlaneTemplateResource {
    /// Labels and annotations of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the objects.
    pub spec: CAPTControlPlaneTemplateResourceSpec,
}

/// Spec of CAPTControlPlane objects without what belongs to one cluster alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CAPTControlPlaneTemplateResourceSpec {
    /// Kubernetes version; the topology of the Cluster sets it, so that any text is accepted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// Template that the EKS cluster is made from.
    pub workspace_template_ref: TemplateReference,
    /// Settings of the EKS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_config: Option<ControlPlaneConfig>,
    /// Tags of the AWS resources; template variables tags_KEY.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 4096>")]
    pub additional_tags: BTreeMap<String, String>,
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

/// Labels and annotations of objects that are made from a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels of the objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 63>")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 262_144>")]
    pub annotations: BTreeMap<String, String>,
}
