//! The operator: the layer between capt-reconcile, which decides, and the API server.
//!
//! ```text
//! watches --keep--> cache --triggers--> queue --scheduler--> worker --requests--> API server
//!                     ^                                        |
//!                     +------------- answers ------------------+
//! ```
//!
//! `plan` runs the same passes over documents instead of watches, and writes nothing. This crate
//! must not decide anything about an object: it reads clocks, sockets and files, and translates.

pub mod cache;
pub mod causes;
pub mod classify;
pub mod cli;
pub mod connection;
pub mod crd_check;
pub mod crds;
pub mod discovery;
pub mod documents;
pub mod events;
pub mod explain;
pub mod facts;
pub mod health;
pub mod input;
pub mod keep;
pub mod lease;
pub mod leftovers;
pub mod live;
pub mod logging;
pub mod manual;
pub mod metrics;
pub mod orphans;
pub mod permissions;
pub mod plan_command;
pub mod queue;
pub mod rbac;
pub mod reasons_command;
pub mod requests;
pub mod rival;
pub mod run;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod scheduler;
pub mod scope;
pub mod serve;
pub mod served_changes;
#[cfg(feature = "sandbox")]
pub mod simulate;
pub mod startup;
pub mod text;
#[cfg(feature = "otlp")]
pub mod traces;
pub mod traffic;
pub mod tree;
pub mod tree_command;
pub mod typed;
pub mod unreadable;
pub mod watches;
pub mod worker;

use std::{
    ffi::OsString,
    io::{ErrorKind, Read, Write},
    path::Path,
};

use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};

/// Name of the program.
const PROGRAM: &str = "capt-operator";
/// Name under which kubectl finds it as `kubectl capt`.
const PLUGIN: &str = "kubectl-capt";
/// Exit code: everything is as wanted.
pub const OK: u8 = 0;
/// Exit code: bad input, bad usage or a failure; never clap's 2, which would say "would write".
pub const FAILURE: u8 = 1;
/// Exit code of `plan`: there is something to write.
pub const WOULD_WRITE: u8 = 2;

