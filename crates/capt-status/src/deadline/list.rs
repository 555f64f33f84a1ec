//! Many deadlines: which run, which have expired, and when to look again.
//!
//! Limits come from a function of the name; a name without a limit never expires.

use alloc::{borrow::ToOwned, vec::Vec};

use super::{running::Running, wire::Deadline};
use crate::time::{Span, Time};

/// The deadlines of `names`: those that ran keep their start, the others start now; what `stored`
/// has beyond them has ended.
pub fn keep(stored: &[Deadline], names: &[&str], now: Time) -> Vec<Deadline> {
    names
        .iter()
        .map(|name| match stored.iter().find(|deadline| deadline.name == *name) {
            Some(running) => running.clone(),
            None => Deadline::new((*name).to_owned(), Running::start(now)),
        })
        .collect()
}

/// Adds a pause that lasted from `since` until `now` to each of them.
pub fn resume(deadlines: &mut [Deadline], since: Time, now: Time) {
    for deadline in deadlines {
        let mut running = deadline.running();
        running.resume(since, now);
        deadline.suspended_for = running.suspended_for;
    }
}

/// Those that have expired at `now`, in their order.
pub fn expired<'a>(
    deadlines: &'a [Deadline],
    limit: impl Fn(&str) -> Option<Span> + 'a,
    now: Time,
) -> impl Iterator<Item = &'a Deadline> + 'a {
    deadlines
        .iter()
        .filter(move |deadline| limit(&deadline.name).is_some_and(|limit| deadline.running().is_expired(limit, now)))
}

/// The one that expires next, and when; those that have expired at `now` are over.
pub fn earliest(deadlines: &[Deadline], limit: impl Fn(&str) -> Option<Span>, now: Time) -> Option<(&Deadline, Time)> {
    deadlines
        .iter()
        .filter_map(|deadline| Some((deadline, deadline.running().expires_at(limit(&deadline.name)?))))
        .filter(|(_, at)| *at > now)
        .min_by_key(|(_, at)| *at)
}

/// How long to wait before looking again: until the next one expires, as [`requeue`] says; `None` if
/// nothing is left to expire.
pub fn next(deadlines: &[Deadline], limit: impl Fn(&str) -> Option<Span>, now: Time, cap: Span) -> Option<Span> {
    earliest(deadlines, limit, now).map(|(_, at)| requeue(at, now, cap))
}

/// How long to wait for `at`: at least a second, so that nothing spins, and at most `cap`, so that a
/// clock that jumps is noticed.
pub fn requeue(at: Time, now: Time, cap: Span) -> Span {
    let second = Span::from_seconds(1);
    at.since(now).min(cap).max(second)
}
