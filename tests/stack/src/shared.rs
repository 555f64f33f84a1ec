//! One stack for all tests of a test binary, since each start costs seconds.
//!
//! Tests that share a stack keep to a namespace each. Tests that count requests of a component, or
//! kill one, start a [`Stack`] of their own.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::OnceCell;

use crate::{Builder, Error, Stack, Tier};

static API_SERVER: Slot = Slot::new();
static CORE: Slot = Slot::new();
static PROVIDER: Slot = Slot::new();

struct Slot {
    stack: OnceCell<Stack>,
    users: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Self { stack: OnceCell::const_new(), users: AtomicUsize::new(0) }
    }
}

/// The use of a shared stack by one test. When a test panics while it holds one, the logs are kept.
pub struct Shared {
    stack: &'static Stack,
    slot: &'static Slot,
}

/// The stack of `tier` that this process shares; the first call starts it, and it ends with the process.
pub async fn shared(tier: Tier) -> Result<Shared, Error> {
    shared_from(Stack::builder(tier)).await
}

/// As [`shared`], with what `builder` installs, which therefore has to be the same in all tests that
/// share a tier: it counts at the first call only.
pub async fn shared_from(builder: Builder) -> Result<Shared, Error> {
    let slot = match builder.tier {
        Tier::ApiServer => &API_SERVER,
        Tier::Core => &CORE,
        Tier::Provider => &PROVIDER,
    };
    let stack = slot.stack.get_or_try_init(|| builder.start()).await?;
    slot.users.fetch_add(1, Ordering::SeqCst);
    stack.site.supervisor.content(false)?;
    Ok(Shared { stack, slot })
}

impl Deref for Shared {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        self.stack
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let supervisor = &self.stack.site.supervisor;
        if std::thread::panicking() && !supervisor.has_failed() {
            supervisor.fail();
            let logs = self.stack.directory().join("logs");
            eprintln!("the logs of the shared stack are in {}", logs.display());
        }
        let last = self.slot.users.fetch_sub(1, Ordering::SeqCst) == 1;
        // Destructors of statics do not run, so the supervisor is told while it is still known.
        if last && !supervisor.has_failed() {
            // If the shell is gone there is nothing left to remove.
            let _ = supervisor.content(true);
        }
    }
}
