//! `run`: connects, finds out what is served, and keeps passes going until it is told to stop.
//!
//! An API server that does not answer, or that lacks our CRDs, is waited for. When what is served
//! changes, everything starts afresh with new watches, since a view of half of the kinds would
//! mislead the passes.

use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::pass::{Features, Settings};
use capt_status::machine::Timeouts;
use kube::Client;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::sleep,
};

#[cfg(feature = "otlp")]
use crate::traces::{self, Traces};
use crate::{
    cache::Cache,
    cli::{Address, ClusterStatusChoice, LeaseArgs, RunArgs, ServerArgs, WorkspaceApiChoice},
    connection::{self, Connection, connect},
    discovery::Served,
    events::Events,
    health::Health,
    lease::{
        self, Leadership,
        gate::boot_time,
        machine::{Loss, Terms, TermsError},
    },
    leftovers, logging,
    metrics::Metrics,
    orphans,
    queue::Concurrency,
    requests::Requests,
    rival,
    scheduler::{self, Waker},
    scope::{Scope, Shard},
    serve::{self, Diagnostics, access::Access, tls::Tls},
    served_changes,
    startup::{self, Plans},
    traffic::Traffic,
    watches,
    worker::{Clock, Worker, system_clock},
};

/// First wait for an API server.
const PATIENCE_BASE: Duration = Duration::from_secs(1);
/// Longest wait for an API server.
const PATIENCE_MAX: Duration = Duration::from_mins(1);
/// How long passes under way may take after the signal to stop; the install files give a pod 10 seconds.
const GRACE: Duration = Duration::from_secs(8);
/// How long after the signal to stop a write may still start: enough for most passes to end as
/// planned, and little enough that a successor goes on within a second.
const LAST_WRITES: Duration = Duration::from_millis(300);

/// Why `run` does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No log.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// No export of traces.
    #[cfg(feature = "otlp")]
    #[error(transparent)]
    Traces(#[from] traces::Error),
    /// No client.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// Health or metrics cannot be served.
    #[error(transparent)]
    Serve(#[from] serve::Error),
    /// The terms of the lease contradict each other.
    #[error("cannot apply for a lease: {0}")]
    Terms(#[from] TermsError),
    /// Another operator may write now. A restart applies anew.
    #[error("{0}: this process ends so that only one operator writes")]
    Lost(Loss),
    /// The operating system refuses.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// What [`run`] is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which objects have passes.
    pub scope: Scope,
    /// API in which new Workspaces are made.
    pub workspace_api: WorkspaceApiChoice,
    /// Who publishes the status of Clusters.
    pub cluster_status: ClusterStatusChoice,
    /// What is done for provider objects.
    pub features: Features,
    /// How long each timer may run where no spec says otherwise.
    pub timeouts: Timeouts,
    /// Passes at the same time.
    pub concurrency: Concurrency,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// Tells the time.
    pub clock: Clock,
    /// The lease; absent if there is only one operator.
    pub lease: Option<lease::Options>,
    /// How many times faster that clock runs than ours; 1 everywhere but in a sandbox.
    pub pace: u32,
}

impl Options {
    /// Of an operator that takes care of everything and is the only one, in the time of `clock`.
    pub fn alone(clock: Clock) -> Self {
        Self {
            scope: Scope::default(),
            workspace_api: WorkspaceApiChoice::Auto,
            cluster_status: ClusterStatusChoice::Auto,
            features: Features::default(),
            timeouts: Timeouts::default(),
            concurrency: 8.into(),
            timeout: Duration::from_secs(10),
            clock,
            lease: None,
            pace: 1,
        }
    }
}

/// The command: sets up log, runtime and signals, and runs until SIGTERM or SIGINT.
pub fn command(args: RunArgs) -> Result<(), Error> {
    let (concurrency, timeouts) = (args.concurrency(), args.timers.timeouts());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = runtime.enter();
    #[cfg(feature = "otlp")]
    let traces = Traces::start(&args.traces)?;
    #[cfg(feature = "otlp")]
    let further = traces.as_ref().map(|traces| -> logging::Further { Box::new(traces.layer()) });
    #[cfg(not(feature = "otlp"))]
    let further = None;
    let level = logging::start(args.log_format, &args.log_level, further)?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let shutdown = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let metrics = Arc::new(Metrics::new());
        let traffic = Traffic::new(Arc::clone(&metrics));
        let connection = connect(args.kubeconfig, args.context, &traffic).await?;
        let scope = Scope {
            namespaces: args.namespaces.into_iter().filter(|name| !name.is_empty()).collect(),
            filter: args.watch_filter.filter(|value| !value.is_empty()),
            shard: args.shard,
        };
        let options = Options {
            scope: scope.clone(),
            workspace_api: args.workspace_api,
            cluster_status: args.cluster_status,
            features: args.features,
            timeouts,
            concurrency,
            timeout: args.write_timeout,
            clock: system_clock,
            lease: lease_options(args.lease, scope.shard, connection.client.default_namespace(), args.write_timeout)?,
            pace: 1,
        };
        let watching = Watching { metrics, traffic, servers: args.servers, level: Some(level) };
        run(&connection, &options, &watching, shutdown).await
    })
}

