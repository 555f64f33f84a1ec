//! Traces as a collector gets them from the built program.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value},
    trace::v1::Span,
};
use prost::Message;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring::default_provider, pki_types::PrivateKeyDer},
};

use crate::sandbox::{Running, ask, start};

/// Everything that is waited for takes a second or two.
const LIMIT: Duration = Duration::from_mins(1);
/// What a collector is given as a password.
const TOKEN: &str = "Bearer 5dd1f1c2";

/// TLS of the collector, with a certificate that is written to `path`.
fn tls(path: &Path) -> TlsAcceptor {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(path, pair.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// What came in: path, authorization and body of each request. The first is refused.
type Received = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

async fn collect(listener: TcpListener, tls: TlsAcceptor, received: Received) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = tls.accept(stream).await.unwrap();
        let received = Arc::clone(&received);
        let answer = service_fn(move |request: Request<Incoming>| {
            let received = Arc::clone(&received);
            async move {
                let path = request.uri().path().to_owned();
                let authorization =
                    request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
                let body = request.into_body().collect().await.unwrap().to_bytes().to_vec();
                let mut received = received.lock().unwrap();
                received.push((path, authorization.unwrap_or_default(), body));
                let code = if received.len() == 1 { 503 } else { 200 };
                Ok::<_, Infallible>(Response::builder().status(code).body(Full::<bytes::Bytes>::default()).unwrap())
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|attribute| attribute.key == key).and_then(|attribute| attribute.value.as_ref());
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The spans of all requests, and the attributes of who sent them.
fn spans(received: &Received) -> (Vec<Span>, Vec<KeyValue>) {
    let (mut spans, mut resource) = (Vec::new(), Vec::new());
    for (path, authorization, body) in &*received.lock().unwrap() {
        assert_eq!((path.as_str(), authorization.as_str()), ("/otlp/v1/traces", TOKEN));
        for sent in ExportTraceServiceRequest::decode(body.as_slice()).unwrap().resource_spans {
            resource = sent.resource.unwrap().attributes;
            spans.extend(sent.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    (spans, resource)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_each_pass_with_its_requests_and_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://localhost:{}/otlp/", listener.local_addr().unwrap().port());
    let (received, directory) = (Received::default(), tempfile::tempdir().unwrap());
    let certificate = directory.path().join("collector.crt");
    tokio::spawn(collect(listener, tls(&certificate), Arc::clone(&received)));
    let kubeconfig = directory.path().join("kubeconfig");
    let (_sandbox, address) = start(&kubeconfig);

    let mut operator = Command::new(env!("CARGO_BIN_EXE_capt-operator"))
        .args(["run", "--leader-elect=false", "--health-address=off", "--metrics-address=off", "--log-level=info"])
        .args(["--kubeconfig", kubeconfig.to_str().unwrap(), "--otlp-endpoint", &endpoint])
        .args(["--otlp-certificate", certificate.to_str().unwrap()])
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization={}", TOKEN.replace(' ', "%20")))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(operator.stderr.take().unwrap());
    let operator = Running(operator);
    let (lines, log) = (Arc::new(Mutex::new(Vec::new())), log.lines());
    let kept = Arc::clone(&lines);
    std::thread::spawn(move || log.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));

    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cluster.yaml");
    for object in serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(example).unwrap()).unwrap() {
        let (group, plural) = match object["kind"].as_str().unwrap() {
            "Cluster" => ("cluster.x-k8s.io/v1beta2", "clusters"),
            "CAPTCluster" => ("infrastructure.cluster.x-k8s.io/v1beta1", "captclusters"),
            _ => ("controlplane.cluster.x-k8s.io/v1beta1", "captcontrolplanes"),
        };
        let path = format!("/apis/{group}/namespaces/default/{plural}");
        let answer = ask(&address, "POST", &path, "Content-Type: application/json\r\n", &object.to_string());
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    // Until the whole life was told of: a pass over each kind, and a request in one.
    let is_request_in = |span: &Span, passes: &[&Span]| {
        let verb = text(&span.attributes, "http.method");
        let is_inside = passes.iter().any(|pass| pass.span_id == span.parent_span_id && pass.trace_id == span.trace_id);
        is_inside && verb == "PATCH" && text(&span.attributes, "http.url").contains("/captcontrolplanes/demo/status")
    };
    let end = Instant::now() + LIMIT;
    loop {
        let (spans, resource) = spans(&received);
        let passes: Vec<&Span> = spans.iter().filter(|span| span.name == "pass").collect();
        let kinds: BTreeSet<String> = passes.iter().map(|pass| text(&pass.attributes, "kind")).collect();
        let all = ["CAPTCluster", "CAPTControlPlane", "Cluster", "WorkspaceTemplateApply"].map(str::to_owned);
        let requested = spans.iter().find(|span| is_request_in(span, &passes));
        if let (true, Some(request)) = (kinds == BTreeSet::from(all), requested) {
            assert_eq!(text(&resource, "service.name"), "capt-operator");
            assert_eq!(text(&resource, "service.version"), env!("CARGO_PKG_VERSION"));
            assert!(["200", "409"].contains(&text(&request.attributes, "http.status_code").as_str()), "{request:?}");
            break;
        }
        assert!(Instant::now() < end, "seen so far: {kinds:?}\n{}", lines.lock().unwrap().join("\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let is_told = |words: &str| lines.lock().unwrap().iter().any(|line| line.contains(words));
    assert!(
        is_told("traces are lost, the collector does not take them: it answered 503"),
        "{:?}",
        lines.lock().unwrap()
    );
    assert!(is_told("the collector takes traces again"), "{:?}", lines.lock().unwrap());

    // Until there is something secret that could have been sent.
    let values = loop {
        let answer = ask(&address, "GET", "/api/v1/namespaces/default/secrets", "", "");
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let data = body["items"].as_array().unwrap().iter().filter_map(|secret| secret["data"].as_object());
        let values: Vec<String> =
            data.flat_map(|data| data.values()).map(|value| value.as_str().unwrap().to_owned()).collect();
        if body["items"].as_array().unwrap().iter().any(|secret| secret["metadata"]["name"] == "demo-kubeconfig") {
            break values.into_iter().filter(|value| value.len() > 40).collect::<Vec<_>>();
        }
        assert!(Instant::now() < end, "no kubeconfig: {body}\n{}", lines.lock().unwrap().join("\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    drop(operator);
    assert!(!values.is_empty());
    for (_, _, sent) in &*received.lock().unwrap() {
        let sent = String::from_utf8_lossy(sent);
        assert!(values.iter().all(|value| !sent.contains(value)), "a Secret was sent");
        // A watch lasts for as long as the operator; its own requests to the collector are none of it.
        assert!(!sent.contains("/v1/traces"), "{sent}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_at_the_start() {
    let missing = "/nowhere/ca.crt";
    for (endpoint, words) in [
        ("collector:4318", "as in http://collector:4318"),
        ("/v1/traces", "as in http://collector:4318"),
        ("https://collector:4318", missing),
    ] {
        let arguments = ["--otlp-endpoint", endpoint, "--otlp-certificate", missing];
        let mut operator = Command::new(env!("CARGO_BIN_EXE_capt-operator"));
        let output = operator.arg("run").args(arguments).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
