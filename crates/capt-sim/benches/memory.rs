//! What the operator keeps in memory of clusters that are ready: the objects as it knows them, and which pass has
//! read what; beside the size of the objects' JSON. Read the column `max alloc`.

// The functions of a benchmark are its documentation; its helpers fail by panicking.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "../tests/common/mod.rs"]
mod common;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::{Kind, Object, ObjectKey},
    pass::{self, KINDS, Settings},
    triggers::Triggers,
    world::{Coverage, View, World},
};
use divan::{Bencher, counter::BytesCount};
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const CLUSTERS: [usize; 3] = [1, 10, 100];

fn main() {
    divan::main();
}

/// All objects beside `clusters` that are ready, each with its own namespace.
fn objects(clusters: usize) -> Vec<(ObjectKey, Value)> {
    let simulation = common::teams(clusters);
    simulation.api.keys().map(|key| (key.clone(), simulation.api.get(key).unwrap().clone())).collect()
}

fn json(objects: &[(ObjectKey, Value)]) -> BytesCount {
    BytesCount::new(objects.iter().map(|(_, object)| object.to_string().len()).sum::<usize>())
}

fn known(objects: &[(ObjectKey, Value)]) -> World {
    let mut world = World::with_coverage(Coverage::Cached);
    for (key, object) in objects {
        world.watched(key.clone(), 1, Object::parse(key.kind, object));
    }
    world
}

#[divan::bench(args = CLUSTERS, sample_count = 3, sample_size = 1)]
fn objects_known(bencher: Bencher<'_, '_>, clusters: usize) {
    let objects = objects(clusters);
    bencher.counter(json(&objects)).bench_local(|| known(&objects));
}

/// Those of one kind, of a hundred clusters.
#[divan::bench(args = Kind::ALL, sample_count = 1, sample_size = 1)]
fn objects_known_of(bencher: Bencher<'_, '_>, kind: Kind) {
    let mut objects = objects(100);
    objects.retain(|(key, _)| key.kind == kind);
    bencher.counter(json(&objects)).bench_local(|| known(&objects));
}

#[divan::bench(args = CLUSTERS, sample_count = 3, sample_size = 1)]
fn reads_remembered(bencher: Bencher<'_, '_>, clusters: usize) {
    let objects = objects(clusters);
    let world = known(&objects);
    let settings = Settings { workspace_api: WorkspaceApi::Namespaced, ..Settings::default() };
    bencher.counter(json(&objects)).bench_local(|| {
        let mut triggers = Triggers::default();
        for (key, _) in objects.iter().filter(|(key, _)| KINDS.contains(&key.kind)) {
            let view = View::new(&world);
            pass::observe(&view, key, settings);
            triggers.replace(key, view.into_reads());
        }
        triggers
    });
}
