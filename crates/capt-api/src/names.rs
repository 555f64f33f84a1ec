//! Names on the wire that are not fields: finalizers, labels, annotations, field managers and
//! condition types. Finalizers and the `Go` condition types are those of the Go implementation.

/// Finalizer of CAPTCluster.
pub const CAPTCLUSTER_FINALIZER: &str = "infrastructure.cluster.x-k8s.io/captcluster";
/// Finalizer of CAPTControlPlane.
pub const CONTROL_PLANE_FINALIZER: &str = "controlplane.cluster.x-k8s.io/captcontrolplane";
/// Finalizer of WorkspaceTemplateApply.
pub const APPLY_FINALIZER: &str = "infrastructure.cluster.x-k8s.io/finalizer";
/// Finalizer that Cluster API core sets on a Cluster.
pub const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// Label on every object that belongs to a Cluster: the Cluster's name.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label on an object that only one instance of a provider may reconcile.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label on a Workspace: uid of the apply it belongs to.
pub const OWNER_UID_LABEL: &str = "capt.cluster.x-k8s.io/owner-uid";

/// Annotation on a Workspace: namespace of the apply it belongs to.
pub const OWNER_NAMESPACE_ANNOTATION: &str = "capt.cluster.x-k8s.io/owner-namespace";
/// Annotation on a Workspace: name of the apply it belongs to.
pub const OWNER_NAME_ANNOTATION: &str = "capt.cluster.x-k8s.io/owner-name";
/// Annotation on a Workspace: selects the Terraform state. Set when it is created, never changed.
pub const EXTERNAL_NAME_ANNOTATION: &str = "crossplane.io/external-name";
/// Annotation on a Workspace: the provider has begun to create.
pub const EXTERNAL_CREATE_PENDING_ANNOTATION: &str = "crossplane.io/external-create-pending";
/// Annotation on a Workspace: the provider has created at least once.
pub const EXTERNAL_CREATE_SUCCEEDED_ANNOTATION: &str = "crossplane.io/external-create-succeeded";
/// Annotation on a Workspace: the last creation failed.
pub const EXTERNAL_CREATE_FAILED_ANNOTATION: &str = "crossplane.io/external-create-failed";
/// Annotation on a Workspace: the provider leaves it alone while it says `true`.
pub const CROSSPLANE_PAUSED_ANNOTATION: &str = "crossplane.io/paused";
/// Annotation on a Workspace: it was paused by us, so that only such a pause is ever lifted by us.
pub const PAUSE_MARKER_ANNOTATION: &str = "capt.cluster.x-k8s.io/paused";
/// Annotation on a Workspace that was taken over with a spec that differs from what its apply renders
/// to: hash of that rendering. While it is there the spec is not written.
pub const TAKEOVER_BASELINE_ANNOTATION: &str = "capt.cluster.x-k8s.io/takeover-baseline";

/// Annotation on any object: present with any value means paused.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation on a CAPTCluster: somebody else manages it, we touch nothing.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Annotation that makes `clusterctl move` wait.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Annotation on a Cluster: value of the variable `environment`.
pub const ENVIRONMENT_ANNOTATION: &str = "capt.dev/environment";
/// Annotation on a Cluster: region where neither provider object names one.
pub const REGION_ANNOTATION: &str = "cluster.x-k8s.io/region";

/// Annotation on a provider object: any new value restarts it after Failed.
pub const RETRY_ANNOTATION: &str = "capt.cluster.x-k8s.io/retry";
/// Annotation on an apply: uid of a Workspace of unknown origin that it may take.
pub const ADOPT_ANNOTATION: &str = "capt.cluster.x-k8s.io/adopt";
/// Annotation on an apply: hash of the pending changes that may be applied after a takeover; taken away
/// once they are.
pub const APPLY_PENDING_ANNOTATION: &str = "capt.cluster.x-k8s.io/apply-pending";
/// Annotation on an apply or its owner: name of the apply whose lost Workspace may be made anew.
pub const RECREATE_WORKSPACE_ANNOTATION: &str = "capt.cluster.x-k8s.io/recreate-workspace";
/// Annotation on an apply of a provider object: its owner has said what it wants, so that what the apply
/// renders to is what it will be. Before that nothing is taken over.
pub const INPUTS_SETTLED_ANNOTATION: &str = "capt.cluster.x-k8s.io/inputs-settled";
/// Annotation on an apply of a provider object: kind and name of that, for example `CAPTCluster/demo`. It says whose
/// the apply is where its owner references were lost, as by a deletion that orphans or by a restore.
pub const OWNER_ANNOTATION: &str = "capt.cluster.x-k8s.io/owner";
/// Annotation on an apply: `cluster` or `namespaced`, the kind of Workspace to make.
pub const WORKSPACE_API_ANNOTATION: &str = "capt.cluster.x-k8s.io/workspace-api";

