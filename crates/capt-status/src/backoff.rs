//! Trying again: how long to wait, how often, and when to give up.
//!
//! Place in the flow: beside the decision that something failed. Everything is arithmetic on values
//! that are stored, without randomness: two replicas, or the same one after a restart, agree.
//! Objects are spread by when they fail, so no jitter is needed.

use crate::time::{Span, Time};

/// How long to wait between attempts: each interval is `multiplier` times the one before, up to `max`.
///
/// ```
/// use capt_status::{Span, backoff::Backoff};
///
/// let backoff = Backoff { initial: Span::from_seconds(30), multiplier: 2, max: Span::from_minutes(3) };
/// assert_eq!([0, 1, 2, 3, 99].map(|made| backoff.interval(made).as_seconds()), [30, 60, 120, 180, 180]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Before the first attempt.
    pub initial: Span,
    /// Factor from one interval to the next; below 1 it counts as 1.
    pub multiplier: u32,
    /// Longest interval.
    pub max: Span,
}

impl Default for Backoff {
    /// 30 seconds, doubled up to 10 minutes.
    fn default() -> Self {
        Self { initial: Span::from_seconds(30), multiplier: 2, max: Span::from_minutes(10) }
    }
}

impl Backoff {
    /// How long to wait before the next attempt when `made` attempts were made; saturates.
    pub const fn interval(&self, made: u32) -> Span {
        let multiplier = if self.multiplier < 1 { 1 } else { self.multiplier };
        let factor = (multiplier as i64).saturating_pow(made);
        let seconds = self.initial.as_seconds().saturating_mul(factor);
        if seconds < self.max.as_seconds() { Span::from_seconds(seconds) } else { self.max }
    }
}

/// How often and how patiently to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Attempts before giving up; 0 means never to act.
    pub max_retries: u32,
    /// How long to wait between them.
    pub backoff: Backoff,
}

impl Default for Budget {
    /// 5 attempts with the default backoff.
    fn default() -> Self {
        Self { max_retries: 5, backoff: Backoff::default() }
    }
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// As the backoff says.
    Growing,
    /// The longest interval each time: for what is not there again in seconds, such as a quota.
    Longest,
}

impl Budget {
    /// Attempts that are left when `made` were made.
    pub const fn left(&self, made: u32) -> u32 {
        self.max_retries.saturating_sub(made)
    }

    /// How long to wait before the next attempt.
    pub const fn interval(&self, made: u32, pace: Pace) -> Span {
        match pace {
            Pace::Growing => self.backoff.interval(made),
            Pace::Longest => self.backoff.max,
        }
    }
}

/// What was tried so far; a success resets it to its default.
///
/// ```
/// use capt_status::{Time, backoff::{Attempts, Budget, Pace}};
///
/// let budget = Budget::default();
/// let mut attempts = Attempts::default();
/// // Failed just now: the first attempt is due in 30 seconds.
/// assert!(!attempts.advance(&budget, Pace::Growing, false, Time::from_unix(0)));
/// assert_eq!(attempts.next, Some(Time::from_unix(30)));
/// assert!(attempts.advance(&budget, Pace::Growing, false, Time::from_unix(30)));
/// assert_eq!((attempts.made, attempts.next), (1, Some(Time::from_unix(90))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attempts {
    /// Attempts made.
    pub made: u32,
    /// When the last one was made.
    pub last: Option<Time>,
    /// When the next one is due, or, after the last one, when it has had its time.
    pub next: Option<Time>,
    /// Whether they are spent.
    pub spent: bool,
}

