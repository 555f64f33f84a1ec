//! Templates that were written for the Go implementation render as they did there.

use std::{collections::BTreeMap, path::Path};

use capt_api::{WorkspaceTemplate, WorkspaceTemplateApply, foreign::WorkspaceApi};
use capt_reconcile::{
    ownership,
    render::{RenderError, compare, render},
};
use serde_json::{Value, json};

/// Namespace and name.
fn name_of(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let namespace = text("namespace");
    (if namespace.is_empty() { "default".to_owned() } else { namespace }, text("name"))
}

/// What the Go implementation made of a template: each variable replaced in the text of the whole JSON.
/// `None` where that was no JSON any more.
fn as_go_did(template: &Value, variables: &BTreeMap<String, String>) -> Option<Value> {
    let mut text = template["spec"]["template"]["spec"].to_string();
    for (name, value) in variables {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    serde_json::from_str(&text).ok()
}

/// The apply and its template in `documents` agree with Go; false if the apply's template is not there.
fn agrees(documents: &[Value], apply: &Value) -> bool {
    let (namespace, name) = name_of(apply);
    let reference = &apply["spec"]["templateRef"];
    let of = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty()).unwrap_or(&namespace).to_owned();
    let wanted = (of, reference["name"].as_str().unwrap_or_default().to_owned());
    let found = documents.iter().find(|object| object["kind"] == "WorkspaceTemplate" && name_of(object) == wanted);
    let Some(template) = found else { return false };
    let workspace = ownership::workspace_name(&name);
    let typed_apply: WorkspaceTemplateApply = serde_json::from_value(apply.clone()).unwrap();
    // Some samples lack what both CRDs require.
    let Ok(typed) = serde_json::from_value::<WorkspaceTemplate>(template.clone()) else { return false };
    let mut variables = typed_apply.spec.variables.clone();
    variables.insert("WORKSPACE_NAME".to_owned(), workspace.to_owned());
    let mut go = as_go_did(template, &variables).unwrap_or_else(|| panic!("{name}: Go broke the JSON"));
    let rendered = match render(&typed, &typed_apply, workspace, WorkspaceApi::Cluster) {
        Ok(rendered) => rendered,
        Err(RenderError::UndefinedVariable { variable, .. }) => {
            // Go handed the reference on as it stands; here it is told.
            assert!(go.to_string().contains(&format!("${{{variable}}}")), "{name}: {variable}");
            return true;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    if !apply["spec"]["writeConnectionSecretToRef"].is_null() {
        go["writeConnectionSecretToRef"] = apply["spec"]["writeConnectionSecretToRef"].clone();
    } else if go["writeConnectionSecretToRef"].is_null() && !template["spec"]["writeConnectionSecretToRef"].is_null() {
        // Go left this one unrendered; a reference in it never worked.
        go["writeConnectionSecretToRef"] = rendered.spec["writeConnectionSecretToRef"].clone();
    }
    assert_eq!(rendered.spec["forProvider"]["module"], go["forProvider"]["module"], "{name}: byte for byte");
    assert_eq!(compare::difference(&rendered.spec, &go), None, "{name}");
    assert_eq!(compare::difference(&go, &rendered.spec), None, "{name}");
    true
}

#[test]
fn own_templates_in_gos_manner_render_as_there() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(include_str!("../workspaces/go_style.yaml")).unwrap();
    let applies: Vec<&Value> = documents.iter().filter(|object| object["kind"] == "WorkspaceTemplateApply").collect();
    assert_eq!(applies.len(), 3);
    for apply in applies {
        assert!(agrees(&documents, apply), "{apply}");
    }
}

#[test]
fn what_terraform_and_users_wrote_stays() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(include_str!("../workspaces/go_style.yaml")).unwrap();
    let template: WorkspaceTemplate = serde_json::from_value(documents[0].clone()).unwrap();
    let apply: WorkspaceTemplateApply = serde_json::from_value(documents[1].clone()).unwrap();
    let rendered = render(&template, &apply, "demo-vpc", WorkspaceApi::Cluster).unwrap();
    let module = rendered.spec["forProvider"]["module"].as_str().unwrap();
    for part in [
        "\"${k}=${v}\"",
        "${var.name}-${jsonencode({ a = 1 })}-$${local.name}-%{ if true }x%{ endif }",
        "a tab\tand a backslash \\\\ and a quote \\\"",
        "{\"cluster\": \"demo\", \"env\": \"production\"}",
        "\"kubernetes.io/cluster/demo\"",
    ] {
        assert!(module.contains(part), "{part} in {module}");
    }
    assert_eq!(
        rendered.spec["writeConnectionSecretToRef"],
        json!({"name": "demo-vpc-vpc-connection", "namespace": "default"})
    );
}

#[test]
fn a_revision_follows_from_the_inputs_alone() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(include_str!("../workspaces/go_style.yaml")).unwrap();
    let typed = |value: &Value| -> (WorkspaceTemplate, WorkspaceTemplateApply) {
        (serde_json::from_value(documents[2].clone()).unwrap(), serde_json::from_value(value.clone()).unwrap())
    };
    let hash = |apply: &Value| {
        let (template, apply) = typed(apply);
        render(&template, &apply, "w", WorkspaceApi::Cluster).unwrap().hash
    };
    let base = hash(&documents[3]);
    let mut more = documents[3].clone();
    more["spec"]["variables"]["not_used"] = json!("x");
    more["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(hash(&more), base, "what is not rendered makes no other revision");
    for (name, value) in documents[3]["spec"]["variables"].as_object().unwrap() {
        let mut other = documents[3].clone();
        other["spec"]["variables"][name] = json!(format!("{}x", value.as_str().unwrap()));
        assert_ne!(hash(&other), base, "{name}");
    }
}

/// Samples of the Go implementation, where they are at hand.
#[test]
fn samples_of_the_go_implementation_render_as_there() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples-go");
    if !directory.is_dir() {
        return;
    }
    let mut files = vec![directory];
    let mut documents: Vec<Value> = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            // Some hold what is no YAML for a strict reader.
            let text = std::fs::read_to_string(&path).unwrap();
            documents.extend(serde_saphyr::from_multiple::<Value>(&text).unwrap_or_default());
        }
    }
    let of = |kind: &'static str| documents.iter().filter(move |object| object["kind"] == kind);
    let with_apply = of("WorkspaceTemplateApply").filter(|apply| agrees(&documents, apply)).count();
    // Those whose apply the controllers make, with a value for whatever they refer to.
    let mut templates = 0;
    for template in of("WorkspaceTemplate") {
        let text = template["spec"]["template"]["spec"].to_string();
        let mut variables = serde_json::Map::new();
        for name in [
            "cluster_name",
            "region",
            "kubernetes_version",
            "vpc_name",
            "cluster_endpoint",
            "environment",
            "cluster_certificate_authority_data",
        ] {
            if text.contains(&format!("${{{name}}}")) {
                variables.insert(name.to_owned(), json!(format!("value-of-{name}")));
            }
        }
        let (namespace, name) = name_of(template);
        let apply = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
            "metadata": {"name": format!("{name}-apply"), "namespace": namespace},
            "spec": {"templateRef": {"name": name}, "variables": variables},
        });
        templates += usize::from(agrees(&documents, &apply));
    }
    assert!(with_apply >= 3 && templates >= 10, "{with_apply} {templates}");
}
