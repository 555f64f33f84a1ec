//! What must hold of each write and in each state; names as in `docs/verification.md`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use capt_reconcile::{
    executor::{Outcome, Request, Response},
    object::Kind,
};
use capt_status::State as Machine;
use serde_json::Value;

use crate::versions::{Slot, VersionId, Versions};

/// What was checked, and what was seen.
#[derive(Debug, Default)]
pub struct Checks {
    pairs: HashSet<(VersionId, VersionId)>,
    ours: HashSet<(VersionId, VersionId)>,
    /// Edges of the state machine, by kind.
    pub edges: BTreeSet<(&'static str, Option<Machine>, Machine)>,
    /// How often each of these happened, so that nothing holds because it never came about.
    pub sometimes: BTreeMap<&'static str, u64>,
    pub violations: Vec<String>,
}

/// Fields that never go back, and never get lost, while the object lives.
const LATCHES: [&str; 8] = [
    "/status/ready",
    "/status/initialized",
    "/status/initialization/provisioned",
    "/status/initialization/controlPlaneInitialized",
    "/status/endpoint",
    "/status/vpcId",
    "/status/workspaceStatus/atProvider/outputs",
    "/spec/controlPlaneEndpoint/host",
];

impl Checks {
    fn saw(&mut self, what: &'static str) {
        *self.sometimes.entry(what).or_default() += 1;
    }

    fn violated(&mut self, law: &str, text: &str) {
        self.violations.push(format!("{law}: {text}"));
    }

    /// CAPT wrote `new` over `old` in `slot`: it touches what is its own and nothing else (P15).
    pub fn written_by_capt(&mut self, versions: &Versions, pass: Slot, slot: Slot, old: VersionId, new: VersionId) {
        if !self.ours.insert((old, new)) {
            return;
        }
        let key = versions.key(slot);
        let value = |id: VersionId| if id == 0 { Value::Null } else { versions.get(id).value.clone() };
        let (before, after) = (value(old), value(new));
        match key.kind {
            Kind::Cluster | Kind::Template => self.violated("P15", &format!("{key} was written")),
            Kind::CaptCluster | Kind::CaptControlPlane | Kind::Apply => {}
            Kind::Workspace(_) => {
                let name = |value: &Value| value["metadata"]["annotations"]["crossplane.io/external-name"].clone();
                if old != 0 && new != 0 && name(&before) != name(&after) {
                    self.violated("P23", &format!("{key} selects another Terraform state"));
                }
                if new != 0 && before["status"] != after["status"] {
                    self.violated("P15", &format!("the status of {key} was written"));
                }
            }
            Kind::Secret => {
                if !key.name.ends_with("-kubeconfig") && !key.name.ends_with("-ca") {
                    self.violated("P15", &format!("{key} was written by a pass over {}", versions.key(pass)));
                }
            }
        }
    }

    /// Somebody wrote `new` over `old` in `slot`.
    pub fn written(&mut self, versions: &Versions, slot: Slot, old: VersionId, new: VersionId) {
        if new == 0 || old == new || !self.pairs.insert((old, new)) {
            return;
        }
        let key = versions.key(slot);
        let kind = match key.kind {
            Kind::CaptCluster => "CAPTCluster",
            Kind::CaptControlPlane => "CAPTControlPlane",
            Kind::Cluster | Kind::Template | Kind::Apply | Kind::Workspace(_) | Kind::Secret => return,
        };
        let before = if old == 0 { &Value::Null } else { &versions.get(old).value };
        let after = &versions.get(new).value;
        for latch in LATCHES {
            let is_set = |value: &Value| value.pointer(latch).is_some_and(|value| *value != false && !value.is_null());
            if is_set(before) && !is_set(after) {
                self.violated("P5", &format!("{latch} of {key} went back"));
            }
        }
        if before["status"] == after["status"] || after["status"].is_null() {
            return;
        }
        self.times(&key.to_string(), before, after);
        let (from, to) = (machine(before), machine(after));
        let Some(to) = to else {
            // A pause from birth shows a condition and no state.
            return;
        };
        self.edges.insert((kind, from, to));
        if from.is_some_and(|from| from != to && !from.successors().contains(&to)) {
            self.violated("P8", &format!("{key} went from {from:?} to {to:?}"));
        }
        let status = &after["status"];
        if status["observedGeneration"] != after["metadata"]["generation"]
            && before["status"]["state"] != status["state"]
        {
            self.violated("P20", &format!("{key} shows {to:?} for a generation that it did not see"));
        }
        if to == Machine::Ready && key.kind == Kind::CaptControlPlane && status["endpoint"].is_null() {
            self.violated("P10", &format!("{key} is Ready without an endpoint"));
        }
        if status["failureReason"].is_null() == (to == Machine::Failed) {
            self.violated("P11", &format!("{key} in {to:?} has failureReason {}", status["failureReason"]));
        }
        if after["status"].to_string().len() > 256 * 1024 {
            self.violated("P18", &format!("the status of {key} is too large"));
        }
    }

    /// The time of a condition moves with its status and never back (P7).
    fn times(&mut self, key: &str, before: &Value, after: &Value) {
        for condition in after["status"]["conditions"].as_array().into_iter().flatten() {
            let old = before["status"]["conditions"].as_array().into_iter().flatten();
            let Some(old) = old.into_iter().find(|old| old["type"] == condition["type"]) else { continue };
            let (then, now) = (old["lastTransitionTime"].as_str(), condition["lastTransitionTime"].as_str());
            if now < then {
                self.violated("P7", &format!("{key}: condition {} went back in time", condition["type"]));
            }
            if old["status"] == condition["status"] && then != now {
                self.violated("P7", &format!("{key}: time of condition {} moved without it", condition["type"]));
            }
        }
    }

    /// A request of CAPT was answered.
    pub fn answered(&mut self, request: &Request, response: &Response) {
        match (request, response) {
            (Request::Create { .. }, Response::Refused(refusal)) if refusal.reason == "AlreadyExists" => {
                self.saw("a create meets an object that is there");
            }
            (_, Response::Refused(refusal)) if refusal.code == 409 => self.saw("a write from a stale view is refused"),
            (_, Response::Refused(refusal)) if refusal.code == 404 && request.is_write() => {
                self.saw("a write meets an object that is gone");
            }
            (_, Response::Object(_) | Response::Items(_) | Response::Refused(_) | Response::NoAnswer(_)) => {}
        }
    }

    /// A pass of CAPT ended.
    pub fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Applied => self.saw("a pass is carried out"),
            Outcome::Conflict { .. } => self.saw("a pass ends in a conflict"),
            Outcome::Blocked { .. } => self.saw("a live read stops a finalizer's removal"),
            Outcome::Rejected { .. } | Outcome::NoAnswer { .. } => {}
        }
    }
}

fn machine(object: &Value) -> Option<Machine> {
    serde_json::from_value(object["status"]["state"].clone()).ok()
}
