//! The lease: of several operators that look at the same objects, one writes.
//!
//! ```text
//! machine (pure) <-- answers, watch -- keeper -- requests --> Lease
//!                                         \-- until when --> gate <-- may I? -- each write
//! ```
//!
//! [`machine`] decides, [`gate`] is what writers ask, and the keeper in here sends requests. It must
//! not know what is written under the lease.

pub mod gate;
pub mod machine;

use std::{fmt, time::Duration};

use futures::{StreamExt, stream};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher::watch_object},
};
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::causes::chain;
use gate::Gate;
use machine::{Loss, Machine, Record, Step, Terms};

/// Field manager of the lease.
const MANAGER: &str = "capt-operator";
/// A lease that does not say how long it lasts; what most controllers use.
const USUAL_DURATION: Duration = Duration::from_secs(15);
/// How long the hand-over may take; the lease expires by itself if it does not succeed.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(2);

/// Which lease, and on which terms.
#[derive(Debug, Clone)]
pub struct Options {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// How long things take.
    pub terms: Terms,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

/// How we stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Somebody else has the lease, or nobody can be asked.
    Candidate,
    /// We have it, or there is none to have.
    Leader,
    /// We had it. The process has to end.
    Lost(Loss),
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Candidate => f.write_str("candidate"),
            Self::Leader => f.write_str("leader"),
            Self::Lost(loss) => write!(f, "lost: {loss}"),
        }
    }
}

/// Our part in the lease, as long as it lives.
pub struct Leadership {
    gate: Gate,
    standing: watch::Receiver<Standing>,
    keeper: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Leadership {
    /// Without a lease: we lead, always.
    pub fn alone(clock: gate::Ticks) -> Self {
        let (_, standing) = watch::channel(Standing::Leader);
        Self { gate: Gate::open(clock), standing, keeper: None }
    }

    /// Starts to apply for the lease, and keeps it once we have it.
    pub fn apply(client: Client, options: &Options, clock: gate::Ticks) -> Self {
        let gate = Gate::shut(clock);
        let (publish, standing) = watch::channel(Standing::Candidate);
        let (stop, stopped) = oneshot::channel();
        let keeper = Keeper {
            api: Api::namespaced(client, &options.namespace),
            name: options.name.clone(),
            machine: Machine::new(identity(), options.terms),
            terms: options.terms,
            timeout: options.timeout,
            gate: gate.clone(),
            publish,
        };
        tracing::info!(
            identity = keeper.machine.identity(),
            lease = format!("{}/{}", options.namespace, options.name),
            "applies for the lease"
        );
        let task = tokio::spawn(keeper.run(stopped));
        Self { gate, standing, keeper: Some((stop, task)) }
    }

    /// What writers ask.
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// How we stand, now and later.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Hands the lease over, if we have it. No write may be under way any more.
    pub async fn hand_over(self) {
        self.gate.end_in(Duration::ZERO);
        if let Some((stop, task)) = self.keeper {
            // The keeper is gone if the lease was lost; then there is nothing to hand over.
            let _ = stop.send(());
            let _ = task.await;
        }
    }
}

/// Returns once we lead.
pub async fn gained(mut standing: watch::Receiver<Standing>) {
    if standing.wait_for(|standing| *standing == Standing::Leader).await.is_err() {
        // The keeper ended without us ever leading; whoever waits for the loss acts.
        std::future::pending::<()>().await;
    }
}

/// Returns once we had the lease and lost it.
pub async fn lost(mut standing: watch::Receiver<Standing>) -> Loss {
    loop {
        if let Standing::Lost(loss) = &*standing.borrow_and_update() {
            return loss.clone();
        }
        if standing.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A name that nobody had before: of this machine or pod, and of this process alone.
fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let nonce = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
    format!("{host}_{nonce:016x}")
}

/// Sends what the machine says.
struct Keeper {
    api: Api<Lease>,
    name: String,
    machine: Machine,
    terms: Terms,
    timeout: Duration,
    gate: Gate,
    publish: watch::Sender<Standing>,
}

impl Keeper {
    /// Until the lease is lost or `stopped` says to hand it over.
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            match self.machine.next(self.gate.now()) {
                Step::Wait(_) => tokio::select! {
                    _ = &mut stopped => break,
                    () = idle(&self.api, &self.name, &mut self.machine, &self.gate) => {}
                },
                Step::Lost(loss) => {
                    self.gate.lease(None);
                    tracing::error!(%loss, "this operator does not write any more");
                    self.publish.send_replace(Standing::Lost(loss));
                    return;
                }
                step @ (Step::Look | Step::Create | Step::Replace { .. }) => self.send(step).await,
            }
            if stopped.try_recv().is_ok() {
                break;
            }
        }
        self.hand_over().await;
    }

