//! One pass: observe, plan, execute, publish.
//!
//! The decisions are capt-reconcile's; here are only the clock, the log and the order of things.

use std::{sync::Arc, time::Duration};

use capt_reconcile::{
    executor::{Executor, Outcome, Response, Step},
    object::ObjectKey,
    pass::{self, Observation},
    plan::{Action, Plan},
};
use capt_status::Time;

use crate::{cache::Cache, events::Events, queue::Verdict, requests, requests::Requests, scheduler::Waker, text::verb};

/// Tells the time, in whole seconds.
pub type Clock = fn() -> Time;

/// The time of this machine. Objects keep whole seconds only, so the fraction is cut off here.
pub fn system_clock() -> Time {
    jiff::Timestamp::now().into()
}

/// Carries out passes; cheap to clone.
#[derive(Clone)]
pub struct Worker {
    /// What is known of the cluster.
    pub cache: Arc<Cache>,
    /// Starts the passes that a write concerns.
    pub waker: Waker,
    /// Sends requests.
    pub requests: Requests,
    /// Publishes events.
    pub events: Events,
    /// Tells the time.
    pub clock: Clock,
}

impl Worker {
    /// One pass over `object`.
    pub async fn pass(self, object: ObjectKey) -> Verdict {
        let now = (self.clock)();
        let plan = match self.cache.observe(&object) {
            Observation::Complete(observed) => pass::plan(&observed, now),
            Observation::Gone => return Verdict::Settled { next: None },
            // Reported when it was read; an event on it starts the next pass.
            Observation::Malformed(_) => return Verdict::Settled { next: None },
        };
        let next = plan.next.map(|at| until(now, at));
        if plan.actions.is_empty() {
            tracing::debug!(%object, state = state(&plan), note = plan.note, "nothing to write");
            return Verdict::Settled { next };
        }
        match self.execute(&plan).await {
            Outcome::Applied => {
                self.publish(&plan).await;
                Verdict::Wrote { next }
            }
            Outcome::Conflict { action, refusal } => {
                tracing::debug!(%object, action = words(&plan, action), refused = refusal.message, "the view was stale");
                Verdict::Stale
            }
            Outcome::Blocked { action, by } => {
                tracing::info!(%object, action = words(&plan, action), %by, "waits: there is still something in the way");
                Verdict::Failed
            }
            Outcome::Rejected { action, refusal } => {
                let (code, reason) = (refusal.code, refusal.reason);
                tracing::warn!(%object, action = words(&plan, action), code, reason, message = refusal.message, "refused");
                Verdict::Failed
            }
            Outcome::NoAnswer { action, message } => {
                tracing::warn!(%object, action = words(&plan, action), message, "no answer");
                Verdict::Failed
            }
        }
    }

    async fn execute(&self, plan: &Plan) -> Outcome {
        let manager = requests::manager(plan.object.kind);
        let mut executor = Executor::new(plan);
        // The executor makes exactly one write for each action, in order.
        let mut actions = plan.actions.iter();
        loop {
            let request = match executor.next() {
                Step::Done(outcome) => return outcome,
                Step::Send(request) => request,
            };
            let response = self.requests.send(manager, &request).await;
            if request.is_write() {
                let action = actions.next();
                if let Response::Object(answer) = &response {
                    log_write(plan, action);
                    self.waker.wake(self.cache.answered(&request, answer.clone()));
                }
            }
            executor.answer(response);
        }
    }

    async fn publish(&self, plan: &Plan) {
        if !plan.events.is_empty() {
            self.events.publish(&plan.object, self.cache.uid(&plan.object), &plan.events).await;
        }
    }
}

/// How long to wait for the moment `at`. A moment that has passed is no reason to spin.
fn until(now: Time, at: Time) -> Duration {
    Duration::from_secs(u64::try_from(at.since(now).as_seconds()).unwrap_or_default().max(1))
}

fn log_write(plan: &Plan, action: Option<&Action>) {
    if let Some(action) = action {
        let (object, target) = (&plan.object, &action.target);
        tracing::info!(%object, state = state(plan), reason = action.reason, "{} {target}", verb(&action.op));
    }
}

fn state(plan: &Plan) -> &'static str {
    plan.state.map_or("", capt_status::State::as_str)
}

/// An action for the log, by index.
fn words(plan: &Plan, action: usize) -> String {
    plan.actions.get(action).map_or_else(String::new, |action| format!("{} {}", verb(&action.op), action.target))
}
