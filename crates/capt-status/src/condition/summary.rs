//! Many conditions of one object as one condition of it.

use alloc::{string::String, vec::Vec};

use super::{
    combine::{CombineError, Entry, Priority, Reasons, after_bullet, combined},
    names::ConditionType,
    verdict::Verdict,
    wire::AnyCondition,
};

/// A summary of conditions of one object, by the rules of Cluster API.
///
/// An issue (False, or True under negative polarity) makes it False, else an Unknown makes it
/// Unknown, else it is True. A type that should be there and is not counts as Unknown. The message
/// has a bullet for each condition that is not well, in the order of the types given; conditions
/// that are well are mentioned only if all are, and then only those with a message.
///
/// ```
/// use capt_status::{Time, condition::{self, Summary, Verdict, types}, condition_type, reason};
///
/// let deleting = Verdict::new(types::DELETING, true, reason!("Draining"), "2 connections are open");
/// let conditions = condition::merge(&[], vec![deleting], 1, Time::from_unix(0));
/// let ready = Summary::new(&["DiskReady", "Deleting"]).negative(&["Deleting"]).of(&conditions, types::READY)?;
/// assert_eq!(ready.status, condition::ConditionStatus::False);
/// assert_eq!(ready.message, "* DiskReady: Condition not yet reported\n* Deleting: 2 connections are open");
/// # Ok::<(), condition::CombineError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    types: &'a [&'a str],
    negative: &'a [&'a str],
    ignored_if_missing: &'a [&'a str],
    reasons: Reasons,
}

impl<'a> Summary<'a> {
    /// A summary of `types`, most relevant first; True is good for each of them.
    pub fn new(types: &'a [&'a str]) -> Self {
        Self { types, negative: &[], ignored_if_missing: &[], reasons: Reasons::default() }
    }

    /// Types of which False is good.
    #[must_use]
    pub fn negative(self, types: &'a [&'a str]) -> Self {
        Self { negative: types, ..self }
    }

    /// Types that do not count if they are not there.
    #[must_use]
    pub fn ignore_if_missing(self, types: &'a [&'a str]) -> Self {
        Self { ignored_if_missing: types, ..self }
    }

    /// Reasons of the result.
    #[must_use]
    pub fn reasons(self, reasons: Reasons) -> Self {
        Self { reasons, ..self }
    }

    /// The summary of `conditions` as a condition of type `target`.
    pub fn of<C: AnyCondition>(&self, conditions: &[C], target: ConditionType) -> Result<Verdict, CombineError> {
        if self.types.is_empty() {
            return Err(CombineError::NoTypes);
        }
        if self.types.contains(&target.as_str()) {
            return Err(CombineError::TargetIncluded(target.into()));
        }
        let mut entries: Vec<Entry<'_>> = Vec::with_capacity(self.types.len());
        for type_ in self.types {
            let negative = self.negative.contains(type_);
            match conditions.iter().find(|condition| condition.type_() == *type_) {
                Some(condition) => entries.push(Entry::of(condition, negative)),
                None if self.ignored_if_missing.contains(type_) => {}
                None => entries.push(Entry::missing(type_, "Condition not yet reported")),
            }
        }
        let Some(gravest) = entries.iter().map(|entry| entry.priority).min() else {
            return Err(CombineError::NothingToSummarize);
        };
        Ok(combined(target, gravest, true, &self.reasons, message(&entries, gravest)))
    }
}

fn message(entries: &[Entry<'_>], gravest: Priority) -> String {
    let mut text = String::new();
    for entry in entries {
        let said = match (entry.priority, gravest) {
            (Priority::Issue | Priority::Unknown, _) => true,
            (Priority::Info, Priority::Info) => !entry.message.is_empty(),
            (Priority::Info, Priority::Issue | Priority::Unknown) => false,
        };
        if !said {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("* ");
        text.push_str(entry.type_);
        text.push(':');
        if entry.message.is_empty() {
            text.push(' ');
            text.push_str(entry.reason);
        } else {
            text.push_str(&after_bullet(entry.message));
        }
    }
    text
}
