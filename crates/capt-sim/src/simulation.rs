//! CAPT's passes over the simulated world, as the operator runs them: an event starts the passes
//! that have read what it is about, and a pass goes through the same executor.

use std::collections::{BTreeMap, BTreeSet};

use capt_reconcile::{
    executor::{Executor, Outcome, Request, Response, Step},
    object::{Kind, Object, ObjectKey},
    pass::{self, KINDS, Observation, Settings},
    plan::{Event, Plan},
    world::{Coverage, Probe, Read, View, World},
};
use capt_status::{Span, Time};
use serde_json::Value;

use crate::{
    api::{Api, Change},
    core,
    provider::{self, Outputs},
};

/// Most rounds before a run counts as a loop.
const MAX_ROUNDS: usize = 500;

/// A pass that did not end well is tried again after this long; the operator waits longer and longer.
const RETRY: Span = Span::from_seconds(10);

/// What the API server says instead of carrying a request out, if anything.
type Refuse = dyn FnMut(&Request) -> Option<Response>;

/// A world with CAPT, core and the provider in it.
pub struct Simulation {
    /// The API server.
    pub api: Api,
    /// Every request that CAPT made, with how it was answered.
    pub requests: Vec<(Request, Result<(), u16>)>,
    /// Every event that CAPT published, with the object it is about.
    pub events: Vec<(ObjectKey, Event)>,
    /// Watches deliver nothing, so that CAPT goes on with what it has seen.
    pub lags: bool,
    settings: Settings,
    /// Writes that are left before a crash.
    budget: Option<usize>,
    world: World,
    seen: usize,
    reads: BTreeMap<ObjectKey, BTreeSet<Read>>,
    /// When a pass asked to be run again.
    wakes: BTreeMap<ObjectKey, Time>,
    terraform: Box<dyn Fn(&Value) -> Outputs>,
    refuse: Box<Refuse>,
}

impl Simulation {
    /// A world in which Terraform puts out what `terraform` says of a Workspace.
    pub fn new(settings: Settings, terraform: impl Fn(&Value) -> Outputs + 'static) -> Self {
        Self {
            api: Api::default(),
            requests: Vec::new(),
            events: Vec::new(),
            lags: false,
            settings,
            budget: None,
            world: empty_world(),
            seen: 0,
            reads: BTreeMap::new(),
            wakes: BTreeMap::new(),
            terraform: Box::new(terraform),
            refuse: Box::new(|_| None),
        }
    }

    /// Runs core, the provider and CAPT until nobody writes any more; false if that never happens.
    pub fn run(&mut self) -> bool {
        for _ in 0..MAX_ROUNDS {
            self.api.now = self.api.now.plus(Span::from_seconds(1));
            let by_capt = self.run_capt();
            let by_core = core::step(&mut self.api);
            let by_provider = !by_core && provider::step(&mut self.api, &self.terraform);
            if !by_capt && !by_core && !by_provider && self.api.changes(self.seen).is_empty() {
                return true;
            }
        }
        false
    }

    /// Lets time pass: everybody runs to rest, and each pass that asked for a time gets it, until
    /// `span` is over; false if it never comes to rest.
    pub fn run_for(&mut self, span: Span) -> bool {
        let end = self.api.now.plus(span);
        for _ in 0..MAX_ROUNDS {
            if !self.run() {
                return false;
            }
            let next = self.wakes.iter().min_by_key(|(_, at)| **at).map(|(key, at)| (key.clone(), *at));
            let Some((key, at)) = next.filter(|(_, at)| *at <= end) else {
                self.api.now = end.max(self.api.now);
                return true;
            };
            self.api.now = at.max(self.api.now);
            self.wakes.remove(&key);
            self.pass(&key);
        }
        false
    }

    /// Replaces what Terraform makes of Workspaces.
    pub fn terraform(&mut self, terraform: impl Fn(&Value) -> Outputs + 'static) {
        self.terraform = Box::new(terraform);
    }

    /// Answers requests for which `refuse` gives an answer with that, and does not carry them out.
    pub fn refuse(&mut self, refuse: impl FnMut(&Request) -> Option<Response> + 'static) {
        self.refuse = Box::new(refuse);
    }

    /// Tells CAPT what a probe of the API server of the control plane at `key` said, and starts its pass.
    pub fn probe(&mut self, key: &ObjectKey, probe: Option<Probe>) {
        self.world.set_probe(key.clone(), probe);
        self.pass(key);
    }

    /// Runs CAPT alone until it writes nothing more; true if it wrote at all.
    pub fn run_capt(&mut self) -> bool {
        let mut wrote = false;
        for _ in 0..MAX_ROUNDS {
            let due = self.deliver();
            if due.is_empty() {
                break;
            }
            for key in due {
                wrote |= self.pass(&key);
            }
        }
        wrote
    }

    /// Runs CAPT until it has made `writes` writes, and kills it there: what it knew is lost.
    pub fn run_capt_until_crash(&mut self, writes: usize) {
        self.budget = Some(writes);
        self.run_capt();
        self.budget = None;
        self.restart();
    }

