//! The operator as `run` starts it — client, watches, caches, queue — over a whole life in virtual time, with one fault
//! between it and the modelled API server.
//!
//! `CAPT_FAULTS=all` plays every fault at every request, `CAPT_FAULTS=n` each n-th, else a part. `CAPT_SCHEDULE=kube/<id>`
//! plays one and prints its requests.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use capt_operator::{
    connection::Connection,
    run::{self, Options, Watching},
};
use capt_reconcile::object::{Kind, ObjectKey};
use capt_sim::{
    apiserver::ApiServer,
    core::{self, Release},
    definitions,
    provider::{Counts, Provider},
    service::Service,
    terraform,
    world::World,
};
use capt_status::{Span, Time};
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

#[path = "../../../../crates/capt-sim/tests/common/lasting.rs"]
#[allow(unreachable_pub)] // another test uses it too
mod lasting;

const BEGIN: Time = Time::from_unix(1_767_225_600);

/// One run in so many where nobody asks for more: one or two of each kind.
const EACH: usize = 211;

/// How long the client of `run` waits for an answer (kube's default).
const READ_TIMEOUT: Duration = Duration::from_secs(295);

/// Longer than anything in a life takes, faults and their deadlines included.
const PATIENCE: Duration = Duration::from_hours(4);

/// An API server as every life begins with it.
static SERVER: OnceLock<ApiServer> = OnceLock::new();

thread_local! {
    /// When the world of this thread began, in the runtime's time.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time of the world: the runtime's, which passes at once where everybody waits.
fn now() -> Time {
    let began = BEGAN.get().unwrap_or_else(|| {
        let began = Instant::now();
        BEGAN.set(Some(began));
        began
    });
    BEGIN.plus(Span::from_seconds(i64::try_from(began.elapsed().as_secs()).unwrap_or(i64::MAX)))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The request is refused with this code.
    Refused(u16),
    /// The request never arrives, and the client hears of it.
    Lost,
    /// The request is carried out, and its answer is lost.
    Unanswered,
    /// The request never arrives, and the client gives up after its own time.
    Hung,
    /// The answer takes this many seconds.
    Slow(u64),
    /// The answer ends after its first part; a watch, after its first event.
    Cut,
    /// The process ends before the request arrives, and another one starts.
    StoppedBefore,
    /// The process ends before it hears the answer, and another one starts.
    StoppedAfter,
}

const FAULTS: [Fault; 14] = [
    Fault::Refused(401),
    Fault::Refused(403),
    Fault::Refused(404),
    Fault::Refused(409),
    Fault::Refused(410),
    Fault::Refused(429),
    Fault::Refused(500),
    Fault::Lost,
    Fault::Unanswered,
    Fault::Hung,
    Fault::Slow(20),
    Fault::Cut,
    Fault::StoppedBefore,
    Fault::StoppedAfter,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "refused-{code}"),
            Self::Lost => f.write_str("lost"),
            Self::Unanswered => f.write_str("unanswered"),
            Self::Hung => f.write_str("hung"),
            Self::Slow(seconds) => write!(f, "slow-{seconds}"),
            Self::Cut => f.write_str("cut"),
            Self::StoppedBefore => f.write_str("stopped-before"),
            Self::StoppedAfter => f.write_str("stopped-after"),
        }
    }
}

/// What a life leaves behind.
#[derive(Debug, Default, PartialEq)]
struct Life {
    /// Every object when the cluster was ready, without what depends on when.
    ready: BTreeMap<ObjectKey, Value>,
    /// Requests in half an hour of rest, watches aside.
    at_rest: Vec<String>,
    /// How often each object was made.
    births: BTreeMap<ObjectKey, usize>,
    /// What became of each Terraform state.
    terraform: BTreeMap<String, Counts>,
    /// What is left at the end.
    left: Vec<ObjectKey>,
}

/// The way between the operator and the API server.
struct Wire {
    service: Service,
    /// Requests so far, as `VERB path`.
    requests: Mutex<Vec<String>>,
    fault: Option<(usize, Fault)>,
    stop: Notify,
}

type Answer = http::Response<http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>>;

