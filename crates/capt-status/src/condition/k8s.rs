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

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::condition::{Summary, Verdict, merge, types};

    #[test]
    fn what_is_converted_comes_back() {
        let ready = Verdict::new(types::READY, false, "DiskFull", "disk is full");
        let ours = merge(&[], [ready].into(), 3, Time::from_unix(1_767_225_600));
        let theirs: meta::Condition = ours[0].clone().into();
        // Both have the wire form of metav1, and a summary reads both.
        assert_eq!(serde_json::to_value(&theirs).unwrap(), serde_json::to_value(&ours[0]).unwrap());
        let summary = Summary::new(&["Ready"]);
        let theirs = [theirs];
        assert_eq!(summary.of(&theirs, types::AVAILABLE), summary.of(&ours, types::AVAILABLE));
        let [theirs] = theirs;
        assert_eq!(AnyCondition::reason(&theirs), "DiskFull");
        assert_eq!(AnyCondition::observed_generation(&theirs), Some(3));
        assert_eq!(AnyCondition::last_transition_time(&theirs), Some(Time::from_unix(1_767_225_600)));
        assert_eq!(Condition::try_from(theirs.clone()), Ok(ours[0].clone()));
        let odd = meta::Condition { status: "true".to_string(), ..theirs };
        let error = Condition::try_from(odd).unwrap_err();
        assert_eq!(error, NotACondition { type_: "Ready".to_string(), status: "true".to_string() });
    }
}
