//! How far an operation is, along lives of a step a minute.

use super::*;
use crate::{
    Operation::{Create, Delete, Update, Upgrade},
    OperationResult::{Failed, Succeeded, Superseded},
    machine::progress::milestones,
};

/// Follows a list of facts, a minute apart, and gives the progress after each.
fn progress_along(facts: &[Facts]) -> Vec<crate::Progress> {
    progress_of_changes(&facts.iter().map(|facts| (*facts, Update)).collect::<Vec<_>>())
}

/// As [`progress_along`], with what the change of each step would be.
fn progress_of_changes(steps: &[(Facts, crate::Operation)]) -> Vec<crate::Progress> {
    let limits = Limits::default();
    let (mut memory, mut shown, mut all) = (Memory::default(), crate::Progress::default(), Vec::new());
    for (minute, (facts, change)) in steps.iter().enumerate() {
        let now = NOW.plus(Span::from_minutes(i64::try_from(minute).unwrap()));
        let next = follow(&memory, facts, &limits, now);
        let taken = crate::machine::progress::Taken {
            served_before: memory.served,
            facts,
            next: &next,
            change: *change,
            timeouts: &limits.timeouts,
            why: "why",
        };
        shown = crate::machine::progress::advance(&shown, taken, now).into_owned();
        memory = next.memory;
        all.push(shown.clone());
    }
    all
}

#[test]
fn progress_counts_milestones_and_remembers_how_operations_ended() {
    let queued = Facts { infrastructure: Infrastructure::Queued, workspace: Workspace::Queued, ..facts() };
    let steps = [queued, Facts { workspace: Workspace::Queued, ..facts() }, facts(), complete(), facts(), complete()];
    let along = progress_along(&steps);
    let percent: Vec<_> = along.iter().map(|progress| progress.percent_complete).collect();
    assert_eq!(percent, [20, 40, 60, 100, 60, 100].map(Some));
    assert_eq!(along[3].milestone.as_deref(), Some("5 of 5"));
    let history = &along[5].history;
    let ended: Vec<_> = history.iter().map(|record| (record.operation, record.result)).collect();
    assert_eq!(ended, [(Create, Succeeded), (Update, Succeeded)]);
    assert_eq!(along[4].started_at, Some(NOW.plus(Span::from_minutes(4))));
    assert_eq!(along[1].deadline, Some(NOW.plus(Span::from_minutes(30))), "of the whole creation");
}

#[test]
fn the_percentage_never_goes_down_within_one_operation() {
    let queued = Facts { workspace: Workspace::Queued, ..facts() };
    let along = progress_along(&[facts(), queued, failing(Class::Transient), facts()]);
    let percent: Vec<_> = along.iter().filter_map(|progress| progress.percent_complete).collect();
    assert!(percent.windows(2).all(|pair| pair[0] <= pair[1]), "{percent:?}");
}

#[test]
fn the_estimate_is_the_past_of_this_object() {
    let steps = [facts(), facts(), facts(), complete(), facts(), complete(), facts()];
    let along = progress_along(&steps);
    assert_eq!(along[0].estimated_time_remaining, None, "there is no past");
    assert_eq!(along[6].estimated_time_remaining, Some(Span::from_minutes(1)), "as long as the last update");
    assert_eq!(along[5].estimated_time_remaining, None, "nothing is in flight");
}

#[test]
fn a_failure_is_recorded_once_and_the_history_is_bounded() {
    let bad = failing(Class::Config);
    assert_eq!(progress_along(&[bad, bad, bad]).last().unwrap().history.len(), 1);
    let many: Vec<Facts> = (0..60).map(|step| if step % 2 == 0 { facts() } else { complete() }).collect();
    assert_eq!(progress_along(&many).last().unwrap().history.len(), 10);
}

/// What ended along `steps`, and how.
fn ended(steps: &[Facts]) -> Vec<(crate::Operation, crate::OperationResult)> {
    let last = progress_along(steps).pop().unwrap();
    last.history.iter().map(|record| (record.operation, record.result)).collect()
}

#[test]
fn milestones_are_passed_one_after_the_other() {
    let queued = Facts { workspace: Workspace::Queued, ..facts() };
    let early = Facts { configuration: Configuration::Complete, ..facts() };
    let ready = Facts { workspace: Workspace::Ready, ..facts() };
    let no_vpc = Facts { infrastructure: Infrastructure::Begun, ..complete() };
    let no_owner = Facts { owner: Owner::Missing, ..complete() };
    for (facts, of_five, of_three) in [
        (no_owner, 0, 0),
        (no_vpc, 1, 1),
        (queued, 2, 1),
        (facts(), 3, 2),
        // What is collected before the Workspace is ready is of the last time.
        (early, 3, 2),
        (ready, 4, 2),
        (complete(), 5, 3),
    ] {
        assert_eq!(milestones(&facts), (of_five, 5), "{facts:?}");
        assert_eq!(milestones(&Facts { role: Role::Infrastructure, ..facts }), (of_three, 3), "{facts:?}");
    }
}

