//! What the conditions of one state become in the next: times, generations and order.

use alloc::vec::Vec;

use super::*;
use crate::condition::{self, Condition};

/// Everything that a state can show.
fn shown() -> Vec<Vec<Verdict>> {
    let mut all = Vec::new();
    for state in State::ALL {
        for (served, stalled) in [(false, false), (false, true), (true, false), (true, true)] {
            for reason in ["WaitingForVPC", "AccessDenied"] {
                all.push(verdicts(state, served, stalled, &Cause::new(reason, "because"), served));
            }
        }
    }
    all
}

/// Calls `with` for every two that can follow each other: what is stored, what is to be told.
fn each_pair(mut with: impl FnMut(&[Condition], &[Verdict])) {
    let shown = shown();
    for before in &shown {
        let stored = condition::merge(&[], before.clone(), 1, NOW);
        for verdicts in &shown {
            with(&stored, verdicts);
        }
    }
}

#[test]
fn p07_a_transition_time_moves_with_the_status_and_never_back() {
    let (mut moved, mut stayed) = (0, 0);
    each_pair(|stored, verdicts| {
        for seconds in [0, 60, -600] {
            let now = Time::from_unix(NOW.as_unix() + seconds);
            for condition in condition::merge(stored, verdicts.to_vec(), 2, now) {
                let before = condition::find(stored, &condition.type_).unwrap();
                let at = condition.last_transition_time;
                if before.status == condition.status {
                    assert_eq!(at, before.last_transition_time, "{condition:?}");
                    stayed += 1;
                } else {
                    assert_eq!(at, now.max(before.last_transition_time), "{condition:?}");
                    moved += 1;
                }
            }
        }
    });
    assert!(moved > 1000 && stayed > 1000, "{moved} {stayed}");
}

#[test]
fn p20_every_condition_is_about_the_generation_that_was_looked_at() {
    each_pair(|stored, verdicts| {
        for condition in condition::merge(stored, verdicts.to_vec(), 7, NOW) {
            assert_eq!(condition.observed_generation, Some(7), "{condition:?}");
        }
        assert!(!condition::is_told(stored, verdicts, 2), "another generation is something new to say");
    });
}

#[test]
fn p03_p04_told_once_is_told_in_whatever_order_it_is_stored() {
    each_pair(|stored, verdicts| {
        let mut told = condition::merge(stored, verdicts.to_vec(), 1, NOW);
        for _ in 0..told.len() {
            told.rotate_left(1);
            assert!(condition::is_told(&told, verdicts, 1));
            let again = condition::merge(&told, verdicts.to_vec(), 1, Time::from_unix(NOW.as_unix() + 60));
            assert!(condition::same(&again, &told));
        }
    });
}
