//! What a pass costs on typed input, when nothing has to be written: read, decided, both; beside how many
//! other clusters; with failures and statuses as large as they come.

// The functions of a benchmark are its documentation; its helpers fail by panicking.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "../tests/common/mod.rs"]
mod common;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::{self, Features, KINDS, Observation, Observed, Settings},
    world::{View, World},
};
use capt_status::Time;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

fn with(features: Features) -> Settings {
    Settings { workspace_api: WorkspaceApi::Namespaced, features, ..Settings::default() }
}

/// An object of the first cluster.
fn key(kind: Kind, name: &str) -> ObjectKey {
    ObjectKey::new(kind, "team-0", name)
}

fn observed(world: &World, key: &ObjectKey, settings: Settings) -> Observed {
    match pass::observe(&View::new(world), key, settings) {
        Observation::Complete(observed) => observed,
        Observation::Gone | Observation::Malformed(_) => panic!("{key} is not there"),
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Apply => "demo-eks-controlplane-apply",
        _ => "demo",
    }
}

/// A pass over a ready object of each kind that has passes.
#[divan::bench(args = KINDS)]
fn pass_nothing_new(bencher: Bencher<'_, '_>, kind: Kind) {
    let mut simulation = common::teams(1);
    let (own, now) = (key(kind, name(kind)), simulation.api.now);
    let world = simulation.known();
    assert!(pass::plan(&observed(world, &own, with(Features::default())), now).actions.is_empty());
    bencher.bench_local(|| {
        let observed = observed(world, black_box(&own), with(Features::default()));
        pass::plan(&observed, now)
    });
}

#[divan::bench(args = KINDS)]
fn observe(bencher: Bencher<'_, '_>, kind: Kind) {
    let mut simulation = common::teams(1);
    let own = key(kind, name(kind));
    let world = simulation.known();
    bencher.bench_local(|| observed(world, black_box(&own), with(Features::default())));
}

#[divan::bench(args = KINDS)]
fn plan(bencher: Bencher<'_, '_>, kind: Kind) {
    let mut simulation = common::teams(1);
    let (own, now) = (key(kind, name(kind)), simulation.api.now);
    let observed = observed(simulation.known(), &own, with(Features::default()));
    bencher.bench_local(|| pass::plan(black_box(&observed), now));
}

/// The same without the dependency graph.
#[divan::bench]
fn pass_without_dependencies(bencher: Bencher<'_, '_>) {
    let mut simulation = common::teams(1);
    let settings = with(Features { dependencies: false, ..Features::default() });
    let (own, now) = (key(Kind::CaptControlPlane, "demo"), simulation.api.now);
    let world = simulation.known();
    bencher.bench_local(|| pass::plan(&observed(world, black_box(&own), settings), now));
}

/// What other clusters there are must not matter.
#[divan::bench(args = [1, 10, 100])]
fn pass_beside(bencher: Bencher<'_, '_>, clusters: usize) {
    let mut simulation = common::teams(clusters);
    let (own, now) = (key(Kind::CaptControlPlane, "demo"), simulation.api.now);
    let world = simulation.known();
    bencher.bench_local(|| pass::plan(&observed(world, black_box(&own), with(Features::default())), now));
}

/// The failed apply of a Workspace with a message of this many KiB.
#[divan::bench(args = [1, 64, 1024])]
fn plan_of_a_failure(bencher: Bencher<'_, '_>, kib: usize) {
    let mut simulation = common::teams(1);
    let now: Time = simulation.api.now;
    let workspace = key(Kind::Workspace(WorkspaceApi::Namespaced), "demo-eks-controlplane");
    let mut object = simulation.api.get(&workspace).unwrap_or_else(|| panic!("no {workspace}")).clone();
    let line = "Error: creating EKS Cluster: AccessDeniedException: no permission for eks:CreateCluster\n";
    for condition in object["status"]["conditions"].as_array_mut().unwrap() {
        condition["status"] = "False".into();
        condition["reason"] = "ReconcileError".into();
        condition["message"] = line.repeat(kib * 1024 / line.len()).into();
    }
    let mut world = simulation.known().clone();
    world.watched(workspace.clone(), u64::MAX, capt_reconcile::object::Object::parse(workspace.kind, &object));
    let own = key(Kind::CaptControlPlane, "demo");
    let observed = observed(&world, &own, with(Features::default()));
    bencher.bench_local(|| pass::plan(black_box(&observed), now));
}
