//! Health: named checks with their results, and all of them together (requirements 003).
//!
//! What a check finds is found out by whoever looks; here is what becomes of it in a status.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    text::{MAX_MESSAGE, truncate},
    time::Time,
};

/// Health of a serving object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Health {
    /// All checks together.
    pub status: HealthStatus,
    /// The checks, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 16)))]
    pub checks: Vec<HealthCheck>,
}

/// Healthy if no check failed, Unhealthy if one did, Unknown if nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum HealthStatus {
    Healthy,
    Unhealthy,
    Unknown,
}

impl HealthStatus {
    fn of(results: &[CheckResult<'_>]) -> Self {
        let is = |status| results.iter().any(|result| result.status == status);
        if is(CheckStatus::Failed) {
            Self::Unhealthy
        } else if is(CheckStatus::Passed) {
            Self::Healthy
        } else {
            Self::Unknown
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// DependencyCheck, WorkspaceCheck, EndpointCheck, SecretCheck or ConnectionCheck.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub name: String,
    /// Its result.
    pub status: CheckStatus,
    /// Why, as a CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 1024)))]
    pub reason: String,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 1024)))]
    pub message: String,
    /// When the result last changed.
    pub last_transition_time: Time,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum CheckStatus {
    Passed,
    Failed,
    Unknown,
}

/// Names of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckName {
    /// What the object refers to is there.
    Dependency,
    /// Its Workspace reports no error.
    Workspace,
    /// Its endpoint is valid.
    Endpoint,
    /// Its Secrets are there and current.
    Secret,
    /// Something answers at the endpoint.
    Connection,
}

impl CheckName {
    /// Every check, from the cause to what it shows in.
    pub const ALL: [Self; 5] = [Self::Dependency, Self::Workspace, Self::Endpoint, Self::Secret, Self::Connection];

    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dependency => "DependencyCheck",
            Self::Workspace => "WorkspaceCheck",
            Self::Endpoint => "EndpointCheck",
            Self::Secret => "SecretCheck",
            Self::Connection => "ConnectionCheck",
        }
    }
}

/// What a check found; reason and text are empty where there is nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult<'a> {
    /// Which check.
    pub name: CheckName,
    /// Its result.
    pub status: CheckStatus,
    /// Why, as a CamelCase word.
    pub reason: &'a str,
    /// Why, in words; cut to what a status may hold.
    pub message: &'a str,
}

impl<'a> CheckResult<'a> {
    /// A check that passed, or of which nothing is known.
    pub const fn plain(name: CheckName, status: CheckStatus) -> Self {
        Self { name, status, reason: "", message: "" }
    }

    /// A check that failed, and why.
    pub const fn failed(name: CheckName, reason: &'a str, message: &'a str) -> Self {
        Self { name, status: CheckStatus::Failed, reason, message }
    }
}

