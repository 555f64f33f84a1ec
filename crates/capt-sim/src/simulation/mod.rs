//! CAPT's passes over the simulated world, as the operator runs them: an event starts the passes
//! that have read what it is about, a pass goes through the same executor, and one that failed is run
//! again later and later.
//!
//! What goes wrong is decided by [`Hooks`]; this module only carries it out.

pub mod hooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use capt_reconcile::{
    executor::{Executor, Outcome, Request, Response, Step},
    object::{Kind, Object, ObjectKey},
    pass::{self, KINDS, Observation, Settings},
    plan::{Event, Plan},
    triggers::Triggers,
    world::{Coverage, Probe, View, World},
};
use capt_status::{Span, Time};
use serde_json::Value;

use crate::{
    api::{Api, Change},
    core::{self, Release},
    provider::{Outputs, Provider},
};
use hooks::{Delivery, Fate, Hooks, Nothing};

/// Most rounds before a run counts as a loop.
const MAX_ROUNDS: usize = 500;

/// Most times that CAPT is told of its own writes before it counts as restless.
const MAX_TURNS: usize = 50;

/// Longest wait after failures in seconds, as the operator's queue has it.
const LONGEST_WAIT: i64 = 300;

/// Longest wait after stale views in seconds.
const LONGEST_STALE: i64 = 10;

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
    /// The process of the provider.
    pub provider: Provider,
    /// Which core there is.
    pub core: Release,
    /// Watches deliver nothing, so that CAPT goes on with what it has seen.
    pub lags: bool,
    settings: Settings,
    /// Writes that are left before a crash.
    budget: Option<usize>,
    world: World,
    seen: usize,
    /// Changes that core and the provider have seen.
    core_seen: usize,
    provider_seen: usize,
    triggers: Triggers,
    /// The last version of each object that was parsed.
    parsed: Parsed,
    /// Passes that own writes concern.
    due: BTreeSet<ObjectKey>,
    /// When a pass asked to be run again, or is tried again after a failure.
    wakes: BTreeMap<ObjectKey, Time>,
    /// Failures in a row.
    failures: BTreeMap<ObjectKey, u32>,
    /// Changes that a watch has not delivered yet, and when it does.
    late: Vec<(Time, Change)>,
    /// Requests of a process that stood still, and when they arrive.
    held: Vec<(Time, Request)>,
    /// CAPT never stopped writing.
    restless: bool,
    hooks: Box<dyn Hooks>,
    refuse: Box<Refuse>,
    terraform: Rc<dyn Fn(&Value) -> Outputs>,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    wrote: bool,
    crashed: bool,
}

impl Simulation {
    /// A world in which Terraform puts out what `terraform` says of a Workspace.
    pub fn new(settings: Settings, terraform: impl Fn(&Value) -> Outputs + 'static) -> Self {
        Self {
            api: Api::default(),
            requests: Vec::new(),
            events: Vec::new(),
            provider: Provider::default(),
            core: Release::default(),
            lags: false,
            settings,
            budget: None,
            world: empty_world(),
            seen: 0,
            core_seen: 0,
            provider_seen: 0,
            triggers: Triggers::default(),
            parsed: Parsed::default(),
            due: BTreeSet::new(),
            wakes: BTreeMap::new(),
            failures: BTreeMap::new(),
            late: Vec::new(),
            held: Vec::new(),
            restless: false,
            hooks: Box::new(Nothing),
            refuse: Box::new(|_| None),
            terraform: Rc::new(terraform),
        }
    }

    /// The same, with what goes wrong.
    #[must_use]
    pub fn with_hooks(self, hooks: impl Hooks + 'static) -> Self {
        Self { hooks: Box::new(hooks), ..self }
    }

    /// Runs core, the provider and CAPT until nobody writes any more; false if that never happens.
    pub fn run(&mut self) -> bool {
        for _ in 0..MAX_ROUNDS {
            self.api.now = self.api.now.plus(Span::from_seconds(1));
            self.arrive();
            let by_capt = self.run_capt();
            if self.restless {
                return false;
            }
            let by_core = self.core_goes_on();
            let by_provider = !by_core && self.provider_goes_on();
            let is_quiet = !by_capt && !by_core && !by_provider && self.api.changes(self.seen).is_empty();
            // The garbage collector comes last, so that everybody saw what it takes away.
            if is_quiet && !self.api.collect() {
                return true;
            }
        }
        false
    }

