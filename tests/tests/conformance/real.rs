//! A real API server as the other one.

use std::time::Duration;

use capt_stack::{Stack, eventually};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    answers::{Answer, Request},
    parts::Kind,
};

pub(crate) struct Real {
    client: Client,
}

impl Real {
    /// With our CRDs.
    pub(crate) async fn new(stack: &Stack) -> Self {
        for crd in capt_api::crds::all() {
            stack.apply(&serde_json::to_string(&crd).unwrap()).await.unwrap();
        }
        let real = Self { client: stack.admin_client().await.unwrap() };
        for kind in Kind::ALL {
            let target = kind.path("default");
            let request = Request { method: http::Method::GET, target, content_type: "", body: None };
            // The storage of a new CRD takes a moment.
            eventually("the API server to serve the kind", Duration::from_mins(1), || async {
                let answer = real.answer(&request).await;
                if answer.code == 200 { Ok(()) } else { Err(format!("{answer:?}")) }
            })
            .await
            .unwrap();
        }
        real
    }

    pub(crate) async fn make_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let request = Request {
            method: http::Method::POST,
            target: "/api/v1/namespaces".to_owned(),
            content_type: "application/json",
            body: Some(namespace),
        };
        let answer = self.answer(&request).await;
        assert_eq!(answer.code, 201, "{answer:?}");
    }

    pub(crate) async fn answer(&self, request: &Request) -> Answer {
        let Request { method, target, content_type, body } = request;
        let body = body.as_ref().map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let mut builder = http::Request::builder()
            .method(method.clone())
            .uri(target)
            .header("Accept", "application/json")
            .header("User-Agent", "conformance/1");
        if !content_type.is_empty() {
            builder = builder.header("Content-Type", *content_type);
        }
        let response = self.client.send(builder.body(body.into()).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes)));
        Answer { code, body }
    }
}
