//! The proof that CAPT converges in the modelled world: each scenario of `examples/scenarios` again with
//! each fault at each point, and defects that
//! this has to see.

#![allow(unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

mod determinism;
mod faults;
mod library;
mod mutants;
mod oracle;
mod points;
mod schedules;
mod sensitivity;
