//! Objects that were stored before our CRDs, or before one of their rules, stay and stay writable.

use std::path::Path;

use capt_stack::{Stack, Tier};
use capt_tests::{beside, documents, missing, yaml_files};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use crate::{
    rules::{Kind, Step, steps},
    server::Server,
};

fn without_rules(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    fn strip(schema: &mut JSONSchemaProps) {
        schema.x_kubernetes_validations = None;
        schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(strip);
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
            strip(items);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
            strip(values);
        }
    }
    for version in &mut crd.spec.versions {
        strip(version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap());
    }
    crd
}

/// What an operator and a user do to an object all the time, without touching what a rule speaks of.
async fn is_writable(server: &Server, object: &Value) -> Result<(), String> {
    let finalizer = json!({"metadata": {"finalizers": ["example.com/held"], "labels": {"touched": "yes"}}});
    server.merge(object, &finalizer).await?;
    let (spec, status) = match object["kind"].as_str().unwrap() {
        "CAPTCluster" => (json!({"retainVpcOnDelete": true}), json!({"ready": false, "phase": "Failed"})),
        "CAPTControlPlane" => (json!({"additionalTags": {"later": "yes"}}), json!({"ready": false, "phase": "Failed"})),
        "WorkspaceTemplateApply" => (json!({"variables": {"later": "yes"}}), json!({"applied": false})),
        _ => (Value::Null, Value::Null),
    };
    // One sample has no spec, which the Go CRD takes; a part of a spec it does not.
    if !spec.is_null() && !object["spec"].is_null() {
        server.merge(object, &json!({"spec": spec})).await?;
    }
    if !status.is_null() {
        server.set_status(object, &status).await?;
    }
    server.merge(object, &json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

/// Something that only the rules refuse.
fn canary() -> Value {
    Kind::Cluster.object("canary", &json!({"region": "no region"}))
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn what_was_stored_before_a_rule_stays_writable() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let crds = capt_api::crds::all();
    let bare: Vec<_> = crds.iter().cloned().map(without_rules).collect();
    let server = Server::new(&stack, "before", &bare).await;
    let mut stored = Vec::new();
    for (number, Step { name, kind, before, spec, refusal }) in steps().into_iter().enumerate() {
        if before.is_none() && refusal.is_some() {
            let object_name = format!("step-{number}");
            let spec = serde_json::from_str(&spec.to_string().replace("SELF", &object_name)).unwrap();
            let object = kind.object(&object_name, &spec);
            server.create(&object).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            stored.push((name, object));
        }
    }
    assert!(stored.len() >= 15, "only {} bad objects", stored.len());

    let server = Server::new(&stack, "before", &crds).await;
    server.settles(&canary(), false).await;
    let mut wrong = Vec::new();
    for (name, object) in &stored {
        if server
            .dry_run(&{
                let mut again = object.clone();
                // A wait for itself is one only under its own name.
                again["metadata"]["name"] = object["metadata"]["name"].clone();
                again["metadata"]["labels"] = json!({});
                again
            })
            .await
            .is_ok()
        {
            wrong.push(format!("{name} would be accepted anew"));
        }
        if let Err(refusal) = is_writable(&server, object).await {
            wrong.push(format!("{name} is not writable any more: {refusal}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Out of what Go accepted and ignored there is a way, in both directions.
    for (name, spec) in [
        ("leave-id", json!({"region": "eu-west-1", "existingVpcId": "vpc-1"})),
        ("leave-template", json!({"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}})),
    ] {
        let both = json!({"region": "eu-west-1", "existingVpcId": "vpc-1", "vpcTemplateRef": {"name": "vpc"}});
        let object = Kind::Cluster.object(name, &both);
        store_without_rules(&stack, &server, &crds, &object).await;
        let other = json!({"region": "eu-west-1", "existingVpcId": "vpc-2", "vpcTemplateRef": {"name": "vpc"}});
        assert!(server.replace_spec(&object, &other).await.unwrap_err().contains("exclude each other"));
        server.replace_spec(&object, &spec).await.unwrap();
    }
}

async fn store_without_rules(stack: &Stack, server: &Server, crds: &[CustomResourceDefinition], object: &Value) {
    let bare: Vec<_> = crds.iter().cloned().map(without_rules).collect();
    Server::new(stack, "before", &bare).await.settles(&canary(), true).await;
    server.create(object).await.unwrap();
    Server::new(stack, "before", crds).await.settles(&canary(), false).await;
}

/// The samples of the Go implementation: what its CRDs take without a loss, ours take too, before
/// and after the takeover. Needs its CRDs and samples beside the project.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_go_implementations_objects_are_taken_over() {
    let (Some(go_crds), Some(samples)) = (beside("crds/capt-go"), beside("samples-go")) else {
        println!("the Go implementation's CRDs and samples are not beside this project: nothing to compare with");
        return;
    };
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let server = Server::new(&stack, "go", &[]).await;
    for file in yaml_files(&go_crds).unwrap() {
        stack.apply(&std::fs::read_to_string(file).unwrap()).await.unwrap();
    }

    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for file in yaml_files(&samples).unwrap() {
        for mut object in documents_or_report(&file, &mut refused) {
            let name =
                format!("{}-{}", taken.len() + refused.len(), object["metadata"]["name"].as_str().unwrap_or("none"));
            let of = format!("{} {}", file.strip_prefix(&samples).unwrap().display(), object["kind"]);
            if !object["apiVersion"].as_str().is_some_and(|version| {
                ["infrastructure.cluster.x-k8s.io/v1beta1", "controlplane.cluster.x-k8s.io/v1beta1"].contains(&version)
            }) {
                continue;
            }
            object["metadata"]["name"] = name.into();
            match server.create(&object).await {
                Ok(stored) => match missing(&object["spec"], &stored["spec"]) {
                    None => taken.push((of, object, stored)),
                    Some(lost) => refused.push(format!("{of}: loses {lost}")),
                },
                Err(refusal) => refused.push(format!("{of}: {refusal}")),
            }
        }
    }
    println!("the Go CRDs take {} samples and refuse:\n  {}", taken.len(), refused.join("\n  "));
    assert!(taken.len() >= 20, "only {} samples taken", taken.len());

    // The template of a control plane changes its kind, which a CRD cannot: it is replaced.
    let (templates, crds): (Vec<_>, Vec<_>) =
        capt_api::crds::all().into_iter().partition(|crd| crd.spec.names.kind == "CAPTControlPlaneTemplate");
    let refusal = stack.apply(&serde_json::to_string(&templates[0]).unwrap()).await.map(|_| ()).unwrap_err();
    assert!(refusal.to_string().contains("kind"), "{refusal}");
    let server = Server::new(&stack, "go", &crds).await;
    server.settles(&canary(), false).await;

    let anew = server.in_namespace(&stack, "anew").await;
    let mut wrong = Vec::new();
    for (of, object, stored) in &taken {
        let read = server.get(object).await.unwrap();
        if let Some(lost) = missing(&stored["spec"], &read["spec"]) {
            wrong.push(format!("{of}: {lost} is lost after the upgrade"));
        }
        match anew.create(object).await {
            Ok(created) => {
                if let Some(lost) = missing(&object["spec"], &created["spec"]) {
                    wrong.push(format!("{of}: {lost} is lost in a new object"));
                }
            }
            Err(refusal) => wrong.push(format!("{of}: {refusal}")),
        }
        if let Err(refusal) = is_writable(&server, object).await {
            wrong.push(format!("{of} is not writable any more: {refusal}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn documents_or_report(file: &Path, refused: &mut Vec<String>) -> Vec<Value> {
    documents(file).unwrap_or_else(|error| {
        refused.push(error.to_string());
        Vec::new()
    })
}
