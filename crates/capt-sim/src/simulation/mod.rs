//! CAPT's passes over the simulated world, as the operator runs them: an event starts the passes
//! that have read what it is about, a pass goes through the same executor, and one that failed is run
//! again later and later.
//!
//! What goes wrong is decided by [`Hooks`]; this module only carries it out.

pub mod hooks;
mod passes;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::{Request, Response},
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
use hooks::{Hooks, Nothing};
use passes::Parsed;

/// Most rounds before a run counts as a loop.
const MAX_ROUNDS: usize = 500;

/// What the API server says instead of carrying a request out, if anything.
type Refuse = dyn FnMut(&Request) -> Option<Response>;

/// Requests that CAPT made, whatever became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All of them.
    pub requests: usize,
    /// Those that write.
    pub writes: usize,
}

/// A world with CAPT, core and the provider in it.
pub struct Simulation {
    /// The API server.
    pub api: Api,
    /// Every request that CAPT made, with how it was answered; none where [`Simulation::forgets`].
    pub requests: Vec<(Request, Result<(), u16>)>,
    /// How many there were.
    pub counts: Counts,
    /// Whether what is over is forgotten, so that a long life takes no more memory than a short one.
    pub forgets: bool,
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
    /// Up to which version CAPT has seen everything.
    seen: u64,
    /// The same of core and the provider.
    core_seen: u64,
    provider_seen: u64,
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

impl Simulation {
    /// A world in which Terraform puts out what `terraform` says of a Workspace.
    pub fn new(settings: Settings, terraform: impl Fn(&Value) -> Outputs + 'static) -> Self {
        Self {
            api: Api::default(),
            requests: Vec::new(),
            counts: Counts::default(),
            forgets: false,
            events: Vec::new(),
            provider: Provider::default(),
            core: Release::default(),
            lags: false,
            settings,
            budget: None,
            world: World::with_coverage(Coverage::Cached),
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
            if self.forgets {
                self.api.compact(self.seen.min(self.core_seen).min(self.provider_seen));
            }
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

    /// Core, over the Clusters that changed since it found nothing to do, and those whose objects did.
    fn core_goes_on(&mut self) -> bool {
        let reads = |key: &ObjectKey| matches!(key.kind, Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane);
        let changes = self.api.changes(self.core_seen).iter().filter(|change| reads(&change.key));
        // Of an object that is gone or was never adopted nobody knows whose it is.
        let of = |change: &Change| core::concerned(&change.key, change.object.as_deref()?);
        let concerned: Option<BTreeSet<ObjectKey>> = changes.map(of).collect();
        self.core_seen = self.api.version();
        match concerned {
            None => self.step_core(),
            Some(clusters) => core::step_those(&mut self.api, clusters, self.core),
        }
    }

    /// The provider, unless nothing that it reads has changed and no run has ended since.
    fn provider_goes_on(&mut self) -> bool {
        let reads = |key: &ObjectKey| matches!(key.kind, Kind::Workspace(_) | Kind::Secret);
        let has_ended = self.provider.next().is_some_and(|end| end <= self.api.now);
        if !has_ended && !self.api.changes(self.provider_seen).iter().any(|change| reads(&change.key)) {
            return false;
        }
        self.provider_seen = self.api.version();
        let moved = self.step_provider();
        if moved && self.api.version() == self.provider_seen {
            // A worker became free, and no change tells those that wait for one.
            self.terraform_differs();
        }
        moved
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
        self.hooks.restarts(self.api.version());
        self.world = World::with_coverage(Coverage::Cached);
        self.triggers = Triggers::default();
        self.due.clear();
        self.wakes.clear();
        self.failures.clear();
        self.late.clear();
        self.seen = 0;
    }

    /// A new process of CAPT that makes new Workspaces in another API.
    pub fn restart_with(&mut self, workspace_api: WorkspaceApi) {
        self.settings.workspace_api = workspace_api;
        self.restart();
    }

    /// A new process of the provider.
    pub fn crash_provider(&mut self) {
        self.provider.crash(&self.api);
        self.terraform_differs();
    }

    /// What a pass over `key` would write now, had everything been seen in another order.
    pub fn plan_shuffled(&self, key: &ObjectKey, order: u64) -> Option<Plan> {
        let mut world = World::with_coverage(Coverage::Cached);
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
}

/// What a pass over `key` would write, were `world` what is known.
pub fn plan(world: &World, key: &ObjectKey, settings: Settings, now: Time) -> Option<Plan> {
    let view = View::new(world);
    match pass::observe(&view, key, settings) {
        Observation::Complete(observed) => Some(pass::plan(&observed, now)),
        Observation::Gone | Observation::Malformed(_) => None,
    }
}
