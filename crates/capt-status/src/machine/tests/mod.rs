//! What follows from chosen facts, step by step along a life; the [`laws`] of
//! every step are asked in the [`sweep`] and in the [`search`].

use alloc::{vec, vec::Vec};

use super::*;
use crate::{
    backoff::{Attempts, Budget},
    condition::{
        ConditionStatus::{False, True},
        Verdict,
    },
    deadline::Running,
    failure::Class,
    state::State,
    time::{Span, Time},
};

mod conditions;
mod laws;
mod progress;
mod search;
mod space;
mod sweep;

const NOW: Time = Time::from_unix(1_000_000);

fn status_of(verdicts: &[Verdict], type_: &str) -> crate::ConditionStatus {
    verdicts.iter().find(|verdict| verdict.type_ == type_).unwrap().status
}

#[test]
fn the_conditions_of_each_state_are_those_of_the_table() {
    // state, served, Ready, Available, Reconciling, Stalled
    let table = [
        (State::Pending, false, False, False, True, False),
        (State::Validating, false, False, False, True, False),
        (State::Provisioning, false, False, False, True, False),
        (State::Configuring, false, False, False, True, False),
        (State::Provisioning, true, True, True, True, False),
        (State::Ready, true, True, True, False, False),
        (State::Degraded, true, True, True, False, False),
        (State::Recovering, false, False, False, True, False),
        (State::Failed, false, False, False, False, True),
        (State::Deleting, true, False, True, True, False),
    ];
    for (state, served, ready, available, reconciling, stalled) in table {
        let verdicts = verdicts(state, served, state == State::Failed, &Cause::new("Because", "because"), true);
        let shown = ["Ready", "Available", "Reconciling", "Stalled"].map(|type_| status_of(&verdicts, type_));
        assert_eq!(shown, [ready, available, reconciling, stalled], "{state:?} served={served}");
    }
}

fn facts() -> Facts {
    Facts {
        role: Role::ControlPlane,
        lifecycle: Lifecycle::Active,
        owner: Owner::Known,
        inputs: Inputs::Valid,
        infrastructure: Infrastructure::Ready,
        workspace: Workspace::Applying,
        busy: false,
        configuration: Configuration::Incomplete,
        checks: Checks::Passing,
        same_failure: true,
        user_changed: false,
    }
}

fn complete() -> Facts {
    Facts { workspace: Workspace::Ready, configuration: Configuration::Complete, ..facts() }
}

fn failing(class: Class) -> Facts {
    Facts { workspace: Workspace::Failing(class), ..facts() }
}

/// Steps until nothing more happens by itself, at each time that the step asks for; the states on
/// the way and the times at which an action was asked for.
fn drive(mut memory: Memory, facts: Facts, mut now: Time) -> (Memory, Vec<State>, Vec<i64>, Time) {
    let limits = Limits::default();
    let (mut states, mut acts) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let next = follow(&memory, &facts, &limits, now);
        memory = next.memory;
        if states.last() != Some(&next.state) {
            states.push(next.state);
        }
        if next.act {
            acts.push(now.as_unix() - NOW.as_unix());
        }
        match next.at {
            Some(at) => now = at,
            None => return (memory, states, acts, now),
        }
    }
    panic!("it never comes to rest: {memory:?}");
}

#[test]
fn a_failure_that_may_pass_is_tried_with_backoff_and_then_given_up() {
    let (memory, states, acts, _) = drive(Memory::default(), failing(Class::Transient), NOW);
    assert_eq!(states, [State::Recovering, State::Failed]);
    // 30 s, then 60, 120, 240, 480 later; the deadlines (30 min) come after.
    assert_eq!(acts, [30, 90, 210, 450, 930]);
    assert!(memory.attempts.spent);
}

#[test]
fn a_quota_is_tried_at_the_longest_interval() {
    let (_, states, acts, _) = drive(Memory::default(), failing(Class::Quota), NOW);
    assert_eq!((states, acts), (vec![State::Recovering, State::Failed], vec![600, 1200]), "then the deadline");
}

#[test]
fn a_lack_of_permission_may_pass_for_ten_minutes() {
    let (memory, states, _, at) = drive(Memory::default(), failing(Class::Permission), NOW);
    assert_eq!(states, [State::Recovering, State::Failed]);
    assert_eq!(at.since(NOW), Span::from_minutes(10));
    // Another reason has its own grace.
    let other = Facts { same_failure: false, user_changed: true, ..failing(Class::Permission) };
    assert_eq!(follow(&memory, &other, &Limits::default(), at).state, State::Recovering);
}

#[test]
fn a_mistake_in_the_configuration_fails_at_once() {
    let (_, states, acts, _) = drive(Memory::default(), failing(Class::Config), NOW);
    assert_eq!((states, acts), (vec![State::Failed], vec![]));
    let invalid = Facts { inputs: Inputs::Invalid, ..facts() };
    assert_eq!(drive(Memory::default(), invalid, NOW).1, [State::Failed]);
}

