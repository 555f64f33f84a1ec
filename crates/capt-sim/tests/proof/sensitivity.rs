//! Every defect of [`mutants`](crate::mutants) is seen, and `docs/verification.md` says where.

use std::{
    fmt::Write as _,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use capt_reconcile::{executor::Request, object::ObjectKey, plan::Plan, world::World};
use capt_sim::{
    Api,
    api::Change,
    scenario::play::{self, Played},
    simulation::hooks::{Delivery, Fate, Hooks},
};
use capt_status::Time;

use crate::{
    explored,
    faults::{At, Fault, Injecting, Injector, settings},
    library,
    mutants::{self, Mutant, Way},
    oracle, points,
    schedules::Reference,
};

/// A defect, and what goes wrong beside it.
struct Mutating {
    mutant: &'static Mutant,
    inner: Injecting,
}

impl Hooks for Mutating {
    fn clock(&mut self, pass: &ObjectKey, now: Time) -> Time {
        self.inner.clock(pass, now)
    }

    fn sees(&mut self, pass: &ObjectKey, world: &World, api: &Api, now: Time) -> Option<World> {
        let other = self.inner.sees(pass, world, api, now);
        match self.mutant.way {
            Way::Sees(way) => way(other.as_ref().unwrap_or(world)).or(other),
            Way::Plan(_) | Way::Request(_) | Way::Watch(_) => other,
        }
    }

    fn planned(&mut self, world: &World, plan: &mut Plan, now: Time) -> bool {
        if let Way::Plan(way) = self.mutant.way {
            way(world, plan, now);
        }
        self.inner.planned(world, plan, now)
    }

    fn fate(&mut self, request: &mut Request, now: Time) -> Fate {
        if let Way::Request(way) = self.mutant.way {
            way(request);
        }
        self.inner.fate(request, now)
    }

    fn delivers(&mut self, change: &Change, now: Time) -> Delivery {
        if let Way::Watch(way) = self.mutant.way
            && let Some(span) = way(change)
        {
            return Delivery::Late(span);
        }
        self.inner.delivers(change, now)
    }
}

/// Where a defect was seen.
struct Seen {
    layer: &'static str,
    place: String,
    law: String,
    /// How many it took; the explorer counts none.
    requests: Option<usize>,
}

/// What is wrong with a run of `reference` with this defect and these faults.
fn wrong_with(reference: &Reference, mutant: &'static Mutant, faults: &[At], expect: bool) -> (Played, Vec<String>) {
    let mut scenario = reference.scenario.clone();
    if expect {
        scenario.expect = library::scenario(&scenario.name).expect;
    }
    let inner = Injecting { injector: Injector::new(faults), settings: settings(&scenario) };
    let mut played = play::play(&scenario, Mutating { mutant, inner });
    let mut wrong: Vec<String> = played.violations.iter().map(ToString::to_string).collect();
    wrong.extend(oracle::compare(&played, &reference.end, faults.iter().any(|at| matches!(at.fault, Fault::Held(_)))));
    wrong.extend(played.failed.clone());
    wrong.extend(oracle::rests(&mut played));
    (played, wrong)
}

/// Faults of the kinds that show what a life without faults does not.
fn schedules(reference: &Reference) -> Vec<At> {
    let is_wanted = |at: &&At| {
        matches!(at.fault, Fault::CrashAfter | Fault::CrashBefore | Fault::Held(_) | Fault::Late(_) | Fault::Stale(..))
    };
    let mut all: Vec<At> = points::all(&reference.scenario).faults.iter().filter(is_wanted).copied().collect();
    all.sort();
    all
}

/// Defects that no single fault shows.
const ONLY_IN_PAIRS: [&str; 1] = ["L1"];

/// Name of the law that a violation is one of: expectations say when, laws have a name.
fn law(violation: &str) -> String {
    violation.split(':').next().filter(|law| law.starts_with('P')).unwrap_or("expectation").to_owned()
}

fn look(mutant: &'static Mutant, references: &[Reference], explored: Option<&(&'static str, String)>) -> Option<Seen> {
    let seen = |layer, place: String, played: &Played, wrong: &[String]| {
        let law = law(wrong.first()?);
        Some(Seen { layer, place, law, requests: Some(played.simulation.requests.len()) })
    };
    for reference in references {
        let (played, wrong) = wrong_with(reference, mutant, &[], true);
        if !wrong.is_empty() {
            return seen("scenarios", reference.scenario.name.clone(), &played, &wrong);
        }
    }
    if let Some((world, violation)) = explored {
        return Some(Seen { layer: "explorer", place: (*world).to_owned(), law: law(violation), requests: None });
    }
    // Every day nobody looks again where it was not seen; `just docs` does.
    let single = !ONLY_IN_PAIRS.contains(&mutant.id) || std::env::var_os("UPDATE_DOCS").is_some();
    for reference in
        references.iter().filter(|reference| single && ["create", "delete"].contains(&reference.scenario.name.as_str()))
    {
        for at in schedules(reference) {
            let (played, wrong) = wrong_with(reference, mutant, &[at], false);
            if !wrong.is_empty() {
                // Which point of the kind it is changes with each write that is added.
                let kind = at.to_string().split('/').next().unwrap_or_default().to_owned();
                return seen("faults", format!("{}/{kind}", reference.scenario.name), &played, &wrong);
            }
        }
    }
    for reference in references.iter().filter(|reference| reference.scenario.name == "delete-while-creating") {
        for faults in unseen_creations(reference) {
            let (played, wrong) = wrong_with(reference, mutant, &faults, false);
            if !wrong.is_empty() {
                let place = format!("{}/unanswered+deaf", reference.scenario.name);
                return seen("pairs of faults", place, &played, &wrong);
            }
        }
    }
    None
}

