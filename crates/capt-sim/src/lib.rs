//! A Kubernetes world in one process, without I/O and in virtual time.
//!
//! * [`api`]: the API server, as far as the executor's requests need it.
//! * [`core`]: what Cluster API core does with a Cluster and the two provider objects.
//! * [`provider`]: what provider-terraform does with a Workspace.
//! * [`simulation`]: CAPT's own passes over that world, through the same
//!   [`Executor`](capt_reconcile::executor::Executor) that the operator runs.
//!
//! The models follow what the real components were seen to do, on the happy path and on deletion.
//! Faults, watches for real controllers and the remaining life of a Workspace will come to the
//! models they belong to.

pub mod api;
pub mod core;
pub mod provider;
pub mod simulation;

pub use api::Api;
pub use simulation::Simulation;
