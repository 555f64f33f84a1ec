//! Faults by chance, the same for the same seed.

use std::collections::BTreeMap;

use capt_reconcile::{
    executor::{Refusal, Request},
    object::Kind,
};
use capt_status::{Span, Time};
use serde::Deserialize;

use super::{Error, play::BEGIN};
use crate::{
    api::Change,
    simulation::hooks::{Delivery, Fate, Hooks},
};

/// How likely each fault is, of each request or change that is delivered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Chances {
    /// The API server refuses a request.
    pub refused: f64,
    /// A request never arrives.
    pub lost: f64,
    /// The answer to a request is lost.
    pub unanswered: f64,
    /// CAPT dies before or after a write.
    pub crash: f64,
    /// CAPT stands still before a write, and another one takes over.
    pub held: f64,
    /// A change is delivered up to five minutes late, and what the same watch has to say after it no earlier.
    pub late: f64,
    /// How long after the beginning these faults are over.
    pub until: Option<Span>,
}

impl Chances {
    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { refused, lost, unanswered, crash, held, late, until: _ } = self;
        let sum = refused + lost + unanswered + crash + held;
        let each = [refused, lost, unanswered, crash, held, late];
        if sum > 1.0 || each.iter().any(|chance| !(0.0..=1.0).contains(*chance)) {
            return Err(Error::Chances(sum));
        }
        Ok(())
    }
}

/// Numbers by chance, the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that begin with `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is 1 at least.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.roll() % end).unwrap_or_default()
    }

    /// A number from 0 up to 1.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn chance(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Faults by chance.
#[derive(Debug, Clone)]
pub struct Random {
    chances: Chances,
    dice: Dice,
    /// What CAPT listed when it started last.
    listed: u64,
    /// Until when the watch of a kind says nothing: it keeps its order, so nothing overtakes what is late.
    behind: BTreeMap<Kind, Time>,
}

impl Random {
    /// Faults that follow from `seed`.
    pub const fn new(chances: Chances, seed: u64) -> Self {
        Self { chances, dice: Dice::new(seed), listed: 0, behind: BTreeMap::new() }
    }

    fn is_over(&self, now: Time) -> bool {
        self.chances.until.is_some_and(|until| now >= BEGIN.plus(until))
    }
}

/// Codes and reasons of refusals that pass by themselves.
pub const REFUSALS: [(u16, &str); 7] = [
    (409, "Conflict"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (403, "Forbidden"),
    (422, "Invalid"),
    (413, "RequestEntityTooLarge"),
];

impl Hooks for Random {
    fn fate(&mut self, request: &mut Request, now: Time) -> Fate {
        if self.is_over(now) {
            return Fate::Answered;
        }
        let mut left = self.dice.chance();
        let mut falls = |chance: f64| {
            let falls = left >= 0.0 && left < chance;
            left -= chance;
            falls
        };
        let Chances { refused, lost, unanswered, crash, held, late: _, until: _ } = self.chances;
        if falls(refused) {
            let (code, reason) = REFUSALS[self.dice.below(REFUSALS.len())];
            return Fate::Refused(Refusal { code, reason: reason.to_owned(), message: "by chance".to_owned() });
        }
        if falls(lost) {
            return Fate::Lost;
        }
        if falls(unanswered) {
            return Fate::Unanswered;
        }
        if falls(crash) && request.is_write() {
            return if self.dice.below(2) == 0 { Fate::CrashBefore } else { Fate::CrashAfter };
        }
        if falls(held) && request.is_write() {
            return Fate::Held(Span::from_seconds(i64::try_from(self.dice.below(1_800)).unwrap_or_default()));
        }
        Fate::Answered
    }

    fn restarts(&mut self, listed: u64) {
        self.listed = listed;
        self.behind.clear();
    }

    fn delivers(&mut self, change: &Change, now: Time) -> Delivery {
        if change.resource_version <= self.listed {
            return Delivery::Now;
        }
        if !self.is_over(now) && self.dice.chance() < self.chances.late {
            let at = now.plus(Span::from_seconds(i64::try_from(self.dice.below(300)).unwrap_or_default()));
            let behind = self.behind.entry(change.key.kind).or_default();
            *behind = at.max(*behind);
        }
        match self.behind.get(&change.key.kind) {
            Some(until) if *until > now => Delivery::Late(until.since(now)),
            Some(_) | None => Delivery::Now,
        }
    }
}
