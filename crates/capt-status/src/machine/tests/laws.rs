//! The laws, each by its name: what holds of every single step.
//!
//! The sweep asks them of every combination of facts and memories, the search of every memory that can
//! be reached. Each says whether it is about a step at all, so that none holds for want of cases.

extern crate std;

use alloc::{vec, vec::Vec};
use std::sync::OnceLock;

use super::*;
use crate::machine::FailureReason;

/// One step, and all that it followed from.
pub(super) struct Step<'a> {
    pub(super) memory: &'a Memory,
    pub(super) facts: &'a Facts,
    pub(super) limits: &'a Limits,
    pub(super) now: Time,
    pub(super) next: &'a Next,
}

/// What a law says of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is about something else.
    Silent,
    /// It holds.
    Holds,
    /// It does not.
    Broken,
}

use Ruling::Silent;

fn holds(is_so: bool) -> Ruling {
    if is_so { Ruling::Holds } else { Ruling::Broken }
}

/// A law and its name.
pub(super) type Law = (&'static str, fn(&Step<'_>) -> Ruling);

/// Facts that are taken for equal lead to the same.
pub(super) const REDUCTION: &str = "P4 what makes no difference makes none";

/// Every law of one step.
pub(super) const LAWS: [Law; 20] = [
    ("P2 rests between its times", rests),
    ("P3 idempotent", idempotent),
    ("P4 time is relative", time_is_relative),
    (REDUCTION, reduction),
    ("P5 latch", latch),
    ("P6 forgets nothing that runs", forgets_nothing),
    ("P8 legal edges", legal_edges),
    ("P10 Ready is honest", ready_is_honest),
    ("P11 Failed is honest", failed_is_honest),
    ("P11 failureReason", failure_reason),
    ("P16 nothing expires early", nothing_early),
    ("P16 nothing expires late", nothing_late),
    ("P16 a clock that goes back", clock_goes_back),
    ("P16 never Failed after Ready", never_failed_after_ready),
    ("P17 paused", paused),
    ("P17 a pause takes no time", pause_takes_no_time),
    ("P19 looks again", looks_again),
    ("P23 acts with care", acts_with_care),
    ("deleting", deleting),
    ("one thing to every tool", shows_one_thing),
];

fn settled(facts: &Facts) -> Facts {
    Facts { user_changed: false, same_failure: true, ..*facts }
}

/// Before the time that it asks for, and forever where it asks for none, nothing changes by itself.
fn rests(step: &Step<'_>) -> Ruling {
    const DAY: i64 = 86_400;
    let Step { memory: _, facts, limits, now, next } = step;
    let until = next.at.map_or(now.as_unix() + DAY, |at| at.as_unix() - 1);
    let middle = i64::midpoint(now.as_unix(), until);
    holds([middle, until].into_iter().filter(|at| *at > now.as_unix()).all(|at| {
        let later = follow(&next.memory, &settled(facts), limits, Time::from_unix(at));
        // What is still failed keeps the text that it has.
        let same_text = later.because == next.because || later.because == Because::StillFailed;
        (later.memory, later.state, later.stalled, later.act) == (next.memory, next.state, next.stalled, false)
            && same_text
    }))
}

/// The same facts at the same time again change nothing and ask for nothing, and `step` says so.
fn idempotent(step_: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits, now, next } = step_;
    let again = follow(&next.memory, &settled(facts), limits, *now);
    let same = (again.memory, again.state, again.act, again.at) == (next.memory, next.state, false, next.at);
    let is_new = next.memory != **memory || next.act;
    holds(same && step(memory, facts, limits, *now) == is_new.then_some(**next))
}

/// Nothing but differences of times counts.
fn time_is_relative(step: &Step<'_>) -> Ruling {
    const LATER: i64 = 4_999;
    let Step { memory, facts, limits, now, next } = step;
    let shift = |at: Time| Time::from_unix(at.as_unix() + LATER);
    let later = follow(&space::shifted(memory, LATER), facts, limits, shift(*now));
    let expected = Next { memory: space::shifted(&next.memory, LATER), at: next.at.map(shift), ..**next };
    holds(later == expected)
}

/// As the name says.
fn reduction(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits, now, next } = step;
    let reduced = space::reduced(**facts);
    if reduced == **facts {
        return Silent;
    }
    holds(follow(memory, &reduced, limits, *now) == **next)
}

/// What was ready once stays known as such.
fn latch(step: &Step<'_>) -> Ruling {
    let Step { memory, facts: _, limits: _, now: _, next } = step;
    if !memory.served {
        return Silent;
    }
    holds(next.memory.served)
}

