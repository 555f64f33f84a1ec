//! What we read of objects whose kinds belong to others: Cluster, Workspace, Secret.
//!
//! Parsing is total. A field of an unexpected type counts as absent, because an odd field in
//! somebody's object must stop neither a pass nor a list. Nothing here is ever written back.

pub mod cluster;
pub mod meta;
pub mod secret;
pub mod workspace;

pub use cluster::{ClusterVersion, ClusterView, RefView};
pub use meta::{ForeignCondition, OwnerView, ViewMeta};
pub use secret::{SecretBytes, SecretView};
pub use workspace::{WorkspaceApi, WorkspaceView};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// JSON whose keys are those that the views look for, so that odd values stand in their places.
    fn odd_json() -> impl Strategy<Value = Value> {
        const KEYS: [&str; 24] = [
            "metadata",
            "name",
            "namespace",
            "uid",
            "generation",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "spec",
            "status",
            "paused",
            "controlPlaneEndpoint",
            "host",
            "port",
            "conditions",
            "type",
            "atProvider",
            "outputs",
            "data",
            "stringData",
            "infrastructureRef",
            "initialization",
            "v1beta2",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop::sample::select(&["", "Ready", "True", "aGk=", "not base64!", "a/b"][..]).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..8).prop_map(|fields| {
                    Value::from(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_object_is_too_odd(object in odd_json()) {
            let cluster = ClusterView::parse(&object);
            prop_assert!(cluster.endpoint.is_none_or(|endpoint| endpoint.is_set()));
            for api in WorkspaceApi::ALL {
                let workspace = WorkspaceView::parse(api, &object);
                prop_assert!(workspace.outputs().is_empty() || workspace.at_provider.is_some());
            }
            let secret = SecretView::parse(&object);
            prop_assert!(secret.undecodable.iter().all(|key| !secret.data.contains_key(key)));
        }
    }

    #[test]
    fn an_odd_field_hides_only_itself() {
        let workspace = json!({
            "metadata": {"name": "w", "generation": "two", "labels": {"a": "1", "b": 2}, "finalizers": ["f", 3],
                "ownerReferences": [{"kind": "K"}, {"apiVersion": "g/v1", "kind": "K", "name": "n", "controller": "yes"}]},
            "status": {
                "atProvider": {"outputs": {"vpc_id": "vpc-1", "deep": {"a": [null]}}},
                "conditions": [7, {"type": "Synced"}, {"type": "Ready", "status": "True", "observedGeneration": "x"}],
            },
        });
        let view = WorkspaceView::parse(WorkspaceApi::Cluster, &workspace);
        assert_eq!((view.meta.name.as_str(), view.meta.generation), ("w", 0));
        assert_eq!(view.meta.labels, [("a".to_owned(), "1".to_owned())].into());
        assert_eq!(view.meta.finalizers, ["f"]);
        assert_eq!(view.meta.owner_references.len(), 1);
        assert_eq!(view.meta.owner_references[0].group(), "g");
        assert!(!view.meta.owner_references[0].controller);
        assert_eq!(view.outputs()["vpc_id"], "vpc-1");
        assert_eq!(view.synced, None, "a condition without a status says nothing");
        assert!(view.ready.is_some_and(|ready| ready.is_true() && ready.observed_generation.is_none()));
    }

    #[test]
    fn a_workspace_without_status_says_nothing() {
        let view =
            WorkspaceView::parse(WorkspaceApi::Namespaced, &json!({"metadata": {"name": "w", "namespace": "ns"}}));
        assert_eq!(view.meta.namespace.as_deref(), Some("ns"));
        assert!(view.outputs().is_empty());
        assert_eq!((view.synced, view.ready, view.at_provider, view.spec), (None, None, None, Value::Null));
    }

    #[test]
    fn the_apis_of_workspaces_are_told_apart_by_group() {
        for api in WorkspaceApi::ALL {
            assert_eq!(WorkspaceApi::of_api_version(api.api_version()), Some(api));
            assert_eq!(api.api_version(), format!("{}/{}", api.group(), WorkspaceApi::VERSION));
        }
        assert_eq!(WorkspaceApi::of_api_version("tf.upbound.io/v2"), Some(WorkspaceApi::Cluster));
        assert_eq!(WorkspaceApi::of_api_version("v1"), None);
        assert!(WorkspaceApi::Namespaced.is_namespaced() && !WorkspaceApi::Cluster.is_namespaced());
    }
}
