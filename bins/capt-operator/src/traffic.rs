//! Counts every request that leaves this process, and remembers how the last ones ended.
//!
//! A layer around the client, so that nothing can be sent past it: passes, watches, events, lease.
//! It sees method, path and code, never a body.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{Method, Request, Response};
use tower::{Layer, Service};

use crate::metrics::Metrics;

/// How requests went lately; cheap to clone.
#[derive(Debug, Clone)]
pub struct Traffic(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since when no request was answered; absent while they are.
    failing_since: Option<Instant>,
    answered_once: bool,
    /// When a watch of a resource was last opened.
    watches: BTreeMap<&'static str, Instant>,
}

/// How the API server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing was answered yet.
    Never,
    /// The last request was answered.
    Answers,
    /// Requests have been failing for this long.
    Silent(Duration),
}

impl Traffic {
    /// Nothing sent yet; counts go to `metrics`.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Shared { metrics, state: Mutex::default() }))
    }

    /// How the API server is reached.
    pub fn reach(&self) -> Reach {
        let state = self.state();
        match state.failing_since {
            Some(since) => Reach::Silent(since.elapsed()),
            None if state.answered_once => Reach::Answers,
            None => Reach::Never,
        }
    }

    /// The resource whose watch was opened longest ago, and how long ago that was.
    pub fn oldest_watch(&self) -> Option<(&'static str, Duration)> {
        let state = self.state();
        state.watches.iter().map(|(resource, at)| (*resource, at.elapsed())).max_by_key(|(_, age)| *age)
    }

    /// Watches are started afresh: what was watched before does not count.
    pub fn forget_watches(&self) {
        self.state().watches.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, call: Call, code: Option<u16>, took: Duration) {
        let Call { verb, resource } = call;
        self.0.metrics.request(verb, resource, code, took);
        let mut state = self.state();
        // An API server that is overloaded or starting answers, but does not serve.
        if code.is_some_and(|code| code < 500) {
            state.failing_since = None;
            state.answered_once = true;
            // Only the watches that passes rest on are expected to be opened again and again.
            if verb == "watch" && WATCHED.contains(&resource) {
                state.watches.insert(resource, Instant::now());
            }
        } else {
            state.failing_since.get_or_insert_with(Instant::now);
        }
    }
}

/// What a request is, as the audit log of an API server would call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    verb: &'static str,
    resource: &'static str,
}

/// Resources of the kinds that passes read.
const WATCHED: [&str; 8] = [
    "clusters.cluster.x-k8s.io",
    "captclusters.infrastructure.cluster.x-k8s.io",
    "workspacetemplates.infrastructure.cluster.x-k8s.io",
    "workspacetemplateapplies.infrastructure.cluster.x-k8s.io",
    "captcontrolplanes.controlplane.cluster.x-k8s.io",
    "workspaces.tf.upbound.io",
    "workspaces.tf.m.upbound.io",
    "secrets",
];

/// Everything else that is requested under a name of its own; the rest is `other`.
const OTHERS: [&str; 9] = [
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "tokenreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "captclusters/status.infrastructure.cluster.x-k8s.io",
    "captcontrolplanes/status.controlplane.cluster.x-k8s.io",
    "workspacetemplateapplies/status.infrastructure.cluster.x-k8s.io",
];

impl Call {
    fn of<B>(request: &Request<B>) -> Self {
        let segments: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let (group, rest) = match segments[..] {
            ["api", _, ref rest @ ..] => ("", rest),
            ["apis", group, _, ref rest @ ..] => (group, rest),
            _ => return Self { verb: verb(request.method(), false, false), resource: "other" },
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let (name, sub) = match rest {
            [] => return Self { verb: verb(request.method(), false, true), resource: "discovery" },
            [_] => (false, None),
            [_, _] => (true, None),
            [_, _, sub, ..] => (true, Some(*sub)),
        };
        let watches = request
            .uri()
            .query()
            .is_some_and(|query| query.split('&').any(|part| part == "watch=true" || part == "watch=1"));
        let resource =
            WATCHED.into_iter().chain(OTHERS).find(|known| is(known, rest[0], sub, group)).unwrap_or("other");
        Self { verb: verb(request.method(), watches, name), resource }
    }
}

/// Whether `known` is `plural[/sub][.group]`.
fn is(known: &str, plural: &str, sub: Option<&str>, group: &str) -> bool {
    let after = |text: &str, prefix: char, part: &str| match part {
        "" => Some(text.to_owned()),
        part => text.strip_prefix(prefix)?.strip_prefix(part).map(str::to_owned),
    };
    known
        .strip_prefix(plural)
        .and_then(|rest| after(rest, '/', sub.unwrap_or_default()))
        .and_then(|rest| after(&rest, '.', group))
        .is_some_and(|rest| rest.is_empty())
}

fn verb(method: &Method, watches: bool, name: bool) -> &'static str {
    match *method {
        Method::GET if watches => "watch",
        Method::GET if name => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        // A foreign type with any number of values.
        _ => "other",
    }
}