/// A timer that still runs keeps its start, and attempts are forgotten by success and by the user alone.
fn forgets_nothing(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits: _, now: _, next } = step;
    if facts.user_changed || facts.lifecycle != Lifecycle::Active || memory.paused_since.is_some() {
        return Silent;
    }
    let kept = Timer::ALL.into_iter().all(|timer| {
        match (memory.timers.get(timer), next.memory.timers.get(timer)) {
            // Another failure has its own grace.
            (Some(_), Some(_)) if timer == Timer::PermissionGrace && !facts.same_failure => true,
            (Some(before), Some(after)) => before == after,
            (None, _) | (_, None) => true,
        }
    });
    let made = next.memory.attempts.made >= memory.attempts.made || facts.is_complete();
    holds(kept && made)
}

/// The table of edges.
fn legal_edges(step: &Step<'_>) -> Ruling {
    match step.memory.state {
        None => Silent,
        Some(from) => holds(from == step.next.state || from.successors().contains(&step.next.state)),
    }
}

fn ready_is_honest(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits: _, now: _, next } = step;
    if facts.lifecycle != Lifecycle::Active {
        return Silent;
    }
    // Said once more in full, so that it holds whatever the machine takes for complete.
    let is_so = facts.inputs == Inputs::Valid
        && facts.infrastructure == Infrastructure::Ready
        && facts.workspace == Workspace::Ready
        && facts.configuration == Configuration::Complete
        && facts.checks == Checks::Passing;
    if next.state == State::Ready {
        return holds(is_so && next.memory.served && !next.stalled);
    }
    // And what is ready is told, late success included.
    if is_so && facts.owner == Owner::Known { Ruling::Broken } else { Silent }
}

/// Failed only for what will not pass, an expired timer or a spent budget; it then waits for a person.
fn failed_is_honest(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits, now, next } = step;
    if next.state != State::Failed || facts.lifecycle != Lifecycle::Active {
        return Silent;
    }
    let rightly = match next.because {
        Because::Facts => match facts.failure() {
            Some(Class::Config) => true,
            Some(Class::Permission) => next.memory.timers.is_expired(Timer::PermissionGrace, &limits.timeouts, *now),
            Some(Class::Transient | Class::Quota | Class::Unknown) | None => false,
        },
        Because::Expired(timer) => next.memory.timers.is_expired(timer, &limits.timeouts, *now),
        Because::BudgetSpent => next.memory.attempts.made >= limits.budget.max_retries,
        Because::StillFailed => memory.state == Some(State::Failed) && !facts.user_changed,
    };
    holds(rightly && next.stalled && !next.act && next.at.is_none())
}

/// The word of Cluster API goes with Failed, says Config of Config only, and stays until answered.
fn failure_reason(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits: _, now: _, next } = step;
    let word = FailureReason::of(next, facts, None);
    let config = matches!(word, Some(FailureReason::InvalidConfiguration | FailureReason::UnsupportedChange));
    let because = facts.failure() == Some(Class::Config) || facts.inputs == Inputs::Unresolved;
    let shown = Some(FailureReason::UnsupportedChange);
    let keeps = next.because != Because::StillFailed || FailureReason::of(next, facts, shown) == shown;
    holds(word.is_some() == (next.state == State::Failed) && (!config || because) && keeps)
}

/// What an expired timer leads to, leads there at its end and not before.
fn nothing_early(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts: _, limits, now, next } = step;
    let Because::Expired(timer) = next.because else { return Silent };
    let ended = |running: Running| running.started_at.plus(limits.timeouts.of(timer)).plus(running.suspended_for);
    holds(next.memory.timers.get(timer).is_some_and(|running| ended(running) <= *now))
}

/// A timer whose end has come is seen in the first step after it.
fn nothing_late(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits, now, next } = step;
    let expired = next.memory.timers.expired(&limits.timeouts, *now).is_some();
    if !expired || facts.lifecycle != Lifecycle::Active || facts.owner == Owner::Missing {
        return Silent;
    }
    holds(matches!(next.state, State::Failed | State::Degraded))
}

/// A clock that went back fires nothing and lets nothing expire.
fn clock_goes_back(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits, now: _, next } = step;
    if next.memory.paused_since.is_some() {
        return Silent;
    }
    let back = follow(&next.memory, &settled(facts), limits, Time::from_unix(0));
    let fired = matches!(back.because, Because::Expired(_)) || back.memory.attempts.spent != next.memory.attempts.spent;
    holds(!fired && !back.act)
}

fn never_failed_after_ready(step: &Step<'_>) -> Ruling {
    if !step.next.memory.served {
        return Silent;
    }
    holds(step.next.state != State::Failed)
}

/// Paused, nothing moves but the time since when.
fn paused(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits: _, now, next } = step;
    if facts.lifecycle != Lifecycle::Paused {
        return Silent;
    }
    let since = memory.paused_since.or(Some(*now));
    let state = next.state == memory.state.unwrap_or(State::Pending);
    holds(next.memory == Memory { paused_since: since, ..**memory } && state && !next.act && next.at.is_none())
}

