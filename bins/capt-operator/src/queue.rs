//! When each pass runs: one at a time per object, never more than a bound at once, as soon as
//! something happens or at the moment the last pass named, and later and later after failures.
//!
//! Plain data with the time as an argument; [`crate::scheduler`] drives it. It must not know what a
//! pass does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use capt_reconcile::object::{Kind, ObjectKey};
use tokio::time::Instant;

/// How a pass ended, as far as its next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing had to be written.
    Settled {
        /// When to look again, if no event comes first.
        next: Option<Duration>,
    },
    /// Everything planned was written.
    Wrote {
        /// When to look again, if no event comes first.
        next: Option<Duration>,
    },
    /// What was planned is written later, since too much was written already.
    Slowed,
    /// The view was stale: the event that corrects it is under way.
    Stale,
    /// Something else is in the way, or the API server refused or did not answer.
    Failed,
}

/// Why a pass is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// An object of this kind is there or changed.
    Event(Kind),
    /// A write of ours to an object of this kind.
    Write(Kind),
    /// The moment has come that the last pass named, or the wait after one that could not go on is over.
    Time,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(kind) => write!(f, "event on {}", kind.name()),
            Self::Write(kind) => write!(f, "own write to {}", kind.name()),
            Self::Time => f.write_str("time"),
        }
    }
}

/// How many passes run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concurrency {
    /// Over objects of all kinds together.
    pub total: usize,
    /// Over objects of one kind; a kind that is not here has no limit of its own.
    pub by_kind: BTreeMap<Kind, usize>,
}

impl From<usize> for Concurrency {
    /// One limit for all kinds together.
    fn from(total: usize) -> Self {
        Self { total, by_kind: BTreeMap::new() }
    }
}

/// A pass to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Over which object.
    pub object: ObjectKey,
    /// Since when it is due.
    pub due: Instant,
    /// Why.
    pub trigger: Trigger,
    /// So much was written in a row that until then a pass may write only what tells a transition.
    pub slowed_until: Option<Instant>,
}

/// First wait after a stale view; its cure is an event that is milliseconds away.
const STALE_BASE: Duration = Duration::from_millis(50);
/// Longest wait after stale views.
const STALE_MAX: Duration = Duration::from_secs(10);
/// First wait after a failure.
const FAILED_BASE: Duration = Duration::from_secs(1);
/// Longest wait after failures.
const FAILED_MAX: Duration = Duration::from_mins(5);
/// Passes in a row that may write. More than a life of an object needs between two passes that find
/// nothing to do; a pass that never comes to rest is slowed down instead of writing at full speed.
const WRITES_IN_A_ROW: u32 = 16;
/// Time between two passes over an object that is slowed down: no transition is told later than that.
const SLOWED_PACE: Duration = Duration::from_secs(1);

/// What is remembered of an object between its passes.
#[derive(Debug, Default)]
struct Record {
    /// Failures in a row.
    failures: u32,
    /// Passes in a row that wrote.
    writes: u32,
    /// Not to be started before, whatever happens.
    floor: Option<Instant>,
    /// Nothing but transitions is to be written before.
    slowed_until: Option<Instant>,
    /// When the next pass is due, and why.
    due: Option<(Instant, Trigger)>,
    /// A pass is under way.
    running: bool,
}

/// The passes over objects of one kind.
#[derive(Debug, Default)]
struct Lane {
    due: BTreeSet<(Instant, ObjectKey)>,
    running: usize,
}

/// The passes that are due, waiting or running.
#[derive(Debug)]
pub struct Queue {
    records: BTreeMap<ObjectKey, Record>,
    lanes: BTreeMap<Kind, Lane>,
    concurrency: Concurrency,
    /// Nothing is started meanwhile.
    held: bool,
}

impl Queue {
    /// An empty queue that runs no more passes at once than `concurrency` says.
    pub fn new(concurrency: impl Into<Concurrency>) -> Self {
        Self { records: BTreeMap::new(), lanes: BTreeMap::new(), concurrency: concurrency.into(), held: false }
    }

    /// Whether passes are kept from starting; what happens meanwhile waits.
    pub const fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Something happened that concerns the pass of `key`: it is due at once, or right after the
    /// one that is running. Any number of calls before it starts makes one pass.
    pub fn wake(&mut self, key: ObjectKey, trigger: Trigger, now: Instant) {
        self.schedule(key, trigger, now);
    }

