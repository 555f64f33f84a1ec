//! One condition type of many objects as one condition.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use super::{
    combine::{CombineError, Entry, Priority, Reasons, after_bullet, combined, not_yet_reported_message},
    names::ConditionType,
    plural::plural,
    verdict::Verdict,
    wire::{AnyCondition, Condition},
};

/// Messages that are shown; the objects with other ones are counted.
const MAX_MESSAGES: usize = 3;

/// Names that are shown for one message; the other ones are counted.
const MAX_NAMES: usize = 3;

/// An object whose condition is aggregated.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a, C = Condition> {
    /// Its kind, in the singular.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its conditions.
    pub conditions: &'a [C],
    /// Whether it is named before the others; Cluster API does so with control plane machines.
    pub first: bool,
}

/// The aggregate of one condition type over many objects, by the rules of Cluster API.
///
/// An issue in any object decides, then an Unknown; an object without the condition counts as
/// Unknown. Objects with the same message share a bullet. At most three messages with at most three
/// names each are shown, issues and the most frequent messages first; the rest is counted.
///
/// ```
/// use capt_status::{Time, condition::{self, Aggregate, Source, Verdict, types}, reason};
///
/// let down = Verdict::new(types::READY, false, reason!("DiskFull"), "disk is full");
/// let down = condition::merge(&[], vec![down], 1, Time::from_unix(0));
/// let sources = ["db-1", "db-0"].map(|name| Source { kind: "Replica", name, conditions: &down, first: false });
/// let verdict = Aggregate::new(types::READY).of(&sources)?;
/// assert_eq!(verdict.message, "* Replicas db-0, db-1: disk is full");
/// # Ok::<(), condition::CombineError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Aggregate {
    source: ConditionType,
    target: ConditionType,
    positive: bool,
    reasons: Reasons,
}

impl Aggregate {
    /// The aggregate of the conditions of type `source`, of the same type.
    pub fn new(source: ConditionType) -> Self {
        Self { target: source.clone(), source, positive: true, reasons: Reasons::default() }
    }

    /// The type of the result, if it is another one.
    #[must_use]
    pub fn as_type(self, target: ConditionType) -> Self {
        Self { target, ..self }
    }

    /// False is good, for the source and for the result.
    #[must_use]
    pub fn negative(self) -> Self {
        Self { positive: false, ..self }
    }

    /// Reasons of the result.
    #[must_use]
    pub fn reasons(self, reasons: Reasons) -> Self {
        Self { reasons, ..self }
    }

    /// The aggregate over `sources`; their order matters only where transition times are equal.
    pub fn of<C: AnyCondition>(&self, sources: &[Source<'_, C>]) -> Result<Verdict, CombineError> {
        let type_ = self.source.as_str();
        let missing = not_yet_reported_message(type_);
        let mut reports: Vec<Report<'_>> = Vec::with_capacity(sources.len());
        for Source { kind, name, conditions, first } in sources {
            let entry = match conditions.iter().find(|condition| condition.type_() == type_) {
                Some(condition) => Entry::of(condition, !self.positive),
                None => Entry::missing(type_, &missing),
            };
            reports.push(Report { kind, name, first: *first, entry });
        }
        let Some(gravest) = reports.iter().map(|report| report.entry.priority).min() else {
            return Err(CombineError::NoSources);
        };
        // Issues before unknown ones, in each the oldest first.
        reports.sort_by_key(|report| (report.entry.priority, report.entry.since));
        reports.retain(|report| match (gravest, report.entry.priority) {
            (Priority::Info, _) => !report.entry.message.is_empty(),
            (Priority::Issue | Priority::Unknown, Priority::Info) => false,
            (Priority::Issue | Priority::Unknown, Priority::Issue | Priority::Unknown) => true,
        });
        Ok(combined(self.target.clone(), gravest, self.positive, &self.reasons, message(&reports)))
    }
}

/// One object's condition.
struct Report<'a> {
    kind: &'a str,
    name: &'a str,
    first: bool,
    entry: Entry<'a>,
}

/// A message of one kind, and who says it.
struct Group<'a> {
    message: &'a str,
    first: bool,
    priority: Priority,
    names: Vec<&'a str>,
    joined: String,
}

fn message(reports: &[Report<'_>]) -> String {
    // Which message goes first is decided over all kinds, as Cluster API does.
    let mut weights: BTreeMap<&str, (bool, Priority)> = BTreeMap::new();
    for report in reports {
        let (first, priority) = weights.entry(report.entry.message).or_insert((false, report.entry.priority));
        *first |= report.first;
        *priority = (*priority).min(report.entry.priority);
    }
    let first_names: BTreeSet<&str> = reports.iter().filter(|report| report.first).map(|report| report.name).collect();
    let kinds: BTreeSet<&str> = reports.iter().map(|report| report.kind).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut left = MAX_MESSAGES;
    for kind in kinds {
        let mut others = [0; Priority::ALL.len()];
        for mut group in groups(reports, kind, &weights) {
            if left == 0 {
                others[group.priority as usize] += group.names.len();
                continue;
            }
            left -= 1;
            group.names.sort_unstable_by_key(|name| (!first_names.contains(name), *name));
            lines.push(bullet(kind, &group));
        }
        for (priority, count) in Priority::ALL.into_iter().zip(others) {
            if count > 0 {
                let what = match priority {
                    Priority::Issue => "with other issues",
                    Priority::Unknown => "with status unknown",
                    Priority::Info => "with additional info",
                };
                lines.push(if count == 1 {
                    format!("And 1 {kind} {what}")
                } else {
                    format!("And {count} {} {what}", plural(kind))
                });
            }
        }
    }
    lines.join("\n")
}

/// The messages of `kind`, the most important first.
fn groups<'a>(reports: &[Report<'a>], kind: &str, weights: &BTreeMap<&'a str, (bool, Priority)>) -> Vec<Group<'a>> {
    let mut names: BTreeMap<&'a str, Vec<&'a str>> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.kind == kind) {
        names.entry(report.entry.message).or_default().push(report.name);
    }
    let mut groups: Vec<Group<'a>> = names
        .into_iter()
        .map(|(message, names)| {
            let (first, priority) = weights.get(message).copied().unwrap_or((false, Priority::Info));
            Group { message, first, priority, joined: names.join(","), names }
        })
        .collect();
    groups.sort_by(|left, right| {
        (right.first, left.priority, right.names.len(), &left.joined).cmp(&(
            left.first,
            right.priority,
            left.names.len(),
            &right.joined,
        ))
    });
    groups
}

fn bullet(kind: &str, group: &Group<'_>) -> String {
    let text = after_bullet(group.message);
    match group.names.as_slice() {
        [name] => format!("* {kind} {name}:{text}"),
        names if names.len() <= MAX_NAMES => format!("* {} {}:{text}", plural(kind), names.join(", ")),
        names => format!(
            "* {} {}, ... ({} more):{text}",
            plural(kind),
            names[..MAX_NAMES].join(", "),
            names.len() - MAX_NAMES
        ),
    }
}
