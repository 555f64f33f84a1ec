//! A controller that keeps its conditions as those of k8s-openapi, as most Rust controllers do.
//!
//! `cargo run -p capt-status --features k8s-openapi --example k8s_openapi`

use capt_status::{
    Condition, Time,
    condition::{self, Aggregate, NotACondition, Source, Verdict, mirror, not_yet_reported, types},
    condition_type,
    kstatus::{Kstatus, Object, Wait, compute},
    reason,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

/// Takes `verdicts` over into a list of k8s-openapi's conditions.
fn take_over(stored: &mut Vec<meta::Condition>, verdicts: Vec<Verdict>, now: Time) -> Result<(), NotACondition> {
    let ours = stored.drain(..).map(Condition::try_from).collect::<Result<Vec<_>, _>>()?;
    *stored = condition::merge(&ours, verdicts, 2, now).into_iter().map(meta::Condition::from).collect();
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = Time::from_unix(1_767_225_600);
    let mut replica = Vec::new();
    take_over(&mut replica, vec![Verdict::new(types::READY, false, reason!("DiskFull"), "disk is full")], now)?;

    // Conditions of k8s-openapi are read as they are, without a conversion.
    let sources = ["db-0", "db-1"].map(|name| Source { kind: "Replica", name, conditions: &replica, first: false });
    let ready = Aggregate::new(types::READY).of(&sources)?;
    let mirrored = mirror(&replica, "Synced", condition_type!("ReplicaSynced"))
        .unwrap_or_else(|| not_yet_reported("Synced", condition_type!("ReplicaSynced")));

    let mut database = Vec::new();
    take_over(&mut database, vec![ready, mirrored], now)?;
    let object = Object::new("Database", &database).generations(2, Some(2));
    assert_eq!(compute(&object).status, Kstatus::InProgress);
    assert!(Wait::parse("condition=Ready=False")?.is_met(&object));
    for meta::Condition { type_, status, reason, message, .. } in database {
        println!("{type_}={status} {reason}: {message}");
    }
    Ok(())
}
