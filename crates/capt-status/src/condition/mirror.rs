//! A condition of another object as a condition of ours.

use alloc::format;

use super::{
    combine::not_yet_reported_message,
    names::{ConditionType, Reason},
    standard::reasons,
    verdict::Verdict,
    wire::{AnyCondition, ConditionStatus},
};

/// The condition of type `source` as a verdict of type `target`, with the time of its last
/// transition; `None` if it is not there.
///
/// A status that is none of the three becomes Unknown with reason `InvalidConditionReported`; a
/// reason that is none becomes the nearest one.
///
/// ```
/// use capt_status::{Time, condition::{self, Verdict, mirror, not_yet_reported, types}, condition_type, reason};
///
/// const DISK_READY: condition::ConditionType = condition_type!("DiskReady");
/// let bound = Verdict::new(types::READY, true, reason!("Bound"), "");
/// let of_the_disk = condition::merge(&[], vec![bound], 1, Time::from_unix(7));
/// let verdict = mirror(&of_the_disk, "Ready", DISK_READY).unwrap_or_else(|| not_yet_reported("Ready", DISK_READY));
/// assert_eq!(verdict.since, Some(Time::from_unix(7)));
/// ```
pub fn mirror<C: AnyCondition>(conditions: &[C], source: &str, target: ConditionType) -> Option<Verdict> {
    let condition = conditions.iter().find(|condition| condition.type_() == source)?;
    Some(match ConditionStatus::parse(condition.status()) {
        Some(status) => Verdict::new(
            target,
            status,
            // What the other object says may be any text.
            Reason::coerce(alloc::string::String::from(condition.reason())),
            condition.message(),
        )
        .since(condition.last_transition_time()),
        None => Verdict::new(
            target,
            ConditionStatus::Unknown,
            reasons::INVALID_CONDITION_REPORTED,
            format!("status for the {source} condition must be one of True, False, Unknown"),
        ),
    })
}

/// What a mirror says where the other object does not have the condition yet: Unknown.
pub fn not_yet_reported(source: &str, target: ConditionType) -> Verdict {
    Verdict::new(target, ConditionStatus::Unknown, reasons::NOT_YET_REPORTED, not_yet_reported_message(source))
}
