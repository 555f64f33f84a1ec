//! Wire types of progress: the operation in flight and the past ones (requirements 003).

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::time::{Span, Time};

/// What is being done, how far it is, and what was done before.
///
/// ```
/// use capt_status::{Operation, Progress};
///
/// let json = r#"{"currentOperation":"Create","percentComplete":60,"milestone":"3 of 5"}"#;
/// let progress: Progress = serde_json::from_str(json)?;
/// assert_eq!((progress.current_operation, progress.percent_complete), (Some(Operation::Create), Some(60)));
/// assert_eq!(serde_json::to_string(&progress)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The operation in flight, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_operation: Option<Operation>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it is given up on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// How far it is, from its milestones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0, max = 100)))]
    pub percent_complete: Option<i32>,
    /// Milestones passed, "3 of 5".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub milestone: Option<String>,
    /// Estimate from the past of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_time_remaining: Option<Span>,
    /// The last operations, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 10)))]
    pub history: Vec<OperationRecord>,
}

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum Operation {
    Create,
    Update,
    Upgrade,
    Recover,
    Delete,
}

/// An operation that ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationRecord {
    /// What was done.
    pub operation: Operation,
    /// When it started.
    pub started_at: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// How it ended.
    pub result: OperationResult,
    /// Why it ended so, where there is something to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 1024)))]
    pub message: String,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum OperationResult {
    Succeeded,
    Failed,
    Superseded,
}
