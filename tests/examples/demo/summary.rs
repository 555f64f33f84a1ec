//! The last thing that the demo prints: what it took.

use std::time::Duration;

use capt_tests::operator::USER;

use crate::{Error, facts, scene::Scene};

/// Most writes that one cluster's life may take, with two Workspaces: 36, and two for states in between that
/// only a busy machine shows.
const WRITES: usize = 38;

/// Prints times, requests and memory; fails when the operator wrote more than it may.
pub(crate) fn print(scene: &Scene, mark: jiff::Timestamp, created: Duration, deleted: Duration) -> Result<(), Error> {
    println!("\nTimes");
    println!("  creation, applied -> Provisioned and Ready  {:>8.1} s", created.as_secs_f64());
    for (what, took) in facts::reactions(&scene.history) {
        println!("  {what:<45} {:>5} ms", took.as_millis());
    }
    println!("  deletion, asked for -> nothing left         {:>8.1} s", deleted.as_secs_f64());
    println!("\nRequests of the operator, as the API server logged them");
    let requests = scene.stack.audit().requests_of(USER)?.since(mark);
    for line in requests.table().lines() {
        println!("  {line}");
    }
    if let Some(memory) = scene.operator.memory() {
        let mebibytes = |bytes: u64| bytes / (1024 * 1024);
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        let (resident, peak) = (mebibytes(memory.resident), mebibytes(memory.peak));
        println!("\nMemory of the operator: {resident} MiB resident, {peak} MiB at most ({build} build)");
    }
    println!();
    let refused: Vec<String> =
        requests.iter().filter(|it| it.code == 403).map(|it| format!("{} {}", it.verb, it.resource)).collect();
    if !refused.is_empty() {
        return Err(format!("deploy/rbac does not allow what the operator asked for: {}", refused.join(", ")).into());
    }
    // A conflict is somebody else's write at the same moment, and changes nothing.
    match requests.writes().filter(|request| request.code != 409).len() {
        writes if writes > WRITES => {
            Err(format!("{writes} writes for one cluster's life; at most {WRITES} are needed").into())
        }
        _ => Ok(()),
    }
}
