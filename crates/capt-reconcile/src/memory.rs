//! Between the wire form of a status and what the state machine remembers; limits from the spec.

use std::borrow::Cow;

use capt_api::{CAPTClusterStatus, CAPTControlPlaneStatus, Timeouts as SpecTimeouts, names::conditions};
use capt_status::{
    CheckName, CheckResult, CheckStatus, ConditionStatus, Deadline, Dependencies, EffectiveStrategy, Health, Operation,
    Progress, Recovery, RecoveryStrategy, Span, State, Time,
    backoff::{Attempts, Budget},
    condition,
    machine::{self, Because, Cause, Event, Facts, FailureReason, Limits, Memory, Next, Timeouts, Timer, Timers},
    text::{MAX_MESSAGE, truncate},
};

use crate::{
    child::Child,
    dependencies::{After, Graph},
    pass::Features,
    status::{Draft, Status},
};

/// A change of nothing but timers, progress, checks and dependencies waits this long after the last transition, so
/// that what happens in quick succession is one write.
const BATCH: Span = Span::from_seconds(10);

/// The status of a provider object, as far as the state machine keeps its memory in it.
pub trait Remembered: Status {
    /// `status.deadlines`.
    fn deadlines(&self) -> &[Deadline];
    /// `status.recovery`.
    fn recovery(&self) -> Option<&Recovery>;
    /// `status.progress`.
    fn progress(&self) -> Option<&Progress>;
    /// `status.health`.
    fn health(&self) -> Option<&Health>;
    /// `status.dependencies`.
    fn dependencies(&self) -> Option<&Dependencies>;
    /// What is written as a step goes.
    fn kept(&mut self) -> Kept<'_>;
    /// `status.state`.
    fn state(&self) -> Option<State>;
    /// `status.ready`.
    fn ready(&self) -> bool;
    /// `status.specHash`.
    fn spec_hash(&self) -> Option<&str>;
    /// `status.failureReason`.
    fn failure_reason(&self) -> Option<&str>;
    /// `status.observedGeneration`.
    fn observed_generation(&self) -> Option<i64>;
    /// Sets `status.observedGeneration`.
    fn set_observed_generation(&mut self, generation: i64);
    /// Whether state, phase, failure reason and failure message are these.
    fn shows(&self, state: State, failure: Option<(&str, &str)>) -> bool;
    /// Sets state, phase, failure reason and failure message.
    fn show(&mut self, state: State, failure: Option<(&str, &str)>);
}

/// The parts of a status that are written as a step of the machine goes.
#[derive(Debug)]
pub struct Kept<'a> {
    /// `status.deadlines`.
    pub deadlines: &'a mut Vec<Deadline>,
    /// `status.recovery`.
    pub recovery: &'a mut Option<Recovery>,
    /// `status.progress`.
    pub progress: &'a mut Option<Progress>,
    /// `status.health`.
    pub health: &'a mut Option<Health>,
    /// `status.dependencies`.
    pub dependencies: &'a mut Option<Dependencies>,
}

