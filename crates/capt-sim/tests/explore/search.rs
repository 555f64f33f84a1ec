//! Breadth-first search over all states, with a closure check in each: from every state, once nothing
//! goes wrong any more, the world comes to rest in its goal within bounds and stays there.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use capt_reconcile::object::Kind;
use serde_json::Value;

use crate::{
    deeds::Deed,
    model::{Model, Step},
    state::{State, Terraform, tick_of},
    versions::{SLOTS, Slot},
};

/// Most steps from a healed state to its rest.
const MAX_STEPS: usize = 400;

/// What a search found.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether there is no state left.
    pub complete: bool,
    pub states: usize,
    pub steps: u64,
    pub depth: usize,
    /// States at rest after healing.
    pub rests: usize,
    /// How often each goal was reached.
    pub goals: BTreeMap<&'static str, u64>,
    pub longest_heal: usize,
    /// The first law that is broken, and the way to it.
    pub violation: Option<String>,
}

/// Explores everything, up to `most` states, or the first violation.
pub fn explore(model: &mut Model, start: &State, most: usize) -> Report {
    let mut report = Report::default();
    let mut parents: HashMap<u64, (u64, Step)> = HashMap::new();
    let mut healed: HashMap<u64, usize> = HashMap::new();
    let mut front = VecDeque::from([(start.clone(), 0)]);
    let mut seen = HashSet::from([start.hash()]);
    while let Some((state, depth)) = front.pop_front() {
        report.states += 1;
        report.depth = depth;
        let hash = state.hash();
        harm(model, &state);
        let verdict = heal(model, &state, &mut healed, &mut report);
        if let Some(violation) = model.checks.violations.pop().or(verdict.err()) {
            report.violation = Some(format!("{violation}\n{}", way(model, start, &parents, hash)));
            return report;
        }
        if report.states >= most {
            return report;
        }
        for (step, next) in model.steps(&state) {
            report.steps += 1;
            let next_hash = next.hash();
            if seen.insert(next_hash) {
                parents.insert(next_hash, (hash, step));
                front.push_back((next, depth + 1));
            }
        }
    }
    report.complete = true;
    report
}

/// No infrastructure is destroyed, replaced or doubled but by the user's own word (P23).
fn harm(model: &mut Model, state: &State) {
    let deeds = &model.config.deeds;
    let deleted_cluster = deeds.iter().enumerate().any(|(index, deed)| {
        matches!(deed, Deed::Delete(key) if !matches!(key.kind, Kind::Workspace(_) | Kind::Secret)) && state.did(index)
    });
    for slot in 0..SLOTS {
        let terraform = state.terraform[slot];
        if terraform == Terraform::default() {
            continue;
        }
        let name = || model.versions.key(u8::try_from(slot).unwrap()).to_string();
        let deleted_itself = deeds.iter().enumerate().any(|(index, deed)| {
            matches!(deed, Deed::Delete(key) if matches!(key.kind, Kind::Workspace(_)) && key.to_string() == name())
                && state.did(index)
        });
        if terraform.destroyed > 0 && !deleted_cluster && !deleted_itself {
            let text = format!("P23: the infrastructure of {} was destroyed and nobody asked for it", name());
            model.checks.violations.push(text);
        }
        // After a deletion a request that was still on its way may make one that nobody wants.
        let orphaned = deleted_cluster && model.config.holds > 0;
        if terraform.created > 1 + u8::from(deleted_itself) + u8::from(orphaned) {
            let text = format!("P23: the infrastructure of {} was made {} times", name(), terraform.created);
            model.checks.violations.push(text);
        }
    }
}