    /// One pass of core; true if it wrote.
    pub fn step_core(&mut self) -> bool {
        core::step(&mut self.api)
    }

    /// One step of the provider; true if it wrote.
    pub fn step_provider(&mut self) -> bool {
        provider::step(&mut self.api, &self.terraform)
    }

    /// A new process: everything is listed afresh and every object gets a pass.
    pub fn restart(&mut self) {
        self.world = empty_world();
        self.reads.clear();
        self.wakes.clear();
        self.seen = 0;
    }

    /// What a pass over `key` would write now, had everything been seen in another order.
    pub fn plan_shuffled(&self, key: &ObjectKey, order: u64) -> Option<Plan> {
        let mut world = empty_world();
        let mut keys: Vec<&ObjectKey> = self.api.keys().collect();
        keys.sort_by_key(|key| capt_reconcile::hash::of_text(&format!("{order}{key}"), 16));
        for key in keys {
            if let Some(object) = self.api.get(key) {
                world.watched(key.clone(), 1, Object::parse(key.kind, object));
            }
        }
        let view = View::new(&world);
        match pass::observe(&view, key, self.settings) {
            Observation::Complete(observed) => Some(pass::plan(&observed, self.api.now)),
            Observation::Gone | Observation::Malformed(_) => None,
        }
    }

    /// Starts a pass over every object, whether or not something happened; true if one wrote.
    pub fn resync(&mut self) -> bool {
        self.deliver();
        let keys: Vec<ObjectKey> = self.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect();
        let mut wrote = false;
        for key in keys {
            wrote |= self.pass(&key);
        }
        wrote
    }

    /// What a pass over `key` would write now.
    pub fn plan(&mut self, key: &ObjectKey) -> Option<Plan> {
        self.deliver();
        let view = View::new(&self.world);
        match pass::observe(&view, key, self.settings) {
            Observation::Complete(observed) => Some(pass::plan(&observed, self.api.now)),
            Observation::Gone | Observation::Malformed(_) => None,
        }
    }

    /// The writes that CAPT made so far.
    pub fn writes(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().map(|(request, _)| request).filter(|request| request.is_write())
    }

    /// Takes over what watches deliver; the keys of the passes that it concerns.
    fn deliver(&mut self) -> BTreeSet<ObjectKey> {
        if self.lags {
            return BTreeSet::new();
        }
        let changes: Vec<Change> = self.api.changes(self.seen).to_vec();
        self.seen += changes.len();
        let mut due = BTreeSet::new();
        for Change { key, resource_version, object } in changes {
            if let Some(object) = object {
                let object = Object::parse(key.kind, &object);
                if !self.world.watched(key.clone(), resource_version, object) {
                    continue;
                }
            } else {
                self.world.deleted(&key, resource_version);
            }
            if KINDS.contains(&key.kind) {
                due.insert(key.clone());
            }
            let concerns = |read: &Read| match read {
                Read::Object(read) => *read == key,
                Read::List(kind, namespace) => {
                    *kind == key.kind && (namespace.is_none() || *namespace == key.namespace)
                }
            };
            due.extend(self.reads.iter().filter(|(_, reads)| reads.iter().any(concerns)).map(|(pass, _)| pass.clone()));
        }
        due
    }

    /// Whether there is one more write before the crash.
    fn spend(&mut self) -> bool {
        match &mut self.budget {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn pass(&mut self, key: &ObjectKey) -> bool {
        let view = View::new(&self.world);
        let observation = pass::observe(&view, key, self.settings);
        let reads = view.into_reads();
        let observed = match observation {
            Observation::Complete(observed) => observed,
            Observation::Gone | Observation::Malformed(_) => {
                self.reads.remove(key);
                self.wakes.remove(key);
                return false;
            }
        };
        self.reads.insert(key.clone(), reads);
        let plan = pass::plan(&observed, self.api.now);
        match plan.next {
            Some(at) => self.wakes.insert(key.clone(), at),
            None => self.wakes.remove(key),
        };
        let mut executor = Executor::new(&plan);
        let mut wrote = false;
        loop {
            match executor.next() {
                Step::Send(request) => {
                    if request.is_write() && !self.spend() {
                        return wrote;
                    }
                    let response = (self.refuse)(&request).unwrap_or_else(|| self.api.respond(&request));
                    let result = match &response {
                        Response::Refused(refusal) => Err(refusal.code),
                        Response::Object(_) | Response::Items(_) | Response::NoAnswer(_) => Ok(()),
                    };
                    wrote |= request.is_write();
                    self.requests.push((request, result));
                    executor.answer(response);
                }
                Step::Done(outcome) => {
                    if outcome == Outcome::Applied {
                        self.events.extend(plan.events.into_iter().map(|event| (plan.object.clone(), event)));
                    } else {
                        self.wakes.insert(key.clone(), self.api.now.plus(RETRY));
                    }
                    return wrote;
                }
            }
        }
    }
}

fn empty_world() -> World {
    let mut world = World::default();
    for kind in Kind::ALL {
        world.set_coverage(kind, Coverage::Cached);
    }
    world
}
