//! What a status remembers, and when it is worth a write.

use capt_status::{
    condition::Verdict,
    deadline::Running,
    failure::Class,
    machine::{Checks, Configuration, Infrastructure, Inputs, Lifecycle, Owner, Role, Workspace},
};

use super::*;

fn facts() -> Facts {
    Facts {
        role: Role::ControlPlane,
        lifecycle: Lifecycle::Active,
        owner: Owner::Known,
        inputs: Inputs::Valid,
        infrastructure: Infrastructure::Ready,
        workspace: Workspace::Failing(Class::Transient),
        busy: false,
        configuration: Configuration::Incomplete,
        checks: Checks::Passing,
        same_failure: true,
        user_changed: false,
    }
}

#[test]
fn what_is_recorded_is_what_is_read_back() {
    let now = Time::from_unix(1000);
    let mut memory = Memory { state: Some(State::Recovering), ..Memory::default() };
    memory.timers.set(Timer::Secret, Some(Running { started_at: now, suspended_for: Span::from_seconds(3) }));
    memory.attempts = Attempts { made: 2, last: Some(now), next: Some(now.plus(BATCH)), spent: false };
    let next = Next { memory, state: State::Recovering, because: Because::Facts, stalled: false, act: true, at: None };
    let mut status: Draft<'_, CAPTControlPlaneStatus> = Draft::Owned(CAPTControlPlaneStatus::default());
    record(&mut status, &next, &facts(), &Cause::new("R", "m"));
    assert_eq!(read(&*status), memory);
    assert_eq!(status.deadlines[0].name, "secretTimeout");
}

#[test]
fn the_spec_goes_before_go_and_go_before_the_flags_and_these_before_the_defaults() {
    let spec = SpecTimeouts { control_plane_timeout: Some(7), ..SpecTimeouts::default() };
    let go = [(Timer::ControlPlane, Some(60)), (Timer::VpcReady, Some(45))];
    let flags = [Timer::ControlPlane, Timer::VpcReady, Timer::Secret];
    let flags = flags.into_iter().fold(Timeouts::default(), |all, timer| all.with(timer, Span::from_minutes(90)));
    let limits = limits(flags, Some(&spec), &go, None);
    let minutes = |timer| limits.timeouts.of(timer).as_seconds() / 60;
    let timers = [Timer::ControlPlane, Timer::VpcReady, Timer::Secret, Timer::WorkspaceReady];
    assert_eq!(timers.map(minutes), [7, 45, 90, 30]);
}

type Status = CAPTControlPlaneStatus;

/// What `record` leaves of `stored` after a step that ends in `attempts`.
fn recovery_after(stored: Option<Recovery>, attempts: Attempts) -> Option<Recovery> {
    let memory = Memory { state: Some(State::Recovering), attempts, ..Memory::default() };
    let next = Next { memory, state: State::Recovering, because: Because::Facts, stalled: false, act: false, at: None };
    let mut status: Draft<'_, Status> = Draft::Owned(Status { recovery: stored, ..Status::default() });
    record(&mut status, &next, &facts(), &Cause::new("R", "m"));
    status.into_owned().recovery
}

#[test]
fn a_result_is_told_of_what_was_tried_and_of_nothing_else() {
    let now = Time::from_unix(1000);
    let planned = Recovery { next_attempt_time: Some(now), ..Recovery::default() };
    assert_eq!(recovery_after(Some(planned), Attempts::default()), None, "it healed before the first attempt");
    let tried =
        Recovery { attempts: 2, last_attempt_time: Some(now), next_attempt_time: Some(now), ..Recovery::default() };
    let succeeded =
        Recovery { last_attempt_time: Some(now), last_result: Some("Succeeded".to_owned()), ..Recovery::default() };
    assert_eq!(recovery_after(Some(tried.clone()), Attempts::default()), Some(succeeded.clone()));
    assert_eq!(recovery_after(Some(succeeded.clone()), Attempts::default()), Some(succeeded), "it stays to be seen");

    let result = |stored: &Recovery, attempts| {
        let after = recovery_after(Some(stored.clone()), attempts).unwrap();
        (after.last_result, after.escalated)
    };
    let made = Attempts { made: 2, last: Some(now), next: Some(now), spent: false };
    assert_eq!(result(&tried, made), (None, false), "the next attempt may do it");
    let failed = Some("Failed".to_owned());
    assert_eq!(result(&tried, Attempts { next: None, ..made }), (failed.clone(), false), "there is no next one");
    assert_eq!(result(&tried, Attempts { spent: true, ..made }), (failed, true));
    let scheduled = Attempts { made: 0, last: None, next: Some(now), spent: false };
    assert_eq!(result(&Recovery::default(), scheduled), (None, false), "nothing was tried");
}

