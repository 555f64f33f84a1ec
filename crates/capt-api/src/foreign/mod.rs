//! What we read of objects whose kinds belong to others: Cluster, Workspace, Secret.
//!
//! Parsing is total. A field of an unexpected type counts as absent, because an odd field in
//! somebody's object must stop neither a pass nor a list. Nothing here is ever written back.

pub mod cluster;
pub mod meta;
pub mod secret;
pub mod workspace;

pub use cluster::{ClusterView, RefView};
pub use meta::{ForeignCondition, OwnerView, ViewMeta};
pub use secret::{SecretBytes, SecretView};
pub use workspace::{WorkspaceApi, WorkspaceView};
