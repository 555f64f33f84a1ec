//! Spec of a Terraform Workspace as a template holds it: every field of the provider's CRDs, of the
//! release that the Go implementation was written for up to those that serve namespaced Workspaces.
//!
//! The plan renders it from its JSON, so absent fields are left out and nothing is null. Texts may
//! hold `${VARIABLE}` references.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{common::SecretReference, lenient::or_default, rules, schema};

/// Spec of a Workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceSpec {
    /// What happens to the resources when the Workspace is deleted.
    #[serde(default = "delete", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Orphan", "Delete"]))]
    pub deletion_policy: Option<String>,
    /// The Terraform module and its inputs.
    pub for_provider: ForProvider,
    /// What the provider may do with the resources.
    ///
    /// An empty list pauses the Workspace, so it is kept and is not the same as an absent one.
    #[serde(default = "all_policies", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "management_policies")]
    pub management_policies: Option<Vec<String>>,
    /// Credentials and backend.
    #[serde(default = "default_provider_config", skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<PolicyReference>,
    /// Where the outputs are published (providers before 1.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_connection_details_to: Option<ConnectionDetails>,
    /// Secret that the outputs are written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<SecretReference>,
}

// The `Option`s are what serde wants of a default for an optional field.
#[allow(clippy::unnecessary_wraps)]
fn delete() -> Option<String> {
    Some("Delete".into())
}

#[allow(clippy::unnecessary_wraps)]
fn all_policies() -> Option<Vec<String>> {
    Some(vec!["*".into()])
}

fn management_policies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": {"type": "string", "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"]},
    })
}

#[allow(clippy::unnecessary_wraps)]
fn default_provider_config() -> Option<PolicyReference> {
    Some(PolicyReference { name: "default".into(), kind: None, policy: None })
}

#[allow(clippy::unnecessary_wraps)]
fn required() -> Option<String> {
    Some("Required".into())
}

#[allow(clippy::unnecessary_wraps)]
fn hcl() -> Option<String> {
    Some("HCL".into())
}

/// The Terraform module and its inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForProvider {
    /// Arguments of terraform apply.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<256, 65536>")]
    pub apply_args: Vec<String>,
    /// Arguments of terraform destroy.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<256, 65536>")]
    pub destroy_args: Vec<String>,
    /// Whether the provider logs what Terraform prints: true, false or a `${VARIABLE}` reference.
    #[serde(rename = "enableTerraformCLILogging", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_value")]
    pub enable_terraform_cli_logging: Option<BoolOrText>,
    /// Directory of the module within its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub entrypoint: Option<String>,
    /// Environment of Terraform.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub env: Vec<EnvVar>,
    /// Arguments of terraform init.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<256, 65536>")]
    pub init_args: Vec<String>,
    /// Language of an inline module; HCL if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["HCL", "JSON"]))]
    pub inline_format: Option<String>,
    /// The module: its text if `source` is Inline, else its address.
    #[schemars(length(max = schema::MAX_TEXT))]
    #[x_kube(validation = rules::module_is_not_empty())]
    pub module: String,
    /// Arguments of terraform plan.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::string_list::<256, 65536>")]
    pub plan_args: Vec<String>,
    /// When a remote module is fetched (providers from 1.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent"]))]
    pub remote_pull_policy: Option<String>,
    /// Where the module comes from; Flux needs a provider from 1.0.
    #[schemars(extend("enum" = ["Remote", "Inline", "Flux"]))]
    pub source: String,
    /// Files of variables.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = rules::var_files_have_their_key())]
    pub var_files: Vec<VarFile>,
    /// Variables of any type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub varmap: Option<Value>,
    /// Variables of type string.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub vars: Vec<Var>,
}

/// A flag that may be written as a `${VARIABLE}` reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum BoolOrText {
    /// The flag itself.
    Bool(bool),
    /// A text that is a flag only after substitution. Any other JSON value is kept here as its text,
    /// so that one odd field makes no template unreadable; rendering reports it.
    Text(String),
}

impl<'de> Deserialize<'de> for BoolOrText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Bool(flag) => Self::Bool(flag),
            Value::String(text) => Self::Text(text),
            other @ (Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Self::Text(other.to_string())
            }
        })
    }
}

/// An environment variable of Terraform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema::MAX_TEXT))]
    pub value: Option<String>,
    /// Its value as a key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyReference>,
    /// Its value as a key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyReference>,
}

/// A file of variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VarFile {
    /// Whether a ConfigMap or a Secret holds the file.
    #[schemars(extend("enum" = ["ConfigMapKey", "SecretKey"]))]
    pub source: String,
    /// Language of the file.
    #[serde(default = "hcl", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["HCL", "JSON"]))]
    pub format: Option<String>,
    /// Key of a ConfigMap, if `source` is ConfigMapKey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyReference>,
    /// Key of a Secret, if `source` is SecretKey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyReference>,
}

/// A key of a ConfigMap or Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct KeyReference {
    /// Name of the ConfigMap or Secret.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// Its namespace; cluster-scoped Workspaces need it, namespaced ones use their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub namespace: Option<String>,
    /// The key.
    #[schemars(length(max = 1024))]
    pub key: String,
}

/// A variable of type string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Var {
    /// Name of the variable.
    #[schemars(length(max = 1024))]
    pub key: String,
    /// Its value.
    #[schemars(length(max = schema::MAX_TEXT))]
    pub value: String,
}

/// A reference to a ProviderConfig or StoreConfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PolicyReference {
    /// Name of the object.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// ProviderConfig or ClusterProviderConfig; only for namespaced Workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub kind: Option<String>,
    /// How the reference is resolved; only for cluster-scoped Workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ReferencePolicy>,
}

/// How a reference is resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ReferencePolicy {
    /// Whether a reference to nothing is an error.
    #[serde(default = "required", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Required", "Optional"]))]
    pub resolution: Option<String>,
    /// When the reference is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent"]))]
    pub resolve: Option<String>,
}

/// Where outputs are published (providers before 1.0).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionDetails {
    /// Name of the connection Secret.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// The store.
    #[serde(default = "default_provider_config", skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<PolicyReference>,
    /// Metadata of the connection Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ConnectionDetailsMetadata>,
}

/// Metadata of a connection Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionDetailsMetadata {
    /// Annotations of the Secret.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 262_144>")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the Secret.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map::<256, 1024>")]
    pub labels: BTreeMap<String, String>,
    /// Type of the Secret.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub type_: Option<String>,
}
