//! WorkspaceTemplate + WorkspaceTemplateApply -> spec of a Workspace, and what differs from a live one.
//!
//! Place in the flow: inside the apply's plan. Nothing of the template is dropped silently: what
//! the namespaced API cannot express is an error that names the field.

pub mod compare;
pub mod substitute;

use capt_api::{SecretReference, WorkspaceTemplate, WorkspaceTemplateApply, foreign::WorkspaceApi};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use crate::{hash, reasons};

/// Name of the variable that is always there.
pub const WORKSPACE_NAME: &str = "WORKSPACE_NAME";

/// A rendered spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// `spec` of the Workspace.
    pub spec: Value,
    /// First 12 hexadecimal digits of its digest.
    pub hash: String,
}

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A reference to a variable that is not there, outside the module text.
    #[error(
        "variable `{variable}` in {field} of WorkspaceTemplate {template} is not defined: add it to spec.variables of the apply, or write $${{{variable}}} if Terraform shall see it"
    )]
    UndefinedVariable {
        /// Variable.
        variable: String,
        /// Path of the field.
        field: String,
        /// namespace/name of the template.
        template: String,
    },
    /// A text where a boolean belongs.
    #[error("{field} of WorkspaceTemplate {template} is `{value}` after substitution; it must be true or false")]
    NotABoolean {
        /// Path of the field.
        field: String,
        /// What it says.
        value: String,
        /// namespace/name of the template.
        template: String,
    },
    /// A field that the namespaced API does not have.
    #[error(
        "{field} of WorkspaceTemplate {template} cannot be expressed in a namespaced Workspace (tf.m.upbound.io): {fix}"
    )]
    Unsupported {
        /// Path of the field.
        field: String,
        /// namespace/name of the template.
        template: String,
        /// What to do.
        fix: &'static str,
    },
    /// A field that the cluster-scoped API does not have.
    #[error(
        "{field} of WorkspaceTemplate {template} cannot be expressed in a cluster-scoped Workspace (tf.upbound.io): {fix}"
    )]
    InClusterScope {
        /// Path of the field.
        field: &'static str,
        /// namespace/name of the template.
        template: String,
        /// What to do.
        fix: &'static str,
    },
    /// The template does not serialise; cannot happen for an object that was read.
    #[error("WorkspaceTemplate {template} cannot be written as JSON: {message}")]
    Json {
        /// namespace/name of the template.
        template: String,
        /// What serde says.
        message: String,
    },
}

impl RenderError {
    /// Reason of the condition that shows it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UndefinedVariable { .. } => reasons::UNDEFINED_VARIABLE,
            Self::NotABoolean { .. } | Self::Unsupported { .. } | Self::InClusterScope { .. } | Self::Json { .. } => {
                reasons::INVALID_TEMPLATE
            }
        }
    }
}

/// The spec of the Workspace `name` that `apply` makes of `template` in `api`.
pub fn render(
    template: &WorkspaceTemplate,
    apply: &WorkspaceTemplateApply,
    name: &str,
    api: WorkspaceApi,
) -> Result<Rendered, RenderError> {
    let template_name = format!("{}/{}", template.namespace().unwrap_or_default(), template.name_any());
    let to_json = |message: serde_json::Error| RenderError::Json {
        template: template_name.clone(),
        message: message.to_string(),
    };
    let mut spec = serde_json::to_value(&template.spec.template.spec).map_err(to_json)?;
    // The template's own two places for the connection Secret: the Workspace spec goes first.
    if spec.get("writeConnectionSecretToRef").is_none()
        && let Some(reference) = &template.spec.write_connection_secret_to_ref
    {
        spec["writeConnectionSecretToRef"] = secret_reference(reference);
    }
    let mut variables = apply.spec.variables.clone();
    variables.insert(WORKSPACE_NAME.to_owned(), name.to_owned());
    substitute::spec(&mut spec, &variables, &template_name)?;
    if let Some(reference) = &apply.spec.write_connection_secret_to_ref {
        spec["writeConnectionSecretToRef"] = secret_reference(reference);
    }
    let namespace = apply.namespace().unwrap_or_default();
    match api {
        WorkspaceApi::Cluster => cluster_scoped(&mut spec, &namespace, &template_name)?,
        WorkspaceApi::Namespaced => namespaced(&mut spec, &namespace, &template_name)?,
    }
    let hash = hash::hex(&spec, 12);
    Ok(Rendered { spec, hash })
}

