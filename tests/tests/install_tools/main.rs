//! The install files in the hands of the real kubectl, helm and clusterctl, against a real API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod clusterctl;
mod go;
mod helm;
mod kubectl;
mod promtool;
mod run;