#[test]
fn failed_is_left_by_success_by_the_user_and_by_nothing_else() {
    let limits = Limits::default();
    let (failed, ..) = drive(Memory::default(), failing(Class::Config), NOW);
    assert_eq!(follow(&failed, &facts(), &limits, NOW).state, State::Failed, "the provider tries something else");
    assert_eq!(follow(&failed, &complete(), &limits, NOW).state, State::Ready, "success seen from outside");
    let changed = Facts { user_changed: true, ..facts() };
    assert_eq!(follow(&failed, &changed, &limits, NOW).state, State::Provisioning);
}

#[test]
fn each_timer_expires_at_its_time_and_late_success_leads_to_ready() {
    let infrastructure = Facts { role: Role::Infrastructure, configuration: Configuration::Complete, ..facts() };
    let table = [
        (Timer::VpcCreation, 30, Facts { workspace: Workspace::Queued, ..infrastructure }),
        (Timer::WorkspaceReady, 30, infrastructure),
        (Timer::VpcReady, 15, Facts { infrastructure: Infrastructure::Begun, workspace: Workspace::Queued, ..facts() }),
        (
            Timer::ControlPlane,
            30,
            Facts { infrastructure: Infrastructure::Queued, workspace: Workspace::Queued, ..facts() },
        ),
        (Timer::Secret, 5, Facts { workspace: Workspace::Ready, ..facts() }),
    ];
    let limits = Limits::default();
    for (timer, minutes, facts) in table {
        let start = follow(&Memory::default(), &facts, &limits, NOW);
        let at = NOW.plus(Span::from_minutes(minutes));
        assert_eq!(start.at, Some(at), "{timer:?}: the next step is exactly the deadline");
        let before = follow(&start.memory, &facts, &limits, Time::from_unix(at.as_unix() - 1));
        assert_ne!(before.state, State::Failed, "{timer:?}");
        let expired = follow(&start.memory, &facts, &limits, at);
        assert_eq!((expired.state, expired.because), (State::Failed, Because::Expired(timer)));
        assert_eq!(follow(&expired.memory, &facts, &limits, at.plus(Span::from_minutes(600))).state, State::Failed);
        let late = Facts { role: facts.role, ..complete() };
        assert_eq!(follow(&expired.memory, &late, &limits, at).state, State::Ready, "{timer:?}");
    }
}

#[test]
fn a_pause_stops_every_timer() {
    let limits = Limits::default();
    let start = follow(&Memory::default(), &facts(), &limits, NOW);
    let paused = Facts { lifecycle: Lifecycle::Paused, ..facts() };
    let at = |minutes| NOW.plus(Span::from_minutes(minutes));
    let pause = follow(&start.memory, &paused, &limits, at(10));
    assert_eq!((pause.state, pause.at), (State::Provisioning, None));
    let resumed = follow(&pause.memory, &facts(), &limits, at(100));
    assert_eq!((resumed.state, resumed.at), (State::Provisioning, Some(at(120))), "20 minutes are left");
    assert_eq!(follow(&resumed.memory, &facts(), &limits, at(120)).state, State::Failed);
}

#[test]
fn what_serves_is_degraded_by_failures_and_timers_and_comes_back() {
    let limits = Limits::default();
    let ready = follow(&Memory::default(), &complete(), &limits, NOW).memory;
    for class in Class::ALL {
        let degraded = follow(&ready, &failing(class), &limits, NOW);
        assert_eq!(degraded.state, State::Degraded);
        assert_eq!(follow(&degraded.memory, &complete(), &limits, NOW).state, State::Ready);
        let (_, states, _, _) = drive(ready, failing(class), NOW);
        assert_eq!(states, [State::Degraded], "whatever happens to {class:?}");
    }
    let (_, states, ..) = drive(ready, facts(), NOW);
    assert_eq!(states, [State::Provisioning, State::Degraded], "an update that hangs");
    let unhealthy = Facts { checks: Checks::Failing, ..complete() };
    assert_eq!(follow(&ready, &unhealthy, &limits, NOW).state, State::Degraded);
}

#[test]
fn no_retries_means_never_act_and_only_a_deadline_ends_the_waiting() {
    let limits = Limits { budget: Budget { max_retries: 0, ..Budget::default() }, ..Limits::default() };
    let first = follow(&Memory::default(), &failing(Class::Transient), &limits, NOW);
    assert_eq!((first.state, first.act), (State::Provisioning, false));
    let at = first.at.unwrap();
    let last = follow(&first.memory, &failing(Class::Transient), &limits, at);
    assert_eq!((last.state, last.act), (State::Failed, false));
}

