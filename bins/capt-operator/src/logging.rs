//! The log of `run`, on the standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{Directive, Filtered},
    fmt,
    layer::{Layered, SubscriberExt},
    reload,
    util::SubscriberInitExt,
};

/// What else takes up spans, beside the log.
pub(crate) type Further = Box<dyn Layer<Lines> + Send + Sync>;

/// The log, as what comes after it sees it.
type Lines =
    Layered<Filtered<Box<dyn Layer<Registry> + Send + Sync>, reload::Layer<EnvFilter, Registry>, Registry>, Registry>;

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

/// The level of the log, which can be changed while it runs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Level(reload::Handle<EnvFilter, Registry>);

impl Level {
    /// Changes it.
    pub fn set(&self, level: &str) -> Result<(), Error> {
        self.0.reload(filter(level)?).map_err(|error| Error::Taken(Box::new(error)))?;
        tracing::info!(level, "the log level was changed");
        Ok(())
    }

    /// What it is.
    pub fn get(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }
}

/// Sets up the log of this process, and what else takes up spans whatever the level of the log is.
pub(crate) fn start(format: LogFormat, level: &str, further: Option<Further>) -> Result<Level, Error> {
    let (filter, handle) = reload::Layer::new(filter(level)?);
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).with_ansi(io::stderr().is_terminal()).boxed(),
        // One span is open at a time, that of the pass; as a list it would be there twice.
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(further)
        .try_init()
        .map_err(|error| Error::Taken(Box::new(error)))?;
    Ok(Level(handle))
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
