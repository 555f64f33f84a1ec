//! Every single fault at every point of every scenario, with the real passes and the real executor.
//!
//! `CAPT_FAULTS=all` plays all of them, `CAPT_FAULTS=n` each n-th, else a part; `CAPT_FAULTS=pairs` also two crashes at a time.
//! `CAPT_SCHEDULE=<id>` plays one and prints what happens.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use capt_sim::{
    scenario::{
        Scenario,
        play::{self, Played},
    },
    simulation::hooks::Nothing,
};

use crate::{
    faults::{At, Fault, Injecting, Injector, settings},
    library,
    oracle::{self, End},
    points::{self, Points},
};

/// One run in a hundred is played where nobody asks for more; a prime, so that it hits all kinds.
const EACH: usize = 97;

/// A run that is to be played.
pub struct Schedule {
    /// Scenario and faults.
    pub id: String,
    scenario: usize,
    what: What,
}

enum What {
    Faults(Vec<At>),
    /// Another beginning of the scenario, and whether it must end the same.
    Variant(Box<Scenario>, bool),
}

/// A scenario and how it ends without faults.
pub struct Reference {
    pub scenario: Scenario,
    pub end: End,
}

impl Reference {
    pub fn of(scenario: &Scenario) -> Self {
        let scenario = points::with_time(scenario);
        let end = oracle::end(&play::play(&scenario, Nothing));
        Self { scenario, end }
    }
}

/// Plays `scenario` with `faults`.
pub fn run(reference: &Reference, faults: &[At]) -> (Played, Vec<String>) {
    let scenario = &reference.scenario;
    let hooks = Injecting { injector: Injector::new(faults), settings: settings(scenario) };
    let mut played = play::play(scenario, hooks);
    let late = faults.iter().any(|at| matches!(at.fault, Fault::Held(_)));
    // What began under a clock that ran ahead is over that much later.
    for ahead in faults.iter().filter_map(|at| at.fault.ahead()) {
        played.simulation.run_for(ahead);
    }
    let mut wrong = oracle::compare(&played, &reference.end, late);
    wrong.extend(played.violations.iter().map(ToString::to_string));
    wrong.extend(oracle::rests(&mut played));
    (played, wrong)
}

fn carry_out(reference: &Reference, what: &What) -> (Played, Vec<String>) {
    match what {
        What::Faults(faults) => run(reference, faults),
        What::Variant(scenario, same) => {
            let mut played = play::play(scenario, Nothing);
            let mut wrong: Vec<String> = played.violations.iter().map(ToString::to_string).collect();
            if *same {
                wrong.extend(oracle::compare(&played, &reference.end, false));
            }
            wrong.extend(oracle::rests(&mut played));
            (played, wrong)
        }
    }
}

/// All schedules of the scenarios, and how many faults are certain to change nothing.
fn schedules(references: &[Reference], pairs: bool) -> (Vec<Schedule>, usize) {
    let (mut all, mut same) = (Vec::new(), 0);
    let found: Vec<Points> = std::thread::scope(|scope| {
        let looks: Vec<_> =
            references.iter().map(|reference| scope.spawn(|| points::all(&reference.scenario))).collect();
        looks.into_iter().map(|look| look.join().unwrap()).collect()
    });
    for (index, (Reference { scenario, .. }, points)) in references.iter().zip(found).enumerate() {
        same += points.same;
        for at in &points.faults {
            let id = format!("{}/{at}", scenario.name);
            all.push(Schedule { id, scenario: index, what: What::Faults(vec![*at]) });
        }
        if pairs {
            let writes = points::writes(&points);
            for first in &writes {
                for second in writes.iter().filter(|second| *second > first) {
                    let crash = |point: usize| At { fault: Fault::CrashAfter, point };
                    let faults = vec![crash(*first), crash(*second)];
                    let id = format!("{}/{}+{}", scenario.name, faults[0], faults[1]);
                    all.push(Schedule { id, scenario: index, what: What::Faults(faults) });
                }
            }
        }
        for (id, variant, must) in points::missing(scenario) {
            let id = format!("{}/{id}", scenario.name);
            all.push(Schedule { id, scenario: index, what: What::Variant(Box::new(variant), must) });
        }
    }
    (all, same)
}

/// Plays those of `schedules` that are wanted on all processors; what went wrong, by id.
fn play_all(references: &[Reference], schedules: &[&Schedule]) -> BTreeMap<String, Vec<String>> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(schedule) = schedules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (_, found) = carry_out(&references[schedule.scenario], &schedule.what);
                    if !found.is_empty() {
                        // At once: a run of all of them takes half an hour.
                        println!("{}: {}", schedule.id, found.join("; "));
                        wrong.lock().unwrap().insert(schedule.id.clone(), found);
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

fn replay(references: &[Reference], id: &str) {
    let (all, _) = schedules(references, id.contains('+'));
    let schedule = all.iter().find(|schedule| schedule.id == id).unwrap_or_else(|| panic!("there is no schedule {id}"));
    let (played, wrong) = carry_out(&references[schedule.scenario], &schedule.what);
    for line in played.timeline.lines(&played.simulation.api) {
        println!("{:>8} {:10} {} {}", line.at, line.what, line.object, line.text);
    }
    assert!(wrong.is_empty(), "{id}:\n{}", wrong.join("\n"));
}

#[test]
fn every_single_fault_at_every_point_ends_as_if_nothing_had_happened() {
    let references: Vec<Reference> = library::for_faults().iter().map(Reference::of).collect();
    assert!(references.len() >= 12, "{} scenarios", references.len());
    if let Ok(id) = std::env::var("CAPT_SCHEDULE") {
        return replay(&references, &id);
    }
    let mode = std::env::var("CAPT_FAULTS").unwrap_or_default();
    let begin = Instant::now();
    let (all, same) = schedules(&references, mode == "pairs");
    let each = match mode.as_str() {
        "" => EACH,
        "all" | "pairs" => 1,
        each => each.parse().unwrap(),
    };
    let played: Vec<&Schedule> = all.iter().step_by(each).collect();
    let wrong = play_all(&references, &played);
    println!(
        "{} scenarios, {} schedules, of which {} were played in {:.1} s; {same} more change nothing that a pass does",
        references.len(),
        all.len() + same,
        played.len(),
        begin.elapsed().as_secs_f64(),
    );
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for schedule in &all {
        let kind = schedule.id.split('/').nth(1).unwrap_or_default();
        *kinds
            .entry(kind.trim_end_matches(|c: char| c.is_ascii_digit() || "+-".contains(c)).to_owned())
            .or_default() += 1;
    }
    println!("{kinds:?}");
    let shown: Vec<String> = wrong.iter().take(25).map(|(id, wrong)| format!("{id}: {}", wrong.join("; "))).collect();
    assert!(
        wrong.is_empty(),
        "{} schedules went wrong; CAPT_SCHEDULE=<id> plays one:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}

#[test]
fn an_id_is_read_as_it_is_printed() {
    for text in [
        "crash-before/3",
        "held-150/9",
        "refused-409-exists/1",
        "refused-500/2",
        "clock-600/4",
        "clock+1/4",
        "stale-2-3/70",
        "late-20/5",
        "deaf-600/5",
    ] {
        assert_eq!(text.parse::<At>().unwrap().to_string(), text);
    }
    assert!("nonsense/1".parse::<At>().is_err());
}
