//! What is told as events: the steps that change the course of an object, as data.
//!
//! Place in the flow: after [`follow`](super::follow), beside the conditions. What goes as expected is
//! told by progress and conditions alone, so that a creation without trouble is two events in all;
//! trouble, its end, attempts to recover and changes of what serves are told when they begin. It must
//! not publish anything: whoever writes the status publishes them, once that write succeeded.

use alloc::{format, string::String, vec::Vec};

use super::{
    facts::Cause,
    step::{Because, Memory, Next},
};
use crate::{
    state::State,
    text::{MAX_MESSAGE, truncate},
};

/// An event to publish.
///
/// ```
/// use capt_status::{State, Time, machine::{self, Cause, EventType, Limits, Memory}};
/// # use capt_status::machine::*;
/// # let facts = Facts { role: Role::Infrastructure, lifecycle: Lifecycle::Active, owner: Owner::Known,
/// #     inputs: Inputs::Valid, infrastructure: Infrastructure::Ready, workspace: Workspace::Ready, busy: false,
/// #     configuration: Configuration::Complete, checks: Checks::Passing, same_failure: false, user_changed: false };
///
/// let before = Memory::default();
/// let next = machine::follow(&before, &facts, &Limits::default(), Time::from_unix(0));
/// let told = machine::events(&before, &next, false, &Cause::new("Ready", "VPC vpc-1 is ready"));
/// assert_eq!((told[0].type_, told[0].reason, told[0].note.as_str()), (EventType::Normal, "Ready", "VPC vpc-1 is ready"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub type_: EventType,
    /// CamelCase reason, stable.
    pub reason: &'static str,
    /// Text for people, at most 1024 bytes; never a secret.
    pub note: String,
}

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Something went as wanted.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The events of a step from `before`: at most one of the transition, and one of what is done about it.
///
/// `was_stalled` is what the stored Stalled condition says; `cause` is what the conditions show, or for
/// Ready what there is to say of it.
pub fn events(before: &Memory, next: &Next, was_stalled: bool, cause: &Cause) -> Vec<Event> {
    let Next { memory, state, because, stalled, act, at: _ } = next;
    let mut told = Vec::new();
    if let Some((type_, reason)) = transition(before, *state, *because, *stalled && !was_stalled) {
        told.push(Event { type_, reason, note: truncate(&cause.message, MAX_MESSAGE) });
    }
    if *act {
        let note = truncate(&format!("attempt {}: {}", memory.attempts.made, cause.message), MAX_MESSAGE);
        told.push(Event { type_: EventType::Normal, reason: "RecoveryAttempt", note });
    }
    told
}

