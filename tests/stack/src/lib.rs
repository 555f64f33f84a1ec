//! A real Kubernetes for tests and the demo: it starts and stops etcd, kube-apiserver,
//! kube-controller-manager, Cluster API core and provider-terraform as local processes.
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use capt_stack::{Stack, Tier};
//!
//! let stack = Stack::start(Tier::Core).await?;
//! stack.apply("{apiVersion: v1, kind: Namespace, metadata: {name: one}}").await?;
//! let client = stack.client("capt-operator").await?;   // a user without rights until RBAC gives some
//! # drop(client);
//! println!("{}", stack.audit().requests_of("capt-operator")?.table());
//! # Ok(())
//! # }
//! ```
//!
//! The programs come from `just stack`; what is missing is an error, never a silent skip. Tests that
//! use this crate are marked `#[ignore = "needs the real stack: just test-stack"]`.
//!
//! Each stack has its own directory, ports, authority and processes, and all of that is gone when its
//! owner is, even after kill -9. When the owner panics, the logs stay and their path is printed; `CAPT_STACK_KEEP=1` keeps them always.
//!
//! Facts to plan tests with: the garbage collector notices a kind whose CRD is new up to 30 seconds
//! late, so hand CRDs to [`Builder::install`]; core adopts objects that are created after their
//! Cluster up to 30 seconds late; the provider destroys a Workspace that is younger than 30 seconds
//! up to 45 seconds late, see [`Stack::age_workspace`].

mod api_server;
mod assets;
mod audit;
mod core;
mod manifests;
mod pki;
mod provider;
mod shared;
mod site;
mod supervise;
mod wait;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::DynamicObject;

pub use crate::assets::Error as AssetsError;
pub use crate::audit::{Audit, Effect, Error as AuditError, Request, Requests};
pub use crate::manifests::Error as ManifestsError;
pub use crate::pki::Error as PkiError;
pub use crate::shared::{Shared, shared, shared_from};
pub use crate::supervise::Error as SuperviseError;
pub use crate::wait::{Error as WaitError, eventually};

use crate::assets::Part;
use crate::site::{MASTERS, Site};
use crate::supervise::Process;

/// The administrator's user name, as the audit log shows it.
pub const ADMIN: &str = "admin";
/// Cluster API core's user name.
pub const CORE: &str = core::USER;
/// provider-terraform's user name; Terraform's own requests carry it as well.
pub const PROVIDER: &str = provider::USER;

/// How often a start is tried when another process takes a port between its choice and its use.
const ATTEMPTS: usize = 3;

/// How much of the stack is started; each tier adds to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// etcd and kube-apiserver. Nothing is garbage-collected and namespaces stay Terminating.
    ApiServer,
    /// Also kube-controller-manager (garbage collection, namespaces, role aggregation) and Cluster
    /// API core with webhooks and conversion.
    Core,
    /// Also provider-terraform.
    Provider,
}

