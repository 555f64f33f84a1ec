//! What happens in a life: deeds by chance, on any field that a spec has.

use std::collections::BTreeMap;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::scenario::{Behaviour, Deed, Event, Process, Scenario, chances::Dice};
use capt_status::Span;
use serde_json::{Value, json};

use super::{Mode, of_users, rough::Done};
use crate::grammar::Grammar;

pub(super) struct Maker<'g> {
    pub(super) grammar: &'g Grammar,
    pub(super) dice: Dice,
    pub(super) mode: Mode,
    pub(super) at: Span,
    /// Objects of users, as they stand.
    pub(super) objects: BTreeMap<ObjectKey, Value>,
    pub(super) events: Vec<Event>,
    pub(super) deletes: bool,
    pub(super) rough: Done,
    pub(super) refused: usize,
}

const ANNOTATIONS: [&str; 2] = ["cluster.x-k8s.io/paused", "capt.cluster.x-k8s.io/retry"];

const TROUBLE: [&str; 4] = [
    "Error: creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.",
    "Error: AccessDenied: User is not authorized to perform: eks:CreateCluster",
    "Error: Unsupported argument",
    "Error: something odd",
];

impl Maker<'_> {
    pub(super) fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.dice.below(items.len())].clone()
    }

    pub(super) fn passes(&mut self) {
        let gap = self.one_of(&[0, 1, 5, 60, 180, 600, 1_800]);
        self.at = self.at.plus(Span::from_seconds(gap));
    }

    pub(super) fn does(&mut self, deed: Deed) {
        self.events.push(Event { at: self.at, deed });
    }

    /// A user changes an object of his, if the API server takes it.
    pub(super) fn patch(&mut self, key: &ObjectKey, body: Value) {
        let Some(old) = self.objects.get(key) else { return };
        let mut object = old.clone();
        json_patch::merge(&mut object, &body);
        if !self.grammar.refuses(key.kind, &object, old).is_empty() {
            self.refused += 1;
            return;
        }
        self.objects.insert(key.clone(), object);
        self.does(Deed::Patch(key.clone(), body));
    }

    pub(super) fn workspaces() -> [&'static str; 2] {
        ["demo-vpc", "demo-eks-controlplane"]
    }

    /// Terraform gets into trouble, or out of it.
    pub(super) fn behaviour(&mut self, heals: bool) -> Behaviour {
        let workspace = self.one_of(&Self::workspaces()).to_owned();
        let mut behaviour = Behaviour { workspace, ..Behaviour::default() };
        let text = Some(self.one_of(&TROUBLE).to_owned());
        match self.dice.below(if heals { 9 } else { 7 }) {
            0 => behaviour.fail = text,
            1 => behaviour.fail_plan = text,
            2 => behaviour.fail_connect = text,
            3 => behaviour.hang = true,
            4 => {
                behaviour
                    .outputs
                    .extend(["cluster_endpoint", "vpc_id"].map(|name| (name.to_owned(), json!({"host": "an object"}))));
            }
            5 => {
                behaviour.outputs.extend(["cluster_endpoint", "vpc_id"].map(|name| (name.to_owned(), json!(""))));
            }
            6 => {
                behaviour.fail = text;
                behaviour.leaves.insert("cluster_name".to_owned(), json!("half"));
            }
            7 => behaviour.takes = Some(Span::from_minutes(45)),
            _ => {}
        }
        behaviour
    }

    pub(super) fn happens(&mut self) {
        let provider = self.one_of(&[Kind::CaptCluster, Kind::CaptControlPlane]);
        let key = ObjectKey::new(provider, "default", "demo");
        let scope = |name: &str, api| ObjectKey::new(Kind::Workspace(api), "default", name);
        match self.dice.below(14) {
            0..=4 => {
                let kind = self.one_of(&[Kind::CaptCluster, Kind::CaptControlPlane, Kind::Template]);
                let name = if kind == Kind::Template { self.one_of(&["vpc-template", "eks-template"]) } else { "demo" };
                let edit = self.grammar.edit(kind, &mut self.dice);
                self.patch(&ObjectKey::new(kind, "default", name), edit);
            }
            5 => {
                let name = self.one_of(&ANNOTATIONS);
                let value = self.one_of(&[json!(format!("{}", self.at.as_seconds())), Value::Null]);
                self.patch(&key, json!({"metadata": {"annotations": {name: value}}}));
            }
            6 => {
                let paused = self.one_of(&[json!(true), Value::Null]);
                let cluster = ObjectKey::new(Kind::Cluster, "default", "demo");
                self.patch(&cluster, json!({"spec": {"paused": paused}}));
            }
            7 | 8 => {
                let behaviour = self.behaviour(true);
                self.does(Deed::Terraform(behaviour));
            }
            9 => {
                let process = self.one_of(&[Process::Capt, Process::Provider]);
                self.does(Deed::Restart(process));
            }
            10 => {
                let name =
                    self.one_of(&["demo-kubeconfig", "demo-ca", "demo-eks-connection", "demo-vpc-vpc-connection"]);
                self.does(Deed::Delete(ObjectKey::new(Kind::Secret, "default", name)));
            }
            11 if self.mode == Mode::Safety => {
                self.deletes = true;
                let name = self.one_of(&Self::workspaces());
                let api = self.one_of(&WorkspaceApi::ALL);
                let apply = self.one_of(&["demo-vpc", "demo-eks-controlplane-apply"]);
                let all = [scope(name, api), ObjectKey::new(Kind::Apply, "default", apply)];
                let key = self.one_of(&all);
                self.does(Deed::Delete(key));
            }
            12 if self.mode == Mode::Safety => {
                let seconds = self.one_of(&[-600, -1, 1, 86_400]);
                self.does(Deed::Clock(seconds));
                // What happens afterwards happens by the clock that has jumped.
                self.at = self.at.plus(Span::from_seconds(seconds.max(0)));
            }
            13 => {
                // Another user edits what is CAPT's.
                let name = self.one_of(&["demo-vpc", "demo-eks-controlplane-apply"]);
                let edit = self.grammar.edit(Kind::Apply, &mut self.dice);
                if self.mode == Mode::Safety {
                    self.does(Deed::Patch(ObjectKey::new(Kind::Apply, "default", name), edit));
                }
            }
            _ => {}
        }
    }

    /// Everything is put back as it was.
    pub(super) fn put_back(&mut self, base: &Scenario) {
        for (key, object) in of_users(base) {
            let Some(now) = self.objects.get(key) else { continue };
            let back = difference(now, object);
            if !back.is_null() {
                self.does(Deed::Patch(key.clone(), back));
            }
        }
    }
}

/// The merge patch that makes `wanted` of `now`; null if there is none to make.
fn difference(now: &Value, wanted: &Value) -> Value {
    match (now, wanted) {
        _ if now == wanted => Value::Null,
        (Value::Object(now), Value::Object(wanted)) => {
            let mut patch = serde_json::Map::new();
            for name in now.keys().filter(|name| !wanted.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            for (name, wanted) in wanted {
                let now = now.get(name).unwrap_or(&Value::Null);
                if now != wanted {
                    patch.insert(name.clone(), difference(now, wanted));
                }
            }
            Value::Object(patch)
        }
        (_, wanted) => wanted.clone(),
    }
}
