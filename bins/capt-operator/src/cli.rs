//! The command line.
//!
//! Every flag can also be given as an environment variable; a flag wins.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use capt_reconcile::{
    cluster::mode::ClusterStatus,
    object::{Kind, ObjectKey},
    pass::Features,
};
use capt_status::{Span, Time};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;

const CONNECTION: &str = "Connection";
const SCOPE: &str = "Scope";
const LIMITS: &str = "Limits";
const LEASE: &str = "Lease";
const LOGGING: &str = "Logging";
const SERVERS: &str = "Health and metrics";

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
    /// Prints what an error message means: class, reason, short message and what to do.
    ///
    /// Takes the message, or a Workspace as YAML or JSON, whose condition Synced it then is.
    Classify(ClassifyArgs),
    /// Prints the roles that `run` needs as YAML, for `kubectl apply -f -`.
    Rbac,
    /// Prints the CRDs as YAML, for `kubectl apply --server-side -f -`.
    Crds,
    /// Starts API server, Cluster API core, Terraform provider and CAPT in this process, to play with.
    ///
    /// Everything but CAPT is a model, time runs faster, and nothing is kept.
    #[cfg(feature = "sandbox")]
    Sandbox(SandboxArgs),
}

/// Flags of `sandbox`.
#[cfg(feature = "sandbox")]
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Address of the API server; others than the loopback let everybody in.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// How much faster time runs: at 60 a minute takes a second.
    #[arg(long, value_name = "N", default_value = "60")]
    pub speed: std::num::NonZeroU32,
    /// Play a cluster's whole life, tell it, and end.
    #[arg(long)]
    pub demo: bool,
    /// Where to write the kubeconfig [default: a file in the directory for temporary files].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// API in which new Workspaces are made; `auto` is the cluster-scoped one.
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
    /// Look at this namespace only; cluster-scoped Workspaces are read in any case.
    #[arg(long, env = "CAPT_NAMESPACE", value_name = "NAME", help_heading = SCOPE)]
    pub namespace: Option<String>,
    /// API in which new Workspaces are made; `auto` is the cluster-scoped one, unless only the other is served.
    #[arg(long, env = "CAPT_WORKSPACE_API", value_name = "API", value_enum, default_value_t, help_heading = SCOPE)]
    pub workspace_api: WorkspaceApiChoice,
    /// Who publishes the status of Clusters; `auto` is decided for each Cluster: CAPT only where no Cluster API core is.
    #[arg(long, env = "CAPT_CLUSTER_STATUS", value_name = "MODE", value_enum, default_value_t, help_heading = SCOPE)]
    pub cluster_status: ClusterStatusChoice,
    /// What is done for provider objects, as a list: progress, dependencies (both in their status) and recovery
    /// (actions after failures); or `none`.
    #[arg(long, env = "CAPT_FEATURES", value_name = "LIST", default_value = "progress,dependencies,recovery", value_parser = features, help_heading = SCOPE)]
    pub features: Features,
    /// Passes that run at the same time.
    #[arg(long, env = "CAPT_CONCURRENCY", value_name = "N", default_value = "8", help_heading = LIMITS)]
    pub concurrency: NonZeroUsize,
    /// How long to wait for the answer to a request.
    #[arg(long, env = "CAPT_WRITE_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = LIMITS)]
    pub write_timeout: Duration,
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

/// Where to listen; absent for nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub Option<SocketAddr>);

/// Flags of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// File with objects as YAML or JSON, many documents allowed; `-` is the standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The moment of the pass, as in 2026-01-31T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub now: Option<Time>,
    /// An object of which nothing is known: KIND/NAMESPACE/NAME or KIND/NAME.
    #[arg(long, value_name = "OBJECT", value_parser = object)]
    pub unknown: Vec<ObjectKey>,
    /// API in which new Workspaces are made; `auto` is the cluster-scoped one.
    #[arg(long, value_name = "API", value_enum, default_value_t)]
    pub workspace_api: WorkspaceApiChoice,
    /// Who publishes the status of Clusters; `auto` is Cluster API core, since a file cannot prove that there is none.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub cluster_status: ClusterStatusChoice,
    /// What is done for provider objects, as a list: progress, dependencies (both in their status) and recovery
    /// (actions after failures); or `none`.
    #[arg(long, value_name = "LIST", default_value = "progress,dependencies,recovery", value_parser = features)]
    pub features: Features,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Flags of `classify`.
#[derive(Debug, Args)]
pub struct ClassifyArgs {
    /// File with the message or the Workspace [default: the standard input].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: OutputFormat,
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

/// Form of the output of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Flags that belong to no command.
pub const HELP_AND_VERSION: [&str; 4] = ["-h", "--help", "-V", "--version"];

fn duration(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error: capt_status::time::ParseTimeError| error.to_string())?;
    match u64::try_from(span.as_seconds()) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err("it must be at least 1s".to_owned()),
    }
}

