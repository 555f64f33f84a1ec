//! The two small HTTP servers: health, for the kubelet, and metrics, for whoever may read them.
//!
//! Health is plain and says nothing about any object. Metrics go over TLS and to those whom the API
//! server knows and allows `get` on `/metrics`, as Cluster API providers do it; the log level is
//! changed there too, by who may `put` on `/log-level`.

pub mod access;
pub mod tls;

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::{health::Health, lease::gate::Gate, logging::Level, metrics::Metrics};
use access::{Access, Verdict};
use tls::Tls;

/// Connections at the same time; each is a kubelet, a Prometheus or a person.
const CONNECTIONS: usize = 32;
/// How long one connection may take, from its start to its end.
const LONGEST_CONNECTION: Duration = Duration::from_mins(1);
/// How long the handshake and the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted, for want of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Longest log level.
const LONGEST_BODY: usize = 1024;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("cannot listen on {address} for {what}: {source}; choose another address, or `off`")]
    Bind {
        /// For what.
        what: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// No certificate.
    #[error(transparent)]
    Tls(#[from] tls::Error),
}

type Answer = Response<Full<Bytes>>;

/// What the metrics server shows, and to whom.
#[derive(Clone)]
pub struct Diagnostics {
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// Whether this process may write is one of the figures.
    pub gate: Gate,
    /// The log level; absent where nobody may change it.
    pub level: Option<Level>,
    /// Who may read; absent for everybody.
    pub access: Option<Access>,
}

/// Opens the server for health. It ends when the returned future is dropped.
pub async fn health(address: SocketAddr, health: Health) -> Result<impl Future<Output = ()>, Error> {
    let listener = listen("health", address).await?;
    Ok(serve(listener, None, move |request| {
        let answer = on_health(&request, &health);
        async move { answer }
    }))
}

/// Opens the server for metrics, with TLS if `tls` is given.
pub async fn metrics(
    address: SocketAddr,
    tls: Option<Tls>,
    diagnostics: Diagnostics,
) -> Result<impl Future<Output = ()>, Error> {
    let listener = listen("metrics", address).await?;
    Ok(serve(listener, tls, move |request| {
        let diagnostics = diagnostics.clone();
        async move { on_metrics(request, &diagnostics).await }
    }))
}

async fn listen(what: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    let fail = |source| Error::Bind { what, address, source };
    let listener = match TcpListener::bind(address).await {
        // A machine without IPv6; there every address is every IPv4 address.
        Err(error) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await.map_err(|_| fail(error))?
        }
        listener => listener.map_err(fail)?,
    };
    // With port 0 the operating system chooses.
    let address = listener.local_addr().map_err(fail)?;
    tracing::info!(%address, "serves {what}");
    Ok(listener)
}

async fn serve<F>(
    listener: TcpListener,
    tls: Option<Tls>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // Ends with this future, and with it every connection.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let (tls, answer) = (tls.clone(), answer.clone());
        connections.spawn(async move {
            let _place = place;
            // A client that is too slow or speaks nonsense is its own trouble.
            let _ = timeout(LONGEST_CONNECTION, connection(stream, tls, answer)).await;
        });
    }
}

async fn connection<F>(stream: TcpStream, tls: Option<Tls>, answer: impl Fn(Request<Incoming>) -> F)
where
    F: Future<Output = Answer>,
{
    match tls {
        None => exchange(stream, answer).await,
        Some(tls) => match timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => exchange(stream, answer).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
            Err(_) => tracing::debug!("no TLS: the client is too slow"),
        },
    }
}

async fn exchange<F>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: impl Fn(Request<Incoming>) -> F)
where
    F: Future<Output = Answer>,
{
    let service = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn on_health<B>(request: &Request<B>, health: &Health) -> Answer {
    match request.uri().path() {
        "/livez" | "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => {
            let (ready, checks) = health.ready();
            text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, checks)
        }
        _ => text(StatusCode::NOT_FOUND, "there are /livez and /readyz\n".to_owned()),
    }
}

async fn on_metrics(request: Request<Incoming>, diagnostics: &Diagnostics) -> Answer {
    let Diagnostics { metrics, gate, level, access } = diagnostics;
    let (path, verb) = match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET) => ("/metrics", "get"),
        ("/log-level", &Method::GET) => ("/log-level", "get"),
        ("/log-level", &Method::PUT) => ("/log-level", "put"),
        ("/metrics" | "/log-level", _) => return text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()),
        _ => return text(StatusCode::NOT_FOUND, "there are /metrics and /log-level\n".to_owned()),
    };
    if let Some(access) = access {
        match access.check(request.headers().get(header::AUTHORIZATION), verb, path).await {
            Verdict::Allowed => {}
            Verdict::Unknown => return text(StatusCode::UNAUTHORIZED, "a bearer token is needed\n".to_owned()),
            Verdict::Forbidden => {
                return text(StatusCode::FORBIDDEN, format!("you lack `{verb}` on the nonResourceURL {path}\n"));
            }
            Verdict::CannotTell => {
                return text(StatusCode::SERVICE_UNAVAILABLE, "the API server does not say who you are\n".to_owned());
            }
        }
    }
    if path == "/metrics" {
        let mut answer = text(StatusCode::OK, metrics.text(gate.is_open()));
        let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(openmetrics));
        return answer;
    }
    let Some(level) = level else {
        return text(StatusCode::FORBIDDEN, "the log level is fixed without authentication\n".to_owned());
    };
    if verb == "put" {
        let body = Limited::new(request.into_body(), LONGEST_BODY).collect().await;
        let wanted = body.ok().and_then(|body| String::from_utf8(body.to_bytes().to_vec()).ok());
        match wanted.map(|wanted| level.set(wanted.trim())) {
            Some(Ok(())) => {}
            Some(Err(error)) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
            None => return text(StatusCode::BAD_REQUEST, "send the level as text, as in `debug`\n".to_owned()),
        }
    }
    text(StatusCode::OK, format!("{}\n", level.get()))
}

fn text(code: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
