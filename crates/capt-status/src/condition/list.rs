//! A list of conditions: reading, setting, removing, and taking over a whole pass's verdicts.
//!
//! Place in the flow: the last step before a status is compared with the stored one. Types that the
//! caller does not name belong to others and stay as they are. The list is a map by type for the
//! API server, so its order carries no meaning ([`same`]); [`sort`](super::sort()) is for people.

use alloc::vec::Vec;

use super::{
    verdict::Verdict,
    wire::{Condition, ConditionStatus},
};
use crate::time::Time;

/// The condition of type `type_`, if it is there.
pub fn find(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    let type_ = type_.as_ref();
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of type `type_` is there and True.
pub fn is_true(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    status_of(conditions, type_) == Some(ConditionStatus::True)
}

/// Whether the condition of type `type_` is there and False.
pub fn is_false(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    status_of(conditions, type_) == Some(ConditionStatus::False)
}

/// Whether nothing is known about `type_`: the condition is Unknown or not there.
pub fn is_unknown(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    matches!(status_of(conditions, type_), Some(ConditionStatus::Unknown) | None)
}

fn status_of(conditions: &[Condition], type_: impl AsRef<str>) -> Option<ConditionStatus> {
    find(conditions, type_).map(|condition| condition.status)
}

/// Sets one condition in place and says whether anything changed.
///
/// ```
/// use capt_status::{Time, condition::{self, Verdict}, condition_type, reason};
///
/// let mut conditions = Vec::new();
/// let full = Verdict::new(condition_type!("Ready"), false, reason!("DiskFull"), "disk is full");
/// assert!(condition::set(&mut conditions, full.clone(), 1, Time::from_unix(10)));
/// assert!(!condition::set(&mut conditions, full, 1, Time::from_unix(20)));
/// assert_eq!(conditions[0].last_transition_time, Time::from_unix(10));
/// ```
pub fn set(conditions: &mut Vec<Condition>, verdict: Verdict, generation: i64, now: Time) -> bool {
    let Some(place) = conditions.iter_mut().find(|condition| verdict.type_ == condition.type_) else {
        conditions.push(verdict.into_condition(None, generation, now));
        return true;
    };
    if verdict.is_told_by(place, generation) {
        return false;
    }
    *place = verdict.into_condition(Some(place), generation, now);
    true
}

/// Removes the condition of type `type_` and returns it, if it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: impl AsRef<str>) -> Option<Condition> {
    let type_ = type_.as_ref();
    let at = conditions.iter().position(|condition| condition.type_ == type_)?;
    Some(conditions.remove(at))
}

/// Whether `stored` says all of `verdicts` already; allocates nothing.
///
/// Then [`merge`] would change nothing but the order, and there is no reason for a write.
pub fn is_told(stored: &[Condition], verdicts: &[Verdict], generation: i64) -> bool {
    verdicts
        .iter()
        .all(|verdict| find(stored, &verdict.type_).is_some_and(|condition| verdict.is_told_by(condition, generation)))
}

/// The stored conditions with `verdicts` taken over.
///
/// Conditions of types that `verdicts` does not name are kept unchanged. The result is ordered:
/// ours in the order of `verdicts`, then the others in their stored order. Of two verdicts of the
/// same type the later one counts. A clock that went back never moves a `lastTransitionTime` back.
pub fn merge(stored: &[Condition], verdicts: Vec<Verdict>, generation: i64, now: Time) -> Vec<Condition> {
    let mut merged: Vec<Condition> = Vec::with_capacity(stored.len().max(verdicts.len()));
    for verdict in verdicts {
        let previous = find(stored, &verdict.type_);
        let condition = verdict.into_condition(previous, generation, now);
        match merged.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(earlier) => *earlier = condition,
            None => merged.push(condition),
        }
    }
    for condition in stored {
        if find(&merged, &condition.type_).is_none() {
            merged.push(condition.clone());
        }
    }
    merged
}

/// The conditions of the given types only: what a server-side apply sends, so that the conditions of
/// other writers stay theirs, byte for byte.
pub fn of_types<'a>(
    conditions: &'a [Condition],
    types: &'a [impl AsRef<str>],
) -> impl Iterator<Item = &'a Condition> + 'a {
    conditions.iter().filter(|condition| types.iter().any(|type_| type_.as_ref() == condition.type_))
}

/// Whether both lists say the same, the order of the list aside.
///
/// The list is a map by type for the API server, so its order is not ours to decide.
pub fn same(left: &[Condition], right: &[Condition]) -> bool {
    left.len() == right.len() && left.iter().all(|condition| find(right, &condition.type_) == Some(condition))
}
