//! What a controller says of one condition type in this pass, before times are added.
//!
//! Place in the flow: made by decisions and by [`Summary`](super::Summary) and the like, taken over
//! by [`merge`](super::merge()) and [`set`](super::set()).

use alloc::string::String;

use super::{
    names::{ConditionType, Reason},
    wire::{Condition, ConditionStatus},
};
use crate::{
    text::{MAX_MESSAGE, bounded},
    time::Time,
};

/// What a controller says of one condition type now; times and generation are added when a list of
/// conditions takes it over.
///
/// ```
/// use capt_status::{condition::Verdict, condition_type, reason};
///
/// let full = Verdict::new(condition_type!("Ready"), false, reason!("DiskFull"), "disk is full");
/// assert_eq!(full.reason, "DiskFull");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Condition type.
    pub type_: ConditionType,
    /// Whether it is so.
    pub status: ConditionStatus,
    /// CamelCase reason.
    pub reason: Reason,
    /// Text for people; at most [`MAX_MESSAGE`] bytes of it are stored.
    pub message: String,
    /// When it became so, where that is known better than by when it was seen: a mirror knows.
    pub since: Option<Time>,
}

impl Verdict {
    /// A verdict with a message.
    pub fn new(
        type_: impl Into<ConditionType>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<Reason>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: bounded(message.into()),
            since: None,
        }
    }

    /// The same verdict, known to be so since `since`.
    #[must_use]
    pub fn since(self, since: Option<Time>) -> Self {
        Self { since, ..self }
    }

    /// Whether `condition` says this already, of `generation`.
    pub fn is_told_by(&self, condition: &Condition, generation: i64) -> bool {
        self.type_ == condition.type_
            && self.status == condition.status
            && condition.observed_generation == Some(generation)
            && self.reason == condition.reason
            && if self.message.len() <= MAX_MESSAGE {
                self.message == condition.message
            } else {
                bounded(self.message.clone()) == condition.message
            }
    }

    /// The condition that follows `previous`, the stored condition of this type.
    ///
    /// Its transition time moves only with the status, never back, and a new one never lies after
    /// `now`.
    pub(super) fn into_condition(self, previous: Option<&Condition>, generation: i64, now: Time) -> Condition {
        let Self { type_, status, reason, message, since } = self;
        let changed_at = since.map_or(now, |since| since.min(now));
        Condition {
            type_: type_.into(),
            status,
            observed_generation: Some(generation),
            last_transition_time: match previous {
                Some(previous) if previous.status == status => previous.last_transition_time,
                Some(previous) => changed_at.max(previous.last_transition_time),
                None => changed_at,
            },
            reason: reason.into(),
            message: bounded(message),
        }
    }
}