impl<S> Layer<S> for Traffic {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, traffic: self.clone() }
    }
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    traffic: Traffic,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let sent = Sent { call: Call::of(&request), at: Instant::now(), traffic: Some(self.traffic.clone()) };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            sent.ended(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            answer
        })
    }
}

/// A request under way. One that is given up before its answer counts as not answered.
struct Sent {
    call: Call,
    at: Instant,
    traffic: Option<Traffic>,
}

impl Sent {
    fn ended(mut self, code: Option<u16>) {
        if let Some(traffic) = self.traffic.take() {
            traffic.ended(self.call, code, self.at.elapsed());
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(traffic) = self.traffic.take() {
            traffic.ended(self.call, None, self.at.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use capt_reconcile::object::Kind;

    use super::*;

    #[test]
    fn requests_are_called_as_in_an_audit_log() {
        for (method, uri, verb, resource) in [
            ("GET", "/apis/tf.upbound.io/v1beta1/workspaces?labelSelector=a%3Db", "list", "workspaces.tf.upbound.io"),
            ("GET", "/apis/tf.m.upbound.io/v1beta1/workspaces?&watch=true&x=1", "watch", "workspaces.tf.m.upbound.io"),
            ("GET", "/api/v1/namespaces/ns/secrets/name", "get", "secrets"),
            ("GET", "/api/v1/namespaces/ns/secrets", "list", "secrets"),
            (
                "PATCH",
                "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/captclusters/c/status?force=true",
                "patch",
                "captclusters/status.infrastructure.cluster.x-k8s.io",
            ),
            (
                "PATCH",
                "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/captclusters/c",
                "patch",
                "captclusters.infrastructure.cluster.x-k8s.io",
            ),
            ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events", "create", "events.events.k8s.io"),
            ("PUT", "/apis/example.io/v1/things/one", "update", "other"),
            ("DELETE", "/api/v1/namespaces/ns/pods/one", "delete", "other"),
            ("GET", "/apis/tf.upbound.io/v1beta1", "get", "discovery"),
            ("GET", "/healthz", "list", "other"),
        ] {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(Call::of(&request), Call { verb, resource }, "{method} {uri}");
        }
    }

    #[test]
    fn every_kind_that_passes_read_has_its_name() {
        for kind in Kind::ALL {
            let group = if kind.group().is_empty() { String::new() } else { format!(".{}", kind.group()) };
            let name = format!("{}{group}", kind.plural());
            assert!(WATCHED.contains(&name.as_str()), "{name}");
        }
    }

    async fn send(traffic: &Traffic, uri: &str, code: Option<u16>) {
        let mut service = traffic.layer(tower::service_fn(move |_: Request<()>| async move {
            match code {
                Some(code) => Ok(Response::builder().status(code).body(()).unwrap()),
                None => Err("no answer"),
            }
        }));
        let _ = service.call(Request::get(uri).body(()).unwrap()).await;
    }

    #[tokio::test]
    async fn an_api_server_that_does_not_serve_is_silent_until_it_does() {
        let traffic = Traffic::new(Arc::new(Metrics::new()));
        assert_eq!(traffic.reach(), Reach::Never);
        send(&traffic, "/api/v1/secrets", Some(200)).await;
        assert_eq!(traffic.reach(), Reach::Answers);
        for failure in [Some(503), None] {
            send(&traffic, "/api/v1/secrets", failure).await;
            assert!(matches!(traffic.reach(), Reach::Silent(_)), "{failure:?}");
        }
        send(&traffic, "/api/v1/secrets", Some(404)).await;
        assert_eq!(traffic.reach(), Reach::Answers, "a refusal is an answer");
        assert_eq!(traffic.oldest_watch(), None);
        send(&traffic, "/api/v1/secrets?watch=true", Some(200)).await;
        assert_eq!(traffic.oldest_watch().unwrap().0, "secrets");
    }

    #[tokio::test]
    async fn each_request_is_counted_once_also_when_it_is_given_up() {
        let metrics = Arc::new(Metrics::new());
        let traffic = Traffic::new(Arc::clone(&metrics));
        send(&traffic, "/api/v1/secrets", Some(200)).await;
        send(&traffic, "/api/v1/secrets", Some(200)).await;
        let mut never = traffic
            .layer(tower::service_fn(|_: Request<()>| std::future::pending::<Result<Response<()>, Infallible>>()));
        drop(never.call(Request::get("/api/v1/secrets").body(()).unwrap()));
        let text = metrics.text(true);
        for line in [
            r#"capt_api_requests_total{verb="list",resource="secrets",code="200"} 2"#,
            r#"capt_api_requests_total{verb="list",resource="secrets",code="none"} 1"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
