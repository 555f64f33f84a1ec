//! One step: what was, what is, what follows.
//!
//! [`step`] is total, deterministic and allocates nothing; `None` means that nothing changed.

use super::{
    facts::{Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Owner, Teardown, Workspace},
    timers::{Timeouts, Timer, Timers},
};
use crate::{
    backoff::{Attempts, Budget, Pace},
    deadline::Running,
    failure::Class,
    state::State,
    time::Time,
};

/// What the status remembers of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Memory {
    /// State that the status shows; absent before the first pass.
    pub state: Option<State>,
    /// Latch: it was ready once.
    pub served: bool,
    /// Timers that run.
    pub timers: Timers,
    /// Attempts to recover.
    pub attempts: Attempts,
    /// Since when it is paused.
    pub paused_since: Option<Time>,
}

/// What the user or the operator's flags allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// How long each timer may run.
    pub timeouts: Timeouts,
    /// How often to try.
    pub budget: Budget,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// What the status shall remember.
    pub memory: Memory,
    /// The state that follows.
    pub state: State,
    /// What the state follows from, where it is more than the facts say.
    pub because: Because,
    /// Whether nothing goes on without a person.
    pub stalled: bool,
    /// Whether a recovery action is due now.
    pub act: bool,
    /// When to step again even if nothing happens.
    pub at: Option<Time>,
}

/// What a state follows from beyond the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Because {
    /// The facts alone.
    Facts,
    /// A timer that expired.
    Expired(Timer),
    /// The recovery budget, which is spent.
    BudgetSpent,
    /// A failure that the user did not answer yet.
    StillFailed,
}

/// What follows from `facts` at `now`, after what the status remembers.
///
/// Always gives a result; [`step`] compares it with what is there.
pub fn follow(memory: &Memory, facts: &Facts, limits: &Limits, now: Time) -> Next {
    let mut next = *memory;
    if facts.lifecycle == Lifecycle::Paused {
        // Nothing moves; the pause is counted when it ends.
        next.paused_since = memory.paused_since.or(Some(now));
        let state = memory.state.unwrap_or(State::Pending);
        return Next { memory: next, state, because: Because::Facts, stalled: false, act: false, at: None };
    }
    if let Some(since) = next.paused_since.take() {
        next.timers.resume(since, now);
    }
    if facts.user_changed {
        next.attempts = Attempts::default();
    }
    if let Lifecycle::Deleting(teardown) = facts.lifecycle {
        return delete(next, facts, teardown, limits, now);
    }
    next.timers.advance(facts, facts.user_changed, now);
    if facts.is_complete() && (memory.served || facts.owner == Owner::Known) {
        next.served = true;
        next.attempts = Attempts::default();
        let state = match facts.checks {
            Checks::Passing => State::Ready,
            Checks::Failing => State::Degraded,
        };
        next.state = Some(state);
        return Next { memory: next, state, because: Because::Facts, stalled: false, act: false, at: None };
    }
    let denied = next.timers.is_expired(Timer::PermissionGrace, &limits.timeouts, now);
    let may_pass = match facts.failure() {
        // Without an owner nothing is worked on that was never ready.
        Some(_) if facts.owner == Owner::Missing && !next.served => false,
        Some(Class::Transient | Class::Quota | Class::Unknown) => true,
        Some(Class::Permission) => !denied,
        Some(Class::Config) | None => false,
    };
    let expired = next.timers.expired(&limits.timeouts, now);
    // What has failed for good is not worked on behind the user's back.
    let given_up = !next.served && (expired.is_some() || (memory.state == Some(State::Failed) && !facts.user_changed));
    let act = may_pass && !given_up && next.attempts.advance(&limits.budget, pace(facts), facts.busy, now);
    if !may_pass || given_up || limits.budget.max_retries == 0 {
        next.attempts.next = None;
    }
    let (state, because) = decide(memory, &next, facts, limits, expired, may_pass);
    next.state = Some(state);
    if state == State::Failed {
        next.timers.give_up(&limits.timeouts, now);
    }
    // One that is due and waits for a busy provider waits for an event and not for a time.
    let retry = next.attempts.next.filter(|at| *at > now);
    let at = match state {
        State::Failed | State::Pending => None,
        State::Validating
        | State::Provisioning
        | State::Configuring
        | State::Ready
        | State::Degraded
        | State::Recovering
        | State::Deleting => [next.timers.next(&limits.timeouts, now), retry].into_iter().flatten().min(),
    };
    Next { memory: next, state, because, stalled: state == State::Failed, act, at }
}

