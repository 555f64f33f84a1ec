//! One reconcile pass as a value.
//!
//! ```text
//! World --observe--> Observed --plan(now)--> Plan --Executor--> requests
//! ```
//!
//! * [`world`] holds what is known of the cluster, [`observe`](pass::observe) takes out of it what
//!   one pass depends on and records what it read; with that [`triggers`] tells whoever feeds the world which
//!   passes an event concerns.
//! * [`plan`](pass::plan) is total, deterministic and comparable; an empty plan is the fixpoint.
//! * [`executor`] is a machine without I/O: it says which request comes next and takes the answer.
//!   The kube layer, the simulator and the tests drive the same one.
//!
//! This crate must not do I/O, read a clock or the environment, or depend on the order of a map: what is found by a
//! hash is in a `Lookup`, which cannot be walked through.

pub mod captcluster;
pub mod captcontrolplane;
pub mod child;
pub mod cluster;
pub mod dependencies;
pub mod executor;
pub mod hash;
mod lookup;
pub mod managed_fields;
pub mod meanings;
pub mod memory;
pub mod meta;
pub mod object;
pub mod outputs;
pub mod ownership;
pub mod pass;
pub mod pause;
pub mod plan;
pub mod provider;
pub mod reasons;
pub mod recovery;
pub mod render;
pub mod report;
pub mod status;
pub mod triggers;
pub mod was_ready;
pub mod workspace_template_apply;
pub mod world;
