//! Export of traces over OTLP: each pass is a span, and each of its requests to the API server one in it.
//!
//! The collector is spoken to by the HTTP and TLS that the API server is spoken to with. What it does not take is lost: no pass waits
//! for it. Spans carry names, verbs, paths and codes, and nothing of what objects contain.

use std::{
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{client::legacy, rt::TokioExecutor};
use kube::{Config, client::ConfigExt};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tower::{ServiceExt, util::BoxCloneSyncService};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

use crate::cli::TraceArgs;

/// The variable that every program with OTLP knows, where there is no flag.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How long the collector may take for a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the last batch may take when the process ends.
const LAST_BATCH: Duration = Duration::from_secs(1);

/// Why no traces are exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("cannot export traces to {endpoint}: give the address of a collector, as in http://collector:4318")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// Nobody vouches for it.
    #[error(
        "cannot use {path} as certificates of the collector: {message}; give a file in PEM with --otlp-certificate"
    )]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// No client for it.
    #[error("cannot export traces to {endpoint}: {message}")]
    Client {
        /// The collector.
        endpoint: String,
        /// What is wrong.
        message: String,
    },
}

/// Exports spans until it is dropped, and then the last ones.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Begins to export to the collector that `args` or the environment names; `None` if neither does. Needs a
    /// runtime, which must outlive it.
    pub fn start(args: &TraceArgs) -> Result<Option<Self>, Error> {
        let by_environment = || std::env::var(ENDPOINT).ok();
        let endpoint = args.endpoint.clone().or_else(by_environment).filter(|endpoint| !endpoint.is_empty());
        let Some(endpoint) = endpoint else { return Ok(None) };
        let fail = |message: String| Error::Client { endpoint: endpoint.clone(), message };
        let uri: Uri = endpoint.parse().map_err(|_| Error::Endpoint { endpoint: endpoint.clone() })?;
        if uri.scheme().is_none() || uri.authority().is_none() {
            return Err(Error::Endpoint { endpoint });
        }
        let mut config = Config::new(uri);
        config.root_cert_file.clone_from(&args.certificate);
        let connector = config.rustls_https_connector().map_err(|error| {
            let message = error.to_string();
            match &args.certificate {
                Some(path) => Error::Certificate { path: path.clone(), message },
                None => fail(message),
            }
        })?;
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
        let client = BoxCloneSyncService::new(client.map_err(HttpError::from));
        let collector = Collector { client, runtime: Handle::current(), is_deaf: AtomicBool::default() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .build()
            .map_err(|error| fail(error.to_string()))?;
        let provider = SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
        Ok(Some(Self(provider)))
    }

    /// Takes up spans: passes, whatever the log level, and requests.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let requests = "kube_client::client::builder";
        let spans =
            Targets::new().with_target("capt_operator", LevelFilter::INFO).with_target(requests, LevelFilter::DEBUG);
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer(env!("CARGO_PKG_NAME")))
            .with_location(false)
            .with_threads(false)
            .with_filter(spans)
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // A collector that is gone was told of already.
        let _ = self.0.shutdown_with_timeout(LAST_BATCH);
    }
}

/// Who exports. What `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` say is added, and goes before.
fn resource() -> Resource {
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
    }
    resource.with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build()
}

/// The collector. The exporter has a thread of its own, without a runtime.
struct Collector {
    client: BoxCloneSyncService<Request<Full<Bytes>>, Response<Incoming>, HttpError>,
    runtime: Handle,
    /// It did not take the last batch.
    is_deaf: AtomicBool,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("is_deaf", &self.is_deaf).finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sending = async move {
            let response = client.oneshot(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            Ok::<_, HttpError>(Response::from_parts(parts, body.collect().await?.to_bytes()))
        };
        // In the runtime, which has the timer and the sockets.
        let result = match self.runtime.spawn(async { tokio::time::timeout(PATIENCE, sending).await }).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("it did not answer in time".into()),
            Err(error) => Err(error.into()),
        };
        let problem = match &result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answered {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        let was_deaf = self.is_deaf.swap(problem.is_some(), Ordering::Relaxed);
        match problem {
            Some(problem) if !was_deaf => {
                tracing::warn!("traces are lost, the collector does not take them: {problem}");
            }
            None if was_deaf => tracing::info!("the collector takes traces again"),
            Some(_) | None => {}
        }
        result
    }
}
