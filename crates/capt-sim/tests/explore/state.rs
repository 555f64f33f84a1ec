//! One state of the world, small enough to keep millions.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use capt_status::{Span, Time};

use crate::versions::{SLOTS, Slot, VersionId};

/// What a Terraform state holds, counted over the whole life of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Terraform {
    pub exists: bool,
    pub created: u8,
    pub destroyed: u8,
}

/// A kind whose watch delivers nothing for now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lag {
    /// First slot of the kind.
    pub kind_of: Slot,
    /// What the cache still shows.
    pub cached: [VersionId; SLOTS],
}

/// A state of the world, with what may still go wrong in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub live: [VersionId; SLOTS],
    /// How often each object was made.
    pub born: [u8; SLOTS],
    pub lag: Option<Box<Lag>>,
    /// A pass that was held up between two requests; 0 is none.
    pub held: u32,
    /// Clock.
    pub tick: u8,
    /// Passes that may still be held up.
    pub holds: u8,
    /// Lags that may still happen.
    pub lags: u8,
    /// Ticks that may still pass.
    pub ticks: u8,
    /// Deeds of users that happened, by bit.
    pub deeds: u16,
    /// Terraform states, by slot of the Workspace.
    pub terraform: [Terraform; SLOTS],
}

/// Length of a tick: longer than each deadline of the examples.
const TICK: i64 = 31 * 60;

/// The time at `tick`.
pub fn time(tick: u8) -> Time {
    Time::from_unix(1_800_000_000).plus(Span::from_seconds(i64::from(tick) * TICK))
}

/// The first tick at or after `at`.
pub fn tick_of(at: Time) -> u8 {
    (0..=u8::MAX).find(|tick| time(*tick) >= at).unwrap_or(u8::MAX)
}

impl State {
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }

    pub fn did(&self, deed: usize) -> bool {
        self.deeds & (1 << deed) != 0
    }

    /// What the caches show of `slot`.
    pub fn cached(&self, slot: Slot, is_lagging: impl Fn(Slot) -> bool) -> VersionId {
        match &self.lag {
            Some(lag) if is_lagging(slot) => lag.cached[usize::from(slot)],
            Some(_) | None => self.live[usize::from(slot)],
        }
    }
}
