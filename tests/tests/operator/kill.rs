//! An operator that is killed again and again, right after a write, still brings its cluster to Ready
//! and away again, and never makes anything twice.

use std::time::{Duration, Instant};

use capt_stack::{Requests, Stack};
use capt_tests::{
    history::Kind,
    operator::{Operator, USER},
};
use serde_json::json;

use crate::place::{DELETION, Place, SOON};

/// Writes that each operator gets to make before it is killed.
const WRITES: usize = 2;
/// One with nothing left to write is killed after this time.
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

    let made = requests(&place).filter(|it| it.verb == "create" && it.code == 201 && it.resource != "events");
    let twice = |resource: &str| made.iter().filter(|request| request.resource == resource).count();
    let counts = ["workspaces", "workspacetemplateapplies", "secrets"].map(twice);
    assert_eq!(counts, [2, 2, 2], "each child is made once:\n{}", made.table());
    assert!(born >= 5 && died >= 3, "too few kills to prove anything: {born} and {died}");
}

fn requests(place: &Place<Box<Stack>>) -> Requests {
    place.stack.audit().requests_of(USER).unwrap()
}

/// Starts operators and kills them until `done`; returns how many were killed.
async fn with_kills(place: &Place<Box<Stack>>, limit: Duration, done: impl Fn(&Place<Box<Stack>>) -> bool) -> usize {
    let end = Instant::now() + limit;
    let mut kills = 0;
    while !done(place) {
        assert!(Instant::now() < end, "not done within {} s, after {kills} kills", limit.as_secs());
        let before = requests(place).writes().len();
        let mut operator = Operator::start(&place.stack, &[]).unwrap();
        let start = Instant::now();
        while requests(place).writes().len() < before + WRITES && start.elapsed() < IDLE && !done(place) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        operator.kill();
        kills += 1;
    }
    kills
}
