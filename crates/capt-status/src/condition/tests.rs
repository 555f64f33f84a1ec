//! Laws of condition lists, over tables and over random histories.

use alloc::{
    format,
    string::{String, ToString as _},
    vec,
    vec::Vec,
};

use proptest::{collection::vec as vec_of, prelude::*, sample::select};

use super::*;
use crate::{
    condition_type,
    text::MAX_MESSAGE,
    time::{Span, Time},
};

fn stored(type_: &str, status: ConditionStatus, at: i64) -> Condition {
    Condition {
        type_: type_.into(),
        status,
        observed_generation: Some(1),
        last_transition_time: Time::from_unix(at),
        reason: "Old".into(),
        message: "old".into(),
    }
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let before = [stored("Ready", ConditionStatus::False, 10), stored("Paused", ConditionStatus::False, 10)];
    let verdicts = vec![Verdict::new("Ready", true, "Ready", ""), Verdict::new("Paused", false, "NotPaused", "new")];
    let after = merge(&before, verdicts, 2, Time::from_unix(20));
    assert_eq!((after[0].last_transition_time, after[0].observed_generation), (Time::from_unix(20), Some(2)));
    assert_eq!((after[1].last_transition_time, after[1].message.as_str()), (Time::from_unix(10), "new"));
}

#[test]
fn a_new_generation_is_something_new_to_say() {
    let verdict = || Verdict::new("Ready", true, "Ready", "");
    let mut conditions = merge(&[], vec![verdict()], 1, Time::from_unix(10));
    assert!(is_told(&conditions, &[verdict()], 1));
    assert!(!is_told(&conditions, &[verdict()], 2));
    assert!(set(&mut conditions, verdict(), 2, Time::from_unix(20)));
    assert_eq!((conditions[0].observed_generation, conditions[0].last_transition_time), (Some(2), Time::from_unix(10)));
}

#[test]
fn a_clock_that_went_back_moves_no_transition_time_back() {
    let before = [stored("Ready", ConditionStatus::False, 30)];
    let after = merge(&before, vec![Verdict::new("Ready", true, "Ready", "")], 1, Time::from_unix(20));
    assert_eq!(after[0].last_transition_time, Time::from_unix(30));
}

#[test]
fn a_mirror_keeps_the_time_of_the_other_object() {
    let theirs = [stored("Ready", ConditionStatus::True, 15)];
    let mirrored = || mirror(&theirs, "Ready", condition_type!("DiskReady")).unwrap();
    // previous status and time, now, time stored
    for (previous, now, at) in [
        (None, 20, 15),
        (Some((ConditionStatus::False, 10)), 20, 15),
        (Some((ConditionStatus::False, 18)), 20, 18), // never back
        (Some((ConditionStatus::True, 3)), 20, 3),    // no change of status
        (None, 12, 12),                               // their clock is ahead of ours
    ] {
        let before: Vec<Condition> = previous.map(|(status, at)| stored("DiskReady", status, at)).into_iter().collect();
        let after = merge(&before, vec![mirrored()], 1, Time::from_unix(now));
        assert_eq!(after[0].last_transition_time, Time::from_unix(at), "{previous:?} at {now}");
    }
}

