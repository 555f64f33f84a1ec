//! The same seed is the same run, request by request and byte by byte, in this process and in others.

use std::{fmt::Write as _, process::Command};

use capt_reconcile::hash;
use capt_sim::scenario::{chances::Random, play};

use crate::library;

/// Every request of a run with faults by chance, its answer, and how everything is at the end.
fn log(seed: u64) -> String {
    let scenario = library::scenario("api-trouble");
    let played = play::play(&scenario, Random::new(scenario.chances.clone().unwrap(), seed));
    let api = &played.simulation.api;
    let mut text = format!("{:?}\n{:?}\n", played.simulation.requests, played.simulation.events);
    for key in api.keys() {
        writeln!(text, "{key} {}", api.get(key).unwrap()).unwrap();
    }
    text
}

#[test]
fn the_same_seed_is_the_same_run() {
    if let Ok(seed) = std::env::var("CAPT_LOG_OF_SEED") {
        println!("log {}", hash::of_text(&log(seed.parse().unwrap()), 64));
        return;
    }
    let first = log(7);
    for again in 1..20 {
        assert_eq!(log(7), first, "run {again}");
    }
    assert_ne!(log(8), first, "another seed is another run");
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "determinism::the_same_seed_is_the_same_run", "--nocapture"])
        .env("CAPT_LOG_OF_SEED", "7")
        .output()
        .unwrap();
    let out = String::from_utf8(other.stdout).unwrap();
    assert!(out.contains(&format!("log {}", hash::of_text(&first, 64))), "another process: {out}");
}
