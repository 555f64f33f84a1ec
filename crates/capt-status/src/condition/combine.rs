//! What a summary and an aggregate have in common: which conditions are issues, what follows for
//! the one condition that stands for them, and how messages become bullets.
//!
//! The rules and the layout of messages are those of Cluster API (`util/conditions`, default merge
//! strategy), so that objects of ours read as its own do.

use alloc::{format, string::String, vec::Vec};

use super::{
    names::{ConditionType, Reason},
    verdict::Verdict,
    wire::{AnyCondition, ConditionStatus},
};
use crate::time::Time;

/// Why conditions cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// No types were given.
    #[error("no condition types to summarize: name at least one")]
    NoTypes,
    /// The summary would contain itself.
    #[error("the summary of type {0} cannot include {0}: take it out of the list of types")]
    TargetIncluded(String),
    /// Every type is missing, and missing ones are ignored.
    #[error("none of the conditions to summarize is there: ignore fewer missing types")]
    NothingToSummarize,
    /// No objects were given.
    #[error("no objects to aggregate over: say what the condition is without any")]
    NoSources,
}

/// Reasons of a combined condition.
///
/// The default is `IssuesReported`, `UnknownReported` and `InfoReported`; a controller usually says
/// something like `NotReady`, `ReadyUnknown` and `Ready`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reasons {
    /// If any condition is an issue.
    pub issue: Reason,
    /// If none is an issue and any is Unknown.
    pub unknown: Reason,
    /// If all is well.
    pub info: Reason,
}

impl Default for Reasons {
    fn default() -> Self {
        Self {
            issue: crate::reason!("IssuesReported"),
            unknown: crate::reason!("UnknownReported"),
            info: crate::reason!("InfoReported"),
        }
    }
}

/// How much a condition matters to the one that stands for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// Not as it should be: False, or True under negative polarity.
    Issue,
    /// Not known.
    Unknown,
    /// As it should be.
    Info,
}

impl Priority {
    pub(super) const ALL: [Self; 3] = [Self::Issue, Self::Unknown, Self::Info];
}

/// A condition in scope, with the object that it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) type_: &'a str,
    pub(super) priority: Priority,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// `None` sorts first, as Go's zero time does.
    pub(super) since: Option<Time>,
}

impl<'a> Entry<'a> {
    pub(super) fn of<C: AnyCondition>(condition: &'a C, negative: bool) -> Self {
        Self {
            type_: condition.type_(),
            priority: match (ConditionStatus::parse(condition.status()), negative) {
                (Some(ConditionStatus::True), false) | (Some(ConditionStatus::False), true) => Priority::Info,
                (Some(ConditionStatus::True), true) | (Some(ConditionStatus::False), false) => Priority::Issue,
                (Some(ConditionStatus::Unknown) | None, _) => Priority::Unknown,
            },
            reason: condition.reason(),
            message: condition.message(),
            since: condition.last_transition_time(),
        }
    }

    /// What stands for a condition that should be there and is not.
    pub(super) const fn missing(type_: &'a str, message: &'a str) -> Self {
        Self { type_, priority: Priority::Unknown, reason: "NotYetReported", message, since: None }
    }
}

/// The one condition: its status and reason follow from the gravest priority in scope.
pub(super) fn combined(
    type_: ConditionType,
    gravest: Priority,
    positive: bool,
    reasons: &Reasons,
    message: String,
) -> Verdict {
    let (status, reason) = match gravest {
        Priority::Issue => (ConditionStatus::from(!positive), &reasons.issue),
        Priority::Unknown => (ConditionStatus::Unknown, &reasons.unknown),
        Priority::Info => (ConditionStatus::from(positive), &reasons.info),
    };
    Verdict::new(type_, status, reason.clone(), message)
}

/// `message` as it follows a bullet: on the same line, or indented below it if it has several lines
/// or bullets itself.
pub(super) fn after_bullet(message: &str) -> String {
    if !message.contains('\n') && !has_bullet(message) {
        return format!(" {message}");
    }
    let lines: Vec<&str> = message.split('\n').collect();
    let all_bullets = lines.iter().all(|line| has_bullet(line));
    let mut text = String::new();
    for line in lines {
        text.push_str(match (all_bullets, has_bullet(line)) {
            (true, _) => "\n  ",
            (false, true) => "\n    ",
            (false, false) => "\n  * ",
        });
        text.push_str(line);
    }
    text
}

/// Whether an asterisk with a space after it is anywhere in `text`: Cluster API's test for a bullet.
fn has_bullet(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'*' && matches!(pair[1], b' ' | b'\t' | b'\r' | b'\n' | 0x0c))
}

/// The message of a condition that should be there and is not, where its type is not said otherwise.
pub(super) fn not_yet_reported_message(type_: &str) -> String {
    ["Condition ", type_, " not yet reported"].concat()
}
