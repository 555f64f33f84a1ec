//! Lives by chance: up to forty things that users, other controllers and the world do, on any field of any
//! spec, beside a random choice of faults.
//!
//! * safety: the laws hold of each write, whatever happens, and when everything heals it comes to rest;
//! * liveness: something never heals; CAPT says so in a condition and goes quiet;
//! * history: everything is put back in the end, and it ends as if nothing had ever happened (P21).
//!
//! In every other one somebody has rough hands beside that, and safety is asked for.
//!
//! `CAPT_SWARM=2000` plays so many, `CAPT_SWARM=2000..3000` those of these numbers, `CAPT_SEED=17` one of them and
//! prints what happens, `CAPT_SEED=4:17` in the world of another base.

mod maker;
mod rough;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use capt_reconcile::object::{Kind, ObjectKey};
use capt_reconcile::render::compare;
use capt_sim::scenario::{
    Behaviour, Chances, Deed, Event, Scenario,
    chances::{Dice, Random},
    play::{self, BEGIN, Played},
};
use capt_status::Span;
use serde_json::{Value, json};

use crate::{grammar::Grammar, lasting, library, oracle};
use maker::Maker;
use rough::Done;

/// How many lives where nobody asks for more.
const LIVES: u64 = 150;
/// The scenarios in whose worlds lives are played, without what happens in them.
const BASES: [&str; 6] = ["create", "namespaced", "older-core", "existing-vpc", "takeover", "no-core"];
/// Lives in which something went wrong once, each with its world; they are played in any case.
const ONCE_WRONG: [(usize, u64); 19] = [
    (1, 119_291),
    (0, 177_320),
    (0, 184_920),
    (1, 203_247),
    (1, 225_646),
    (0, 247_670),
    (0, 250_566),
    (1, 358_397),
    (0, 404_665),
    (4, 203),
    (7, 130),
    (8, 134),
    (7, 12_082),
    (11, 12_310),
    (11, 8_819),
    (8, 17_593),
    (11, 22_534),
    (7, 86_927),
    (8, 133_333),
];
/// Most things that happen in a life.
const DEEDS: usize = 40;
/// How long CAPT may go on writing after the last thing that happened, until its recovery is over; more where a user asks
/// for many attempts.
const SETTLES: Span = Span::from_minutes(60 * 36);
/// The longest interval between two attempts that a user asks for.
const INTERVAL: Span = Span::from_minutes(60);
/// How long it has to be quiet then.
const QUIET: Span = Span::from_minutes(60 * 12);

/// What is asked of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Safety,
    Liveness,
    History,
}

/// A life: what happens in it, and what is asked of it.
struct Life {
    mode: Mode,
    scenario: Scenario,
    chances: Chances,
    /// What a user destroys by his own hand.
    deletes: bool,
    rough: Done,
    /// When the last of it happens.
    healed: Span,
    /// How long CAPT may go on writing after that.
    settles: Span,
}

/// Numbers of a run.
#[derive(Default)]
struct Tally {
    deeds: usize,
    refused: usize,
    compared: usize,
    lives: BTreeMap<Mode, usize>,
}

