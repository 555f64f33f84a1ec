//! `reasons`: every reason that CAPT can give, what it means and what to do; docs/reasons.md is made of it.

use std::{fmt::Write as _, io};

use capt_reconcile::meanings::{self, Group, Meaning};
use serde_json::json;

use crate::{
    Io,
    cli::{ReasonsArgs, ReasonsFormat},
};

/// Why there are no reasons.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such reason.
    #[error("CAPT gives no reason {0}: `capt-operator reasons` lists all of them")]
    Unknown(String),
    /// The reasons cannot be written as JSON.
    #[error("cannot write the reasons as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The output is closed or full.
    #[error("cannot write the reasons: {0}")]
    Output(#[from] io::Error),
}

/// The command.
pub fn command(args: &ReasonsArgs, io: &mut Io<'_>) -> Result<(), Error> {
    let meanings: Vec<Meaning> = match &args.reason {
        Some(wanted) => {
            let found = meanings::all().into_iter().find(|meaning| meaning.reason.eq_ignore_ascii_case(wanted));
            vec![found.ok_or_else(|| Error::Unknown(wanted.clone()))?]
        }
        None => meanings::all(),
    };
    let text = match args.output {
        ReasonsFormat::Text => text(&meanings),
        ReasonsFormat::Json => json(&meanings)?,
        ReasonsFormat::Markdown => markdown(&meanings),
    };
    io.stdout.write_all(text.as_bytes())?;
    io.stdout.flush()?;
    Ok(())
}

/// What it says; what Terraform reports says it in its own words, and its class is what it has in common.
const fn meaning(of: &Meaning) -> &'static str {
    if of.meaning.is_empty() { of.group.title().1 } else { of.meaning }
}

fn text(meanings: &[Meaning]) -> String {
    let mut text = String::new();
    for found in meanings {
        let _ = writeln!(text, "{} ({})\n  {}", found.reason, found.group.as_str(), meaning(found).replace('`', ""));
        if !found.remedy.is_empty() {
            let _ = writeln!(text, "  {}", found.remedy);
        }
    }
    text
}

fn json(meanings: &[Meaning]) -> Result<String, serde_json::Error> {
    let list: Vec<_> = meanings
        .iter()
        .map(|found| {
            json!({
                "reason": found.reason,
                "group": found.group.as_str(),
                "meaning": meaning(found),
                "remedy": found.remedy,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn markdown(meanings: &[Meaning]) -> String {
    let mut text = "# Reasons\n\nGenerated from the code by `just docs`; a test fails when it is stale. \
                    `capt-operator reasons` prints the same, `capt-operator explain` what matters to one object.\n"
        .to_owned();
    for group in Group::ALL {
        let of_group: Vec<&Meaning> = meanings.iter().filter(|meaning| meaning.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        let (title, first) = group.title();
        let _ = write!(text, "\n## {title}\n\n{first}\n\n");
        let has_meanings = of_group.iter().any(|meaning| !meaning.meaning.is_empty());
        let _ = text.write_str(if has_meanings {
            "| reason | meaning | what to do |\n|---|---|---|\n"
        } else {
            "| reason | what to do |\n|---|---|\n"
        });
        for Meaning { reason, group: _, meaning, remedy } in of_group {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = if has_meanings {
                writeln!(text, "| `{reason}` | {} | {} |", cell(meaning), cell(remedy))
            } else {
                writeln!(text, "| `{reason}` | {} |", cell(remedy))
            };
        }
    }
    text
}
