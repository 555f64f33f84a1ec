//! The command line.
//!
//! Every flag can also be given as an environment variable; a flag wins.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{cluster::mode::ClusterStatus, object::Kind, pass::Features};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{queue::Concurrency, scope::Shard};
pub use looking::{
    ClassifyArgs, Colour, ExplainArgs, OutputFormat, PlanArgs, ReasonsArgs, ReasonsFormat, SourceArgs, TreeArgs,
    TreeFormat,
};
pub use timers::TimerArgs;
pub use values::{Address, Named};
use values::{address, duration, features, log_level};

mod looking;
mod timers;
mod values;

const CONNECTION: &str = "Connection";
const SCOPE: &str = "Scope";
const LIMITS: &str = "Limits";
const TIMERS: &str = "Timers (spec.timeouts goes before them)";
const LEASE: &str = "Lease";
const LOGGING: &str = "Logging";
const SERVERS: &str = "Health and metrics";
#[cfg(feature = "otlp")]
const TRACES: &str = "Traces";

/// Turns Cluster API clusters on EKS into Terraform Workspaces.
#[derive(Debug, Parser)]
#[command(name = "capt-operator", version, after_help = "Without a command it is `run`.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconciles the objects of a cluster until it is told to stop (default).
    Run(Box<RunArgs>),
    /// Prints what a pass over the given objects would write, and why.
    ///
    /// Exits with 0 if there is nothing to write, 2 if there is, 1 on bad input or usage.
    Plan(PlanArgs),
    /// Draws what the objects of a Cluster depend on, how far they are, and what an object has an impact on.
    Tree(TreeArgs),
    /// Prints what an object waits for, since when, what was decided last, and what to do.
    Explain(ExplainArgs),
    /// Prints every reason that conditions and events give, what it means and what to do.
    Reasons(ReasonsArgs),
    /// Prints what an error message means: class, reason, short message and what to do.
    ///
    /// Takes the message, or a Workspace as YAML or JSON, whose condition Synced it then is.
    Classify(ClassifyArgs),
    /// Prints the roles that `run` needs as YAML, for `kubectl apply -f -`.
    Rbac(RbacArgs),
    /// Prints a script that completes the command line, for a shell.
    ///
    /// For bash: `capt-operator completions bash > /etc/bash_completion.d/capt-operator`.
    Completions(CompletionsArgs),
    /// Prints the manual page, of everything or of one command: `capt-operator man run | man -l -`.
    Man(ManArgs),
    /// Prints the CRDs as YAML, for `kubectl apply --server-side -f -`.
    Crds,
    /// Starts API server, Cluster API core, Terraform provider and CAPT in this process, to play with.
    ///
    /// Everything but CAPT is a model, time runs faster, and nothing is kept.
    #[cfg(feature = "sandbox")]
    Sandbox(SandboxArgs),
    /// Plays scenarios in virtual time: what happens, and whether it is as expected.
    ///
    /// Exits with 0 if everything is as expected, 2 if not, 1 on bad input or usage.
    #[cfg(feature = "sandbox")]
    Simulate(crate::simulate::SimulateArgs),
}

