//! Messages recorded from real runs, where a folder with them lies beside the checkout; else the
//! project's own. Either way every message is in the right class.

extern crate std;

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use std::{fs, path::Path};

use super::corpus;
use crate::failure::classify;

/// Class and message of each recorded one; `None` if there are none here.
fn recorded() -> Option<Vec<(String, String)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/errors.jsonl");
    let text = fs::read_to_string(path).ok()?;
    let entry = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let class = match value["cls"].as_str().unwrap() {
            "Terminal-config" => "Config",
            "Terminal-permission" => "Permission",
            class => class,
        };
        (class.to_string(), value["condition_message"].as_str().unwrap().to_string())
    };
    Some(text.lines().map(entry).collect())
}

#[test]
fn recorded_messages_are_in_the_right_class() {
    let messages = recorded().unwrap_or_else(corpus::classes_and_messages);
    assert!(messages.len() >= 80, "{}", messages.len());
    let wrong: Vec<String> = messages
        .iter()
        .map(|(class, message)| (class, classify(message)))
        .filter(|(class, failure)| failure.class.as_str() != *class)
        .map(|(class, failure)| format!("{class}, not {} {}: {}", failure.class, failure.reason, failure.message))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), messages.len());
}
