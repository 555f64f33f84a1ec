//! Breadth-first search over everything that an object can go through: from the first sight, each
//! facts that differ, at once, a second later and long after.
//!
//! The clock is relative and what has expired is all the same, so the search ends by itself. Instead of
//! "eventually" there are closure checks, which are about each reachable memory: let the facts stay as
//! they are, step at each time that was asked for, and see where it comes to rest and after how many
//! steps. Small limits keep the numbers small; the real ones are in the sweep.

extern crate std;

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    vec,
    vec::Vec,
};
#[allow(clippy::disallowed_types)] // only membership is asked for, never the order
use std::{collections::HashSet, println, sync::OnceLock};

use super::{
    laws::{LAWS, Ruling, Step},
    sweep::{because, every_because, table},
    *,
};
use crate::backoff::Backoff;

/// How much later the next thing happens: at once, a second, and longer than anything takes.
const LATER: [i64; 3] = [0, 1, 1000];

/// Most steps that anything takes to come to rest: the timers one after the other, and the attempts.
const MOST_STEPS: usize = 12;

/// Limits in seconds; with less to look at they are so short that no timer has a middle.
fn limits() -> Limits {
    let second = Span::from_seconds;
    let [creation, workspace, vpc, plane, secret, grace] =
        if space::stride() == 1 { [3, 4, 2, 5, 2, 2] } else { [1, 2, 1, 2, 1, 1] };
    let timeouts = Timeouts::default()
        .with(Timer::VpcCreation, second(creation))
        .with(Timer::WorkspaceReady, second(workspace))
        .with(Timer::VpcReady, second(vpc))
        .with(Timer::ControlPlane, second(plane))
        .with(Timer::Secret, second(secret))
        .with(Timer::PermissionGrace, second(grace));
    let backoff = Backoff { initial: second(1), multiplier: 2, max: second(2) };
    Limits { timeouts, budget: Budget { max_retries: 2, backoff } }
}

/// `memory` as seen `later` seconds on, with all that is equal made the same: what has expired, what is
/// due, and when the last attempt was.
fn seen_from(memory: &Memory, limits: &Limits, later: i64) -> Memory {
    let mut seen = space::shifted(memory, -later);
    if let Some(since) = seen.paused_since {
        // A pause stands still: all that runs is as far as it was when it began.
        let stood = NOW.since(since);
        for timer in Timer::ALL {
            let moved =
                seen.timers.get(timer).map(|running| Running { started_at: running.started_at.plus(stood), ..running });
            seen.timers.set(timer, moved);
        }
        seen.paused_since = Some(NOW);
    }
    for timer in Timer::ALL {
        let limit = limits.timeouts.of(timer).as_seconds();
        let from = |running: Running| {
            let started = running.started_at.plus(running.suspended_for).as_unix();
            Running::start(Time::from_unix(started.max(NOW.as_unix() - limit)))
        };
        seen.timers.set(timer, seen.timers.get(timer).map(from));
    }
    seen.attempts.last = None;
    seen.attempts.next = seen.attempts.next.map(|due| due.max(NOW));
    seen
}

/// What the search saw.
#[derive(Default)]
struct Found {
    memories: usize,
    steps: u64,
    rests: u64,
    most_steps: usize,
    edges: BTreeSet<(State, State)>,
    because: BTreeSet<&'static str>,
    /// Things that happen sometimes, so that no law holds because they never do.
    sometimes: [(&'static str, u64); 11],
    /// Laws and closures that were broken, with the way there.
    broken: BTreeMap<&'static str, String>,
}

/// A memory that was reached: from where, and by what.
struct Reached {
    memory: Memory,
    from: usize,
    by: Option<(Facts, i64)>,
}

struct Search {
    limits: Limits,
    /// Everything is reached, but only every n-th step and every n-th rest is looked at.
    stride: u64,
    reached: Vec<Reached>,
    found: Found,
}

fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut search =
            Search { limits: limits(), stride: space::stride(), reached: Vec::new(), found: Found::default() };
        // And once where nothing is ever tried.
        for (role, max_retries) in [(Role::Infrastructure, 2), (Role::Infrastructure, 0), (Role::ControlPlane, 2)] {
            search.limits.budget.max_retries = max_retries;
            search.run(role);
        }
        let found = search.found;
        println!(
            "{} memories, {} steps, {} rests, at most {} steps to rest; {:?}",
            found.memories, found.steps, found.rests, found.most_steps, found.sometimes
        );
        found
    })
}

