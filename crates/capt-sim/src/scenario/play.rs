//! Plays a scenario in the simulation, second by second where something happens.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use capt_reconcile::{
    cluster::mode::ClusterCrd,
    executor::{Effect, Request, Response},
    object::ObjectKey,
    pass::Settings,
    plan::{Event as Told, Plan},
    world::World,
};
use capt_status::{Span, Time};
use serde_json::{Value, json};

use super::{Behaviour, Deed, Event, Expectation, Process, Scenario, expect, terraform, timeline::Timeline};
use crate::{
    Api, Simulation,
    api::Change,
    core::Release,
    laws::{self, Violation},
    objects::Objects,
    simulation::hooks::{Delivery, Fate, Hooks},
};

/// When every scenario begins.
pub const BEGIN: Time = Time::from_unix(1_767_225_600);

/// What was played.
pub struct Played {
    /// The world at the end.
    pub simulation: Simulation,
    /// Expectations that did not come true, and worlds that never came to rest.
    pub failed: Vec<String>,
    /// Laws that were broken.
    pub violations: Vec<Violation>,
    /// What happened.
    pub timeline: Timeline,
}

/// Plays `scenario`; `hooks` say what goes wrong beside it.
pub fn play(scenario: &Scenario, hooks: impl Hooks + 'static) -> Played {
    let watch = Rc::new(RefCell::new(Watch::default()));
    let hooks = Watching { hooks, watch: Rc::clone(&watch), core: scenario.core };
    let behaviours = Rc::new(RefCell::new(scenario.terraform.clone()));
    // Whose CRD of Cluster it is tells CAPT that there may be none.
    let cluster_crd = if scenario.core == Release::Absent { ClusterCrd::Bare } else { ClusterCrd::default() };
    let settings = Settings { workspace_api: scenario.workspace_api, cluster_crd, ..Settings::default() };
    let used = Rc::clone(&behaviours);
    let mut simulation =
        Simulation::new(settings, move |workspace| terraform::run(&used.borrow(), workspace)).with_hooks(hooks);
    simulation.core = scenario.core;
    simulation.provider.workers = scenario.workers;
    simulation.api.now = BEGIN;
    for (key, object) in &scenario.stored {
        simulation.api.put(key, object.clone());
        simulation.provider.made_before(object);
    }
    for (key, object) in &scenario.objects {
        simulation.api.create(key, object.clone());
    }
    let mut player = Player { simulation, behaviours, failed: Vec::new() };
    let mut expected: Vec<&Expectation> = scenario.expect.iter().collect();
    expected.sort_by_key(|expectation| expectation.at.unwrap_or(scenario.until));
    let mut events = scenario.events.iter().peekable();
    for expectation in expected {
        let at = expectation.at.unwrap_or(scenario.until);
        while let Some(event) = events.next_if(|event| event.at <= at) {
            player.happens(event);
        }
        player.until(at);
        let watch = watch.borrow();
        player.failed.extend(expect::check(expectation, at, &player.simulation, &watch.writes));
    }
    for event in events {
        player.happens(event);
    }
    player.until(scenario.until);
    let Player { simulation, behaviours: _, failed } = player;
    let Watch { mut violations, writes, told } = watch.take();
    violations.extend(changes(&simulation.api));
    let timeline = Timeline { begin: BEGIN, writes, told };
    Played { simulation, failed, violations, timeline }
}

/// Laws that were broken from one version of an object to the next.
fn changes(api: &Api) -> Vec<Violation> {
    let mut last: BTreeMap<&ObjectKey, &Value> = BTreeMap::new();
    let mut violations = Vec::new();
    for Change { key, resource_version: _, at: _, object } in api.changes(0) {
        match object {
            Some(object) => {
                let before = last.insert(key, object).unwrap_or(&Value::Null);
                violations.extend(laws::of_change(key, before, object));
            }
            None => {
                last.remove(key);
            }
        }
    }
    violations
}

struct Player {
    simulation: Simulation,
    behaviours: Rc<RefCell<Vec<Behaviour>>>,
    failed: Vec<String>,
}

impl Player {
    /// Lets everything go on until `at` after the beginning.
    fn until(&mut self, at: Span) {
        let (end, now) = (BEGIN.plus(at), self.simulation.api.now);
        // What happens at the same moment happens before anybody has seen the first of it.
        if end <= now && at > Span::ZERO {
            return;
        }
        if !self.simulation.run_for(end.since(now)) {
            let text = format!("P1: it never comes to rest before {at}");
            if !self.failed.contains(&text) {
                self.failed.push(text);
            }
        }
    }

