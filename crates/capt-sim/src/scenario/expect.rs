//! Whether what is expected came true.

use capt_reconcile::object::ObjectKey;
use capt_status::Span;
use serde_json::Value;

use super::{Count, Expectation, key, timeline::Write};
use crate::{Simulation, api::Change};

/// What of `expectation` is not so now, which is `at` after the beginning.
pub(super) fn check(expectation: &Expectation, at: Span, simulation: &Simulation, writes: &[Write]) -> Vec<String> {
    let mut failed = Vec::new();
    let Expectation { at: _, object, absent, has, conditions, states, events, writes_at_most, count, terraform } =
        expectation;
    let mut fail = |text: String| failed.push(format!("at {at}: {text}"));
    if let Some(key) = object.as_ref().and_then(|name| key(name).ok()) {
        match (simulation.api.get(&key), absent) {
            (Some(_), true) => fail(format!("{key} is still there")),
            (None, false) => fail(format!("there is no {key}")),
            (None, true) => {}
            (Some(object), false) => {
                for (pointer, wanted) in has {
                    let found = object.pointer(pointer).unwrap_or(&Value::Null);
                    if found != wanted {
                        fail(format!("{pointer} of {key} is {found} and not {wanted}"));
                    }
                }
                for (type_, wanted) in conditions {
                    let found = condition(object, type_);
                    if found != *wanted && !found.starts_with(&format!("{wanted} ")) {
                        fail(format!("condition {type_} of {key} is `{found}` and not `{wanted}`"));
                    }
                }
            }
        }
        if let Some(wanted) = states {
            let found = states_of(&key, simulation.api.changes(0));
            if found != *wanted {
                fail(format!("{key} went through {} and not {}", found.join(", "), wanted.join(", ")));
            }
        }
        for reason in events {
            if !simulation.events.iter().any(|(about, event)| *about == key && event.reason == reason) {
                fail(format!("no event {reason} about {key}"));
            }
        }
    }
    if let Some(most) = writes_at_most
        && writes.len() > *most
    {
        fail(format!("{} writes, and not at most {most}", writes.len()));
    }
    if let Some(Count { kind, state, is }) = count {
        let keys = simulation.api.keys().filter(|key| key.kind.name() == kind);
        let shows =
            |key: &&ObjectKey| simulation.api.get(key).is_some_and(|object| object["status"]["state"] == **state);
        let found = keys.filter(shows).count();
        if found != *is {
            fail(format!("{found} of kind {kind} are {state}, and not {is}"));
        }
    }
    for (name, wanted) in terraform {
        let counts = simulation.provider.states().get(name).copied().unwrap_or_default();
        let found = format!("{} made, {} destroyed", counts.created, counts.destroyed);
        if found != *wanted {
            fail(format!("Terraform state {name}: {found}, and not {wanted}"));
        }
    }
    failed
}

/// Status and reason of a condition.
fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == type_);
    let text = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default();
    format!("{} {}", text("status"), text("reason")).trim().to_owned()
}

/// The states that an object went through.
fn states_of(key: &ObjectKey, changes: &[Change]) -> Vec<String> {
    let mut states = Vec::<String>::new();
    for change in changes.iter().filter(|change| change.key == *key) {
        let state = change.object.as_ref().and_then(|object| object["status"]["state"].as_str());
        if let Some(state) = state.filter(|state| states.last().map(String::as_str) != Some(*state)) {
            states.push(state.to_owned());
        }
    }
    states
}
