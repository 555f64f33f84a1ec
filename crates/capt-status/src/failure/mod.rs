//! What an error message means: a class, a stable reason, a short text, and what to do about it.
//!
//! ```text
//! message --decode--> text --segments--> errors --scan (rules)--> best reason --normalise--> Failure
//! ```
//!
//! Messages are what Crossplane's provider-terraform writes into condition `Synced` (with the
//! output of terraform compressed inside, or in the one-line form of releases before v0.8), the
//! output of terraform or OpenTofu itself, and whatever AWS, Kubernetes, Helm and git say in it.
//!
//! * Total, deterministic, without panics, and linear in the length of the message (a longer one
//!   than [`decode::MAX_INPUT`] loses its middle).
//! * By specific API code first and by text second; the order is that of the [rules](Reason::ALL).
//! * Of several errors the one that a person can do most about counts: Quota, Permission, Config,
//!   Unknown, Transient.
//! * Two messages that differ only in ids, times, ports or counters give equal [`Failure`]s.
//!
//! It must not look at a clock or remember anything: whether a lock is stale or a failure lasts
//! too long is decided by whoever keeps times.
//!
//! ```
//! use capt_status::failure::{Class, Stage, classify};
//! let failure = classify("create failed: cannot apply Terraform configuration: vpclimitexceeded: no");
//! assert_eq!(failure.class, Class::Quota);
//! assert_eq!(failure.reason.as_str(), "VpcQuotaExceeded");
//! assert_eq!(failure.stage, Some(Stage::Create));
//! ```

// Each rule of a table and each shape of an identifier stands alone, also where two of them end alike.
#![allow(clippy::if_same_then_else, clippy::collapsible_if, clippy::single_match_else)]
// The index of the rules is made by the compiler and lives in read-only memory.
#![allow(clippy::large_stack_arrays)]
// Lengths of words and positions in tables are small; hashes are cut on purpose.
#![allow(clippy::cast_possible_truncation)]
// Without a branch the compiler looks at many bytes at once.
#![allow(clippy::needless_bitwise_bool)]
#![allow(clippy::struct_field_names)] // segments are what they are called
#![cfg_attr(test, allow(clippy::format_collect))] // clearer than a fold, and only in tests

mod blocks;
mod class;
pub mod decode;
mod gzip;
mod index;
mod normalise;
mod reason;
mod rules;
mod scan;
mod segments;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use alloc::{borrow::Cow, string::String};

pub use class::{Class, Stage};
pub use reason::Reason;

use decode::{Log, bounded, unpack};
use normalise::normalise;
use rules::{KILLED, NO_MESSAGE, UNREADABLE, UNRECOGNISED};
use scan::{Match, scan};
use segments::{Segment, Segments};

/// Longest message of a [`Failure`], in bytes: some lines of a terminal, and half of what a message in a
/// status may have.
pub const MAX_MESSAGE: usize = 512;

/// What an error message means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What kind of failure it is.
    pub class: Class,
    /// Its stable name.
    pub reason: Reason,
    /// The error in short: one line of 1 to [`MAX_MESSAGE`] bytes, without what changes at each attempt and
    /// without secrets.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
    /// The step that failed, where the message says it.
    pub stage: Option<Stage>,
}

/// Classifies an error message; see the [module](self) for what it knows.
pub fn classify(message: &str) -> Failure {
    let message = bounded(message);
    let (stage, rest) = Stage::split(&message);
    let unpacked = unpack(rest);
    let shell = cause(&unpacked.shell);
    let (text, fallback) = match &unpacked.log {
        Log::Absent if rest.trim().is_empty() => (Cow::Borrowed(shell), NO_MESSAGE),
        Log::Absent => (Cow::Borrowed(shell), UNRECOGNISED),
        Log::Empty => (Cow::Borrowed(shell), KILLED),
        Log::Unreadable => (Cow::Borrowed(shell), UNREADABLE),
        Log::Text { text, complete: true } => (Cow::Borrowed(text.as_str()), UNRECOGNISED),
        // What is lost of the log may be what the summary says.
        Log::Text { text, complete: false } => (Cow::Owned(["Error: ", shell, "\n\n", text].concat()), UNRECOGNISED),
    };
    let segments = Segments::read(&text);
    if let Some(found) = Found::best(&segments) {
        return found.into_failure(&segments, stage, fallback);
    }
    // The log has nothing but a preamble or warnings: the summary may say more.
    let summary = Segments::read(shell);
    match Found::best(&summary) {
        Some(found) => found.into_failure(&summary, stage, fallback),
        None => failure(named(fallback), stage, String::new()),
    }
}