/// The life of `seed` in the world of `base`.
fn life(grammar: &Grammar, (base, is_rough): (&Scenario, bool), seed: u64, tally: &Mutex<Tally>) -> Life {
    let modes = if is_rough { [Mode::Safety; 3] } else { [Mode::Safety, Mode::Liveness, Mode::History] };
    let mode = modes[usize::try_from(seed % 3).unwrap()];
    let mut maker = Maker {
        grammar,
        dice: Dice::new(seed),
        mode,
        at: Span::ZERO,
        objects: of_users(base).cloned().collect(),
        events: Vec::new(),
        deletes: false,
        rough: Done::default(),
        refused: 0,
    };
    let deeds = 1 + maker.dice.below(DEEDS);
    for _ in 0..deeds {
        maker.passes();
        if is_rough && maker.dice.below(3) == 0 {
            maker.roughly(base);
        } else {
            maker.happens();
        }
    }
    maker.passes();
    let deletes_cluster = mode == Mode::Safety && maker.dice.below(3) == 0;
    if deletes_cluster {
        maker.deletes = true;
        maker.does(Deed::Delete(ObjectKey::new(Kind::Cluster, "default", "demo")));
        maker.passes();
        maker.happens();
        maker.passes();
    }
    // The end: Terraform heals and pauses are lifted; something else may stay broken for ever.
    for workspace in Maker::workspaces() {
        maker.does(Deed::Terraform(Behaviour { workspace: workspace.to_owned(), ..Behaviour::default() }));
    }
    match mode {
        Mode::Safety => {
            maker.patch(&ObjectKey::new(Kind::Cluster, "default", "demo"), json!({"spec": {"paused": null}}));
        }
        Mode::Liveness => {
            let behaviour = maker.behaviour(false);
            maker.does(Deed::Terraform(behaviour));
        }
        Mode::History => maker.put_back(base),
    }
    let mut chance = |most: f64| if maker.dice.below(2) == 0 { 0.0 } else { maker.dice.chance() * most };
    let chances = Chances {
        refused: chance(0.1),
        lost: chance(0.1),
        unanswered: chance(0.1),
        crash: chance(0.05),
        held: chance(0.02),
        late: chance(0.3),
        until: Some(maker.at),
    };
    let settles = settles(&maker.events);
    let mut tally = tally.lock().unwrap();
    tally.deeds += maker.events.len();
    tally.refused += maker.refused;
    *tally.lives.entry(mode).or_default() += 1;
    Life {
        mode,
        healed: maker.at,
        settles,
        deletes: maker.deletes,
        rough: maker.rough,
        chances,
        scenario: Scenario {
            name: format!("{mode:?} {seed}"),
            until: maker.at.plus(settles).plus(QUIET),
            events: maker.events,
            expect: Vec::new(),
            ..base.clone()
        },
    }
}

/// [`SETTLES`], and as many intervals as a user asks for attempts.
fn settles(events: &[Event]) -> Span {
    let asked = events.iter().filter_map(|event| match &event.deed {
        Deed::Patch(_, body) => body.pointer("/spec/recoveryStrategy/maxRetries")?.as_i64(),
        _ => None,
    });
    SETTLES.plus(Span::from_seconds(INTERVAL.as_seconds() * asked.max().unwrap_or_default()))
}

/// What is wrong with a life that was played.
fn wrong(life: &Life, played: &mut Played, reference: &oracle::End, compared: &mut bool) -> Vec<String> {
    // What a user writes into the endpoint he may take out again.
    let writes_endpoint = life.scenario.events.iter().any(
        |event| matches!(&event.deed, Deed::Patch(_, body) if body.pointer("/spec/controlPlaneEndpoint").is_some()),
    );
    let violations = played.violations.iter().map(ToString::to_string);
    let mut wrong: Vec<String> = violations
        .filter(|text| {
            let of_endpoint = writes_endpoint && text.contains("/spec/controlPlaneEndpoint/host");
            !(text.contains("went back") && (of_endpoint || life.rough.forgets))
        })
        .collect();
    // Held requests arrive within half an hour of the last fault.
    let quiet = BEGIN.plus(life.healed).plus(life.settles);
    for write in played.timeline.writes().iter().filter(|write| write.at > quiet).take(1) {
        wrong.push(format!("P2: {write:?} although nothing happens any more"));
    }
    wrong.extend(harm(life, played));
    if life.mode == Mode::Liveness {
        wrong.extend(silence(played));
    }
    if life.mode == Mode::History {
        let end = oracle::end(played);
        let shows = |text: &str| {
            played.simulation.api.keys().any(|key| {
                played.simulation.api.get(key).is_some_and(|object| object["status"].to_string().contains(text))
            })
        };
        // What EKS cannot take back stays, and says so; so does the endpoint in use, beside another one that Terraform
        // puts out since; and one that core has copied.
        let told = ["UnsupportedChange", "EndpointChanged", "EndpointOverridden", "CreationResultUnknown"];
        if !told.into_iter().any(shows) && !writes_endpoint {
            *compared = true;
            wrong.extend(otherwise(reference, &end));
        }
    }
    wrong.extend(oracle::rests(played));
    wrong
}

