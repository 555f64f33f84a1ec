//! `simulate`: plays scenarios in virtual time and says what happened and whether it was expected.
//!
//! The passes and the executor are those of `run`; API server, Cluster API core and provider are the
//! models of capt-sim. Nothing outside is touched.

use std::{fs, io, path::PathBuf};

use capt_sim::{
    scenario::{
        self, Scenario,
        chances::Random,
        play::{self, Played},
        timeline::Line,
    },
    simulation::hooks::Nothing,
};
use clap::Args;
use serde_json::{Value, json};

use crate::{Io, OK, cli::OutputFormat, unreadable::Unreadable};

/// Exit code: something was not as expected, or a law was broken.
pub const UNEXPECTED: u8 = 2;

/// Flags of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A scenario; can be given several times.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub filenames: Vec<PathBuf>,
    /// What goes wrong by chance follows from this number.
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// How often each scenario is played, each time with the next seed.
    #[arg(long, value_name = "N", default_value = "1")]
    pub runs: u64,
    /// Leave out the timeline.
    #[arg(long)]
    pub summary: bool,
    /// Form of the output.
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Why nothing was played.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    /// A scenario is wrong.
    #[error("{name}: {source}")]
    Scenario {
        /// Which one.
        name: String,
        /// Why.
        source: scenario::Error,
    },
    /// The output is closed or full.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// One run of a scenario.
struct Run {
    scenario: String,
    seed: u64,
    wrong: Vec<String>,
    writes: usize,
    lines: Vec<Line>,
}

/// The command; the exit code says whether everything was as expected.
pub fn command(args: &SimulateArgs, io: &mut Io<'_>) -> Result<u8, Error> {
    let mut runs = Vec::new();
    let mut as_expected = true;
    for path in &args.filenames {
        let scenario = load(path)?;
        if args.output == OutputFormat::Text {
            writeln!(io.stdout, "{}: {}", scenario.name, scenario.description)?;
        }
        for seed in (args.seed..).take(usize::try_from(args.runs).unwrap_or(usize::MAX)) {
            let run = run(&scenario, seed, args.summary);
            as_expected &= run.wrong.is_empty();
            match args.output {
                OutputFormat::Text => tell(io.stdout, &scenario, &run)?,
                OutputFormat::Json => runs.push(as_json(&run)),
            }
        }
    }
    if args.output == OutputFormat::Json {
        let all = json!({"apiVersion": scenario::API_VERSION, "kind": "Simulation", "runs": runs});
        writeln!(io.stdout, "{all:#}")?;
    }
    Ok(if as_expected { OK } else { UNEXPECTED })
}

/// Reads a scenario and the files that it names.
pub(crate) fn load(path: &PathBuf) -> Result<Scenario, Error> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| Unreadable { name: name.clone(), source })?;
    // Files are named as seen from the scenario.
    let beside = |file: &str| {
        let directory = path.parent().unwrap_or(path);
        fs::read_to_string(directory.join(file)).map_err(|error| error.to_string())
    };
    scenario::parse(&text, &beside).map_err(|source| Error::Scenario { name, source })
}

fn run(scenario: &Scenario, seed: u64, summary: bool) -> Run {
    let played = match &scenario.chances {
        Some(chances) => play::play(scenario, Random::new(chances.clone(), seed)),
        None => play::play(scenario, Nothing),
    };
    let Played { simulation, failed, violations, timeline } = played;
    let mut wrong = failed;
    wrong.extend(violations.iter().map(ToString::to_string));
    Run {
        scenario: scenario.name.clone(),
        seed,
        wrong,
        writes: timeline.writes().len(),
        lines: if summary { Vec::new() } else { timeline.lines(&simulation.api) },
    }
}

fn tell(out: &mut dyn io::Write, scenario: &Scenario, run: &Run) -> Result<(), Error> {
    let Run { scenario: _, seed, wrong, writes, lines } = run;
    for Line { at, what, object, text } in lines {
        let time = format!("{}:{:02}:{:02}", at / 3600, at / 60 % 60, at % 60);
        writeln!(out, "{time:>9}  {what:9}  {object}  {text}")?;
    }
    let chance = if scenario.chances.is_some() { format!(" (seed {seed})") } else { String::new() };
    let verdict = if wrong.is_empty() { "as expected" } else { "NOT as expected" };
    writeln!(out, "{}{chance}: {verdict}, {writes} writes in {}", scenario.name, scenario.until)?;
    for text in wrong {
        writeln!(out, "  {text}")?;
    }
    Ok(())
}

fn as_json(run: &Run) -> Value {
    let Run { scenario, seed, wrong, writes, lines } = run;
    json!({"scenario": scenario, "seed": seed, "asExpected": wrong.is_empty(), "wrong": wrong, "writes": writes, "timeline": lines})
}