/// How others look at this process.
#[derive(Debug)]
pub struct Watching {
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// How requests go.
    pub traffic: Traffic,
    /// Where that is served.
    pub servers: ServerArgs,
    /// The log level; absent where nobody may change it.
    pub level: Option<logging::Level>,
}

impl Watching {
    /// Nothing is served.
    pub fn closed() -> Self {
        let metrics = Arc::new(Metrics::new());
        let servers = ServerArgs {
            health_address: Address(None),
            metrics_address: Address(None),
            metrics_cert_dir: None,
            insecure_metrics: false,
        };
        Self { traffic: Traffic::new(Arc::clone(&metrics)), metrics, servers, level: None }
    }

    /// Opens the servers; they end when what is returned is dropped.
    async fn serve(&self, client: &Client, leadership: &Leadership, timeout: Duration) -> Result<JoinSet<()>, Error> {
        let ServerArgs { health_address, metrics_address, metrics_cert_dir, insecure_metrics } = self.servers.clone();
        let mut servers = JoinSet::new();
        if let Some(address) = health_address.0 {
            let health = Health {
                metrics: Arc::clone(&self.metrics),
                traffic: self.traffic.clone(),
                standing: leadership.standing(),
            };
            servers.spawn(serve::health(address, health).await?);
        }
        if let Some(address) = metrics_address.0 {
            let secure = !insecure_metrics;
            let diagnostics = Diagnostics {
                metrics: Arc::clone(&self.metrics),
                gate: leadership.gate(),
                level: self.level.clone().filter(|_| secure),
                access: secure.then(|| Access::new(client.clone(), timeout)),
            };
            let tls = if secure { Some(Tls::new(metrics_cert_dir).map_err(serve::Error::from)?) } else { None };
            servers.spawn(serve::metrics(address, tls, diagnostics).await?);
        }
        Ok(servers)
    }
}

fn lease_options(
    args: LeaseArgs,
    shard: Option<Shard>,
    own_namespace: &str,
    timeout: Duration,
) -> Result<Option<lease::Options>, TermsError> {
    let LeaseArgs { leader_elect, namespace, name, duration, renew_deadline, retry_period } = args;
    if !leader_elect {
        return Ok(None);
    }
    let terms = Terms::new(duration, renew_deadline, retry_period)?;
    let namespace = namespace.unwrap_or_else(|| own_namespace.to_owned());
    let name = shard.map_or_else(|| name.clone(), |shard| shard.lease_name(&name));
    Ok(Some(lease::Options { namespace, name, terms, timeout }))
}

/// Keeps passes going until `shutdown` is ready, or until the lease is lost.
pub async fn run(
    connection: &Connection,
    options: &Options,
    watching: &Watching,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let leadership = match &options.lease {
        Some(lease) => Leadership::apply(connection.client.clone(), lease, boot_time),
        None => Leadership::alone(boot_time),
    };
    let _servers = watching.serve(&connection.client, &leadership, options.timeout).await?;
    let plans = Plans {
        namespaces: options.scope.namespaces.iter().cloned().collect(),
        lease: options.lease.as_ref().map(|lease| lease.namespace.clone()),
        metrics: watching.servers.metrics_address.0.is_some() && !watching.servers.insecure_metrics,
    };
    let mut shutdown = std::pin::pin!(shutdown);
    let end_of_lease = lease::lost(leadership.standing());
    let mut over = std::pin::pin!(async {
        tokio::select! {
            () = &mut shutdown => Ok(()),
            loss = end_of_lease => Err(Error::Lost(loss)),
        }
    });
    let mut told_leftovers = false;
    let result = loop {
        let served = tokio::select! {
            result = &mut over => break result,
            served = start_patiently(connection, &plans, options.timeout) => served,
        };
        if !told_leftovers {
            leftovers::tell(&connection.client, options.timeout).await;
            told_leftovers = true;
        }
        if let Some(result) = session(connection, options, watching, &served, &leadership, over.as_mut()).await {
            break result;
        }
        tracing::info!("what the API server serves has changed: starting afresh");
    };
    leadership.hand_over().await;
    tracing::info!("stopped");
    result
}

