//! The CRDs on a real API server: it accepts them, they keep every field, each rule refuses its bad
//! object, and what is stored already stays writable.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod columns;
mod objects;
mod rules;
mod server;
mod status;
mod upgrade;
