//! One deadline that runs: when it ends, and what a pause does to it.

use crate::time::{Span, Time};

/// Since when something runs, and for how long it stood still.
///
/// ```
/// use capt_status::{Span, Time, deadline::Running};
///
/// let mut running = Running::start(Time::from_unix(0));
/// running.resume(Time::from_unix(10), Time::from_unix(40));
/// let limit = Span::from_seconds(60);
/// assert_eq!(running.expires_at(limit), Time::from_unix(90));
/// assert!(!running.is_expired(limit, Time::from_unix(89)));
/// assert!(running.is_expired(limit, Time::from_unix(90)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Running {
    /// When it started.
    pub started_at: Time,
    /// For how long it stood still in all.
    pub suspended_for: Span,
}

impl Running {
    /// What starts at `now`.
    pub const fn start(now: Time) -> Self {
        Self { started_at: now, suspended_for: Span::ZERO }
    }

    /// When it has run for `limit`.
    pub const fn expires_at(self, limit: Span) -> Time {
        self.started_at.plus(limit).plus(self.suspended_for)
    }

    /// Whether it has run for `limit` at `now`; never before its start, whatever the limit.
    pub fn is_expired(self, limit: Span, now: Time) -> bool {
        now >= self.expires_at(limit)
    }

    /// How long it may still run; zero once it has expired.
    pub const fn remaining(self, limit: Span, now: Time) -> Span {
        self.expires_at(limit).since(now)
    }

    /// Adds a pause that lasted from `since` until `now`.
    ///
    /// What started during the pause stood still only from then on; a clock that went back during the
    /// pause adds nothing.
    pub fn resume(&mut self, since: Time, now: Time) {
        self.suspended_for = self.suspended_for.plus(now.since(since.max(self.started_at)));
    }
}

/// The time that deadlines go by: it stands still while paused.
pub fn clock(now: Time, paused_since: Option<Time>) -> Time {
    paused_since.map_or(now, |since| since.min(now))
}
