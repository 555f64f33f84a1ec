//! The table and the code say the same reasons.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use capt_status::{CheckName, State};

use super::*;
use crate::object::Kind;

#[rustfmt::skip]
/// Words of the code that stand for something else than a reason.
const OTHER: [&str; 38] = [
    // Conditions.
    "Ready", "Available", "Healthy", "Reconciling", "Stalled", "Paused", "Deleting", "InfrastructureReady",
    "ControlPlaneReady", "ControlPlaneAvailable", "ControlPlaneInitialized", "WorkersAvailable",
    "RemoteConnectionProbe", "True", "False",
    // States, phases and results.
    "Pending", "Provisioning", "Failed", "Succeeded", "TimedOut", "Unknown", "Present", "Missing",
    // In the output for debugging.
    "ObjectKey",
    // Of Crossplane, its provider and Kubernetes.
    "ReconcilePaused", "ClusterProviderConfig", "Orphan", "Always", "Observe", "Delete",
    "LateInitialize", "Normal", "Warning", "Plan", "Create", "Update", "Apply", "Status",
];

fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Every CamelCase literal of the code that can set a reason, tests and this table aside, and where it stands.
fn literals() -> BTreeMap<String, PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for directory in ["capt-reconcile/src", "capt-status/src/machine"] {
        files(&crates.join(directory), &mut sources);
    }
    let mut found = BTreeMap::new();
    for path in sources {
        let text = path.display().to_string();
        if text.contains("/meanings/") || text.ends_with("/tests.rs") || text.contains("/tests/") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for literal in line.split('"').skip(1).step_by(2) {
                let is_word = literal.len() > 3 && literal.bytes().all(|byte| byte.is_ascii_alphabetic());
                if is_word && literal.starts_with(|first: char| first.is_ascii_uppercase()) {
                    found.insert(literal.to_owned(), path.clone());
                }
            }
        }
    }
    assert!(found.len() > 80 && found.contains_key("WaitingForWorkspace"), "the source is not read as it is written");
    found
}

#[test]
fn every_reason_that_the_code_can_set_has_a_meaning() {
    let other: BTreeSet<&str> = OTHER
        .into_iter()
        .chain(Kind::ALL.into_iter().map(Kind::name))
        .chain(State::ALL.into_iter().map(State::as_str))
        .chain(CheckName::ALL.into_iter().map(CheckName::as_str))
        .collect();
    let told: BTreeSet<&str> = all().into_iter().map(|meaning| meaning.reason).collect();
    let literals = literals();
    let missing: Vec<_> = literals
        .iter()
        .filter(|(literal, _)| !told.contains(literal.as_str()) && !other.contains(literal.as_str()))
        .collect();
    assert!(missing.is_empty(), "give these a meaning in meanings/table.rs, or name them as no reasons: {missing:#?}");
}

#[test]
fn every_reason_of_the_table_can_be_set() {
    let literals = literals();
    for Meaning { reason, group: _, meaning: _, remedy: _ } in table::OWN {
        assert!(literals.contains_key(*reason), "nothing sets {reason}");
    }
    for word in OTHER {
        assert!(literals.contains_key(word), "{word} stands nowhere any more");
    }
}

#[test]
fn a_reason_is_told_once_and_in_sentences() {
    let all = all();
    let names: BTreeSet<&str> = all.iter().map(|meaning| meaning.reason).collect();
    assert_eq!(names.len(), all.len(), "one word, one meaning");
    for Meaning { reason, group, meaning, remedy } in all {
        for text in [meaning, remedy] {
            assert!(text.is_empty() || text.ends_with(['.', ')']), "{reason}: {text}");
            assert!(!text.contains("  "), "{reason}: {text}");
        }
        assert!(!(meaning.is_empty() && remedy.is_empty()), "{reason}");
        assert!(Reason::find(reason).is_some() || !meaning.is_empty(), "{reason}");
        match group {
            Group::Wrong
            | Group::Deadline
            | Group::Permission
            | Group::Config
            | Group::Quota
            | Group::FailureReason => {
                assert!(!remedy.is_empty(), "{reason}: something is wrong, and nobody says what to do");
            }
            Group::Waiting | Group::Fine | Group::Event | Group::Cluster | Group::Transient | Group::Unknown => {}
        }
    }
}

#[test]
fn every_failure_and_every_deadline_is_found() {
    for reason in Reason::ALL {
        assert_eq!(find(reason.as_str()).map(|meaning| meaning.reason), Some(reason.as_str()));
    }
    for timer in Timer::ALL {
        assert_eq!(find(timer.reason()).map(|meaning| meaning.group), Some(Group::Deadline));
    }
    assert_eq!(find("NoSuchReason"), None);
}
