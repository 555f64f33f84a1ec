//! Failures that controllers are known for, in the operator's own parts; the others are tested in capt-sim.
//! A test is named after its case in docs/cases.md.

use std::{
    convert::Infallible,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use capt_operator::{
    connection::Connection,
    lease::gate::{Gate, boot_time},
    queue::{Queue, Trigger, Verdict},
    requests::Requests,
    run::{self, Options, Watching},
    worker::system_clock,
};
use capt_reconcile::{
    executor::{Executor, Outcome, Step},
    object::{Kind, ObjectKey},
    plan::{Action, Op, Plan, Precondition},
};
use capt_sim::{definitions, service::Service, world::World};
use http_body_util::{BodyExt, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::Instant;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::CaptCluster, "default", name)
}

fn captcluster(name: &str) -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}}})
}

/// A modelled API server.
fn service() -> Service {
    Service::new(World::new(definitions::server(system_clock()).unwrap(), system_clock()), Arc::new(system_clock))
}

/// The operator beside `service`, until `is_done` says so; requests for which `refuses` gives a code are
/// refused with it.
async fn operate(
    service: &Service,
    refuses: impl Fn(&http::Request<Body>) -> Option<u16> + Clone + Send + 'static,
    is_done: impl Fn(&World) -> bool,
) {
    let inner = service.clone();
    let respond = tower::service_fn(move |request: http::Request<Body>| {
        let (service, code) = (inner.clone(), refuses(&request));
        async move {
            let Some(code) = code else { return Ok::<_, Infallible>(service.respond(request).await) };
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": "TooManyRequests", "message": "storage is (re)initializing"});
            let body = Full::new(Bytes::from(status.to_string())).boxed_unsync();
            Ok(http::Response::builder().status(code).header("Retry-After", "1").body(body).unwrap())
        }
    });
    let connection = Connection { client: Client::new(respond, "default"), address: "the model".to_owned() };
    let options = Options::alone(system_clock);
    let done = async {
        while !service.with(|world| is_done(world)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let watching = Watching::closed();
    tokio::select! {
        result = run::run(&connection, &options, &watching, std::future::pending()) => panic!("it ended: {result:?}"),
        result = tokio::time::timeout(Duration::from_mins(2), done) => result.unwrap(),
    }
}

const EVENT: Trigger = Trigger::Event(Kind::CaptCluster);

fn has_state(world: &World, name: &str) -> bool {
    world.get(&key(name)).is_some_and(|object| object["status"]["state"] == "Pending")
}

/// The owner references that we set block their owner, for which an API server may ask for this right.
#[test]
fn cb_102_the_role_allows_to_block_the_deletion_of_owners() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/rbac/role.yaml");
    let role: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
        let resource = json!(format!("{}/finalizers", kind.plural()));
        let allows = |rule: &&Value| {
            let has = |field: &str, wanted: &Value| rule[field].as_array().unwrap().contains(wanted);
            has("apiGroups", &json!(kind.group())) && has("resources", &resource) && has("verbs", &json!("update"))
        };
        assert!(role["rules"].as_array().unwrap().iter().find(allows).is_some(), "{resource}");
    }
}

/// More objects than a page of a list has.
#[tokio::test]
async fn cb_120_every_object_of_a_long_list_is_reconciled() {
    const COUNT: usize = 1200;
    let service = service();
    service.with(|world| {
        for number in 0..COUNT {
            world.create(&key(&format!("c-{number}")), captcluster(&format!("c-{number}")));
        }
    });
    operate(&service, |_| None, |world| (0..COUNT).all(|number| has_state(world, &format!("c-{number}")))).await;
}

#[test]
fn cb_121_an_object_that_fails_waits_longer_each_time_and_alone() {
    let (mut queue, now) = (Queue::new(8), Instant::now());
    let fail = |queue: &mut Queue, name: &str| {
        queue.wake(key(name), EVENT, now);
        assert_eq!(queue.start(now).unwrap().object, key(name));
        queue.finish(key(name), Verdict::Failed, now).unwrap().as_secs()
    };
    let waits: Vec<u64> = (0..12).map(|_| fail(&mut queue, "bad")).collect();
    assert!(waits.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(300)), "{waits:?}");
    assert_eq!((waits[0], waits[11]), (1, 300));
    assert_eq!(fail(&mut queue, "other"), 1, "nobody waits for somebody else's failures");
    queue.wake(key("bad"), EVENT, now);
    queue.start(now);
    queue.finish(key("bad"), Verdict::Wrote { next: None }, now);
    assert_eq!(fail(&mut queue, "bad"), 1, "a success forgets them");
}