/// Checks until everything is right.
async fn start_patiently(connection: &Connection, plans: &Plans, timeout: Duration) -> Served {
    let mut wait = PATIENCE_BASE;
    loop {
        match startup::check(&connection.client, plans, timeout).await {
            Ok(served) => return served,
            Err(error) => {
                tracing::warn!(address = connection.address, next_try = ?wait, "not ready: {error}");
                sleep(wait).await;
                wait = wait.saturating_mul(2).min(PATIENCE_MAX);
            }
        }
    }
}

/// Runs passes over what `served` says, once we lead. Returns how it ended, or nothing to start afresh.
async fn session(
    connection: &Connection,
    options: &Options,
    watching: &Watching,
    served: &Served,
    leadership: &Leadership,
    over: Pin<&mut impl Future<Output = Result<(), Error>>>,
) -> Option<Result<(), Error>> {
    let Connection { client, address } = connection;
    let settings = Settings {
        workspace_api: match options.workspace_api {
            WorkspaceApiChoice::Auto => served.workspace_api(),
            WorkspaceApiChoice::Cluster => WorkspaceApi::Cluster,
            WorkspaceApiChoice::Namespaced => WorkspaceApi::Namespaced,
        },
        cluster_status: options.cluster_status.into(),
        cluster_crd: served.cluster_crd(),
        features: options.features,
        timeouts: options.timeouts,
    };
    let kinds: BTreeSet<_> = served.kinds().map(|(kind, _)| kind).collect();
    for kind in capt_reconcile::object::Kind::ALL.into_iter().filter(|kind| !kinds.contains(kind)) {
        tracing::warn!("{}.{} is not served: there are none until it is installed", kind.plural(), kind.group());
    }
    tracing::info!(
        address,
        scope = %options.scope,
        cluster = served.cluster_version(),
        workspaces = settings.workspace_api.group(),
        cluster_status = ?settings.cluster_status,
        cluster_crd = ?settings.cluster_crd,
        "connected"
    );
    let cache = Arc::new(Cache::new(&kinds, settings, options.scope.clone()));
    let waker = Waker::new(options.concurrency.clone());
    // Until it is known that nobody else writes.
    waker.hold(true);
    watching.traffic.forget_watches();
    watching.metrics.attach(Arc::clone(&cache), waker.clone());
    let gate = leadership.gate();
    let worker = Worker {
        cache: Arc::clone(&cache),
        waker: waker.clone(),
        requests: Requests::new(client.clone(), options.timeout, served.cluster_version(), gate.clone()),
        events: Events::new(client.clone(), options.timeout),
        metrics: Arc::clone(&watching.metrics),
        clock: options.clock,
        pace: options.pace,
    };
    // Dropped, and with it every watch ended, when this function returns.
    let mut watches = JoinSet::new();
    watches.spawn(watches::watch_all(
        client.clone(),
        served.clone(),
        options.scope.clone(),
        Arc::clone(&cache),
        waker.clone(),
    ));
    let watching_rivals =
        rival::keep_watch(Arc::clone(&cache), waker.clone(), Arc::clone(&watching.metrics), worker.events.clone());
    watches.spawn(watching_rivals);
    let changes = served_changes::wait(client.clone(), served.clone(), options.timeout);
    let mut ended = std::pin::pin!(async {
        tokio::select! {
            result = over => Some(result),
            () = changes => None,
        }
    });
    // The caches of a candidate are warm when it takes over; what happens until then waits in the queue.
    tokio::select! {
        result = &mut ended => return result,
        () = lease::gained(leadership.standing()) => {}
    }
    if options.scope.tells_orphans() {
        watches.spawn(orphans::tell(cache, worker.events.clone()));
    }
    let mut result = None;
    let stop = async {
        result = ended.await;
        if result.is_some() {
            gate.end_in(LAST_WRITES);
        }
    };
    let pass = |start, waited| {
        watching.metrics.started(waited);
        worker.clone().pass(start)
    };
    let left = scheduler::run(&waker, pass, stop, GRACE).await;
    if left > 0 {
        tracing::warn!(passes = left, "passes did not end in time");
    }
    result
}
