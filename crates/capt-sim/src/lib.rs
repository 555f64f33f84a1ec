//! A Kubernetes world in one process, without I/O and in virtual time.
//!
//! Two depths of it, and what is played in them:
//!
//! * [`simulation`]: CAPT's own passes, through the same [`Executor`](capt_reconcile::executor::Executor)
//!   that the operator runs, over a small [`api`] with as much of an API server as their requests need.
//!   Whole lives take milliseconds, so that thousands can be tried and small worlds explored to the end.
//! * [`world`]: the full [`apiserver`] behind HTTP ([`service`]) and the kinds of [`definitions`]. The
//!   unchanged operator and kubectl work with it: the sandbox.
//!
//! [`scenario`]: a life as a document, played in the simulation, with expectations.
//!
//! [`core`] is Cluster API core in both, [`provider`] is provider-terraform. The models follow what the
//! real components were seen to do.

pub mod api;
pub mod apiserver;
pub mod core;
pub mod definitions;
pub mod laws;
pub mod objects;
pub mod provider;
pub mod scenario;
pub mod service;
pub mod simulation;
pub mod terraform;
pub mod world;

pub use api::Api;
pub use simulation::Simulation;
pub use world::World;
