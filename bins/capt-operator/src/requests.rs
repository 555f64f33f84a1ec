//! Translates a request of the executor into HTTP and the answer back.
//!
//! Every request has a timeout and is sent once: whether to try again is decided by the next pass,
//! from what it observes then. Nothing here looks at what a request means.

use std::{sync::Arc, time::Duration};

use capt_api::names;
use capt_reconcile::{
    executor::{Refusal, Request, Response},
    object::{Kind, ObjectKey},
};
use http::{Method, header};
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{causes::chain, lease::gate::Gate};

/// What may stand in a path or a query as it is (RFC 3986, unreserved).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a request cannot be built.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("`{0}` is no name of an object: correct the name in the spec it comes from")]
    Name(String),
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The field manager of writes by the pass over an object of `kind`.
pub const fn manager(kind: Kind) -> &'static str {
    match kind {
        Kind::CaptCluster => names::CAPTCLUSTER_MANAGER,
        Kind::CaptControlPlane => names::CONTROL_PLANE_MANAGER,
        Kind::Apply => names::APPLY_MANAGER,
        Kind::Cluster => names::CLUSTER_STATUS_MANAGER,
        // These have no passes.
        Kind::Template | Kind::Workspace(_) | Kind::Secret => "capt-operator",
    }
}

/// Sends requests.
#[derive(Clone)]
pub struct Requests {
    client: Client,
    timeout: Duration,
    cluster_version: &'static str,
    gate: Gate,
}

impl Requests {
    /// Requests through `client`, each answered within `timeout` or given up; a Cluster is read in
    /// `cluster_version`. Writes start only while `gate` is open.
    pub const fn new(client: Client, timeout: Duration, cluster_version: &'static str, gate: Gate) -> Self {
        Self { client, timeout, cluster_version, gate }
    }

    /// Sends `request` for a pass whose field manager is `manager`.
    pub async fn send(&self, manager: &str, request: &Request) -> Response {
        let http = match build(request, manager, self.cluster_version) {
            Ok(http) => http,
            Err(error) => return refused_by_us(&error),
        };
        // Last, right before it is sent. What is still late after this fails its precondition.
        if request.is_write() && !self.gate.is_open() {
            return Response::NoAnswer("not sent: this operator does not hold the lease any more".to_owned());
        }
        // Not `Client::request`: that logs a body that it cannot parse, secrets included.
        match timeout(self.timeout, self.client.request_text(http)).await {
            Err(_) => Response::NoAnswer(format!("no answer within {:?}", self.timeout)),
            Ok(Err(kube::Error::Api(status))) => {
                let kube::core::Status { code, reason, message, .. } = *status;
                Response::Refused(Refusal { code, reason, message })
            }
            Ok(Err(error)) => Response::NoAnswer(chain(&error)),
            Ok(Ok(text)) => understood(request, &text),
        }
    }
}

/// A request that the API server would refuse, with the code it would use.
fn refused_by_us(error: &Error) -> Response {
    Response::Refused(Refusal { code: 422, reason: "Invalid".to_owned(), message: error.to_string() })
}

fn understood(request: &Request, text: &str) -> Response {
    let Ok(mut body) = serde_json::from_str::<Value>(text) else {
        return Response::NoAnswer("the answer is not JSON".to_owned());
    };
    match request {
        Request::List { kind: _, selector: _ } => match body["items"].take() {
            Value::Array(items) => Response::Items(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Response::NoAnswer("the answer is not a list".to_owned())
            }
        },
        Request::Create { target: _, body: _ }
        | Request::MergePatch { target: _, body: _ }
        | Request::JsonPatch { target: _, operations: _ }
        | Request::ApplyStatus { target: _, manager: _, body: _ }
        | Request::MergeStatus { target: _, manager: _, body: _ }
        | Request::Delete { target: _, uid: _, resource_version: _ }
        | Request::Get { target: _ } => Response::Object(Arc::new(body)),
    }
}

