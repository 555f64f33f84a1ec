//! P16: a deadline fires at the first look at or after its end, never before, whatever happens to
//! the process and to the clock.

use alloc::{string::ToString as _, vec, vec::Vec};

use proptest::{collection::vec as vec_of, prelude::*};

use super::*;
use crate::time::{Span, Time};

const LIMIT: Span = Span::from_seconds(100);

fn limit(name: &str) -> Option<Span> {
    match name {
        "long" => Some(LIMIT),
        "short" => Some(Span::from_seconds(40)),
        _ => None,
    }
}

fn names(deadlines: &[Deadline]) -> Vec<&str> {
    deadlines.iter().map(|deadline| deadline.name.as_str()).collect()
}

#[test]
fn a_start_is_stored_once() {
    let first = keep(&[], &["long"], Time::from_unix(10));
    let second = keep(&first, &["short", "long"], Time::from_unix(50));
    assert_eq!(names(&second), ["short", "long"]);
    assert_eq!(second[1], first[0]);
    // What ended starts anew the next time.
    let third = keep(&second, &["short"], Time::from_unix(60));
    let fourth = keep(&third, &["short", "long"], Time::from_unix(70));
    assert_eq!(fourth.iter().map(|deadline| deadline.started_at.as_unix()).collect::<Vec<_>>(), [50, 70]);
}

#[test]
fn the_earliest_of_many_is_looked_at_next() {
    let deadlines =
        keep(&keep(&[], &["long", "forever"], Time::from_unix(0)), &["long", "forever", "short"], Time::from_unix(50));
    let at = |now: i64| {
        earliest(&deadlines, limit, Time::from_unix(now)).map(|(deadline, at)| (deadline.name.as_str(), at.as_unix()))
    };
    let late = |now: i64| expired(&deadlines, limit, Time::from_unix(now)).count();
    assert_eq!((at(60), late(60)), (Some(("short", 90)), 0));
    assert_eq!((at(90), late(90)), (Some(("long", 100)), 1));
    assert_eq!((at(100), late(100)), (None, 2));
    let wait = |now: i64| next(&deadlines, limit, Time::from_unix(now), Span::from_seconds(20));
    assert_eq!(
        [60, 80, 89, 95, 100].map(wait).map(|span| span.map(Span::as_seconds)),
        [Some(20), Some(10), Some(1), Some(5), None]
    );
}

#[test]
fn the_next_look_is_neither_at_once_nor_too_late() {
    for (at, wait) in [(-5, 1), (0, 1), (1, 1), (2, 2), (30, 30), (31, 30)] {
        let now = Time::from_unix(100);
        let wanted = requeue(Time::from_unix(100 + at), now, Span::from_seconds(30));
        assert_eq!(wanted.as_seconds(), wait, "in {at} s");
        assert_eq!(requeue(Time::from_unix(100 + at), now, Span::ZERO), Span::from_seconds(1));
    }
}

#[test]
fn a_pause_stops_it_from_when_it_started() {
    // started, paused, resumed, stood still for
    for (started, paused, resumed, stood) in [(0, 10, 40, 30), (20, 10, 40, 20), (50, 10, 40, 0), (0, 10, 5, 0)] {
        let mut running = Running::start(Time::from_unix(started));
        running.resume(Time::from_unix(paused), Time::from_unix(resumed));
        assert_eq!(running.suspended_for.as_seconds(), stood, "{started} {paused} {resumed}");
    }
    assert_eq!(clock(Time::from_unix(50), Some(Time::from_unix(40))), Time::from_unix(40));
    assert_eq!(clock(Time::from_unix(30), Some(Time::from_unix(40))), Time::from_unix(30));
    assert_eq!(clock(Time::from_unix(30), None), Time::from_unix(30));
}

