//! What a pass pays for the state machine: nothing new, a change, a failure in its backoff.

// The functions of a benchmark are its documentation.
#![allow(missing_docs)]

use capt_status::{
    Class, State, Time, condition,
    machine::{
        Cause, Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Limits, Memory, Owner, Role, Workspace,
        events, follow, step, verdicts,
    },
};
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const NOW: Time = Time::from_unix(1_000_000);

const READY: Facts = Facts {
    role: Role::ControlPlane,
    lifecycle: Lifecycle::Active,
    owner: Owner::Known,
    inputs: Inputs::Valid,
    infrastructure: Infrastructure::Ready,
    workspace: Workspace::Ready,
    busy: false,
    configuration: Configuration::Complete,
    checks: Checks::Passing,
    same_failure: true,
    user_changed: false,
};
const FAILING: Facts = Facts { workspace: Workspace::Failing(Class::Transient), ..READY };

fn main() {
    divan::main();
}

fn after(facts: &Facts) -> Memory {
    follow(&Memory::default(), facts, &Limits::default(), NOW).memory
}

#[divan::bench]
fn step_nothing_new_ready(bencher: Bencher<'_, '_>) {
    let (memory, limits) = (after(&READY), Limits::default());
    bencher.bench(|| step(black_box(&memory), black_box(&READY), &limits, NOW));
}

#[divan::bench]
fn step_nothing_new_recovering(bencher: Bencher<'_, '_>) {
    let (memory, limits) = (after(&FAILING), Limits::default());
    bencher.bench(|| step(black_box(&memory), black_box(&FAILING), &limits, NOW));
}

#[divan::bench]
fn step_first_sight(bencher: Bencher<'_, '_>) {
    let limits = Limits::default();
    bencher.bench(|| step(black_box(&Memory::default()), black_box(&FAILING), &limits, NOW));
}

#[divan::bench]
fn step_to_ready(bencher: Bencher<'_, '_>) {
    let (memory, limits) = (after(&FAILING), Limits::default());
    bencher.bench(|| step(black_box(&memory), black_box(&READY), &limits, NOW));
}

/// A change and all that is told of it: conditions and events.
#[divan::bench]
fn change_with_conditions_and_events(bencher: Bencher<'_, '_>) {
    let (memory, limits) = (after(&FAILING), Limits::default());
    let cause = Cause::new("VpcQuotaExceeded", "creating VPC: VpcLimitExceeded");
    let before = verdicts(State::Recovering, false, false, &cause, false);
    let stored = condition::merge(&[], before, 1, NOW);
    bencher.bench(|| {
        let next = follow(black_box(&memory), black_box(&READY), &limits, NOW);
        let told = events(&memory, &next, false, &cause);
        let shown = verdicts(next.state, next.memory.served, next.stalled, &cause, false);
        (told, condition::merge(&stored, shown, 1, NOW))
    });
}