/// What follows, or `None` if nothing changed and nothing is to be done.
///
/// ```
/// use capt_status::{Class, State, Time, machine::*};
///
/// let facts = Facts {
///     role: Role::ControlPlane, lifecycle: Lifecycle::Active, owner: Owner::Known, inputs: Inputs::Valid,
///     infrastructure: Infrastructure::Ready, workspace: Workspace::Failing(Class::Transient), busy: false,
///     configuration: Configuration::Incomplete, checks: Checks::Passing, same_failure: false, user_changed: false,
/// };
/// let (limits, now) = (Limits::default(), Time::from_unix(0));
/// let next = step(&Memory::default(), &facts, &limits, now).ok_or("something follows")?;
/// assert_eq!((next.state, next.at), (State::Recovering, Some(Time::from_unix(30))));
/// // Looking again before that time says nothing.
/// assert_eq!(step(&next.memory, &facts, &limits, Time::from_unix(29)), None);
/// # Ok::<(), &str>(())
/// ```
pub fn step(memory: &Memory, facts: &Facts, limits: &Limits, now: Time) -> Option<Next> {
    let next = follow(memory, facts, limits, now);
    (next.memory != *memory || next.act).then_some(next)
}

/// A quota is not there again in seconds.
const fn pace(facts: &Facts) -> Pace {
    match facts.failure() {
        Some(Class::Quota) => Pace::Longest,
        Some(Class::Transient | Class::Permission | Class::Config | Class::Unknown) | None => Pace::Growing,
    }
}

fn decide(
    memory: &Memory,
    next: &Memory,
    facts: &Facts,
    limits: &Limits,
    expired: Option<Timer>,
    may_pass: bool,
) -> (State, Because) {
    let fails = facts.failure().is_some();
    if next.served {
        // What was ready once is never Failed, whatever its Workspace or a timer says.
        return match (expired, facts.workspace, facts.configuration) {
            _ if fails => (State::Degraded, Because::Facts),
            (Some(timer), _, _) => (State::Degraded, Because::Expired(timer)),
            (None, Workspace::Ready, Configuration::Incomplete) => (State::Degraded, Because::Facts),
            (None, Workspace::Ready, Configuration::Complete)
            | (None, Workspace::Queued | Workspace::Applying | Workspace::Failing(_), _) => {
                (State::Provisioning, Because::Facts)
            }
        };
    }
    if facts.owner == Owner::Missing {
        return (State::Pending, Because::Facts);
    }
    if fails && !may_pass {
        return (State::Failed, Because::Facts);
    }
    if let Some(timer) = expired {
        return (State::Failed, Because::Expired(timer));
    }
    if fails && next.attempts.spent {
        return (State::Failed, Because::BudgetSpent);
    }
    if memory.state == Some(State::Failed) && !facts.user_changed {
        return (State::Failed, Because::StillFailed);
    }
    let state = match (facts.inputs, facts.infrastructure, facts.workspace) {
        (Inputs::Unresolved, _, _) => State::Validating,
        _ if fails && limits.budget.max_retries > 0 => State::Recovering,
        (Inputs::Valid | Inputs::Invalid | Inputs::Unsupported, Infrastructure::Queued | Infrastructure::Begun, _)
        | (
            Inputs::Valid | Inputs::Invalid | Inputs::Unsupported,
            Infrastructure::Ready,
            Workspace::Queued | Workspace::Applying | Workspace::Failing(_),
        ) => State::Provisioning,
        (Inputs::Valid | Inputs::Invalid | Inputs::Unsupported, Infrastructure::Ready, Workspace::Ready) => {
            State::Configuring
        }
    };
    (state, Because::Facts)
}

/// A deletion: no timer but the grace, and stalled once a failure will not pass by itself.
fn delete(mut next: Memory, facts: &Facts, teardown: Teardown, limits: &Limits, now: Time) -> Next {
    let grace = next.timers.get(Timer::PermissionGrace).filter(|_| facts.same_failure && !facts.user_changed);
    next.timers = Timers::default();
    next.state = Some(State::Deleting);
    let stalled = match teardown {
        Teardown::Waiting | Teardown::Blocked(Class::Transient | Class::Quota | Class::Unknown) => false,
        Teardown::Blocked(Class::Config) => true,
        Teardown::Blocked(Class::Permission) => {
            let running = grace.unwrap_or(Running::start(now));
            next.timers.set(Timer::PermissionGrace, Some(running));
            next.timers.is_expired(Timer::PermissionGrace, &limits.timeouts, now)
        }
    };
    next.attempts.next = None;
    let at = next.timers.next(&limits.timeouts, now);
    Next { memory: next, state: State::Deleting, because: Because::Facts, stalled, act: false, at }
}