/// Type and reason of what a step to `state` is worth telling; `None` for what goes as expected.
const fn transition(
    before: &Memory,
    state: State,
    because: Because,
    now_stalled: bool,
) -> Option<(EventType, &'static str)> {
    let stays = match before.state {
        Some(from) => from as u8 == state as u8,
        None => false,
    };
    match (state, because) {
        (State::Deleting, _) if now_stalled => Some((EventType::Warning, "DeletionBlocked")),
        _ if stays => None,
        (State::Ready, _) if matches!(before.state, Some(State::Degraded)) => Some((EventType::Normal, "Recovered")),
        (State::Ready, _) => Some((EventType::Normal, "Ready")),
        (State::Degraded | State::Failed, Because::Expired(timer)) => Some((EventType::Warning, timer.reason())),
        (State::Degraded, _) => Some((EventType::Warning, "Degraded")),
        (State::Failed, Because::BudgetSpent) => Some((EventType::Warning, "RecoveryGivenUp")),
        (State::Failed, _) => Some((EventType::Warning, "Failed")),
        (State::Recovering, _) => Some((EventType::Warning, "Recovering")),
        (State::Provisioning, _) if before.served => Some((EventType::Normal, "RollingOut")),
        (State::Pending | State::Validating | State::Provisioning | State::Configuring, _) => match before.state {
            Some(State::Failed) => Some((EventType::Normal, "Retrying")),
            _ => None,
        },
        (State::Deleting, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Timer;

    fn next(state: State, because: Because) -> Next {
        let memory = Memory { state: Some(state), ..Memory::default() };
        Next { memory, state, because, stalled: state == State::Failed, act: false, at: None }
    }

    fn told(from: Option<State>, served: bool, to: State, because: Because) -> Option<(EventType, &'static str)> {
        let before = Memory { state: from, served, ..Memory::default() };
        let events = events(&before, &next(to, because), false, &Cause::new("AccessDenied", "no"));
        assert!(events.len() <= 1);
        events.first().map(|event| (event.type_, event.reason))
    }

    #[test]
    fn each_transition_is_told_once_and_by_its_own_word() {
        use EventType::{Normal, Warning};
        use State::{Configuring, Degraded, Deleting, Failed, Pending, Provisioning, Ready, Recovering, Validating};
        let expired = Because::Expired(Timer::Secret);
        for (from, served, to, because, expected) in [
            (None, false, Pending, Because::Facts, None),
            (Some(Pending), false, Validating, Because::Facts, None),
            (Some(Validating), false, Provisioning, Because::Facts, None),
            (Some(Provisioning), false, Configuring, Because::Facts, None),
            (Some(Configuring), false, Ready, Because::Facts, Some((Normal, "Ready"))),
            (None, false, Ready, Because::Facts, Some((Normal, "Ready"))),
            (Some(Ready), true, Degraded, Because::Facts, Some((Warning, "Degraded"))),
            (Some(Provisioning), true, Degraded, expired, Some((Warning, "SecretTimeout"))),
            (Some(Degraded), true, Ready, Because::Facts, Some((Normal, "Recovered"))),
            (Some(Ready), true, Provisioning, Because::Facts, Some((Normal, "RollingOut"))),
            (Some(Provisioning), true, Ready, Because::Facts, Some((Normal, "Ready"))),
            (Some(Provisioning), false, Recovering, Because::Facts, Some((Warning, "Recovering"))),
            (Some(Recovering), false, Provisioning, Because::Facts, None),
            (Some(Recovering), false, Failed, Because::BudgetSpent, Some((Warning, "RecoveryGivenUp"))),
            (Some(Configuring), false, Failed, expired, Some((Warning, "SecretTimeout"))),
            (None, false, Failed, Because::Facts, Some((Warning, "Failed"))),
            (Some(Failed), false, Provisioning, Because::Facts, Some((Normal, "Retrying"))),
            (Some(Failed), false, Ready, Because::Facts, Some((Normal, "Ready"))),
            (Some(Ready), true, Deleting, Because::Facts, None),
        ] {
            assert_eq!(told(from, served, to, because), expected, "{from:?} to {to:?}");
        }
        for state in State::ALL {
            assert_eq!(told(Some(state), false, state, Because::Facts), None, "staying in {state:?}");
        }
    }

    #[test]
    fn a_blocked_deletion_is_told_when_it_begins() {
        let before = Memory { state: Some(State::Deleting), ..Memory::default() };
        let blocked = Next { stalled: true, ..next(State::Deleting, Because::Facts) };
        let cause = Cause::new("AccessDenied", "no");
        let reasons = |was_stalled| {
            events(&before, &blocked, was_stalled, &cause).into_iter().map(|event| event.reason).collect::<Vec<_>>()
        };
        assert_eq!((reasons(false), reasons(true)), (Vec::from(["DeletionBlocked"]), Vec::new()));
    }

    #[test]
    fn an_attempt_is_told_beside_the_transition() {
        let mut attempt = next(State::Recovering, Because::Facts);
        attempt.act = true;
        attempt.memory.attempts.made = 2;
        let told = events(&Memory::default(), &attempt, false, &Cause::new("R", "m"));
        let told: Vec<_> = told.iter().map(|event| (event.reason, event.note.as_str())).collect();
        assert_eq!(told, [("Recovering", "m"), ("RecoveryAttempt", "attempt 2: m")]);
    }

    #[test]
    fn a_note_stays_within_its_bound() {
        for type_ in [State::Ready, State::Failed] {
            let mut next = next(type_, Because::Facts);
            next.act = true;
            let told = events(&Memory::default(), &next, false, &Cause::new("R", "x".repeat(5000)));
            assert!(told.len() == 2 && told.iter().all(|event| event.note.len() == MAX_MESSAGE));
        }
    }
}