/// Field manager of the CAPTCluster controller.
pub const CAPTCLUSTER_MANAGER: &str = "capt-captcluster";
/// Field manager of the CAPTControlPlane controller.
pub const CONTROL_PLANE_MANAGER: &str = "capt-controlplane";
/// Field manager of the WorkspaceTemplateApply controller.
pub const APPLY_MANAGER: &str = "capt-apply";
/// Field manager of writes to Cluster.status (standalone mode only).
pub const CLUSTER_STATUS_MANAGER: &str = "capt-cluster-status";

/// Group of the Cluster kind.
pub const CLUSTER_GROUP: &str = "cluster.x-k8s.io";
/// Group of CAPTCluster, WorkspaceTemplate and WorkspaceTemplateApply.
pub const INFRASTRUCTURE_GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Group of CAPTControlPlane.
pub const CONTROL_PLANE_GROUP: &str = "controlplane.cluster.x-k8s.io";
/// Version of all CAPT kinds.
pub const VERSION: &str = "v1beta1";
/// Type of the Secrets that the Cluster API contract names.
pub const CLUSTER_SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// Condition types of our kinds.
pub mod conditions {
    /// The object is provisioned and serves.
    pub const READY: &str = "Ready";
    /// The object serves, whatever operation is in flight.
    pub const AVAILABLE: &str = "Available";
    /// Work is in flight (kstatus).
    pub const RECONCILING: &str = "Reconciling";
    /// No progress without a person (kstatus).
    pub const STALLED: &str = "Stalled";
    /// The object is paused.
    pub const PAUSED: &str = "Paused";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
    /// All health checks of a serving object pass.
    pub const HEALTHY: &str = "Healthy";
    /// CAPTCluster: the VPC is there (Go).
    pub const VPC_READY: &str = "VPCReady";
    /// CAPTCluster: the VPC is being made (Go).
    pub const VPC_CREATING: &str = "VPCCreating";
    /// CAPTCluster: making the VPC failed (Go).
    pub const VPC_FAILED: &str = "VPCFailed";
    /// CAPTCluster: no owner Cluster yet (Go).
    pub const WAITING_FOR_CLUSTER: &str = "WaitingForCluster";
    /// CAPTControlPlane: it is being made (Go).
    pub const CREATING: &str = "Creating";
    /// CAPTControlPlane: it accepts requests (Go).
    pub const INITIALIZED: &str = "Initialized";
    /// CAPTControlPlane: making it failed (Go).
    pub const FAILED: &str = "Failed";
    /// CAPTControlPlane: the provider accepted the Workspace.
    pub const WORKSPACE_SYNCED: &str = "WorkspaceSynced";
    /// CAPTControlPlane: the Workspace is applied.
    pub const WORKSPACE_READY: &str = "WorkspaceReady";
    /// CAPTControlPlane: host and port are known.
    pub const ENDPOINT_AVAILABLE: &str = "EndpointAvailable";
    /// CAPTControlPlane: CA and kubeconfig Secrets are current.
    pub const SECRETS_READY: &str = "SecretsReady";
    /// CAPTControlPlane: an update or upgrade is in flight.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// CAPTControlPlane: the account has the role for Spot instances; only where applies look for it.
    pub const SPOT_ROLE_READY: &str = "SpotRoleReady";
    /// Workspace and apply: the provider accepted the spec.
    pub const SYNCED: &str = "Synced";
    /// Apply: edits from before the takeover wait for a release.
    pub const PENDING_TAKEOVER_CHANGES: &str = "PendingTakeoverChanges";
    /// Cluster: its API server answers core.
    pub const REMOTE_CONNECTION_PROBE: &str = "RemoteConnectionProbe";
}
