//! Good objects are stored as they were sent.

use std::collections::BTreeSet;

use capt_stack::{Tier, shared};
use capt_tests::{documents, missing, root, yaml_files};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use crate::server::Server;

/// Whether `object` is of one of our kinds.
pub(crate) fn is_ours(object: &Value) -> bool {
    let crds = capt_api::crds::all();
    crds.iter().any(|crd| {
        object["kind"] == crd.spec.names.kind.as_str()
            && object["apiVersion"] == format!("{}/{}", crd.spec.group, capt_api::names::VERSION)
    })
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn every_crd_is_established_and_structural() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let yaml = yaml_files(&root().join("crds")).unwrap();
    assert_eq!(yaml.len(), 6);
    for file in yaml {
        // Waits for Established.
        stack.apply(&std::fs::read_to_string(&file).unwrap()).await.unwrap();
    }
    let api =
        kube::Api::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>::all(
            stack.admin_client().await.unwrap(),
        );
    for crd in capt_api::crds::all() {
        let stored = api.get(crd.metadata.name.as_deref().unwrap()).await.unwrap();
        for condition in stored.status.unwrap().conditions.unwrap() {
            let good = ["Established", "NamesAccepted"].contains(&condition.type_.as_str());
            assert_eq!(condition.status == "True", good, "{condition:?}");
        }
    }
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn our_examples_are_stored_as_they_are() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "examples", &capt_api::crds::all()).await;
    let mut stored = 0;
    for file in yaml_files(&root().join("examples")).unwrap() {
        for object in documents(&file).unwrap().iter().filter(|object| is_ours(object)) {
            server.create(object).await.unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
            let read = server.get(object).await.unwrap();
            assert_eq!(missing(&object["spec"], &read["spec"]), None, "{} lost a field", file.display());
            stored += 1;
        }
    }
    assert!(stored >= 10, "only {stored} examples of our kinds found");
}

/// So that the test above says something about every field there is.
#[test]
fn the_reference_example_has_every_field() {
    let objects = documents(&root().join("examples/every-field.yaml")).unwrap();
    for crd in capt_api::crds::all() {
        let kind = crd.spec.names.kind.as_str();
        let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        let spec = &schema.properties.as_ref().unwrap()["spec"];
        let mut fields = BTreeSet::new();
        collect_fields(spec, kind, &mut fields);
        for object in objects.iter().filter(|object| object["kind"] == kind) {
            remove_named(&object["spec"], kind, &mut fields);
        }
        // A field of the shared type that CAPTCluster refuses.
        fields.retain(|field| !(kind.starts_with("CAPTCluster") && field.ends_with(".controlPlaneTimeout")));
        assert!(fields.is_empty(), "examples/every-field.yaml lacks {fields:?}");
    }
}

fn collect_fields(schema: &JSONSchemaProps, path: &str, fields: &mut BTreeSet<String>) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        collect_fields(property, &path, fields);
        fields.insert(path);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        collect_fields(items, path, fields);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        collect_fields(values, path, fields);
    }
}

fn remove_named(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    fields.remove(path);
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| remove_named(value, &format!("{path}.{name}"), fields));
        }
        Value::Array(items) => items.iter().for_each(|item| remove_named(item, path, fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Bounds must not stop what fits into etcd.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_module_of_one_mebibyte_is_stored() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "large", &capt_api::crds::all()).await;
    let module = format!("# {}\n", "x".repeat(1 << 20));
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "WorkspaceTemplate",
        "metadata": {"name": "large"},
        "spec": {"template": {"spec": {"forProvider": {"source": "Inline", "module": module}}}},
    });
    server.create(&template).await.unwrap();
    let read = server.get(&template).await.unwrap();
    assert_eq!(missing(&template["spec"], &read["spec"]), None);
}

/// What a user of the Go CRD could leave out is filled in as before.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_template_gets_the_defaults_of_the_go_crd() {
    let stack = shared(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "defaults", &capt_api::crds::all()).await;
    let reference = json!({"name": "n", "key": "k"});
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "WorkspaceTemplate",
        "metadata": {"name": "short"},
        "spec": {"template": {"spec": {
            "deletionPolicy": null,
            "publishConnectionDetailsTo": {"name": "p"},
            "forProvider": {"source": "Inline", "module": "#", "varFiles": [{"source": "SecretKey", "secretKeyRef": reference}]},
        }}},
    });
    let stored = server.create(&template).await.unwrap();
    let spec = &stored["spec"]["template"]["spec"];
    assert_eq!(spec["deletionPolicy"], "Delete");
    assert_eq!(spec["managementPolicies"], json!(["*"]));
    assert_eq!(spec["providerConfigRef"], json!({"name": "default"}));
    assert_eq!(spec["publishConnectionDetailsTo"]["configRef"], json!({"name": "default"}));
    assert_eq!(spec["forProvider"]["varFiles"][0]["format"], "HCL");
    // What is read from a file has the same defaults, so that a plan over files is the plan over the server.
    let mut from_file = template.clone();
    from_file["spec"]["template"]["spec"].as_object_mut().unwrap().remove("deletionPolicy");
    let from_file: capt_api::WorkspaceTemplate = serde_json::from_value(from_file).unwrap();
    let from_server: capt_api::WorkspaceTemplate = serde_json::from_value(stored).unwrap();
    assert_eq!(from_file.spec, from_server.spec);
}
