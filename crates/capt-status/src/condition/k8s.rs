//! Conversion from and to the condition of k8s-openapi.

use alloc::string::String;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::wire::{AnyCondition, Condition, ConditionStatus};
use crate::time::Time;

/// Why a condition of k8s-openapi is not a [`Condition`]: its status is a free text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("status `{status}` of condition {type_} is none of True, False and Unknown: correct it where it is written")]
pub struct NotACondition {
    /// Type of the condition.
    pub type_: String,
    /// What its status is.
    pub status: String,
}

impl From<Condition> for meta::Condition {
    fn from(condition: Condition) -> Self {
        let Condition { type_, status, observed_generation, last_transition_time, reason, message } = condition;
        Self {
            type_,
            status: status.as_str().into(),
            observed_generation,
            last_transition_time: meta::Time(last_transition_time.into()),
            reason,
            message,
        }
    }
}

impl TryFrom<meta::Condition> for Condition {
    type Error = NotACondition;

    fn try_from(condition: meta::Condition) -> Result<Self, Self::Error> {
        let meta::Condition { type_, status, observed_generation, last_transition_time, reason, message } = condition;
        match ConditionStatus::parse(&status) {
            Some(status) => Ok(Self {
                type_,
                status,
                observed_generation,
                last_transition_time: Time::from(last_transition_time.0),
                reason,
                message,
            }),
            None => Err(NotACondition { type_, status }),
        }
    }
}

impl AnyCondition for meta::Condition {
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
        Some(Time::from(self.last_transition_time.0))
    }
}
