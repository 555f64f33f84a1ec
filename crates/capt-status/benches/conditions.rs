//! What a pass pays for its conditions: nothing new, something new, a summary, what tools say.

// The functions of a benchmark are its documentation.
#![allow(missing_docs)]

use capt_status::{
    Condition, Time,
    condition::{self, Aggregate, ConditionType, Source, Summary, Verdict, types},
    condition_type,
    kstatus::{Object, Wait, argo, compute},
    reason,
};
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const TYPES: [ConditionType; 12] = [
    types::AVAILABLE,
    types::READY,
    types::HEALTHY,
    types::RECONCILING,
    types::STALLED,
    types::PAUSED,
    types::DELETING,
    condition_type!("WorkspaceSynced"),
    condition_type!("WorkspaceReady"),
    condition_type!("EndpointAvailable"),
    condition_type!("SecretsReady"),
    types::ROLLING_OUT,
];

fn verdicts(is_so: bool) -> Vec<Verdict> {
    TYPES
        .into_iter()
        .map(|type_| Verdict::new(type_, is_so, reason!("WaitingForWorkspace"), "Workspace demo-eks is being applied"))
        .collect()
}

fn stored() -> Vec<Condition> {
    condition::merge(&[], verdicts(false), 3, Time::from_unix(0))
}

fn main() {
    divan::main();
}

#[divan::bench]
fn is_told_nothing_new(bencher: Bencher<'_, '_>) {
    let (stored, verdicts) = (stored(), verdicts(false));
    bencher.bench(|| condition::is_told(black_box(&stored), black_box(&verdicts), 3));
}

#[divan::bench]
fn merge_nothing_new(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let now = Time::from_unix(60);
    bencher
        .with_inputs(|| verdicts(false))
        .bench_values(|verdicts| condition::merge(black_box(&stored), verdicts, 3, now));
}

#[divan::bench]
fn merge_everything_new(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let now = Time::from_unix(60);
    bencher
        .with_inputs(|| verdicts(true))
        .bench_values(|verdicts| condition::merge(black_box(&stored), verdicts, 4, now));
}

#[divan::bench]
fn summary_of_four(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let summary = Summary::new(&["WorkspaceSynced", "WorkspaceReady", "EndpointAvailable", "SecretsReady"]);
    bencher.bench(|| summary.of(black_box(&stored), types::READY));
}

#[divan::bench]
fn aggregate_of_hundred(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let names: Vec<String> = (0..100).map(|number| format!("replica-{number}")).collect();
    let sources: Vec<Source<'_>> =
        names.iter().map(|name| Source { kind: "Replica", name, conditions: &stored, first: false }).collect();
    bencher.bench(|| Aggregate::new(types::READY).of(black_box(&sources)));
}

#[divan::bench]
fn kstatus(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let object = Object::new("Database", &stored).generations(3, Some(3));
    bencher.bench(|| compute(black_box(&object)));
}

#[divan::bench]
fn kubectl_wait(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let object = Object::new("Database", &stored).generations(3, Some(3));
    let wait = Wait { type_: "SecretsReady".to_owned(), status: "true".to_owned() };
    bencher.bench(|| black_box(&wait).is_met(black_box(&object)));
}

#[divan::bench]
fn argo_health(bencher: Bencher<'_, '_>) {
    let stored = stored();
    let object = Object::new("Database", &stored).generations(3, Some(3));
    bencher.bench(|| argo::health(black_box(&object)));
}
