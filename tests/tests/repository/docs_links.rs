//! Every relative link of the documents leads to a file, and to a heading where it names one.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use capt_deploy::monitoring::ALERTS;
use capt_tests::root;

fn documents() -> Vec<PathBuf> {
    let mut files = vec![root().join("README.md"), root().join("crates/capt-status/README.md")];
    files.extend(fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files
}

/// The text without what is code: there, brackets are brackets.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut out = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            let outside = line.split('`').step_by(2);
            out.extend(outside.chain(["\n"]));
        }
    }
    out
}

/// Targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// Anchors of the headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// What is wrong with a link in `file`, if anything is.
fn fault(file: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { file.to_owned() } else { file.parent().unwrap().join(path) };
    if !target.exists() {
        return Some(format!("{link}: there is no such file"));
    }
    let anchor = anchor?;
    let text = if path.is_empty() { text.to_owned() } else { fs::read_to_string(&target).unwrap_or_default() };
    (!anchors(&text).contains(anchor)).then(|| format!("{link}: there is no such heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut seen, mut faults) = (0, Vec::new());
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for link in links(&text) {
            seen += 1;
            faults.extend(fault(&file, &text, &link).map(|fault| format!("{}: {fault}", file.display())));
        }
    }
    assert!(seen >= 10, "only {seen} links found: this check is broken");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn faults_are_seen() {
    let file = root().join("README.md");
    let text = "# A b: c\n## Same\n## Same\n```\n# no\n```\n[x](Cargo.toml) `[y](nowhere)` [z](docs/nowhere.md)\n";
    assert_eq!(links(text), ["Cargo.toml", "docs/nowhere.md"]);
    for (link, good) in [
        ("Cargo.toml", true),
        ("docs/nowhere.md", false),
        ("#a-b-c", true),
        ("#same-1", true),
        ("#no", false),
        ("https://example.com/nowhere", true),
        ("docs/states.md#timers", true),
        ("docs/states.md#nowhere", false),
    ] {
        assert_eq!(fault(&file, text, link).is_none(), good, "{link}");
    }
}

/// An alert names the section of the runbook that says what to do.
#[test]
fn every_alert_has_its_section_in_the_runbook() {
    let anchors = anchors(&fs::read_to_string(root().join("docs/operations.md")).unwrap());
    for alert in ALERTS {
        assert!(anchors.contains(&alert.name.to_lowercase()), "docs/operations.md lacks a heading {}", alert.name);
    }
}

/// Each document of docs/ can be found from the README.
#[test]
fn every_document_is_reachable_from_the_readme() {
    let mut reached = BTreeSet::new();
    let mut open = vec![root().join("README.md")];
    while let Some(file) = open.pop() {
        let Ok(file) = file.canonicalize() else { continue };
        if file.extension().is_some_and(|extension| extension == "md") && reached.insert(file.clone()) {
            let links = links(&fs::read_to_string(&file).unwrap());
            let paths = links.iter().filter(|link| !link.contains("://")).map(|link| link.split('#').next().unwrap());
            open.extend(paths.map(|path| file.parent().unwrap().join(path)));
        }
    }
    for file in documents() {
        assert!(reached.contains(&file.canonicalize().unwrap()), "nothing leads to {}", file.display());
    }
}