macro_rules! remembered {
    ($($type:ty),*) => {$(
        impl Remembered for $type {
            fn deadlines(&self) -> &[Deadline] {
                &self.deadlines
            }

            fn recovery(&self) -> Option<&Recovery> {
                self.recovery.as_ref()
            }

            fn progress(&self) -> Option<&Progress> {
                self.progress.as_ref()
            }

            fn health(&self) -> Option<&Health> {
                self.health.as_ref()
            }

            fn dependencies(&self) -> Option<&Dependencies> {
                self.dependencies.as_ref()
            }

            fn kept(&mut self) -> Kept<'_> {
                Kept {
                    deadlines: &mut self.deadlines,
                    recovery: &mut self.recovery,
                    progress: &mut self.progress,
                    health: &mut self.health,
                    dependencies: &mut self.dependencies,
                }
            }

            fn state(&self) -> Option<State> {
                self.state
            }

            fn ready(&self) -> bool {
                self.ready
            }

            fn spec_hash(&self) -> Option<&str> {
                self.spec_hash.as_deref()
            }

            fn failure_reason(&self) -> Option<&str> {
                self.failure_reason.as_deref()
            }

            fn observed_generation(&self) -> Option<i64> {
                self.observed_generation
            }

            fn set_observed_generation(&mut self, generation: i64) {
                self.observed_generation = Some(generation);
            }

            fn shows(&self, state: State, failure: Option<(&str, &str)>) -> bool {
                (self.state, self.phase) == (Some(state), Some(state.phase()))
                    && (self.failure_reason.as_deref(), self.failure_message.as_deref()) == failure.unzip()
            }

            fn show(&mut self, state: State, failure: Option<(&str, &str)>) {
                self.state = Some(state);
                self.phase = Some(state.phase());
                let (reason, message) = failure.unzip();
                self.failure_reason = reason.map(str::to_owned);
                self.failure_message = message.map(str::to_owned);
            }
        }
    )*};
}

remembered!(CAPTClusterStatus, CAPTControlPlaneStatus);

/// What the stored status remembers.
pub fn read<S: Remembered>(stored: &S) -> Memory {
    let mut timers = Timers::default();
    for timer in Timer::ALL {
        let deadline = stored.deadlines().iter().find(|deadline| deadline.name == timer.name());
        timers.set(timer, deadline.map(Deadline::running));
    }
    let attempts = stored.recovery().map(Attempts::from).unwrap_or_default();
    let paused_since = condition::find(stored.conditions(), conditions::PAUSED)
        .filter(|paused| paused.status == ConditionStatus::True)
        .map(|paused| paused.last_transition_time);
    Memory { state: stored.state(), served: stored.ready(), timers, attempts, paused_since }
}

/// Takes over into `wanted` how far the operation is, and what was checked. `change` is what an
/// operation on a serving object is called.
pub fn record_progress<S: Remembered>(
    wanted: &mut Draft<'_, S>,
    facts: &Facts,
    next: &Next,
    cause: &Cause,
    change: Operation,
    limits: &Limits,
    now: Time,
) {
    let served_before = wanted.ready();
    let none = Progress::default();
    let before = wanted.progress().unwrap_or(&none);
    let taken = machine::progress::Taken {
        served_before,
        facts,
        next,
        change,
        timeouts: &limits.timeouts,
        why: &cause.message,
    };
    let after = Some(machine::progress::advance(before, taken, now)).filter(|after| **after != none);
    if wanted.progress() != after.as_deref() {
        let after = after.map(Cow::into_owned);
        *wanted.to_mut().kept().progress = after;
    }
}

/// Takes over into `wanted` what it depends on after the plan in hand, where that is tracked.
pub fn record_dependencies<S: Remembered>(wanted: &mut Draft<'_, S>, graph: Option<&Graph>, after: &After<'_>) {
    let Some(graph) = graph else { return };
    if !wanted.dependencies().is_some_and(|shown| graph.is_shown_by(shown, after)) {
        *wanted.to_mut().kept().dependencies = Some(graph.status(after));
    }
}

/// Takes out of `wanted` what shall not be tracked.
pub fn untrack<S: Remembered>(wanted: &mut Draft<'_, S>, features: Features) {
    let Features { progress, dependencies, recovery: _ } = features;
    if !progress && wanted.progress().is_some() {
        *wanted.to_mut().kept().progress = None;
    }
    if !dependencies && wanted.dependencies().is_some() {
        *wanted.to_mut().kept().dependencies = None;
    }
}

/// Takes over into `wanted` what was checked; the time of a check moves only with its result.
pub fn record_health<S: Remembered>(wanted: &mut Draft<'_, S>, checks: &[CheckResult<'_>], now: Time) {
    if !wanted.health().is_some_and(|health| health.says(checks)) {
        let health = wanted.to_mut().kept().health;
        *health = Some(Health::observe(health.as_ref(), checks, now));
    }
}