    fn schedule(&mut self, key: ObjectKey, trigger: Trigger, at: Instant) {
        let record = self.records.entry(key.clone()).or_default();
        let at = record.floor.map_or(at, |floor| floor.max(at));
        if record.due.is_some_and(|(due, _)| due <= at) {
            return;
        }
        let before = record.due.replace((at, trigger));
        if !record.running {
            let lane = self.lanes.entry(key.kind).or_default();
            if let Some((before, _)) = before {
                lane.due.remove(&(before, key.clone()));
            }
            lane.due.insert((at, key));
        }
    }

    /// The kind of which the next pass can be started, the one that is due for longest, and since when.
    fn next(&self) -> Option<(Instant, Kind)> {
        if self.held || self.running() >= self.concurrency.total {
            return None;
        }
        let has_room =
            |kind: &Kind, lane: &Lane| self.concurrency.by_kind.get(kind).is_none_or(|limit| lane.running < *limit);
        let lanes = self.lanes.iter().filter(|(kind, lane)| has_room(kind, lane));
        lanes.filter_map(|(kind, lane)| Some((lane.due.first()?.0, *kind))).min()
    }

    /// The pass to be started now, if one is due and there is room.
    pub fn start(&mut self, now: Instant) -> Option<Start> {
        let (_, kind) = self.next().filter(|(due, _)| *due <= now)?;
        let lane = self.lanes.get_mut(&kind)?;
        let (due, object) = lane.due.pop_first()?;
        lane.running += 1;
        let record = self.records.entry(object.clone()).or_default();
        let trigger = record.due.take().map_or(Trigger::Time, |(_, trigger)| trigger);
        record.running = true;
        let slowed_until = record.slowed_until.filter(|until| *until > now);
        Some(Start { object, due, trigger, slowed_until })
    }

    /// How many passes are due or have a time at which they are.
    pub fn waiting(&self) -> usize {
        self.lanes.values().map(|lane| lane.due.len()).sum()
    }

    /// When a pass is due that can be started; absent while only an event or the end of a running
    /// pass can change anything.
    pub fn next_due(&self) -> Option<Instant> {
        self.next().map(|(at, _)| at)
    }

    /// How many passes are under way.
    pub fn running(&self) -> usize {
        self.lanes.values().map(|lane| lane.running).sum()
    }

    /// The pass of `key` ended. Returns after how long it runs again if nothing happens before.
    pub fn finish(&mut self, key: ObjectKey, verdict: Verdict, now: Instant) -> Option<Duration> {
        let record = self.records.entry(key.clone()).or_default();
        if record.running {
            record.running = false;
            if let Some(lane) = self.lanes.get_mut(&key.kind) {
                lane.running = lane.running.saturating_sub(1);
            }
        }
        let (wait, failures, writes) = match verdict {
            Verdict::Settled { next } => (next, 0, 0),
            Verdict::Wrote { next } => (next, 0, record.writes.saturating_add(1)),
            Verdict::Slowed => {
                (record.slowed_until.map(|until| until.saturating_duration_since(now)), 0, record.writes)
            }
            Verdict::Stale => (
                Some(backoff(STALE_BASE, STALE_MAX, record.failures)),
                record.failures.saturating_add(1),
                record.writes,
            ),
            Verdict::Failed => (
                Some(backoff(FAILED_BASE, FAILED_MAX, record.failures)),
                record.failures.saturating_add(1),
                record.writes,
            ),
        };
        record.failures = failures;
        record.writes = writes;
        match writes.checked_sub(WRITES_IN_A_ROW) {
            None => (record.floor, record.slowed_until) = (None, None),
            Some(excess) => {
                record.floor = now.checked_add(SLOWED_PACE);
                if matches!(verdict, Verdict::Wrote { .. }) {
                    record.slowed_until = now.checked_add(backoff(FAILED_BASE, FAILED_MAX, excess));
                }
            }
        }
        let woken = record.due.take();
        let at = wait.and_then(|wait| now.checked_add(wait)).map(|at| (at, Trigger::Time));
        match woken.into_iter().chain(at).min_by_key(|(at, _)| *at) {
            Some((at, trigger)) => self.schedule(key, trigger, at),
            // Nothing to remember: the object is at rest, or gone.
            None if failures == 0 && writes == 0 => {
                self.records.remove(&key);
            }
            None => {}
        }
        wait
    }
}

