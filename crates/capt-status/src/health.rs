//! Wire types of health: named checks with their results (requirements 003).

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Health of a serving object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Health {
    /// All checks together.
    pub status: HealthStatus,
    /// The checks, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 16)))]
    pub checks: Vec<HealthCheck>,
}

/// Healthy if no check failed, Unhealthy if one did, Unknown if nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum HealthStatus {
    Healthy,
    Unhealthy,
    Unknown,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// DependencyCheck, WorkspaceCheck, EndpointCheck, SecretCheck or ConnectionCheck.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub name: String,
    /// Its result.
    pub status: CheckStatus,
    /// Why, as a CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 1024)))]
    pub reason: String,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 1024)))]
    pub message: String,
    /// When the result last changed.
    pub last_transition_time: Time,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum CheckStatus {
    Passed,
    Failed,
    Unknown,
}
