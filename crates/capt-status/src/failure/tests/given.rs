//! Messages recorded from real runs, where they are at hand: all of them are in the right class.

extern crate std;

use alloc::{string::String, vec::Vec};
use std::{fs, path::Path, println};

use crate::failure::classify;

#[test]
fn recorded_messages_are_in_the_right_class() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/errors.jsonl");
    let Ok(text) = fs::read_to_string(path) else { return };
    let mut wrong = Vec::new();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let failure = classify(value["condition_message"].as_str().unwrap());
        let expected = value["cls"].as_str().unwrap();
        let expected = expected
            .strip_prefix("Terminal-")
            .map_or(String::from(expected), |kind| kind[..1].to_uppercase() + &kind[1..]);
        println!("{} {} {} | {}", value["id"], failure.class, failure.reason, failure.message);
        if failure.class.as_str() != expected {
            wrong.push(alloc::format!("{}: {} {}", value["id"], failure.class, failure.reason));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
