//! The log of `run`, on the standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, filter::Directive, fmt};

use crate::cli::LogFormat;

/// kube logs whole bodies that it cannot parse as warnings, secrets included, and what its caller
/// logs anyway.
const SILENCED: &str = "kube_client::client=off";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The level is not one.
    #[error("cannot read the log level: {0}")]
    Level(#[from] tracing_subscriber::filter::ParseError),
    /// Somebody else in this process logs already.
    #[error("cannot set up the log: {0}")]
    Taken(Box<dyn std::error::Error + Send + Sync>),
}

/// Sets up the log of this process.
pub fn start(format: LogFormat, level: &str) -> Result<(), Error> {
    let builder = fmt().with_env_filter(filter(level)?).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_target(false).with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    }
    .map_err(Error::Taken)
}

fn filter(level: &str) -> Result<EnvFilter, Error> {
    let silenced: Directive = SILENCED.parse()?;
    Ok(EnvFilter::try_new(level)?.add_directive(silenced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_stay_out_of_the_log_at_any_level() {
        for level in ["trace", "info,kube_client=trace", "kube_client::client=trace"] {
            let filter = filter(level).unwrap().to_string();
            assert!(filter.contains(SILENCED) && !filter.contains("kube_client::client=trace"), "{filter}");
        }
        assert!(filter("kube=loud").is_err());
    }
}