impl Attempts {
    /// Moves on while a failure stands; true if an attempt is to be made now.
    ///
    /// While `busy`, nothing can be tried, and the attempt that is due waits. The last attempt has
    /// its time too, so the budget is spent one interval after it. A clock that went back makes
    /// nothing due.
    pub fn advance(&mut self, budget: &Budget, pace: Pace, busy: bool, now: Time) -> bool {
        if budget.max_retries == 0 || self.spent {
            return false;
        }
        let Some(due) = self.next else {
            self.next = Some(now.plus(budget.interval(self.made, pace)));
            return false;
        };
        if now < due || busy {
            return false;
        }
        if budget.left(self.made) == 0 {
            self.spent = true;
            self.next = None;
            return false;
        }
        self.made += 1;
        self.last = Some(now);
        self.next = Some(now.plus(budget.interval(self.made, pace)));
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn budget(max_retries: u32) -> Budget {
        Budget { max_retries, backoff: Backoff::default() }
    }

    /// Times of all attempts when somebody looks each second, and when they are spent.
    fn attempts_until(budget: &Budget, pace: Pace, end: i64) -> (Vec<i64>, Option<i64>) {
        let (mut attempts, mut times, mut spent) = (Attempts::default(), Vec::new(), None);
        for second in 0..=end {
            if attempts.advance(budget, pace, false, Time::from_unix(second)) {
                times.push(second);
            }
            if attempts.spent && spent.is_none() {
                spent = Some(second);
            }
        }
        (times, spent)
    }

    #[test]
    fn intervals_grow_up_to_the_longest() {
        let backoff = |initial, multiplier, max| Backoff {
            initial: Span::from_seconds(initial),
            multiplier,
            max: Span::from_seconds(max),
        };
        for (backoff, intervals) in [
            (Backoff::default(), [30, 60, 120, 240, 480, 600]),
            (backoff(10, 1, 100), [10; 6]),
            (backoff(10, 0, 100), [10; 6]),
            (backoff(10, 3, 100), [10, 30, 90, 100, 100, 100]),
            (backoff(50, 2, 20), [20; 6]),
            (backoff(0, 9, 20), [0; 6]),
            (backoff(i64::MAX, 10, i64::MAX), [i64::MAX; 6]),
        ] {
            assert_eq!([0, 1, 2, 3, 4, 5].map(|made| backoff.interval(made).as_seconds()), intervals, "{backoff:?}");
        }
        assert_eq!(Backoff::default().interval(u32::MAX), Span::from_minutes(10));
    }

    #[test]
    fn attempts_are_made_when_due_and_then_spent() {
        assert_eq!(attempts_until(&budget(3), Pace::Growing, 1000), ([30, 90, 210].into(), Some(450)));
        assert_eq!(attempts_until(&budget(2), Pace::Longest, 2000), ([600, 1200].into(), Some(1800)));
        assert_eq!(attempts_until(&budget(0), Pace::Growing, 2000), (Vec::new(), None));
        assert_eq!([0, 2, 3, 9].map(|made| budget(3).left(made)), [3, 1, 0, 0]);
    }

    #[test]
    fn an_attempt_waits_for_what_is_busy() {
        let mut attempts = Attempts::default();
        let mut look = |busy, second| attempts.advance(&budget(2), Pace::Growing, busy, Time::from_unix(second));
        assert_eq!([look(false, 0), look(true, 30), look(true, 300), look(false, 301)], [false, false, false, true]);
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget_never_early_and_unmoved_by_the_clock(
            max_retries in 0u32..6,
            looks in proptest::collection::vec((-100i64..400, any::<bool>()), 0..60),
        ) {
            let budget = budget(max_retries);
            let (mut attempts, mut second, mut made) = (Attempts::default(), 0, 0);
            for (step, busy) in looks {
                second += step;
                let before = attempts;
                let acts = attempts.advance(&budget, Pace::Growing, busy, Time::from_unix(second));
                if acts {
                    made += 1;
                    prop_assert!(!busy && before.next.is_some_and(|due| due.as_unix() <= second));
                }
                prop_assert_eq!(attempts.made, made);
                prop_assert!(made <= max_retries && !(acts && before.spent));
                // Looking twice acts once.
                let mut again = attempts;
                prop_assert!(!again.advance(&budget, Pace::Growing, busy, Time::from_unix(second)));
            }
        }
    }
}