#[test]
fn a_mirror_of_what_is_no_condition_says_so() {
    let odd: crate::kstatus::LooseCondition =
        serde_json::from_str(r#"{"type": "Ready", "status": "true", "reason": "not one word"}"#).unwrap();
    let verdict = mirror(core::slice::from_ref(&odd), "Ready", condition_type!("DiskReady")).unwrap();
    assert_eq!((verdict.status, verdict.reason.as_str()), (ConditionStatus::Unknown, "InvalidConditionReported"));
    assert_eq!(verdict.message, "status for the Ready condition must be one of True, False, Unknown");
    assert_eq!(mirror(&[odd], "Synced", condition_type!("DiskSynced")), None);
}

#[test]
fn conditions_of_others_stay_byte_identical() {
    let foreign = stored("example.com/Audited", ConditionStatus::Unknown, 3);
    let before = core::slice::from_ref(&foreign);
    let after = merge(before, vec![Verdict::new("Ready", true, "Ready", "")], 1, Time::from_unix(20));
    assert_eq!(after[1], foreign);
    assert_eq!(after.len(), 2);
    let sent: Vec<&Condition> = of_types(&after, &["Ready"]).collect();
    assert_eq!(sent, [&after[0]]);
}

#[test]
fn order_does_not_make_a_difference() {
    let (a, b) = (stored("A", ConditionStatus::True, 1), stored("B", ConditionStatus::True, 1));
    assert!(same(&[a.clone(), b.clone()], &[b.clone(), a.clone()]));
    assert!(!same(&[a.clone(), b], &[a.clone(), stored("B", ConditionStatus::False, 1)]));
    assert!(!same(core::slice::from_ref(&a), &[]));
}

#[test]
fn a_message_is_bounded_whoever_fills_it_in() {
    let long = "x".repeat(5000);
    let mut verdict = Verdict::new("Ready", true, "Ready", long.clone());
    assert_eq!(verdict.message.len(), MAX_MESSAGE);
    verdict.message = long;
    let after = merge(&[], vec![verdict.clone()], 1, Time::from_unix(1));
    assert_eq!(after[0].message.len(), MAX_MESSAGE);
    assert!(is_told(&after, &[verdict], 1));
}

#[test]
fn the_later_verdict_of_a_type_counts() {
    let verdicts = vec![Verdict::new("A", false, "One", ""), Verdict::new("A", true, "Two", "")];
    let after = merge(&[], verdicts, 1, Time::from_unix(1));
    assert_eq!((after.len(), after[0].reason.as_str()), (1, "Two"));
}

#[test]
fn a_condition_that_is_missing_is_unknown() {
    let mut conditions = vec![stored("A", ConditionStatus::True, 1), stored("B", ConditionStatus::False, 1)];
    let seen = |conditions: &[Condition], type_: &str| {
        [is_true(conditions, type_), is_false(conditions, type_), is_unknown(conditions, type_)]
    };
    assert_eq!(seen(&conditions, "A"), [true, false, false]);
    assert_eq!(seen(&conditions, "B"), [false, true, false]);
    assert_eq!(seen(&conditions, "C"), [false, false, true]);
    assert_eq!(remove(&mut conditions, "A").map(|condition| condition.type_), Some("A".to_string()));
    assert_eq!(remove(&mut conditions, "A"), None);
    assert_eq!(conditions.len(), 1);
}

#[test]
fn what_cannot_be_combined_says_why() {
    let conditions = [stored("A", ConditionStatus::True, 1)];
    let summary = |types: &[&str], ignored: &[&str], target: &str| {
        let target = ConditionType::new(String::from(target)).unwrap();
        Summary::new(types).ignore_if_missing(ignored).of(&conditions, target).map(|verdict| verdict.status)
    };
    assert_eq!(summary(&[], &[], "Ready"), Err(CombineError::NoTypes));
    assert_eq!(summary(&["A", "Ready"], &[], "Ready"), Err(CombineError::TargetIncluded("Ready".to_string())));
    assert_eq!(summary(&["B"], &["B"], "Ready"), Err(CombineError::NothingToSummarize));
    assert_eq!(summary(&["A", "B"], &["B"], "Ready"), Ok(ConditionStatus::True));
    let none: [Source<'_>; 0] = [];
    assert_eq!(Aggregate::new(types::READY).of(&none), Err(CombineError::NoSources));
}

#[test]
fn a_combination_has_the_reasons_that_it_was_given() {
    let missing: &[Condition] = &[];
    let sources = [Source { kind: "Replica", name: "a", conditions: missing, first: false }];
    let reasons = Reasons { unknown: crate::reason!("ReplicasUnknown"), ..Reasons::default() };
    let aggregate = Aggregate::new(types::READY).reasons(reasons.clone()).of(&sources).unwrap();
    let summary = Summary::new(&["Ready"]).reasons(reasons).of(missing, types::AVAILABLE).unwrap();
    assert_eq!([aggregate.reason.as_str(), summary.reason.as_str()], ["ReplicasUnknown"; 2]);
}

#[test]
fn old_readers_get_a_severity_with_what_is_wrong() {
    use v1beta1::{Severity, project};
    let conditions = [
        stored("Ready", ConditionStatus::False, 10),
        stored("Paused", ConditionStatus::True, 10),
        stored("Deleting", ConditionStatus::False, 10),
        stored("DiskReady", ConditionStatus::True, 10),
        stored("UserReady", ConditionStatus::Unknown, 10),
    ];
    let negative = ["Paused", "Deleting"];
    let first = project(&conditions, &negative, &[], |_| Severity::Error, Time::from_unix(12));
    let shown: Vec<_> = first.iter().map(|condition| (condition.severity, condition.reason.as_str())).collect();
    let wrong = (Some(Severity::Error), "Old");
    assert_eq!(shown, [wrong, wrong, (None, ""), (None, ""), (None, "Old")]);
    assert_eq!(
        serde_json::to_value(&first[2]).unwrap(),
        serde_json::json!({"type": "Deleting", "status": "False", "lastTransitionTime": "1970-01-01T00:00:10Z"})
    );
    // Here a new severity is a transition, and nothing else moves.
    let severity = |condition: &Condition| match condition.type_.as_str() {
        "Ready" => Severity::Warning,
        _ => Severity::Error,
    };
    let second = project(&conditions, &negative, &first, severity, Time::from_unix(20));
    let times: Vec<i64> = second.iter().map(|condition| condition.last_transition_time.as_unix()).collect();
    assert_eq!(times, [20, 10, 10, 10, 10]);
    let back = project(&conditions, &negative, &second, |_| Severity::Info, Time::from_unix(5));
    assert_eq!(back[0].last_transition_time, Time::from_unix(20));
}

fn statuses() -> impl Strategy<Value = ConditionStatus> {
    select(ConditionStatus::ALL.to_vec())
}

/// Verdicts of one pass: a few types, of which each may be left out.
fn passes() -> impl Strategy<Value = Vec<Verdict>> {
    let verdict = (select(vec!["A", "B", "example.com/C"]), statuses(), "[A-Z][a-z]{0,3}", ".{0,6}", any::<bool>());
    vec_of(verdict, 0..4).prop_map(|verdicts| {
        verdicts
            .into_iter()
            .map(|(type_, status, reason, message, mirrored)| {
                Verdict::new(type_, status, reason, message).since(mirrored.then_some(Time::from_unix(50)))
            })
            .collect()
    })
}

proptest! {
    /// Timestamp discipline (P7): a time moves iff the status does, never back, never past `now`.
    #[test]
    fn transition_times_over_random_histories(history in vec_of((passes(), 0i64..4, 0i64..100), 1..12)) {
        let foreign = stored("example.com/Foreign", ConditionStatus::Unknown, 77);
        let mut conditions = vec![foreign.clone()];
        for (verdicts, generation, seconds) in history {
            let now = Time::from_unix(seconds);
            let after = merge(&conditions, verdicts.clone(), generation, now);
            prop_assert_eq!(find(&after, &foreign.type_), Some(&foreign));
            for condition in &after {
                match find(&conditions, &condition.type_) {
                    Some(before) if before.status == condition.status => {
                        prop_assert_eq!(before.last_transition_time, condition.last_transition_time);
                    }
                    Some(before) => {
                        let moved = condition.last_transition_time;
                        prop_assert!(moved >= before.last_transition_time);
                        prop_assert!(moved <= now || moved == before.last_transition_time);
                    }
                    None => prop_assert!(condition.last_transition_time <= now),
                }
                let mut types = after.iter().filter(|other| other.type_ == condition.type_);
                prop_assert!(types.next().is_some() && types.next().is_none());
            }
            // Nothing of the types that the pass is silent about has changed.
            for before in &conditions {
                if verdicts.iter().all(|verdict| verdict.type_ != before.type_) {
                    prop_assert_eq!(find(&after, &before.type_), Some(before));
                }
            }
            // The same pass once more changes nothing.
            let again = merge(&after, verdicts.clone(), generation, now.plus(Span::from_seconds(60)));
            prop_assert_eq!(&again, &after);
            conditions = after;
        }
    }

    #[test]
    fn setting_one_by_one_is_merging(before in passes(), verdicts in passes(), seconds in 0i64..100) {
        let conditions = merge(&[], before, 1, Time::from_unix(40));
        let now = Time::from_unix(seconds);
        let mut one_by_one = conditions.clone();
        let mut types: Vec<&ConditionType> = verdicts.iter().map(|verdict| &verdict.type_).collect();
        types.sort();
        types.dedup();
        prop_assume!(types.len() == verdicts.len());
        let mut changed = false;
        for verdict in verdicts.clone() {
            changed |= set(&mut one_by_one, verdict, 2, now);
        }
        prop_assert_eq!(changed, !is_told(&conditions, &verdicts, 2));
        prop_assert_eq!(changed, !same(&conditions, &one_by_one));
        prop_assert!(same(&one_by_one, &merge(&conditions, verdicts, 2, now)));
    }

    #[test]
    fn the_order_of_the_stored_list_does_not_matter(
        (list, shuffled) in passes()
            .prop_map(|verdicts| merge(&[], verdicts, 1, Time::from_unix(40)))
            .prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
        verdicts in passes(),
    ) {
        let now = Time::from_unix(60);
        prop_assert!(same(&list, &shuffled));
        prop_assert!(same(&merge(&list, verdicts.clone(), 2, now), &merge(&shuffled, verdicts, 2, now)));
        let types = ["A", "B", "example.com/C"];
        prop_assert_eq!(
            Summary::new(&types).of(&list, types::READY),
            Summary::new(&types).of(&shuffled, types::READY)
        );
        let (mut left, mut right) = (list, shuffled);
        sort(&mut left);
        sort(&mut right);
        prop_assert_eq!(left, right);
    }

    #[test]
    fn what_is_written_reads_back(verdicts in passes(), seconds in 0i64..4_000_000_000) {
        let conditions = merge(&[], verdicts, 3, Time::from_unix(seconds));
        let text = serde_json::to_string(&conditions).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Condition>>(&text).unwrap(), conditions);
    }

    #[test]
    fn combining_never_panics_and_stays_bounded(
        lists in vec_of((passes(), "[A-Z][a-z]{0,4}s?", "[a-z]{1,3}", any::<bool>()), 1..9),
    ) {
        let lists: Vec<_> = lists
            .into_iter()
            .map(|(verdicts, kind, name, first)| (merge(&[], verdicts, 1, Time::from_unix(1)), kind, name, first))
            .collect();
        let sources: Vec<Source<'_>> = lists
            .iter()
            .map(|(conditions, kind, name, first)| Source { kind, name, conditions, first: *first })
            .collect();
        for aggregate in [Aggregate::new(condition_type!("A")), Aggregate::new(condition_type!("A")).negative()] {
            let verdict = aggregate.of(&sources).unwrap();
            prop_assert!(verdict.message.len() <= MAX_MESSAGE);
            let mut reversed = sources.clone();
            reversed.reverse();
            prop_assert_eq!(aggregate.of(&reversed).unwrap().status, verdict.status);
        }
    }
}

#[test]
fn standard_names_are_their_own_reasons() {
    assert_eq!(format!("{}/{}", types::READY, reasons::NOT_READY), "Ready/NotReady");
}
