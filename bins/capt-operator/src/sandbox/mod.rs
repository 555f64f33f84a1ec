//! `sandbox`: API server, Cluster API core, provider-terraform and this operator in one process.
//!
//! ```text
//! kubectl --HTTP--> listener -> capt_sim::Service <- models of core, provider, garbage collector
//!                                      ^
//!                                      +-- the operator of `run`, unchanged
//! ```
//!
//! The models of everything but the operator are capt-sim's. Their time runs faster than ours, and the
//! operator's clock with it. Nothing is kept and nothing outside this process is touched.

mod clock;
mod demo;
mod files;
mod listener;
mod scenario;

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capt_sim::{
    core::{self, Release},
    definitions,
    provider::{Provider, faults},
    scenario::{Behaviour, terraform},
    service::Service,
    world,
};
use kube::Client;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
    time::sleep,
};

use crate::{
    Io,
    cli::{LogFormat, SandboxArgs, WorkspaceApiChoice},
    connection::Connection,
    logging,
    run::{self, Options, Watching},
    simulate,
};

/// How often the models look whether a run of Terraform is over.
const TICK: Duration = Duration::from_millis(50);

/// Why the sandbox does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No log.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// The modelled world cannot be set up.
    #[error(transparent)]
    World(#[from] definitions::Error),
    /// An example that this program carries, or an object of the scenario, is refused.
    #[error("the API server of the sandbox refuses {0}")]
    Refused(String),
    /// The scenario cannot be read.
    #[error(transparent)]
    Scenario(#[from] simulate::Error),
    /// The scenario needs what a sandbox has not.
    #[error("{0}; play it with `simulate`")]
    Unplayable(String),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another one with --listen")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The kubeconfig cannot be written.
    #[error("cannot write the kubeconfig {path}: {source}; choose another place with --kubeconfig")]
    Kubeconfig {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The demonstration did not come to its end.
    #[error("the demonstration is stuck: {0}")]
    Stuck(String),
    /// The operating system refuses.
    #[error("cannot start: {0}")]
    System(io::Error),
    /// The output is closed or full.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// The command; ends with a signal, or with the end of the demonstration.
pub fn command(args: &SandboxArgs, io: &mut Io<'_>) -> Result<(), Error> {
    logging::start(LogFormat::Text, &args.log_level, None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::System)?;
    runtime.block_on(sandbox(args, io.stdout))
}

async fn sandbox(args: &SandboxArgs, out: &mut dyn Write) -> Result<(), Error> {
    let scenario = args.scenario.as_ref().map(simulate::load).transpose()?;
    if let Some(scenario) = &scenario {
        scenario::check(scenario)?;
    }
    let mut world = World::start(args, scenario.as_ref()).await?;
    let address = world.address;
    if args.demo {
        return demo::play(&world.service, args.speed.get(), out).await;
    }
    let path = args
        .kubeconfig
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("capt-sandbox-{}.kubeconfig", address.port())));
    std::fs::write(&path, listener::kubeconfig(address))
        .map_err(|source| Error::Kubeconfig { path: path.clone(), source })?;
    writeln!(out, "A sandbox: API server, Cluster API core, provider-terraform and CAPT, all in this process.")?;
    writeln!(
        out,
        "Nothing outside is touched, and nothing is kept when it ends. A minute here is {}.",
        pace(args.speed.get())
    )?;
    if !address.ip().is_loopback() {
        writeln!(out, "Others can reach {address} and do in it what they like: it asks nobody who he is.")?;
    }
    writeln!(out, "\n    export KUBECONFIG={}\n", path.display())?;
    match &scenario {
        None => {
            writeln!(out, "The templates of examples/ are there. Next:\n")?;
            writeln!(out, "    kubectl apply -f examples/cluster.yaml && kubectl get captcontrolplane -w")?;
            writeln!(out, "    kubectl annotate workspace demo-vpc {}='Error: VpcLimitExceeded'\n", faults::FAIL)?;
        }
        Some(scenario) => {
            writeln!(out, "Scenario {}: {}\n", scenario.name, scenario.description)?;
            writeln!(out, "    kubectl get clusters,captclusters,captcontrolplanes -w\n")?;
        }
    }
    writeln!(out, "Ctrl-C ends it.")?;
    out.flush()?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::System)?;
    let events = async {
        if let Some(scenario) = &scenario {
            scenario::play(scenario, &mut world, args.speed.get(), out).await?;
        }
        std::future::pending::<Result<(), Error>>().await
    };
    let ended = tokio::select! {
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = terminate.recv() => Ok(()),
        failed = events => failed,
    };
    // Gone with everything else; that it is not there any more is as good.
    let _ = std::fs::remove_file(&path);
    ended
}