/// The HTTP request for `request`.
fn build(request: &Request, manager: &str, cluster_version: &str) -> Result<http::Request<Vec<u8>>, Error> {
    let path = Paths { cluster_version };
    let manager = format!("fieldManager={}", encode(manager));
    let (method, uri, content_type, body) = match request {
        Request::Create { target, body } => {
            let collection = path.collection(target.kind, target.namespace.as_deref())?;
            (Method::POST, format!("{collection}?{manager}"), "application/json", Some(serde_json::to_vec(body)?))
        }
        Request::MergePatch { target, body } => {
            let uri = format!("{}?{manager}", path.object(target)?);
            (Method::PATCH, uri, "application/merge-patch+json", Some(serde_json::to_vec(body)?))
        }
        Request::JsonPatch { target, operations } => {
            let uri = format!("{}?{manager}", path.object(target)?);
            (Method::PATCH, uri, "application/json-patch+json", Some(serde_json::to_vec(operations)?))
        }
        // The manager of a status is part of the plan: it says whose fields these are.
        Request::ApplyStatus { target, manager, body } => {
            let uri = format!("{}/status?fieldManager={}&force=true", path.object(target)?, encode(manager));
            (Method::PATCH, uri, "application/apply-patch+yaml", Some(serde_json::to_vec(body)?))
        }
        Request::MergeStatus { target, manager, body } => {
            let uri = format!("{}/status?fieldManager={}", path.object(target)?, encode(manager));
            (Method::PATCH, uri, "application/merge-patch+json", Some(serde_json::to_vec(body)?))
        }
        Request::Delete { target, uid, resource_version } => {
            let mut preconditions = json!({"uid": uid});
            if let Some(version) = resource_version {
                preconditions["resourceVersion"] = json!(version);
            }
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": preconditions,
            });
            (Method::DELETE, path.object(target)?, "application/json", Some(serde_json::to_vec(&options)?))
        }
        Request::Get { target } => (Method::GET, path.object(target)?, "", None),
        Request::List { kind, selector } => {
            let collection = path.collection(*kind, None)?;
            (Method::GET, format!("{collection}?labelSelector={}", encode(selector)), "", None)
        }
    };
    let mut http = http::Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    if body.is_some() {
        http = http.header(header::CONTENT_TYPE, content_type);
    }
    Ok(http.body(body.unwrap_or_default())?)
}

/// Paths in the API.
struct Paths<'a> {
    cluster_version: &'a str,
}

impl Paths<'_> {
    fn object(&self, key: &ObjectKey) -> Result<String, Error> {
        Ok(format!("{}/{}", self.collection(key.kind, key.namespace.as_deref())?, segment(&key.name)?))
    }

    fn collection(&self, kind: Kind, namespace: Option<&str>) -> Result<String, Error> {
        let version = if kind == Kind::Cluster { self.cluster_version } else { kind.version() };
        let root = match kind.group() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        Ok(match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{}", segment(namespace)?, kind.plural()),
            None => format!("{root}/{}", kind.plural()),
        })
    }
}

