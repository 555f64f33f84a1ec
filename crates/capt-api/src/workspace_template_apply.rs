//! WorkspaceTemplateApply, the use of a WorkspaceTemplate: it makes one Workspace.

use std::collections::BTreeMap;

use capt_status::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{SecretReference, TemplateReference, WorkspaceReference},
    lenient::or_default,
    rules, schema,
};

/// The use of a WorkspaceTemplate.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "WorkspaceTemplateApply",
    doc = "WorkspaceTemplateApply makes a Terraform Workspace from a WorkspaceTemplate.",
    plural = "workspacetemplateapplies",
    singular = "workspacetemplateapply",
    shortname = "wtapply",
    category = "capt",
    category = "terraform",
    namespaced,
    status = "WorkspaceTemplateApplyStatus",
    derive = "Default",
    derive = "PartialEq",
    validation = rules::spec_stays(),
    validation = rules::no_wait_for_itself(),
    printcolumn(name = "WORKSPACE", type_ = "string", json_path = ".status.workspaceName"),
    printcolumn(name = "APPLIED", type_ = "boolean", json_path = ".status.applied"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "READY", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", priority = 1),
    printcolumn(name = "SYNCED", type_ = "string", json_path = ".status.conditions[?(@.type==\"Synced\")].status", priority = 1),
    printcolumn(name = "TEMPLATE", type_ = "string", json_path = ".spec.templateRef.name", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTemplateApplySpec {
    /// The template.
    pub template_ref: TemplateReference,
    /// Secret that the outputs are written to; wins over the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<SecretReference>,
    /// Values of the template's variables.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<1024, { schema::MAX_TEXT }>")]
    pub variables: BTreeMap<String, String>,
    /// Secrets that must exist and hold something before the Workspace is made.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub wait_for_secrets: Vec<SecretReference>,
    /// Applies or Workspaces that must be ready before the Workspace is made.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub wait_for_workspaces: Vec<WorkspaceReference>,
    /// Whether the Workspace stays when the apply is deleted; false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_workspace_on_delete: Option<bool>,
}

/// What became of the Workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTemplateApplyStatus {
    /// Generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Whether a Workspace of ours exists and carries the current rendering; may go back.
    #[serde(default, deserialize_with = "or_default")]
    pub applied: bool,
    /// Name of the Workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub workspace_name: Option<String>,
    /// When the Workspace's spec was written last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_time: Option<Time>,
    /// Revision that was written last: template generation and hash of the rendered spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub last_applied_revision: Option<String>,
    /// `crossplane.io/external-name` of the Workspace: which Terraform state it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub external_name: Option<String>,
    /// Whether what the Workspace stands for was ever there, or may have been before it was taken over;
    /// never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was_ready: Option<bool>,
    /// Hash of what the apply rendered to when it took the Workspace over, as long as the differences from
    /// then wait for somebody to release them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub takeover_baseline: Option<String>,
    /// Aspects of the object's state.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
