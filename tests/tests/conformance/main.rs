//! Random requests to the model of the API server and to a real one: both give the same answers.
//!
//! A sequence follows from its number. `CAPT_CONFORMANCE=2000` plays more of them than by default, and
//! `CAPT_SEQUENCE=17` one alone, with every answer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod answers;
mod model;
mod parts;
mod real;
mod steps;

use std::{env, time::Instant};

use answers::{Answer, Names, difference};
use capt_sim::scenario::chances::Dice;
use capt_stack::{Stack, Tier};
use model::Model;
use real::Real;
use steps::Step;

/// Sequences by default.
const SEQUENCES: u64 = 500;
/// Most requests of one.
const LONGEST: usize = 50;

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_model_answers_as_the_real_api_server_does() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let real = Real::new(&stack).await;
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let only = number("CAPT_SEQUENCE");
    let numbers = match only {
        Some(only) => only..only + 1,
        None => 0..number("CAPT_CONFORMANCE").unwrap_or(SEQUENCES),
    };
    let (started, count) = (Instant::now(), numbers.end - numbers.start);
    let (mut requests, mut refused, mut different) = (0, 0, Vec::new());
    for number in numbers {
        let mut dice = Dice::new(number);
        let namespace = format!("sequence-{number}");
        let mut model = Model::new(&namespace);
        real.make_namespace(&namespace).await;
        let (mut of_model, mut of_real) = (Names::default(), Names::default());
        for at in 0..=dice.below(LONGEST) {
            let step = Step::by_chance(&mut dice, &namespace);
            let theirs = real.answer(&of_real.fill(&step)).await;
            let ours = model.answer(&of_model.fill(&step));
            if only.is_some() {
                println!("{at}. {step:?}\n   real:  {theirs:?}\n   model: {ours:?}");
            }
            requests += 1;
            refused += usize::from(!theirs.is_success());
            let (theirs, ours) = (of_real.learn(&step, theirs), of_model.learn(&step, ours));
            if let Some(difference) = difference(&theirs, &ours) {
                different.push(format!("sequence {number}, request {at}: {difference}\n  {step:?}"));
                break;
            }
        }
    }
    let seconds = started.elapsed().as_secs();
    println!("conformance: {count} sequences, {requests} requests, {refused} of them refused, {seconds} s");
    let shown: Vec<&str> = different.iter().take(20).map(String::as_str).collect();
    assert!(different.is_empty(), "{} of {count} sequences differ:\n{}", different.len(), shown.join("\n"));
    // A sequence that only fails shows nothing.
    assert!(count < 50 || (requests / 10..requests * 9 / 10).contains(&refused), "{refused} of {requests} refused");
}

/// What both say has to be looked at closely enough to see small differences.
#[test]
fn a_small_difference_is_seen() {
    use serde_json::json;
    let answer = |code, body| Answer { code, body };
    let object = json!({"metadata": {"name": "a", "generation": 1}, "spec": {"region": "eu-west-1"}});
    let mut other = object.clone();
    assert_eq!(difference(&answer(200, object.clone()), &answer(200, object.clone())), None);
    other["metadata"]["generation"] = json!(2);
    let told = difference(&answer(200, object.clone()), &answer(200, other)).unwrap();
    assert!(told.contains("generation"), "{told}");
    assert!(difference(&answer(200, object.clone()), &answer(201, object)).is_some());
    let refusal = |reason: &str, field: &str| {
        answer(422, json!({"kind": "Status", "reason": reason, "details": {"causes": [{"field": field}]}}))
    };
    assert!(difference(&refusal("Invalid", "spec.a"), &refusal("Invalid", "spec.b")).is_some());
    assert!(difference(&refusal("Invalid", "spec.a"), &refusal("Conflict", "spec.a")).is_some());
    assert_eq!(difference(&refusal("Invalid", "spec.a"), &refusal("Invalid", "spec.a")), None);
}
