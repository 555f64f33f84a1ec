//! All states that a cluster's life can reach, for small budgets of what goes wrong.

#![allow(unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

#[path = "../common/mod.rs"]
mod common;

mod checks;
mod deeds;
mod model;
mod search;
mod state;
mod versions;

/// Millions of small worlds are made and thrown away.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::Kind;
use deeds::Deed;
use model::{Config, Model};
use search::Report;
use serde_json::json;

const VPC: &str = "demo-vpc";
const EKS: &str = "demo-eks-controlplane";
const QUOTA: &str = "Error: creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.";

/// How many states each test explores at most: a part of them in the everyday loop, all of them where
/// the variable says `all`.
fn most() -> usize {
    match std::env::var("CAPT_EXPLORE_STATES") {
        Ok(all) if all == "all" => usize::MAX,
        Ok(number) => number.parse().unwrap(),
        Err(_) => 2_000,
    }
}

/// What may go wrong beyond what a test says, for long runs.
fn more() -> u8 {
    std::env::var("CAPT_EXPLORE_MORE").map_or(0, |more| more.parse().unwrap())
}

/// Explores `config`; complete, it has reached exactly `goals`, and everything of `sometimes`.
fn explore(name: &str, config: Config, goals: &[&str], sometimes: &[&str]) {
    let more = if config.grows { more() } else { 0 };
    let (holds, lags) = (config.holds, config.lags);
    let config = Config {
        holds: if holds > 0 { holds + more } else { 0 },
        // Watches lag also where nothing is held up without it.
        lags: if lags > 0 || holds == 0 { lags + more } else { 0 },
        ..config
    };
    let (mut model, start) = Model::new(config);
    let report = search::explore(&mut model, &start, most());
    let Report { complete, states, steps, depth, rests, goals: reached, longest_heal, violation } = report;
    assert!(violation.is_none(), "{name}: {}", violation.unwrap_or_default());
    println!(
        "{name}: {states} states, {steps} steps, depth {depth}, {rests} rests, at most {longest_heal} steps to rest, \
         {} edges of the state machine, goals {reached:?}, seen {:?}, complete: {complete}",
        model.checks.edges.len(),
        model.checks.sometimes,
    );
    assert!(complete || states >= most(), "{name}");
    if complete {
        assert_eq!(reached.into_keys().collect::<Vec<_>>(), goals, "{name}");
        for what in sometimes {
            assert!(model.checks.sometimes.contains_key(what), "{name}: never seen: {what}");
        }
    }
}

#[test]
fn creation_with_a_held_pass() {
    explore(
        "creation, held",
        Config { holds: 1, ..Config::of(vec![]) },
        &["G-ready"],
        &["a create meets an object that is there", "a write from a stale view is refused"],
    );
}

#[test]
fn creation_with_a_lagging_watch() {
    explore("creation, lagging", Config { lags: 1, ..Config::of(vec![]) }, &["G-ready"], &[]);
}

#[test]
fn creation_and_deletion_with_a_held_pass() {
    explore(
        "deletion, held",
        Config { holds: 1, ..Config::of(vec![deeds::delete_cluster()]) },
        &["G-deleted", "G-orphaned", "G-ready", "G-waiting"],
        &["a write meets an object that is gone"],
    );
}

#[test]
fn creation_and_deletion_with_a_lagging_watch() {
    explore(
        "deletion, lagging",
        Config { lags: 1, ..Config::of(vec![deeds::delete_cluster()]) },
        &["G-deleted", "G-ready", "G-waiting"],
        &["a pass ends in a conflict"],
    );
}

#[test]
fn creation_and_deletion_in_a_namespace() {
    let deeds = vec![deeds::delete_cluster()];
    let config = Config { api: WorkspaceApi::Namespaced, ..Config::of(deeds) };
    explore("namespaced", config, &["G-deleted", "G-ready", "G-waiting"], &[]);
}

#[test]
fn deadlines() {
    explore("deadlines", Config { ticks: 1, ..Config::of(vec![]) }, &["G-ready"], &[]);
}

#[test]
fn upgrade_that_fails_and_heals() {
    let deeds = vec![deeds::upgrade(), Deed::Fail(EKS.into(), QUOTA)];
    explore("upgrade", Config::of(deeds), &["G-ready"], &[]);
}

#[test]
fn pause_and_deletion() {
    let deeds = vec![deeds::pause(), deeds::unpause(), deeds::delete_cluster()];
    let config = Config { grows: false, ..Config::of(deeds) };
    explore("pause", config, &["G-deleted", "G-paused", "G-ready", "G-waiting"], &[]);
}

#[test]
fn a_vpc_that_fails_for_good() {
    let deeds = vec![deeds::retry(), Deed::FailForGood(VPC.into(), QUOTA), deeds::delete_cluster()];
    explore("broken", Config::of(deeds), &["G-broken", "G-deleted", "G-ready", "G-waiting"], &[]);
}

#[test]
fn a_workspace_that_a_user_deletes() {
    let deeds = vec![Deed::Delete(deeds::workspace(WorkspaceApi::Cluster, EKS)), deeds::delete_cluster()];
    explore("missing", Config::of(deeds), &["G-deleted", "G-missing", "G-ready", "G-waiting"], &[]);
}

#[test]
fn outputs_that_are_lost_and_change_their_type() {
    let puts = |output, value| Deed::Puts(EKS.into(), output, value);
    let deeds = vec![
        puts("cluster_endpoint", json!("")),
        puts("cluster_certificate_authority_data", json!({"pem": 1})),
        Deed::Delete(deeds::key(Kind::Secret, "demo-kubeconfig")),
        Deed::Delete(deeds::key(Kind::Secret, "demo-eks-connection")),
    ];
    explore("contents", Config::of(deeds), &["G-ready"], &[]);
}

#[test]
fn writers_beside_a_deletion() {
    let deeds = vec![deeds::delete_cluster(), deeds::upgrade(), deeds::retag(), deeds::audit()];
    let config = Config { grows: false, ..Config::of(deeds) };
    explore("writers", config, &["G-deleted", "G-ready", "G-waiting"], &[]);
}

#[test]
fn a_workspace_deleted_beside_a_held_pass() {
    let deeds = vec![Deed::Delete(deeds::workspace(WorkspaceApi::Cluster, VPC))];
    explore("deleted, held", Config { holds: 1, ..Config::of(deeds) }, &["G-missing", "G-ready"], &[]);
}
