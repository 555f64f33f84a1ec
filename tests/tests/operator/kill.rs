//! An operator that is killed again and again, right after a write, still brings its cluster to Ready
//! and away again, and never makes anything twice.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    time::{Duration, Instant},
};

use capt_stack::Stack;
use capt_tests::{
    history::Kind,
    operator::{Operator, USER},
};
use serde_json::json;

use crate::place::{DELETION, Place, SOON};

/// An operator with nothing left to write is killed after this time.
const IDLE: Duration = Duration::from_secs(3);

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn kill_9_at_any_moment_neither_sticks_nor_leaks() {
    let mut place = Place::own("kill").await;
    place.templates().await;
    place.cluster("phoenix").await;
    let born = with_kills(&place, SOON, |place| {
        place.field(Kind::ControlPlane, "phoenix", "/status/ready") == json!(true)
            && place.field(Kind::CaptCluster, "phoenix", "/status/ready") == json!(true)
    })
    .await;
    let operator = Operator::start(&place.stack, &[]).unwrap();
    place.ready("phoenix").await;
    drop(operator);

    for workspace in Place::<Box<Stack>>::workspace_names("phoenix") {
        place.stack.age_workspace(None, &workspace).await.unwrap();
    }
    place.delete("phoenix").await;
    let died = with_kills(&place, DELETION, |place| place.latest(Kind::Cluster, "phoenix").is_none()).await;
    place.gone("phoenix").await;
    place.assert_order_of_deletion("phoenix");
    place.assert_rights_suffice();

    // By what was there: the audit log counts a write as failed when nobody waits for its answer any more.
    let made = |kind| -> BTreeSet<Option<String>> {
        let changes = place.history.changes().into_iter().filter(|change| change.kind == kind);
        changes.map(|change| change.object.metadata.uid).collect()
    };
    assert_eq!([Kind::Workspace, Kind::Apply].map(|kind| made(kind).len()), [2, 2], "each child is made once");
    println!("killed {born} times before it was ready and {died} times before it was gone");
    assert!(born >= 10 && died >= 5, "too few kills to prove anything: {born} and {died}");
}

/// Starts operators and kills each after its first write, until `done`; returns how many were killed.
async fn with_kills(place: &Place<Box<Stack>>, limit: Duration, done: impl Fn(&Place<Box<Stack>>) -> bool) -> usize {
    let end = Instant::now() + limit;
    let mut kills = 0;
    while !done(place) {
        assert!(Instant::now() < end, "not done within {} s, after {kills} kills", limit.as_secs());
        let mut news = News::of(place.stack.audit().path());
        let mut operator = Operator::start(&place.stack, &[]).unwrap();
        let start = Instant::now();
        while !news.has_a_write() && start.elapsed() < IDLE && !done(place) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        operator.kill();
        kills += 1;
    }
    kills
}

/// What is added to the audit log. To parse the whole log takes longer than the next few writes.
struct News(File);

impl News {
    fn of(log: &Path) -> Self {
        let mut log = File::open(log).unwrap();
        log.seek(SeekFrom::End(0)).unwrap();
        Self(log)
    }

    /// Whether there is a write by the operator since the last call.
    fn has_a_write(&mut self) -> bool {
        let mut added = Vec::new();
        self.0.read_to_end(&mut added).unwrap();
        let user = format!(r#""username":"{USER}""#);
        String::from_utf8_lossy(&added).lines().any(|line| {
            let is = |verb: &&str| line.contains(&format!(r#""verb":"{verb}""#));
            // What it asks about its own rights changes nothing.
            let asks = line.contains("accessreviews");
            !asks && line.contains(&user) && ["create", "patch", "delete"].iter().any(is)
        })
    }
}