/// Heals `state` and runs it to its rest; how many steps that takes.
fn heal(
    model: &mut Model,
    state: &State,
    known: &mut HashMap<u64, usize>,
    report: &mut Report,
) -> Result<usize, String> {
    let mut state = State { lag: None, held: 0, holds: 0, lags: 0, ticks: u8::MAX - 60, ..state.clone() };
    for (index, deed) in model.config.deeds.iter().enumerate() {
        if deed.heals() {
            // Not done any more, and not to be done again.
            state.deeds &= !(1 << index);
        }
    }
    let mut path = Vec::new();
    let mut on_path = HashSet::new();
    let rest = loop {
        let hash = state.hash();
        if let Some(steps) = known.get(&hash) {
            break *steps;
        }
        if !on_path.insert(hash) {
            return Err(format!("P1: a loop of {} steps", path.len()));
        }
        path.push(hash);
        if path.len() > MAX_STEPS {
            return Err("P1: no rest".to_owned());
        }
        let Some(next) = quiet_step(model, &state) else {
            let goal = goal(model, &state)?;
            *report.goals.entry(goal).or_default() += 1;
            report.rests += 1;
            stays(model, &state)?;
            break 0;
        };
        state = next;
    };
    let steps = path.len() + rest;
    for (index, hash) in path.into_iter().enumerate() {
        known.insert(hash, steps - index);
    }
    report.longest_heal = report.longest_heal.max(steps);
    Ok(steps)
}

/// The next thing that happens where nothing goes wrong.
fn quiet_step(model: &mut Model, state: &State) -> Option<State> {
    let slots = || 0..u8::try_from(SLOTS).unwrap();
    for slot in model.ours(state) {
        if let Some(next) = model.run(state, Step::Pass(slot)) {
            return Some(next);
        }
    }
    for slot in slots() {
        for step in [Step::Core(slot), Step::Collect(slot), Step::Provider(slot)] {
            if let Some(next) = model.run(state, step) {
                return Some(next);
            }
        }
    }
    let at = model.wake(state)?;
    // Time counts up to the wake, and states that differ in nothing but the ticks left are the same.
    Some(State { tick: tick_of(at), ..state.clone() })
}

/// Nobody writes any more, whenever a pass is run (P2).
fn stays(model: &mut Model, state: &State) -> Result<(), String> {
    for slot in model.ours(state) {
        // 31 minutes, and a day.
        for ticks in [1, 47] {
            let Some(tick) = state.tick.checked_add(ticks) else { continue };
            if !model.would_write(state, slot, tick).is_empty() {
                let (key, writes) = (model.versions.key(slot).clone(), model.would_write(state, slot, tick));
                return Err(format!("P2: {key} is written at rest, {ticks} ticks later: {writes}"));
            }
        }
    }
    Ok(())
}

