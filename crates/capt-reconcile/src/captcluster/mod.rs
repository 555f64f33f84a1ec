//! The pass of a CAPTCluster: the VPC, made from a template or existing, and the contract's fields.
//!
//! It waits for its owner, makes the VPC's apply, publishes what comes out of it, and on deletion lets the control
//! plane go first. It does not write to the Cluster: that pass is in [`cluster`](crate::cluster).

mod observe;
mod plan;

pub(crate) use observe::vpc;
pub use observe::{Observed, apply_name, control_planes, observe};
pub(crate) use plan::limits;
pub use plan::plan;
