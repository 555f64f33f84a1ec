//! Was this infrastructure ever ready? Derived, since a move or a restore loses status.
//!
//! With such a history and without its Workspace nothing is made: it would be a second VPC or a
//! second control plane beside one that runs. What is not known counts as ready.

use capt_api::{CAPTCluster, CAPTControlPlane, foreign::ClusterView};

/// Whether the control plane was ready by what its object says.
pub fn control_plane(object: &CAPTControlPlane) -> bool {
    let endpoint = object.spec.control_plane_endpoint.as_ref().is_some_and(capt_api::ApiEndpoint::is_set);
    endpoint
        || object.status.as_ref().is_some_and(|status| {
            status.ready
                || status.initialized
                || status.secrets_ready
                || status.endpoint.is_some()
                || status.initialization.as_ref().is_some_and(|latch| latch.control_plane_initialized == Some(true))
                || status.workspace_template_status.as_ref().is_some_and(|template| !template.outputs.is_empty())
                || status.workspace_status.as_ref().is_some_and(|workspace| {
                    workspace
                        .at_provider
                        .as_ref()
                        .and_then(|at_provider| at_provider["outputs"].as_object())
                        .is_some_and(|outputs| !outputs.is_empty())
                })
        })
}

/// Whether Cluster API remembers that the control plane was ready.
pub const fn control_plane_of(cluster: &ClusterView) -> bool {
    cluster.control_plane_initialized || cluster.endpoint.is_some()
}

/// Whether Cluster API remembers that the VPC was ready.
pub const fn vpc_of(cluster: &ClusterView) -> bool {
    cluster.infrastructure_provisioned || control_plane_of(cluster)
}

/// Whether the VPC was ready by what the CAPTCluster says.
pub fn vpc(object: &CAPTCluster) -> bool {
    object.status.as_ref().is_some_and(|status| {
        status.ready
            || status.vpc_id.is_some()
            || status.endpoint.is_some()
            || status.initialization.as_ref().is_some_and(|latch| latch.provisioned == Some(true))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn says(endpoint: &Value, status: &Value) -> bool {
        let spec = json!({"version": "1.31", "workspaceTemplateRef": {"name": "t"}, "controlPlaneEndpoint": endpoint});
        let object = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane",
            "metadata": {"name": "c"}, "spec": spec, "status": status});
        control_plane(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn each_sign_of_a_control_plane_that_was_ready_is_enough() {
        for status in [
            json!({"ready": true}),
            json!({"initialized": true}),
            json!({"secretsReady": true}),
            json!({"endpoint": "a.example.com:443"}),
            json!({"initialization": {"controlPlaneInitialized": true}}),
            json!({"workspaceTemplateStatus": {"ready": false, "outputs": {"cluster_endpoint": "x"}}}),
            json!({"workspaceStatus": {"ready": false, "atProvider": {"outputs": {"cluster_endpoint": "x"}}}}),
        ] {
            assert!(says(&Value::Null, &status), "{status}");
        }
        assert!(says(&json!({"host": "a.example.com", "port": 443}), &json!({})));
        for status in [
            Value::Null,
            json!({}),
            json!({"ready": false, "initialized": false, "secretsReady": false}),
            json!({"initialization": {"controlPlaneInitialized": false}}),
            json!({"initialization": {}}),
            json!({"workspaceTemplateStatus": {"ready": false, "outputs": {}}}),
            json!({"workspaceStatus": {"ready": false, "atProvider": {"outputs": {}}}}),
        ] {
            assert!(!says(&json!({"host": "", "port": 0}), &status), "{status}");
        }
    }

    #[test]
    fn each_sign_of_a_vpc_that_was_ready_is_enough() {
        let says = |status: &Value| {
            let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
                "metadata": {"name": "c"}, "spec": {"region": "eu-west-1"}, "status": status});
            vpc(&serde_json::from_value(object).unwrap())
        };
        for status in [
            json!({"ready": true}),
            json!({"vpcId": "vpc-1"}),
            json!({"endpoint": "a.example.com:443"}),
            json!({"initialization": {"provisioned": true}}),
        ] {
            assert!(says(&status), "{status}");
        }
        for status in [json!({}), json!({"ready": false}), json!({"initialization": {"provisioned": false}})] {
            assert!(!says(&status), "{status}");
        }
    }

    #[test]
    fn what_a_cluster_remembers_counts_too() {
        let cluster = |spec: Value, initialization: Value| {
            ClusterView::parse(&json!({"spec": spec, "status": {"initialization": initialization}}))
        };
        let none = cluster(json!({}), json!({}));
        assert_eq!((control_plane_of(&none), vpc_of(&none)), (false, false));
        let vpc = cluster(json!({}), json!({"infrastructureProvisioned": true}));
        assert_eq!((control_plane_of(&vpc), vpc_of(&vpc)), (false, true));
        let initialized = cluster(json!({}), json!({"controlPlaneInitialized": true}));
        assert_eq!((control_plane_of(&initialized), vpc_of(&initialized)), (true, true));
        let endpoint = cluster(json!({"controlPlaneEndpoint": {"host": "a.example.com", "port": 443}}), json!({}));
        assert_eq!((control_plane_of(&endpoint), vpc_of(&endpoint)), (true, true));
    }
}
