//! Everything that can happen in a state, by the real code: CAPT's passes and its executor, and the
//! simulator's API server, core and provider. Each is run once for each input that it reads and
//! looked up ever after.

mod capt;
mod others;

use std::collections::HashMap;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::{Executor, Request},
    object::{Kind, ObjectKey},
    pass::{KINDS, Settings},
    plan::Plan,
    world::World,
};
use capt_sim::Api;
use capt_status::Time;
use serde_json::{Value, json};

use crate::{
    checks::Checks,
    common,
    deeds::Deed,
    state::{self, Lag, State, Terraform},
    versions::{SLOTS, Slot, VersionId, Versions},
};

/// Something that can happen in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A pass over the object, to its end.
    Pass(Slot),
    /// A pass over the object that is held up before this request.
    Hold(Slot, u8),
    /// The held pass goes on to its end.
    Resume,
    /// The held pass is lost: a crash, or a request that failed.
    Lose,
    /// Core looks at the Cluster.
    Core(Slot),
    /// The provider looks at the Workspace.
    Provider(Slot),
    /// The garbage collector finds an object whose owners are gone.
    Collect(Slot),
    /// A deed from outside.
    Deed(u8),
    /// The watch of the kind of this slot delivers nothing for now.
    Lag(Slot),
    /// It delivers everything.
    CatchUp,
    /// Time passes.
    Tick,
}

/// What a pass reads: the slots of objects, and of lists.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Reading {
    Object(ObjectKey),
    List(Kind, Option<String>),
}

/// What a pass decides.
#[derive(Debug, Clone, Copy)]
struct Decision {
    /// Number of its executor; 0 if there is nothing to write.
    run: u32,
    next: Option<Time>,
}

/// What one request does.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// The executor after it; 0 if the pass is over.
    run: u32,
    write: Option<(Slot, VersionId)>,
}

/// What passes that read these decided, by what they found.
type Known = (Vec<Reading>, HashMap<Vec<VersionId>, Decision>);

type Writes = Vec<(Slot, VersionId)>;

/// A defect, put into what passes see, plan or send.
#[derive(Clone, Copy)]
pub struct Defect {
    pub sees: fn(&World) -> Option<World>,
    pub plans: fn(&World, &mut Plan, Time),
    pub sends: fn(&mut Request),
}

impl Defect {
    pub const NONE: Self = Self { sees: |_| None, plans: |_, _, _| {}, sends: |_| {} };
}

/// Which world is explored.
pub struct Config {
    pub defect: Defect,
    pub api: WorkspaceApi,
    pub files: &'static [&'static str],
    /// Merged into the objects before they are made.
    pub edits: Vec<(ObjectKey, Value)>,
    pub deeds: Vec<Deed>,
    pub holds: u8,
    pub lags: u8,
    pub ticks: u8,
    /// Whether it can be explored with more that goes wrong, in ten gigabytes.
    pub grows: bool,
}

/// A cluster with all its templates.
const FILES: &[&str] = &["vpc-template.yaml", "eks-template.yaml", "kubeconfig-template.yaml", "cluster.yaml"];

impl Config {
    /// A whole cluster to which `deeds` may happen, and nothing else.
    pub fn of(deeds: Vec<Deed>) -> Self {
        Self {
            defect: Defect::NONE,
            api: WorkspaceApi::Cluster,
            files: FILES,
            edits: Vec::new(),
            deeds,
            holds: 0,
            lags: 0,
            ticks: 0,
            grows: true,
        }
    }
}

