//! Messages by who says them, written down with the class and the reason that a person would give before
//! the rules were asked; they hold the rules to what they claim of messages never seen.
//!
//! `Class|Reason|message`, with `\n` for a line break; where a person would accept several, `/` between.

extern crate std;

use alloc::{format, string::String, vec::Vec};

use crate::failure::{
    Class, Reason, classify,
    testing::{wrap, wrap_old},
};

const FAMILIES: [(&str, &str); 5] = [
    ("aws", include_str!("families/aws.txt")),
    ("terraform", include_str!("families/terraform.txt")),
    ("kubernetes", include_str!("families/kubernetes.txt")),
    ("sources", include_str!("families/sources.txt")),
    ("network", include_str!("families/network.txt")),
];

fn entries(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    text.lines().map(|line| {
        let mut parts = line.splitn(3, '|');
        let (class, reason) = (parts.next().unwrap(), parts.next().unwrap());
        (class, reason, parts.next().unwrap().replace("\\n", "\n"))
    })
}

#[test]
fn messages_of_each_family_mean_what_a_person_would_say() {
    for (family, text) in FAMILIES {
        let mut wrong = Vec::new();
        for (classes, reasons, message) in entries(text) {
            let found = classify(&message);
            let is_right = classes.split('/').any(|class| class == found.class.as_str())
                && reasons.split('/').any(|reason| reason == found.reason.as_str());
            if !is_right {
                wrong.push(format!("{classes} {reasons}, not {} {}: {message}", found.class, found.reason));
            }
        }
        assert!(wrong.is_empty(), "{family}: {wrong:#?}");
        assert!(text.lines().count() >= 90, "{family}");
    }
}

#[test]
fn the_names_in_the_families_are_those_of_the_rules() {
    for (family, text) in FAMILIES {
        for (classes, reasons, message) in entries(text) {
            for name in reasons.split('/') {
                let class =
                    Reason::find(name).unwrap_or_else(|| panic!("{family}: no reason {name}: {message}")).class();
                assert!(
                    classes.split('/').any(|given| given == class.as_str()),
                    "{family}: {name} is {class}: {message}"
                );
            }
            assert!(
                classes.split('/').all(|given| Class::ALL.iter().any(|class| class.as_str() == given)),
                "{classes}"
            );
        }
    }
}

/// What terraform says reaches us in a compressed log, and from old releases in one lower-case line.
#[test]
fn a_message_means_the_same_in_the_log_of_the_provider() {
    let mut differ = Vec::new();
    for (_, text) in FAMILIES {
        for (_, _, message) in entries(text) {
            let stderr =
                if message.contains("Error: ") { format!("\n{message}\n") } else { format!("\nError: {message}\n") };
            let plain = classify(&format!("observe failed: {stderr}"));
            let wrapped = classify(&wrap("observe failed: ", &stderr));
            if (plain.reason, &plain.message) != (wrapped.reason, &wrapped.message) {
                differ.push(format!("{} and {}: {message}", plain.reason, wrapped.reason));
            }
            // The one line of old releases may say less, but never panics and never says nothing.
            assert!(!classify(&wrap_old("observe failed: ", &stderr)).message.is_empty());
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