/// `progress,recovery`, or `none`.
fn features(text: &str) -> Result<Features, String> {
    let mut features = Features { progress: false, dependencies: false, recovery: false };
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && text != "none") {
        match name {
            "progress" => features.progress = true,
            "dependencies" => features.dependencies = true,
            "recovery" => features.recovery = true,
            _ => {
                return Err(format!(
                    "there is no feature `{name}`: name some of progress, dependencies, recovery, or none"
                ));
            }
        }
    }
    Ok(features)
}

/// `[host]:port`; without a host every address of this machine.
fn address(text: &str) -> Result<Address, String> {
    if text == "off" || text == "0" {
        return Ok(Address(None));
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port.parse().ok().map(|port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
        None => text.parse().ok(),
    };
    parsed.map(|address| Address(Some(address))).ok_or_else(|| "write it as IP:PORT, :PORT or off".to_owned())
}

fn log_level(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn object(text: &str) -> Result<ObjectKey, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, None, name),
        [kind, namespace, name] => (kind, Some(namespace), name),
        _ => return Err("write it as KIND/NAMESPACE/NAME or KIND/NAME".to_owned()),
    };
    if name.is_empty() || namespace == Some("") {
        return Err("namespace and name must not be empty".to_owned());
    }
    // Both Workspaces have one name; whether a namespace is given tells them apart.
    let found = Kind::ALL.into_iter().find(|known| {
        known.name().eq_ignore_ascii_case(kind)
            && match known {
                Kind::Workspace(api) => api.is_namespaced() == namespace.is_some(),
                Kind::Cluster
                | Kind::CaptCluster
                | Kind::CaptControlPlane
                | Kind::Template
                | Kind::Apply
                | Kind::Secret => true,
            }
    });
    let kind = found.ok_or_else(|| {
        let mut kinds: Vec<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
        kinds.dedup();
        format!("a pass reads no `{kind}`; it reads {}", kinds.join(", "))
    })?;
    Ok(ObjectKey::new(kind, namespace.unwrap_or("default"), name))
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn objects_are_named_by_kind_namespace_and_name() {
        let key = |kind, namespace, name| Ok(ObjectKey::new(kind, namespace, name));
        assert_eq!(object("secret/ns/s"), key(Kind::Secret, "ns", "s"));
        assert_eq!(object("CAPTCluster/c"), key(Kind::CaptCluster, "default", "c"));
        assert_eq!(object("Workspace/w"), key(Kind::Workspace(WorkspaceApi::Cluster), "", "w"));
        assert_eq!(object("Workspace/ns/w"), key(Kind::Workspace(WorkspaceApi::Namespaced), "ns", "w"));
        assert!(object("Pod/ns/p").unwrap_err().contains("WorkspaceTemplateApply"));
        assert!(object("p").is_err() && object("Secret//s").is_err());
    }

    #[test]
    fn features_are_a_list() {
        let all = Features::default();
        assert_eq!(features("recovery, dependencies,progress"), Ok(all));
        assert_eq!(features("dependencies"), Ok(Features { progress: false, recovery: false, ..all }));
        let none = Features { progress: false, dependencies: false, recovery: false };
        assert_eq!((features("none"), features("")), (Ok(none), Ok(none)));
        assert!(features("progress,telepathy").unwrap_err().contains("telepathy"));
    }

    #[test]
    fn a_timeout_is_at_least_a_second() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0s").is_err() && duration("-5s").is_err() && duration("soon").is_err());
    }

    #[test]
    fn an_address_is_a_port_or_an_ip_with_a_port_or_off() {
        let text = |text| address(text).map(|Address(address)| address.map(|address| address.to_string()));
        assert_eq!(text(":9440"), Ok(Some("[::]:9440".to_owned())));
        assert_eq!(text("127.0.0.1:0"), Ok(Some("127.0.0.1:0".to_owned())));
        assert_eq!((text("off"), text("0")), (Ok(None), Ok(None)));
        assert!(text("9440").is_err() && text("localhost:1").is_err() && text(":x").is_err());
    }

    #[test]
    fn run_has_defaults() {
        let Command::Run(args) = Cli::try_parse_from(["capt-operator", "run"]).unwrap().command else {
            panic!("not run")
        };
        assert_eq!((args.concurrency.get(), args.write_timeout), (8, Duration::from_secs(10)));
        assert_eq!((args.workspace_api, args.log_format), (WorkspaceApiChoice::Auto, LogFormat::Text));
    }
}
