//! Whether another operator writes the statuses that are ours: decided from what objects say of their writers.
//!
//! The API server notes who wrote a status and when. What was there at the first look counts as the past, unless
//! it is only moments old; what comes afterwards is told apart by its own times alone, so a clock that is wrong
//! delays a start by seconds at most and never hides a writer. Plain data with the time as an argument: it must
//! not know how passes are kept from starting.

use std::{collections::BTreeMap, time::Duration};

use capt_reconcile::{managed_fields::is_update_of_status, object::ObjectKey};
use capt_status::Time;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use tokio::time::Instant;

/// What was written less long ago than this, by our clock, may have a living writer.
const RECENT: i64 = 60;
/// How long to wait whether that writer goes on. The Go implementation writes many times a second.
const SUSPICION: Duration = Duration::from_secs(15);
/// Two writes within this time are no slip of somebody's hand.
const WINDOW: Duration = Duration::from_mins(1);
/// How long it must be quiet after a writer was seen at work.
const QUIET: Duration = Duration::from_mins(1);
/// Managers of people: a hand that corrects a status is no operator.
const PEOPLE: &str = "kubectl";

/// The newest update of a status by somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Who, as the API server has it.
    pub manager: String,
    /// When, by the clock of the API server.
    pub at: Time,
}

impl Update {
    /// The newest of `entries` that counts.
    pub fn newest(entries: &[ManagedFieldsEntry]) -> Option<Self> {
        let updates = entries
            .iter()
            .filter(|entry| is_update_of_status(entry.operation.as_deref(), entry.subresource.as_deref()))
            .filter_map(|entry| {
                let manager = entry.manager.clone().filter(|manager| !manager.starts_with(PEOPLE))?;
                Some(Self { manager, at: entry.time.as_ref()?.0.into() })
            });
        updates.max_by_key(|update| update.at)
    }
}

/// Why passes wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The object that somebody else wrote last.
    pub object: ObjectKey,
    /// Who.
    pub manager: String,
    /// Until when, if no further write comes.
    pub until: Instant,
}

/// What is known of other writers.
#[derive(Debug, Default)]
pub struct Rivals {
    /// Time of the newest update of each object that has one.
    seen: BTreeMap<ObjectKey, Time>,
    /// When each manager was seen last, as far as that is less than [`WINDOW`] ago.
    recent: BTreeMap<String, Instant>,
    held: Option<Held>,
    writes: u64,
}

impl Rivals {
    /// The first list has `object`, with this update; `wall` is the time of our clock.
    pub fn listed(&mut self, object: &ObjectKey, update: Update, wall: Time, now: Instant) {
        let Update { manager, at } = update;
        self.seen.insert(object.clone(), at);
        // Either way round: a clock that goes behind makes the past look like the future.
        if wall.since(at).max(at.since(wall)).as_seconds() < RECENT {
            self.hold(object, manager, now, SUSPICION);
        }
    }

    /// A watch shows `object`, with this update.
    pub fn changed(&mut self, object: &ObjectKey, update: Update, now: Instant) {
        let Update { manager, at } = update;
        if self.seen.get(object).is_some_and(|seen| *seen >= at) {
            return;
        }
        self.seen.insert(object.clone(), at);
        self.writes = self.writes.saturating_add(1);
        self.recent.retain(|_, seen| now.duration_since(*seen) <= WINDOW);
        let again = self.recent.insert(manager.clone(), now).is_some();
        if again || self.held(now).is_some() {
            self.hold(object, manager, now, QUIET);
        }
    }

    /// The object is gone.
    pub fn gone(&mut self, object: &ObjectKey) {
        self.seen.remove(object);
    }

    /// Why passes must not start at `now`; `None` if they may.
    pub fn held(&self, now: Instant) -> Option<Held> {
        self.held.clone().filter(|held| now < held.until)
    }