/// Infrastructure that was destroyed, or made more than once, without a user's word (P23).
fn harm(life: &Life, played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    // A VPC and a control plane, under whatever name; what a kubeconfig needs is made beside them.
    let states = played.simulation.provider.states();
    let made: Vec<&String> = states
        .iter()
        .filter(|(name, of)| of.created > 0 && !name.ends_with("-kubeconfig"))
        .map(|(name, _)| name)
        .collect();
    if !life.deletes && made.len() > if life.rough.doubles { 4 } else { 2 } {
        wrong.push(format!("P23: infrastructure was made for {made:?}"));
    }
    for (name, counts) in states {
        if !life.deletes && (counts.destroyed > 0 || counts.created > 1) {
            wrong.push(format!("P23: Terraform state {name} has {counts:?} and nobody asked for it"));
        }
    }
    wrong
}

/// Provider objects that are not as they should be and do not say so.
fn silence(played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        let key = ObjectKey::new(kind, "default", "demo");
        let Some(object) = played.simulation.api.get(&key) else {
            wrong.push(format!("P13: {key} is gone"));
            continue;
        };
        let status = &object["status"];
        let condition = |type_: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
        };
        let says = |type_: &str, value: &str| {
            let condition = condition(type_);
            condition["status"] == value && condition["message"].as_str().is_some_and(|text| !text.is_empty())
        };
        let fine = status["state"] == "Ready" && condition("Ready")["status"] == "True";
        if !fine && !says("Ready", "False") && !says("Healthy", "False") && !says("Paused", "True") {
            wrong.push(format!("P1: {key} is not well and does not say so: {status}"));
        }
    }
    wrong
}

/// Where an end differs from that of a life in which nothing happened (P21).
fn otherwise(wanted: &oracle::End, found: &oracle::End) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, object) in &wanted.objects {
        let parts: &[&str] = match key.kind {
            Kind::CaptCluster | Kind::CaptControlPlane | Kind::Apply | Kind::Cluster => &["spec", "status"],
            Kind::Workspace(_) => &["spec"],
            Kind::Template | Kind::Secret => continue,
        };
        let Some(other) = found.objects.get(key) else {
            wrong.push(format!("P21: {key} is not there"));
            continue;
        };
        for part in parts {
            let (mut object, mut other) = (object.clone(), other.clone());
            for spec in [&mut object["spec"], &mut other["spec"]].into_iter().filter_map(Value::as_object_mut) {
                // A retention that nobody asks for any more stays: better kept than destroyed.
                spec.remove("retainWorkspaceOnDelete");
            }
            // A Workspace may say by a default what it said by nothing.
            let means_the_same = matches!(key.kind, Kind::Workspace(_))
                && compare::difference(&object[part], &other[part]).is_none()
                && compare::difference(&other[part], &object[part]).is_none();
            if object[part] != other[part] && !means_the_same {
                let text = lasting::difference(&format!("/{part}"), &object[part], &other[part]);
                wrong.push(format!("P21: {key} depends on its history: {text}"));
            }
        }
    }
    wrong
}

/// The objects in a world that a user made.
fn of_users(base: &Scenario) -> impl Iterator<Item = &(ObjectKey, Value)> {
    let kinds = [Kind::Cluster, Kind::CaptCluster, Kind::CaptControlPlane, Kind::Template];
    base.objects.iter().chain(base.stored.iter().filter(move |(key, _)| kinds.contains(&key.kind)))
}

/// The worlds in which lives are played, and how each ends where nothing happens.
fn bases() -> Vec<(Scenario, oracle::End)> {
    BASES
        .map(library::scenario)
        .into_iter()
        .map(|mut base| {
            base.events.clear();
            base.expect.clear();
            base.terraform.clear();
            base.until = Span::from_minutes(24 * 60);
            let end = oracle::end(&play::play(&base, capt_sim::simulation::hooks::Nothing));
            (base, end)
        })
        .collect()
}

