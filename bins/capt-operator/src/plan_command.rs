//! `plan`: the passes that `run` would make over the given objects, printed instead of carried out.
//!
//! The objects come from documents or, with `--live`, from an API server that is only read. It shares everything with
//! `run` but the source of the objects and the executor.

use std::io;

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
    cli::{OutputFormat, PlanArgs},
    input::{self, Input},
    text,
    worker::system_clock,
};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No objects.
    #[error(transparent)]
    Input(#[from] input::Error),
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
    let input = Input::open(&args.source, io)?;
    let settings = Settings {
        cluster_status: args.cluster_status.into(),
        features: args.features,
        ..input.settings(&args.source)
    };
    let namespace = args.source.namespace.as_deref();
    let roots = |world: &World| input::keys(world, pass::KINDS, namespace);
    let now = args.source.now.unwrap_or_else(system_clock);
    let plans =
        input.with_world(settings, &args.unknown, &roots, io, |world, _| plans(world, namespace, settings, now))??;
    let source = input.address().map_or(text::Source::Files, |address| text::Source::Live(address.to_owned()));
    match args.output {
        OutputFormat::Text => text::write(&plans, &source, io.stdout)?,
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&report::passes(&plans))?;
            writeln!(io.stdout, "{text}")?;
            if !args.live {
                writeln!(io.stderr, "note: objects that are not in the input count as not existing")?;
            }
        }
    }
    io.stdout.flush()?;
    Ok(if plans.iter().all(|plan| plan.actions.is_empty()) { OK } else { WOULD_WRITE })
}

/// What a pass over each object would do; every pass sees the input and not what another would write.
fn plans(world: &World, namespace: Option<&str>, settings: Settings, now: Time) -> Result<Vec<Plan>, Error> {
    let mut plans = Vec::new();
    let is_asked_for = |key: &&ObjectKey| namespace.is_none() || key.namespace.as_deref() == namespace;
    for key in pass::KINDS.into_iter().flat_map(|kind| world.keys(kind)).filter(is_asked_for) {
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