/// What a pause took is added to everything that runs, and to nothing else.
fn pause_takes_no_time(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits, now, next } = step;
    let Some(since) = memory.paused_since else { return Silent };
    if facts.lifecycle == Lifecycle::Paused {
        return Silent;
    }
    // As if it had never been paused, and everything had started later by as long as the pause took.
    let mut never = Memory { paused_since: None, ..**memory };
    for timer in Timer::ALL {
        let later = memory.timers.get(timer).map(|mut running| {
            let stood_still = now.since(if since < running.started_at { running.started_at } else { since });
            running.suspended_for = running.suspended_for.plus(stood_still);
            running
        });
        never.timers.set(timer, later);
    }
    holds(follow(&never, facts, limits, *now) == **next && next.memory.paused_since.is_none())
}

/// The next look is in the future, and not after the end of anything that runs.
fn looks_again(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits, now, next } = step;
    if next.at.is_some_and(|at| at <= *now) {
        return Ruling::Broken;
    }
    if facts.lifecycle == Lifecycle::Paused || matches!(next.state, State::Failed | State::Pending | State::Ready) {
        return Silent;
    }
    let ends = Timer::ALL.into_iter().filter_map(|timer| {
        let running = next.memory.timers.get(timer)?;
        Some(running.expires_at(limits.timeouts.of(timer)))
    });
    match ends.filter(|end| end > now).min() {
        None => Silent,
        Some(end) => holds(next.at.is_some_and(|at| at <= end)),
    }
}

/// Nothing is asked of the provider but where a failure may pass, within the budget, of a provider that
/// is not at work, for an object that is alive and not given up.
fn acts_with_care(step: &Step<'_>) -> Ruling {
    let Step { memory, facts, limits, now, next } = step;
    if !next.act {
        return holds([memory.attempts.made, 0].contains(&next.memory.attempts.made));
    }
    let may_pass = facts.failure().is_some_and(|class| class != Class::Config);
    let due = memory.attempts.next.is_some_and(|due| due <= *now) && !facts.user_changed;
    let counted = next.memory.attempts.made == memory.attempts.made + 1;
    let within = next.memory.attempts.made <= limits.budget.max_retries;
    let alive = facts.lifecycle == Lifecycle::Active && next.state != State::Failed;
    holds(may_pass && due && counted && within && alive && !facts.busy)
}

/// Deleting ends in nothing else, never acts, and is blocked only by what will not pass.
fn deleting(step: &Step<'_>) -> Ruling {
    let Step { memory: _, facts, limits, now, next } = step;
    let Lifecycle::Deleting(teardown) = facts.lifecycle else { return Silent };
    let stalled = match teardown {
        Teardown::Waiting | Teardown::Blocked(Class::Transient | Class::Quota | Class::Unknown) => false,
        Teardown::Blocked(Class::Config) => true,
        Teardown::Blocked(Class::Permission) => {
            next.memory.timers.is_expired(Timer::PermissionGrace, &limits.timeouts, *now)
        }
    };
    holds(next.state == State::Deleting && !next.act && next.stalled == stalled)
}

/// Whether what a state shows says one thing: nothing else counts, so each is found out once.
static SHOWN: OnceLock<Vec<bool>> = OnceLock::new();

/// The conditions follow the state, and say to kstatus exactly one thing.
fn shows_one_thing(step: &Step<'_>) -> Ruling {
    // A pause shows nothing but itself.
    if step.facts.lifecycle == Lifecycle::Paused {
        return Silent;
    }
    let Next { memory, state, because: _, stalled, act: _, at: _ } = step.next;
    let index =
        |state: State, served: bool, stalled: bool| state as usize * 4 + usize::from(served) * 2 + usize::from(stalled);
    let shown = SHOWN.get_or_init(|| {
        let mut shown = vec![false; State::ALL.len() * 4];
        for state in State::ALL {
            for (served, stalled) in [(false, false), (false, true), (true, false), (true, true)] {
                shown[index(state, served, stalled)] = says_one_thing(state, served, stalled);
            }
        }
        shown
    });
    holds(shown[index(*state, memory.served, *stalled)])
}

fn says_one_thing(state: State, served: bool, stalled: bool) -> bool {
    let verdicts = verdicts(state, served, stalled, &Cause::new("Because", "because"), true);
    let is = |type_| status_of(&verdicts, type_) == True;
    let kstatus = match (is("Deleting"), is("Reconciling"), is("Stalled"), is("Ready")) {
        (true, _, _, _) => "Terminating",
        (false, true, false, _) => "InProgress",
        (false, false, true, false) => "Failed",
        (false, false, false, true) => "Current",
        (false, true, true, _) | (false, false, true, true) | (false, false, false, false) => "contradiction",
    };
    kstatus
        == match state {
            State::Pending | State::Validating | State::Provisioning | State::Configuring | State::Recovering => {
                "InProgress"
            }
            State::Ready | State::Degraded => "Current",
            State::Failed => "Failed",
            State::Deleting => "Terminating",
        }
}
