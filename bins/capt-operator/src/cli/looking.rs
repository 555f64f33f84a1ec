//! Flags of the commands that look and write nothing.

use std::path::PathBuf;

use capt_reconcile::{object::ObjectKey, pass::Features};
use capt_status::Time;
use clap::{ArgGroup, Args, ValueEnum};

use super::{
    CONNECTION, ClusterStatusChoice, TimerArgs, WorkspaceApiChoice,
    values::{Named, features, object},
};

/// Where the objects come from: files, or an API server.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// File with objects as YAML or JSON, many documents allowed; `-` is the standard input [default: an API server].
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub files: Vec<PathBuf>,
    /// Namespace to look at [default: all that may be read].
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the service account in a cluster].
    #[arg(long, env = "CAPT_KUBECONFIG", value_name = "FILE", help_heading = CONNECTION)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, env = "CAPT_CONTEXT", value_name = "NAME", help_heading = CONNECTION)]
    pub context: Option<String>,
    /// API in which the Workspaces of new applies are made; `auto` is the cluster-scoped one, unless only the other is served.
    #[arg(long, env = "CAPT_WORKSPACE_API", value_name = "API", value_enum, default_value_t)]
    pub workspace_api: WorkspaceApiChoice,
    /// How long things may take, as the operator was told.
    #[command(flatten)]
    pub timers: TimerArgs,
    /// The moment that ages and deadlines are told for, as in 2026-01-31T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub now: Option<Time>,
}

/// Flags of `plan`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["files", "live"])))]
pub struct PlanArgs {
    /// Read the objects from an API server, and write nothing to it.
    #[arg(long)]
    pub live: bool,
    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// An object of which nothing is known: KIND/NAMESPACE/NAME or KIND/NAME.
    #[arg(long, value_name = "OBJECT", value_parser = object)]
    pub unknown: Vec<ObjectKey>,
    /// Who publishes the status of Clusters; `auto` is Cluster API core, since a file cannot prove that there is none.
    #[arg(long, env = "CAPT_CLUSTER_STATUS", value_name = "MODE", value_enum, default_value_t)]
    pub cluster_status: ClusterStatusChoice,
    /// What is done for provider objects, as a list: progress, dependencies (both in their status) and recovery
    /// (actions after failures); or `none`.
    #[arg(long, env = "CAPT_FEATURES", value_name = "LIST", default_value = "progress,dependencies,recovery", value_parser = features)]
    pub features: Features,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Flags of `tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Only what belongs to the Cluster of this name [default: all].
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// What depends on this object: KIND/NAME or KIND/NAMESPACE/NAME, as in workspace/demo-vpc.
    #[arg(long, value_name = "OBJECT", value_parser = Named::parse)]
    pub impact: Option<Named>,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TreeFormat,
    /// Look again every two seconds until it is interrupted, and draw what changed.
    #[arg(short, long, conflicts_with = "files")]
    pub watch: bool,
    /// Longest line, in letters [default: $COLUMNS or the terminal's, elsewhere no limit].
    #[arg(long, value_name = "N")]
    pub width: Option<usize>,
    /// When to use colours; `auto` is on a terminal, unless NO_COLOR is set.
    #[arg(long, alias = "color", value_name = "WHEN", value_enum, default_value_t)]
    pub colour: Colour,
}

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The object: KIND/NAME or KIND/NAMESPACE/NAME, as in captcontrolplane/demo.
    #[arg(value_name = "OBJECT", value_parser = Named::parse)]
    pub object: Named,
    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Flags of `reasons`.
#[derive(Debug, Args)]
pub struct ReasonsArgs {
    /// Only this reason [default: all].
    #[arg(value_name = "REASON")]
    pub reason: Option<String>,
    /// Form of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: ReasonsFormat,
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

/// Form of the output of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Form of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TreeFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object, in the form of `status.dependencies`.
    Json,
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

/// Form of the reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReasonsFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON list.
    Json,
    /// As in docs/reasons.md.
    Markdown,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}