fn secret_reference(reference: &SecretReference) -> Value {
    json!({"name": reference.name, "namespace": reference.namespace})
}

/// Management policies that leave out the deletion, and are otherwise not more than `policies`.
fn without_delete(policies: Option<&Value>) -> Value {
    match policies.and_then(Value::as_array) {
        Some(policies) if !policies.contains(&json!("*")) => {
            policies.iter().filter(|policy| **policy != json!("Delete")).cloned().collect()
        }
        Some(_) | None => json!(["Observe", "Create", "Update", "LateInitialize"]),
    }
}

/// Completes a cluster-scoped spec: a Secret or ConfigMap without a namespace is the apply's own.
fn cluster_scoped(spec: &mut Value, namespace: &str, template: &str) -> Result<(), RenderError> {
    if !spec["providerConfigRef"]["kind"].is_null() {
        return Err(RenderError::InClusterScope {
            field: "providerConfigRef.kind",
            template: template.to_owned(),
            fix: "remove it: a cluster-scoped Workspace uses the ProviderConfig of tf.upbound.io",
        });
    }
    for (_, reference) in references(spec) {
        if reference.get("namespace").and_then(Value::as_str).is_none_or(str::is_empty) {
            reference.insert("namespace".to_owned(), json!(namespace));
        }
    }
    Ok(())
}

/// References to Secrets and ConfigMaps, with their paths.
fn references(spec: &mut Value) -> Vec<(String, &mut Map<String, Value>)> {
    let mut found = Vec::new();
    let Some(fields) = spec.as_object_mut() else { return found };
    for (name, field) in fields {
        if name == "writeConnectionSecretToRef" {
            found.extend(field.as_object_mut().map(|reference| (name.clone(), reference)));
        } else if name == "forProvider" {
            for (list, items) in field.as_object_mut().into_iter().flatten() {
                if list != "env" && list != "varFiles" {
                    continue;
                }
                for (index, item) in items.as_array_mut().into_iter().flatten().enumerate() {
                    for (kind, reference) in item.as_object_mut().into_iter().flatten() {
                        if kind == "configMapKeyRef" || kind == "secretKeyRef" {
                            let path = format!("forProvider.{list}[{index}].{kind}");
                            found.extend(reference.as_object_mut().map(|reference| (path, reference)));
                        }
                    }
                }
            }
        }
    }
    found
}

/// Turns a cluster-scoped spec into a namespaced one.
fn namespaced(spec: &mut Value, namespace: &str, template: &str) -> Result<(), RenderError> {
    let unsupported = |field: &str, fix| {
        Err(RenderError::Unsupported { field: field.to_owned(), template: template.to_owned(), fix })
    };
    let Some(fields) = spec.as_object_mut() else { return Ok(()) };
    if fields.contains_key("publishConnectionDetailsTo") {
        return unsupported("publishConnectionDetailsTo", "use writeConnectionSecretToRef");
    }
    if let Some("Orphan") = fields.remove("deletionPolicy").as_ref().and_then(Value::as_str) {
        let policies = without_delete(fields.get("managementPolicies"));
        fields.insert("managementPolicies".to_owned(), policies);
    }
    if let Some(reference) = fields.get_mut("providerConfigRef").and_then(Value::as_object_mut) {
        if reference.contains_key("policy") {
            return unsupported("providerConfigRef.policy", "remove it");
        }
        reference.entry("kind").or_insert_with(|| json!("ClusterProviderConfig"));
    }
    for (path, reference) in references(spec) {
        if !own_namespace(reference, namespace) {
            return unsupported(&format!("{path}.namespace"), "name the apply's own namespace");
        }
    }
    Ok(())
}

/// Removes the namespace of a reference; false if it is neither `namespace` nor empty.
fn own_namespace(reference: &mut Map<String, Value>, namespace: &str) -> bool {
    match reference.remove("namespace") {
        None => true,
        Some(found) => found == json!(namespace) || found == json!(""),
    }
}

#[cfg(test)]
mod tests;