/// Takes over into `wanted` what the machine shall remember.
pub fn record<S: Remembered>(wanted: &mut Draft<'_, S>, next: &Next, facts: &Facts, cause: &Cause) {
    let Next { memory, state, because: _, stalled: _, act: _, at: _ } = next;
    let Memory { state: _, served: _, timers, attempts, paused_since: _ } = memory;
    let deadlines: Vec<Deadline> =
        Timer::ALL.into_iter().filter_map(|timer| Some(Deadline::new(timer.name(), timers.get(timer)?))).collect();
    if wanted.deadlines() != deadlines {
        *wanted.to_mut().kept().deadlines = deadlines;
    }
    let before = wanted.recovery().cloned();
    let Attempts { made, last, next: next_attempt, spent } = *attempts;
    let recovery = if *attempts == Attempts::default() {
        // What was tried before a success stays to be seen.
        before.filter(|recovery| recovery.attempts > 0 || recovery.last_result.is_some()).map(|recovery| Recovery {
            attempts: 0,
            next_attempt_time: None,
            last_result: Some("Succeeded".to_owned()),
            escalated: false,
            ..recovery
        })
    } else {
        let has_failed = made > 0 && (spent || next_attempt.is_none());
        let last_result = before.and_then(|recovery| recovery.last_result);
        Some(Recovery {
            attempts: i32::try_from(made).unwrap_or(i32::MAX),
            last_attempt_time: last,
            next_attempt_time: next_attempt,
            // What an attempt is at is not the machine's business.
            current_action: None,
            action_index: None,
            action_started_at: None,
            last_result: if has_failed { Some("Failed".to_owned()) } else { last_result },
            escalated: spent,
        })
    };
    if wanted.recovery() != recovery.as_ref() {
        *wanted.to_mut().kept().recovery = recovery;
    }
    let shown = wanted.failure_reason().and_then(FailureReason::find);
    let failure = FailureReason::of(next, facts, shown);
    let failure = failure.map(|reason| (reason.as_str(), truncate(&cause.message, MAX_MESSAGE)));
    let failure = failure.as_ref().map(|(reason, message)| (*reason, message.as_str()));
    if !wanted.shows(*state, failure) {
        wanted.to_mut().show(*state, failure);
    }
}

/// The events of a step; `ready` says what there is to say of an object that becomes Ready.
pub fn events<S: Remembered>(stored: &S, next: &Next, cause: &Cause, ready: impl FnOnce() -> String) -> Vec<Event> {
    let was_stalled = condition::is_true(stored.conditions(), conditions::STALLED);
    let before = read(stored);
    if next.state != State::Ready {
        return machine::events(&before, next, was_stalled, cause);
    }
    // Of an object that stays Ready there is nothing to say.
    let told = if before.state == Some(State::Ready) { String::new() } else { ready() };
    machine::events(&before, next, was_stalled, &Cause::new(cause.reason.clone(), told))
}

/// The cause that conditions show: the pass's own, or what the machine adds to it.
pub fn cause<S: Remembered>(stored: &S, next: &Next, own: &Cause, limits: &Limits) -> Cause {
    match next.because {
        Because::Facts => own.clone(),
        Because::Expired(timer) => {
            let limit = limits.timeouts.of(timer);
            Cause::new(timer.reason(), format!("not done within {limit} ({}): {}", timer.name(), own.message))
        }
        Because::BudgetSpent => Cause::new(
            own.reason.clone(),
            format!("given up after {} attempts to recover: {}", next.memory.attempts.made, own.message),
        ),
        // Nothing new failed since: the failure that was shown is the one that the user has to answer.
        Because::StillFailed => match condition::find(stored.conditions(), conditions::STALLED) {
            Some(stalled) => Cause::new(stalled.reason.clone(), stalled.message.clone()),
            None => own.clone(),
        },
    }
}

