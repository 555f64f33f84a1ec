//! The program as people call it, the roles it asks for, and its kube layer against the modelled API server.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

#[cfg(feature = "sandbox")]
mod cases;
mod classify;
mod first_pass;
mod help;
mod looking;
mod plan;
mod rbac;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sandbox")]
mod simulate;
#[cfg(all(feature = "otlp", feature = "sandbox"))]
mod traces;
#[cfg(feature = "sandbox")]
mod virtual_time;
