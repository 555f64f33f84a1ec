//! A program without the standard library that decides the status of an object with capt-status.
//!
//! It has a panic handler of its own: whatever brings `std` along makes the compiler find two, and
//! the build fails. That it builds is the test; there is nothing to run.
#![no_std]

extern crate alloc;

use alloc::vec;
use core::{
    alloc::{GlobalAlloc, Layout},
    panic::PanicInfo,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use capt_status::{
    Span, Time,
    backoff::{Attempts, Budget, Pace},
    condition::{self, Summary, Verdict, types},
    condition_type, deadline,
    kstatus::{Kstatus, Object, compute},
    reason,
};

const SIZE: usize = 1 << 20;

/// Memory that is handed out once and never taken back.
struct Arena;

static mut MEMORY: [u8; SIZE] = [0; SIZE];
static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: each byte is handed out at most once, aligned as asked for.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = &raw mut MEMORY;
        let base = memory as usize;
        let mut start = 0;
        let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            start = (base + used).next_multiple_of(layout.align()) - base;
            start.checked_add(layout.size()).filter(|end| *end <= SIZE)
        });
        match taken {
            // SAFETY: `start + size` is within the array.
            Ok(_) => unsafe { memory.cast::<u8>().add(start) },
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena = Arena;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Seconds until the object should be looked at again; 0 if it is as it should be, -1 if it never will be.
#[unsafe(no_mangle)]
pub extern "C" fn next_look(disk_is_there: bool, generation: i64, started: i64, now: i64) -> i64 {
    let (started, now) = (Time::from_unix(started), Time::from_unix(now));
    let disk = Verdict::new(condition_type!("DiskReady"), disk_is_there, reason!("DiskBound"), "");
    let mut conditions = condition::merge(&[], vec![disk], generation, now);
    match Summary::new(&["DiskReady"]).of(&conditions, types::READY) {
        Ok(ready) => condition::set(&mut conditions, ready, generation, now),
        Err(_) => return -1,
    };
    let object = Object::new("Database", &conditions).generations(generation, Some(generation));
    match compute(&object).status {
        Kstatus::Current => 0,
        Kstatus::Failed | Kstatus::Terminating => -1,
        Kstatus::InProgress => {
            let running = deadline::keep(&[], &["diskTimeout"], started);
            let limit = |_: &str| Some(Span::from_minutes(5));
            let mut attempts = Attempts::default();
            attempts.advance(&Budget::default(), Pace::Growing, false, now);
            let retry = attempts.next.map(|at| deadline::requeue(at, now, Span::from_minutes(1)));
            let wait = deadline::next(&running, limit, now, Span::from_minutes(1)).or(retry);
            wait.map_or(-1, Span::as_seconds)
        }
    }
}
