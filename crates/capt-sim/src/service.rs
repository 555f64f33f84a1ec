//! HTTP around the modelled API server: a request in, an answer or a stream of events out.
//!
//! It is what `kube::Client` and an HTTP listener talk to. It holds the only lock and asks the only clock;
//! nothing here decides anything about an object.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use capt_status::Time;
use futures::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    apiserver::{
        Answer,
        read::{Followed, Watch},
        request::{BODY_LIMIT, Method, Request},
        status::Status,
    },
    world::World,
};

/// Body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// Tells the time of the world.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// How long a watch lasts whose client does not say it.
const WATCH: Duration = Duration::from_mins(30);
/// How often a watch without news gets a bookmark.
const BOOKMARK: Duration = Duration::from_mins(1);

/// The server; cheap to clone.
#[derive(Clone)]
pub struct Service(Arc<Shared>);

struct Shared {
    world: Mutex<World>,
    /// Version of the store, for watches that wait.
    version: watch::Sender<u64>,
    clock: Clock,
}

impl Service {
    /// Serves `world` in the time that `clock` tells.
    pub fn new(world: World, clock: Clock) -> Self {
        let version = watch::Sender::new(world.version());
        Self(Arc::new(Shared { world: Mutex::new(world), version, clock }))
    }

    /// Does something with the world at its present time; watches hear of it.
    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world();
        world.now = (self.0.clock)();
        let result = act(&mut world);
        let version = world.version();
        drop(world);
        self.0.version.send_if_modified(|known| {
            let is_news = *known != version;
            *known = version;
            is_news
        });
        result
    }

    /// A receiver that hears of every change of the store.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // The store changes in single steps, so what a panic left behind is whole.
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request.
    pub async fn respond<B>(&self, request: http::Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let Some(method) = Method::parse(parts.method.as_str()) else {
            return answer(Answer::from(Status::method_not_allowed()));
        };
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        // One more than is allowed, so that the model sees that it is too much.
        let body = match Limited::new(body, BODY_LIMIT + 1).collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            Err(_) => return answer(Answer::from(Status::too_large(BODY_LIMIT))),
        };
        let text =
            |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        let request = Request {
            content_type: text(header::CONTENT_TYPE).to_owned(),
            accept: text(header::ACCEPT).to_owned(),
            user_agent: text(header::USER_AGENT).to_owned(),
            ..Request::new(method, target, body)
        };
        match self.with(|world| world.ask(|server, now| server.handle(&request, now))) {
            Answer::Watch(watch) => self.stream(*watch),
            other @ Answer::Body { .. } => answer(other),
        }
    }

    fn stream(&self, watch: Watch) -> Response<Body> {
        let end = Instant::now() + watch.seconds.map_or(WATCH, Duration::from_secs);
        let following = Following { service: self.clone(), changes: self.changes(), watch, end };
        let events = stream::unfold(Some(following), |following| async {
            let mut following = following?;
            let (bytes, is_over) = following.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(bytes)), (!is_over).then_some(following)))
        });
        let mut response = Response::new(StreamBody::new(events).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

struct Following {
    service: Service,
    changes: watch::Receiver<u64>,
    watch: Watch,
    end: Instant,
}

impl Following {
    /// The next events as lines, and whether they are the last ones; `None` when time is up.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        loop {
            self.changes.mark_unchanged();
            let Followed { events, is_over } = self.service.world().server().follow(&mut self.watch);
            if !events.is_empty() || is_over {
                return Some((lines(&events), is_over));
            }
            let left = self.end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // The sender lives as long as this watch's service.
            match timeout(left.min(BOOKMARK), self.changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) if self.watch.bookmarks && left > BOOKMARK => {
                    return Some((lines(&[self.watch.bookmark(false)]), false));
                }
                Err(_) => {}
            }
        }
    }
}

fn lines(events: &[Value]) -> Bytes {
    let mut text = String::new();
    for event in events {
        text.push_str(&event.to_string());
        text.push('\n');
    }
    text.into()
}

fn answer(answer: Answer) -> Response<Body> {
    let (code, body, content_type, warnings) = match answer {
        Answer::Body { code, body, content_type, warnings } => (code, body, content_type, warnings),
        // A watch is a stream and does not get here; without one there is nothing to say.
        Answer::Watch(_) => (200, Value::Null, "application/json", Vec::new()),
    };
    let bytes = match body {
        Value::String(text) => text.into_bytes(),
        body => body.to_string().into_bytes(),
    };
    let body = Full::new(Bytes::from(bytes));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", Value::from(warning))) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::ApiServer;

    fn service() -> Service {
        Service::new(World::new(ApiServer::default(), Time::from_unix(0)), Arc::new(|| Time::from_unix(0)))
    }

    async fn send(service: &Service, method: &str, path: &str, body: &Value) -> Response<Body> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).body(Full::new(Bytes::from(body))).unwrap();
        service.respond(request).await
    }

    fn secret(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    }

    const SECRETS: &str = "/api/v1/namespaces/default/secrets";

    #[tokio::test]
    async fn a_watch_hears_of_what_happens_after_it_began() {
        let service = service();
        let response = send(&service, "GET", &format!("{SECRETS}?watch=1"), &Value::Null).await;
        let mut stream = response.into_body();
        assert_eq!(send(&service, "POST", SECRETS, &secret("a")).await.status(), 201);
        let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("a")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_ends_when_its_time_is_up() {
        let service = service();
        let response = send(
            &service,
            "GET",
            &format!("{SECRETS}?watch=1&timeoutSeconds=200&allowWatchBookmarks=true"),
            &Value::Null,
        )
        .await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let bookmarks = String::from_utf8(bytes.to_vec()).unwrap().matches("BOOKMARK").count();
        assert_eq!(bookmarks, 3, "one each minute");
    }

    #[tokio::test]
    async fn what_is_wrong_is_a_status() {
        let service = service();
        for (method, path, body, code, reason) in [
            ("GET", "/api/v1/namespaces/default/secrets/a", Value::Null, 404, "NotFound"),
            ("POST", "/api/v1/namespaces/none/secrets", secret("a"), 404, "NotFound"),
            ("POST", SECRETS, json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "A"}}), 422, "Invalid"),
            ("POST", SECRETS, json!({}), 400, "BadRequest"),
            ("PATCH", SECRETS, json!({}), 405, "MethodNotAllowed"),
            ("GET", "/apis/none/v1/things", Value::Null, 404, "NotFound"),
        ] {
            let response = send(&service, method, path, &body).await;
            assert_eq!(response.status().as_u16(), code, "{method} {path}");
            let status: Value =
                serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
            assert_eq!(status["reason"], reason, "{method} {path}");
        }
    }
}
