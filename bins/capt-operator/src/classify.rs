//! `classify`: what the operator makes of an error message, for people and scripts.
//!
//! The message is a text, or condition `Synced` of the object that is given as YAML or JSON. All
//! knowledge is in `capt_status::failure`; this only reads and prints.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use capt_status::failure::{self, Failure};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Io,
    cli::{ClassifyArgs, OutputFormat},
    unreadable::Unreadable,
};

/// More input than this is not read: a list of a thousand Workspaces fits.
const MAX_INPUT: u64 = 64 << 20;

/// Why a message cannot be classified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    /// No text at all.
    #[error("{0} is empty: give an error message, or a Workspace as YAML or JSON")]
    Empty(String),
    /// Looks like an object and is none.
    #[error("{name} is neither YAML nor JSON: {problem}")]
    Syntax {
        /// Which one.
        name: String,
        /// What the parser says.
        problem: String,
    },
    /// An object that reports no error.
    #[error("{object} reports no error: {state}")]
    NoFailure {
        /// Kind and name.
        object: String,
        /// What its condition says.
        state: String,
    },
    /// More than one that fails.
    #[error("{0} objects report an error: give one of them")]
    Many(usize),
    /// The answer cannot be written as JSON.
    #[error("cannot write the answer as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The output is closed or full.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// The answer as scripts read it.
#[derive(Serialize)]
struct Answer<'a> {
    class: &'static str,
    reason: &'static str,
    message: &'a str,
    hint: &'static str,
    stage: Option<&'static str>,
}

/// The command.
pub fn command(args: &ClassifyArgs, io: &mut Io<'_>) -> Result<(), Error> {
    let (name, text) = read(args.file.as_deref(), io.stdin)?;
    if text.trim().is_empty() {
        return Err(Error::Empty(name));
    }
    let Failure { class, reason, message, hint, stage } = match objects(&name, &text)? {
        Some(objects) => failure::classify(&failing(&objects)?),
        None => failure::classify(&text),
    };
    let answer = Answer {
        class: class.as_str(),
        reason: reason.as_str(),
        message: &message,
        hint,
        stage: stage.map(failure::Stage::as_str),
    };
    match args.output {
        OutputFormat::Text => print(&answer, io.stdout)?,
        OutputFormat::Json => writeln!(io.stdout, "{}", serde_json::to_string_pretty(&answer)?)?,
    }
    io.stdout.flush()?;
    Ok(())
}

fn print(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Answer { class, reason, message, hint, stage } = answer;
    writeln!(out, "class:   {class}")?;
    writeln!(out, "reason:  {reason}")?;
    if let Some(stage) = stage {
        writeln!(out, "stage:   {stage}")?;
    }
    writeln!(out, "message: {message}")?;
    writeln!(out, "hint:    {hint}")
}

/// The name of the input and its text. Logs may hold any bytes, so what is no UTF-8 is replaced.
fn read(file: Option<&Path>, stdin: &mut dyn Read) -> Result<(String, String), Error> {
    let mut bytes = Vec::new();
    let (name, result) = match file {
        Some(path) if path != Path::new("-") => {
            let read = File::open(path).and_then(|file| file.take(MAX_INPUT).read_to_end(&mut bytes));
            (path.display().to_string(), read)
        }
        Some(_) | None => ("the standard input".to_owned(), stdin.take(MAX_INPUT).read_to_end(&mut bytes)),
    };
    match result {
        Ok(_) => Ok((name, String::from_utf8_lossy(&bytes).into_owned())),
        Err(source) => Err(Unreadable { name, source }.into()),
    }
}

/// The objects in the input, items of lists one by one; `None` if it is a message.
fn objects(name: &str, text: &str) -> Result<Option<Vec<Value>>, Error> {
    let names_kind = |line: &str| ["apiVersion:", "kind:"].iter().any(|field| line.starts_with(field));
    let is_json = text.trim_start().starts_with('{') && text.contains("\"kind\"");
    if !is_json && !text.lines().any(names_kind) {
        return Ok(None);
    }
    let syntax = |problem: String| Error::Syntax { name: name.to_owned(), problem };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| syntax(error.without_snippet().to_string()))?;
    let items = |document: Value| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.clone(),
        None => vec![document],
    };
    Ok(Some(documents.into_iter().flat_map(items).filter(Value::is_object).collect()))
}

/// The message of the one object whose condition `Synced` is false.
fn failing(objects: &[Value]) -> Result<String, Error> {
    let failing: Vec<&Value> = objects
        .iter()
        .filter_map(synced)
        .filter(|synced| synced["status"] == "False" && synced["reason"] != "ReconcilePaused")
        .collect();
    match (failing.as_slice(), objects) {
        ([synced], _) => Ok(synced["message"].as_str().unwrap_or_default().to_owned()),
        ([], [object]) => {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
            let state = synced(object).map_or("it has no condition Synced".to_owned(), |synced| {
                let field = |field: &str| synced[field].as_str().unwrap_or("?").to_owned();
                format!("condition Synced is {} ({})", field("status"), field("reason"))
            });
            Err(Error::NoFailure { object: format!("{}/{}", text("/kind"), text("/metadata/name")), state })
        }
        ([], _) => Err(Error::NoFailure {
            object: format!("none of {} objects", objects.len()),
            state: "no condition Synced is False".to_owned(),
        }),
        (_, _) => Err(Error::Many(failing.len())),
    }
}

fn synced(object: &Value) -> Option<&Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition["type"] == "Synced")
}