/// A name as part of a path. An empty one would turn a request for one object into a request for
/// all of them, and dots would leave the collection.
fn segment(name: &str) -> Result<String, Error> {
    if matches!(name, "" | "." | "..") { Err(Error::Name(name.to_owned())) } else { Ok(encode(name)) }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc, sync::Mutex};

    use capt_api::foreign::WorkspaceApi;
    use http_body_util::BodyExt;
    use kube::client::Body;

    use super::*;
    use crate::lease::gate::boot_time;

    /// What an API server got: method, path with query, content type, body.
    type Sent = (String, String, String, Value);

    /// Sends `request` to an API server that answers `code` and `answer`.
    async fn exchange(request: Request, code: u16, answer: &str) -> (Sent, Response) {
        let sent = Arc::new(Mutex::new(None));
        let (record, answer) = (Arc::clone(&sent), answer.to_owned());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (record, answer) = (Arc::clone(&record), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let content_type =
                    parts.headers.get(header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap()).to_owned();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                *record.lock().unwrap() = Some((parts.method.to_string(), parts.uri.to_string(), content_type, body));
                let response = http::Response::builder().status(code).body(Body::from(answer.into_bytes())).unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        let requests =
            Requests::new(Client::new(service, "default"), Duration::from_secs(10), "v1beta2", Gate::open(boot_time));
        let response = requests.send("capt-apply", &request).await;
        let sent = sent.lock().unwrap().take().unwrap();
        (sent, response)
    }

    fn sent(method: &str, uri: &str, content_type: &str, body: Value) -> Sent {
        (method.to_owned(), uri.to_owned(), content_type.to_owned(), body)
    }

    fn apply() -> ObjectKey {
        ObjectKey::new(Kind::Apply, "ns", "a")
    }

    const APPLY: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/workspacetemplateapplies";

    #[tokio::test]
    async fn every_request_is_what_the_api_server_expects() {
        let workspace = ObjectKey::new(Kind::Workspace(WorkspaceApi::Cluster), "", "w");
        let body = json!({"some": "body"});
        let cases = [
            (
                Request::Create { target: workspace.clone(), body: body.clone() },
                sent(
                    "POST",
                    "/apis/tf.upbound.io/v1beta1/workspaces?fieldManager=capt-apply",
                    "application/json",
                    body.clone(),
                ),
            ),
            (
                Request::MergePatch { target: apply(), body: body.clone() },
                sent(
                    "PATCH",
                    &format!("{APPLY}/a?fieldManager=capt-apply"),
                    "application/merge-patch+json",
                    body.clone(),
                ),
            ),
            (
                Request::JsonPatch { target: apply(), operations: vec![body.clone()] },
                sent(
                    "PATCH",
                    &format!("{APPLY}/a?fieldManager=capt-apply"),
                    "application/json-patch+json",
                    json!([body]),
                ),
            ),
            (
                Request::ApplyStatus { target: apply(), manager: "capt-controlplane", body: body.clone() },
                sent(
                    "PATCH",
                    &format!("{APPLY}/a/status?fieldManager=capt-controlplane&force=true"),
                    "application/apply-patch+yaml",
                    body.clone(),
                ),
            ),
            (
                Request::Delete { target: apply(), uid: "u".into(), resource_version: None },
                sent(
                    "DELETE",
                    &format!("{APPLY}/a"),
                    "application/json",
                    json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": "u"}}),
                ),
            ),
            (
                Request::Delete { target: apply(), uid: "u".into(), resource_version: Some("7".into()) },
                sent(
                    "DELETE",
                    &format!("{APPLY}/a"),
                    "application/json",
                    json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
                        "preconditions": {"uid": "u", "resourceVersion": "7"}}),
                ),
            ),
            (
                Request::Get { target: ObjectKey::new(Kind::Secret, "ns", "s") },
                sent("GET", "/api/v1/namespaces/ns/secrets/s", "", Value::Null),
            ),
            (
                Request::Get { target: ObjectKey::new(Kind::Cluster, "ns", "c") },
                sent("GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/clusters/c", "", Value::Null),
            ),
        ];
        for (request, expected) in cases {
            let (sent, response) = exchange(request, 200, r#"{"an": "answer"}"#).await;
            assert_eq!(sent, expected);
            assert_eq!(response, Response::Object(Arc::new(json!({"an": "answer"}))));
        }
    }

    #[tokio::test]
    async fn a_list_is_selected_by_label_in_all_namespaces() {
        let kind = Kind::Workspace(WorkspaceApi::Namespaced);
        let request = Request::List { kind, selector: "capt.cluster.x-k8s.io/owner-uid=u".into() };
        let (sent, response) = exchange(request.clone(), 200, r#"{"items": [{"a": 1}]}"#).await;
        assert_eq!(
            sent.1,
            "/apis/tf.m.upbound.io/v1beta1/workspaces?labelSelector=capt.cluster.x-k8s.io%2Fowner-uid%3Du"
        );
        assert_eq!(response, Response::Items(vec![json!({"a": 1})]));
        let (_, response) = exchange(request, 200, "{}").await;
        assert_eq!(response, Response::NoAnswer("the answer is not a list".into()));
    }

    #[tokio::test]
    async fn a_refusal_keeps_code_reason_and_message() {
        let status =
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Conflict","code":409}"#;
        let (_, response) = exchange(Request::Get { target: apply() }, 409, status).await;
        let refusal = Refusal { code: 409, reason: "Conflict".into(), message: "no".into() };
        assert_eq!(response, Response::Refused(refusal));
    }

    #[tokio::test]
    async fn what_is_no_answer_is_told_as_such() {
        let (_, response) = exchange(Request::Get { target: apply() }, 200, "not json").await;
        assert_eq!(response, Response::NoAnswer("the answer is not JSON".into()));
    }

    #[tokio::test]
    async fn without_the_lease_nothing_is_written_and_everything_is_read() {
        let reached = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&reached);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            record.lock().unwrap().push(request.method().to_string());
            async { Ok::<_, Infallible>(http::Response::new(Body::from(br#"{"items": []}"#.to_vec()))) }
        });
        let gate = Gate::shut(boot_time);
        let requests = Requests::new(Client::new(service, "default"), Duration::from_secs(10), "v1beta2", gate.clone());
        let all = [
            Request::Create { target: apply(), body: json!({}) },
            Request::MergePatch { target: apply(), body: json!({}) },
            Request::JsonPatch { target: apply(), operations: vec![] },
            Request::ApplyStatus { target: apply(), manager: "capt-apply", body: json!({}) },
            Request::Delete { target: apply(), uid: "u".into(), resource_version: None },
            Request::Get { target: apply() },
            Request::List { kind: Kind::Apply, selector: String::new() },
        ];
        for request in &all {
            let response = requests.send("capt-apply", request).await;
            assert_eq!(matches!(response, Response::NoAnswer(_)), request.is_write(), "{request:?}: {response:?}");
        }
        assert_eq!(*reached.lock().unwrap(), ["GET", "GET"]);
        gate.lease(Some(Duration::MAX));
        requests.send("capt-apply", &all[0]).await;
        assert_eq!(reached.lock().unwrap().last().unwrap(), "POST");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_not_answered_is_given_up() {
        let service = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, Infallible>>()
        });
        let requests =
            Requests::new(Client::new(service, "default"), Duration::from_secs(10), "v1beta2", Gate::open(boot_time));
        let response = requests.send("capt-apply", &Request::Get { target: apply() }).await;
        assert_eq!(response, Response::NoAnswer("no answer within 10s".into()));
    }

    #[tokio::test]
    async fn a_name_leads_to_no_other_object() {
        let (sent, _) =
            exchange(Request::Get { target: ObjectKey::new(Kind::Apply, "ns", "a/../b?c") }, 200, "{}").await;
        assert_eq!(sent.1, format!("{APPLY}/a%2F..%2Fb%3Fc"));
        for name in ["", ".", ".."] {
            assert!(build(&Request::Get { target: ObjectKey::new(Kind::Apply, "ns", name) }, "m", "v1beta2").is_err());
        }
    }
}
