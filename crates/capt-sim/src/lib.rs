//! A Kubernetes world in one process, without I/O and in virtual time.
//!
//! Two depths of it:
//!
//! * [`simulation`]: CAPT's own passes, through the same [`Executor`](capt_reconcile::executor::Executor)
//!   that the operator runs, over a small [`api`] with as much of an API server as their requests need
//!   and a [`provider`] that moves one state a step. Whole lives take milliseconds, so that thousands can
//!   be tried and small worlds explored to the end.
//! * [`world`]: the full [`apiserver`] behind HTTP ([`service`]), the kinds of [`definitions`], and a
//!   provider whose runs take their time. The unchanged operator and kubectl work with it: the sandbox.
//!
//! [`core`] is Cluster API core in both. The models follow what the real components were seen to do.

pub mod api;
pub mod apiserver;
pub mod core;
pub mod definitions;
pub mod provider;
pub mod service;
pub mod simulation;
pub mod terraform;
pub mod world;

pub use api::Api;
pub use simulation::Simulation;
pub use world::World;
