//! The CustomResourceDefinitions of all kinds, as the API server takes them.
//!
//! The derives give the schema; this module adds what they cannot: contract labels, and the difference between a Rust type and a structural schema (a field that may be
//! absent is not one that may be null).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{
    CAPTCluster, CAPTClusterTemplate, CAPTControlPlane, CAPTControlPlaneTemplate, WorkspaceTemplate,
    WorkspaceTemplateApply, names,
};

/// Labels by which Cluster API core finds the contract that a kind follows. The values name CRD
/// versions: ours follows both contracts at once.
const CONTRACTS: [&str; 2] = ["cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"];

/// Label that makes `clusterctl move` take objects which no Cluster owns.
const MOVE: &str = "clusterctl.cluster.x-k8s.io/move";

/// All CustomResourceDefinitions, in the order of their names.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        contract_kind(refined(CAPTControlPlane::crd())),
        contract_kind(refined(CAPTControlPlaneTemplate::crd())),
        contract_kind(refined(CAPTCluster::crd())),
        contract_kind(refined(CAPTClusterTemplate::crd())),
        refined(WorkspaceTemplateApply::crd()),
        labelled(refined(WorkspaceTemplate::crd()), MOVE, ""),
    ];
    crds.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    crds
}

/// With the labels that Cluster API core needs on every kind it meets.
fn contract_kind(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    CONTRACTS.into_iter().fold(crd, |crd, contract| labelled(crd, contract, names::VERSION))
}

fn labelled(mut crd: CustomResourceDefinition, label: &str, value: &str) -> CustomResourceDefinition {
    crd.metadata.labels.get_or_insert_default().insert(label.to_owned(), value.to_owned());
    crd
}

fn refined(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            make_structural(schema);
            // What nobody wrote must not appear in a status.
            if let Some(status) = schema.properties.as_mut().and_then(|properties| properties.get_mut("status")) {
                walk(status, &mut |schema| schema.default = None);
            }
            // As in the Go CRDs: an object without spec is useless, but one that is stored must stay deletable.
            schema.required = None;
            schema.title = None;
        }
    }
    crd
}

/// `nullable`, `null` and defaults that say nothing are how a derive speaks of an `Option` or of
/// `#[serde(default)]`; here they would let nulls be stored and fill objects by themselves.
fn make_structural(root: &mut JSONSchemaProps) {
    walk(root, &mut |schema| {
        schema.nullable = None;
        if let Some(values) = &mut schema.enum_ {
            values.retain(|value| !value.0.is_null());
        }
        if schema.default.as_ref().is_some_and(|default| is_empty(&default.0)) {
            schema.default = None;
        }
    });
}

fn walk(schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        walk(property, visit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => walk(items, visit),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|items| walk(items, visit)),
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => walk(values, visit),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
