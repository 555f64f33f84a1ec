//! Does the API server answer? Judged by Cluster API core's probe and, where there is one, by one of our own.
//!
//! It moves a health check and Degraded, never a latch, Ready or Available: core reads those of ours, so
//! that nothing goes round in a circle. A failure counts once it has lasted, since a probe that fails once
//! says nothing.

use capt_api::foreign::ForeignCondition;
use capt_status::{CheckStatus, Span, Time, machine::Cause};

use crate::{reasons, world::Probe};

/// How long a probe has to fail before it counts.
const LASTING: Span = Span::from_minutes(5);

/// What is known of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    /// Passed if a probe succeeds and none fails lastingly; Unknown if none says anything.
    pub(super) status: CheckStatus,
    /// What fails.
    pub(super) cause: Option<Cause>,
    /// When a failure that stands will have lasted.
    pub(super) at: Option<Time>,
}

/// Judges `core`, the Cluster's condition RemoteConnectionProbe, and `own`, a probe of the operator.
/// `has_passed` is whether the check is shown as passed: that stays while a failure has not lasted.
pub(super) fn judge(core: Option<&ForeignCondition>, own: Option<&Probe>, has_passed: bool, now: Time) -> Connection {
    let core = core.and_then(|condition| {
        let since = condition.last_transition_time.as_deref()?.parse().ok()?;
        let who = "Cluster API core does not reach the API server";
        Some((condition.is_true(), condition.is_false(), since, who, condition.message.as_str()))
    });
    let own = own.map(|probe| {
        let who = "the API server does not answer the operator's probe";
        (probe.answers, !probe.answers, probe.since, who, probe.message.as_str())
    });
    let mut found = Connection { status: CheckStatus::Unknown, cause: None, at: None };
    for (answers, fails, since, who, message) in [core, own].into_iter().flatten() {
        let lasts_at = since.plus(LASTING);
        if answers && found.cause.is_none() {
            found.status = CheckStatus::Passed;
        } else if fails && now < lasts_at {
            found.at = Some(found.at.map_or(lasts_at, |at: Time| at.min(lasts_at)));
            if has_passed && found.cause.is_none() {
                found.status = CheckStatus::Passed;
            }
        } else if fails && found.cause.is_none() {
            let message = if message.is_empty() { who.to_owned() } else { format!("{who}: {message}") };
            found.status = CheckStatus::Failed;
            found.cause = Some(Cause::new(reasons::CONNECTION_DOWN, capt_status::text::bounded(message)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use CheckStatus::{Failed, Passed, Unknown};

    use super::*;

    fn condition(status: &str) -> ForeignCondition {
        ForeignCondition {
            status: status.to_owned(),
            reason: "ProbeFailed".to_owned(),
            message: "timeout".to_owned(),
            observed_generation: None,
            last_transition_time: Some("1970-01-01T00:00:00Z".to_owned()),
        }
    }

    fn probe(answers: bool) -> Probe {
        Probe { answers, since: Time::default(), message: String::new() }
    }

    #[test]
    fn a_failure_counts_once_it_has_lasted() {
        let (up, down, odd) = (condition("True"), condition("False"), condition("Unknown"));
        let timeless = ForeignCondition { last_transition_time: None, ..down.clone() };
        let (answers, silent) = (probe(true), probe(false));
        for (core, own, second, status, at) in [
            (None, None, 0, Unknown, None),
            (Some(&up), None, 0, Passed, None),
            (Some(&odd), None, 900, Unknown, None),
            (Some(&timeless), None, 900, Unknown, None),
            (Some(&down), None, 0, Unknown, Some(300)),
            (Some(&down), None, 299, Unknown, Some(300)),
            (Some(&down), None, 300, Failed, None),
            (None, Some(&answers), 0, Passed, None),
            (None, Some(&silent), 299, Unknown, Some(300)),
            (None, Some(&silent), 300, Failed, None),
            (Some(&up), Some(&silent), 100, Passed, Some(300)),
            (Some(&up), Some(&silent), 300, Failed, None),
            (Some(&down), Some(&answers), 300, Failed, None),
            // A clock that went back makes nothing last.
            (Some(&down), None, -900, Unknown, Some(300)),
        ] {
            let found = judge(core, own, false, Time::from_unix(second));
            assert_eq!((found.status, found.at), (status, at.map(Time::from_unix)), "{core:?} {own:?} {second}");
            assert_eq!(found.cause.is_some(), status == Failed);
            let shown = judge(core, own, true, Time::from_unix(second)).status;
            assert_eq!(
                shown,
                if at.is_some() { Passed } else { status },
                "a failure that has not lasted changes nothing"
            );
        }
    }

    #[test]
    fn it_says_who_does_not_reach_it() {
        let found = judge(Some(&condition("False")), None, true, Time::from_unix(300)).cause.unwrap();
        assert_eq!(found, Cause::new("ConnectionDown", "Cluster API core does not reach the API server: timeout"));
        let long = ForeignCondition { message: "x".repeat(32_768), ..condition("False") };
        assert!(judge(Some(&long), None, false, Time::from_unix(300)).cause.unwrap().message.len() <= 1024);
    }
}
