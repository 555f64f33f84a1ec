//! Every combination of facts against memories of every state: the laws hold in each single step,
//! every edge is reached and none other.
//!
//! It is made once and each law is a test of its own, so that a failure says which law it was.

extern crate std;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
};
use std::{println, sync::OnceLock};

use super::{
    laws::{LAWS, REDUCTION, Ruling, Step},
    *,
};

/// What the sweep saw.
struct Swept {
    checked: u64,
    /// How often each law had something to say, and the first step that broke it.
    ruled: [(u64, Option<String>); LAWS.len()],
    edges: BTreeSet<(State, State)>,
    states: BTreeMap<State, u64>,
    because: BTreeSet<&'static str>,
}

fn swept() -> &'static Swept {
    static SWEPT: OnceLock<Swept> = OnceLock::new();
    SWEPT.get_or_init(|| {
        let (limits, memories, stride) = (Limits::default(), space::memories(), space::stride());
        let mut swept = Swept {
            checked: 0,
            ruled: [const { (0, None) }; LAWS.len()],
            edges: BTreeSet::new(),
            states: BTreeMap::new(),
            because: BTreeSet::new(),
        };
        let mut number = 0_u64;
        space::each_fact(|facts| {
            for memory in &memories {
                // Nothing is undeleted.
                if memory.state == Some(State::Deleting) && facts.lifecycle == Lifecycle::Active {
                    continue;
                }
                number += 1;
                if !number.is_multiple_of(stride) {
                    continue;
                }
                swept.look(memory, &facts, &limits);
            }
        });
        println!("{} combinations of facts and memories", swept.checked);
        swept
    })
}

impl Swept {
    fn look(&mut self, memory: &Memory, facts: &Facts, limits: &Limits) {
        let next = follow(memory, facts, limits, NOW);
        let step = Step { memory, facts, limits, now: NOW, next: &next };
        // Of facts that are taken for equal one is asked everything, and the others whether they are equal.
        let is_first = space::reduced(*facts) == *facts;
        for ((name, law), (about, broken)) in LAWS.iter().zip(&mut self.ruled) {
            if !is_first && *name != REDUCTION {
                continue;
            }
            match law(&step) {
                Ruling::Silent => {}
                Ruling::Holds => *about += 1,
                Ruling::Broken => {
                    broken.get_or_insert_with(|| std::format!("{name}\n{facts:?}\n{memory:?}\n{next:?}"));
                }
            }
        }
        self.checked += 1;
        *self.states.entry(next.state).or_default() += 1;
        if let Some(from) = memory.state.filter(|from| *from != next.state) {
            self.edges.insert((from, next.state));
        }
        self.because.insert(because(next.because));
    }
}

/// A name for each way to a state.
pub(super) fn because(because: Because) -> &'static str {
    match because {
        Because::Facts => "facts",
        Because::Expired(timer) => timer.name(),
        Because::BudgetSpent => "budget",
        Because::StillFailed => "still failed",
    }
}

/// Every way to a state; the grace of a permission is part of the facts.
pub(super) fn every_because() -> BTreeSet<&'static str> {
    let expired = Timer::ALL.into_iter().filter(|timer| *timer != Timer::PermissionGrace).map(Timer::name);
    expired.chain(["facts", "budget", "still failed"]).collect()
}

/// The table of edges.
pub(super) fn table() -> BTreeSet<(State, State)> {
    State::ALL.into_iter().flat_map(|from| from.successors().iter().map(move |to| (from, *to))).collect()
}

/// Fails if the law called `name` was broken in the sweep, or had nothing to say.
pub(super) fn holds_in_the_sweep(name: &str) {
    let (at, _) = LAWS.iter().enumerate().find(|(_, (law, _))| *law == name).unwrap();
    let (about, broken) = &swept().ruled[at];
    assert!(broken.is_none(), "{}", broken.as_deref().unwrap_or_default());
    assert!(*about > 0, "{name} is about nothing");
}

#[test]
fn the_sweep_reaches_every_edge_and_none_other() {
    let swept = swept();
    assert!(swept.checked >= 100_000 / space::stride());
    assert!(swept.edges.is_subset(&table()), "{:?}", swept.edges);
    // A part of the combinations may miss some; the search has them all.
    assert!(space::stride() > 1 || swept.edges == table(), "{:?}", swept.edges);
    assert_eq!(swept.states.len(), State::ALL.len(), "{:?}", swept.states);
    assert_eq!(swept.because, every_because());
}
