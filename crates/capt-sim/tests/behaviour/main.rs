//! What the passes do in a modelled world: one module for each kind or concern, all with the real executor.
//!
//! One program, since each costs the whole of what it links. A bank of known cases is in `cases`, faults and random lives
//! in `proof`, every state of small worlds in `explore`.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/whole_life.rs"]
mod whole_life;
#[path = "../workspaces/mod.rs"]
mod workspaces;

mod as_seen;
mod cluster_status;
mod core_releases;
mod failures;
mod go_defects_providers;
mod lifecycle;
mod lost_owners;
mod properties;
mod provider_states;
mod providers_changes;
mod providers_dependencies;
mod providers_failures;
mod providers_health;
mod providers_properties;
mod providers_recovery;
mod providers_secrets;
mod providers_takeover;
mod scale;
mod sizes;
mod terraform_states;
mod workspace_go_defects;
mod workspace_lives;
mod workspace_pause;
mod workspace_properties;
mod workspace_rendering;
mod workspace_states;
mod workspace_takeover;
