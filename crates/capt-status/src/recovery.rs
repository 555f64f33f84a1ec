//! Wire types of recovery: the strategy a user asks for and what was tried (requirements 003).

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::time::{Span, Time};

/// What to do about failures that may pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecoveryStrategy {
    /// Attempts before the object is Failed; 0 means never act. 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0, max = 100)))]
    pub max_retries: Option<i32>,
    /// How long to wait between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_config: Option<BackoffConfig>,
    /// Actions of one attempt, in order; RetryWorkspace if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 8)))]
    pub actions: Option<Vec<RecoveryAction>>,
}

/// Exponential backoff between attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackoffConfig {
    /// Before the first attempt; 30s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_interval: Option<Span>,
    /// Factor from one interval to the next; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 1, max = 10)))]
    pub multiplier: Option<i32>,
    /// Longest interval; 10m if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_interval: Option<Span>,
}

/// One recovery action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct RecoveryAction {
    /// What to do.
    #[serde(rename = "type")]
    pub type_: ActionType,
    /// Parameters of the action; RecreateWorkspace needs confirm: "true".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "parameters"))]
    pub parameters: BTreeMap<String, String>,
    /// How long the action may take; 10m if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

#[cfg(feature = "schemars")]
fn parameters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 8,
        "additionalProperties": {"type": "string", "maxLength": 256},
    })
}

/// Kind of a recovery action.
///
/// Reread looks again without a write, RetryWorkspace asks the provider to try again,
/// RecreateWorkspace deletes and makes a Workspace that was never ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum ActionType {
    Reread,
    RetryWorkspace,
    RecreateWorkspace,
}

/// What was tried after a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Attempts so far.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0)))]
    pub attempts: i32,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_time: Option<Time>,
    /// When the next attempt begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Time>,
    /// The action that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_action: Option<ActionType>,
    /// How the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub last_result: Option<String>,
    /// Whether the budget is spent.
    #[serde(default)]
    pub escalated: bool,
}