/// The world's laws, and what was looked up so far.
pub struct Model {
    pub versions: Versions,
    pub config: Config,
    pub checks: Checks,
    settings: Settings,
    runs: Vec<(Executor<'static>, Slot)>,
    /// By object and time.
    passes: HashMap<(Slot, u8), Vec<Known>>,
    requests: HashMap<(u32, Vec<VersionId>), Done>,
    cores: HashMap<(u8, Vec<VersionId>), Writes>,
    providers: HashMap<(u8, u16, u8, VersionId, VersionId), Writes>,
    /// By number of the deed, which is [`COLLECT`] for the garbage collector.
    outside: HashMap<(u8, u8, VersionId), VersionId>,
}

/// Stands for the garbage collector among the deeds.
const COLLECT: u8 = u8::MAX;

impl Model {
    pub fn new(config: Config) -> (Self, State) {
        #[allow(clippy::needless_update)] // what else there is to set stays as it is
        let settings = Settings { workspace_api: config.api, ..Settings::default() };
        let mut model = Self {
            versions: Versions::default(),
            checks: Checks::default(),
            settings,
            // Number 0 is none.
            runs: Vec::new(),
            passes: HashMap::new(),
            requests: HashMap::new(),
            cores: HashMap::new(),
            providers: HashMap::new(),
            outside: HashMap::new(),
            config,
        };
        let mut state = State {
            live: [0; SLOTS],
            born: [0; SLOTS],
            lag: None,
            held: 0,
            tick: 0,
            holds: model.config.holds,
            lags: model.config.lags,
            ticks: model.config.ticks,
            deeds: 0,
            terraform: [Terraform::default(); SLOTS],
        };
        let objects: Vec<Value> = model.config.files.iter().flat_map(|file| common::documents(file)).collect();
        for mut object in objects {
            let group = object["apiVersion"].as_str().unwrap().split_once('/').unwrap().0;
            let kind = Kind::find(group, object["kind"].as_str().unwrap()).unwrap();
            let key = ObjectKey::new(kind, "default", object["metadata"]["name"].as_str().unwrap());
            for (edited, edit) in &model.config.edits {
                if *edited == key {
                    json_patch::merge(&mut object, edit);
                }
            }
            let slot = model.versions.slot(&key);
            let mut api = Api::default();
            api.now = state::time(0);
            api.create(&key, object);
            let written = model.changed(&api, &state);
            model.write(&mut state, &written);
            assert_ne!(state.live[usize::from(slot)], 0);
        }
        (model, state)
    }

    /// Everything that can happen in `state` and changes it.
    pub fn steps(&mut self, state: &State) -> Vec<(Step, State)> {
        let mut next = Vec::new();
        for slot in self.ours(state) {
            if let Some(after) = self.run(state, Step::Pass(slot)) {
                next.push((Step::Pass(slot), after));
                if state.holds > 0 && state.held == 0 {
                    for requests in 0..u8::MAX {
                        let Some(after) = self.run(state, Step::Hold(slot, requests)) else { break };
                        next.push((Step::Hold(slot, requests), after));
                    }
                }
            }
        }
        let mut others: Vec<Step> = vec![Step::Resume, Step::Lose, Step::CatchUp, Step::Tick];
        for slot in 0..u8::try_from(SLOTS).unwrap() {
            others.extend([Step::Core(slot), Step::Provider(slot), Step::Collect(slot), Step::Lag(slot)]);
        }
        others.extend((0..self.config.deeds.len()).map(|deed| Step::Deed(u8::try_from(deed).unwrap())));
        next.extend(others.into_iter().filter_map(|step| Some((step, self.run(state, step)?))));
        next
    }

    /// What `step` makes of `state`; `None` if it cannot happen or changes nothing.
    pub fn run(&mut self, state: &State, step: Step) -> Option<State> {
        let mut after = state.clone();
        match step {
            Step::Pass(slot) => {
                let Decision { run, next: _ } = self.decide(state, slot, state.tick)?;
                self.execute(&mut after, run, None);
            }
            Step::Hold(slot, requests) => {
                let Decision { run, next: _ } = self.decide(state, slot, state.tick)?;
                after.holds -= 1;
                after.held = self.execute(&mut after, run, Some(requests))?;
            }
            Step::Resume => {
                if after.held == 0 {
                    return None;
                }
                let run = std::mem::take(&mut after.held);
                self.execute(&mut after, run, None);
            }
            Step::Lose => {
                if after.held == 0 {
                    return None;
                }
                after.held = 0;
            }
            Step::Core(slot) => {
                let writes = self.core(state, slot)?;
                self.write(&mut after, &writes);
            }
            Step::Provider(slot) => self.provider(&mut after, slot)?,
            Step::Collect(slot) => {
                if !self.is_orphan(state, slot) {
                    return None;
                }
                let key = self.versions.key(slot).clone();
                self.outside(&mut after, COLLECT, &Deed::Delete(key))?;
            }
            Step::Deed(deed) => {
                let index = usize::from(deed);
                if state.did(index) {
                    return None;
                }
                after.deeds |= 1 << deed;
                let what = self.config.deeds[index].clone();
                self.outside(&mut after, deed, &what)?;
            }
            Step::Lag(slot) => {
                let first = self.versions.slots().find(|(_, key)| key.kind == self.kind_of(slot).unwrap_or(key.kind));
                if after.lag.is_some() || after.lags == 0 || first.map(|(first, _)| first) != Some(slot) {
                    return None;
                }
                after.lags -= 1;
                after.lag = Some(Box::new(Lag { kind_of: slot, cached: state.live }));
            }
            Step::CatchUp => {
                after.lag.take()?;
            }
            Step::Tick => {
                after.ticks = after.ticks.checked_sub(1)?;
                after.tick += 1;
            }
        }
        (after != *state).then_some(after)
    }

