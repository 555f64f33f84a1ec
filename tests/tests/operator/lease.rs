//! Two operators with one lease: one writes at a time, and the other one goes on when it may.

use std::{
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use capt_stack::{Effect, Request, Stack, Tier, eventually};
use capt_tests::operator::{self, Operator, SECOND_USER, USER};
use kube::api::DynamicObject;
use serde_json::json;

use crate::place::SOON;

/// Short terms, so that a takeover is tested within seconds.
pub(crate) const TERMS: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=1s",
];

/// A stack without core and provider: our objects, nobody's but ours.
struct Site {
    stack: Stack,
    made: usize,
}

impl Site {
    async fn new() -> Self {
        let manifests = [operator::manifests().unwrap(), operator::lease_manifests().unwrap()].join("\n---\n");
        Self { stack: Stack::builder(Tier::ApiServer).install(manifests).start().await.unwrap(), made: 0 }
    }

    fn start(&self, user: &str) -> Operator {
        Operator::start_as(&self.stack, user, &TERMS).unwrap()
    }

    /// Makes an object that its first pass writes to.
    async fn give_work(&mut self) -> String {
        let name = format!("work-{}", self.made);
        self.made += 1;
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}},
        });
        self.stack.apply(&object.to_string()).await.unwrap();
        name
    }

    async fn work_is_done(&self, name: &str) {
        let api =
            capt_tests::history::Kind::CaptCluster.api(&self.stack.admin_client().await.unwrap(), Some("default"));
        eventually("a pass", SOON, || async {
            let object: DynamicObject = api.get(name).await.map_err(|error| error.to_string())?;
            object.data["status"]["state"].as_str().map(drop).ok_or_else(|| "no state".to_owned())
        })
        .await
        .unwrap();
    }

    /// Writes by both operators, oldest first; the lease aside.
    fn writes(&self) -> Vec<Request> {
        let both = self.stack.audit().requests().unwrap().filter(|request| {
            [USER, SECOND_USER].contains(&request.user.as_str())
                && request.effect() == Effect::Write
                && request.resource != "leases"
        });
        both.iter().cloned().collect()
    }
}

fn signal(operator: &Operator, signal: &str) {
    let status = Command::new("kill").args([signal, &operator.id().unwrap().to_string()]).status().unwrap();
    assert!(status.success());
}

async fn end_of(operator: &mut Operator) -> ExitStatus {
    let end = Instant::now() + SOON;
    loop {
        if let Some(status) = operator.exited() {
            return status;
        }
        assert!(Instant::now() < end, "it does not end:\n{}", operator.last_lines(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_lease_goes_from_hand_to_hand_within_a_second_and_two_never_write() {
    let mut site = Site::new().await;
    let mut users = [USER, SECOND_USER];
    let mut leader = site.start(users[0]);
    let work = site.give_work().await;
    site.work_is_done(&work).await;
    for _ in 0..3 {
        let successor = site.start(users[1]);
        eventually("a candidate with a full cache", SOON, || async {
            let log = successor.log();
            if log.contains("applies for the lease") && log.contains("connected") { Ok(()) } else { Err(log) }
        })
        .await
        .unwrap();
        let quiet = site.writes().len();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(site.writes().len(), quiet, "a candidate does not write");

        // Work in hand at the moment of the signal, so that the successor has something to do.
        let signalled = jiff::Timestamp::now();
        signal(&leader, "-TERM");
        let work = site.give_work().await;
        assert!(end_of(&mut leader).await.success(), "{}", leader.last_lines(20));
        site.work_is_done(&work).await;

        let by_successor = |write: &Request| write.user == users[1] && write.at > signalled;
        let mut since = signalled;
        if !site.writes().iter().any(by_successor) {
            // The leader was done with it before it heard the signal.
            since = jiff::Timestamp::now();
            let work = site.give_work().await;
            site.work_is_done(&work).await;
        }

        let writes = site.writes();
        let last = writes.iter().rposition(|write| write.user == users[0]).unwrap();
        let first = writes.iter().position(by_successor).unwrap();
        assert!(last < first, "{} writes after {}", users[0], users[1]);
        let handed = writes[first].at.duration_since(since).unsigned_abs();
        println!("the successor writes {handed:?} after the signal");
        assert!(handed < Duration::from_secs(1), "the hand-over takes {handed:?}");
        leader = successor;
        users.reverse();
    }
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_leader_that_dies_or_stands_still_is_succeeded_and_never_writes_again() {
    let mut site = Site::new().await;
    let mut leader = site.start(USER);
    let work = site.give_work().await;
    site.work_is_done(&work).await;

    let mut successor = site.start(SECOND_USER);
    leader.kill();
    let work = site.give_work().await;
    site.work_is_done(&work).await;
    assert_eq!(site.writes().last().unwrap().user, SECOND_USER);

    // It stands still for longer than the lease, with work waiting when it goes on.
    let third = site.start(USER);
    signal(&successor, "-STOP");
    let work = site.give_work().await;
    site.work_is_done(&work).await;
    assert_eq!(site.writes().last().unwrap().user, USER);
    let before = site.writes().len();
    signal(&successor, "-CONT");
    let status = end_of(&mut successor).await;
    assert_eq!(status.code(), Some(1), "{}", successor.last_lines(20));
    assert!(successor.log().contains("this process ends so that only one operator writes"));
    let late: Vec<Request> = site.writes().split_off(before).into_iter().filter(|it| it.user == SECOND_USER).collect();
    assert!(late.is_empty(), "{late:?}");
    drop(third);
}
