//! What a run with faults must have in common with the faultless one: how everything is at the end, how
//! often each object came to be and what became of each Terraform state; and that it stays so.

use std::collections::BTreeMap;

use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{api::Change, provider::Counts, scenario::play::Played};
use capt_status::Span;
use serde_json::Value;

use crate::lasting::{difference, lasting};

/// Time to heal after a scenario.
pub const AFTERWARDS: Span = Span::from_minutes(90);

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub objects: BTreeMap<ObjectKey, Value>,
    /// How often each object was made.
    pub births: BTreeMap<ObjectKey, usize>,
    pub terraform: BTreeMap<String, Counts>,
}

/// How `played` ended.
pub fn end(played: &Played) -> End {
    let api = &played.simulation.api;
    let objects = api.keys().filter_map(|key| Some((key.clone(), lasting(api.get(key)?)))).collect();
    let mut births = BTreeMap::new();
    let mut there = BTreeMap::new();
    for Change { key, object, .. } in api.changes(0) {
        let was = there.insert(key, object.is_some()).unwrap_or_default();
        if object.is_some() && !was {
            *births.entry(key.clone()).or_default() += 1;
        }
    }
    End { objects, births, terraform: played.simulation.provider.states().clone() }
}

/// A Workspace that nobody wants, with its Secret: made by a request that was on its way when its apply
/// went. No rule of the passes can prevent it; its label says whose it was.
fn is_orphan(played: &Played, key: &ObjectKey) -> bool {
    let Some(object) = played.simulation.api.get(key) else { return false };
    match key.kind {
        Kind::Workspace(_) => object["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"].is_string(),
        Kind::Secret => object["metadata"]["ownerReferences"][0]["kind"] == "Workspace",
        _ => false,
    }
}

/// Whether a request that was on its way made a Workspace again that somebody had taken away: the same as if a
/// person had restored it, and the end is another one.
fn is_restored(found: &End, wanted: &End) -> bool {
    found.objects.keys().any(|key| {
        matches!(key.kind, Kind::Workspace(_))
            && !wanted.objects.contains_key(key)
            && wanted.births.contains_key(key)
            && found.births.get(key) > wanted.births.get(key)
    })
}

/// Differences that matter between the end of a run with faults and `wanted`; `late` if a write of an old
/// leader arrived when everything was over.
pub fn compare(played: &Played, wanted: &End, late: bool) -> Vec<String> {
    let found = end(played);
    if late && is_restored(&found, wanted) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (key, object) in &wanted.objects {
        match found.objects.get(key) {
            None => wrong.push(format!("P12: {key} is not there at the end")),
            Some(other) if other != object => {
                wrong.push(format!("P1: {key} ends otherwise: {}", difference("", object, other)));
            }
            Some(_) => {}
        }
    }
    let mut orphans = false;
    for key in found.objects.keys().filter(|key| !wanted.objects.contains_key(key)) {
        if late && is_orphan(played, key) {
            orphans = true;
        } else {
            wrong.push(format!("P13: {key} is left at the end"));
        }
    }
    for (key, births) in &found.births {
        let before = wanted.births.get(key).copied().unwrap_or_default();
        // What such a request made, and the garbage collector took away, for nothing was made for it.
        let collected = late && matches!(key.kind, Kind::Apply | Kind::Secret) && !found.objects.contains_key(key);
        if *births > before + usize::from(collected) && !(orphans && is_orphan(played, key)) {
            wrong.push(format!("P12: {key} was made {births} times and not {before}"));
        }
    }
    for (name, counts) in &found.terraform {
        let before = wanted.terraform.get(name).copied().unwrap_or_default();
        // A deletion that is seen later finds made what it found begun.
        let was_begun = *counts == Counts { exists: false, created: 1, destroyed: 1 } && before == Counts::default();
        if (counts.created > before.created || counts.destroyed > before.destroyed) && !orphans && !was_begun {
            wrong.push(format!("P23: Terraform state {name} has {counts:?} and not {before:?}"));
        }
    }
    wrong
}

/// Nothing is written any more, whenever a pass is run (P2), and it came to rest at all (P1).
pub fn rests(played: &mut Played) -> Vec<String> {
    let mut wrong: Vec<String> = played.failed.iter().filter(|text| text.starts_with("P1")).cloned().collect();
    let simulation = &mut played.simulation;
    let (before, events) = (simulation.requests.len(), simulation.events.len());
    for span in [Span::from_seconds(1), Span::from_minutes(1), Span::from_minutes(30), Span::from_minutes(1440)] {
        simulation.api.now = simulation.api.now.plus(span);
        simulation.resync();
    }
    if let Some((request, _)) = simulation.requests.get(before) {
        let text = format!("{request:?}").chars().take(300).collect::<String>();
        wrong.push(format!("P2: at rest, and a pass asks for {text}"));
    }
    if let Some((object, event)) = simulation.events.get(events) {
        wrong.push(format!("P2: at rest, and {object} tells {}", event.reason));
    }
    wrong
}