    async fn send(&mut self, step: Step) {
        let sent = self.gate.now();
        // An answer that comes after the lease is gone is worth nothing.
        let patience = self.machine.held_until().map_or(self.timeout, |until| until.saturating_sub(sent));
        let answer = timeout(patience.min(self.timeout), self.request(&step)).await;
        let now = self.gate.now();
        match answer {
            Err(_) => {
                tracing::warn!(lease = self.name, "no answer about the lease");
                self.machine.failed(now);
            }
            Ok(Ok(found)) => self.answered(&step, sent, found),
            Ok(Err(kube::Error::Api(status))) if step == Step::Look && status.code == 404 => {
                self.machine.seen(now, None);
            }
            Ok(Err(kube::Error::Api(status))) if step != Step::Look && matches!(status.code, 404 | 409) => {
                // A new namespace answers 404 to a creation for as long as it is not there.
                if status.code == 404 && step == Step::Create {
                    tracing::warn!(lease = self.name, message = status.message, "the lease cannot be made");
                    self.machine.failed(now);
                } else {
                    self.machine.refused();
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(lease = self.name, error = chain(&error), "the lease cannot be read or written");
                self.machine.failed(now);
            }
        }
    }

    fn answered(&mut self, step: &Step, sent: machine::Moment, lease: Lease) {
        let record = record(lease);
        match step {
            Step::Create | Step::Replace { .. } => {
                let led = self.machine.held_until().is_some();
                self.machine.written(sent, record);
                self.gate.lease(self.machine.held_until());
                if !led {
                    tracing::info!(lease = self.name, "holds the lease");
                    self.publish.send_replace(Standing::Leader);
                }
            }
            Step::Look | Step::Wait(_) | Step::Lost(_) => self.machine.seen(self.gate.now(), Some(record)),
        }
    }

    async fn request(&self, step: &Step) -> kube::Result<Lease> {
        let now = MicroTime(jiff::Timestamp::now());
        match step {
            Step::Create => {
                let lease = Lease {
                    metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                    spec: Some(LeaseSpec {
                        holder_identity: Some(self.machine.identity().to_owned()),
                        lease_duration_seconds: Some(self.seconds()),
                        lease_transitions: Some(0),
                        acquire_time: Some(now.clone()),
                        renew_time: Some(now),
                        ..LeaseSpec::default()
                    }),
                };
                let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
                self.api.create(&parameters, &lease).await
            }
            Step::Replace { version, takeover } => {
                let mut spec = json!({
                    "holderIdentity": self.machine.identity(),
                    "leaseDurationSeconds": self.seconds(),
                    "renewTime": now,
                });
                if let Some(transitions) = takeover {
                    spec["acquireTime"] = json!(now);
                    spec["leaseTransitions"] = json!(transitions);
                }
                self.patch(version, &spec).await
            }
            Step::Look | Step::Wait(_) | Step::Lost(_) => self.api.get(&self.name).await,
        }
    }

    /// Changes exactly this version of the lease; what others wrote into it stays.
    async fn patch(&self, version: &str, spec: &Value) -> kube::Result<Lease> {
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "spec": spec}));
        self.api
            .patch(
                &self.name,
                &PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() },
                &patch,
            )
            .await
    }

    fn seconds(&self) -> i32 {
        i32::try_from(self.terms.duration().as_secs()).unwrap_or(i32::MAX)
    }

    async fn hand_over(mut self) {
        let Some(version) = self.machine.release() else { return };
        self.gate.lease(None);
        let spec = json!({"holderIdentity": null, "renewTime": MicroTime(jiff::Timestamp::now())});
        match timeout(HAND_OVER_TIMEOUT, self.patch(&version, &spec)).await {
            Ok(Ok(_)) => tracing::info!(lease = self.name, "handed the lease over"),
            Ok(Err(error)) => {
                tracing::warn!(lease = self.name, error = chain(&error), "cannot hand the lease over: it expires");
            }
            Err(_) => tracing::warn!(lease = self.name, "cannot hand the lease over: it expires"),
        }
    }
}

/// Returns when there is something to do. A candidate follows the lease by a watch, so that it notices
/// a hand-over at once; a holder does not look, since its next renewal finds out.
async fn idle(api: &Api<Lease>, name: &str, machine: &mut Machine, gate: &Gate) {
    let states = match machine.held_until() {
        Some(_) => stream::pending().left_stream(),
        None => watch_object(api.clone(), name).default_backoff().right_stream(),
    };
    let mut states = std::pin::pin!(states);
    loop {
        let now = gate.now();
        let Step::Wait(until) = machine.next(now) else { return };
        tokio::select! {
            () = sleep(until.saturating_sub(now)) => {}
            Some(state) = states.next() => match state {
                Ok(lease) => machine.seen(gate.now(), lease.map(record)),
                // Without a watch a takeover takes longer, and nothing else.
                Err(error) => tracing::debug!(lease = name, error = chain(&error), "the watch of the lease failed"),
            },
        }
    }
}

fn record(lease: Lease) -> Record {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        duration: seconds.map_or(USUAL_DURATION, Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or_default(),
        version: lease.metadata.resource_version.unwrap_or_default(),
    }
}
