//! WorkspaceTemplate, a Terraform Workspace with variables. It has no controller.

use std::collections::BTreeMap;

use capt_status::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{common::SecretReference, lenient::or_default, rules, schema, workspace_spec::WorkspaceSpec};

/// A Terraform Workspace with variables.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "WorkspaceTemplate",
    doc = "WorkspaceTemplate is a Terraform Workspace with variables, used by WorkspaceTemplateApply objects.",
    plural = "workspacetemplates",
    singular = "workspacetemplate",
    shortname = "wt",
    category = "capt",
    category = "terraform",
    namespaced,
    status = "WorkspaceTemplateObjectStatus",
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    printcolumn(name = "WORKSPACE", type_ = "string", json_path = ".status.workspaceName"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "DESCRIPTION", type_ = "string", json_path = ".spec.template.metadata.description", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTemplateSpec {
    /// The Workspace.
    pub template: WorkspaceTemplateDefinition,
    /// Secret that the outputs are written to, where `template.spec` names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<SecretReference>,
}

/// The Workspace of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTemplateDefinition {
    /// What the template is about, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<WorkspaceTemplateMetadata>,
    /// Spec of the Workspace, with `${VARIABLE}` references.
    pub spec: WorkspaceSpec,
}

/// What a template is about, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTemplateMetadata {
    /// What it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub description: Option<String>,
    /// Version of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub version: Option<String>,
    /// Words to find it by.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 4096>")]
    pub tags: BTreeMap<String, String>,
}

/// Status of a template, as the Go implementation had it; nobody writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTemplateObjectStatus {
    /// Name of a Workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub workspace_name: Option<String>,
    /// Aspects of the object's state.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