#[test]
fn nothing_is_done_without_an_owner_or_in_a_pause() {
    let no_owner = Facts { owner: Owner::Missing, ..complete() };
    assert_eq!(progress_along(&[no_owner]), [crate::Progress::default()]);
    let paused = Facts { lifecycle: Lifecycle::Paused, ..facts() };
    let along = progress_along(&[facts(), paused, paused]);
    assert_eq!((&along[1], &along[2]), (&along[0], &along[0]));
    let along = progress_along(&[complete(), paused]);
    assert_eq!(along[1], along[0]);
}

#[test]
fn an_operation_ends_in_success_failure_or_another_one() {
    let changed = Facts { user_changed: true, ..facts() };
    let deleting = Facts { lifecycle: Lifecycle::Deleting(Teardown::Waiting), ..complete() };
    let deleting_changed = Facts { user_changed: true, ..deleting };
    let bad = failing(Class::Config);
    let tried_again = Facts { user_changed: true, ..bad };
    for (steps, expected) in [
        (&[facts(), changed, complete()][..], &[(Create, Superseded), (Create, Succeeded)][..]),
        (&[facts(), deleting, deleting, deleting_changed], &[(Create, Superseded)]),
        (&[complete(), deleting, deleting], &[(Create, Succeeded)]),
        // An update that fails is not over, and so it neither failed nor succeeded.
        (&[complete(), facts(), failing(Class::Transient)], &[(Create, Succeeded)]),
        (&[complete(), facts(), failing(Class::Transient), complete()], &[(Create, Succeeded), (Update, Succeeded)]),
        (&[complete(), facts(), changed], &[(Create, Succeeded), (Update, Superseded)]),
        (&[bad, bad, tried_again, bad], &[(Create, Failed), (Create, Superseded), (Create, Failed)]),
        (&[bad, complete()], &[(Create, Failed), (Create, Succeeded)]),
    ] {
        assert_eq!(ended(steps), expected, "{steps:#?}");
    }
}

#[test]
fn an_upgrade_stays_one_until_it_ends() {
    let steps = [(complete(), Update), (facts(), Upgrade), (facts(), Update), (complete(), Update)];
    let along = progress_of_changes(&steps);
    let operations: Vec<_> = along.iter().map(|progress| progress.current_operation.unwrap()).collect();
    assert_eq!(operations, [Create, Upgrade, Upgrade, Upgrade]);
    let ended: Vec<_> = along[3].history.iter().map(|record| (record.operation, record.result)).collect();
    assert_eq!(ended, [(Create, Succeeded), (Upgrade, Succeeded)]);
}

#[test]
fn a_deletion_has_no_milestones() {
    let deleting = Facts { lifecycle: Lifecycle::Deleting(Teardown::Waiting), ..complete() };
    let last = progress_along(&[complete(), deleting]).pop().unwrap();
    assert_eq!((last.current_operation, last.percent_complete, last.milestone), (Some(Delete), Some(0), None));
    assert_eq!(last.started_at, Some(NOW.plus(Span::from_minutes(1))));
}

#[test]
fn an_estimate_stays_until_a_milestone_and_takes_after_its_own_kind() {
    let queued = Facts { workspace: Workspace::Queued, ..facts() };
    // A creation tells nothing of an update, and neither does an update that was superseded.
    let changed = Facts { user_changed: true, ..facts() };
    assert_eq!(progress_along(&[facts(), facts(), complete(), facts()])[3].estimated_time_remaining, None);
    assert_eq!(progress_along(&[complete(), facts(), facts(), changed])[3].estimated_time_remaining, None);
    // An update of three minutes, and then another one.
    let steps = [complete(), queued, queued, facts(), complete(), queued, queued, queued, queued, facts()];
    let minutes: Vec<_> = progress_along(&steps)[5..]
        .iter()
        .map(|progress| progress.estimated_time_remaining.map(|left| left.as_seconds() / 60))
        .collect();
    // It lies in the past at the next milestone, and then nothing is said.
    assert_eq!(minutes, [Some(3), Some(3), Some(3), Some(3), None]);
    // What passed meanwhile is not left any more.
    let steps = [complete(), queued, queued, facts(), complete(), queued, facts()];
    assert_eq!(progress_along(&steps)[6].estimated_time_remaining, Some(Span::from_minutes(2)));
    // At its very end nothing is left.
    let steps = [complete(), queued, facts(), complete(), queued, queued, facts()];
    assert_eq!(progress_along(&steps)[6].estimated_time_remaining, None);
}
