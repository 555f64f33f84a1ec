//! What several kinds share: references, the endpoint, timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::MAX_NAME;

/// Name of a template object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TemplateReference {
    /// Name of the template.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Namespace of the template; that of the referring object if absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
}

/// Name and namespace of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SecretReference {
    /// Name of the Secret. In a template it may hold `${VARIABLE}` references.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// Namespace of the Secret. In a template it may hold `${VARIABLE}` references.
    #[schemars(length(max = 1024))]
    pub namespace: String,
}

/// An apply, or else a Workspace, to wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceReference {
    /// Name of a WorkspaceTemplateApply; if there is none of this name, of a Workspace.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Namespace of the apply; that of the referring object if absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
}

/// Host and port of an API server as Cluster API wants them. Empty and 0 mean "not known".
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ApiEndpoint {
    /// Host name or address. The Go implementation wrote a whole URL here, which is repaired.
    #[schemars(length(max = 512))]
    pub host: String,
    /// Port, 443 for EKS.
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
}

impl ApiEndpoint {
    /// Whether Cluster API takes it for known: a host that is not empty and a port that is not 0.
    pub fn is_set(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

/// How long operations may take, in whole minutes. What is absent comes from the operator's flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// Minutes until the provider has begun on the VPC; 30 if nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub vpc_creation_timeout: Option<i32>,
    /// Minutes until the VPC is ready; 15 if nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub vpc_ready_timeout: Option<i32>,
    /// Minutes until a Workspace is ready; 30 if nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub workspace_ready_timeout: Option<i32>,
    /// Minutes for the whole creation or upgrade of a control plane; 30 if nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub control_plane_timeout: Option<i32>,
    /// Minutes until endpoint, CA and kubeconfig are there; 5 if nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 525_600))]
    pub secret_timeout: Option<i32>,
}
