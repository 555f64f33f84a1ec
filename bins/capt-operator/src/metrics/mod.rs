//! What is measured, and the text that Prometheus reads.
//!
//! Counters move where things happen; what is a state of the cluster or of this process is read when
//! somebody scrapes. Every label has a bounded set of values: kinds, states, reasons, codes, never a
//! name of an object. It must not decide anything.

mod objects;
mod process;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::KINDS,
};
use capt_status::{
    State,
    machine::{Event, EventType, Timer},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};
use serde_json::Value;

use crate::{cache::Cache, scheduler::Waker};

/// How a pass ended; a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassOutcome {
    /// Nothing had to be written.
    Settled,
    /// Everything planned was written.
    Wrote,
    /// What was planned is held back, since too much was written in a row.
    Slowed,
    /// The view was stale.
    Stale,
    /// Something else is in the way.
    Blocked,
    /// The API server refused.
    Rejected,
    /// No answer.
    NoAnswer,
    /// The object is gone.
    Gone,
    /// The object does not parse.
    Malformed,
    /// Another operator has passes for the object.
    OutOfScope,
}

impl PassOutcome {
    const ALL: [Self; 10] = [
        Self::Settled,
        Self::Wrote,
        Self::Slowed,
        Self::Stale,
        Self::Blocked,
        Self::Rejected,
        Self::NoAnswer,
        Self::Gone,
        Self::Malformed,
        Self::OutOfScope,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Wrote => "wrote",
            Self::Slowed => "slowed",
            Self::Stale => "stale",
            Self::Blocked => "blocked",
            Self::Rejected => "rejected",
            Self::NoAnswer => "no_answer",
            Self::Gone => "gone",
            Self::Malformed => "malformed",
            Self::OutOfScope => "out_of_scope",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusWriteLabels {
    kind: &'static str,
    fields: &'static str,
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransitionLabels {
    kind: &'static str,
    from: &'static str,
    to: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    kind: &'static str,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    kind: &'static str,
    r#type: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeadlineLabels {
    kind: &'static str,
    deadline: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: &'static str,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

/// Fields of a status by what they tell; the groups of `capt_status_writes_total`.
const FIELD_GROUPS: [(&str, &[&str]); 9] = [
    ("conditions", &["conditions"]),
    ("state", &["state", "phase", "observedGeneration", "specHash"]),
    ("latches", &["ready", "initialized", "initialization", "vpcId", "secretsReady", "version", "versions", "applied"]),
    ("endpoint", &["endpoint"]),
    ("failure", &["failureReason", "failureMessage"]),
    ("progress", &["progress", "deadlines"]),
    ("recovery", &["health", "recovery"]),
    ("dependencies", &["dependencies"]),
    (
        "workspace",
        &[
            "workspaceTemplateStatus",
            "workspaceStatus",
            "vpcWorkspaceName",
            "workspaceName",
            "lastAppliedTime",
            "lastAppliedRevision",
            "failureDomains",
        ],
    ),
];

/// Reasons are a bounded set of ours; whatever else a status holds counts as this.
const LONGEST_REASON: usize = 64;

/// The last state of each object and since when.
type States = BTreeMap<ObjectKey, (State, Instant)>;

/// Everything that is measured.
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    pass_seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    status_writes: Family<StatusWriteLabels, Counter>,
    transitions: Family<TransitionLabels, Counter>,
    state_seconds: Family<StateLabels, Histogram, fn() -> Histogram>,
    events: Family<EventLabels, Counter>,
    deadlines_missed: Family<DeadlineLabels, Counter>,
    recovery_attempts: Family<KindLabel, Counter>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<VerbLabel, Histogram, fn() -> Histogram>,
    queue_seconds: Histogram,
    queue_depth: Gauge,
    passes_running: Gauge,
    leader: Gauge,
    rival_writes: Counter,
    held: Gauge,
    /// Why passes wait, if they do.
    rival: Mutex<Option<String>>,
    objects: objects::Objects,
    process: process::Process,
    states: Mutex<States>,
    /// Where the cluster is seen at present; absent before the first connection.
    sources: Mutex<Option<(Arc<Cache>, Waker)>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn fast() -> Histogram {
    // 1 ms to 16 s.
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

fn slow() -> Histogram {
    // 1 s to 9 hours.
    Histogram::new(exponential_buckets(1.0, 4.0, 9))
}

/// Whether an event with this reason tells of a deadline that passed.
fn is_deadline(reason: &str) -> bool {
    reason.ends_with("Timeout")
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("capt_build", "Version of this program", build);
        let capt = registry.sub_registry_with_prefix("capt");
        let mut metrics = Self {
            passes: Family::default(),
            pass_seconds: Family::new_with_constructor(fast as fn() -> Histogram),
            status_writes: Family::default(),
            transitions: Family::default(),
            state_seconds: Family::new_with_constructor(slow as fn() -> Histogram),
            events: Family::default(),
            deadlines_missed: Family::default(),
            recovery_attempts: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(fast as fn() -> Histogram),
            queue_seconds: fast(),
            queue_depth: Gauge::default(),
            passes_running: Gauge::default(),
            leader: Gauge::default(),
            rival_writes: Counter::default(),
            held: Gauge::default(),
            rival: Mutex::default(),
            objects: objects::Objects::register(capt),
            process: process::Process::default(),
            states: Mutex::default(),
            sources: Mutex::default(),
            registry: Registry::default(),
        };
        capt.register("passes", "Passes over objects", metrics.passes.clone());
        capt.register_with_unit("pass_duration", "How long passes took", Unit::Seconds, metrics.pass_seconds.clone());
        capt.register(
            "status_writes",
            "Writes of a status, once for each group of fields that changed",
            metrics.status_writes.clone(),
        );
        capt.register("state_transitions", "Changes of status.state", metrics.transitions.clone());
        capt.register_with_unit(
            "state_duration",
            "How long objects were in a state that they left",
            Unit::Seconds,
            metrics.state_seconds.clone(),
        );
        capt.register("events", "Events published about objects", metrics.events.clone());
        capt.register("deadlines_missed", "Deadlines that passed", metrics.deadlines_missed.clone());
        capt.register("recovery_attempts", "Recovery actions started", metrics.recovery_attempts.clone());
        capt.register(
            "api_requests",
            "Requests to the API server; code is none where there was no answer",
            metrics.requests.clone(),
        );
        capt.register_with_unit(
            "api_request_duration",
            "How long the API server took to begin its answer",
            Unit::Seconds,
            metrics.request_seconds.clone(),
        );
        capt.register_with_unit(
            "queue_latency",
            "How long due passes waited for their start",
            Unit::Seconds,
            metrics.queue_seconds.clone(),
        );
        capt.register(
            "queue_depth",
            "Passes that are due or have a time at which they are",
            metrics.queue_depth.clone(),
        );
        capt.register("passes_running", "Passes under way", metrics.passes_running.clone());
        capt.register("leader", "1 while this process may write", metrics.leader.clone());
        capt.register(
            "foreign_status_writes",
            "Updates of statuses of ours by other operators",
            metrics.rival_writes.clone(),
        );
        capt.register("held", "1 while nothing is reconciled because another operator writes", metrics.held.clone());
        metrics.process.register(&mut registry);
        metrics.registry = registry;
        metrics.begin();
        metrics
    }

    /// Counters whose labels are known begin with 0: an increase from nothing is none to Prometheus, and the first
    /// deadline that is missed counts.
    fn begin(&self) {
        for kind in [Kind::CaptCluster, Kind::CaptControlPlane].map(Kind::name) {
            for from in State::ALL {
                for to in from.successors().iter().filter(|to| **to != from) {
                    let labels = TransitionLabels { kind, from: from.as_str(), to: to.as_str() };
                    drop(self.transitions.get_or_create(&labels));
                }
            }
            for deadline in Timer::ALL.map(Timer::reason).into_iter().filter(|reason| is_deadline(reason)) {
                drop(self.deadlines_missed.get_or_create(&DeadlineLabels { kind, deadline }));
            }
            drop(self.recovery_attempts.get_or_create(&KindLabel { kind }));
        }
        for kind in KINDS.map(Kind::name) {
            for outcome in PassOutcome::ALL.map(PassOutcome::as_str) {
                drop(self.passes.get_or_create(&PassLabels { kind, outcome }));
            }
        }
    }

    /// A pass over an object of `kind` ended.
    pub fn pass(&self, kind: Kind, outcome: PassOutcome, took: Duration) {
        let kind = kind.name();
        self.passes.get_or_create(&PassLabels { kind, outcome: outcome.as_str() }).inc();
        self.pass_seconds.get_or_create(&KindLabel { kind }).observe(took.as_secs_f64());
    }

    /// A status was written: `before` is what was known of it.
    pub fn status_written(&self, kind: Kind, before: &Value, after: &Value) {
        let kind = kind.name();
        let conditions = after["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
        let reason = ready.and_then(|condition| condition["reason"].as_str()).unwrap_or_default();
        let reason = if reason.len() > LONGEST_REASON { "other" } else { reason };
        for (fields, names) in FIELD_GROUPS {
            if names.iter().any(|name| before.get(name) != after.get(name)) {
                self.status_writes.get_or_create(&StatusWriteLabels { kind, fields, reason: reason.to_owned() }).inc();
            }
        }
    }

    /// A pass found, or brought, the object into `state`. Returns in which it was before, if that was another.
    pub fn state(&self, object: &ObjectKey, state: State) -> Option<State> {
        let kind = object.kind.name();
        let now = Instant::now();
        let before = {
            let mut states = self.states();
            match states.get(object) {
                Some((known, _)) if *known == state => return None,
                Some(_) | None => states.insert(object.clone(), (state, now)),
            }
        };
        // A new process cannot tell since when an object has been in its state.
        let (from, since) = before?;
        let labels = TransitionLabels { kind, from: from.as_str(), to: state.as_str() };
        self.transitions.get_or_create(&labels).inc();
        let labels = StateLabels { kind, state: from.as_str() };
        self.state_seconds.get_or_create(&labels).observe(now.duration_since(since).as_secs_f64());
        Some(from)
    }

    /// The object is gone.
    pub fn gone(&self, object: &ObjectKey) {
        self.states().remove(object);
    }

    /// Events of a pass over an object of `kind`.
    pub fn events(&self, kind: Kind, events: &[Event]) {
        let kind = kind.name();
        for Event { type_, reason, note: _ } in events {
            let r#type = match type_ {
                EventType::Normal => "Normal",
                EventType::Warning => "Warning",
            };
            self.events.get_or_create(&EventLabels { kind, r#type, reason }).inc();
            if *reason == "RecoveryAttempt" {
                self.recovery_attempts.get_or_create(&KindLabel { kind }).inc();
            } else if is_deadline(reason) {
                self.deadlines_missed.get_or_create(&DeadlineLabels { kind, deadline: reason }).inc();
            }
        }
    }

    /// A request to the API server was answered with `code`, or not at all.
    pub fn request(&self, verb: &'static str, resource: &'static str, code: Option<u16>, took: Duration) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        self.requests.get_or_create(&RequestLabels { verb, resource, code }).inc();
        self.request_seconds.get_or_create(&VerbLabel { verb }).observe(took.as_secs_f64());
    }

    /// Whether another operator keeps passes from starting, and how many of its writes were seen in all.
    pub fn rival(&self, held: Option<String>, writes: u64) {
        self.held.set(i64::from(held.is_some()));
        self.rival_writes.inc_by(writes.saturating_sub(self.rival_writes.get()));
        *self.rival.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Why passes are kept from starting; `None` if they are not.
    pub fn rival_text(&self) -> Option<String> {
        self.rival.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A pass that was due started after `waited`.
    pub fn started(&self, waited: Duration) {
        self.queue_seconds.observe(waited.as_secs_f64());
    }

    /// Where the cluster is seen from now on.
    pub fn attach(&self, cache: Arc<Cache>, waker: Waker) {
        *self.sources.lock().unwrap_or_else(PoisonError::into_inner) = Some((cache, waker));
    }

    /// The cache of the present connection.
    pub fn cache(&self) -> Option<Arc<Cache>> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.as_ref().map(|(cache, _)| Arc::clone(cache))
    }

    /// Everything, in the OpenMetrics text format. `leader` says whether this process may write.
    pub fn text(&self, leader: bool) -> String {
        // One scrape at a time: what is read now replaces what was read before.
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        self.leader.set(i64::from(leader));
        if let Some((cache, waker)) = &*sources {
            let (waiting, running) = waker.load();
            self.queue_depth.set(i64::try_from(waiting).unwrap_or(i64::MAX));
            self.passes_running.set(i64::try_from(running).unwrap_or(i64::MAX));
            cache.inspect(|world, scope| self.objects.read(world, scope));
        }
        self.process.read();
        let mut text = String::new();
        // Writing to a string does not fail; whatever else does shows as a scrape that ends early.
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "cannot write the metrics");
        }
        text
    }

    fn states(&self) -> MutexGuard<'_, States> {
        // Each change is one insertion or removal.
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Type of gauges with fractions.
type Fraction = Gauge<f64, AtomicU64>;

/// Adds to a counter what `total` has grown by.
fn advance(counter: &Counter<f64, AtomicU64>, total: f64) {
    let by = total - counter.get();
    if by > 0.0 {
        counter.inc_by(by);
    }
}

#[cfg(test)]
mod tests;