/// Why a stack could not be started or used. Its `Debug` form is the message: that is what a test's
/// `unwrap` shows, and log lines are not readable when they are quoted.
#[derive(thiserror::Error)]
pub enum Error {
    /// The programs are missing.
    #[error(transparent)]
    Assets(#[from] assets::Error),
    /// Certificates or kubeconfigs could not be made.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// A process could not be started.
    #[error(transparent)]
    Supervise(#[from] supervise::Error),
    /// A component did not get ready.
    #[error(transparent)]
    Wait(#[from] wait::Error),
    /// Manifests could not be applied.
    #[error(transparent)]
    Manifests(#[from] manifests::Error),
    /// A kubeconfig of the stack could not be read.
    #[error("cannot read a kubeconfig of the stack: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A request to the API server failed.
    #[error("the stack's API server: {0}")]
    Kube(Box<kube::Error>),
    /// etcd said something that it never says.
    #[error("etcd did not answer as etcd does; its log is in the directory of the stack")]
    Etcd,
    /// A file or port of the stack could not be had.
    #[error("cannot have {what} for the stack: {source}")]
    File {
        /// What was wanted.
        what: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn file(what: &str, source: std::io::Error) -> Self {
        Self::File { what: what.to_owned(), source }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

/// Told of each finished step of a start, with the time that the step took.
type Progress = Box<dyn Fn(&str, Duration) + Send + Sync>;

/// What to start, and what to put into it before the controllers look.
pub struct Builder {
    tier: Tier,
    without_core: bool,
    manifests: Vec<String>,
    progress: Progress,
}

impl Builder {
    /// Adds manifests (YAML, many documents) that are applied before any controller starts, so that
    /// the garbage collector knows their CRDs from the beginning.
    #[must_use]
    pub fn install(mut self, yaml: impl Into<String>) -> Self {
        self.manifests.push(yaml.into());
        self
    }

    /// Leaves Cluster API core out, with its webhooks: only its CRDs are there, as a user installs them who
    /// has no core, and kube-controller-manager.
    #[must_use]
    pub fn without_core(mut self) -> Self {
        self.without_core = true;
        self
    }

    /// Has `tell` called after each step with what is ready and how long it took, for people who wait.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        self.progress = Box::new(tell);
        self
    }

    /// Starts the stack and waits until all of it is ready.
    pub async fn start(self) -> Result<Stack, Error> {
        let mut attempt = 1;
        loop {
            match self.attempt().await {
                Err(error) if attempt < ATTEMPTS && error.to_string().contains("address already in use") => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn attempt(&self) -> Result<Stack, Error> {
        let start = Instant::now();
        let site = Site::new(self.tier)?;
        let mut stack = Stack { site, api_server: None, processes: Vec::new(), tier: self.tier, took: Duration::ZERO };
        match stack.bring_up(self).await {
            Ok(()) => {
                stack.took = start.elapsed();
                Ok(stack)
            }
            Err(error) => {
                stack.site.supervisor.fail();
                Err(error)
            }
        }
    }
}

/// A running stack. Dropping it ends every process and removes its directory.
pub struct Stack {
    // First, so that the processes are killed before they are reaped.
    site: Site,
    api_server: Option<api_server::Running>,
    processes: Vec<Process>,
    tier: Tier,
    took: Duration,
}

/// Path of `helm` or `clusterctl`, which tests of the install files run beside a stack.
pub fn tool(name: &str) -> Result<PathBuf, Error> {
    Ok(assets::tool(name)?)
}

impl Stack {
    /// Starts `tier` and waits until it is ready: about 5, 10 and 12 seconds on two quiet cores.
    pub async fn start(tier: Tier) -> Result<Self, Error> {
        Self::builder(tier).start().await
    }

    /// A start with additions.
    pub fn builder(tier: Tier) -> Builder {
        Builder { tier, without_core: false, manifests: Vec::new(), progress: Box::new(|_, _| {}) }
    }

    async fn bring_up(&mut self, order: &Builder) -> Result<(), Error> {
        let admin = site::client(&self.site.kubeconfig(ADMIN, Some(MASTERS))?).await?;
        let mut step = Instant::now();
        self.api_server = Some(api_server::start(&self.site, &admin).await?);
        (order.progress)("etcd and kube-apiserver", step.elapsed());

        step = Instant::now();

        let mut documents = Vec::new();
        for yaml in &order.manifests {
            documents.extend(manifests::documents(yaml)?);
        }
        let ports = core::Ports::new()?;
        if self.tier >= Tier::Core {
            documents.extend(if order.without_core {
                core::bare_crds(&self.site)?
            } else {
                core::prerequisites(&self.site, &ports)?
            });
        }
        if self.tier >= Tier::Provider {
            documents.extend(provider::prerequisites(&self.site)?);
        }
        manifests::apply(&admin, documents).await?;
        (order.progress)("CRDs and roles", step.elapsed());

        // Both at once: each waits more than it works.
        step = Instant::now();
        let core = async {
            if self.tier < Tier::Core {
                return Ok(Vec::new());
            }
            if order.without_core {
                return Ok(vec![core::controller_manager(&self.site)?]);
            }
            let processes = core::start(&self.site, &admin, &ports).await?;
            (order.progress)("kube-controller-manager and Cluster API core", step.elapsed());
            Ok::<_, Error>(processes)
        };
        let provider = async {
            if self.tier < Tier::Provider {
                return Ok(None);
            }
            let process = provider::start(&self.site).await?;
            (order.progress)("provider-terraform", step.elapsed());
            Ok::<_, Error>(Some(process))
        };
        let (core, provider) = futures::try_join!(core, provider)?;
        self.processes.extend(core);
        self.processes.extend(provider);
        Ok(())
    }

    /// The tier that runs.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// How long the start took.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// The API server's address.
    pub fn url(&self) -> &str {
        &self.site.url
    }

    /// The directory with logs, kubeconfigs and data.
    pub fn directory(&self) -> &Path {
        &self.site.directory
    }

    /// kubectl: the one on PATH, else the one that `just stack` built.
    pub fn kubectl(&self) -> Result<&Path, Error> {
        Ok(self.site.assets.path(Part::Kubectl)?)
    }

    /// Name and process id of each component.
    pub fn components(&self) -> Vec<(&'static str, u32)> {
        let first = self.api_server.iter().flat_map(|running| [&running.etcd, &running.api_server]);
        first.chain(&self.processes).map(|process| (process.name, process.id())).collect()
    }

    /// The kubeconfig file of the administrator (user `admin` in `system:masters`).
    pub fn admin(&self) -> Result<PathBuf, Error> {
        self.site.kubeconfig(ADMIN, Some(MASTERS))
    }

    /// The kubeconfig file of any user. It is self-contained, so its text may be put into a Secret;
    /// the user has no rights but those that RBAC gives to that name.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf, Error> {
        self.site.kubeconfig(user, None)
    }

    /// A client with the administrator's rights, for the current tokio runtime.
    pub async fn admin_client(&self) -> Result<Client, Error> {
        site::client(&self.admin()?).await
    }

    /// A client that is `user`, for the current tokio runtime.
    pub async fn client(&self, user: &str) -> Result<Client, Error> {
        site::client(&self.kubeconfig_for(user)?).await
    }

    /// Applies manifests (YAML, many documents) as the administrator, server-side: CRDs and namespaces
    /// first, until they are served, then the rest in order. Returns the objects as stored.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>, Error> {
        let documents = manifests::documents(yaml)?;
        Ok(manifests::apply(&self.admin_client().await?, documents).await?)
    }

    /// Makes a Workspace look older than it is, so that its deletion takes two seconds instead of up
    /// to 45: the provider does not trust its own reads for 30 seconds after a creation. `namespace`
    /// is `None` for the cluster-scoped API.
    pub async fn age_workspace(&self, namespace: Option<&str>, name: &str) -> Result<(), Error> {
        provider::age_workspace(&self.admin_client().await?, namespace, name).await
    }

    /// Kills the API server, starts it again with what etcd holds, and waits until it is ready.
    pub async fn restart_api_server(&mut self) -> Result<(), Error> {
        let admin = self.admin_client().await?;
        match &mut self.api_server {
            Some(running) => running.restart(&self.site, &admin).await,
            None => Ok(()),
        }
    }

    /// Has etcd forget every version of every object but the newest, as the API server has it do every five minutes.
    pub async fn compact(&self) -> Result<(), Error> {
        match &self.api_server {
            Some(running) => running.compact().await,
            None => Ok(()),
        }
    }

    /// What everyone requested so far.
    pub fn audit(&self) -> Audit {
        Audit::new(api_server::audit_log(&self.site.directory))
    }

    /// Lets the stack run on after its owner has ended. `kill <pid>` with the returned process id
    /// ends it and removes its directory.
    pub fn leave_running(self) -> Result<u32, Error> {
        Ok(self.site.supervisor.stay()?)
    }
}
