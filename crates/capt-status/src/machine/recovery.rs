//! Attempts to recover from a failure that may pass: when the next one is due, and when they are spent.

use crate::time::{Span, Time};

/// How often and how patiently to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Attempts before giving up; 0 means never act, and then only a deadline ends the waiting.
    pub max_retries: u32,
    /// Before the first attempt.
    pub initial_interval: Span,
    /// Factor from one interval to the next, at least 1.
    pub multiplier: u32,
    /// Longest interval.
    pub max_interval: Span,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_retries: 5,
            initial_interval: Span::from_seconds(30),
            multiplier: 2,
            max_interval: Span::from_minutes(10),
        }
    }
}

impl Budget {
    /// How long to wait before the attempt after `attempts` attempts.
    pub fn interval(&self, attempts: u32) -> Span {
        let factor = i64::from(self.multiplier.max(1)).saturating_pow(attempts);
        let seconds = self.initial_interval.as_seconds().saturating_mul(factor);
        Span::from_seconds(seconds.min(self.max_interval.as_seconds()))
    }
}

/// What was tried so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attempts {
    /// Attempts made.
    pub made: u32,
    /// When the last one was made.
    pub last: Option<Time>,
    /// When the next one is due, or when the last one has had its time.
    pub next: Option<Time>,
    /// Whether they are spent.
    pub spent: bool,
}

impl Attempts {
    /// Moves on while a failure stands that may pass; true if an attempt is made now.
    ///
    /// `longest` makes every interval the longest one: a quota is not there again in seconds.
    pub(super) fn advance(&mut self, budget: &Budget, longest: bool, busy: bool, now: Time) -> bool {
        if budget.max_retries == 0 || self.spent {
            return false;
        }
        let interval = if longest { budget.max_interval } else { budget.interval(self.made) };
        let Some(next) = self.next else {
            self.next = Some(now.plus(interval));
            return false;
        };
        // Nothing is asked of a provider that may be at work; the attempt waits for it.
        if now < next || busy {
            return false;
        }
        if self.made >= budget.max_retries {
            self.spent = true;
            self.next = None;
            return false;
        }
        self.made += 1;
        self.last = Some(now);
        let interval = if longest { budget.max_interval } else { budget.interval(self.made) };
        self.next = Some(now.plus(interval));
        true
    }
}
