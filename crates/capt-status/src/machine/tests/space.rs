//! What there is to try: every combination of facts, memories of every state, and the facts that
//! differ in what follows from them.

extern crate std;

use alloc::{collections::BTreeSet, vec, vec::Vec};

use super::*;

/// `n` where `CAPT_SWEEP=n` asks to look at every n-th only: for tools that run the tests hundreds of
/// times.
#[allow(clippy::disallowed_methods)] // how much is tried is up to whoever runs the tests
pub(super) fn stride() -> u64 {
    std::env::var("CAPT_SWEEP").ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0).unwrap_or(1)
}

fn workspaces() -> Vec<Workspace> {
    let mut all = vec![Workspace::Queued, Workspace::Applying, Workspace::Ready];
    all.extend(Class::ALL.map(Workspace::Failing));
    all
}

fn lifecycles() -> Vec<Lifecycle> {
    let mut all = vec![Lifecycle::Active, Lifecycle::Paused, Lifecycle::Deleting(Teardown::Waiting)];
    all.extend(Class::ALL.map(|class| Lifecycle::Deleting(Teardown::Blocked(class))));
    all
}

/// Calls `with` for every combination of facts.
pub(super) fn each_fact(mut with: impl FnMut(Facts)) {
    const FLAGS: [bool; 2] = [false, true];
    let (lifecycles, workspaces) = (lifecycles(), workspaces());
    let mut flags = Vec::new();
    for checks in [Checks::Passing, Checks::Failing] {
        for (busy, same_failure, user_changed) in
            FLAGS.into_iter().flat_map(|a| FLAGS.map(|b| FLAGS.map(|c| (a, b, c)))).flatten()
        {
            flags.push((checks, busy, same_failure, user_changed));
        }
    }
    for role in [Role::Infrastructure, Role::ControlPlane] {
        for &lifecycle in &lifecycles {
            for owner in [Owner::Missing, Owner::Known] {
                for inputs in [Inputs::Unresolved, Inputs::Valid, Inputs::Invalid, Inputs::Unsupported] {
                    for infrastructure in [Infrastructure::Queued, Infrastructure::Begun, Infrastructure::Ready] {
                        for &workspace in &workspaces {
                            for configuration in [Configuration::Incomplete, Configuration::Complete] {
                                for &(checks, busy, same_failure, user_changed) in &flags {
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

/// The same without what makes no difference; that it makes none is a law of the sweep.
pub(super) fn reduced(facts: Facts) -> Facts {
    // An order for what is equal: the first of each group stands for it.
    let first = Facts {
        role: facts.role,
        lifecycle: facts.lifecycle,
        owner: Owner::Known,
        inputs: Inputs::Valid,
        infrastructure: Infrastructure::Ready,
        workspace: Workspace::Ready,
        busy: false,
        configuration: Configuration::Complete,
        checks: Checks::Passing,
        same_failure: true,
        user_changed: facts.user_changed,
    };
    match facts.lifecycle {
        Lifecycle::Paused => return Facts { user_changed: false, ..first },
        Lifecycle::Deleting(Teardown::Blocked(Class::Permission)) => {
            return Facts { same_failure: facts.same_failure, ..first };
        }
        Lifecycle::Deleting(Teardown::Blocked(Class::Quota | Class::Unknown | Class::Transient)) => {
            return Facts { lifecycle: Lifecycle::Deleting(Teardown::Waiting), ..first };
        }
        Lifecycle::Deleting(Teardown::Waiting | Teardown::Blocked(Class::Config)) => return first,
        Lifecycle::Active => {}
    }
    let inputs = if facts.inputs == Inputs::Unsupported { Inputs::Invalid } else { facts.inputs };
    let workspace = match facts.workspace {
        Workspace::Failing(Class::Unknown) => Workspace::Failing(Class::Transient),
        other => other,
    };
    let mut same = Facts { inputs, workspace, ..facts };
    let failure = same.failure();
    if failure.is_none_or(|class| class == Class::Config) {
        same.busy = false;
    }
    if failure != Some(Class::Permission) {
        same.same_failure = true;
    }
    if same.workspace != Workspace::Ready {
        same.configuration = Configuration::Incomplete;
    }
    if !same.is_complete() {
        same.checks = Checks::Passing;
    }
    same
}

/// Facts that differ in what follows from them, of an object that is `role`.
pub(super) fn distinct_facts(role: Role) -> Vec<Facts> {
    let mut distinct = Vec::new();
    let mut seen = BTreeSet::new();
    each_fact(|facts| {
        let possible = role == Role::ControlPlane || facts.infrastructure == Infrastructure::Ready;
        if facts.role == role && possible && reduced(facts) == facts && seen.insert(alloc::format!("{facts:?}")) {
            distinct.push(facts);
        }
    });
    distinct
}

/// Memories of every state, with timers that just started, that have expired, and with each stage of
/// the budget. Only what a status can hold: what has served is not Failed, what was never ready is
/// neither Ready nor Degraded.
pub(super) fn memories() -> Vec<Memory> {
    let mut all = vec![Memory::default()];
    let ages = [None, Some(1), Some(100_000)];
    let at = Time::from_unix;
    let attempts = [
        Attempts::default(),
        Attempts { made: 1, last: Some(at(999_900)), next: Some(at(1_000_060)), spent: false },
        Attempts { made: 2, last: Some(at(999_000)), next: Some(at(999_999)), spent: false },
        Attempts { made: 5, last: Some(at(999_000)), next: Some(at(999_999)), spent: false },
        Attempts { made: 5, last: Some(at(999_000)), next: None, spent: true },
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
                    // A pause differs by what runs meanwhile and not by what was tried.
                    let pauses = [None, Some(at(999_990))];
                    for paused_since in pauses.into_iter().take(1 + usize::from(attempts == Attempts::default())) {
                        let mut timers = Timers::default();
                        if let Some(age) = age {
                            let started_at = at(NOW.as_unix() - age);
                            for timer in Timer::ALL {
                                timers.set(timer, Some(Running { started_at, suspended_for: Span::ZERO }));
                            }
                        }
                        all.push(Memory { state: Some(state), served, timers, attempts, paused_since });
                    }
                }
            }
        }
    }
    all
}

/// `memory` as it would be `seconds` later.
pub(super) fn shifted(memory: &Memory, seconds: i64) -> Memory {
    let shift = |at: Time| Time::from_unix(at.as_unix() + seconds);
    let mut later = *memory;
    for timer in Timer::ALL {
        later.timers.set(
            timer,
            memory
                .timers
                .get(timer)
                .map(|Running { started_at, suspended_for }| Running { started_at: shift(started_at), suspended_for }),
        );
    }
    later.attempts.last = memory.attempts.last.map(shift);
    later.attempts.next = memory.attempts.next.map(shift);
    later.paused_since = memory.paused_since.map(shift);
    later
}