/// The cause in the text around a log: what follows the words that only say that terraform ran.
fn cause(shell: &str) -> &str {
    const WRAPPER: &str = "Terraform encountered an error. Summary: ";
    // What the provider was doing is what the stage says already.
    const CONTEXTS: [&str; 4] = [
        "cannot initialize Terraform configuration: ",
        "cannot diff (i.e. plan) Terraform configuration: ",
        "cannot apply Terraform configuration: ",
        "cannot destroy Terraform configuration: ",
    ];
    let shell = shell.trim();
    // It stands near the beginning; the rest may be long.
    let beginning = shell.get(..shell.floor_char_boundary(512)).unwrap_or_default();
    if let Some(at) = position(beginning, WRAPPER) {
        let summary = shell.get(at + WRAPPER.len()..).unwrap_or_default();
        return summary.strip_suffix('.').unwrap_or(summary).trim();
    }
    CONTEXTS.iter().find_map(|context| shell.strip_prefix(context)).unwrap_or(shell).trim_start()
}

/// The first place of `part`; quicker than `find` where its first character is rare.
fn position(text: &str, part: &str) -> Option<usize> {
    let first = part.chars().next()?;
    text.match_indices(first)
        .map(|(at, _)| at)
        .find(|at| text.as_bytes().get(*at..).is_some_and(|rest| rest.starts_with(part.as_bytes())))
}

/// The error that counts in a message.
struct Found<'a> {
    segment: &'a Segment,
    /// `None`: no rule fits.
    found: Option<Match>,
}

impl<'a> Found<'a> {
    /// The error that a person should look at first; `None` if there is no text.
    fn best(segments: &'a Segments) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut consider = |segment: &'a Segment, found: Option<Match>| {
            let new = Self { segment, found };
            if best.as_ref().is_none_or(|best| new.comes_before(best, segments)) {
                best = Some(new);
            }
        };
        let mut only_items = true;
        for segment in segments.errors() {
            if !is_wrapper(segments.text(&segment.body)) {
                let found = scan(segments.text(&segment.body));
                only_items &= found.is_none() && !segment.lead.is_empty();
                consider(segment, found);
            }
        }
        if only_items {
            // The items of the list say nothing, so what introduces it may.
            for lead in segments.leads() {
                if let Some(found) = scan(segments.text(&lead.body)) {
                    consider(lead, Some(found));
                }
            }
        }
        best.or_else(|| segments.errors().first().map(|segment| Self { segment, found: None }))
    }

    /// Whether this one counts rather than `other`. Where the rules do not tell, the text does: the
    /// order of errors in a message changes from one attempt to the next.
    fn comes_before(&self, other: &Self, segments: &Segments) -> bool {
        match self.rank().cmp(&other.rank()) {
            core::cmp::Ordering::Less => true,
            core::cmp::Ordering::Greater => false,
            core::cmp::Ordering::Equal => self.text(segments) < other.text(segments),
        }
    }

    fn rank(&self) -> (u8, u8, Option<Match>) {
        match self.found {
            Some(found) => {
                let decisive = u8::from(found.strength != rules::Strength::Decisive);
                (decisive, found.rule().class.precedence(), Some(found))
            }
            None => (1, Class::Unknown.precedence(), Some(Match { strength: rules::Strength::Vague, rule: u16::MAX })),
        }
    }

    fn text(&self, segments: &Segments) -> String {
        let Segment { lead, body } = self.segment;
        if lead.is_empty() {
            normalise(segments.text(body), MAX_MESSAGE)
        } else {
            let lead = segments.text(lead).trim_end_matches([':', ' ']);
            normalise(&[lead, ": ", segments.text(body)].concat(), MAX_MESSAGE)
        }
    }

    fn into_failure(self, segments: &Segments, stage: Option<Stage>, fallback: &str) -> Failure {
        let reason = self.found.map_or_else(|| named(fallback), |found| Reason::of(found.rule()));
        failure(reason, stage, self.text(segments))
    }
}

/// Whether an error only announces others.
fn is_wrapper(text: &str) -> bool {
    ["Terraform encountered problems during initiali", "OpenTofu encountered problems during initiali"]
        .iter()
        .any(|wrapper| text.starts_with(wrapper))
}

/// The reason of a name that is one, which a test holds on to.
fn named(reason: &str) -> Reason {
    Reason::find(reason).unwrap_or(Reason::ALL[0])
}

fn failure(reason: Reason, stage: Option<Stage>, message: String) -> Failure {
    let reason = if stage.is_some_and(Stage::is_changing) { reason.while_changing() } else { reason };
    let message = if message.is_empty() { String::from(no_text(reason)) } else { message };
    Failure { class: reason.class(), reason, message, hint: reason.hint(), stage }
}

/// What to say where there is no text: a condition's message must not be empty.
fn no_text(reason: Reason) -> &'static str {
    match reason.as_str() {
        KILLED => "the process ended without a message",
        UNREADABLE => "the message cannot be read",
        _ => "there is no message",
    }
}