/// What a minute of the world is in ours.
fn pace(speed: u32) -> String {
    format!("{} ms", 60_000 / u64::from(speed.max(1)))
}

/// What Terraform does in the sandbox, and the process that runs it.
#[derive(Default)]
struct Models {
    provider: Provider,
    behaviours: Vec<Behaviour>,
    core: Release,
}

/// How the operator of the sandbox is started, each time anew.
#[derive(Clone)]
struct Operator {
    service: Service,
    speed: u32,
    workspace_api: WorkspaceApiChoice,
}

/// A running sandbox. Dropping it ends everything in it.
struct World {
    /// The API server.
    service: Service,
    /// Where it listens.
    address: SocketAddr,
    models: Arc<Mutex<Models>>,
    how: Operator,
    _tasks: JoinSet<()>,
    /// Ends the operator when it is dropped.
    operator: oneshot::Sender<()>,
}

impl World {
    /// Starts everything; the templates of the examples, or the objects of the scenario, are there when it returns.
    async fn start(args: &SandboxArgs, scenario: Option<&capt_sim::scenario::Scenario>) -> Result<Self, Error> {
        clock::start(args.speed.get());
        let now = clock::now();
        let models_world = world::World::new(definitions::server(now)?, now);
        let service = Service::new(models_world, Arc::new(clock::now));
        let models = Arc::new(Mutex::new(Models::default()));
        let workspace_api = match scenario {
            None => {
                files::install(&service, files::TEMPLATES).await.map_err(Error::Refused)?;
                args.workspace_api
            }
            Some(scenario) => {
                scenario::begin(scenario, &mut models.lock().unwrap_or_else(PoisonError::into_inner));
                for (_, object) in &scenario.objects {
                    files::apply(&service, object).await.map_err(Error::Refused)?;
                }
                scenario.workspace_api.into()
            }
        };
        let listener =
            TcpListener::bind(args.listen).await.map_err(|source| Error::Listen { address: args.listen, source })?;
        let address = listener.local_addr().map_err(Error::System)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(listener::serve(listener, service.clone()));
        tasks.spawn(run_models(service.clone(), Arc::clone(&models)));
        let how = Operator { service: service.clone(), speed: args.speed.get(), workspace_api };
        let operator = how.start()?;
        Ok(Self { service, address, models, how, _tasks: tasks, operator })
    }

    /// The operator dies and another one starts.
    fn restart_operator(&mut self) -> Result<(), Error> {
        self.operator = self.how.start()?;
        Ok(())
    }
}

impl Operator {
    /// Starts it; it ends when what this returns is dropped.
    fn start(&self) -> Result<oneshot::Sender<()>, Error> {
        let (stop, stopped) = oneshot::channel();
        let how = self.clone();
        // A thread and a runtime of its own: the operator is not made to be moved between threads.
        std::thread::Builder::new()
            .name("operator".to_owned())
            .spawn(move || operator(how, stopped))
            .map_err(Error::System)?;
        Ok(stop)
    }
}

/// Core, provider and garbage collector: each looks again when something changed or time went by.
async fn run_models(service: Service, models: Arc<Mutex<Models>>) {
    let mut changes = service.changes();
    loop {
        changes.mark_unchanged();
        let wrote = service.with(|world| {
            let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
            let Models { provider, behaviours, core } = &mut *models;
            let by_core = core::step(world, *core);
            let by_provider = provider.step(world, &|workspace| terraform::run(behaviours, workspace));
            by_core | by_provider | world.collect()
        });
        if !wrote {
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(TICK) => {}
            }
        }
        tokio::task::yield_now().await;
    }
}

/// The operator as it is, until `stopped`.
fn operator(Operator { service, speed, workspace_api }: Operator, stopped: oneshot::Receiver<()>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("the operator cannot start: {error}");
            return;
        }
    };
    let respond = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let service = service.clone();
        async move { Ok::<_, std::convert::Infallible>(service.respond(request).await) }
    });
    runtime.block_on(async move {
        let connection = Connection { client: Client::new(respond, "default"), address: "the sandbox".to_owned() };
        let options = Options { workspace_api, pace: speed, ..Options::alone(clock::now) };
        let stopped = async {
            let _ = stopped.await;
        };
        if let Err(error) = run::run(&connection, &options, &Watching::closed(), stopped).await {
            tracing::error!("the operator ended: {error}");
        }
    });
}
