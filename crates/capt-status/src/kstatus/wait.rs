//! `kubectl wait --for=condition=...`: whether it returns.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString as _},
};
use core::str::FromStr;

use super::object::Object;
use crate::condition::AnyCondition;

/// Why a text is not a condition to wait for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a condition to wait for: write it as condition=Ready or condition=Ready=false")]
pub struct ParseWaitError(String);

/// What `kubectl wait` waits for: a condition type and a status.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wait {
    /// Condition type, compared without regard to case.
    pub type_: String,
    /// Condition status, compared without regard to case.
    pub status: String,
}

impl Wait {
    /// What `--for=<text>` waits for; the status is `true` if the text does not say.
    pub fn parse(text: &str) -> Result<Self, ParseWaitError> {
        let error = || ParseWaitError(text.to_string());
        let condition = text.strip_prefix("condition=").ok_or_else(error)?;
        let (type_, status) = condition.split_once('=').unwrap_or((condition, "true"));
        if type_.is_empty() {
            return Err(error());
        }
        Ok(Self { type_: type_.to_owned(), status: status.to_owned() })
    }

    /// Whether `object` is what is waited for.
    ///
    /// The first condition of the type decides. One that speaks of an older generation is not met;
    /// the condition's own `observedGeneration` counts before that of the status, and without either
    /// a stale condition is taken for true. Case is ignored for ASCII, which types are made of.
    pub fn is_met<C: AnyCondition>(&self, object: &Object<'_, C>) -> bool {
        let Some(condition) =
            object.listed().iter().find(|condition| condition.type_().eq_ignore_ascii_case(&self.type_))
        else {
            return false;
        };
        let observed = condition.observed_generation().or(object.observed_generation);
        if let (Some(generation), Some(observed)) = (object.generation, observed)
            && observed < generation
        {
            return false;
        }
        condition.status().eq_ignore_ascii_case(&self.status)
    }
}

impl FromStr for Wait {
    type Err = ParseWaitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}