    /// When the passes ask to be run again, the earliest.
    pub fn wake(&mut self, state: &State) -> Option<Time> {
        let now = state::time(state.tick);
        let slots = self.ours(state);
        slots.into_iter().filter_map(|slot| self.look(state, slot, state.tick).next).filter(|at| *at > now).min()
    }

    /// The first request that a pass over `slot` would make if it were run at `tick`, as text; empty if
    /// there is none.
    pub fn would_write(&mut self, state: &State, slot: Slot, tick: u8) -> String {
        let Some(decision) = self.decide(state, slot, tick) else { return String::new() };
        format!("{:?}", self.runs[decision.run as usize - 1].0.next())
    }

    /// The objects that have passes.
    pub fn ours(&self, state: &State) -> Vec<Slot> {
        let slots = self.versions.slots();
        slots
            .filter(|(slot, key)| KINDS.contains(&key.kind) && self.cached(state, *slot) != 0)
            .map(|(slot, _)| slot)
            .collect()
    }

    /// The object in `slot`, as it is.
    pub fn object(&self, state: &State, slot: Slot) -> Option<&Value> {
        match state.live[usize::from(slot)] {
            0 => None,
            id => Some(&self.versions.get(id).value),
        }
    }

    fn kind_of(&self, slot: Slot) -> Option<Kind> {
        self.versions.slots().find(|(known, _)| *known == slot).map(|(_, key)| key.kind)
    }

    fn cached(&self, state: &State, slot: Slot) -> VersionId {
        state.cached(slot, |slot| match &state.lag {
            Some(lag) => self.versions.key(slot).kind == self.versions.key(lag.kind_of).kind,
            None => false,
        })
    }

    /// An API server with the objects in `slots` and nothing else.
    fn api(&self, state: &State, slots: &[Slot]) -> Api {
        let mut api = Api::default();
        api.now = state::time(state.tick);
        for slot in slots {
            if let Some(object) = self.object(state, *slot) {
                api.restore(self.versions.key(*slot), object.clone());
            }
        }
        api
    }

    /// What was written to `api`, last content of each object.
    fn changed(&mut self, api: &Api, state: &State) -> Writes {
        let mut writes = Writes::new();
        for change in api.changes(0) {
            let slot = self.versions.slot(&change.key);
            let id = match &change.object {
                None => 0,
                Some(object) => {
                    let mut object = Value::clone(object);
                    if self.object(state, slot).is_none() {
                        let born = state.born[usize::from(slot)] + 1;
                        object["metadata"]["uid"] = json!(format!("{}#{born}", change.key));
                    }
                    self.versions.intern(&change.key, object)
                }
            };
            writes.retain(|(written, _)| *written != slot);
            if id != state.live[usize::from(slot)] {
                writes.push((slot, id));
            }
        }
        writes
    }

    fn write(&mut self, state: &mut State, writes: &[(Slot, VersionId)]) {
        for (slot, id) in writes {
            let index = usize::from(*slot);
            if state.live[index] == 0 {
                state.born[index] += 1;
            }
            self.checks.written(&self.versions, *slot, state.live[index], *id);
            state.live[index] = *id;
        }
    }
}
