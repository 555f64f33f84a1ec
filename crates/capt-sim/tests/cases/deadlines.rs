//! Deadlines: at their time, once, whatever the process and the clock do.

use std::collections::BTreeMap;

use capt_sim::{Simulation, provider::Ending};
use capt_status::{Span, Time};
use serde_json::{Value, json};

use crate::{
    common::condition,
    help::{ends, fresh, fresh_as, minutes, plane, plane_key, statuses, wait},
};

/// How long it took from the beginning until the control plane is Failed, with a pass each `step` seconds.
fn fails_after(simulation: &mut Simulation, step: i64, seconds: i64) -> Option<Span> {
    let begin: Time = plane(simulation)["progress"]["startedAt"].as_str().unwrap().parse().unwrap();
    for _ in 0..seconds / step {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(step));
        simulation.step_core();
        simulation.step_provider();
        simulation.resync();
        simulation.run_capt();
        if plane(simulation)["state"] == "Failed" {
            return Some(Span::from_seconds(simulation.api.now.as_unix() - begin.as_unix()));
        }
    }
    None
}

#[test]
fn cb_059_a_timeout_comes_at_its_time_and_once_however_many_passes_run() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    assert!(simulation.run());
    let after = fails_after(&mut simulation, 6, 40 * 60).unwrap();
    assert!((minutes(30)..=minutes(30).plus(Span::from_seconds(6))).contains(&after), "{after}");
    let before = simulation.requests.len();
    for _ in 0..200 {
        simulation.api.now = simulation.api.now.plus(Span::from_seconds(6));
        simulation.resync();
    }
    let again = statuses(&simulation, &plane_key(), before);
    assert!(again.iter().all(|status| status["state"] == "Failed"), "{again:#?}");
    let expired: Vec<_> =
        simulation.events.iter().filter(|(of, event)| *of == plane_key() && event.reason.contains("Timeout")).collect();
    assert_eq!(expired.len(), 1, "{expired:?}");
}

#[test]
fn cb_060_a_timer_outlives_the_process() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    wait(&mut simulation, minutes(29));
    assert_eq!(plane(&simulation)["state"], "Provisioning");
    simulation.restart();
    wait(&mut simulation, minutes(2));
    assert_eq!(condition(&plane(&simulation), "Ready")["reason"], "ControlPlaneTimeout");
}

#[test]
fn cb_061_what_a_dependency_takes_does_not_count_for_what_comes_after_it() {
    let mut simulation = fresh();
    simulation.terraform(ends("vpc", Ending::Hang));
    wait(&mut simulation, minutes(14));
    simulation.terraform(ends("eks", Ending::Hang));
    wait(&mut simulation, minutes(1));
    let begin = simulation.api.now;
    let plane = plane(&simulation);
    let started =
        plane["deadlines"].as_array().unwrap().iter().find(|deadline| deadline["name"] == "workspaceReadyTimeout");
    let started: Time = started.unwrap()["startedAt"].as_str().unwrap().parse().unwrap();
    assert!(begin.since(started) <= minutes(1), "{started} {begin}");
}

#[test]
fn cb_062_a_timeout_of_the_spec_is_kept_to() {
    let of = |timeouts: Value| {
        let mut simulation = fresh_as(move |kind, object| {
            if kind == "CAPTControlPlane" {
                object["spec"]["timeouts"] = timeouts.clone();
            }
        });
        simulation.terraform(ends("eks", Ending::Hang));
        wait(&mut simulation, minutes(10));
        plane(&simulation)
    };
    let failed = of(json!({"controlPlaneTimeout": 1}));
    assert_eq!([&failed["state"], &condition(&failed, "Ready")["reason"]], ["Failed", "ControlPlaneTimeout"]);
    // The CRD refuses these; on an object from before they count as not set.
    for odd in [0, -5] {
        assert_eq!(of(json!({"controlPlaneTimeout": odd}))["state"], "Provisioning", "{odd}");
    }
}

#[test]
fn cb_066_a_clock_that_jumps_ends_nothing_early_and_moves_no_time_back() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    assert!(simulation.run());
    let begin = simulation.api.now;
    let times = |status: &Value| {
        let conditions = status["conditions"].as_array().unwrap().iter();
        conditions
            .map(|told| (told["type"].to_string(), told["lastTransitionTime"].to_string()))
            .collect::<BTreeMap<_, _>>()
    };
    let mut last = times(&plane(&simulation));
    for at in [20 * 60, -5 * 60, 21 * 60, -3600, 25 * 60] {
        simulation.api.now = Time::from_unix(begin.as_unix() + at);
        simulation.resync();
        simulation.run_capt();
        assert_eq!(plane(&simulation)["state"], "Provisioning", "at {at}");
        let now = times(&plane(&simulation));
        assert!(last.iter().all(|(type_, time)| now[type_] >= *time), "{last:?} {now:?}");
        last = now;
    }
    simulation.api.now = begin.plus(minutes(31));
    simulation.resync();
    simulation.run_capt();
    assert_eq!(plane(&simulation)["state"], "Failed");
}