/// Whichever write of a pass is the last one under the lease: none follows it.
#[tokio::test]
async fn cb_126_a_pass_that_loses_the_lease_stops_where_it_is() {
    for writes in 0..4 {
        let gate = Gate::open(boot_time);
        let reached = Arc::new(Mutex::new(0));
        let (lease, count) = (gate.clone(), Arc::clone(&reached));
        let server = tower::service_fn(move |_: http::Request<Body>| {
            let mut count = count.lock().unwrap();
            *count += 1;
            if *count == writes {
                lease.lease(None);
            }
            let body = json!({"metadata": {"uid": "u", "resourceVersion": "1"}}).to_string();
            async move { Ok::<_, Infallible>(http::Response::new(Body::from(body.into_bytes()))) }
        });
        if writes == 0 {
            gate.lease(None);
        }
        let requests = Requests::new(Client::new(server, "default"), Duration::from_secs(10), "v1beta2", gate);
        let mut plan = Plan::nothing(key("demo"), "");
        plan.actions = (0..4)
            .map(|number| Action {
                op: Op::Create { body: json!({}) },
                target: key(&format!("child-{number}")),
                precondition: Precondition::MustNotExist,
                unless: Vec::new(),
                reason: String::new(),
            })
            .collect();
        let mut executor = Executor::new(&plan);
        let outcome = loop {
            match executor.next() {
                Step::Send(request) => executor.answer(&requests.send("capt-captcluster", &request).await),
                Step::Done(outcome) => break outcome,
            }
        };
        assert!(matches!(outcome, Outcome::NoAnswer { action, message: _ } if action == writes), "{outcome:?}");
        assert_eq!(*reached.lock().unwrap(), writes);
    }
}

/// What the Go implementation wrote with an update under its manager's name.
#[tokio::test]
async fn cb_127_what_was_written_by_update_goes_when_it_is_over() {
    let service = service();
    service.with(|world| world.create(&key("old"), captcluster("old")));
    let mut object = service.with(|world| world.get(&key("old")).unwrap().clone());
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2025-01-01T00:00:00Z"})
    };
    object["status"] = json!({"ready": false, "failureReason": "VPCCreationFailed", "failureMessage": "over long ago",
        "conditions": [condition("VPCFailed"), condition("example.com/Audited")]});
    let path =
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/captclusters/old/status?fieldManager=manager";
    let request = http::Request::builder().method("PUT").uri(path).header("Content-Type", "application/json");
    let response = service.respond(request.body(Full::new(Bytes::from(object.to_string()))).unwrap()).await;
    assert_eq!(response.status(), 200);
    operate(&service, |_| None, |world| has_state(world, "old")).await;
    let object = service.with(|world| world.get(&key("old")).unwrap().clone());
    assert_eq!((object["status"].get("failureReason"), object["status"].get("failureMessage")), (None, None));
    let types: Vec<(&str, &str)> = object["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| (condition["type"].as_str().unwrap(), condition["status"].as_str().unwrap()))
        .collect();
    assert!(types.contains(&("VPCFailed", "False")) && types.contains(&("example.com/Audited", "True")), "{types:?}");
    // Nothing of ours is an update's any more, and what is not ours still is.
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let of_status: Vec<&Value> = entries.iter().filter(|entry| entry["subresource"] == "status").collect();
    let named =
        |manager: &str| of_status.iter().find(|entry| entry["manager"] == manager).unwrap()["fieldsV1"].to_string();
    assert_eq!(of_status.len(), 2, "{of_status:#?}");
    assert!(named("manager").contains("example.com/Audited") && !named("manager").contains("VPCFailed"));
    assert!(named("capt-captcluster").contains("VPCFailed") && !named("capt-captcluster").contains("Audited"));
}

/// Lists and watches are refused for a while, at the start and in between.
#[tokio::test]
async fn cb_135_a_refused_watch_is_opened_again_and_loses_nothing() {
    let service = service();
    service.with(|world| world.create(&key("before"), captcluster("before")));
    let (lists, watches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen_lists, seen_watches) = (Arc::clone(&lists), Arc::clone(&watches));
    let refuses = move |request: &http::Request<Body>| {
        let is_ours = request.method() == http::Method::GET && request.uri().path().ends_with("/captclusters");
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let count = if is_watch { &seen_watches } else { &seen_lists };
        // The first list and the first two watches.
        let limit = if is_watch { 2 } else { 1 };
        (is_ours && count.fetch_add(1, Ordering::SeqCst) < limit).then_some(429)
    };
    let made = AtomicUsize::new(0);
    let other = service.clone();
    operate(&service, refuses, |world| {
        // Once the second watch is refused, something happens that only a third one can tell.
        if watches.load(Ordering::SeqCst) == 2 && made.fetch_add(1, Ordering::SeqCst) == 0 {
            let service = other.clone();
            tokio::spawn(async move { service.with(|world| world.create(&key("between"), captcluster("between"))) });
        }
        has_state(world, "before") && has_state(world, "between")
    })
    .await;
    assert!(lists.load(Ordering::SeqCst) > 1 && watches.load(Ordering::SeqCst) > 2);
}
