//! The built operator beside the real Cluster API core and the real Terraform provider.
//!
//! What it does is seen from outside alone: in the objects, in the order of their changes and in the
//! API server's audit log. Tests that do not look at the operator as a whole share one, in a
//! namespace each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod changes;
mod cluster_class;
mod collision;
mod deletion;
mod diagnostics;
mod disasters;
mod failing;
mod kill;
mod lease;
mod life;
mod namespaced;
mod pause;
mod place;
mod prometheus;
mod retain;
mod rights;
mod rival;
mod scope;
mod standalone;
mod takeover;
mod template;
