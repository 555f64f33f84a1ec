//! `/livez` and `/readyz`: what they say, and why.
//!
//! Alive means that this process answers; a restart would mend nothing else. Ready means that it sees
//! the cluster as it is: a candidate for the lease is as ready as its holder. It must not ask the API
//! server anything: what passes and watches experience is what counts.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    lease::Standing,
    metrics::Metrics,
    traffic::{Reach, Traffic},
};

/// An API server that is restarted is back by then; a Service need not notice.
const PATIENCE: Duration = Duration::from_secs(30);
/// Watches are opened anew every five minutes; one that was not for twice as long shows an old picture.
const OLDEST_WATCH: Duration = Duration::from_mins(11);

/// What health is read from; cheap to clone.
#[derive(Debug, Clone)]
pub struct Health {
    /// The caches.
    pub metrics: Arc<Metrics>,
    /// How requests went.
    pub traffic: Traffic,
    /// How we stand in the lease.
    pub standing: watch::Receiver<Standing>,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: &'static str,
    /// What it found.
    text: String,
    passed: bool,
}

impl Health {
    /// Whether this operator is ready, and each check in a line.
    pub fn ready(&self) -> (bool, String) {
        let synced = self.metrics.cache().is_some_and(|cache| cache.is_complete());
        let checks = [
            caches(synced),
            reach(self.traffic.reach()),
            watches(self.traffic.oldest_watch()),
            lease(&self.standing.borrow()),
            rival(self.metrics.rival_text()),
        ];
        told(&checks)
    }
}

fn told(checks: &[Check]) -> (bool, String) {
    let mut text = String::new();
    for Check { name, text: found, passed } in checks {
        let mark = if *passed { '+' } else { '-' };
        // Writing to a string does not fail.
        let _ = writeln!(text, "[{mark}] {name}: {found}");
    }
    (checks.iter().all(|check| check.passed), text)
}

fn caches(synced: bool) -> Check {
    let text = if synced { "complete" } else { "waiting for the first list of each kind" };
    Check { name: "caches", text: text.to_owned(), passed: synced }
}

fn reach(reach: Reach) -> Check {
    let (text, passed) = match reach {
        Reach::Never => ("no answer yet".to_owned(), false),
        Reach::Answers => ("answers".to_owned(), true),
        Reach::Silent(time) => (format!("has not answered for {} s", time.as_secs()), time < PATIENCE),
    };
    Check { name: "api-server", text, passed }
}

fn watches(oldest: Option<(&str, Duration)>) -> Check {
    let (text, passed) = match oldest {
        None => ("none opened yet".to_owned(), false),
        Some((resource, age)) => (format!("oldest, of {resource}, opened {} s ago", age.as_secs()), age < OLDEST_WATCH),
    };
    Check { name: "watches", text, passed }
}

fn lease(standing: &Standing) -> Check {
    let passed = match standing {
        Standing::Candidate | Standing::Leader => true,
        Standing::Lost(_) => false,
    };
    Check { name: "lease", text: standing.to_string(), passed }
}

fn rival(held: Option<String>) -> Check {
    let passed = held.is_none();
    Check { name: "writer", text: held.unwrap_or_else(|| "nobody else writes".to_owned()), passed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::machine::Loss;

    #[test]
    fn a_candidate_is_ready_and_who_lost_the_lease_is_not() {
        assert!(lease(&Standing::Candidate).passed && lease(&Standing::Leader).passed);
        assert!(!lease(&Standing::Lost(Loss::Expired)).passed);
    }

    #[test]
    fn who_waits_for_another_operator_is_not_ready_and_says_so() {
        assert!(rival(None).passed);
        let held = rival(Some("stop it".to_owned()));
        assert_eq!((held.passed, held.text.as_str()), (false, "stop it"));
    }

    #[test]
    fn a_short_silence_is_no_reason_and_a_long_one_is() {
        assert!(reach(Reach::Answers).passed && !reach(Reach::Never).passed);
        assert!(reach(Reach::Silent(Duration::from_secs(29))).passed);
        assert!(!reach(Reach::Silent(Duration::from_secs(30))).passed);
    }

    #[test]
    fn an_old_watch_is_told_by_name() {
        assert!(!watches(None).passed);
        assert!(watches(Some(("secrets", Duration::from_mins(6)))).passed);
        let old = watches(Some(("secrets", Duration::from_mins(12))));
        assert!(!old.passed && old.text.contains("secrets"), "{old:?}");
    }

    #[test]
    fn one_check_that_fails_is_enough_and_all_are_told() {
        let (ready, text) = told(&[caches(true), reach(Reach::Never)]);
        assert_eq!((ready, text.as_str()), (false, "[+] caches: complete\n[-] api-server: no answer yet\n"));
        assert!(told(&[caches(true), reach(Reach::Answers)]).0);
    }
}