impl Wire {
    async fn carry(&self, request: http::Request<Body>) -> Result<Answer, std::io::Error> {
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(format!("{} {}", request.method(), request.uri()));
            requests.len() - 1
        };
        let reset = || std::io::Error::other("connection reset");
        match self.fault.filter(|(at, _)| *at == number).map(|(_, fault)| fault) {
            None => Ok(self.answer(request).await),
            Some(Fault::Refused(code)) => {
                let reason = match code {
                    401 => "Unauthorized",
                    403 => "Forbidden",
                    404 => "NotFound",
                    409 => "Conflict",
                    410 => "Expired",
                    429 => "TooManyRequests",
                    _ => "InternalError",
                };
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": reason, "message": "a fault"});
                let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
                Ok(http::Response::builder().status(code).header("Retry-After", "1").body(body.boxed_unsync()).unwrap())
            }
            Some(Fault::Lost) => Err(reset()),
            Some(Fault::Unanswered) => {
                self.answer(request).await;
                Err(reset())
            }
            Some(Fault::Hung) => {
                tokio::time::sleep(READ_TIMEOUT).await;
                Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
            }
            Some(Fault::Slow(seconds)) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(self.answer(request).await)
            }
            Some(Fault::Cut) => {
                let (parts, body) = self.answer(request).await.into_parts();
                let frames = body.into_data_stream().map(|part| part.map(hyper::body::Frame::data)).take(1);
                let cut = frames.chain(stream::iter([Err(reset())]));
                Ok(http::Response::from_parts(parts, StreamBody::new(cut).boxed_unsync()))
            }
            Some(Fault::StoppedBefore) => {
                self.stop.notify_one();
                std::future::pending().await
            }
            Some(Fault::StoppedAfter) => {
                self.answer(request).await;
                self.stop.notify_one();
                std::future::pending().await
            }
        }
    }

    async fn answer(&self, request: http::Request<Body>) -> Answer {
        self.service.respond(request).await.map(|body| body.map_err(|never| match never {}).boxed_unsync())
    }
}

/// The operator, started anew whenever a fault ends it.
async fn operator(wire: Arc<Wire>) {
    loop {
        let of_client = Arc::clone(&wire);
        let respond = tower::service_fn(move |request| {
            let wire = Arc::clone(&of_client);
            async move { wire.carry(request).await }
        });
        let connection = Connection { client: Client::new(respond, "default"), address: "the model".to_owned() };
        let options = Options::alone(now);
        let watching = Watching::closed();
        tokio::select! {
            result = run::run(&connection, &options, &watching, std::future::pending()) => panic!("it ended: {result:?}"),
            () = wire.stop.notified() => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Core, provider and garbage collector, and who counts what is made.
async fn models(
    service: Service,
    provider: Arc<Mutex<Provider>>,
    births: Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<String>>>>,
) {
    let mut changes = service.changes();
    loop {
        changes.mark_unchanged();
        let (wrote, next) = service.with(|world| {
            for key in keys(world) {
                let uid = world.get(&key).unwrap()["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                births.lock().unwrap().entry(key).or_default().insert(uid);
            }
            let mut provider = provider.lock().unwrap();
            let wrote =
                core::step(world, Release::default()) | provider.step(world, &terraform::guess) | world.collect();
            (wrote, provider.next())
        });
        if !wrote {
            let until = next.map_or(60, |at| at.since(now()).as_seconds().max(1));
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(until.unsigned_abs())) => {}
            }
        }
        tokio::task::yield_now().await;
    }
}

fn keys(world: &World) -> Vec<ObjectKey> {
    Kind::ALL.into_iter().flat_map(|kind| world.keys(kind)).collect()
}

fn plane() -> ObjectKey {
    ObjectKey::new(Kind::CaptControlPlane, "default", "demo")
}

fn create(world: &mut World, file: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    for mut object in serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap() {
        let (group, _) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = Kind::find(group, object["kind"].as_str().unwrap()).unwrap();
        let key = ObjectKey::new(kind, "default", object["metadata"]["name"].as_str().unwrap());
        object["metadata"]["namespace"] = json!("default");
        world.create(&key, object);
    }
}

async fn until(service: &Service, what: &str, is_so: impl Fn(&World) -> bool) -> Result<(), String> {
    let mut changes = service.changes();
    let waiting = async {
        while !service.with(|world| is_so(world)) {
            let _ = changes.changed().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| {
        let status = service.with(|world| world.get(&plane()).map(|plane| plane["status"]["conditions"].clone()));
        format!("P12: never {what}: {status:?}")
    })
}

/// A life with `fault` at a request; the requests, and what is left of it.
fn live(fault: Option<(usize, Fault)>) -> (Vec<String>, Result<Life, String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        BEGAN.set(None);
        let server = SERVER.get_or_init(|| definitions::server(BEGIN).unwrap()).clone();
        let world = World::new(server, now());
        let service = Service::new(world, Arc::new(now));
        let (provider, births) = (Arc::new(Mutex::new(Provider::default())), Arc::default());
        let wire = Arc::new(Wire { service: service.clone(), requests: Mutex::default(), fault, stop: Notify::new() });
        let result = tokio::select! {
            result = story(&service, &wire) => result,
            () = operator(Arc::clone(&wire)) => Err("the operator ended".to_owned()),
            () = models(service.clone(), Arc::clone(&provider), Arc::clone(&births)) => Err("the models ended".to_owned()),
        };
        let life = result.map(|life| Life {
            births: births.lock().unwrap().iter().map(|(key, uids)| (key.clone(), uids.len())).collect(),
            terraform: provider.lock().unwrap().states().clone(),
            ..life
        });
        let requests = wire.requests.lock().unwrap().clone();
        (requests, life)
    })
}

async fn story(service: &Service, wire: &Wire) -> Result<Life, String> {
    service.with(|world| {
        for file in ["vpc-template.yaml", "eks-template.yaml", "cluster.yaml"] {
            create(world, file);
        }
    });
    let is_ready = |version: &'static str| {
        move |world: &World| {
            world.get(&plane()).is_some_and(|plane| {
                let status = &plane["status"];
                status["state"] == "Ready" && status["version"] == version
            })
        }
    };
    until(service, "ready", is_ready("v1.31.0")).await?;
    // Time to heal.
    tokio::time::sleep(Duration::from_mins(30)).await;
    let ready = service.with(|world| {
        let all = keys(world).into_iter();
        all.map(|key| (lasting::lasting(world.get(&key).unwrap()), key)).map(|(object, key)| (key, object)).collect()
    });
    let before = wire.requests.lock().unwrap().len();
    tokio::time::sleep(Duration::from_mins(30)).await;
    let at_rest = wire.requests.lock().unwrap()[before..].to_vec();
    // What the operator does about a fault is not rest.
    let disturbed = wire.fault.is_some_and(|(number, _)| number >= before);
    let at_rest = at_rest.into_iter().filter(|request| !disturbed && !request.contains("watch=true")).collect();
    service.with(|world| world.edit(&plane(), |plane| plane["spec"]["version"] = json!("1.32")));
    until(service, "updated", is_ready("v1.32.0")).await?;
    service.with(|world| world.delete(&ObjectKey::new(Kind::Cluster, "default", "demo")));
    let lasts = |world: &World| -> Vec<ObjectKey> {
        keys(world).into_iter().filter(|key| key.kind != Kind::Template).collect()
    };
    until(service, "gone", |world| lasts(world).is_empty()).await?;
    tokio::time::sleep(Duration::from_mins(10)).await;
    Ok(Life { ready, at_rest, left: service.with(|world| lasts(world)), ..Life::default() })
}

