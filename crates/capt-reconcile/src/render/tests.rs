//! Rendering of a template as a whole: substitution, precedence, and what the namespaced API can express.

use serde_json::json;

use super::*;

fn template(spec: &Value) -> WorkspaceTemplate {
    serde_json::from_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplate",
        "metadata": {"name": "t", "namespace": "templates"},
        "spec": {"template": {"spec": spec}},
    }))
    .unwrap()
}

fn apply(variables: &Value, secret: Option<Value>) -> WorkspaceTemplateApply {
    let mut value = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"name": "demo-vpc-apply", "namespace": "ns"},
        "spec": {"templateRef": {"name": "t", "namespace": "templates"}, "variables": variables},
    });
    if let Some(secret) = secret {
        value["spec"]["writeConnectionSecretToRef"] = secret;
    }
    serde_json::from_value(value).unwrap()
}

fn spec() -> Value {
    json!({
        "forProvider": {
            "source": "Inline",
            "module": "output \"n\" { value = \"${cluster_name}-${var.x}-${other}\" }",
            "vars": [{"key": "name", "value": "${cluster_name}"}],
            "varFiles": [{"source": "SecretKey", "secretKeyRef": {"namespace": "ns", "name": "${WORKSPACE_NAME}-s", "key": "k"}}],
            "enableTerraformCLILogging": "${logging}",
        },
        "writeConnectionSecretToRef": {"name": "${WORKSPACE_NAME}-connection", "namespace": "ns"},
    })
}

fn variables() -> Value {
    json!({"cluster_name": "demo", "logging": "true"})
}

#[test]
fn every_string_is_rendered_and_typed_leaves_become_typed() {
    let rendered = render(&template(&spec()), &apply(&variables(), None), "demo-vpc", WorkspaceApi::Cluster).unwrap();
    let provider = &rendered.spec["forProvider"];
    assert_eq!(provider["module"], "output \"n\" { value = \"demo-${var.x}-${other}\" }");
    assert_eq!(provider["vars"], json!([{"key": "name", "value": "demo"}]));
    assert_eq!(provider["varFiles"][0]["secretKeyRef"]["name"], "demo-vpc-s");
    assert_eq!(provider["enableTerraformCLILogging"], true);
    assert_eq!(rendered.spec["writeConnectionSecretToRef"], json!({"name": "demo-vpc-connection", "namespace": "ns"}));
}

#[test]
fn the_connection_secret_of_the_apply_wins() {
    let secret = json!({"name": "mine", "namespace": "ns"});
    let apply = apply(&variables(), Some(secret.clone()));
    let rendered = render(&template(&spec()), &apply, "demo-vpc", WorkspaceApi::Cluster).unwrap();
    assert_eq!(rendered.spec["writeConnectionSecretToRef"], secret);
}

#[test]
fn an_undefined_variable_names_variable_field_and_template() {
    let error =
        render(&template(&spec()), &apply(&json!({"logging": "true"}), None), "w", WorkspaceApi::Cluster).unwrap_err();
    let expected = RenderError::UndefinedVariable {
        variable: "cluster_name".to_owned(),
        field: "forProvider.vars[0].value".to_owned(),
        template: "templates/t".to_owned(),
    };
    assert_eq!(error, expected);
    assert_eq!(error.reason(), "UndefinedVariable");
}

#[test]
fn a_boolean_that_is_none_names_the_field() {
    let apply = apply(&json!({"cluster_name": "demo", "logging": "maybe"}), None);
    let error = render(&template(&spec()), &apply, "w", WorkspaceApi::Cluster).unwrap_err();
    assert!(error.to_string().contains("forProvider.enableTerraformCLILogging"), "{error}");
}

#[test]
fn a_namespaced_workspace_has_no_namespaces_in_references() {
    let rendered = render(&template(&spec()), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap();
    assert_eq!(rendered.spec["writeConnectionSecretToRef"], json!({"name": "w-connection"}));
    assert_eq!(rendered.spec["forProvider"]["varFiles"][0]["secretKeyRef"], json!({"name": "w-s", "key": "k"}));
    assert_eq!(rendered.spec["providerConfigRef"], json!({"name": "default", "kind": "ClusterProviderConfig"}));
    assert!(rendered.spec.get("deletionPolicy").is_none());
}

#[test]
fn what_a_namespaced_workspace_cannot_express_is_an_error_that_names_the_field() {
    let render_with = |path: &str, value: Value| {
        let mut spec = spec();
        *spec.pointer_mut(path).unwrap() = value;
        render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced)
    };
    let error = render_with("/writeConnectionSecretToRef/namespace", json!("elsewhere")).unwrap_err();
    assert!(error.to_string().contains("writeConnectionSecretToRef.namespace"), "{error}");
    let error = render_with("/forProvider/varFiles/0/secretKeyRef/namespace", json!("elsewhere")).unwrap_err();
    assert!(error.to_string().contains("forProvider.varFiles[0].secretKeyRef.namespace"), "{error}");
}

#[test]
fn orphan_becomes_policies_without_delete() {
    let mut spec = spec();
    spec["deletionPolicy"] = json!("Orphan");
    let rendered = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap();
    assert_eq!(rendered.spec["managementPolicies"], json!(["Observe", "Create", "Update", "LateInitialize"]));
    // Never more than the template allows.
    spec["managementPolicies"] = json!(["Observe", "Delete"]);
    let rendered = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap();
    assert_eq!(rendered.spec["managementPolicies"], json!(["Observe"]));
}

#[test]
fn a_reference_without_a_namespace_is_the_applys_own() {
    let mut spec = spec();
    spec["writeConnectionSecretToRef"]["namespace"] = json!("");
    let reference = spec["forProvider"]["varFiles"][0]["secretKeyRef"].as_object_mut().unwrap();
    reference.remove("namespace");
    spec["forProvider"]["env"] = json!([{"name": "A", "configMapKeyRef": {"name": "c", "key": "k"}}]);
    let rendered = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Cluster).unwrap();
    assert_eq!(rendered.spec["writeConnectionSecretToRef"]["namespace"], "ns");
    assert_eq!(rendered.spec["forProvider"]["varFiles"][0]["secretKeyRef"]["namespace"], "ns");
    assert_eq!(rendered.spec["forProvider"]["env"][0]["configMapKeyRef"]["namespace"], "ns");
    let rendered = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap();
    assert_eq!(rendered.spec["writeConnectionSecretToRef"], json!({"name": "w-connection"}));
}

#[test]
fn a_kind_of_provider_config_cannot_be_said_in_cluster_scope() {
    let mut spec = spec();
    spec["providerConfigRef"] = json!({"name": "aws", "kind": "ProviderConfig"});
    let error = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Cluster).unwrap_err();
    assert!(error.to_string().contains("providerConfigRef.kind") && error.reason() == "InvalidTemplate", "{error}");
    let rendered = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap();
    assert_eq!(rendered.spec["providerConfigRef"], spec["providerConfigRef"]);
}

#[test]
fn nothing_is_dropped_silently_in_a_namespaced_workspace() {
    for (field, value) in [
        ("publishConnectionDetailsTo", json!({"name": "x"})),
        ("providerConfigRef", json!({"name": "aws", "policy": {"resolve": "Always"}})),
    ] {
        let mut spec = spec();
        spec[field] = value;
        let error = render(&template(&spec), &apply(&variables(), None), "w", WorkspaceApi::Namespaced).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}
