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