    fn happens(&mut self, event: &Event) {
        self.until(event.at);
        let now = self.simulation.api.now;
        let simulation = &mut self.simulation;
        change(&mut simulation.api, &event.deed);
        match &event.deed {
            Deed::Create(..) | Deed::Patch(..) | Deed::Delete(_) | Deed::Conditions(..) => {}
            Deed::Terraform(behaviour) => {
                behaves(&mut self.behaviours.borrow_mut(), behaviour);
                simulation.terraform_differs();
            }
            Deed::Restart(Process::Capt) => simulation.restart(),
            Deed::Restart(Process::Provider) => simulation.crash_provider(),
            Deed::RestartWith(api) => simulation.restart_with(*api),
            Deed::Clock(seconds) => {
                simulation.api.now = Time::from_unix(now.as_unix().saturating_add(*seconds));
            }
        }
    }
}

/// What somebody does to an object; what is no such deed changes nothing here.
pub fn change(objects: &mut impl Objects, deed: &Deed) {
    let now = objects.now();
    match deed {
        Deed::Create(key, object) => objects.create(key, object.clone()),
        Deed::Patch(key, body) => objects.edit(key, |object| json_patch::merge(object, body)),
        Deed::Delete(key) => objects.delete(key),
        Deed::Conditions(key, set) => objects.edit(key, |object| conditions(object, set, now)),
        Deed::Terraform(_) | Deed::Restart(_) | Deed::RestartWith(_) | Deed::Clock(_) => {}
    }
}

/// Terraform behaves like this from now on, and not as was said of the same Workspaces before.
pub fn behaves(behaviours: &mut Vec<Behaviour>, behaviour: &Behaviour) {
    behaviours.retain(|known| known.workspace != behaviour.workspace);
    behaviours.push(behaviour.clone());
}

/// Sets conditions by type.
fn conditions(object: &mut Value, set: &[Value], now: Time) {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in set {
        let mut condition = condition.clone();
        if condition["lastTransitionTime"].is_null() {
            condition["lastTransitionTime"] = json!(now);
        }
        conditions.retain(|known| known["type"] != condition["type"]);
        conditions.push(condition);
    }
    object["status"]["conditions"] = json!(conditions);
}

/// What was seen on the way.
#[derive(Default)]
pub(super) struct Watch {
    violations: Vec<Violation>,
    /// Writes that arrived.
    writes: Vec<super::timeline::Write>,
    /// Events, and what they are about.
    told: Vec<(Time, ObjectKey, Told)>,
}

/// Watches while others decide what goes wrong.
struct Watching<H> {
    hooks: H,
    watch: Rc<RefCell<Watch>>,
    core: Release,
}

impl<H: Hooks> Hooks for Watching<H> {
    fn clock(&mut self, pass: &ObjectKey, now: Time) -> Time {
        self.hooks.clock(pass, now)
    }

    fn sees(&mut self, pass: &ObjectKey, world: &World, api: &Api, now: Time) -> Option<World> {
        self.hooks.sees(pass, world, api, now)
    }

    fn planned(&mut self, world: &World, plan: &mut Plan, now: Time) -> bool {
        self.hooks.planned(world, plan, now)
    }

    fn fate(&mut self, request: &mut Request, now: Time) -> Fate {
        self.hooks.fate(request, now)
    }

    fn answered(&mut self, request: &Request, before: Option<&Value>, response: &Response, now: Time) {
        self.hooks.answered(request, before, response, now);
        if !request.is_write() {
            return;
        }
        let mut watch = self.watch.borrow_mut();
        if let Response::Object(answer) = response {
            let after = match request.effect(answer) {
                Effect::Gone => &Value::Null,
                Effect::Stored | Effect::Nothing => answer,
            };
            watch.violations.extend(laws::of_write(self.core, request, before.unwrap_or(&Value::Null), after));
        }
        watch.writes.push(super::timeline::Write::new(request, response, now));
    }

    fn published(&mut self, object: &ObjectKey, event: &Told, now: Time) {
        self.hooks.published(object, event, now);
        self.watch.borrow_mut().told.push((now, object.clone(), event.clone()));
    }

    fn restarts(&mut self, listed: u64) {
        self.hooks.restarts(listed);
    }

    fn delivers(&mut self, change: &Change, now: Time) -> Delivery {
        self.hooks.delivers(change, now)
    }
}
