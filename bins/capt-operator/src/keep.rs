//! What is kept of an object that a watch or a write delivered.
//!
//! Values of Secrets that are none of our business never stay in memory, so they can reach no log,
//! event or status either: of those only which keys are filled is kept.

use capt_api::names::{CLUSTER_SECRET_TYPE, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP};
use capt_reconcile::{
    managed_fields::is_update_of_status,
    object::{Kind, Object, ObjectKey},
};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::typed;

/// Type of the Secrets into which the provider writes the outputs of a Workspace.
const CONNECTION_SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";
/// Stands for a value that is not ours: the base64 of `x`.
const PLACEHOLDER: &str = "eA==";

/// A parsed object, ready for the cache.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Where it is.
    pub key: ObjectKey,
    /// Its resourceVersion; 0 if it is not a number, which means that its age cannot be told.
    pub resource_version: u64,
    /// What it says.
    pub object: Object,
}

/// What is kept of `object`, an object of `kind` read from a watch of `api_version`.
pub fn from_watch(kind: Kind, api_version: &str, object: DynamicObject) -> Kept {
    let DynamicObject { types: _, mut metadata, data } = object;
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    if !entries.iter().any(|entry| is_update_of_status(entry.operation.as_deref(), entry.subresource.as_deref())) {
        // Mostly so, and it is large: it is not even turned into JSON.
        metadata.managed_fields = None;
    }
    let mut value = if data.is_object() { data } else { json!({}) };
    // Items of a list may lack both, and the form of a Cluster depends on its version.
    value["apiVersion"] = json!(api_version);
    value["kind"] = json!(kind.name());
    // Metadata that was just deserialized serializes; if it did not, the object would have no name.
    value["metadata"] = serde_json::to_value(metadata).unwrap_or_default();
    from_value(kind, value)
}

/// What is kept of `value`, an object of `kind`.
pub fn from_value(kind: Kind, mut value: Value) -> Kept {
    forget_managers(kind, &mut value);
    if kind == Kind::Secret && !is_ours(&value) {
        hide_values(&mut value);
    }
    let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
    let key = ObjectKey::new(kind, text("namespace"), text("name"));
    let resource_version = text("resourceVersion").parse().unwrap_or_default();
    Kept { key, resource_version, object: parse(kind, &value) }
}

/// Who manages which field is large and nobody's business, unless an update of a status of ours is to be taken over.
fn forget_managers(kind: Kind, value: &mut Value) {
    let is_update = |entry: &Value| is_update_of_status(entry["operation"].as_str(), entry["subresource"].as_str());
    let of_ours = matches!(kind, Kind::CaptCluster | Kind::CaptControlPlane | Kind::Apply);
    if of_ours && value["metadata"]["managedFields"].as_array().is_some_and(|entries| entries.iter().any(is_update)) {
        return;
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}

/// As `Object::parse`, but what is malformed names its field.
fn parse(kind: Kind, value: &Value) -> Object {
    match typed::check(kind, value) {
        Ok(()) => Object::parse(kind, value),
        Err(error) => Object::malformed(kind, &error, value),
    }
}

fn is_ours(secret: &Value) -> bool {
    let type_ = secret["type"].as_str().unwrap_or_default();
    type_ == CONNECTION_SECRET_TYPE
        || type_ == CLUSTER_SECRET_TYPE
        || secret["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(is_owner_of_ours)
}

fn is_owner_of_ours(reference: &Value) -> bool {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    // Other providers share these groups.
    (group == INFRASTRUCTURE_GROUP || group == CONTROL_PLANE_GROUP) && Kind::find(group, text("kind")).is_some()
}

fn hide_values(secret: &mut Value) {
    for field in ["data", "stringData"] {
        for value in secret[field].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
            if value.as_str() != Some("") {
                *value = json!(PLACEHOLDER);
            }
        }
    }
    // A copy of the whole object as somebody once applied it, values included.
    if let Some(annotations) = secret["metadata"]["annotations"].as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(type_: &str, owner: &Value) -> Value {
        json!({
            "metadata": {"name": "s", "namespace": "ns", "resourceVersion": "7", "ownerReferences": [owner],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"}},
            "type": type_,
            "data": {"token": "c2VjcmV0", "empty": ""},
        })
    }

    fn token(value: Value) -> Vec<u8> {
        match from_value(Kind::Secret, value).object {
            Object::Secret(secret) => secret.data["token"].expose().to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_kept_of_our_secrets_only() {
        let ours = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply"});
        let neighbour = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster"});
        for (type_, owner, expected) in [
            ("Opaque", &neighbour, "x"),
            ("Opaque", &ours, "secret"),
            (CONNECTION_SECRET_TYPE, &neighbour, "secret"),
            (CLUSTER_SECRET_TYPE, &neighbour, "secret"),
        ] {
            assert_eq!(token(secret(type_, owner)), expected.as_bytes(), "{type_} {owner}");
        }
    }

    #[test]
    fn of_other_secrets_only_which_keys_are_filled_stays() {
        let kept = from_value(Kind::Secret, secret("Opaque", &Value::Null));
        let Object::Secret(kept) = kept.object else { panic!("no Secret") };
        assert!(kept.data["empty"].is_empty() && !kept.data["token"].is_empty());
        assert!(kept.meta.annotations.is_empty(), "a copy of the values");
    }

    #[test]
    fn an_object_of_a_watch_gets_its_version_and_loses_its_managed_fields() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "12", "managedFields": [{"manager": "m"}]},
            "spec": {"controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "CAPTControlPlane", "name": "b"}},
        }))
        .unwrap();
        let kept = from_watch(Kind::Cluster, "cluster.x-k8s.io/v1beta2", object);
        assert_eq!((kept.key, kept.resource_version), (ObjectKey::new(Kind::Cluster, "ns", "a"), 12));
        let Object::Cluster(cluster) = kept.object else { panic!("no Cluster") };
        assert_eq!(cluster.control_plane_ref.as_ref().unwrap().name, "b");
    }

    #[test]
    fn who_manages_what_is_kept_while_there_is_a_status_to_take_over() {
        let entry = |operation: &str| json!({"manager": "m", "operation": operation, "subresource": "status"});
        for (kind, entries, kept) in [
            (Kind::Apply, json!([{"manager": "kubectl", "operation": "Update"}, entry("Update")]), 2),
            (Kind::Apply, json!([{"manager": "kubectl", "operation": "Update"}, entry("Apply")]), 0),
        ] {
            let value = json!({"metadata": {"name": "a", "namespace": "ns", "managedFields": entries},
                "spec": {"templateRef": {"name": "t"}}});
            let by_watch = from_watch(kind, "v1", serde_json::from_value(value.clone()).unwrap());
            for Kept { key: _, resource_version: _, object } in [by_watch, from_value(kind, value)] {
                let Object::Apply(apply) = object else { panic!("no apply") };
                assert_eq!(apply.metadata.managed_fields.as_deref().unwrap_or_default().len(), kept);
            }
        }
    }

    #[test]
    fn an_object_of_ours_that_does_not_parse_is_kept_with_the_reason() {
        let kept =
            from_value(Kind::Apply, json!({"metadata": {"name": "a", "namespace": "ns"}, "spec": {"templateRef": 5}}));
        let Object::Malformed(malformed) = kept.object else { panic!("parses") };
        assert!(malformed.reason.contains("spec.templateRef"), "{malformed}");
        assert_eq!(malformed.meta.name, "a");
        assert_eq!(kept.resource_version, 0);
    }
}