/// What is wrong with `life`, which should be as `wanted`.
fn compare(life: Result<Life, String>, wanted: &Life) -> Vec<String> {
    let Life { ready, at_rest, births, terraform, left } = match life {
        Ok(life) => life,
        Err(error) => return vec![error],
    };
    let mut wrong = Vec::new();
    for key in ready.keys().chain(wanted.ready.keys()).collect::<BTreeSet<_>>() {
        match (wanted.ready.get(key), ready.get(key)) {
            (Some(wanted), Some(found)) if wanted != found => {
                wrong.push(format!("P1: {key}: {}", lasting::difference("", wanted, found)));
            }
            (Some(_), None) => wrong.push(format!("P12: {key} is not there")),
            (None, Some(_)) => wrong.push(format!("P13: {key} is there")),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    wrong.extend(at_rest.iter().map(|request| format!("P2: at rest, {request}")));
    for (key, births) in &births {
        let before = wanted.births.get(key).copied().unwrap_or_default();
        if *births > before {
            wrong.push(format!("P12: {key} was made {births} times and not {before}"));
        }
    }
    if terraform != wanted.terraform {
        wrong.push(format!("P23: {terraform:?} and not {:?}", wanted.terraform));
    }
    wrong.extend(left.iter().map(|key| format!("P13: {key} is left")));
    wrong
}

#[test]
fn the_real_kube_layer_survives_every_single_fault_at_every_request() {
    let (requests, life) = live(None);
    let wanted = life.unwrap();
    assert_eq!(compare(live(None).1, &wanted), [""; 0], "the same again");
    assert_eq!(wanted.at_rest, [""; 0], "quiet at rest");
    assert_eq!(wanted.left, []);
    let all: Vec<(usize, Fault)> = (0..requests.len()).flat_map(|number| FAULTS.map(|fault| (number, fault))).collect();
    if let Some(id) = std::env::var("CAPT_SCHEDULE").ok().as_deref().and_then(|id| id.strip_prefix("kube/")) {
        let at = all.iter().find(|(number, fault)| format!("{fault}/{number}") == id);
        let (requests, life) = live(Some(*at.unwrap_or_else(|| panic!("there is no schedule {id}"))));
        requests.iter().enumerate().for_each(|(number, request)| println!("{number:>5} {request}"));
        assert_eq!(compare(life, &wanted), [""; 0], "{id}");
        return;
    }
    let each = match std::env::var("CAPT_FAULTS").as_deref() {
        Ok("all" | "pairs") => 1,
        Ok("") | Err(_) => EACH,
        // A life takes a hundred times as long as one without client and watches.
        Ok(each) => 25 * each.parse::<usize>().unwrap(),
    };
    let played: Vec<_> = all.iter().step_by(each).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((number, fault)) = played.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for text in compare(live(Some((*number, *fault))).1, &wanted) {
                        println!("kube/{fault}/{number} ({}): {text}", requests[*number]);
                        wrong.lock().unwrap().push(format!("kube/{fault}/{number}: {text}"));
                    }
                }
            });
        }
    });
    println!(
        "{} requests in a life, {} of {} schedules of the kube layer played",
        requests.len(),
        played.len(),
        all.len()
    );
    assert_eq!(wrong.into_inner().unwrap(), [""; 0]);
}
