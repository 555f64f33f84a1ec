//! `metav1.Condition` as it is on the wire, and what can be read of conditions of any origin.
//!
//! Place in the flow: in status, in the CRD and in plans. Reading takes what the API server stores;
//! what is written is made from a [`Verdict`](super::Verdict), which is checked.

use alloc::string::String;
#[cfg(feature = "schemars")]
use alloc::string::ToString as _; // the derive of a pattern calls it

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Whether the thing that a condition's type names is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    #[allow(missing_docs)]
    True,
    #[allow(missing_docs)]
    False,
    #[allow(missing_docs)]
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

impl ConditionStatus {
    /// All three.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// `True`, `False` or `Unknown`, as on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status that is written as `text`, if one is.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// One aspect of an object's state, with the limits of `metav1.Condition`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    #[cfg_attr(
        feature = "schemars",
        schemars(
            length(max = 316),
            regex(
                pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            )
        )
    )]
    pub type_: String,
    /// One of True, False, Unknown.
    pub status: ConditionStatus,
    /// Generation of the object that the condition was set upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0)))]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// Why, as a CamelCase word for programs.
    #[cfg_attr(
        feature = "schemars",
        schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))
    )]
    pub reason: String,
    /// Why, in words for people; may be empty.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(length(max = 32768)))]
    pub message: String,
}

/// What is read of a condition that anybody may have written, in whatever form.
///
/// Summaries, mirrors and the views of tools read conditions through this, so they work on
/// [`Condition`], on the condition of k8s-openapi (feature `k8s-openapi`) and on types of your own.
pub trait AnyCondition {
    /// Its type.
    fn type_(&self) -> &str;

    /// Its status; text, since others may write more than three of them.
    fn status(&self) -> &str;

    /// Its reason, empty if it has none.
    fn reason(&self) -> &str;

    /// Its message, empty if it has none.
    fn message(&self) -> &str;

    /// The generation it speaks of, if it says so.
    fn observed_generation(&self) -> Option<i64> {
        None
    }

    /// When its status last changed, if it says so.
    fn last_transition_time(&self) -> Option<Time> {
        None
    }

    /// Its severity, which only conditions of the contract v1beta1 have.
    fn severity(&self) -> Option<&str> {
        None
    }
}

impl AnyCondition for Condition {
    fn type_(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        self.status.as_str()
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
        Some(self.last_transition_time)
    }
}

impl<C: AnyCondition> AnyCondition for &C {
    fn type_(&self) -> &str {
        C::type_(self)
    }

    fn status(&self) -> &str {
        C::status(self)
    }

    fn reason(&self) -> &str {
        C::reason(self)
    }

    fn message(&self) -> &str {
        C::message(self)
    }

    fn observed_generation(&self) -> Option<i64> {
        C::observed_generation(self)
    }

    fn last_transition_time(&self) -> Option<Time> {
        C::last_transition_time(self)
    }

    fn severity(&self) -> Option<&str> {
        C::severity(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_is_that_of_metav1() {
        let json = r#"{"type":"Ready","status":"False","observedGeneration":2,"lastTransitionTime":"2026-01-31T12:00:00Z","reason":"DiskFull","message":"disk is full"}"#;
        let condition: Condition = serde_json::from_str(json).unwrap();
        assert_eq!(condition.status, ConditionStatus::False);
        assert_eq!(serde_json::to_string(&condition).unwrap(), json);
        let short = r#"{"type":"Ready","status":"Unknown","lastTransitionTime":"2026-01-31T12:00:00Z","reason":"New"}"#;
        let condition: Condition = serde_json::from_str(short).unwrap();
        assert_eq!((condition.observed_generation, condition.message.as_str()), (None, ""));
    }

    #[test]
    fn a_status_is_one_of_three() {
        for status in ConditionStatus::ALL {
            assert_eq!(ConditionStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(ConditionStatus::parse("true"), None);
        assert!(serde_json::from_str::<ConditionStatus>("\"true\"").is_err());
    }
}
