//! Progress of the operation in flight, from its milestones, and the record of those that ended.
//!
//! It changes only when something happened: a milestone, an end, a start. The percentage never goes
//! down within one operation.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    facts::{Configuration, Facts, Infrastructure, Lifecycle, Owner, Role, Workspace},
    step::Next,
    timers::{Timeouts, Timer},
};
use crate::{
    progress::{Operation, OperationRecord, OperationResult, Progress},
    state::State,
    text::{MAX_MESSAGE, truncate},
    time::{Span, Time},
};

/// Most operations that are remembered.
const MAX_HISTORY: usize = 10;

/// Milestones that `facts` have passed, of how many.
pub const fn milestones(facts: &Facts) -> (i32, i32) {
    let owner = matches!(facts.owner, Owner::Known);
    let infrastructure = owner && matches!(facts.infrastructure, Infrastructure::Ready);
    let begun = infrastructure && !matches!(facts.workspace, Workspace::Queued);
    let applied = begun && matches!(facts.workspace, Workspace::Ready);
    let configured = applied && matches!(facts.configuration, Configuration::Complete);
    let common = owner as i32 + begun as i32 + applied as i32;
    match facts.role {
        // A CAPTCluster has no infrastructure to wait for, and its outputs come with the Workspace.
        Role::Infrastructure => (owner as i32 + begun as i32 + configured as i32, 3),
        Role::ControlPlane => (common + infrastructure as i32 + configured as i32, 5),
    }
}

/// A step, as far as progress depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Whether the object had been ready before the step.
    pub served_before: bool,
    /// What the step followed from.
    pub facts: &'a Facts,
    /// What followed.
    pub next: &'a Next,
    /// What an operation on a serving object is called: an update or an upgrade.
    pub change: Operation,
    /// Limits of the timers.
    pub timeouts: &'a Timeouts,
    /// Why it failed, if it did.
    pub why: &'a str,
}

/// What `before` becomes with a step that was taken at `now`; borrowed where nothing happened.
///
/// ```
/// use capt_status::{Operation, Progress, Time, machine::{*, progress::{Taken, advance}}};
///
/// let facts = Facts {
///     role: Role::ControlPlane, lifecycle: Lifecycle::Active, owner: Owner::Known, inputs: Inputs::Valid,
///     infrastructure: Infrastructure::Ready, workspace: Workspace::Applying, busy: true,
///     configuration: Configuration::Incomplete, checks: Checks::Passing, same_failure: false, user_changed: false,
/// };
/// let (limits, now) = (Limits::default(), Time::from_unix(0));
/// let next = follow(&Memory::default(), &facts, &limits, now);
/// let (change, timeouts) = (Operation::Update, &limits.timeouts);
/// let taken = Taken { served_before: false, facts: &facts, next: &next, change, timeouts, why: "" };
/// let before = Progress::default();
/// let progress = advance(&before, taken, now);
/// assert_eq!((progress.current_operation, progress.percent_complete), (Some(Operation::Create), Some(60)));
/// assert_eq!(progress.milestone.as_deref(), Some("3 of 5"));
/// ```
pub fn advance<'b>(before: &'b Progress, taken: Taken<'_>, now: Time) -> Cow<'b, Progress> {
    let Taken { served_before, facts, next, change, timeouts, why } = taken;
    if facts.lifecycle == Lifecycle::Paused {
        return Cow::Borrowed(before);
    }
    let in_flight = before.current_operation.filter(|_| before.percent_complete != Some(100));
    let operation = match next.state {
        State::Deleting => Some(Operation::Delete),
        State::Pending => None,
        State::Ready | State::Degraded => None,
        State::Validating | State::Provisioning | State::Configuring | State::Recovering | State::Failed => {
            if served_before {
                Some(in_flight.filter(|running| *running != Operation::Create).unwrap_or(change))
            } else {
                Some(Operation::Create)
            }
        }
    };
    let Some(operation) = operation else {
        let ended = in_flight.or_else(|| (!served_before).then_some(Operation::Create));
        let Some(operation) = ended.filter(|_| facts.is_complete() && next.state != State::Pending) else {
            return Cow::Borrowed(before);
        };
        let (started_at, mut history) = (before.started_at.unwrap_or(now), before.history.clone());
        record(&mut history, operation, started_at, now, OperationResult::Succeeded, String::new());
        let (done, of) = milestones(facts);
        return Cow::Owned(Progress {
            current_operation: Some(operation),
            started_at: Some(started_at),
            deadline: None,
            percent_complete: Some(100),
            milestone: Some(format!("{done} of {of}")),
            estimated_time_remaining: None,
            history,
        });
    };
    let mut after = before.clone();
    let continues = in_flight == Some(operation) && !(facts.user_changed && next.state != State::Deleting);
    if !continues {
        if let (Some(ended), Some(started_at)) = (in_flight, before.started_at) {
            record(&mut after.history, ended, started_at, now, OperationResult::Superseded, String::new());
        }
        after.started_at = Some(now);
        after.percent_complete = None;
        after.milestone = None;
        after.estimated_time_remaining = None;
    }
    after.current_operation = Some(operation);
    let (done, of) = milestones(facts);
    let percent = if operation == Operation::Delete { 0 } else { (done * 100 / of).min(99) };
    // Never back within one operation.
    if after.percent_complete.is_none_or(|shown| percent > shown) {
        after.percent_complete = Some(percent);
        after.milestone = (operation != Operation::Delete).then(|| format!("{done} of {of}"));
        after.estimated_time_remaining = estimate(&after, operation, now);
    }
    after.deadline =
        next.memory.timers.get(Timer::ControlPlane).map(|running| running.expires_at(timeouts.of(Timer::ControlPlane)));
    let failed = after.history.last().is_some_and(|last| {
        last.result == OperationResult::Failed
            && Some(last.started_at) == after.started_at
            && last.operation == operation
    });
    if next.state == State::Failed && !failed {
        let started_at = after.started_at.unwrap_or(now);
        record(&mut after.history, operation, started_at, now, OperationResult::Failed, truncate(why, MAX_MESSAGE));
        after.estimated_time_remaining = None;
    }
    Cow::Owned(after)
}

/// What is left if it takes as long as the last success of its kind; nothing where there was none.
fn estimate(progress: &Progress, operation: Operation, now: Time) -> Option<Span> {
    let last = progress
        .history
        .iter()
        .rev()
        .find(|record| record.operation == operation && record.result == OperationResult::Succeeded)?;
    let took = last.completed_at?.since(last.started_at).as_seconds();
    let elapsed = now.since(progress.started_at?).as_seconds();
    (took > elapsed).then(|| Span::from_seconds(took - elapsed))
}

fn record(
    history: &mut Vec<OperationRecord>,
    operation: Operation,
    started_at: Time,
    now: Time,
    result: OperationResult,
    message: String,
) {
    history.push(OperationRecord { operation, started_at, completed_at: Some(now.max(started_at)), result, message });
    let excess = history.len().saturating_sub(MAX_HISTORY);
    history.drain(..excess);
}
