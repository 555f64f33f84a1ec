//! `plan`: the passes that `run` would make over the given objects, printed instead of carried out.
//!
//! It shares everything with `run` but the source of the objects and the executor.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::ObjectKey,
    pass::{self, Observation, Settings},
    plan::Plan,
    report,
    world::{View, World},
};
use capt_status::Time;

use crate::{
    Io, OK, WOULD_WRITE,
    cli::{OutputFormat, PlanArgs, WorkspaceApiChoice},
    documents::{self, Documents, Source},
    text,
    worker::system_clock,
};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// Which one.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The standard input twice.
    #[error("the standard input can be read once: give `-f -` once")]
    StdinTwice,
    /// The input is wrong.
    #[error(transparent)]
    Documents(#[from] documents::Error),
    /// An object that was accepted does not parse.
    #[error("{object} does not parse: {problem}")]
    Malformed {
        /// Which one.
        object: ObjectKey,
        /// Why.
        problem: String,
    },
    /// The plan cannot be written as JSON.
    #[error("cannot write the plan as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The output is closed or full.
    #[error("cannot write the plan: {0}")]
    Output(#[from] io::Error),
}

/// The command; returns the exit code.
pub fn command(args: &PlanArgs, io: &mut Io<'_>) -> Result<u8, Error> {
    let documents = Documents::read(&sources(&args.files, io.stdin)?)?;
    for note in &documents.notes {
        writeln!(io.stderr, "note: {note}")?;
    }
    let mut world = documents.into_world();
    for object in &args.unknown {
        world.set_unknown(object.clone());
    }
    let settings = Settings {
        workspace_api: match args.workspace_api {
            WorkspaceApiChoice::Auto | WorkspaceApiChoice::Cluster => WorkspaceApi::Cluster,
            WorkspaceApiChoice::Namespaced => WorkspaceApi::Namespaced,
        },
        cluster_status: args.cluster_status.into(),
        features: args.features,
        ..Settings::default()
    };
    let plans = plans(&world, settings, args.now.unwrap_or_else(system_clock))?;
    match args.output {
        OutputFormat::Text => text::write(&plans, io.stdout)?,
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&report::passes(&plans))?;
            writeln!(io.stdout, "{text}")?;
            writeln!(io.stderr, "note: objects that are not in the input count as not existing")?;
        }
    }
    io.stdout.flush()?;
    Ok(if plans.iter().all(|plan| plan.actions.is_empty()) { OK } else { WOULD_WRITE })
}

/// What a pass over each object would do; every pass sees the input and not what another would write.
fn plans(world: &World, settings: Settings, now: Time) -> Result<Vec<Plan>, Error> {
    let mut plans = Vec::new();
    for key in pass::KINDS.into_iter().flat_map(|kind| world.keys(kind)) {
        match pass::observe(&View::new(world), key, settings) {
            Observation::Complete(observed) => plans.push(pass::plan(&observed, now)),
            Observation::Malformed(problem) => {
                return Err(Error::Malformed { object: key.clone(), problem: problem.to_string() });
            }
            // Given, and said to be unknown.
            Observation::Gone => plans.push(Plan::nothing(key.clone(), "nothing is known of it")),
        }
    }
    Ok(plans)
}

fn sources(files: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Source>, Error> {
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(Error::StdinTwice);
    }
    files.iter().map(|file| source(file, stdin)).collect()
}

fn source(file: &Path, stdin: &mut dyn Read) -> Result<Source, Error> {
    let (name, text) = if is_stdin(file) {
        let mut text = String::new();
        let read = stdin.read_to_string(&mut text).map(|_| text);
        ("standard input".to_owned(), read)
    } else {
        (file.display().to_string(), fs::read_to_string(file))
    };
    match text {
        Ok(text) => Ok(Source { name, text }),
        Err(source) => Err(Error::Read { name, source }),
    }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}
