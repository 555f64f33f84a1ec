//! The question that is asked right before each write: may it start?
//!
//! Everybody who writes holds the same gate. It is one number that the lease's keeper moves and that
//! writers compare with the clock, so a process that stood still finds it shut when it goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::machine::Moment;

/// A clock that never goes back and goes on while the machine sleeps, since any origin.
pub type Ticks = fn() -> Moment;

/// The time since this machine was started, sleep included: during it others may have taken over.
pub fn boot_time() -> Moment {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Neither is ever negative on this clock.
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Whether writes may start; cheap to clone.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Ticks,
    /// Milliseconds on `clock` from which on no write may start, by the lease.
    lease: AtomicU64,
    /// The same, since the process is about to end.
    end: AtomicU64,
}

impl Gate {
    /// A gate that is open for good: there is no lease.
    pub fn open(clock: Ticks) -> Self {
        Self::new(clock, u64::MAX)
    }

    /// A gate that is shut until a lease opens it.
    pub fn shut(clock: Ticks) -> Self {
        Self::new(clock, 0)
    }

    fn new(clock: Ticks, lease: u64) -> Self {
        Self(Arc::new(Shared { clock, lease: AtomicU64::new(lease), end: AtomicU64::new(u64::MAX) }))
    }

    /// The lease holds until `until`, absent if it does not.
    pub fn lease(&self, until: Option<Moment>) {
        self.0.lease.store(until.map_or(0, millis), Ordering::SeqCst);
    }

    /// The process is about to end: no write may start once `time` has passed.
    pub fn end_in(&self, time: Duration) {
        let end = millis((self.0.clock)().saturating_add(time));
        self.0.end.fetch_min(end, Ordering::SeqCst);
    }

    /// Whether a write may start now.
    pub fn is_open(&self) -> bool {
        let until = self.0.lease.load(Ordering::SeqCst).min(self.0.end.load(Ordering::SeqCst));
        until == u64::MAX || millis((self.0.clock)()) < until
    }

    /// The clock that counts.
    pub fn now(&self) -> Moment {
        (self.0.clock)()
    }
}

fn millis(moment: Moment) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    fn clock() -> Moment {
        Duration::from_secs(NOW.get())
    }

    #[test]
    fn it_shuts_by_itself_when_time_passes() {
        let gate = Gate::shut(clock);
        assert!(!gate.is_open());
        gate.lease(Some(Duration::from_secs(10)));
        NOW.set(9);
        assert!(gate.is_open());
        NOW.set(10);
        assert!(!gate.is_open());
        gate.lease(Some(Duration::from_secs(20)));
        assert!(gate.is_open());
        gate.lease(None);
        assert!(!gate.is_open());
    }

    #[test]
    fn the_end_shuts_it_whatever_the_lease_says() {
        for gate in [Gate::open(clock), Gate::shut(clock)] {
            NOW.set(100);
            gate.lease(Some(Duration::from_secs(1_000)));
            gate.end_in(Duration::from_secs(1));
            gate.end_in(Duration::from_secs(5));
            assert!(gate.is_open());
            NOW.set(101);
            assert!(!gate.is_open(), "the earlier end counts");
            gate.lease(Some(Duration::from_secs(2_000)));
            assert!(!gate.is_open());
        }
    }

    #[test]
    fn the_clock_of_this_machine_goes_on() {
        let before = boot_time();
        std::thread::sleep(Duration::from_millis(5));
        assert!(boot_time() >= before + Duration::from_millis(5));
    }
}
