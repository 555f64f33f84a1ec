//! Whole lives of many clusters in virtual time: made, Ready, three hours of rest, updated, deleted.

// The functions of a benchmark are its documentation.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic)] // a life that goes wrong is no measure

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/whole_life.rs"]
mod whole_life;

/// As in the proofs: half of a modelled life is memory that is allocated and freed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 10, 100, 300, 1000], sample_count = 3, sample_size = 1)]
fn whole_lives(bencher: divan::Bencher<'_, '_>, clusters: usize) {
    bencher.counter(divan::counter::ItemsCount::new(clusters)).bench(|| whole_life::cost(clusters));
}
