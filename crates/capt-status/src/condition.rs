//! `metav1.Condition` and how a stored list of conditions takes over new verdicts.
//!
//! Place in the flow: the last step before a status is compared with the stored one. Rules from
//! the Cluster API conditions proposal: `lastTransitionTime` moves only with `status`, every
//! condition of ours carries `observedGeneration`, types of others stay as they are.

#[cfg(feature = "schemars")]
use alloc::string::ToString as _; // the derive of a pattern calls it
use alloc::{borrow::Cow, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    text::{MAX_MESSAGE, truncate},
    time::Time,
};

/// Whether the thing that a condition's type names is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    #[allow(missing_docs)]
    True,
    #[allow(missing_docs)]
    False,
    #[allow(missing_docs)]
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

impl ConditionStatus {
    /// `True`, `False` or `Unknown`, as on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One aspect of an object's state, with the limits of `metav1.Condition`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    #[cfg_attr(
        feature = "schemars",
        schemars(
            length(max = 316),
            regex(
                pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            )
        )
    )]
    pub type_: String,
    /// One of True, False, Unknown.
    pub status: ConditionStatus,
    /// Generation of the object that the condition was set upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0)))]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// Why, as a CamelCase word for programs.
    #[cfg_attr(
        feature = "schemars",
        schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))
    )]
    pub reason: String,
    /// Why, in words for people; may be empty.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(length(max = 32768)))]
    pub message: String,
}

/// What a controller says of one condition type now; times and generation are added by [`merge`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Condition type.
    pub type_: &'static str,
    /// Whether it is so.
    pub status: ConditionStatus,
    /// CamelCase reason.
    pub reason: Cow<'static, str>,
    /// Text for people, bounded by [`merge`].
    pub message: String,
}

impl Verdict {
    /// A verdict with a message.
    pub fn new(
        type_: &'static str,
        status: impl Into<ConditionStatus>,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self { type_, status: status.into(), reason: reason.into(), message: message.into() }
    }
}

/// The stored conditions with `verdicts` taken over.
///
/// Conditions of types that `verdicts` does not name are kept unchanged. The result is ordered:
/// ours in the order of `verdicts`, then the others in their stored order. A clock that went back
/// never moves a `lastTransitionTime` back.
pub fn merge(stored: &[Condition], verdicts: Vec<Verdict>, generation: i64, now: Time) -> Vec<Condition> {
    let mut merged: Vec<Condition> = Vec::with_capacity(stored.len().max(verdicts.len()));
    for Verdict { type_, status, reason, message } in verdicts {
        let previous = find(stored, type_);
        merged.push(Condition {
            type_: type_.into(),
            status,
            observed_generation: Some(generation),
            last_transition_time: match previous {
                Some(previous) if previous.status == status => previous.last_transition_time,
                Some(previous) => now.max(previous.last_transition_time),
                None => now,
            },
            reason: reason.into(),
            message: truncate(&message, MAX_MESSAGE),
        });
    }
    for condition in stored {
        if find(&merged, &condition.type_).is_none() {
            merged.push(condition.clone());
        }
    }
    merged
}

/// The condition of type `type_`, if it is there.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of type `type_` is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether both lists say the same, the order of the list aside.
///
/// The list is a map by type for the API server, so its order is not ours to decide.
pub fn same(left: &[Condition], right: &[Condition]) -> bool {
    left.len() == right.len() && left.iter().all(|condition| find(right, &condition.type_) == Some(condition))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn stored(type_: &str, status: ConditionStatus, at: i64) -> Condition {
        Condition {
            type_: type_.into(),
            status,
            observed_generation: Some(1),
            last_transition_time: Time::from_unix(at),
            reason: "Old".into(),
            message: "old".into(),
        }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let before = [stored("Ready", ConditionStatus::False, 10), stored("Paused", ConditionStatus::False, 10)];
        let verdicts =
            vec![Verdict::new("Ready", true, "Ready", ""), Verdict::new("Paused", false, "NotPaused", "new")];
        let after = merge(&before, verdicts, 2, Time::from_unix(20));
        assert_eq!((after[0].last_transition_time, after[0].observed_generation), (Time::from_unix(20), Some(2)));
        assert_eq!((after[1].last_transition_time, after[1].message.as_str()), (Time::from_unix(10), "new"));
    }

    #[test]
    fn a_clock_that_went_back_moves_no_transition_time_back() {
        let before = [stored("Ready", ConditionStatus::False, 30)];
        let after = merge(&before, vec![Verdict::new("Ready", true, "Ready", "")], 1, Time::from_unix(20));
        assert_eq!(after[0].last_transition_time, Time::from_unix(30));
    }

    #[test]
    fn conditions_of_others_stay_byte_identical() {
        let foreign = stored("example.com/Audited", ConditionStatus::Unknown, 3);
        let after = merge(
            core::slice::from_ref(&foreign),
            vec![Verdict::new("Ready", true, "Ready", "")],
            1,
            Time::from_unix(20),
        );
        assert_eq!(after[1], foreign);
        assert_eq!(after.len(), 2);
    }

    #[test]
    fn order_does_not_make_a_difference() {
        let (a, b) = (stored("A", ConditionStatus::True, 1), stored("B", ConditionStatus::True, 1));
        assert!(same(&[a.clone(), b.clone()], &[b.clone(), a.clone()]));
        assert!(!same(&[a.clone(), b], &[a.clone(), stored("B", ConditionStatus::False, 1)]));
        assert!(!same(core::slice::from_ref(&a), &[]));
    }

    #[test]
    fn a_message_is_bounded() {
        let long = "x".repeat(5000);
        let after = merge(&[], vec![Verdict::new("Ready", true, "Ready", long)], 1, Time::from_unix(1));
        assert_eq!(after[0].message.len(), MAX_MESSAGE);
    }
}
