//! The pass of a Cluster: who publishes its status, and where nobody else does, what it is.
//!
//! Beside Cluster API core nothing is written that core owns: the provider objects publish what the contract asks
//! for, and core computes the rest. Where no core runs, this pass computes what core would, from the stored
//! statuses of the provider objects and therefore after them. [`mode`] decides which of the two it is, for each
//! Cluster; [`formula`] is core's rule and knows no mode.

pub mod formula;
pub mod mode;
mod observe;
mod plan;

pub use observe::{Observed, Referenced, observe};
pub use plan::plan;

#[cfg(test)]
mod tests;