#[test]
fn a_provider_at_work_is_not_asked_again() {
    let limits = Limits::default();
    let busy = Facts { busy: true, ..failing(Class::Transient) };
    let mut memory = follow(&Memory::default(), &busy, &limits, NOW).memory;
    for minutes in [1, 5, 20] {
        let next = follow(&memory, &busy, &limits, NOW.plus(Span::from_minutes(minutes)));
        assert!(!next.act);
        memory = next.memory;
    }
    assert!(follow(&memory, &failing(Class::Transient), &limits, NOW.plus(Span::from_minutes(21))).act);
}

#[test]
fn a_blocked_deletion_stalls_when_it_will_not_pass() {
    let limits = Limits::default();
    let deleting = |class| Facts { lifecycle: Lifecycle::Deleting(Teardown::Blocked(class)), ..complete() };
    for class in [Class::Transient, Class::Quota, Class::Unknown] {
        assert!(!follow(&Memory::default(), &deleting(class), &limits, NOW).stalled);
    }
    assert!(follow(&Memory::default(), &deleting(Class::Config), &limits, NOW).stalled);
    let first = follow(&Memory::default(), &deleting(Class::Permission), &limits, NOW);
    assert!(!first.stalled);
    assert_eq!(first.at, Some(NOW.plus(Span::from_minutes(10))));
    let later = follow(&first.memory, &deleting(Class::Permission), &limits, first.at.unwrap());
    assert!(later.stalled && later.at.is_none());
}

#[test]
fn another_failure_of_a_deletion_has_its_own_grace() {
    let limits = Limits::default();
    let denied = Facts { lifecycle: Lifecycle::Deleting(Teardown::Blocked(Class::Permission)), ..complete() };
    let first = follow(&Memory::default(), &denied, &limits, NOW);
    let later = first.at.unwrap();
    for (same_failure, user_changed, stalled) in
        [(true, false, true), (false, false, false), (true, true, false), (false, true, false)]
    {
        let facts = Facts { same_failure, user_changed, ..denied };
        assert_eq!(follow(&first.memory, &facts, &limits, later).stalled, stalled, "{facts:?}");
    }
}

#[test]
fn timers_are_called_as_the_spec_calls_them() {
    let names = [
        "vpcCreationTimeout",
        "workspaceReadyTimeout",
        "vpcReadyTimeout",
        "controlPlaneTimeout",
        "secretTimeout",
        "permissionGrace",
    ];
    assert_eq!(Timer::ALL.map(Timer::name), names);
}

/// Each law of a step by its name, over all combinations and along every reachable life.
macro_rules! step_laws {
    ($($test:ident: $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                sweep::holds_in_the_sweep($name);
                search::holds_in_the_search($name);
            }
        )*

        #[test]
fn no_attempt_is_announced_that_will_not_be_made() {
    let never = Limits { budget: Budget { max_retries: 0, ..Budget::default() }, ..Limits::default() };
    let next = follow(&Memory::default(), &failing(Class::Transient), &never, NOW);
    assert_eq!(next.memory.attempts.next, None, "a budget of none");
    // The time of the whole creation passes while an attempt is due.
    let limits = Limits::default();
    let first = follow(&Memory::default(), &failing(Class::Transient), &limits, NOW).memory;
    assert!(first.attempts.next.is_some());
    let late = follow(&first, &failing(Class::Transient), &limits, NOW.plus(Span::from_minutes(31)));
    assert_eq!((late.memory.state, late.act, late.memory.attempts.next), (Some(State::Failed), false, None));
}

#[test]
        fn every_law_is_a_test() {
            assert_eq!(laws::LAWS.map(|(name, _)| name), [$($name),*]);
        }
    };
}

step_laws! {
    p02_nothing_changes_before_its_time: "P2 rests between its times";
    p03_the_same_facts_again_change_nothing: "P3 idempotent";
    p04_only_differences_of_times_count: "P4 time is relative";
    p04_facts_taken_for_equal_lead_to_the_same: "P4 what makes no difference makes none";
    p05_the_latch_never_falls: "P5 latch";
    p06_what_runs_is_not_forgotten: "P6 forgets nothing that runs";
    p08_only_legal_edges: "P8 legal edges";
    p10_ready_is_honest: "P10 Ready is honest";
    p11_failed_is_honest: "P11 Failed is honest";
    p11_failure_reason_goes_with_failed: "P11 failureReason";
    p16_nothing_expires_early: "P16 nothing expires early";
    p16_nothing_expires_late: "P16 nothing expires late";
    p16_a_clock_that_goes_back_fires_nothing: "P16 a clock that goes back";
    p16_never_failed_after_ready: "P16 never Failed after Ready";
    p17_paused_nothing_moves: "P17 paused";
    p17_a_pause_takes_no_time: "P17 a pause takes no time";
    p19_looks_again_in_time: "P19 looks again";
    p23_acts_with_care: "P23 acts with care";
    deleting_ends_in_nothing_else: "deleting";
    every_tool_is_told_one_thing: "one thing to every tool";
}
