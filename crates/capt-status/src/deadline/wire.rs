//! A running deadline as `status` keeps it.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::running::Running;
use crate::time::{Span, Time};

/// A deadline that is running.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// Name of the timeout, for example controlPlaneTimeout.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub name: String,
    /// When it started.
    pub started_at: Time,
    /// For how long it stood still in all, because of a pause.
    #[serde(default)]
    pub suspended_for: Span,
}

impl Deadline {
    /// A deadline called `name` that runs since `running`.
    pub fn new(name: impl Into<String>, running: Running) -> Self {
        let Running { started_at, suspended_for } = running;
        Self { name: name.into(), started_at, suspended_for }
    }

    /// What it is without its name.
    pub const fn running(&self) -> Running {
        Running { started_at: self.started_at, suspended_for: self.suspended_for }
    }
}
