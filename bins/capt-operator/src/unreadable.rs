//! What a command says when what it was given to read cannot be read. It reads nothing itself.

use std::io;

/// A file or the standard input that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}: {source}")]
pub struct Unreadable {
    /// Which one.
    pub name: String,
    /// Why.
    pub source: io::Error,
}