impl Search {
    fn run(&mut self, role: Role) {
        let facts = space::distinct_facts(role);
        let quiet: Vec<Facts> =
            facts.iter().copied().filter(|facts| !facts.user_changed && facts.same_failure).collect();
        self.reached = vec![Reached { memory: Memory::default(), from: 0, by: None }];
        #[allow(clippy::disallowed_types)]
        let mut known = HashSet::from([Memory::default()]);
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let memory = self.reached[at].memory;
            for facts in quiet.iter().filter(|facts| is_possible(&memory, facts)) {
                self.rest(at, facts);
            }
            for later in LATER {
                let seen = seen_from(&memory, &self.limits, later);
                for facts in facts.iter().filter(|facts| is_possible(&memory, facts)) {
                    let next = follow(&seen, facts, &self.limits, NOW);
                    self.look(at, &seen, facts, later, &next);
                    let then = seen_from(&next.memory, &self.limits, 0);
                    if known.insert(then) {
                        queue.push_back(self.reached.len());
                        self.reached.push(Reached { memory: then, from: at, by: Some((*facts, later)) });
                    }
                }
            }
        }
        self.found.memories += self.reached.len();
    }

    /// One step of the search: the laws, and what is counted.
    fn look(&mut self, at: usize, memory: &Memory, facts: &Facts, later: i64, next: &Next) {
        self.found.steps += 1;
        let asks = self.found.steps.is_multiple_of(self.stride);
        let step = Step { memory, facts, limits: &self.limits, now: NOW, next };
        let broken: Vec<&'static str> =
            LAWS.iter().filter(|(_, law)| asks && law(&step) == Ruling::Broken).map(|(name, _)| *name).collect();
        for name in broken {
            self.breaks(name, at, facts, later, next);
        }
        if let Some(from) = memory.state.filter(|from| *from != next.state) {
            self.found.edges.insert((from, next.state));
        }
        self.found.because.insert(because(next.because));
        let late = next.state == State::Ready && memory.state == Some(State::Failed);
        let happens = [
            ("first attempt", next.act && next.memory.attempts.made == 1),
            ("last attempt", next.act && next.memory.attempts.made == self.limits.budget.max_retries),
            ("budget spent", next.memory.attempts.spent && !memory.attempts.spent),
            ("late success", late),
            (
                "retry by the user",
                memory.state == Some(State::Failed) && facts.user_changed && next.state != State::Failed,
            ),
            ("blocked deletion", next.state == State::Deleting && next.stalled),
            ("pause", next.memory.paused_since.is_some() && memory.paused_since.is_none()),
            (
                "resumed with something running",
                memory.paused_since.is_some()
                    && next.memory.paused_since.is_none()
                    && next.memory.timers != Timers::default(),
            ),
            ("permission that came", memory.timers.get(Timer::PermissionGrace).is_some() && next.state == State::Ready),
            ("update that hangs", next.state == State::Degraded && matches!(next.because, Because::Expired(_))),
            ("due but busy", facts.busy && memory.attempts.next.is_some_and(|due| due <= NOW) && !next.act),
        ];
        for ((seen, times), (name, happens)) in self.found.sometimes.iter_mut().zip(happens) {
            *seen = name;
            *times += u64::from(happens);
        }
    }

    /// Closure: the facts stay as they are. Where does it come to rest, and is that right?
    fn rest(&mut self, at: usize, facts: &Facts) {
        self.found.rests += 1;
        if !self.found.rests.is_multiple_of(self.stride) {
            return;
        }
        let mut now = NOW;
        let mut memory = self.reached[at].memory;
        let (mut shown, mut acts, mut steps, mut broken) = (Vec::new(), 0, 0, Vec::new());
        let last = loop {
            let next = follow(&memory, facts, &self.limits, now);
            steps += 1;
            memory = next.memory;
            if shown.last() != Some(&(next.state, next.stalled)) {
                shown.push((next.state, next.stalled));
            }
            acts += u32::from(next.act);
            // A look too early is no reason for a step.
            let soon = now.plus(Span::from_seconds(1));
            if next.at.is_some_and(|at| soon < at) && step(&memory, facts, &self.limits, soon).is_some() {
                broken.push("P2 quiet between deadlines");
            }
            match next.at {
                Some(at) if steps <= MOST_STEPS => now = at,
                Some(_) | None => break next,
            }
        };
        self.found.most_steps = self.found.most_steps.max(steps);
        if last.at.is_some() {
            broken.push("P1 comes to rest");
        }
        let distinct: BTreeSet<_> = shown.iter().collect();
        if distinct.len() != shown.len() {
            broken.push("P9 no oscillation");
        }
        if acts > self.limits.budget.max_retries {
            broken.push("P23 bounded attempts");
        }
        for later in [1, 60, 1800, 86_400, 10_000_000] {
            let now = Time::from_unix(now.as_unix() + later);
            if step(&memory, facts, &self.limits, now).is_some() {
                broken.push("P2 nothing moves at rest");
            }
        }
        if !is_goal(facts, &last) {
            broken.push("P1 rests where it should");
        }
        if last.state == State::Ready
            && facts.lifecycle == Lifecycle::Active
            && memory != (Memory { state: Some(State::Ready), served: true, ..Memory::default() })
        {
            broken.push("P21 Ready has no history");
        }
        for name in broken {
            self.breaks(name, at, facts, 0, &last);
        }
    }

    /// Notes the first time that `name` is broken, with the way there.
    fn breaks(&mut self, name: &'static str, at: usize, facts: &Facts, later: i64, next: &Next) {
        if self.found.broken.contains_key(name) {
            return;
        }
        let mut way = vec![std::format!("{later} s later {facts:?}\n  -> {next:?}")];
        let mut at = at;
        while let Some((facts, later)) = &self.reached[at].by {
            way.push(std::format!("{later} s later {facts:?}\n  -> {:?}", self.reached[at].memory));
            at = self.reached[at].from;
        }
        way.reverse();
        self.found.broken.insert(name, std::format!("{name}\n{}", way.join("\n")));
    }
}