/// Plays the life of `seed` in the world of a base; what is wrong with it.
fn play_one(
    grammar: &Grammar,
    bases: &[(Scenario, oracle::End)],
    (base, seed): (usize, u64),
    tally: &Mutex<Tally>,
) -> (Life, Played, Vec<String>) {
    let (is_rough, base) = (base >= BASES.len(), &bases[base % BASES.len()]);
    let (base, reference) = base;
    let life = life(grammar, (base, is_rough), seed, tally);
    let mut played = play::play(&life.scenario, Random::new(life.chances.clone(), seed));
    let mut compared = false;
    let wrong = wrong(&life, &mut played, reference, &mut compared);
    tally.lock().unwrap().compared += usize::from(compared);
    (life, played, wrong)
}

/// A life by its name: `4:203` is that of seed 203 in the world of the fifth base, `10:203` a rough one there; a seed
/// alone has its own.
fn named(name: &str) -> (usize, u64) {
    match name.split_once(':') {
        Some((base, seed)) => (base.parse().unwrap(), seed.parse().unwrap()),
        None => of_seed(name.parse().unwrap()),
    }
}

/// The life of a seed: each mode in each base, and rough ones.
fn of_seed(seed: u64) -> (usize, u64) {
    (usize::try_from(seed / 3).unwrap() % (2 * BASES.len()), seed)
}

#[test]
fn whatever_happens_the_laws_hold_and_it_comes_to_rest() {
    let (grammar, bases, tally) = (Grammar::new(), bases(), Mutex::new(Tally::default()));
    if let Ok(seed) = std::env::var("CAPT_SEED") {
        let (life, played, wrong) = play_one(&grammar, &bases, named(&seed), &tally);
        for event in &life.scenario.events {
            println!("{:>8} deed {:?}", event.at.as_seconds(), event.deed);
        }
        for line in played.timeline.lines(&played.simulation.api) {
            println!("{:>8} {:10} {} {}", line.at, line.what, line.object, line.text);
        }
        println!("{:?}", life.chances);
        for (request, result) in played.simulation.requests.iter().rev().take(6).rev() {
            println!("one of the last requests: {request:?} -> {result:?}");
        }
        assert!(wrong.is_empty(), "{}:\n{}", life.scenario.name, wrong.join("\n"));
        return;
    }
    let seeds = std::env::var("CAPT_SWARM").map_or(0..LIVES, |asked| {
        let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
        from.parse().unwrap()..to.parse().unwrap()
    });
    let asked: Vec<(usize, u64)> = ONCE_WRONG.into_iter().chain(seeds.map(of_seed)).collect();
    let (lives, begin) = (asked.len(), Instant::now());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                // Compiled rules are not shared between threads.
                let grammar = Grammar::new();
                loop {
                    let Some(&(base, seed)) = asked.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let (life, _, found) = play_one(&grammar, &bases, (base, seed), &tally);
                    if !found.is_empty() {
                        println!("CAPT_SEED={base}:{seed} ({}): {}", life.scenario.name, found.join("; "));
                        wrong.lock().unwrap().push(format!("{base}:{seed}"));
                    }
                }
            });
        }
    });
    let Tally { deeds, refused, compared, lives: modes } = tally.into_inner().unwrap();
    let fields: usize = [Kind::CaptCluster, Kind::CaptControlPlane, Kind::Template, Kind::Apply]
        .map(|kind| grammar.fields(kind))
        .iter()
        .sum();
    println!(
        "{lives} lives {modes:?}, {deeds} deeds on {fields} fields, {refused} that the API server refuses, \
         {compared} ends compared, in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} lives went wrong; CAPT_SEED=<number> plays one: {wrong:?}", wrong.len());
    assert!(deeds > lives * 10 && compared * 12 > lives);
}
