//! `run`: connects, finds out what is served, and keeps passes going until it is told to stop.
//!
//! An API server that does not answer, or that lacks our CRDs, is waited for. When what is served
//! changes, everything starts afresh with new watches, since a view of half of the kinds would
//! mislead the passes.

use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::pass::Settings;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::sleep,
};

use crate::{
    cache::Cache,
    cli::{ClusterStatusChoice, RunArgs, WorkspaceApiChoice},
    connection::{self, Connection, connect},
    discovery::{Served, discover},
    events::Events,
    logging,
    requests::Requests,
    scheduler::{self, Waker},
    served_changes, watches,
    worker::{Clock, Worker, system_clock},
};

/// First wait for an API server.
const PATIENCE_BASE: Duration = Duration::from_secs(1);
/// Longest wait for an API server.
const PATIENCE_MAX: Duration = Duration::from_mins(1);
/// How long passes under way may take after the signal to stop; a pod gets 30 seconds.
const GRACE: Duration = Duration::from_secs(20);

/// Why `run` does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No log.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// No client.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// The operating system refuses.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// What [`run`] is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// API in which new Workspaces are made.
    pub workspace_api: WorkspaceApiChoice,
    /// Who publishes the status of Clusters.
    pub cluster_status: ClusterStatusChoice,
    /// Passes at the same time.
    pub concurrency: usize,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// Tells the time.
    pub clock: Clock,
    /// How many times faster that clock runs than ours; 1 everywhere but in a sandbox.
    pub pace: u32,
}

/// The command: sets up log, runtime and signals, and runs until SIGTERM or SIGINT.
pub fn command(args: RunArgs) -> Result<(), Error> {
    logging::start(args.log_format, &args.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let shutdown = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let connection = connect(args.kubeconfig, args.context).await?;
        let options = Options {
            namespace: args.namespace,
            workspace_api: args.workspace_api,
            cluster_status: args.cluster_status,
            concurrency: args.concurrency.get(),
            timeout: args.write_timeout,
            clock: system_clock,
            pace: 1,
        };
        run(&connection, &options, shutdown).await;
        Ok(())
    })
}

/// Keeps passes going until `shutdown` is ready.
pub async fn run(connection: &Connection, options: &Options, shutdown: impl Future<Output = ()>) {
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let served = tokio::select! {
            () = &mut shutdown => break,
            served = discover_patiently(connection, options.timeout) => served,
        };
        if !session(connection, options, &served, shutdown.as_mut()).await {
            break;
        }
        tracing::info!("what the API server serves has changed: starting afresh");
    }
    tracing::info!("stopped");
}

/// Asks what is served until there is an answer.
async fn discover_patiently(connection: &Connection, timeout: Duration) -> Served {
    let mut wait = PATIENCE_BASE;
    loop {
        match discover(&connection.client, timeout).await {
            Ok(served) => return served,
            Err(error) => {
                tracing::warn!(address = connection.address, next_try = ?wait, "not ready: {error}");
                sleep(wait).await;
                wait = wait.saturating_mul(2).min(PATIENCE_MAX);
            }
        }
    }
}

/// Runs passes over what `served` says. Returns whether to start afresh; otherwise it is over.
async fn session(
    connection: &Connection,
    options: &Options,
    served: &Served,
    shutdown: Pin<&mut impl Future<Output = ()>>,
) -> bool {
    let Connection { client, address } = connection;
    let settings = Settings {
        workspace_api: match options.workspace_api {
            WorkspaceApiChoice::Auto => served.workspace_api(),
            WorkspaceApiChoice::Cluster => WorkspaceApi::Cluster,
            WorkspaceApiChoice::Namespaced => WorkspaceApi::Namespaced,
        },
        cluster_status: options.cluster_status.into(),
        cluster_crd: served.cluster_crd(),
    };
    let kinds: BTreeSet<_> = served.kinds().map(|(kind, _)| kind).collect();
    for kind in capt_reconcile::object::Kind::ALL.into_iter().filter(|kind| !kinds.contains(kind)) {
        tracing::warn!("{}.{} is not served: there are none until it is installed", kind.plural(), kind.group());
    }
    tracing::info!(
        address,
        namespace = options.namespace.as_deref().unwrap_or("(all)"),
        cluster = served.cluster_version(),
        workspaces = settings.workspace_api.group(),
        cluster_status = ?settings.cluster_status,
        cluster_crd = ?settings.cluster_crd,
        "connected"
    );
    let cache = Arc::new(Cache::new(kinds, settings));
    let waker = Waker::new(options.concurrency);
    let worker = Worker {
        cache: Arc::clone(&cache),
        waker: waker.clone(),
        requests: Requests::new(client.clone(), options.timeout, served.cluster_version()),
        events: Events::new(client.clone(), options.timeout),
        clock: options.clock,
        pace: options.pace,
    };
    // Dropped, and with it every watch ended, when this function returns.
    let mut watching = JoinSet::new();
    watching.spawn(watches::watch_all(client.clone(), served.clone(), options.namespace.clone(), cache, waker.clone()));
    let mut afresh = false;
    let over = async {
        tokio::select! {
            () = shutdown => {}
            () = served_changes::wait(client.clone(), served.clone(), options.timeout) => afresh = true,
        }
    };
    let left = scheduler::run(&waker, |object| worker.clone().pass(object), over, GRACE).await;
    if left > 0 {
        tracing::warn!(passes = left, "passes did not end in time");
    }
    afresh
}
