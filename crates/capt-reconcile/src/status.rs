//! The last action of a plan: the status, if it says something new.
//!
//! The whole status that is ours is sent each time, since server-side apply removes what its
//! manager stops sending. Conditions of other writers are not sent, so they stay theirs.

use capt_api::{CAPTClusterStatus, CAPTControlPlaneStatus, WorkspaceTemplateApplyStatus};
use capt_status::{
    Condition, ConditionStatus, Time,
    condition::{self, ConditionType, Verdict},
};
use serde::Serialize;

use crate::{
    memory::{self, Remembered},
    meta::Writer,
    plan::Op,
};

/// A status of ours.
pub trait Status: Clone + PartialEq + Serialize {
    /// Its conditions.
    fn conditions(&mut self) -> &mut Vec<Condition>;
}

macro_rules! status {
    ($($type:ty),*) => {$(
        impl Status for $type {
            fn conditions(&mut self) -> &mut Vec<Condition> {
                &mut self.conditions
            }
        }
    )*};
}

status!(CAPTClusterStatus, CAPTControlPlaneStatus, WorkspaceTemplateApplyStatus);

/// Adds the write of `wanted` with `verdicts` as its conditions, unless `stored` says the same.
pub fn write<S: Status>(
    writer: &mut Writer,
    manager: &'static str,
    stored: &S,
    mut wanted: S,
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
) -> bool {
    let mut stored = stored.clone();
    let ours: Vec<ConditionType> = verdicts.iter().map(|verdict| verdict.type_.clone()).collect();
    let merged = condition::merge(stored.conditions(), verdicts, generation, now);
    if condition::same(stored.conditions(), &merged) {
        // The order of the list is the API server's business.
        wanted.conditions().clone_from(stored.conditions());
    } else {
        *wanted.conditions() = merged;
    }
    if wanted == stored {
        return false;
    }
    let reason = reason(stored.conditions(), wanted.conditions());
    wanted.conditions().retain(|condition| ours.iter().any(|type_| *type_ == condition.type_));
    match serde_json::to_value(&wanted) {
        Ok(status) => {
            writer.own(Op::ApplyStatus { manager, status }, reason);
            true
        }
        Err(error) => {
            writer.note(format!("status cannot be written as JSON: {error}"));
            false
        }
    }
}

/// As [`write()`], but a change of nothing but timers right after a transition waits, since more is
/// likely to follow; the plan then says when it is worth a write.
pub fn write_batched<S: Status + Remembered>(
    writer: &mut Writer,
    manager: &'static str,
    stored: &S,
    wanted: S,
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
) -> bool {
    let mut merged = wanted.clone();
    let conditions = condition::merge(stored.clone().conditions(), verdicts.clone(), generation, now);
    if condition::same(stored.clone().conditions(), &conditions) {
        merged.conditions().clone_from(stored.clone().conditions());
        if let Some(at) = memory::worth_a_write_at(stored, &merged, now) {
            let plan = writer.plan();
            plan.next = Some(plan.next.map_or(at, |next| next.min(at)));
            return false;
        }
    }
    write(writer, manager, stored, wanted, verdicts, generation, now)
}

/// Adds the write of nothing but the Paused condition.
///
/// While paused nothing else may change, so everything else of the status is sent as it is stored.
pub fn write_paused<S: Status>(
    writer: &mut Writer,
    manager: &'static str,
    stored: &S,
    message: &str,
    ours: &[&'static str],
    generation: i64,
    now: Time,
) -> bool {
    let mut before = stored.clone();
    let verdict = Verdict::new("Paused", true, "Paused", message);
    let mut merged = condition::merge(before.conditions(), vec![verdict], generation, now);
    if condition::same(before.conditions(), &merged) {
        return false;
    }
    merged.retain(|condition| ours.contains(&condition.type_.as_str()));
    let mut wanted = before;
    *wanted.conditions() = merged;
    match serde_json::to_value(&wanted) {
        Ok(status) => {
            writer.own(Op::ApplyStatus { manager, status }, "paused");
            true
        }
        Err(error) => {
            writer.note(format!("status cannot be written as JSON: {error}"));
            false
        }
    }
}

/// What is new, for the log and for `plan`: the conditions that changed, or the rest.
fn reason(before: &[Condition], after: &[Condition]) -> String {
    let changed: Vec<String> = after
        .iter()
        .filter(|condition| {
            condition::find(before, &condition.type_)
                .is_none_or(|old| (old.status, old.reason.as_str()) != (condition.status, condition.reason.as_str()))
        })
        .map(|condition| match condition.status {
            ConditionStatus::True => condition.type_.clone(),
            ConditionStatus::False | ConditionStatus::Unknown => {
                format!("{}={} ({})", condition.type_, condition.status.as_str(), condition.reason)
            }
        })
        .collect();
    if changed.is_empty() { "status details changed".to_owned() } else { format!("status: {}", changed.join(", ")) }
}
