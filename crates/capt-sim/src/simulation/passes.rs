//! CAPT's side of a simulation: what watches deliver, passes, and their requests.

use std::collections::{BTreeMap, BTreeSet};

use capt_reconcile::{
    executor::{Effect, Executor, Outcome, Request, Response, Step},
    object::{Object, ObjectKey},
    pass::{self, Observation},
    plan::Plan,
    triggers::Triggers,
    world::{View, World},
};
use capt_status::Span;
use serde_json::Value;

use super::{
    Simulation,
    hooks::{Delivery, Fate},
};
use crate::api::Change;

/// Most times that CAPT is told of its own writes before it counts as restless.
const MAX_TURNS: usize = 50;

/// Longest wait after failures in seconds, as the operator's queue has it.
const LONGEST_WAIT: i64 = 300;

/// Longest wait after stale views in seconds.
const LONGEST_STALE: i64 = 10;

/// How a pass ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ended {
    pub(super) wrote: bool,
    pub(super) crashed: bool,
}

impl Simulation {
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

    /// Takes over what watches deliver; the keys of the passes that it concerns.
    pub(super) fn deliver(&mut self) -> BTreeSet<ObjectKey> {
        if self.lags {
            return BTreeSet::new();
        }
        let now = self.api.now;
        let mut due = std::mem::take(&mut self.due);
        for (_, change) in self.late.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            take_over(&mut self.world, &mut self.parsed, &self.triggers, &change, &mut due);
        }
        let from = std::mem::replace(&mut self.seen, self.api.version());
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

    pub(super) fn pass(&mut self, key: &ObjectKey) -> Ended {
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
            self.counts.requests += 1;
            self.counts.writes += usize::from(is_write);
            if !self.forgets {
                self.requests.push((request, result));
            }
            executor.answer(&response);
        }
    }

    /// The answer to an own write goes into the cache at once, and starts the passes that it concerns.
    fn learn(&mut self, request: &Request, response: &Response) {
        let (Some(target), Response::Object(object)) = (request.written(), response) else {
            return;
        };
        let said = self.world.relations(target).to_vec();
        match request.effect(object) {
            Effect::Nothing => return,
            Effect::Gone => self.world.deleted(target, 0),
            Effect::Stored => {
                let text = object["metadata"]["resourceVersion"].as_str();
                let Some(version) = text.and_then(|text| text.parse().ok()) else { return };
                let object = self.parsed.get(target, version, object);
                if !self.world.written(target.clone(), version, object) {
                    return;
                }
            }
        }
        self.due.extend(self.triggers.concerned(target, said.iter().chain(self.world.relations(target))));
    }

    fn respond(&mut self, request: &Request) -> Response {
        let before = request.written().and_then(|target| self.api.shared(target));
        let response = self.api.respond(request);
        self.hooks.answered(request, before.as_deref(), &response, self.api.now);
        response
    }
}

/// Objects that were parsed, so that the answer to a write and the event about it are parsed once.
#[derive(Default)]
pub(super) struct Parsed(BTreeMap<ObjectKey, (u64, Object)>);

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
