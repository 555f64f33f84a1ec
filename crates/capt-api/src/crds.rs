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

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(kind: &str) -> CustomResourceDefinition {
        all().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap()
    }

    /// Without them core propagates nothing; with a wrong kind of template ClusterClass makes a kind
    /// that does not exist.
    #[test]
    fn the_kinds_that_core_meets_follow_both_contracts() {
        for kind in ["CAPTCluster", "CAPTControlPlane", "CAPTClusterTemplate", "CAPTControlPlaneTemplate"] {
            let crd = crd(kind);
            let labels = crd.metadata.labels.unwrap();
            for contract in CONTRACTS {
                assert_eq!(labels.get(contract).map(String::as_str), Some("v1beta1"), "{kind} {contract}");
            }
            assert!(crd.spec.names.categories.unwrap().contains(&"cluster-api".to_owned()), "{kind}");
            assert_eq!(crd.metadata.name.unwrap(), format!("{}s.{}", kind.to_lowercase(), crd.spec.group));
        }
    }

    #[test]
    fn every_schema_is_structural_and_free_of_what_a_derive_leaves() {
        for crd in all() {
            let name = crd.metadata.name.clone().unwrap();
            for version in crd.spec.versions {
                let mut schema = version.schema.unwrap().open_api_v3_schema.unwrap();
                walk(&mut schema, &mut |schema| {
                    let preserves = schema.x_kubernetes_preserve_unknown_fields == Some(true);
                    assert!(schema.type_.is_some() || preserves, "{name}: a field without type");
                    assert_eq!(schema.nullable, None, "{name}");
                    assert!(schema.any_of.is_none() && schema.one_of.is_none(), "{name}");
                    let format = schema.format.as_deref().unwrap_or_default();
                    assert!(!format.starts_with("uint"), "{name}: {format} is unknown to the API server");
                    let is_text = schema.type_.as_deref() == Some("string");
                    let bounded = schema.max_length.is_some() || schema.enum_.is_some() || format == "date-time";
                    assert!(!is_text || bounded, "{name}: an unbounded text: {:?}", schema.description);
                    let is_list = schema.type_.as_deref() == Some("array");
                    assert!(
                        !is_list || schema.max_items.is_some(),
                        "{name}: an unbounded list: {:?}",
                        schema.description
                    );
                    let is_map = schema.additional_properties.is_some();
                    assert!(
                        !is_map || schema.max_properties.is_some(),
                        "{name}: an unbounded map: {:?}",
                        schema.description
                    );
                });
            }
        }
    }

    #[test]
    fn the_status_of_every_kind_with_a_controller_is_a_subresource() {
        for kind in ["CAPTCluster", "CAPTControlPlane", "WorkspaceTemplate", "WorkspaceTemplateApply"] {
            let subresources = crd(kind).spec.versions.remove(0).subresources.unwrap();
            assert!(subresources.status.is_some() && subresources.scale.is_none(), "{kind}");
        }
    }
}