/// Pairs of faults by which something is made and CAPT hears of it neither by the answer nor, for a while, by a watch.
fn unseen_creations(reference: &Reference) -> Vec<[At; 2]> {
    let all = points::all(&reference.scenario).faults;
    let creations = all.iter().filter(|at| matches!(at.fault, Fault::Refused(409, 1)));
    let deaf: Vec<At> = all.iter().filter(|at| matches!(at.fault, Fault::Deaf(_))).copied().collect();
    let pair = |creation: &At| {
        let unanswered = At { fault: Fault::Unanswered, point: creation.point };
        deaf.iter().map(move |deaf| [unanswered, *deaf]).collect::<Vec<_>>()
    };
    creations.flat_map(pair).collect()
}

/// A defect, who sees it first, and in which world the explorer sees it.
type Found = (&'static Mutant, Option<Seen>, Option<&'static str>);

fn table(found: &[Found]) -> String {
    let mut text = String::from(
        "| | defect | seen by | in | law | requests, at most | explorer |\n|---|---|---|---|---|---|---|\n",
    );
    for (Mutant { id, what, .. }, seen, explored) in found {
        let explored = explored.unwrap_or_default();
        match seen {
            // Rounded, so that it does not change with each write.
            Some(Seen { layer, place, law, requests }) => {
                let most = requests.map(|requests| requests.next_power_of_two().to_string()).unwrap_or_default();
                writeln!(text, "| {id} | {what} | {layer} | {place} | {law} | {most} | {explored} |").unwrap();
            }
            None => writeln!(text, "| {id} | {what} | nothing | | | | {explored} |").unwrap(),
        }
    }
    text
}

const BEGIN: &str = "<!-- defects: written by `just docs` -->\n";
const END: &str = "<!-- end of defects -->\n";

#[test]
fn every_defect_is_seen_and_the_document_says_where() {
    let only = std::env::var("CAPT_MUTANT").ok();
    let references: Vec<Reference> = library::for_faults().iter().map(Reference::of).collect();
    let wanted: Vec<&'static Mutant> =
        mutants::ALL.iter().filter(|mutant| only.as_deref().is_none_or(|only| only == mutant.id)).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = wanted.get(index) else { return };
                    let explored = explored::seen_in(mutant);
                    let seen = look(mutant, &references, explored.as_ref());
                    found.lock().unwrap().push((index, seen, explored.map(|(world, _)| world)));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(index, ..)| *index);
    let found: Vec<Found> = found.into_iter().map(|(index, seen, explored)| (wanted[index], seen, explored)).collect();
    let table = table(&found);
    println!("{table}");
    let missed: Vec<&str> = found.iter().filter(|(_, seen, _)| seen.is_none()).map(|(mutant, ..)| mutant.id).collect();
    assert!(missed.is_empty(), "nobody sees {missed:?}");
    if only.is_some() {
        return;
    }
    assert!(found.len() >= 30);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verification.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (now, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(now, table, "the table in docs/verification.md is old: just docs");
    }
}

#[test]
fn a_defect_is_not_seen_where_there_is_none() {
    let harmless: &'static Mutant =
        Box::leak(Box::new(Mutant { id: "none", what: "nothing", way: Way::Plan(|_, _, _| {}) }));
    for reference in library::for_faults().iter().map(Reference::of) {
        let (_, wrong) = wrong_with(&reference, harmless, &[], true);
        assert!(wrong.is_empty(), "{}: {wrong:?}", reference.scenario.name);
    }
    let reference = Reference::of(&library::scenario("delete-while-creating"));
    for faults in unseen_creations(&reference) {
        let (_, wrong) = wrong_with(&reference, harmless, &faults, false);
        assert!(wrong.is_empty(), "{}+{}: {wrong:?}", faults[0], faults[1]);
    }
    assert_eq!(explored::seen_in(harmless), None);
}