/// Nothing is undeleted.
fn is_possible(memory: &Memory, facts: &Facts) -> bool {
    memory.state != Some(State::Deleting) || facts.lifecycle != Lifecycle::Active
}

/// Where an object with these facts has to be once nothing happens any more.
fn is_goal(facts: &Facts, last: &Next) -> bool {
    let served = last.memory.served;
    match facts.lifecycle {
        // Whatever it was; that nothing moves is a law.
        Lifecycle::Paused => true,
        Lifecycle::Deleting(teardown) => {
            let for_good = matches!(teardown, Teardown::Blocked(Class::Permission | Class::Config));
            last.state == State::Deleting && last.stalled == for_good
        }
        Lifecycle::Active if facts.is_complete() && (served || facts.owner == Owner::Known) => match facts.checks {
            Checks::Passing => last.state == State::Ready,
            Checks::Failing => last.state == State::Degraded,
        },
        Lifecycle::Active => match (served, facts.owner) {
            // Nothing is waited for without end but the owner.
            (false, Owner::Known) => last.state == State::Failed,
            (false, Owner::Missing) => last.state == State::Pending,
            (true, Owner::Known) => last.state == State::Degraded,
            (true, Owner::Missing) => matches!(last.state, State::Degraded | State::Provisioning),
        },
    }
}

/// Fails if the law or closure called `name` was broken in the search.
pub(super) fn holds_in_the_search(name: &str) {
    let broken = found().broken.get(name);
    assert!(broken.is_none(), "{}", broken.map_or("", String::as_str));
}

#[test]
fn the_search_reaches_every_edge_and_none_other() {
    assert_eq!(found().edges, table());
    assert_eq!(found().because, every_because());
}

#[test]
fn what_happens_sometimes_happens_in_the_search() {
    let never: Vec<_> = found().sometimes.iter().filter(|(_, times)| *times == 0).collect();
    assert!(never.is_empty(), "{never:?}");
    assert!(found().memories > 1000, "{}", found().memories);
}

macro_rules! closures {
    ($($test:ident: $name:literal;)*) => {$(
        #[test]
        fn $test() {
            holds_in_the_search($name);
        }
    )*};
}

closures! {
    p1_everything_comes_to_rest: "P1 comes to rest";
    p1_everything_rests_where_it_should: "P1 rests where it should";
    p2_nothing_moves_at_rest: "P2 nothing moves at rest";
    p2_a_look_too_early_changes_nothing: "P2 quiet between deadlines";
    p9_no_state_comes_back_while_nothing_changes: "P9 no oscillation";
    p21_ready_is_the_same_whatever_was_before: "P21 Ready has no history";
    p23_attempts_are_bounded: "P23 bounded attempts";
}
