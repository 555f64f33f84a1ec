//! The project's own messages: worded as the tools and APIs word them, and put into each form in which
//! provider-terraform reports them. All of them give the right class and reason in every form.
//!
//! Entry: `@ Reason stage [raw | detail]`, then the text. `raw`: the provider's own words, else
//! terraform's output. `detail`: the cause is not in the first line, so the old form does not show it.

extern crate std;

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use std::collections::BTreeSet;

use crate::failure::{
    Class, Failure, Reason, Stage, classify,
    testing::{wrap, wrap_old},
};

const FILES: [(Class, &str); 5] = [
    (Class::Quota, include_str!("corpus/quota.txt")),
    (Class::Permission, include_str!("corpus/permission.txt")),
    (Class::Transient, include_str!("corpus/transient.txt")),
    (Class::Config, include_str!("corpus/config.txt")),
    (Class::Unknown, include_str!("corpus/unknown.txt")),
];

struct Entry {
    class: Class,
    reason: Reason,
    stage: Option<Stage>,
    form: &'static str,
    text: &'static str,
}

fn entries() -> Vec<Entry> {
    let entry = |class, block: &'static str| {
        let (header, text) = block.split_once('\n').unwrap();
        let words: Vec<&str> = header.split(' ').collect();
        let reason = Reason::find(words[0]).unwrap_or_else(|| panic!("no reason {header}"));
        let stage = Stage::ALL.into_iter().find(|stage| stage.as_str() == words[1]);
        assert!(stage.is_some() || words[1] == "none", "{header}");
        Entry { class, reason, stage, form: words.get(2).copied().unwrap_or_default(), text }
    };
    let blocks = |(class, text): (Class, &'static str)| {
        let text = text.strip_prefix("@ ").unwrap();
        text.split("\n@ ").map(move |block| entry(class, block)).collect::<Vec<_>>()
    };
    FILES.into_iter().flat_map(blocks).collect()
}

impl Entry {
    fn prefix(&self) -> String {
        let Some(stage) = self.stage else { return String::new() };
        let doing = match stage {
            Stage::Connect => "cannot initialize Terraform configuration",
            Stage::Observe => "cannot diff (i.e. plan) Terraform configuration",
            Stage::Create | Stage::Update => "cannot apply Terraform configuration",
            Stage::Delete => "cannot destroy Terraform configuration",
        };
        format!("{stage} failed: {doing}: ")
    }

    /// The message in every form in which it occurs.
    fn messages(&self) -> Vec<String> {
        let stage = self.stage.map_or(String::new(), |stage| format!("{stage} failed: "));
        if self.form == "raw" {
            return [format!("{stage}{}", self.text), format!("{stage}{}", self.text.to_lowercase())].into();
        }
        let stderr = format!("\n{}\n", self.text);
        let framed: String = stderr.lines().map(|line| format!("\u{1b}[31m│\u{1b}[0m \u{1b}[0m{line}\n")).collect();
        let mut messages = Vec::from([
            wrap(&self.prefix(), &stderr),
            wrap(&self.prefix(), &format!("\u{1b}[31m╷\u{1b}[0m\u{1b}[0m\n{framed}\u{1b}[31m╵\u{1b}[0m\u{1b}[0m\n")),
            format!("{}{stderr}", self.prefix()),
        ]);
        if self.form != "detail" {
            messages.push(wrap_old(&self.prefix(), &stderr));
        }
        messages
    }
}

/// Every message in every form, with its class.
pub(super) fn classes_and_messages() -> Vec<(String, String)> {
    let messages =
        |entry: Entry| entry.messages().into_iter().map(move |message| (entry.class.as_str().to_owned(), message));
    entries().into_iter().flat_map(messages).collect()
}

#[test]
fn every_message_is_understood_in_every_form() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in entries() {
        for message in entry.messages() {
            count += 1;
            let Failure { class, reason, message: short, hint, stage } = classify(&message);
            if (class, reason, stage, hint) != (entry.class, entry.reason, entry.stage, reason.hint()) {
                wrong.push(format!(
                    "{} ({}), not {reason} ({class}): {short} || {:.160}",
                    entry.reason,
                    entry.class,
                    message.trim()
                ));
            }
            assert!((1..=512).contains(&short.len()) && !short.contains(['\n', '\u{1b}']), "{short:?}");
            assert!(!short.contains("H4sI"), "{short}");
        }
    }
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 600 && entries().len() >= 190, "{count} messages of {} entries", entries().len());
}

/// `Class|message`, mostly in the form of old releases.
#[test]
fn messages_of_one_line_are_in_the_right_class() {
    let lines = include_str!("corpus/one_line.txt").lines();
    let wrong: Vec<String> = lines
        .map(|line| line.split_once('|').unwrap())
        .map(|(class, message)| (class, message, classify(message)))
        .filter(|(class, _, failure)| failure.class.as_str() != *class)
        .map(|(class, message, failure)| format!("{class}, not {} {}: {message}", failure.class, failure.reason))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_messages_cover_nearly_every_reason() {
    let seen: BTreeSet<&str> = entries().iter().map(|entry| entry.reason.as_str()).collect();
    let missing: Vec<&str> = Reason::ALL.into_iter().map(Reason::as_str).filter(|name| !seen.contains(name)).collect();
    assert!(missing.len() <= 12, "{missing:?}");
}

#[test]
fn the_order_of_errors_does_not_matter() {
    let errors = [
        "Error: creating A: Throttling: Rate exceeded\n",
        "Error: creating B: AccessDenied: no\n",
        "Error: creating C: AccessDenied: no\n",
        "Error: Unsupported argument\n",
    ];
    let forward = classify(&errors.join("\n"));
    let mut reverse = errors.map(ToOwned::to_owned);
    reverse.reverse();
    assert_eq!(classify(&reverse.join("\n")), forward);
    assert_eq!((forward.reason.as_str(), forward.message.as_str()), ("AccessDenied", "creating B: AccessDenied: no"));
}
