//! Wire type of a running deadline: its start is stored, so that neither a restart nor another
//! leader moves it. Which deadline runs when is decided in [`crate::machine`]; expiry and
//! suspension are not evaluated yet.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::time::{Span, Time};

/// A deadline that is running.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// Name of the timeout, for example controlPlaneTimeout.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub name: String,
    /// When it started.
    pub started_at: Time,
    /// For how long it stood still in all, because of a pause.
    #[serde(default)]
    pub suspended_for: Span,
}