    /// Core, unless nothing that it reads has changed since it found nothing to do.
    fn core_goes_on(&mut self) -> bool {
        let reads = |key: &ObjectKey| matches!(key.kind, Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane);
        if !self.api.changes(self.core_seen).iter().any(|change| reads(&change.key)) {
            return false;
        }
        self.core_seen = self.api.changes(0).len();
        self.step_core()
    }

    /// The provider, unless nothing that it reads has changed and no run has ended since.
    fn provider_goes_on(&mut self) -> bool {
        let reads = |key: &ObjectKey| matches!(key.kind, Kind::Workspace(_) | Kind::Secret);
        let has_ended = self.provider.next().is_some_and(|end| end <= self.api.now);
        if !has_ended && !self.api.changes(self.provider_seen).iter().any(|change| reads(&change.key)) {
            return false;
        }
        self.provider_seen = self.api.changes(0).len();
        self.step_provider()
    }

    /// Terraform does something else from now on.
    pub fn terraform_differs(&mut self) {
        self.provider_seen = 0;
    }

    /// Lets time pass: everybody runs to rest, and each pass that asked for a time gets it, until
    /// `span` is over; false if it never comes to rest.
    pub fn run_for(&mut self, span: Span) -> bool {
        let end = self.api.now.plus(span);
        for _ in 0..MAX_ROUNDS {
            if !self.run() {
                return false;
            }
            let Some(at) = self.next().filter(|at| *at <= end) else {
                self.api.now = end.max(self.api.now);
                return true;
            };
            self.api.now = at.max(self.api.now);
            self.wake();
        }
        false
    }

    /// When something happens by itself.
    pub fn next(&self) -> Option<Time> {
        let late = self.late.iter().map(|(at, _)| *at).min();
        let held = self.held.iter().map(|(at, _)| *at).min();
        let wake = self.wakes.values().min().copied();
        [late, held, wake, self.provider.next()].into_iter().flatten().min()
    }

    /// Runs the passes whose time has come.
    fn wake(&mut self) {
        let due: Vec<ObjectKey> =
            self.wakes.iter().filter(|(_, at)| **at <= self.api.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.wakes.remove(&key);
            if self.pass(&key).crashed {
                return;
            }
        }
    }

