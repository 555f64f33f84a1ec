//! `man`: the manual pages, made from the command line itself.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such command.
    #[error("there is no command `{name}`: it is one of {known}")]
    NoCommand {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The output is closed or full.
    #[error("cannot write the manual page: {0}")]
    Output(#[from] io::Error),
}

/// Writes the page of the command `name`, or of the program.
pub fn write(name: Option<&str>, out: &mut dyn Write) -> Result<(), Error> {
    let mut all = Cli::command();
    // Gives the commands their full names.
    all.build();
    let page = match name {
        None => all,
        Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| Error::NoCommand {
            name: name.to_owned(),
            known: all.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", "),
        })?,
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    Ok(out.write_all(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_exist_is_told_with_those_that_do() {
        let error = write(Some("walk"), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("`walk`") && error.contains("explain"), "{error}");
    }
}
