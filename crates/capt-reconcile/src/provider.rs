//! What the plans of the two provider objects, CAPTCluster and CAPTControlPlane, have in common.

use capt_api::names::conditions;
use capt_status::{
    Condition, Operation, State, Time,
    condition::{self, Verdict},
    failure::Class,
    machine::{
        self, Cause, Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Limits, Owner, Role, Teardown,
        Workspace,
    },
};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    dependencies, hash,
    memory::{self, Remembered},
    meta::{self, Writer},
    pass::Features,
    plan::Op,
    reasons,
    status::{self, Draft},
};

/// Condition types that [`machine::verdicts`] gives every provider object.
pub const STANDARD_CONDITIONS: [&str; 7] = [
    conditions::AVAILABLE,
    conditions::READY,
    conditions::HEALTHY,
    conditions::RECONCILING,
    conditions::STALLED,
    conditions::PAUSED,
    conditions::DELETING,
];

/// Finalizer and, where `apply_name` is given, the apply's name in the spec, in one write; true if the
/// spec changes with it.
pub fn prepare<K: Resource>(writer: &mut Writer, object: &K, finalizer: &str, apply_name: Option<String>) -> bool {
    let mut operations = Vec::new();
    if !meta::has_finalizer(object, finalizer) {
        operations.extend(meta::add_finalizer(object, finalizer));
    }
    let fills_name = apply_name.is_some();
    if let Some(name) = apply_name {
        operations.push(json!({"op": "add", "path": "/spec/workspaceTemplateApplyName", "value": name}));
    }
    if !operations.is_empty() {
        writer.own(Op::JsonPatch { operations }, "finalizer before anything is made, and the name of the apply");
    }
    fills_name
}

/// Adds the Paused condition and nothing else; `own` are the condition types that only this kind has.
pub fn pause<S: Remembered>(
    writer: &mut Writer,
    manager: &'static str,
    stored: &S,
    message: &str,
    own: &[&'static str],
    generation: i64,
    now: Time,
) {
    let ours: Vec<&'static str> = STANDARD_CONDITIONS.iter().chain(own).copied().collect();
    status::write_paused(writer, manager, stored, message, &ours, generation, now);
    writer.note(format!("paused: {message}"));
}

/// What an object without its Cluster waits for.
pub fn waiting_for_cluster<K: Resource>(object: &K) -> Cause {
    let message = match meta::owner_cluster_name(object) {
        Some(name) => format!("waiting for Cluster {name} to exist"),
        None => "waiting for Cluster API to set an owner reference to a Cluster".to_owned(),
    };
    Cause::new(reasons::WAITING_FOR_CLUSTER, message)
}

/// Longest value of a label, in bytes.
const MAX_LABEL: usize = 63;

/// Longest name of an object, in bytes.
pub const MAX_NAME: usize = 253;

/// Why nothing can be made: a name that the API server would refuse, again and again and nobody sees why.
pub fn name_problem<'a>(cluster: &str, applies: impl IntoIterator<Item = &'a str>) -> Option<Cause> {
    let message = if cluster.len() > MAX_LABEL {
        format!(
            "the Cluster's name has more than {MAX_LABEL} characters, which no label takes: create one with a shorter name"
        )
    } else if applies.into_iter().any(|name| name.len() > MAX_NAME) {
        format!(
            "the name of an apply would have more than {MAX_NAME} characters: create the object with a shorter name, or set \
             spec.workspaceTemplateApplyName"
        )
    } else {
        return None;
    };
    Some(Cause::new(reasons::NAME_TOO_LONG, message))
}

/// What changes exactly when the user changes `spec` or asks for a retry; `written_by_us` are fields of
/// the spec whose change is no change by the user.
pub fn spec_hash<K: Resource>(object: &K, spec: &impl Serialize, written_by_us: &[&str]) -> String {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for field in written_by_us {
            fields.remove(*field);
        }
    }
    // The user's word to try again counts as a change.
    let retry = object.annotations().get(capt_api::names::RETRY_ANNOTATION);
    hash::hex(&Value::Array(vec![spec, retry.map_or(Value::Null, |word| Value::from(word.as_str()))]), 16)
}

/// A deletion that still waits for something.
#[derive(Debug)]
pub struct Deletion<'a> {
    /// Which of the two it is.
    pub role: Role,
    /// Field manager of the status.
    pub manager: &'static str,
    /// What is waited for, as a sentence.
    pub waiting_for: String,
    /// What blocks it.
    pub blocked: Option<(Cause, Class)>,
    /// Limits from the spec.
    pub limits: &'a Limits,
    /// metadata.generation.
    pub generation: i64,
    /// What is tracked.
    pub features: Features,
}

impl Deletion<'_> {
    /// Adds the status that tells it; `own` gives the object's own conditions.
    pub fn tell<S: Remembered>(
        self,
        writer: &mut Writer,
        stored: &S,
        own: impl FnOnce(&[Condition], &Cause) -> Vec<Verdict>,
        now: Time,
    ) {
        let Self { role, manager, waiting_for, blocked, limits, generation, features } = self;
        let (cause, teardown) = match blocked {
            Some((cause, class)) => {
                (Cause::new(cause.reason, format!("{waiting_for}: {}", cause.message)), Teardown::Blocked(class))
            }
            None => (Cause::new(reasons::WAITING_FOR_DELETION, waiting_for), Teardown::Waiting),
        };
        let facts = Facts {
            role,
            lifecycle: Lifecycle::Deleting(teardown),
            owner: Owner::Known,
            inputs: Inputs::Valid,
            infrastructure: Infrastructure::Ready,
            workspace: Workspace::Ready,
            busy: false,
            configuration: Configuration::Complete,
            checks: Checks::Passing,
            same_failure: memory::is_shown(stored, &cause.reason),
            user_changed: false,
        };
        let next = machine::follow(&memory::read(stored), &facts, limits, now);
        let mut wanted = Draft::Borrowed(stored);
        if stored.observed_generation() != Some(generation) {
            wanted.to_mut().set_observed_generation(generation);
        }
        memory::record_progress(&mut wanted, &facts, &next, &cause, Operation::Update, limits, now);
        memory::record(&mut wanted, &next, &facts, &cause);
        let object = &writer.plan().object;
        let told = |graph| dependencies::with_state(graph, object, State::Deleting);
        if let Some(graph) = stored.dependencies().and_then(told) {
            *wanted.to_mut().kept().dependencies = Some(graph);
        }
        memory::untrack(&mut wanted, features);
        writer.plan().next = next.at;
        writer.plan().events.extend(memory::events(stored, &next, &cause, String::new));
        let available = condition::is_true(stored.conditions(), conditions::AVAILABLE);
        let mut verdicts = machine::verdicts(State::Deleting, stored.ready(), next.stalled, &cause, available);
        verdicts.extend(own(stored.conditions(), &cause));
        status::write(writer, manager, (stored, wanted), verdicts, generation, now);
        writer.note(cause.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_conditions_are_those_that_the_machine_gives() {
        for state in State::ALL {
            let verdicts = machine::verdicts(state, false, false, &Cause::new("Because", ""), false);
            let types: Vec<&str> = verdicts.iter().map(|verdict| verdict.type_.as_str()).collect();
            assert_eq!(types, STANDARD_CONDITIONS, "{state:?}");
        }
    }
}