    /// Replaces what Terraform makes of Workspaces.
    pub fn terraform(&mut self, terraform: impl Fn(&Value) -> Outputs + 'static) {
        self.terraform = Rc::new(terraform);
        self.terraform_differs();
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
        for turn in 0..=MAX_TURNS {
            let due = self.deliver();
            if due.is_empty() {
                break;
            }
            if turn == MAX_TURNS {
                self.restless = true;
                return true;
            }
            for key in due {
                let ended = self.pass(&key);
                wrote |= ended.wrote;
                if ended.crashed {
                    // What was due is forgotten; the next process begins with a list of everything.
                    return true;
                }
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
        core::step(&mut self.api, self.core)
    }

    /// One step of the provider; true if it wrote.
    pub fn step_provider(&mut self) -> bool {
        let terraform = Rc::clone(&self.terraform);
        self.provider.step(&mut self.api, &*terraform)
    }

    /// A new process of CAPT: everything is listed afresh and every object gets a pass.
    pub fn restart(&mut self) {
        self.hooks.restarts(self.api.changes(0).last().map_or(0, |change| change.resource_version));
        self.world = empty_world();
        self.triggers = Triggers::default();
        self.due.clear();
        self.wakes.clear();
        self.failures.clear();
        self.late.clear();
        self.seen = 0;
    }

    /// A new process of the provider.
    pub fn crash_provider(&mut self) {
        self.provider.crash(&self.api);
        self.terraform_differs();
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
        plan(&world, key, self.settings, self.api.now)
    }

    /// Starts a pass over every object, whether or not something happened; true if one wrote.
    pub fn resync(&mut self) -> bool {
        self.deliver();
        let keys: Vec<ObjectKey> = self.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect();
        let mut wrote = false;
        for key in keys {
            wrote |= self.pass(&key).wrote;
        }
        wrote
    }

    /// What CAPT knows now.
    pub fn known(&mut self) -> &World {
        self.deliver();
        &self.world
    }

    /// What a pass over `key` would write now.
    pub fn plan(&mut self, key: &ObjectKey) -> Option<Plan> {
        self.deliver();
        plan(&self.world, key, self.settings, self.api.now)
    }

    /// The writes that CAPT made so far.
    pub fn writes(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().map(|(request, _)| request).filter(|request| request.is_write())
    }

    /// What was on its way arrives at its time.
    fn arrive(&mut self) {
        let now = self.api.now;
        for (_, request) in self.held.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            self.api.respond(&request);
        }
    }

    /// Takes over what watches deliver; the keys of the passes that it concerns.
    fn deliver(&mut self) -> BTreeSet<ObjectKey> {
        if self.lags {
            return BTreeSet::new();
        }
        let now = self.api.now;
        let mut due = std::mem::take(&mut self.due);
        for (_, change) in self.late.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            take_over(&mut self.world, &mut self.parsed, &self.triggers, &change, &mut due);
        }
        let from = std::mem::replace(&mut self.seen, self.api.changes(0).len());
        for change in self.api.changes(from) {
            match self.hooks.delivers(change, now) {
                Delivery::Now => {}
                Delivery::Twice => take_over(&mut self.world, &mut self.parsed, &self.triggers, change, &mut due),
                Delivery::Late(span) => {
                    // A watch keeps its order: never before what is late of the same object already.
                    let earlier = self.late.iter().filter(|(_, late)| late.key == change.key).map(|(at, _)| *at).max();
                    self.late.push((earlier.unwrap_or_default().max(now.plus(span)), change.clone()));
                    continue;
                }
            }
            for (_, earlier) in self.late.extract_if(.., |(_, late)| late.key == change.key).collect::<Vec<_>>() {
                take_over(&mut self.world, &mut self.parsed, &self.triggers, &earlier, &mut due);
            }
            take_over(&mut self.world, &mut self.parsed, &self.triggers, change, &mut due);
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

    fn pass(&mut self, key: &ObjectKey) -> Ended {
        let mut ended = Ended::default();
        loop {
            let again = self.one_pass(key, &mut ended);
            if !again || ended.crashed {
                return ended;
            }
        }
    }

    /// One pass; true if it is to be run once more.
    fn one_pass(&mut self, key: &ObjectKey, ended: &mut Ended) -> bool {
        let now = self.hooks.clock(key, self.api.now);
        let other = self.hooks.sees(key, &self.world, &self.api, now);
        let world = other.as_ref().unwrap_or(&self.world);
        let view = View::new(world);
        let observation = pass::observe(&view, key, self.settings);
        let reads = view.into_reads();
        let observed = match observation {
            Observation::Complete(observed) => observed,
            Observation::Gone | Observation::Malformed(_) => {
                self.triggers.forget(key);
                self.wakes.remove(key);
                self.failures.remove(key);
                return false;
            }
        };
        let mut plan = pass::plan(&observed, now);
        let again = self.hooks.planned(world, &mut plan, now);
        self.triggers.replace(key, reads);
        match plan.next {
            // The clock that was read says how long to wait, whatever it shows.
            Some(at) => self.wakes.insert(key.clone(), self.api.now.plus(at.since(now).max(Span::from_seconds(1)))),
            None => self.wakes.remove(key),
        };
        let outcome = self.execute(&plan, ended);
        match outcome {
            None => {}
            Some(Outcome::Applied) => {
                self.failures.remove(key);
                for event in &plan.events {
                    self.hooks.published(&plan.object, event, now);
                }
                self.events.extend(plan.events.into_iter().map(|event| (plan.object.clone(), event)));
            }
            Some(outcome) => {
                // A stale view is corrected by an event that is on its way.
                let longest = if matches!(outcome, Outcome::Conflict { .. }) { LONGEST_STALE } else { LONGEST_WAIT };
                let failures = self.failures.entry(key.clone()).or_default();
                *failures += 1;
                let wait = 1_i64.checked_shl((*failures - 1).min(30)).unwrap_or(longest).min(longest);
                self.try_again(key, wait);
            }
        }
        again
    }

    fn try_again(&mut self, key: &ObjectKey, seconds: i64) {
        let at = self.api.now.plus(Span::from_seconds(seconds));
        let wake = self.wakes.entry(key.clone()).or_insert(at);
        *wake = at.min(*wake);
    }

    /// Carries out a plan; `None` if the process died in it.
    fn execute(&mut self, plan: &Plan, ended: &mut Ended) -> Option<Outcome> {
        let mut executor = Executor::new(plan);
        loop {
            let mut request = match executor.next() {
                Step::Send(request) => request,
                Step::Done(outcome) => return Some(outcome),
            };
            let is_write = request.is_write();
            if is_write && !self.spend() {
                return None;
            }
            let response = match self.hooks.fate(&mut request, self.api.now) {
                Fate::Answered => {
                    if let Some(refusal) = (self.refuse)(&request) {
                        refusal
                    } else {
                        let response = self.respond(&request);
                        self.learn(&request, &response);
                        response
                    }
                }
                Fate::Refused(refusal) => Response::Refused(refusal),
                Fate::Lost => Response::NoAnswer("the connection was reset".to_owned()),
                Fate::Unanswered => {
                    self.respond(&request);
                    ended.wrote |= is_write;
                    Response::NoAnswer("the time is over".to_owned())
                }
                fate @ (Fate::CrashBefore | Fate::CrashAfter | Fate::Held(_)) => {
                    if fate == Fate::CrashAfter {
                        self.respond(&request);
                    }
                    if let Fate::Held(span) = fate {
                        self.held.push((self.api.now.plus(span), request));
                    }
                    self.restart();
                    *ended = Ended { wrote: true, crashed: true };
                    return None;
                }
            };
            let result = match &response {
                Response::Refused(refusal) => Err(refusal.code),
                Response::Object(_) | Response::Items(_) | Response::NoAnswer(_) => Ok(()),
            };
            ended.wrote |= is_write && result.is_ok();
            self.requests.push((request, result));
            executor.answer(response);
        }
    }

    /// The answer to an own write goes into the cache at once, and starts the passes that it concerns.
    fn learn(&mut self, request: &Request, response: &Response) {
        let (Some(target), Response::Object(object)) = (request.written(), response) else {
            return;
        };
        if request.changed_nothing(object) {
            return;
        }
        let said = self.world.relations(target).to_vec();
        if self.api.get(target).is_none() {
            // The answer does not tell at which version the object went.
            self.world.deleted(target, 0);
        } else if let Some(version) = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok())
        {
            let object = self.parsed.get(target, version, object);
            if !self.world.written(target.clone(), version, object) {
                return;
            }
        }
        self.due.extend(self.triggers.concerned(target, said.iter().chain(self.world.relations(target))));
    }

    fn respond(&mut self, request: &Request) -> Response {
        let before = request.written().and_then(|target| self.api.get(target)).cloned();
        let response = self.api.respond(request);
        self.hooks.answered(request, before.as_ref(), &response, self.api.now);
        response
    }
}

/// Objects that were parsed, so that the answer to a write and the event about it are parsed once.
#[derive(Default)]
struct Parsed(BTreeMap<ObjectKey, (u64, Object)>);

impl Parsed {
    fn get(&mut self, key: &ObjectKey, version: u64, value: &Value) -> Object {
        match self.0.get(key) {
            Some((known, object)) if *known == version => object.clone(),
            Some(_) | None => {
                let object = Object::parse(key.kind, value);
                self.0.insert(key.clone(), (version, object.clone()));
                object
            }
        }
    }
}

/// Takes a change over into what is known, and adds the passes that it concerns.
fn take_over(
    world: &mut World,
    parsed: &mut Parsed,
    triggers: &Triggers,
    change: &Change,
    due: &mut BTreeSet<ObjectKey>,
) {
    let Change { key, resource_version, at: _, object } = change;
    let said = world.relations(key).to_vec();
    if let Some(object) = object {
        let object = parsed.get(key, *resource_version, object);
        if !world.watched(key.clone(), *resource_version, object) {
            return;
        }
    } else {
        world.deleted(key, *resource_version);
    }
    due.extend(triggers.concerned(key, said.iter().chain(world.relations(key))));
}

/// What a pass over `key` would write, were `world` what is known.
pub fn plan(world: &World, key: &ObjectKey, settings: Settings, now: Time) -> Option<Plan> {
    let view = View::new(world);
    match pass::observe(&view, key, settings) {
        Observation::Complete(observed) => Some(pass::plan(&observed, now)),
        Observation::Gone | Observation::Malformed(_) => None,
    }
}

fn empty_world() -> World {
    let mut world = World::default();
    for kind in Kind::ALL {
        world.set_coverage(kind, Coverage::Cached);
    }
    world
}
