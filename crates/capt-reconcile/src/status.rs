//! The last action of a plan: the status, if it says something new.
//!
//! The whole status that is ours is sent each time, since server-side apply removes what its
//! manager stops sending. Conditions of other writers are not sent, so they stay theirs.

use std::borrow::Cow;

use capt_api::{CAPTClusterStatus, CAPTControlPlaneStatus, WorkspaceTemplateApplyStatus, names::conditions};
use capt_status::{
    Condition, ConditionStatus, Time,
    condition::{self, ConditionType, Verdict},
};
use serde::Serialize;
use serde_json::json;

use crate::{managed_fields, meta::Writer, plan::Op};

/// A status of ours.
pub trait Status: Clone + PartialEq + Serialize {
    /// Its conditions.
    fn conditions(&self) -> &[Condition];
    /// Replaces its conditions.
    fn set_conditions(&mut self, conditions: Vec<Condition>);
}

macro_rules! status {
    ($($type:ty),*) => {$(
        impl Status for $type {
            fn conditions(&self) -> &[Condition] {
                &self.conditions
            }

            fn set_conditions(&mut self, conditions: Vec<Condition>) {
                self.conditions = conditions;
            }
        }
    )*};
}

status!(CAPTClusterStatus, CAPTControlPlaneStatus, WorkspaceTemplateApplyStatus);

/// A field of a [`Draft`], unless it says so already.
macro_rules! set {
    ($draft:ident . $($field:ident).+ = $value:expr) => {{
        let value = $value;
        if $draft.$($field).+ != value {
            $draft.to_mut().$($field).+ = value;
        }
    }};
}

/// A text of a [`Draft`], given as an optional `&str`, unless it says so already.
macro_rules! set_text {
    ($draft:ident . $($field:ident).+ = $value:expr) => {{
        let value = $value;
        if $draft.$($field).+.as_deref() != value {
            $draft.to_mut().$($field).+ = value.map(str::to_owned);
        }
    }};
}

pub(crate) use {set, set_text};

/// The status that a pass wants: the stored one, until something new is to be said. Most passes have nothing new to
/// say, and these copy nothing.
pub type Draft<'a, S> = Cow<'a, S>;

/// A part of a status in the same way; a part that is not there yet is new.
pub fn part<T: Clone + Default>(stored: Option<&T>) -> Draft<'_, T> {
    stored.map_or_else(|| Draft::Owned(T::default()), Draft::Borrowed)
}

/// Puts a [`part`] back that says something new.
pub fn put<S: Clone, T: Clone>(
    status: &mut Draft<'_, S>,
    part: Draft<'_, T>,
    place: impl FnOnce(&mut S) -> &mut Option<T>,
) {
    if let Draft::Owned(part) = part {
        *place(status.to_mut()) = Some(part);
    }
}

/// Adds the write of `wanted` with `verdicts` as its conditions, unless `stored` says the same.
pub fn write<S: Status>(
    writer: &mut Writer,
    manager: &'static str,
    (stored, wanted): (&S, Draft<'_, S>),
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
) -> bool {
    write_batched(writer, manager, (stored, wanted), verdicts, generation, now, |_, _, _| None)
}

/// As [`write()`], but a change that `worth_a_write_at` finds too small waits until then, since more is
/// likely to follow; the plan says so.
pub fn write_batched<S: Status>(
    writer: &mut Writer,
    manager: &'static str,
    (stored, wanted): (&S, Draft<'_, S>),
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
    worth_a_write_at: impl FnOnce(&S, &S, Time) -> Option<Time>,
) -> bool {
    let Some((wanted, ours)) = merged(stored, wanted, verdicts, generation, now) else { return false };
    if let Some(at) = worth_a_write_at(stored, &wanted, now) {
        let plan = writer.plan();
        plan.next = Some(plan.next.map_or(at, |next| next.min(at)));
        return false;
    }
    let reason = reason(stored.conditions(), wanted.conditions());
    let ours: Vec<&str> = ours.iter().map(ConditionType::as_str).collect();
    send(writer, manager, wanted, reason, &ours)
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
    let verdict = Verdict::new(conditions::PAUSED, true, "Paused", message);
    merged(stored, Draft::Borrowed(stored), vec![verdict], generation, now)
        .is_some_and(|(wanted, _)| send(writer, manager, wanted, "paused".to_owned(), ours))
}

/// `wanted` with the conditions that follow from `verdicts`, and the types of these; `None` if `stored` says the same.
fn merged<S: Status>(
    stored: &S,
    wanted: Draft<'_, S>,
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
) -> Option<(S, Vec<ConditionType>)> {
    if matches!(wanted, Draft::Borrowed(_)) && condition::is_told(stored.conditions(), &verdicts, generation) {
        return None;
    }
    let mut wanted = wanted.into_owned();
    let ours = verdicts.iter().map(|verdict| verdict.type_.clone()).collect();
    let merged = condition::merge(stored.conditions(), verdicts, generation, now);
    // The order of the list is the API server's business.
    let same = condition::same(stored.conditions(), &merged);
    wanted.set_conditions(if same { stored.conditions().to_vec() } else { merged });
    (wanted != *stored).then_some((wanted, ours))
}

/// Adds the write of `wanted` without the conditions of others.
fn send<S: Status>(writer: &mut Writer, manager: &'static str, mut wanted: S, reason: String, types: &[&str]) -> bool {
    let ours =
        wanted.conditions().iter().filter(|condition| types.contains(&condition.type_.as_str())).cloned().collect();
    wanted.set_conditions(ours);
    match serde_json::to_value(&wanted) {
        Ok(status) => {
            if let Some(entries) = managed_fields::taken_over(writer.managed_fields(), manager, types) {
                let operations = vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": entries})];
                writer.own(Op::JsonPatch { operations }, "the status that somebody else wrote by update becomes ours");
            }
            writer.own(Op::ApplyStatus { manager, status }, reason);
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
