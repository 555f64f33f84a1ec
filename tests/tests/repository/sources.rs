//! Conventions that every source file keeps.

use std::fs;

/// Most lines of a file, its tests included: what is longer is about more than one thing.
const MOST_LINES: usize = 500;

/// What a file with this `text` does not keep.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push("does not begin with //! and what it is for".to_owned());
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        faults.push(format!("has {lines} lines: split it by subject"));
    }
    faults
}

#[test]
fn every_file_is_short_and_says_what_it_is_for() {
    let root = capt_tests::root();
    let mut found = Vec::new();
    for directory in ["crates", "bins", "deploy", "tests"] {
        found.extend(capt_tests::sources(&root.join(directory)).unwrap());
    }
    assert!(found.len() > 300, "{} files", found.len());
    let faults: Vec<String> = found
        .into_iter()
        .flat_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            faults(&text).into_iter().map(move |fault| format!("{name} {fault}"))
        })
        .collect();
    assert_eq!(faults, [""; 0]);
}

#[test]
fn what_is_not_kept_is_seen() {
    assert_eq!(faults("//! What it is for.\n"), [""; 0]);
    assert_eq!(faults("use std::fs;\n").len(), 1);
    assert_eq!(faults(&format!("//! Long.\n{}", "\n".repeat(MOST_LINES))).len(), 1);
}
