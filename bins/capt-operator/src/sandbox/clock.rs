//! The time of the sandbox: it begins with ours and runs faster.

use std::{sync::OnceLock, time::Instant};

use capt_status::{Span, Time};

use crate::worker::system_clock;

/// When it began, in both times, and how much faster it runs.
static BEGINNING: OnceLock<(Instant, Time, u32)> = OnceLock::new();

/// Lets time run `speed` times as fast as ours. There is one sandbox in a process: a second start
/// changes nothing.
pub(super) fn start(speed: u32) {
    BEGINNING.get_or_init(|| (Instant::now(), system_clock(), speed));
}

/// The time in the sandbox, in whole seconds.
pub(super) fn now() -> Time {
    let (began, at, speed) = *BEGINNING.get_or_init(|| (Instant::now(), system_clock(), 1));
    let seconds = (began.elapsed() * speed).as_secs();
    at.plus(Span::from_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)))
}