/// The goal that a world at rest is in.
fn goal(model: &Model, state: &State) -> Result<&'static str, String> {
    let find = |kind: Kind| model.versions.slots_of(kind, None).into_iter().find_map(|slot| model.object(state, slot));
    let did = |wanted: &dyn Fn(&Deed) -> bool| {
        model.config.deeds.iter().enumerate().any(|(index, deed)| wanted(deed) && state.did(index))
    };
    let show = |kind| find(kind).map_or_else(|| "absent".to_owned(), |object| object["status"].to_string());
    let all =
        || format!("CAPTCluster: {}\nCAPTControlPlane: {}", show(Kind::CaptCluster), show(Kind::CaptControlPlane));
    let cluster = find(Kind::Cluster);
    let mut providers = [Kind::CaptCluster, Kind::CaptControlPlane].into_iter().filter_map(find);
    if providers.all(|object| object["metadata"]["ownerReferences"].is_null()) && find(Kind::CaptCluster).is_some() {
        // Core never saw the Cluster, or it was paused from birth: nothing may have been made.
        let made = [Kind::Apply, Kind::Secret, Kind::Workspace(model.config.api)].into_iter().find_map(find);
        return match made {
            None => Ok("G-waiting"),
            Some(made) => Err(format!("P12: made without an owner: {}", made["metadata"])),
        };
    }
    let is_paused = cluster.is_some_and(|cluster| cluster["spec"]["paused"] == true);
    if cluster.is_none_or(|cluster| !cluster["metadata"]["deletionTimestamp"].is_null()) {
        if is_paused {
            return Ok("G-paused");
        }
        // Fails forever: the deletion may be blocked, and says so.
        let ours = model
            .versions
            .slots()
            .filter(|(slot, key)| state.live[usize::from(*slot)] != 0 && !matches!(key.kind, Kind::Template));
        let left: Vec<(Slot, String)> = ours.map(|(slot, key)| (slot, key.to_string())).collect();
        // A request that was on its way when its apply went makes a Workspace that nobody wants: no rule of
        // the passes can prevent it. It says whose it was, which is what orphans are found by.
        let is_orphan = |slot: Slot| match model.versions.key(slot).kind {
            Kind::Workspace(_) => model.object(state, slot).is_some_and(|workspace| {
                workspace["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"].is_string()
            }),
            // The provider made it for that Workspace.
            Kind::Secret => true,
            Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane | Kind::Template | Kind::Apply => false,
        };
        if model.config.holds > 0 && !left.is_empty() && left.iter().all(|(slot, _)| is_orphan(*slot)) {
            return Ok("G-orphaned");
        }
        return if left.is_empty() {
            Ok("G-deleted")
        } else {
            Err(format!("P13: left after deletion: {left:?}\n{}", all()))
        };
    }
    let (Some(captcluster), Some(control_plane)) = (find(Kind::CaptCluster), find(Kind::CaptControlPlane)) else {
        return Err("P1: a provider object is gone".to_owned());
    };
    let condition = |object: &Value, type_: &str| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default()["status"].clone()
    };
    if is_paused {
        let paused = [captcluster, control_plane].into_iter().all(|object| condition(object, "Paused") == "True");
        return if paused { Ok("G-paused") } else { Err(format!("P17: the pause is not shown\n{}", all())) };
    }
    let states = [&captcluster["status"]["state"], &control_plane["status"]["state"]];
    if did(&|deed| matches!(deed, Deed::FailForGood(..))) {
        let tells = states.iter().any(|state| **state == "Failed" || **state == "Degraded");
        return if tells || states == ["Ready", "Ready"] {
            Ok("G-broken")
        } else {
            Err(format!("P1: does not tell\n{}", all()))
        };
    }
    if did(&|deed| matches!(deed, Deed::Delete(key) if matches!(key.kind, Kind::Workspace(_))))
        && states != ["Ready", "Ready"]
    {
        let tells = all().contains("WorkspaceMissing");
        return if tells { Ok("G-missing") } else { Err(format!("P1: does not tell\n{}", all())) };
    }
    let is_ready = states == ["Ready", "Ready"]
        && cluster.is_some_and(|cluster| cluster["status"]["phase"] == "Provisioned")
        && [captcluster, control_plane].into_iter().all(|object| condition(object, "Paused") == "False");
    if is_ready { Ok("G-ready") } else { Err(format!("P1: comes to rest before its goal\n{}", all())) }
}

fn way(model: &mut Model, start: &State, parents: &HashMap<u64, (u64, Step)>, mut hash: u64) -> String {
    let mut steps = Vec::new();
    while let Some((parent, step)) = parents.get(&hash) {
        steps.push(*step);
        hash = *parent;
    }
    let mut state = start.clone();
    let mut way = Vec::new();
    for step in steps.into_iter().rev() {
        let Some(next) = model.run(&state, step) else { break };
        let named = match step {
            Step::Pass(slot)
            | Step::Hold(slot, _)
            | Step::Core(slot)
            | Step::Provider(slot)
            | Step::Collect(slot)
            | Step::Lag(slot) => model.versions.key(slot).to_string(),
            Step::Deed(deed) => format!("{:?}", model.config.deeds[usize::from(deed)]),
            Step::Resume | Step::Lose | Step::CatchUp | Step::Tick => String::new(),
        };
        way.push(format!("{step:?} {named}"));
        state = next;
    }
    way.join("\n")
}