impl Health {
    /// What `before` becomes with `results` at `now`: the time of a check moves only with its result.
    ///
    /// ```
    /// use capt_status::{HealthStatus, Health, Time, health::{CheckName, CheckResult}};
    ///
    /// let failed = [CheckResult::failed(CheckName::Connection, "ConnectionDown", "no answer")];
    /// let health = Health::observe(None, &failed, Time::from_unix(0));
    /// let later = Health::observe(Some(&health), &failed, Time::from_unix(60));
    /// assert_eq!((health.status, health == later), (HealthStatus::Unhealthy, true));
    /// ```
    pub fn observe(before: Option<&Self>, results: &[CheckResult<'_>], now: Time) -> Self {
        let checks = results
            .iter()
            .map(|CheckResult { name, status, reason, message }| {
                let last = before
                    .and_then(|health| health.checks.iter().find(|check| check.name == name.as_str()))
                    .filter(|check| check.status == *status);
                HealthCheck {
                    name: name.as_str().to_owned(),
                    status: *status,
                    reason: (*reason).to_owned(),
                    message: truncate(message, MAX_MESSAGE),
                    last_transition_time: last.map_or(now, |check| check.last_transition_time),
                }
            })
            .collect();
        Self { status: HealthStatus::of(results), checks }
    }

    /// Whether it says exactly what `results` do, so that [`Health::observe`] would change nothing; allocates nothing.
    pub fn says(&self, results: &[CheckResult<'_>]) -> bool {
        let is_told = |check: &HealthCheck, result: &CheckResult<'_>| {
            let CheckResult { name, status, reason, message } = result;
            let is_cut = message.len() > MAX_MESSAGE;
            (check.name.as_str(), check.status, check.reason.as_str()) == (name.as_str(), *status, *reason)
                && if is_cut { check.message == truncate(message, MAX_MESSAGE) } else { check.message == *message }
        };
        self.status == HealthStatus::of(results)
            && self.checks.len() == results.len()
            && self.checks.iter().zip(results).all(|(check, result)| is_told(check, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_is_unhealthy_and_nothing_known_is_unknown() {
        use CheckStatus::{Failed, Passed, Unknown};
        let observe = |statuses: &[CheckStatus]| {
            let results: Vec<_> = CheckName::ALL
                .into_iter()
                .zip(statuses)
                .map(|(name, status)| CheckResult::plain(name, *status))
                .collect();
            Health::observe(None, &results, Time::from_unix(0)).status
        };
        for (statuses, expected) in [
            (&[][..], HealthStatus::Unknown),
            (&[Unknown, Unknown], HealthStatus::Unknown),
            (&[Unknown, Passed], HealthStatus::Healthy),
            (&[Passed, Failed, Unknown], HealthStatus::Unhealthy),
        ] {
            assert_eq!(observe(statuses), expected, "{statuses:?}");
        }
    }

    #[test]
    fn the_time_of_a_check_moves_with_its_result_and_only_then() {
        let at = |health: &Health| health.checks[0].last_transition_time.as_unix();
        let look = |before: Option<&Health>, status, message, now| {
            let result = CheckResult { status, message, ..CheckResult::plain(CheckName::Endpoint, status) };
            Health::observe(before, &[result], Time::from_unix(now))
        };
        let first = look(None, CheckStatus::Failed, "a", 1);
        let other_text = look(Some(&first), CheckStatus::Failed, "b", 2);
        assert_eq!((at(&first), at(&other_text), other_text.checks[0].message.as_str()), (1, 1, "b"));
        assert_eq!(at(&look(Some(&other_text), CheckStatus::Passed, "", 3)), 3);
        // Another check with the same result is another check.
        let other = [CheckResult::plain(CheckName::Secret, CheckStatus::Failed)];
        assert_eq!(at(&Health::observe(Some(&first), &other, Time::from_unix(4))), 4);
        assert_eq!(look(None, CheckStatus::Failed, &"x".repeat(5000), 1).checks[0].message.len(), MAX_MESSAGE);
    }

    #[test]
    fn it_says_something_exactly_if_looking_again_changes_nothing() {
        let (cut, long) = ("x".repeat(MAX_MESSAGE), "x".repeat(MAX_MESSAGE + 1));
        let results = |name| {
            let statuses = [CheckStatus::Passed, CheckStatus::Failed, CheckStatus::Unknown];
            let texts = [("", ""), ("A", "a"), ("B", "a"), ("A", cut.as_str()), ("A", long.as_str())];
            let all = statuses.into_iter().flat_map(move |status| texts.map(|text| (status, text)));
            all.map(move |(status, (reason, message))| CheckResult { name, status, reason, message })
        };
        let endpoints = || results(CheckName::Endpoint);
        let mut lists: Vec<Vec<CheckResult<'_>>> =
            endpoints().chain(results(CheckName::Secret)).map(|one| Vec::from([one])).collect();
        lists.extend(endpoints().zip(results(CheckName::Secret)).map(|(one, other)| Vec::from([one, other])));
        lists.push(Vec::new());
        let mut told = 0;
        for before in &lists {
            let health = Health::observe(None, before, Time::from_unix(1));
            for after in &lists {
                let is_same = Health::observe(Some(&health), after, Time::from_unix(2)) == health;
                assert!(health.says(after) == is_same, "{is_same}: {} {}", before.len(), after.len());
                told += usize::from(is_same);
            }
        }
        assert_eq!(told, lists.len(), "each says itself");
        let other = Health { status: HealthStatus::Unknown, ..Health::observe(None, &lists[0], Time::from_unix(1)) };
        assert!(!other.says(&lists[0]), "the whole counts as well");
    }
}