/// Where a command reads and writes.
pub struct Io<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of `plan`.
    #[error(transparent)]
    Plan(#[from] plan_command::Error),
    /// Of `classify`.
    #[error(transparent)]
    Classify(#[from] classify::Error),
    /// Of `tree`.
    #[error(transparent)]
    Tree(#[from] tree_command::Error),
    /// Of `explain`.
    #[error(transparent)]
    Explain(#[from] explain::Error),
    /// Of `reasons`.
    #[error(transparent)]
    Reasons(#[from] reasons_command::Error),
    /// Of `crds`.
    #[error(transparent)]
    Crds(#[from] crds::Error),
    /// Of `man`.
    #[error(transparent)]
    Manual(#[from] manual::Error),
    /// Of `run`.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// Of `sandbox`.
    #[cfg(feature = "sandbox")]
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// Of `simulate`.
    #[cfg(feature = "sandbox")]
    #[error(transparent)]
    Simulate(#[from] simulate::Error),
}

impl Error {
    /// Whether the reader of our output is gone, as in `| head`; that is its business.
    fn is_closed_pipe(&self) -> bool {
        match self {
            Self::Plan(plan_command::Error::Output(error))
            | Self::Classify(classify::Error::Output(error))
            | Self::Tree(tree_command::Error::Output(error))
            | Self::Explain(explain::Error::Output(error))
            | Self::Reasons(reasons_command::Error::Output(error))
            | Self::Manual(manual::Error::Output(error))
            | Self::Crds(crds::Error::Output(error)) => error.kind() == ErrorKind::BrokenPipe,
            #[cfg(feature = "sandbox")]
            Self::Sandbox(sandbox::Error::Output(error)) => error.kind() == ErrorKind::BrokenPipe,
            #[cfg(feature = "sandbox")]
            Self::Simulate(simulate::Error::Output(error)) => error.kind() == ErrorKind::BrokenPipe,
            #[cfg(feature = "sandbox")]
            Self::Sandbox(_) | Self::Simulate(_) => false,
            Self::Plan(_)
            | Self::Tree(_)
            | Self::Explain(_)
            | Self::Reasons(_)
            | Self::Classify(_)
            | Self::Crds(_)
            | Self::Manual(_)
            | Self::Run(_) => false,
        }
    }
}

/// Does what `args` say, the name of the program first; returns the exit code.
pub fn main(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
    let parsed = completed(args);
    let cli = match parsed.command.try_get_matches_from(parsed.args).and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            let (output, code) = if error.use_stderr() { (&mut io.stderr, FAILURE) } else { (&mut io.stdout, OK) };
            // There is nobody left to tell if this fails.
            let _ = output.write_all(text.as_bytes());
            return code;
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::command(*args).map(|()| OK).map_err(Error::from),
        Command::Plan(args) => plan_command::command(&args, io).map_err(Error::from),
        Command::Tree(args) => tree_command::command(&args, io).map_err(Error::from),
        Command::Explain(args) => explain::command(&args, io).map_err(Error::from),
        Command::Reasons(args) => reasons_command::command(&args, io).map(|()| OK).map_err(Error::from),
        Command::Classify(args) => classify::command(&args, io).map(|()| OK).map_err(Error::from),
        Command::Completions(args) => {
            clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut io.stdout);
            Ok(OK)
        }
        Command::Man(args) => manual::write(args.command.as_deref(), io.stdout).map(|()| OK).map_err(Error::from),
        Command::Rbac(args) => print(io, &rbac::all(&args.namespaces)).map(|()| OK),
        Command::Crds => crds::write(&mut io.stdout).map(|()| OK).map_err(Error::from),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => sandbox::command(&args, io).map(|()| OK).map_err(Error::from),
        #[cfg(feature = "sandbox")]
        Command::Simulate(args) => simulate::command(&args, io).map_err(Error::from),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_closed_pipe() => OK,
        Err(error) => {
            let _ = writeln!(io.stderr, "error: {error}");
            FAILURE
        }
    }
}

fn print(io: &mut Io<'_>, text: &str) -> Result<(), Error> {
    io.stdout.write_all(text.as_bytes()).map_err(|error| Error::Crds(crds::Error::Output(error)))
}

/// The command line, ready to be parsed.
struct CommandLine {
    command: clap::Command,
    args: Vec<OsString>,
}

/// Inserts what is meant where the arguments name no command: `run`, or for the plugin of kubectl its help,
/// since nobody starts an operator by that name.
fn completed(args: impl IntoIterator<Item = OsString>) -> CommandLine {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let name = args.first().and_then(|program| Path::new(program).file_stem()).and_then(|name| name.to_str());
    if name == Some(PLUGIN) {
        if args.len() == 1 {
            args.push("--help".into());
        }
        return CommandLine { command: Cli::command().bin_name("kubectl capt"), args };
    }
    let names_one = args
        .get(1)
        .and_then(|first| first.to_str())
        .is_some_and(|first| !first.starts_with('-') || cli::HELP_AND_VERSION.contains(&first));
    if !names_one {
        args.insert(args.len().min(1), "run".into());
    }
    CommandLine { command: Cli::command(), args }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(args: &[&str]) -> Vec<OsString> {
        completed(args.iter().map(OsString::from)).args
    }

    fn output(args: &[&str]) -> (u8, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut std::io::empty(), stdout: &mut stdout, stderr: &mut stderr };
        let code = main(args.iter().map(OsString::from), &mut io);
        assert_eq!(String::from_utf8(stderr).unwrap(), "");
        (code, String::from_utf8(stdout).unwrap())
    }

    #[test]
    fn as_a_plugin_of_kubectl_it_has_that_name_and_starts_no_operator() {
        assert_eq!(defaulted(&["/opt/kubectl-capt", "tree", "demo"]), ["/opt/kubectl-capt", "tree", "demo"]);
        let (code, help) = output(&["/opt/kubectl-capt"]);
        assert!(code == OK && help.contains("Usage: kubectl capt <COMMAND>"), "{help}");
        let (_, help) = output(&["kubectl-capt", "tree", "--help"]);
        assert!(help.contains("Usage: kubectl capt tree "), "{help}");
    }

    #[test]
    fn completions_know_the_commands_and_their_flags() {
        for shell in ["bash", "zsh", "fish"] {
            let (code, script) = output(&["capt-operator", "completions", shell]);
            assert_eq!(code, OK);
            for word in ["explain", "leader-elect-renew-deadline", "mermaid"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn the_manual_has_a_page_for_everything_and_for_each_command() {
        let (_, all) = output(&["capt-operator", "man"]);
        assert!(all.contains(".TH capt-operator 1") && all.contains("explain"), "{all}");
        let (_, run) = output(&["capt-operator", "man", "run"]);
        assert!(run.contains(".TH capt-operator-run 1") && run.contains("CAPT_WATCH_FILTER"), "{run}");
    }

    #[test]
    fn run_is_the_default_command() {
        assert_eq!(defaulted(&["capt-operator"]), ["capt-operator", "run"]);
        assert_eq!(defaulted(&["capt-operator", "--namespace", "a"]), ["capt-operator", "run", "--namespace", "a"]);
        for args in [["capt-operator", "plan"], ["capt-operator", "--help"], ["capt-operator", "-V"]] {
            assert_eq!(defaulted(&args), args);
        }
    }
}
