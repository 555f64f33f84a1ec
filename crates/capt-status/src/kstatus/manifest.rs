//! Any object as it is read from YAML or JSON, for looking at it as tools do.

use alloc::{string::String, vec::Vec};

use serde::Deserialize;

use super::object::Object;
use crate::{condition::AnyCondition, time::Time};

/// What is read of an object of any kind; everything else in it is ignored.
///
/// ```
/// use capt_status::kstatus::{Kstatus, Manifest, compute};
///
/// let object = serde_json::json!({
///     "kind": "Database",
///     "metadata": {"generation": 2},
///     "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]},
/// });
/// let manifest: Manifest = serde_json::from_value(object)?;
/// assert_eq!(compute(&manifest.object()).status, Kstatus::InProgress);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Manifest {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    conditions: Option<Vec<LooseCondition>>,
    #[serde(default)]
    failure_message: Option<String>,
}

/// A condition in whatever form somebody wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LooseCondition {
    #[serde(default, rename = "type")]
    type_: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    last_transition_time: Option<Time>,
    #[serde(default)]
    severity: Option<String>,
}

impl Manifest {
    /// What tools look at.
    pub fn object(&self) -> Object<'_, LooseCondition> {
        let Self { kind, metadata, status } = self;
        Object {
            kind,
            deleting: metadata.deletion_timestamp.as_ref().is_some_and(|time| !time.is_empty()),
            generation: metadata.generation,
            observed_generation: status.observed_generation,
            conditions: status.conditions.as_deref(),
            failure_message: status.failure_message.as_deref().unwrap_or_default(),
        }
    }
}

impl AnyCondition for LooseCondition {
    fn type_(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn message(&self) -> &str {
        &self.message
    }

    fn observed_generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn last_transition_time(&self) -> Option<Time> {
        self.last_transition_time
    }

    fn severity(&self) -> Option<&str> {
        self.severity.as_deref()
    }
}