/// Flags of `rbac`.
#[derive(Debug, Args)]
pub struct RbacArgs {
    /// The roles of an operator of this namespace only; several times, or a list with commas, for several [default: all].
    #[arg(long = "namespace", env = "CAPT_NAMESPACE", value_name = "NAME", value_delimiter = ',')]
    pub namespaces: Vec<String>,
}

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Only this command [default: what commands there are].
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Flags of `sandbox`.
#[cfg(feature = "sandbox")]
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Address of the API server; others than the loopback let everybody in.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
    /// How much faster time runs: at 60 a minute takes a second.
    #[arg(long, value_name = "N", default_value = "60")]
    pub speed: std::num::NonZeroU32,
    /// Play a cluster's whole life, tell it, and end.
    #[arg(long)]
    pub demo: bool,
    /// Begin with the objects of a scenario, in the API that it names, and let happen what it says; see `simulate`.
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    pub scenario: Option<PathBuf>,
    /// Where to write the kubeconfig [default: a file in the directory for temporary files].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// API in which the Workspaces of new applies are made; `auto` is the cluster-scoped one.
    #[arg(long, value_name = "API", value_enum, default_value_t)]
    pub workspace_api: WorkspaceApiChoice,
    /// What to log, on standard error.
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log_level)]
    pub log_level: String,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the service account in a cluster].
    #[arg(long, env = "CAPT_KUBECONFIG", value_name = "FILE", help_heading = CONNECTION)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, env = "CAPT_CONTEXT", value_name = "NAME", help_heading = CONNECTION)]
    pub context: Option<String>,
    /// Take care of this namespace only; several times, or a list with commas, for several [default: all].
    #[arg(long = "namespace", env = "CAPT_NAMESPACE", value_name = "NAME", value_delimiter = ',', help_heading = SCOPE)]
    pub namespaces: Vec<String>,
    /// Take care only of what carries the label cluster.x-k8s.io/watch-filter with this value, itself or by its owner.
    #[arg(long, env = "CAPT_WATCH_FILTER", value_name = "VALUE", help_heading = SCOPE)]
    pub watch_filter: Option<String>,
    /// Take care only of this share of the Clusters, as in 0/3; each share has a lease of its own.
    #[arg(long, env = "CAPT_SHARD", value_name = "INDEX/COUNT", help_heading = SCOPE)]
    pub shard: Option<Shard>,
    /// API in which the Workspaces of new applies are made; `auto` is the cluster-scoped one, unless only the other is served.
    #[arg(long, env = "CAPT_WORKSPACE_API", value_name = "API", value_enum, default_value_t, help_heading = SCOPE)]
    pub workspace_api: WorkspaceApiChoice,
    /// Who publishes the status of Clusters; `auto` is decided for each Cluster: CAPT only where no Cluster API core is.
    #[arg(long, env = "CAPT_CLUSTER_STATUS", value_name = "MODE", value_enum, default_value_t, help_heading = SCOPE)]
    pub cluster_status: ClusterStatusChoice,
    /// What is done for provider objects, as a list: progress, dependencies (both in their status) and recovery
    /// (actions after failures); or `none`.
    #[arg(long, env = "CAPT_FEATURES", value_name = "LIST", default_value = "progress,dependencies,recovery", value_parser = features, help_heading = SCOPE)]
    pub features: Features,
    /// Passes that run at the same time, over objects of all kinds together.
    #[arg(long, env = "CAPT_CONCURRENCY", value_name = "N", default_value = "8", help_heading = LIMITS)]
    pub concurrency: NonZeroUsize,
    /// Passes over CAPTClusters at the same time [default: as all together].
    #[arg(long, env = "CAPT_CAPTCLUSTER_CONCURRENCY", value_name = "N", help_heading = LIMITS)]
    pub captcluster_concurrency: Option<NonZeroUsize>,
    /// Passes over CAPTControlPlanes at the same time [default: as all together].
    #[arg(long, env = "CAPT_CAPTCONTROLPLANE_CONCURRENCY", value_name = "N", help_heading = LIMITS)]
    pub captcontrolplane_concurrency: Option<NonZeroUsize>,
    /// Passes over WorkspaceTemplateApplies at the same time [default: as all together].
    #[arg(long, env = "CAPT_WORKSPACETEMPLATEAPPLY_CONCURRENCY", value_name = "N", help_heading = LIMITS)]
    pub workspacetemplateapply_concurrency: Option<NonZeroUsize>,
    /// Passes over Clusters at the same time [default: as all together].
    #[arg(long, env = "CAPT_CLUSTER_CONCURRENCY", value_name = "N", help_heading = LIMITS)]
    pub cluster_concurrency: Option<NonZeroUsize>,
    /// How long to wait for the answer to a request.
    #[arg(long, env = "CAPT_WRITE_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = LIMITS)]
    pub write_timeout: Duration,
    /// How long things may take.
    #[command(flatten)]
    pub timers: TimerArgs,
    /// The lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Health and metrics.
    #[command(flatten)]
    pub servers: ServerArgs,
    /// Form of the log.
    #[arg(long, env = "CAPT_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t, help_heading = LOGGING)]
    pub log_format: LogFormat,
    /// What to log: error, warn, info, debug, trace, or by module as in `info,capt_operator=debug`.
    #[arg(long, env = "CAPT_LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = log_level, help_heading = LOGGING)]
    pub log_level: String,
    /// Export of traces.
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub traces: TraceArgs,
}

/// Flags of the export of traces. Of the variables of OpenTelemetry, `OTEL_EXPORTER_OTLP_HEADERS`,
/// `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` and `OTEL_BSP_*` count as well.
#[cfg(feature = "otlp")]
#[derive(Debug, Clone, Default, Args)]
pub struct TraceArgs {
    /// Collector that gets a trace of each pass over OTLP/HTTP, as in http://collector:4318
    /// [default: $OTEL_EXPORTER_OTLP_ENDPOINT, or none].
    #[arg(id = "otlp-endpoint", long = "otlp-endpoint", env = "CAPT_OTLP_ENDPOINT", value_name = "URL", help_heading = TRACES)]
    pub endpoint: Option<String>,
    /// File with the certificates, in PEM, of the authorities that vouch for the collector [default: those of the system].
    #[arg(id = "otlp-certificate", long = "otlp-certificate", env = "CAPT_OTLP_CERTIFICATE", value_name = "FILE", help_heading = TRACES)]
    pub certificate: Option<PathBuf>,
}

