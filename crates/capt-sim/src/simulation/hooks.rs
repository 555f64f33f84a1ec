//! Where something can go wrong between CAPT and its world, and be watched.

use capt_reconcile::{
    executor::{Refusal, Request, Response},
    object::ObjectKey,
    plan::{Event, Plan},
    world::World,
};
use capt_status::{Span, Time};
use serde_json::Value;

use crate::api::{Api, Change};

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It is carried out and answered.
    Answered,
    /// The API server refuses it.
    Refused(Refusal),
    /// It never arrives, and no answer comes.
    Lost,
    /// It is carried out, and the answer is lost.
    Unanswered,
    /// The process dies before it sends it.
    CrashBefore,
    /// The process dies right after it was carried out.
    CrashAfter,
    /// The process stands still; another one takes over; the request arrives this much later.
    Held(Span),
}

/// What becomes of a change that a watch delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives.
    Now,
    /// It arrives twice.
    Twice,
    /// It arrives this much later, or with the next change of the same object.
    Late(Span),
}

/// Called at each point of a run; by default everything is as it should be.
pub trait Hooks {
    /// The clock that a pass reads, where it is `now`.
    fn clock(&mut self, _pass: &ObjectKey, now: Time) -> Time {
        now
    }

    /// What the pass sees instead of `world`.
    fn sees(&mut self, _pass: &ObjectKey, _world: &World, _api: &Api, _now: Time) -> Option<World> {
        None
    }

    /// A pass has planned this on `world`; true if the pass is run once more right after.
    fn planned(&mut self, _world: &World, _plan: &mut Plan, _now: Time) -> bool {
        false
    }

    /// A request is about to be sent; it can be changed.
    fn fate(&mut self, _request: &mut Request, _now: Time) -> Fate {
        Fate::Answered
    }

    /// A request was answered; `before` is its target as it was.
    fn answered(&mut self, _request: &Request, _before: Option<&Value>, _response: &Response, _now: Time) {}

    /// An event was published.
    fn published(&mut self, _object: &ObjectKey, _event: &Event, _now: Time) {}

    /// CAPT starts anew, and lists everything up to this version.
    fn restarts(&mut self, _listed: u64) {}

    /// A watch delivers this.
    fn delivers(&mut self, _change: &Change, _now: Time) -> Delivery {
        Delivery::Now
    }
}

/// Nothing goes wrong.
#[derive(Debug, Default)]
pub struct Nothing;

impl Hooks for Nothing {}
