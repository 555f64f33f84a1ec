//! The pass of a CAPTCluster: the VPC, made from a template or existing, and the contract's fields.
//!
//! It waits for its owner, makes the VPC's apply, publishes what comes out of it, and on deletion
//! lets the control plane go first. Deadlines, failure classes and recovery will be planned in
//! [`plan`], writes to `Cluster.status` (standalone mode) after the object's own status.

mod observe;
mod plan;

pub use observe::{Observed, apply_name, control_planes, observe};
pub(crate) use plan::limits;
pub use plan::plan;
