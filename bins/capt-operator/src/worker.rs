//! One pass: observe, plan, execute, publish.
//!
//! The decisions are capt-reconcile's; here are only the clock, the log and the order of things.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use capt_reconcile::{
    executor::{Executor, Outcome, Response, Step},
    object::ObjectKey,
    pass::{self, Observation},
    plan::{Action, Event, EventType, Plan},
    reasons,
};
use capt_status::{
    Time,
    text::{MAX_MESSAGE, truncate},
};

use tracing::Instrument as _;

use crate::{
    cache::{Cache, Look},
    events::Events,
    metrics::{Metrics, PassOutcome},
    queue::{Start, Trigger, Verdict},
    requests,
    requests::Requests,
    scheduler::Waker,
    text::verb,
};

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
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// Tells the time.
    pub clock: Clock,
    /// How many times faster the clock runs than ours.
    pub pace: u32,
}

impl Worker {
    /// One pass. Everything that is logged meanwhile says over which object, in which version, and why.
    pub async fn pass(self, start: Start) -> Verdict {
        let Start { object, due: _, trigger, slowed_until } = start;
        let (kind, begin) = (object.kind, Instant::now());
        let (uid, version) = self.cache.identity(&object);
        // Of the highest level, so that what is logged says whom it is about whatever the log level is.
        let span = tracing::error_span!(
            "pass",
            kind = kind.name(),
            namespace = object.namespace.as_deref().unwrap_or_default(),
            name = object.name,
            uid,
            resource_version = version,
            %trigger,
        );
        let (outcome, verdict) = self.reconcile(object, slowed_until.is_some()).instrument(span).await;
        self.metrics.pass(kind, outcome, begin.elapsed());
        verdict
    }

    /// One pass; `slowed` if it may write nothing but a transition.
    async fn reconcile(&self, object: ObjectKey, slowed: bool) -> (PassOutcome, Verdict) {
        let now = (self.clock)();
        let (observation, unwatched) = match self.cache.observe(&object) {
            Look::InScope { observation, unwatched } => (observation, unwatched),
            Look::OutOfScope => {
                // What was measured of it here is measured elsewhere from now on.
                self.metrics.gone(&object);
                return (PassOutcome::OutOfScope, Verdict::Settled { next: None });
            }
        };
        self.tell_unwatched(&object, &unwatched).await;
        let plan = match observation {
            Observation::Complete(observed) => pass::plan(&observed, now),
            Observation::Gone => {
                self.metrics.gone(&object);
                return (PassOutcome::Gone, Verdict::Settled { next: None });
            }
            // Reported when it was read; an event on it starts the next pass.
            Observation::Malformed(_) => return (PassOutcome::Malformed, Verdict::Settled { next: None }),
        };
        let next = plan.next.map(|at| until(now, at) / self.pace.max(1));
        if plan.actions.is_empty() {
            tracing::debug!(%object, state = state(&plan), note = plan.note, "nothing to write");
            self.note_state(&plan);
            self.publish(&plan).await;
            return (PassOutcome::Settled, Verdict::Settled { next });
        }
        // A transition is told by an event.
        if slowed && plan.events.is_empty() {
            tracing::debug!(%object, note = plan.note, "never comes to rest; the write is held back");
            return (PassOutcome::Slowed, Verdict::Slowed);
        }
        match self.execute(&plan).await {
            Outcome::Applied => {
                self.note_state(&plan);
                self.publish(&plan).await;
                (PassOutcome::Wrote, Verdict::Wrote { next })
            }
            Outcome::Conflict { action, refusal } => {
                tracing::debug!(%object, action = words(&plan, action), refused = refusal.message, "the view was stale");
                (PassOutcome::Stale, Verdict::Stale)
            }
            Outcome::Blocked { action, by } => {
                tracing::debug!(%object, action = words(&plan, action), %by, "waits: there is still something in the way");
                (PassOutcome::Blocked, Verdict::Failed)
            }
            Outcome::Rejected { action, refusal } => {
                let (code, reason) = (refusal.code, refusal.reason);
                tracing::warn!(%object, action = words(&plan, action), code, reason, message = refusal.message, "refused");
                (PassOutcome::Rejected, Verdict::Failed)
            }
            Outcome::NoAnswer { action, message } => {
                tracing::warn!(%object, action = words(&plan, action), message, "no answer");
                (PassOutcome::NoAnswer, Verdict::Failed)
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
            let before = request.applied_status().map(|(target, _)| self.cache.status(target));
            let response = self.requests.send(manager, &request).await;
            if let (Some(before), Response::Object(answer)) = (before, &response) {
                self.metrics.status_written(plan.object.kind, &before, &answer["status"]);
            }
            executor.answer(&response);
            if let Some(written) = request.written() {
                let action = actions.next();
                if let Response::Object(answer) = response {
                    log_write(plan, action);
                    let answer = Arc::unwrap_or_clone(answer);
                    self.waker.wake(self.cache.answered(&request, answer), Trigger::Write(written.kind));
                }
            }
        }
    }

    /// Says that the object refers to something of which nothing is known here.
    async fn tell_unwatched(&self, object: &ObjectKey, unwatched: &BTreeSet<ObjectKey>) {
        if unwatched.is_empty() {
            return;
        }
        let names: Vec<String> = unwatched.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        tracing::warn!(%object, unwatched = names, "refers to namespaces that are not watched here");
        let note = truncate(
            &format!("nothing is known of {names}: not in a namespace that this operator watches (--namespace)"),
            MAX_MESSAGE,
        );
        let event = Event { type_: EventType::Warning, reason: reasons::NOT_WATCHED, note };
        self.events.publish(object, self.cache.uid(object), &[event]).await;
    }

    fn note_state(&self, plan: &Plan) {
        if let Some(state) = plan.state
            && let Some(before) = self.metrics.state(&plan.object, state)
        {
            tracing::info!(from = before.as_str(), to = state.as_str(), note = plan.note, "the state changed");
        }
    }

    async fn publish(&self, plan: &Plan) {
        self.metrics.events(plan.object.kind, &plan.events);
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
        tracing::debug!(%object, state = state(plan), reason = action.reason, "{} {target}", verb(&action.op));
    }
}

fn state(plan: &Plan) -> &'static str {
    plan.state.map_or("", capt_status::State::as_str)
}

