//! Failures that controllers like this one are known for, each as a test that CAPT does not have it.
//!
//! A test is named after its case; `docs/cases.md` says of each case what goes wrong elsewhere and where its
//! test is. What only a real API server or the operator's own parts can show is tested there.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

#[path = "../common/mod.rs"]
mod common;
#[path = "../workspaces/mod.rs"]
mod workspaces;

mod help;

mod conditions;
mod deadlines;
mod deletion;
mod endpoints;
mod failures;
mod kubeconfig;
mod names;
mod ownership;
mod phases;
mod rest;
mod robustness;
