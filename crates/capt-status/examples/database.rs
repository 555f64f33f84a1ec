//! The whole status of an imaginary `Database`: what was observed in, status and next look out.

use capt_status::{
    Condition, Deadline, Span, Time,
    condition::{self, CombineError, ConditionType, Reasons, Summary, Verdict, reasons, types},
    condition_type, deadline,
    kstatus::{Kstatus, Object, compute},
    reason,
};

const DISK_READY: ConditionType = condition_type!("DiskReady");
const DISK_TIMEOUT: Span = Span::from_minutes(5);

#[derive(Clone, Default, serde::Serialize)]
struct DatabaseStatus {
    conditions: Vec<Condition>,
    deadlines: Vec<Deadline>,
}

fn status(
    old: &DatabaseStatus,
    disk_is_bound: bool,
    now: Time,
) -> Result<(DatabaseStatus, Option<Span>), CombineError> {
    // The disk has five minutes, counted from the first pass that misses it, over any restart.
    let waiting_for: &[&str] = if disk_is_bound { &[] } else { &["disk"] };
    let deadlines = deadline::keep(&old.deadlines, waiting_for, now);
    let late = deadline::expired(&deadlines, |_| Some(DISK_TIMEOUT), now).next().is_some();
    let next_look = deadline::next(&deadlines, |_| Some(DISK_TIMEOUT), now, Span::from_minutes(1));
    let disk = match (disk_is_bound, late) {
        (true, _) => Verdict::new(DISK_READY, true, reason!("Bound"), ""),
        (false, false) => Verdict::new(DISK_READY, false, reason!("Pending"), "waiting for PersistentVolumeClaim data"),
        (false, true) => Verdict::new(DISK_READY, false, reason!("DiskTimeout"), "no disk after 5m0s"),
    };
    let reasons = Reasons { issue: reasons::NOT_READY, unknown: reasons::READY_UNKNOWN, info: reasons::READY };
    let mut conditions = condition::merge(&old.conditions, vec![disk], 1, now);
    let ready = Summary::new(&[DISK_READY.as_str()]).reasons(reasons).of(&conditions, types::READY)?;
    let flag = |type_, is_so, yes, no| Verdict::new(type_, is_so, if is_so { yes } else { no }, &*ready.message);
    let working = flag(types::RECONCILING, !disk_is_bound && !late, reason!("Creating"), reasons::NOT_RECONCILING);
    let stalled = flag(types::STALLED, late, reason!("DiskTimeout"), reasons::NOT_STALLED);
    conditions = condition::merge(&conditions, vec![ready, working, stalled], 1, now);
    condition::sort(&mut conditions);
    Ok((DatabaseStatus { conditions, deadlines }, next_look))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut now, mut stored) = (Time::from_unix(1_767_225_600), DatabaseStatus::default());
    let passes = [(false, Kstatus::InProgress, 60), (false, Kstatus::Failed, 240), (true, Kstatus::Current, 1)];
    for (disk_is_bound, expected, seconds_since) in passes {
        now = now.plus(Span::from_seconds(60 + seconds_since));
        let (wanted, next_look) = status(&stored, disk_is_bound, now)?;
        assert_eq!(compute(&Object::new("Database", &wanted.conditions)).status, expected);
        println!("{now}: {}, look again in {next_look:?}", serde_json::to_string(&wanted)?);
        stored = wanted;
    }
    Ok(())
}