/// Flags of the lease: of several operators with the same one, one writes.
#[derive(Debug, Clone, Args)]
pub struct LeaseArgs {
    /// Write only while holding a lease. Two operators without it would write against each other.
    #[arg(
        long, env = "CAPT_LEADER_ELECT", value_name = "BOOL", default_value_t = true, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = LEASE
    )]
    pub leader_elect: bool,
    /// Namespace of the lease [default: that of the service account or the context].
    #[arg(id = "lease-namespace", long = "leader-elect-namespace", env = "CAPT_LEADER_ELECT_NAMESPACE", value_name = "NAME", help_heading = LEASE)]
    pub namespace: Option<String>,
    /// Name of the lease.
    #[arg(id = "lease-name", long = "leader-elect-id", env = "CAPT_LEADER_ELECT_ID", value_name = "NAME", default_value = "capt-operator", help_heading = LEASE)]
    pub name: String,
    /// After this long without a renewal others take the lease.
    #[arg(id = "lease-duration", long = "leader-elect-lease-duration", env = "CAPT_LEADER_ELECT_LEASE_DURATION", value_name = "DURATION", default_value = "15s", value_parser = duration, help_heading = LEASE)]
    pub duration: Duration,
    /// After this long without a renewal the holder stops writing and ends.
    #[arg(long = "leader-elect-renew-deadline", env = "CAPT_LEADER_ELECT_RENEW_DEADLINE", value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = LEASE)]
    pub renew_deadline: Duration,
    /// Time between two renewals.
    #[arg(long = "leader-elect-retry-period", env = "CAPT_LEADER_ELECT_RETRY_PERIOD", value_name = "DURATION", default_value = "2s", value_parser = duration, help_heading = LEASE)]
    pub retry_period: Duration,
}

/// Flags of the servers for health and metrics.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Where /livez and /readyz are served, `off` for nowhere.
    #[arg(long, env = "CAPT_HEALTH_ADDRESS", value_name = "ADDRESS", default_value = ":9440", value_parser = address, help_heading = SERVERS)]
    pub health_address: Address,
    /// Where /metrics is served, over TLS and to those who may `get` that path; `off` for nowhere.
    #[arg(long, env = "CAPT_METRICS_ADDRESS", value_name = "ADDRESS", default_value = ":8443", value_parser = address, help_heading = SERVERS)]
    pub metrics_address: Address,
    /// Directory with tls.crt and tls.key of the metrics server [default: a certificate made at the start].
    #[arg(long, env = "CAPT_METRICS_CERT_DIR", value_name = "DIRECTORY", help_heading = SERVERS)]
    pub metrics_cert_dir: Option<PathBuf>,
    /// Serve metrics without TLS and to everybody; the log level is then fixed.
    #[arg(
        long, env = "CAPT_INSECURE_METRICS", value_name = "BOOL", default_value_t = false, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = SERVERS
    )]
    pub insecure_metrics: bool,
}

/// API in which new Workspaces are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum WorkspaceApiChoice {
    /// Whichever is served.
    #[default]
    Auto,
    /// `tf.upbound.io`.
    Cluster,
    /// `tf.m.upbound.io`.
    Namespaced,
}

impl From<WorkspaceApi> for WorkspaceApiChoice {
    fn from(api: WorkspaceApi) -> Self {
        match api {
            WorkspaceApi::Cluster => Self::Cluster,
            WorkspaceApi::Namespaced => Self::Namespaced,
        }
    }
}

/// Who publishes the status of Clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ClusterStatusChoice {
    /// Decided for each Cluster.
    #[default]
    Auto,
    /// Cluster API core does, always.
    Contract,
    /// CAPT does, always.
    Standalone,
}

impl RunArgs {
    /// How many passes run at the same time.
    pub fn concurrency(&self) -> Concurrency {
        let by_kind = [
            (Kind::CaptCluster, self.captcluster_concurrency),
            (Kind::CaptControlPlane, self.captcontrolplane_concurrency),
            (Kind::Apply, self.workspacetemplateapply_concurrency),
            (Kind::Cluster, self.cluster_concurrency),
        ];
        let by_kind = by_kind.into_iter().filter_map(|(kind, limit)| Some((kind, limit?.get()))).collect();
        Concurrency { total: self.concurrency.get(), by_kind }
    }
}

impl From<ClusterStatusChoice> for ClusterStatus {
    fn from(choice: ClusterStatusChoice) -> Self {
        match choice {
            ClusterStatusChoice::Auto => Self::Auto,
            ClusterStatusChoice::Contract => Self::Contract,
            ClusterStatusChoice::Standalone => Self::Standalone,
        }
    }
}

/// Form of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Flags that belong to no command.
pub const HELP_AND_VERSION: [&str; 4] = ["-h", "--help", "-V", "--version"];

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A Deployment sets some by flags and some by the environment; none must be out of reach of either.
    #[test]
    fn every_flag_of_run_has_an_environment_variable_of_its_name_and_says_its_default() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let mut seen = 0;
        for flag in run.get_arguments() {
            let Some(long) = flag.get_long().filter(|long| *long != "help") else { continue };
            let expected = format!("CAPT_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(expected.as_str()), "--{long}");
            let help = flag.get_help().unwrap().to_string();
            let says = !flag.get_default_values().is_empty() || help.contains("[default: ") || no_default(long);
            assert!(says, "--{long} has no default and does not say what happens without it");
            assert!(flag.get_help_heading().is_some(), "--{long} is in no group");
            seen += 1;
        }
        assert!(seen > 25, "{seen}");
    }

    /// Flags that mean what they say: without them there is none of it.
    fn no_default(long: &str) -> bool {
        ["watch-filter", "shard"].contains(&long)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