#[test]
fn a_failure_is_shown_by_whichever_condition_has_its_reason() {
    let now = Time::from_unix(1000);
    for type_ in ["Reconciling", "Healthy", "Stalled"] {
        let verdict = vec![Verdict::new(type_, false, "AccessDenied", "")];
        let status = Status { conditions: condition::merge(&[], verdict, 1, now), ..Status::default() };
        assert!(is_shown(&status, "AccessDenied"), "{type_}");
        assert!(!is_shown(&status, "Throttled"), "{type_}");
    }
    assert!(!is_shown(&Status::default(), "AccessDenied"));
}

#[test]
fn where_nothing_was_begun_no_progress_is_told() {
    let limits = Limits::default();
    let waiting = Facts { owner: Owner::Missing, ..facts() };
    let next = machine::follow(&Memory::default(), &waiting, &limits, Time::from_unix(1000));
    assert_eq!(next.state, State::Pending);
    let mut status: Draft<'_, Status> = Draft::Owned(Status::default());
    let cause = Cause::new("R", "m");
    record_progress(&mut status, &waiting, &next, &cause, Operation::Update, &limits, Time::from_unix(1000));
    assert_eq!(status.progress, None);
}

/// Whatever else changes is told at once: transitions above all.
#[test]
fn only_timers_progress_checks_and_dependencies_wait_for_a_batch() {
    let then = Time::from_unix(1000);
    let verdict = vec![Verdict::new("Ready", true, "Ready", "")];
    let stored = Status { conditions: condition::merge(&[], verdict, 1, then), ..Status::default() };
    let (soon, later) = (then.plus(Span::from_seconds(1)), then.plus(BATCH));
    let change = |change: fn(&mut Status)| {
        let mut wanted = stored.clone();
        change(&mut wanted);
        wanted
    };
    let small: [fn(&mut Status); 4] = [
        |status| status.deadlines.push(Deadline::new("secretTimeout", Running::start(Time::from_unix(1)))),
        |status| status.progress = Some(Progress::default()),
        |status| status.health = Some(Health::observe(None, &[], Time::from_unix(1))),
        |status| status.dependencies = Some(Dependencies::default()),
    ];
    for (number, wanted) in small.map(change).into_iter().enumerate() {
        assert_eq!(worth_a_write_at(&stored, &wanted, soon), Some(later), "{number}");
        assert_eq!(worth_a_write_at(&stored, &wanted, later), None, "{number}: it has waited");
        assert_eq!(worth_a_write_at(&stored, &wanted, Time::from_unix(999)), None, "{number}: a clock that is wrong");
    }
    let great: [fn(&mut Status); 4] = [
        |status| status.state = Some(State::Failed),
        |status| status.conditions[0].reason = "Other".to_owned(),
        |status| status.recovery = Some(Recovery::default()),
        |status| {
            status.health = Some(Health::observe(None, &[], Time::from_unix(1)));
            status.endpoint = Some("https://e".to_owned());
        },
    ];
    for wanted in great.map(change) {
        assert_eq!(worth_a_write_at(&stored, &wanted, soon), None);
    }
    assert_eq!(worth_a_write_at(&stored, &stored, soon), None, "there is nothing to write");
}
