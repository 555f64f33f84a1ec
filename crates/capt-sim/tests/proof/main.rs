//! The proof that CAPT converges in the modelled world: each scenario of `examples/scenarios` again with
//! each fault at each point, lives by chance, and defects that this has to see.

#![allow(dead_code, unreachable_pub)] // the explorer is shared with its own test
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

/// Millions of small worlds are made and thrown away.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "../explore/checks.rs"]
mod checks;
#[path = "../common/mod.rs"]
mod common;
#[path = "../explore/deeds.rs"]
mod deeds;
mod determinism;
mod explored;
mod faults;
mod grammar;
#[path = "../common/lasting.rs"]
mod lasting;
mod library;
#[path = "../explore/model/mod.rs"]
mod model;
mod mutants;
mod oracle;
mod points;
mod schedules;
#[path = "../explore/search.rs"]
mod search;
mod sensitivity;
#[path = "../explore/state.rs"]
mod state;
mod swarm;
#[path = "../explore/versions.rs"]
mod versions;