/// An action for the log, by index.
fn words(plan: &Plan, action: usize) -> String {
    plan.actions.get(action).map_or_else(String::new, |action| format!("{} {}", verb(&action.op), action.target))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Mutex,
            atomic::{AtomicU16, Ordering},
        },
        time::Duration,
    };

    use capt_reconcile::{object::Kind, pass::Settings};
    use http_body_util::BodyExt;
    use kube::{Client, client::Body};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        keep,
        lease::gate::{Gate, boot_time},
        scope::Scope,
    };

    /// An API server that takes every write as it is, or answers `code` to all of them.
    struct Server {
        code: AtomicU16,
        requests: Mutex<Vec<(String, Value)>>,
    }

    impl Server {
        fn client(self: &Arc<Self>) -> Client {
            let server = Arc::clone(self);
            let service = tower::service_fn(move |request: http::Request<Body>| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(server.answer(request).await) }
            });
            Client::new(service, "default")
        }

        async fn answer(&self, request: http::Request<Body>) -> http::Response<Body> {
            let (parts, body) = request.into_parts();
            let mut body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or_default();
            let line = format!("{} {}", parts.method, parts.uri.path());
            self.requests.lock().unwrap().push((line, body.clone()));
            let code = self.code.load(Ordering::Relaxed);
            if code == 200 {
                let status = body.get_mut("status").map(Value::take).unwrap_or_default();
                body = stored();
                body["status"] = status;
                body["metadata"]["resourceVersion"] = json!("9");
            } else {
                body =
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": code});
            }
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            http::Response::builder().status(code).body(body).unwrap()
        }

        fn requests(&self) -> Vec<(String, Value)> {
            std::mem::take(&mut *self.requests.lock().unwrap())
        }
    }

    fn stored() -> Value {
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
            "metadata": {"name": "demo", "namespace": "ns", "uid": "u", "resourceVersion": "5", "generation": 1},
            "spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}},
        })
    }

    fn key() -> ObjectKey {
        ObjectKey::new(Kind::CaptCluster, "ns", "demo")
    }

    fn start() -> Start {
        let due = tokio::time::Instant::now();
        Start { object: key(), due, trigger: Trigger::Event(Kind::CaptCluster), slowed_until: None }
    }

    fn worker(code: u16) -> (Worker, Arc<Server>) {
        scoped(code, Scope::default())
    }

    fn scoped(code: u16, scope: Scope) -> (Worker, Arc<Server>) {
        let server = Arc::new(Server { code: code.into(), requests: Mutex::default() });
        let kinds = BTreeSet::from(Kind::ALL);
        let cache = Arc::new(Cache::new(&kinds, Settings::default(), scope));
        cache.applied(keep::from_value(Kind::CaptCluster, stored()));
        for kind in kinds {
            cache.listed(kind, None, &BTreeSet::from([key()]));
        }
        let timeout = Duration::from_secs(10);
        let worker = Worker {
            cache,
            waker: Waker::new(1),
            requests: Requests::new(server.client(), timeout, "v1beta2", Gate::open(boot_time)),
            events: Events::new(server.client(), timeout),
            metrics: Arc::new(Metrics::new()),
            clock: || Time::from_unix(1_767_225_600),
            pace: 1,
        };
        (worker, server)
    }

    #[tokio::test]
    async fn a_pass_writes_what_it_planned_and_the_next_one_sees_it_without_a_watch() {
        let (worker, server) = worker(200);
        assert!(matches!(worker.clone().pass(start()).await, Verdict::Wrote { .. }));
        let requests = server.requests();
        let [(line, body)] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(line, "PATCH /apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/captclusters/demo/status");
        assert_eq!((&body["metadata"]["resourceVersion"], &body["status"]["state"]), (&json!("5"), &json!("Pending")));
        assert!(matches!(worker.pass(start()).await, Verdict::Settled { .. }), "it is at rest");
        assert!(server.requests().is_empty());
    }

    #[tokio::test]
    async fn what_the_api_server_says_decides_when_the_next_pass_is() {
        for (code, verdict) in
            [(409, Verdict::Stale), (404, Verdict::Stale), (403, Verdict::Failed), (500, Verdict::Failed)]
        {
            let (worker, server) = worker(code);
            assert_eq!(worker.pass(start()).await, verdict, "{code}");
            assert_eq!(server.requests().len(), 1, "a write is sent once");
        }
    }

    #[tokio::test]
    async fn while_it_is_slowed_down_only_a_transition_is_written() {
        let slowed = || Start { slowed_until: Some(tokio::time::Instant::now() + Duration::from_mins(1)), ..start() };
        let (held, server) = worker(200);
        assert_eq!(held.pass(slowed()).await, Verdict::Slowed);
        assert!(server.requests().is_empty(), "that it waits for its Cluster can be told later");
        let (told, server) = worker(200);
        let mut failed = stored();
        failed["metadata"]["resourceVersion"] = json!("6");
        failed["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "c"}]);
        failed["spec"] = json!({"region": "eu-west-1"});
        told.cache.applied(keep::from_value(Kind::CaptCluster, failed));
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "demo", "namespace": "ns", "uid": "c", "resourceVersion": "7"}, "spec": {}});
        told.cache.applied(keep::from_value(Kind::Cluster, cluster));
        assert!(matches!(told.pass(slowed()).await, Verdict::Wrote { .. }));
        let requests = server.requests();
        let states: Vec<&Value> = requests.iter().filter_map(|(_, body)| body.pointer("/status/state")).collect();
        assert_eq!(states, [&json!("Failed")], "{requests:#?}");
    }

    #[tokio::test]
    async fn an_object_that_is_gone_has_no_pass() {
        let (worker, server) = worker(200);
        worker.cache.deleted(&key(), 6);
        assert_eq!(worker.pass(start()).await, Verdict::Settled { next: None });
        assert!(server.requests().is_empty());
    }

    #[tokio::test]
    async fn an_object_of_another_operator_is_not_touched() {
        for (filter, shard) in [(Some("blue".to_owned()), None), (None, Some("0/2")), (None, Some("1/2"))] {
            let shard = shard.map(|text| text.parse().unwrap());
            let is_ours = shard.is_some_and(|shard: crate::scope::Shard| shard.holds("u"));
            let (worker, server) = scoped(200, Scope { filter, shard, ..Scope::default() });
            let verdict = worker.pass(start()).await;
            assert_eq!(verdict == Verdict::Settled { next: None }, !is_ours, "{shard:?}");
            assert_eq!(server.requests().len(), usize::from(is_ours), "{shard:?}");
        }
    }

    #[test]
    fn a_moment_that_has_passed_is_no_reason_to_spin() {
        let at = Time::from_unix;
        assert_eq!(until(at(100), at(160)), Duration::from_mins(1));
        assert_eq!(until(at(100), at(90)), Duration::from_secs(1));
    }
}