fn backoff(base: Duration, max: Duration, failures: u32) -> Duration {
    base.saturating_mul(1 << failures.min(16)).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: Trigger = Trigger::Event(Kind::Apply);
    const SETTLED: Verdict = Verdict::Settled { next: None };

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Apply, "ns", name)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn started(queue: &mut Queue, now: Instant) -> Option<ObjectKey> {
        queue.start(now).map(|start| start.object)
    }

    #[test]
    fn many_wakes_make_one_pass() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        queue.wake(key("a"), EVENT, now);
        queue.wake(key("a"), EVENT, now);
        assert_eq!(started(&mut queue, now), Some(key("a")));
        assert_eq!(started(&mut queue, now), None);
        queue.finish(key("a"), SETTLED, now);
        assert_eq!(started(&mut queue, now), None);
        assert!(queue.records.is_empty(), "an object at rest takes no memory");
    }

    #[test]
    fn what_happens_during_a_pass_makes_another_right_after_it() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        queue.wake(key("a"), EVENT, now);
        assert_eq!(started(&mut queue, now), Some(key("a")));
        queue.wake(key("a"), EVENT, now);
        assert_eq!(started(&mut queue, now), None, "never two of one object");
        queue.finish(key("a"), Verdict::Settled { next: Some(seconds(60)) }, now);
        assert_eq!(started(&mut queue, now), Some(key("a")));
    }

    #[test]
    fn no_more_run_than_allowed_and_the_oldest_goes_first() {
        let (mut queue, now) = (Queue::new(1), Instant::now());
        queue.wake(key("b"), EVENT, now);
        queue.wake(key("a"), EVENT, now + seconds(1));
        let later = now + seconds(2);
        assert_eq!(started(&mut queue, later), Some(key("b")));
        assert_eq!((started(&mut queue, later), queue.next_due()), (None, None), "full");
        queue.finish(key("b"), SETTLED, later);
        assert_eq!(started(&mut queue, later), Some(key("a")));
    }

    #[test]
    fn the_moment_that_a_pass_names_is_kept_and_an_event_comes_before_it() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        let deadline = Verdict::Settled { next: Some(seconds(60)) };
        queue.wake(key("a"), EVENT, now);
        started(&mut queue, now);
        queue.finish(key("a"), deadline, now);
        assert_eq!(queue.next_due(), Some(now + seconds(60)));
        queue.wake(key("a"), EVENT, now + seconds(1));
        assert_eq!(started(&mut queue, now + seconds(1)), Some(key("a")));
        queue.finish(key("a"), SETTLED, now + seconds(1));
        assert_eq!(queue.next_due(), None, "the last pass says when, not an earlier one");
    }

    #[test]
    fn failures_wait_longer_and_longer_up_to_five_minutes_and_a_success_forgets_them() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        let waits: Vec<_> = (0..12)
            .map(|_| {
                queue.wake(key("a"), EVENT, now);
                started(&mut queue, now);
                queue.finish(key("a"), Verdict::Failed, now).unwrap().as_secs()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        queue.wake(key("a"), EVENT, now);
        started(&mut queue, now);
        queue.finish(key("a"), SETTLED, now);
        queue.wake(key("a"), EVENT, now);
        started(&mut queue, now);
        assert_eq!(queue.finish(key("a"), Verdict::Failed, now), Some(seconds(1)));
    }

    #[test]
    fn a_stale_view_waits_for_the_event_that_corrects_it_but_not_long() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        queue.wake(key("a"), EVENT, now);
        started(&mut queue, now);
        assert_eq!(queue.finish(key("a"), Verdict::Stale, now), Some(Duration::from_millis(50)));
        assert_eq!(started(&mut queue, now), None);
        queue.wake(key("a"), EVENT, now);
        assert_eq!(started(&mut queue, now), Some(key("a")), "the event came first");
    }

    #[test]
    fn an_object_that_never_comes_to_rest_is_slowed_down_whatever_wakes_it() {
        let (mut queue, now) = (Queue::new(8), Instant::now());
        let mut passes = 0;
        queue.wake(key("a"), EVENT, now);
        while started(&mut queue, now).is_some() {
            passes += 1;
            queue.wake(key("a"), EVENT, now);
            queue.finish(key("a"), Verdict::Wrote { next: None }, now);
            assert!(passes < 100, "spins");
        }
        assert_eq!(passes, WRITES_IN_A_ROW);
        queue.wake(key("a"), EVENT, now);
        assert_eq!(queue.next_due(), Some(now + seconds(1)));
        assert_eq!(started(&mut queue, now + seconds(1)), Some(key("a")));
        queue.finish(key("a"), SETTLED, now + seconds(1));
        queue.wake(key("a"), EVENT, now + seconds(1));
        assert_eq!(started(&mut queue, now + seconds(1)), Some(key("a")), "rest ends it");
    }

    #[test]
    fn what_is_slowed_down_is_looked_at_each_second_and_writes_later_and_later() {
        let (mut queue, mut now) = (Queue::new(8), Instant::now());
        let mut slowed = Vec::new();
        for _ in 0..WRITES_IN_A_ROW + 5 {
            queue.wake(key("a"), EVENT, now);
            // Passes that only look, until it may write again.
            loop {
                now = queue.next_due().unwrap().max(now);
                let Start { object, due: _, trigger: _, slowed_until } = queue.start(now).unwrap();
                queue.wake(key("a"), EVENT, now);
                let Some(until) = slowed_until else {
                    queue.finish(object, Verdict::Wrote { next: None }, now);
                    break;
                };
                slowed.push((until - now).as_secs());
                assert_eq!(queue.finish(object, Verdict::Slowed, now), Some(until - now), "a last look at its end");
                assert!(queue.next_due().unwrap() - now <= seconds(1), "a transition waits no longer");
            }
        }
        assert_eq!(slowed[..5], [1, 3, 2, 1, 7], "2, 4 and 8 seconds, each second a look");
        queue.wake(key("a"), EVENT, now);
        now += seconds(1);
        assert_eq!(started(&mut queue, now), Some(key("a")));
        queue.finish(key("a"), SETTLED, now);
        queue.wake(key("a"), EVENT, now);
        assert_eq!(queue.start(now).unwrap().slowed_until, None, "rest ends it");
    }

    #[test]
    fn a_kind_that_is_full_holds_up_no_other() {
        let by_kind = BTreeMap::from([(Kind::Apply, 1)]);
        let (mut queue, now) = (Queue::new(Concurrency { total: 2, by_kind }), Instant::now());
        let cluster = ObjectKey::new(Kind::CaptCluster, "ns", "c");
        queue.wake(key("a"), EVENT, now);
        queue.wake(key("b"), EVENT, now);
        queue.wake(cluster.clone(), EVENT, now + seconds(1));
        let later = now + seconds(2);
        assert_eq!(started(&mut queue, later), Some(key("a")));
        assert_eq!(queue.next_due(), Some(now + seconds(1)), "the one that can be started");
        assert_eq!(started(&mut queue, later), Some(cluster.clone()));
        queue.finish(cluster, SETTLED, later);
        assert_eq!((started(&mut queue, later), queue.next_due()), (None, None), "of applies one is enough");
        queue.finish(key("a"), SETTLED, later);
        assert_eq!(started(&mut queue, later), Some(key("b")));
    }

    #[test]
    fn a_pass_knows_why_it_runs_and_the_first_cause_counts() {
        let (mut queue, now) = (Queue::new(1), Instant::now());
        queue.wake(key("a"), Trigger::Write(Kind::Secret), now);
        queue.wake(key("a"), EVENT, now);
        assert_eq!(queue.start(now).unwrap().trigger, Trigger::Write(Kind::Secret));
        queue.finish(key("a"), Verdict::Settled { next: Some(seconds(5)) }, now);
        assert_eq!(queue.start(now + seconds(5)).unwrap().trigger, Trigger::Time);
        queue.finish(key("a"), Verdict::Settled { next: Some(seconds(5)) }, now);
        queue.wake(key("a"), EVENT, now + seconds(1));
        assert_eq!(queue.start(now + seconds(1)).unwrap().trigger.to_string(), "event on WorkspaceTemplateApply");
    }

    #[test]
    fn while_it_is_held_nothing_starts_and_nothing_is_lost() {
        let (mut queue, now) = (Queue::new(1), Instant::now());
        queue.hold(true);
        queue.wake(key("a"), EVENT, now);
        assert_eq!((started(&mut queue, now), queue.next_due(), queue.waiting()), (None, None, 1));
        queue.hold(false);
        assert_eq!(started(&mut queue, now), Some(key("a")));
    }
}
