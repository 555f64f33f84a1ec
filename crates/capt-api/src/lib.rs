//! The CAPT kinds as Rust types and CRDs, and lenient views of the objects of others.
//!
//! Place in the flow: the cache and `plan -f` turn JSON into these types, capt-reconcile decides
//! over them, the executor turns them into JSON again. Names and JSON shapes are those of the Go
//! implementation, whose objects must be read as they are. Nothing here decides anything, and
//! nothing here does I/O.
//!
//! | module | what is in it |
//! |---|---|
//! | [`captcluster`], [`control_plane`] | the two provider kinds of a Cluster |
//! | [`workspace_template`], [`workspace_template_apply`] | a Terraform Workspace as template, and its use |
//! | [`class_templates`] | the two kinds that a ClusterClass needs |
//! | [`common`] | references, endpoint, timeouts and what else several kinds share |
//! | [`names`] | finalizers, labels, annotations, field managers, condition types |
//! | [`foreign`] | Cluster, Workspace and Secret as far as we read them; parsing never fails |
//! | [`crds`] | the CustomResourceDefinitions |

// The derive of `KubeSchema` repeats each type inside a function.
#![allow(unreachable_pub)]

pub mod captcluster;
pub mod class_templates;
pub mod common;
pub mod control_plane;
pub mod crds;
pub mod foreign;
mod lenient;
pub mod names;
mod rules;
mod schema;
pub mod workspace_spec;
pub mod workspace_template;
pub mod workspace_template_apply;

pub use capt_status;
pub use captcluster::{
    CAPTCluster, CAPTClusterSpec, CAPTClusterStatus, FailureDomain, InfrastructureInitialization, VpcConfig,
    VpcTemplateStatus,
};
pub use class_templates::{
    CAPTClusterTemplate, CAPTClusterTemplateResource, CAPTClusterTemplateResourceSpec, CAPTClusterTemplateSpec,
    CAPTControlPlaneTemplate, CAPTControlPlaneTemplateResource, CAPTControlPlaneTemplateResourceSpec,
    CAPTControlPlaneTemplateSpec, TemplateMetadata,
};
pub use common::{ApiEndpoint, SecretReference, TemplateReference, Timeouts, WorkspaceReference};
pub use control_plane::{
    Addon, CAPTControlPlane, CAPTControlPlaneSpec, CAPTControlPlaneStatus, ControlPlaneConfig,
    ControlPlaneInitialization, ControlPlaneVersion, EksDetails, EndpointAccess, GoTimeouts, WorkspaceStatus,
    WorkspaceTemplateStatus,
};
pub use workspace_spec::{
    BoolOrText, ConnectionDetails, ConnectionDetailsMetadata, EnvVar, ForProvider, KeyReference, PolicyReference,
    ReferencePolicy, Var, VarFile, WorkspaceSpec,
};
pub use workspace_template::{
    WorkspaceTemplate, WorkspaceTemplateDefinition, WorkspaceTemplateMetadata, WorkspaceTemplateObjectStatus,
    WorkspaceTemplateSpec,
};
pub use workspace_template_apply::{WorkspaceTemplateApply, WorkspaceTemplateApplySpec, WorkspaceTemplateApplyStatus};