/// Whether the status shows that a check passed.
pub fn has_passed(stored: &CAPTControlPlaneStatus, check: CheckName) -> bool {
    stored.health.as_ref().is_some_and(|health| {
        health.checks.iter().any(|found| found.name == check.as_str() && found.status == CheckStatus::Passed)
    })
}

/// Whether the status shows a failure with this reason already.
pub fn is_shown<S: Remembered>(stored: &S, reason: &str) -> bool {
    [conditions::RECONCILING, conditions::HEALTHY, conditions::STALLED]
        .into_iter()
        .any(|type_| condition::find(stored.conditions(), type_).is_some_and(|condition| condition.reason == reason))
}

/// Whether the user has answered what the status shows as failed: by another spec or the word to try again, which
/// `hash` is of, or by what the Workspace of `child` has got since it failed, such as another template. A timer
/// that expired is answered by the user's own word alone: the provider may never look at the Workspace.
pub fn is_answered<S: Remembered>(stored: &S, hash: &str, child: &Child) -> bool {
    let is_timer = |reason: &str| Timer::ALL.into_iter().any(|timer| timer.reason() == reason);
    let has_failed = stored.state() == Some(State::Failed)
        && condition::find(stored.conditions(), conditions::STALLED).is_some_and(|stalled| !is_timer(&stalled.reason));
    stored.spec_hash().is_some_and(|stored| stored != hash) || has_failed && child.has_new_inputs()
}

/// When a status that differs in nothing but timers, progress, checks and dependencies is worth a write, if that is
/// later: so soon after the last transition more is likely to follow.
pub fn worth_a_write_at<S: Remembered>(stored: &S, wanted: &S, now: Time) -> Option<Time> {
    let (mut rest, mut before) = (wanted.clone(), stored.clone());
    let (Kept { deadlines, recovery: _, progress, health, dependencies }, before) = (rest.kept(), before.kept());
    std::mem::swap(deadlines, before.deadlines);
    std::mem::swap(progress, before.progress);
    std::mem::swap(health, before.health);
    std::mem::swap(dependencies, before.dependencies);
    if rest != *stored || wanted == stored {
        return None;
    }
    let last = stored.conditions().iter().map(|condition| condition.last_transition_time).max()?;
    let at = last.plus(BATCH);
    (at > now && last <= now).then_some(at)
}

/// Limits from the spec: `spec.timeouts`, then those of the Go implementation, then `defaults`.
pub fn limits(
    defaults: Timeouts,
    timeouts: Option<&SpecTimeouts>,
    go: &[(Timer, Option<i32>)],
    strategy: Option<&RecoveryStrategy>,
) -> Limits {
    let mut limits = Limits { timeouts: defaults, budget: budget(strategy) };
    let own = timeouts.into_iter().flat_map(|timeouts| {
        let SpecTimeouts {
            vpc_creation_timeout,
            vpc_ready_timeout,
            workspace_ready_timeout,
            control_plane_timeout,
            secret_timeout,
        } = timeouts;
        [
            (Timer::VpcCreation, *vpc_creation_timeout),
            (Timer::VpcReady, *vpc_ready_timeout),
            (Timer::WorkspaceReady, *workspace_ready_timeout),
            (Timer::ControlPlane, *control_plane_timeout),
            (Timer::Secret, *secret_timeout),
        ]
    });
    for (timer, minutes) in go.iter().copied().chain(own) {
        if let Some(minutes) = minutes.filter(|minutes| *minutes >= 1) {
            limits.timeouts = limits.timeouts.with(timer, Span::from_minutes(i64::from(minutes)));
        }
    }
    limits
}

fn budget(strategy: Option<&RecoveryStrategy>) -> Budget {
    let EffectiveStrategy { budget, actions } = strategy.cloned().unwrap_or_default().effective();
    // Without an action there is nothing to try.
    if actions.is_empty() { Budget { max_retries: 0, ..budget } } else { budget }
}

#[cfg(test)]
mod tests;
