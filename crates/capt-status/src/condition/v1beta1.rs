//! Conditions of the Cluster API contract v1beta1, for readers that know no other: with a severity,
//! and with narrower limits.
//!
//! Place in the flow: a projection of the `metav1` conditions, made last. Nothing is decided on it.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::wire::{Condition, ConditionStatus};
use crate::{text::truncate, time::Time};

/// Longest reason, in bytes.
pub const MAX_REASON: usize = 256;

/// Longest message, in bytes.
pub const MAX_MESSAGE: usize = 10_240;

/// How bad it is that a condition is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Severity {
    /// It is on its way.
    Info,
    /// It may get well by itself.
    Warning,
    /// It needs somebody.
    Error,
}

/// A condition of the contract v1beta1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct V1Beta1Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schemars", schemars(length(min = 1, max = 256)))]
    pub type_: String,
    /// One of True, False, Unknown.
    pub status: ConditionStatus,
    /// How bad it is; only on conditions that are not as they should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// When status, severity, reason or message last changed.
    pub last_transition_time: Time,
    /// Why, as a CamelCase word; absent on conditions that are as they should be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 256)))]
    pub reason: String,
    /// Why, in words; absent rather than empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 10240)))]
    pub message: String,
}

/// `conditions` as conditions of the contract v1beta1.
///
/// `severity` says how bad each one is; it is asked only about conditions that are an issue: False,
/// or True for the types of `negative`. `stored` are the conditions of the last projection: in this
/// contract the transition time moves with severity, reason and message too, and never back.
///
/// ```
/// use capt_status::{Time, condition::{self, Verdict, types, v1beta1::{Severity, project}}, reason};
///
/// let now = Time::from_unix(5);
/// let full = Verdict::new(types::READY, false, reason!("DiskFull"), "disk is full");
/// let conditions = condition::merge(&[], vec![full], 1, now);
/// let old = project(&conditions, &[], &[], |_| Severity::Warning, now);
/// assert_eq!(old[0].severity, Some(Severity::Warning));
/// ```
pub fn project(
    conditions: &[Condition],
    negative: &[&str],
    stored: &[V1Beta1Condition],
    mut severity: impl FnMut(&Condition) -> Severity,
    now: Time,
) -> Vec<V1Beta1Condition> {
    conditions
        .iter()
        .map(|condition| {
            let Condition { type_, status, observed_generation: _, last_transition_time, reason, message } = condition;
            let is_negative = negative.contains(&type_.as_str());
            let (is_issue, is_well) = match status {
                ConditionStatus::True => (is_negative, !is_negative),
                ConditionStatus::False => (!is_negative, is_negative),
                ConditionStatus::Unknown => (false, false),
            };
            let mut projected = V1Beta1Condition {
                type_: type_.clone(),
                status: *status,
                severity: is_issue.then(|| severity(condition)),
                last_transition_time: *last_transition_time,
                reason: if is_well { String::new() } else { cut(reason, MAX_REASON) },
                message: if is_well { String::new() } else { truncate(message, MAX_MESSAGE) },
            };
            if let Some(old) = stored.iter().find(|old| old.type_ == projected.type_) {
                projected.last_transition_time = if projected.says_the_same_as(old) {
                    old.last_transition_time
                } else {
                    now.max(old.last_transition_time)
                };
            }
            projected
        })
        .collect()
}

/// A reason stays one word when it is cut.
fn cut(reason: &str, max: usize) -> String {
    reason.chars().take(max).collect()
}

impl V1Beta1Condition {
    /// Whether everything but the time is equal.
    fn says_the_same_as(&self, other: &Self) -> bool {
        let Self { type_, status, severity, last_transition_time: _, reason, message } = self;
        *type_ == other.type_
            && *status == other.status
            && *severity == other.severity
            && *reason == other.reason
            && *message == other.message
    }
}
