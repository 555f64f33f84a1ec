//! All faults at all points of a scenario: what the faultless run does says where they are.
//!
//! A fault that changes what a pass sees or what its clock shows, and after which the pass plans exactly
//! the same, leaves the run as it is: it is counted and not played.

use std::{cell::RefCell, rc::Rc};

use capt_reconcile::{executor::Request, pass::Settings, plan::Plan, world::World};
use capt_sim::{
    api::Change,
    scenario::{Scenario, play},
    simulation,
};
use capt_status::{Span, Time};

use crate::{
    faults::{self, At, Fault, Injecting, Injector, Look},
    oracle,
};

/// The clock of a pass is wrong by so many seconds.
const SHIFTS: [i64; 4] = [-600, -1, 1, 86_400];

/// Versions that a view is behind.
const LAGS: [usize; 3] = [1, 2, 3];

/// Codes of refusals that say nothing about the object.
const REFUSALS: [u16; 6] = [422, 429, 500, 503, 403, 413];

/// What can go wrong in a scenario, one thing at a time.
#[derive(Default)]
pub struct Points {
    /// Faults that may change the run.
    pub faults: Vec<At>,
    /// Faults of which it is certain that they do not.
    pub same: usize,
}

struct Probe {
    settings: Settings,
    points: Points,
    history: Vec<Change>,
}

impl Look for Probe {
    fn planned(&mut self, pass: usize, world: &World, plan: &mut Plan, now: Time) {
        self.points.faults.push(At { fault: Fault::Again, point: pass });
        let wait = |plan: &Plan, now: Time| plan.next.map(|at| at.since(now));
        let around = plan.next.map(|at| at.as_unix() - now.as_unix());
        let shifts = SHIFTS.into_iter().chain(around.into_iter().flat_map(|wait| [wait - 1, wait, wait + 1]));
        for shift in shifts {
            let wrong = Time::from_unix(now.as_unix() + shift);
            let other = simulation::plan(world, &plan.object, self.settings, wrong);
            let is_same = other.as_ref().is_some_and(|other| {
                other.actions == plan.actions && other.events == plan.events && wait(other, wrong) == wait(plan, now)
            });
            self.add(is_same, At { fault: Fault::Clock(shift), point: pass });
        }
        for (index, key) in faults::read_objects(world, &plan.object, self.settings).iter().enumerate() {
            for lag in LAGS {
                let Some(other) = faults::stale(world, &self.history, &plan.object, key, lag) else { continue };
                let other = simulation::plan(&other, &plan.object, self.settings, now);
                self.add(other.as_ref() == Some(&*plan), At { fault: Fault::Stale(index, lag), point: pass });
            }
        }
    }

    fn request(&mut self, number: usize, write: Option<usize>, request: &mut Request) {
        let mut add = |fault, point| self.points.faults.push(At { fault, point });
        for fault in [Fault::Lost, Fault::Outage] {
            add(fault, number);
        }
        // The executor treats these alike, so each request has its turn with one of them.
        add(Fault::Refused(REFUSALS[number % REFUSALS.len()], 0), number);
        let Some(write) = write else { return };
        add(Fault::Unanswered, number);
        for code in [409, 404] {
            add(Fault::Refused(code, 0), number);
        }
        if matches!(request, Request::Create { .. }) {
            add(Fault::Refused(409, 1), number);
        }
        // A second, a while, and when everything is over.
        for fault in [
            Fault::CrashBefore,
            Fault::CrashAfter,
            Fault::Held(1),
            Fault::Held(150),
            Fault::Held(oracle::AFTERWARDS.as_seconds() / 2),
        ] {
            add(fault, write);
        }
    }

    fn change(&mut self, number: usize, change: &Change) {
        // A process that starts anew is told everything again.
        if self.history.last().is_none_or(|last| last.resource_version < change.resource_version) {
            self.history.push(change.clone());
        }
        // The first list is one answer, and no pass begins before it is there.
        if change.at == play::BEGIN {
            return;
        }
        for fault in [Fault::Late(20), Fault::Late(300), Fault::Deaf(300), Fault::Twice] {
            self.points.faults.push(At { fault, point: number });
        }
    }
}

impl Probe {
    fn add(&mut self, is_same: bool, at: At) {
        if is_same {
            self.points.same += 1;
        } else {
            self.points.faults.push(at);
        }
    }
}

/// All faults at all points of `scenario`.
pub fn all(scenario: &Scenario) -> Points {
    let settings = faults::settings(scenario);
    let probe = Rc::new(RefCell::new(Probe { settings, points: Points::default(), history: Vec::new() }));
    let injector = Injector::default().looking(Rc::clone(&probe) as Rc<RefCell<dyn Look>>);
    play::play(scenario, Injecting { injector, settings });
    let mut probe = probe.borrow_mut();
    std::mem::take(&mut probe.points)
}

/// Numbers of the writes of `scenario`.
pub fn writes(points: &Points) -> Vec<usize> {
    points.faults.iter().filter(|at| at.fault == Fault::CrashBefore).map(|at| at.point).collect()
}

/// The scenario with time to heal at its end.
pub fn with_time(scenario: &Scenario) -> Scenario {
    Scenario { until: scenario.until.plus(oracle::AFTERWARDS), expect: Vec::new(), ..scenario.clone() }
}

/// Objects that can be missing at first, with the scenarios in which they come later or never.
pub fn missing(scenario: &Scenario) -> Vec<(String, Scenario, bool)> {
    use capt_sim::scenario::{Deed, Event};
    let deletes = scenario.events.iter().any(|event| matches!(event.deed, Deed::Delete(_)));
    if deletes {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (index, (key, object)) in scenario.objects.iter().enumerate() {
        let mut without = with_time(scenario);
        without.objects.remove(index);
        all.push((format!("never/{key}"), without.clone(), false));
        let at = Span::from_minutes(5);
        // What somebody does to it before then is lost, and the end is another one.
        let is_touched = scenario.events.iter().any(|event| {
            event.at <= at
                && match &event.deed {
                    Deed::Create(of, _) | Deed::Patch(of, _) | Deed::Delete(of) | Deed::Conditions(of, _) => of == key,
                    Deed::Terraform(_) | Deed::Restart(_) | Deed::RestartWith(_) | Deed::Clock(_) => false,
                }
        });
        without.events.insert(0, Event { at, deed: Deed::Create(key.clone(), object.clone()) });
        without.events.sort_by_key(|event| event.at);
        all.push((format!("later/{key}"), without, !is_touched));
    }
    all
}
