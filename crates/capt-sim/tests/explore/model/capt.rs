//! CAPT's passes and their requests, each by the real code, once for each input that it reads.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use capt_reconcile::{
    executor::{Executor, Outcome, Request, Response, Step as Next},
    pass::{self, Observation},
    world::{Coverage, Read, View, World},
};

use super::{Decision, Done, Model, Reading};
use crate::{
    state::{self, State},
    versions::{SLOTS, Slot, VersionId},
};

impl Model {
    pub(super) fn decide(&mut self, state: &State, slot: Slot, tick: u8) -> Option<Decision> {
        if usize::from(slot) >= SLOTS || self.cached(state, slot) == 0 {
            return None;
        }
        Some(self.look(state, slot, tick)).filter(|decision| decision.run != 0)
    }

    /// What a pass over `slot` decides on what the caches show.
    pub(super) fn look(&mut self, state: &State, slot: Slot, tick: u8) -> Decision {
        let known = self.passes.get(&(slot, tick)).into_iter().flatten();
        for (readings, decisions) in known {
            if let Some(decision) = decisions.get(&self.values(state, readings)) {
                return *decision;
            }
        }
        let mut world = World::with_coverage(Coverage::Cached);
        for (slot, key) in self.versions.slots() {
            let id = self.cached(state, slot);
            if id != 0 {
                world.watched(key.clone(), u64::from(id), self.versions.get(id).object.clone());
            }
        }
        let world = (self.config.defect.sees)(&world).unwrap_or(world);
        let view = View::new(&world);
        let key = self.versions.key(slot).clone();
        let observation = pass::observe(&view, &key, self.settings);
        let reads: BTreeSet<Read> = view.into_reads().into_iter().collect();
        let decision = match observation {
            Observation::Complete(observed) => {
                let mut plan = pass::plan(&observed, state::time(tick));
                (self.config.defect.plans)(&world, &mut plan, state::time(tick));
                let run =
                    if plan.actions.is_empty() { 0 } else { self.add_run(Executor::new(&plan).into_owned(), slot) };
                Decision { run, next: plan.next }
            }
            Observation::Gone => Decision { run: 0, next: None },
            Observation::Malformed(reason) => {
                self.checks.violations.push(format!("P1: {key} does not parse: {reason}"));
                Decision { run: 0, next: None }
            }
        };
        let readings: Vec<Reading> = reads
            .into_iter()
            .map(|read| match read {
                Read::Object(key) => Reading::Object(key),
                Read::List(kind, namespace) => Reading::List(kind, namespace),
                Read::Related(relation) => {
                    let (kind, namespace) = relation.among();
                    Reading::List(kind, namespace.map(str::to_owned))
                }
            })
            .collect();
        let values = self.values(state, &readings);
        let known = self.passes.entry((slot, tick)).or_default();
        if let Some((_, decisions)) = known.iter_mut().find(|(known, _)| *known == readings) {
            decisions.insert(values, decision);
        } else {
            known.push((readings, HashMap::from([(values, decision)])));
        }
        decision
    }

    fn values(&self, state: &State, readings: &[Reading]) -> Vec<VersionId> {
        let mut values = Vec::with_capacity(readings.len());
        for reading in readings {
            match reading {
                Reading::Object(key) => {
                    values.push(self.versions.known_slot(key).map_or(0, |slot| self.cached(state, slot)));
                }
                Reading::List(kind, namespace) => {
                    let slots = self.versions.slots_of(*kind, namespace.as_deref());
                    values.extend(slots.into_iter().map(|slot| self.cached(state, slot)).filter(|id| *id != 0));
                    values.push(VersionId::MAX);
                }
            }
        }
        values
    }

    pub(super) fn add_run(&mut self, executor: Executor<'static>, slot: Slot) -> u32 {
        self.runs.push((executor, slot));
        u32::try_from(self.runs.len()).unwrap()
    }

    /// Carries out `run` in `state`, up to a number of requests; the run that is left then, `None` if it
    /// is over before.
    pub(super) fn execute(&mut self, state: &mut State, mut run: u32, limit: Option<u8>) -> Option<u32> {
        let mut requests = 0;
        loop {
            if limit == Some(requests) {
                return Some(run);
            }
            let Done { run: next, write } = self.request(state, run);
            if let Some((slot, id)) = write {
                let (executor, pass) = &self.runs[run as usize - 1];
                if let Next::Send(mut request) = executor.next() {
                    (self.config.defect.sends)(&mut request);
                    let change = (state.live[usize::from(slot)], id);
                    self.checks.written_by_capt(&self.versions, &request, *pass, change);
                }
                self.write(state, &[(slot, id)]);
                // The answer to an own write goes into the cache at once.
                if let Some(lag) = &mut state.lag
                    && self.versions.key(slot).kind == self.versions.key(lag.kind_of).kind
                    && id != 0
                {
                    lag.cached[usize::from(slot)] = id;
                }
            }
            if next == 0 {
                return None;
            }
            run = next;
            requests += 1;
        }
    }

    fn request(&mut self, state: &State, run: u32) -> Done {
        let (executor, slot) = &self.runs[run as usize - 1];
        let slot = *slot;
        let mut request = match executor.next() {
            Next::Send(request) => request,
            Next::Done(_) => return Done { run: 0, write: None },
        };
        (self.config.defect.sends)(&mut request);
        let (concerned, born) = match &request {
            Request::List { kind, selector: _ } => (self.versions.slots_of(*kind, None), 0),
            Request::Create { target, body: _ } => {
                let slot = self.versions.slot(target);
                (vec![slot], state.born[usize::from(slot)])
            }
            Request::MergePatch { target, .. }
            | Request::JsonPatch { target, .. }
            | Request::ApplyStatus { target, .. }
            | Request::MergeStatus { target, .. }
            | Request::Delete { target, .. }
            | Request::Get { target } => (vec![self.versions.slot(target)], 0),
        };
        let mut values: Vec<VersionId> = vec![u32::from(state.tick), u32::from(born)];
        values.extend(concerned.iter().map(|slot| state.live[usize::from(*slot)]));
        if let Some(done) = self.requests.get(&(run, values.clone())) {
            return *done;
        }
        let mut executor = executor.clone();
        let mut api = self.api(state, &concerned);
        let mut response = api.respond(&request);
        let written = self.changed(&api, state);
        if let (Response::Object(object), Some((_, id))) = (&mut response, written.first())
            && *id != 0
        {
            *object = Arc::new(self.versions.get(*id).value.clone());
        }
        self.checks.answered(&request, &response);
        executor.answer(&response);
        let run_after = match executor.next() {
            Next::Send(_) => self.add_run(executor, slot),
            Next::Done(outcome) => {
                self.checks.ended(&outcome);
                if matches!(outcome, Outcome::Rejected { .. } | Outcome::NoAnswer { .. }) {
                    self.checks.violations.push(format!("P1: {outcome:?} to {request:?}"));
                }
                0
            }
        };
        let done = Done { run: run_after, write: written.first().copied() };
        self.requests.insert((run, values), done);
        done
    }
}
