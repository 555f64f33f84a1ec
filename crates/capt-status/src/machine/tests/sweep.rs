//! Every combination of facts against every memory: laws that hold in each single step.

extern crate std;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};
use std::println;

use super::*;

fn workspaces() -> Vec<Workspace> {
    let mut all = vec![Workspace::Queued, Workspace::Applying, Workspace::Ready];
    all.extend(CLASSES.map(Workspace::Failing));
    all
}

fn lifecycles() -> Vec<Lifecycle> {
    let mut all = vec![Lifecycle::Active, Lifecycle::Paused, Lifecycle::Deleting(Teardown::Waiting)];
    all.extend(CLASSES.map(|class| Lifecycle::Deleting(Teardown::Blocked(class))));
    all
}

fn each_fact(mut with: impl FnMut(Facts)) {
    const FLAGS: [bool; 2] = [false, true];
    for role in [Role::Infrastructure, Role::ControlPlane] {
        for lifecycle in lifecycles() {
            for owner in [Owner::Missing, Owner::Known] {
                for inputs in [Inputs::Unresolved, Inputs::Valid, Inputs::Invalid, Inputs::Unsupported] {
                    for infrastructure in [Infrastructure::Queued, Infrastructure::Begun, Infrastructure::Ready] {
                        for workspace in workspaces() {
                            for configuration in [Configuration::Incomplete, Configuration::Complete] {
                                for checks in [Checks::Passing, Checks::Failing] {
                                    for (busy, same_failure, user_changed) in FLAGS
                                        .into_iter()
                                        .flat_map(|a| FLAGS.map(|b| FLAGS.map(|c| (a, b, c))))
                                        .flatten()
                                    {
                                        with(Facts {
                                            role,
                                            lifecycle,
                                            owner,
                                            inputs,
                                            infrastructure,
                                            workspace,
                                            busy,
                                            configuration,
                                            checks,
                                            same_failure,
                                            user_changed,
                                        });
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Memories of every state, with timers that just started, that have expired, and with each stage of
/// the budget. Only what a status can hold: what has served is not Failed, what was never ready is
/// neither Ready nor Degraded.
fn memories() -> Vec<Memory> {
    let mut all = vec![Memory::default()];
    let ages = [None, Some(1), Some(100_000)];
    let attempts = [
        Attempts::default(),
        Attempts {
            made: 1,
            last: Some(Time::from_unix(999_900)),
            next: Some(Time::from_unix(1_000_060)),
            spent: false,
        },
        Attempts { made: 2, last: Some(Time::from_unix(999_000)), next: Some(Time::from_unix(999_999)), spent: false },
        Attempts { made: 5, last: Some(Time::from_unix(999_000)), next: Some(Time::from_unix(999_999)), spent: false },
        Attempts { made: 5, last: Some(Time::from_unix(999_000)), next: None, spent: true },
    ];
    for state in State::ALL {
        for served in [false, true] {
            let possible = match state {
                State::Ready | State::Degraded => served,
                State::Pending | State::Validating | State::Configuring | State::Failed | State::Recovering => !served,
                State::Provisioning | State::Deleting => true,
            };
            if !possible {
                continue;
            }
            for age in ages {
                for attempts in attempts {
                    let mut timers = Timers::default();
                    if let Some(age) = age {
                        let started_at = Time::from_unix(NOW.as_unix() - age);
                        for timer in Timer::ALL {
                            timers.set(timer, Some(Running { started_at, suspended_for: Span::ZERO }));
                        }
                    }
                    all.push(Memory { state: Some(state), served, timers, attempts, paused_since: None });
                }
            }
        }
    }
    all
}

#[test]
fn the_sweep() {
    let limits = Limits::default();
    let memories = memories();
    let (mut checked, mut reached) = (0_u64, BTreeMap::<(Option<State>, State), u64>::new());
    let mut seen = BTreeSet::new();
    each_fact(|facts| {
        for memory in &memories {
            // Nothing is undeleted.
            if memory.state == Some(State::Deleting) && matches!(facts.lifecycle, Lifecycle::Active) {
                continue;
            }
            checked += 1;
            let next = follow(memory, &facts, &limits, NOW);
            *reached.entry((memory.state, next.state)).or_default() += 1;
            seen.insert(match next.because {
                Because::Facts => "facts",
                Because::Expired(timer) => timer.name(),
                Because::BudgetSpent => "budget",
                Because::StillFailed => "still failed",
            });
            laws(memory, &facts, &limits, &next);
        }
    });
    println!("{checked} combinations of facts and memories, {} pairs of states", reached.len());
    assert!(checked >= 100_000);
    let edges: BTreeSet<(State, State)> =
        reached.keys().filter_map(|(from, to)| from.filter(|from| from != to).map(|from| (from, *to))).collect();
    let table: BTreeSet<(State, State)> =
        State::ALL.into_iter().flat_map(|from| from.successors().iter().map(move |to| (from, *to))).collect();
    assert_eq!(edges, table, "every edge of the table is reached and none other");
    let states: BTreeSet<State> = reached.keys().map(|(_, to)| *to).collect();
    assert_eq!(states, BTreeSet::from(State::ALL), "each state is reached");
    let expected = BTreeSet::from([
        "facts",
        "budget",
        "still failed",
        "vpcCreationTimeout",
        "workspaceReadyTimeout",
        "vpcReadyTimeout",
        "controlPlaneTimeout",
        "secretTimeout",
    ]);
    assert_eq!(seen, expected, "each way to a state is reached");
}

/// Laws of one step.
fn laws(memory: &Memory, facts: &Facts, limits: &Limits, next: &Next) {
    let say = || std::format!("{facts:?}\n{memory:?}\n{next:?}");
    // P8: legal edges only.
    if let Some(from) = memory.state {
        assert!(from == next.state || from.successors().contains(&next.state), "{}", say());
    }
    // P5: the latch never falls.
    assert!(next.memory.served || !memory.served, "{}", say());
    // P10: Ready is honest.
    if next.state == State::Ready && facts.lifecycle == Lifecycle::Active {
        assert!(facts.is_complete() && facts.checks == Checks::Passing && next.memory.served, "{}", say());
    }
    // What served is never Failed.
    assert!(!(next.memory.served && next.state == State::Failed), "{}", say());
    // P11: Failed only for what will not pass, an expired timer or a spent budget.
    if next.state == State::Failed && facts.lifecycle == Lifecycle::Active {
        let config = facts.failure() == Some(Class::Config);
        let denied = facts.failure() == Some(Class::Permission);
        assert!(config || denied || next.because != Because::Facts, "{}", say());
        assert!(next.stalled && !next.act && next.at.is_none(), "{}", say());
    }
    // P17: paused, nothing moves.
    if facts.lifecycle == Lifecycle::Paused {
        let moved = Memory { paused_since: memory.paused_since, ..next.memory };
        assert!(moved == *memory && !next.act && next.at.is_none(), "{}", say());
        return;
    }
    // Deleting ends in nothing else, and never acts.
    if let Lifecycle::Deleting(_) = facts.lifecycle {
        assert!(next.state == State::Deleting && !next.act, "{}", say());
    }
    // An action is only asked for where a failure may pass, and never of a provider at work.
    if next.act {
        assert!(facts.failure().is_some_and(|class| class != Class::Config) && !facts.busy, "{}", say());
        assert!(next.memory.attempts.made <= limits.budget.max_retries, "{}", say());
    }
    // P19: the next step is in the future.
    assert!(next.at.is_none_or(|at| at > NOW), "{}", say());
    // P3: the same facts at the same time again change nothing and ask for nothing.
    let settled = Facts { user_changed: false, same_failure: true, ..*facts };
    let again = follow(&next.memory, &settled, limits, NOW);
    if !next.act {
        assert_eq!((again.memory, again.state, again.act), (next.memory, next.state, false), "{}", say());
        assert_eq!(step(&next.memory, &settled, limits, NOW), None, "{}", say());
    }
    // P16: a clock that went back fires nothing and lets nothing expire.
    let back = follow(&next.memory, &settled, limits, Time::from_unix(0));
    let fired = matches!(back.because, Because::Expired(_)) && back.state == State::Failed;
    assert!(!fired && (!back.act || next.act), "{}\n{back:?}", say());
    shows(next);
}

/// The conditions follow the state, and say to kstatus exactly one thing.
fn shows(next: &Next) {
    let cause = Cause::new("Because", "because");
    let verdicts = verdicts(next.state, next.memory.served, next.stalled, &cause, true);
    let is = |type_| status_of(&verdicts, type_) == True;
    let kstatus = match (is("Deleting"), is("Reconciling"), is("Stalled"), is("Ready")) {
        (true, _, _, _) => "Terminating",
        (false, true, _, _) => "InProgress",
        (false, false, true, _) => "Failed",
        (false, false, false, true) => "Current",
        (false, false, false, false) => "InProgress",
    };
    let expected = match next.state {
        State::Pending | State::Validating | State::Provisioning | State::Configuring | State::Recovering => {
            "InProgress"
        }
        State::Ready | State::Degraded => "Current",
        State::Failed => "Failed",
        State::Deleting => "Terminating",
    };
    assert_eq!(kstatus, expected, "{next:?}");
}
