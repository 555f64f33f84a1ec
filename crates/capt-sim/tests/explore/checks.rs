//! What must hold of each write and in each state; names as in `docs/verification.md`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use capt_reconcile::{
    executor::{Outcome, Request, Response},
    object::Kind,
};
use capt_sim::{
    core::Release,
    laws::{self, Violation},
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

impl Checks {
    fn saw(&mut self, what: &'static str) {
        *self.sometimes.entry(what).or_default() += 1;
    }

    fn violated(&mut self, law: &str, text: &str) {
        self.violations.push(format!("{law}: {text}"));
    }

    /// CAPT wrote `new` over `old`: it touches what is its own and nothing else (P15).
    pub fn written_by_capt(
        &mut self,
        versions: &Versions,
        request: &Request,
        pass: Slot,
        (old, new): (VersionId, VersionId),
    ) {
        if !self.ours.insert((old, new)) {
            return;
        }
        let value = |id: VersionId| if id == 0 { Value::Null } else { versions.get(id).value.clone() };
        for Violation { law, text } in laws::of_write(Release::default(), request, &value(old), &value(new)) {
            self.violated(law, &format!("{text} by a pass over {}", versions.key(pass)));
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
            Kind::Apply => "WorkspaceTemplateApply",
            Kind::Cluster | Kind::Template | Kind::Workspace(_) | Kind::Secret => return,
        };
        let before = if old == 0 { &Value::Null } else { &versions.get(old).value };
        let after = &versions.get(new).value;
        for Violation { law, text } in laws::of_change(key, before, after) {
            self.violated(law, &text);
        }
        if before["status"] != after["status"]
            && let Some(to) = laws::state_of(after)
        {
            self.edges.insert((kind, laws::state_of(before), to));
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