#[test]
fn whole_minutes_from_the_first_that_says_something() {
    let default = Minutes::clamped(30);
    for (sources, minutes) in [
        (vec![], 30),
        (vec![None, None], 30),
        (vec![Some(7), Some(8)], 7),
        (vec![None, Some(8), Some(9)], 8),
        (vec![Some(0), Some(-5), Some(9)], 9),
        (vec![Some(i32::MAX)], 525_600),
    ] {
        assert_eq!(Minutes::first_of(sources.clone(), default).get(), minutes, "{sources:?}");
    }
    assert_eq!((Minutes::clamped(0), Minutes::clamped(u32::MAX)), (Minutes::MIN, Minutes::MAX));
    assert_eq!(Minutes::MAX.span(), Span::from_minutes(525_600));
    for (text, minutes) in [("1", Some(1)), ("525600", Some(525_600)), ("0", None), ("-1", None), ("525601", None)] {
        assert_eq!(serde_json::from_str::<Minutes>(text).ok().map(Minutes::get), minutes, "{text}");
    }
    assert_eq!(serde_json::to_string(&default).unwrap(), "30");
    assert_eq!(Minutes::try_from(0).unwrap_err().to_string(), "0 minutes is not a timeout: write 1 to 525600, a year");
}

/// What may happen between two looks at an object.
#[derive(Debug, Clone)]
enum Event {
    /// The clock goes on, or jumps.
    Clock(i64),
    /// Another process takes over, with nothing but what is stored.
    Restart,
    Pause,
    Resume,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0i64..40).prop_map(Event::Clock),
        1 => (-200i64..200).prop_map(Event::Clock),
        1 => Just(Event::Restart),
        1 => Just(Event::Pause),
        1 => Just(Event::Resume),
    ];
    vec_of(event, 0..40)
}

proptest! {
    #[test]
    fn it_fires_at_its_end_and_never_before(history in events()) {
        let mut now = Time::from_unix(1_000);
        let mut stored = keep(&[], &["long"], now);
        let mut paused: Option<Time> = None;
        let mut end = 1_100;
        for event in history {
            match event {
                Event::Clock(seconds) => now = Time::from_unix(now.as_unix() + seconds),
                Event::Restart => {
                    let text = serde_json::to_string(&stored).unwrap();
                    stored = serde_json::from_str(&text).unwrap();
                }
                Event::Pause => paused = paused.or(Some(now)),
                Event::Resume => if let Some(since) = paused.take() {
                    resume(&mut stored, since, now);
                    end += (now.as_unix() - since.as_unix().max(1_000)).max(0);
                },
            }
            stored = keep(&stored, &["long"], now);
            let look = clock(now, paused);
            let fired = expired(&stored, limit, look).next().is_some();
            match paused {
                None => prop_assert_eq!(fired, now.as_unix() >= end),
                Some(since) => prop_assert_eq!(fired, now.min(since).as_unix() >= end),
            }
            let wait = next(&stored, limit, look, Span::from_seconds(30));
            prop_assert_eq!(wait.is_none(), fired);
            if let Some(wait) = wait {
                prop_assert!((1..=30).contains(&wait.as_seconds()));
            }
            // A clock that goes back from here fires nothing that has not fired.
            if !fired {
                prop_assert!(expired(&stored, limit, Time::from_unix(look.as_unix() - 500)).next().is_none());
            }
        }
    }

    #[test]
    fn waiting_as_told_leads_to_the_end_and_not_past_it(cap in 1i64..200, limit in 0i64..500) {
        let (start, limit, cap) = (Time::from_unix(7), Span::from_seconds(limit), Span::from_seconds(cap));
        let deadlines = keep(&[], &["x"], start);
        let mut now = start;
        let mut looks = 0;
        while let Some(wait) = next(&deadlines, |_| Some(limit), now, cap) {
            now = now.plus(wait);
            looks += 1;
        }
        prop_assert_eq!(now, start.plus(limit));
        prop_assert!(looks <= limit.as_seconds() / cap.as_seconds() + 1);
    }

    #[test]
    fn no_time_is_too_large(started: i64, suspended: i64, limit: i64, now: i64, since: i64) {
        let mut running = Running { started_at: Time::from_unix(started), suspended_for: Span::from_seconds(suspended) };
        running.resume(Time::from_unix(since), Time::from_unix(now));
        let (limit, now) = (Span::from_seconds(limit), Time::from_unix(now));
        prop_assert!(running.is_expired(limit, now) == (running.remaining(limit, now) == Span::ZERO));
    }
}