    /// How many updates by others were seen at work.
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    fn hold(&mut self, object: &ObjectKey, manager: String, now: Instant, length: Duration) {
        let until = now + length;
        if self.held.as_ref().is_none_or(|held| held.until < until) {
            self.held = Some(Held { object: object.clone(), manager, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use capt_reconcile::object::Kind;
    use serde_json::json;

    use super::*;

    const START: i64 = 1_767_225_600;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::CaptCluster, "ns", name)
    }

    fn update(manager: &str, at: i64) -> Update {
        Update { manager: manager.to_owned(), at: Time::from_unix(START + at) }
    }

    /// What is in the first list, as (object, manager, seconds since the start by the API server's clock), then what
    /// watches show, as (object, manager, that time, seconds since the start); and during which seconds passes wait.
    struct Case {
        what: &'static str,
        listed: &'static [(&'static str, &'static str, i64)],
        changed: &'static [(&'static str, &'static str, i64, u64)],
        held: &'static [(u64, u64)],
    }

    const CASES: &[Case] = &[
        Case { what: "nobody writes", listed: &[], changed: &[], held: &[] },
        Case { what: "somebody wrote long ago", listed: &[("a", "manager", -3600)], changed: &[], held: &[] },
        Case {
            what: "somebody wrote just now, and is gone",
            listed: &[("a", "manager", -5)],
            changed: &[],
            held: &[(0, 15)],
        },
        Case { what: "our clock is late", listed: &[("a", "manager", 30)], changed: &[], held: &[(0, 15)] },
        Case { what: "our clock is very wrong", listed: &[("a", "manager", 7200)], changed: &[], held: &[] },
        Case {
            what: "one that wrote just now goes on for a while",
            listed: &[("a", "manager", -5)],
            changed: &[("a", "manager", 3, 3), ("a", "manager", 10, 10)],
            held: &[(0, 70)],
        },
        Case {
            what: "our clock is very wrong and it goes on",
            listed: &[("a", "manager", 7200)],
            changed: &[("a", "manager", 7201, 1), ("a", "manager", 7202, 2)],
            held: &[(2, 62)],
        },
        Case { what: "one write is no operator", listed: &[], changed: &[("a", "tool", 100, 100)], held: &[] },
        Case {
            what: "two of one manager are, also of two objects",
            listed: &[("a", "manager", -3600)],
            changed: &[("a", "manager", 100, 100), ("b", "manager", 110, 110)],
            held: &[(110, 170)],
        },
        Case {
            what: "two of two tools are not",
            listed: &[],
            changed: &[("a", "one", 100, 100), ("a", "other", 110, 110)],
            held: &[],
        },
        Case {
            what: "two that take turns are",
            listed: &[],
            changed: &[("a", "one", 1, 1), ("a", "other", 2, 2), ("a", "one", 3, 3), ("a", "other", 4, 4)],
            held: &[(3, 64)],
        },
        Case {
            what: "two far apart are not",
            listed: &[],
            changed: &[("a", "tool", 100, 100), ("a", "tool", 170, 170)],
            held: &[],
        },
        Case {
            what: "the same write seen again is none",
            listed: &[],
            changed: &[("a", "tool", 100, 100), ("a", "tool", 100, 101), ("a", "tool", 99, 102)],
            held: &[],
        },
        Case {
            what: "it comes back",
            listed: &[],
            changed: &[("a", "m", 1, 1), ("a", "m", 2, 2), ("a", "m", 300, 300), ("a", "m", 301, 301)],
            held: &[(2, 62), (301, 361)],
        },
    ];

    #[test]
    fn passes_wait_while_another_operator_writes_and_for_nothing_else() {
        let begin = Instant::now();
        let at = |second: u64| begin + Duration::from_secs(second);
        for Case { what, listed, changed, held } in CASES {
            let mut rivals = Rivals::default();
            for (object, manager, time) in *listed {
                rivals.listed(&key(object), update(manager, *time), Time::from_unix(START), begin);
            }
            let mut next = changed.iter().peekable();
            for second in 0..400 {
                while let Some((object, manager, time, _)) = next.next_if(|(_, _, _, when)| *when == second) {
                    rivals.changed(&key(object), update(manager, *time), at(second));
                }
                let expected = held.iter().any(|(from, to)| (*from..*to).contains(&second));
                assert_eq!(rivals.held(at(second)).is_some(), expected, "{what}: second {second}");
            }
        }
    }

    #[test]
    fn a_writer_that_goes_on_takes_no_memory() {
        let mut rivals = Rivals::default();
        let now = Instant::now();
        for time in 0..10_000 {
            rivals.changed(&key("a"), update("manager", time), now);
        }
        assert_eq!((rivals.recent.len(), rivals.seen.len(), rivals.writes()), (1, 1, 10_000));
        rivals.gone(&key("a"));
        assert!(rivals.seen.is_empty());
    }

    #[test]
    fn only_updates_of_the_status_by_programs_count() {
        let entry = |manager: &str, operation: &str, subresource: &str, time: &str| {
            serde_json::from_value::<ManagedFieldsEntry>(json!({"manager": manager, "operation": operation,
                "subresource": subresource, "time": time}))
            .unwrap()
        };
        let entries = [
            entry("capt-captcluster", "Apply", "status", "2026-01-01T00:00:09Z"),
            entry("kubectl-edit", "Update", "status", "2026-01-01T00:00:08Z"),
            entry("capi", "Update", "", "2026-01-01T00:00:07Z"),
            entry("manager", "Update", "status", "2026-01-01T00:00:02Z"),
            entry("manager", "Update", "status", "2026-01-01T00:00:01Z"),
        ];
        assert_eq!(Update::newest(&entries), Some(update("manager", 2)));
        assert_eq!(Update::newest(&entries[..3]), None);
    }
}
