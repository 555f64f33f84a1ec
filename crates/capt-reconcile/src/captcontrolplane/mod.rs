//! The pass of a CAPTControlPlane: the EKS Workspace, its endpoint, its CA and kubeconfig Secrets.
//!
//! It waits for its owner and for the VPC, hands the VPC's outputs on as variables, and publishes
//! endpoint, Secrets and status together, so that `initialized` is never said before a kubeconfig
//! is there.

mod bounds;
mod configure;
mod connection;
mod details;
mod endpoint;
mod kubeconfig;
mod observe;
mod plan;
mod provision;
mod report;
mod secrets;
mod spot;
pub(crate) mod unsupported;
mod variables;

pub use observe::{Observed, apply_name, further_applies, infrastructure_key, observe, secret_names};
pub(crate) use plan::limits;
pub use plan::plan;
