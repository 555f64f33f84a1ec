//! The model as one of the two servers.

use capt_sim::apiserver::{self, ApiServer};
use capt_status::Time;
use serde_json::{Value, json};

use crate::answers::{Answer, Request};

pub(crate) struct Model {
    server: ApiServer,
    now: Time,
}

impl Model {
    /// With our CRDs and `namespace` in it.
    pub(crate) fn new(namespace: &str) -> Self {
        let mut model = Self { server: ApiServer::default(), now: Time::from_unix(1_800_000_000) };
        for crd in capt_api::crds::all() {
            model.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", serde_json::to_value(&crd).unwrap());
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        model.make("/api/v1/namespaces", namespace);
        model
    }

    fn make(&mut self, path: &str, object: Value) {
        let request = Request {
            method: http::Method::POST,
            target: path.to_owned(),
            content_type: "application/json",
            body: Some(object),
        };
        let answer = self.answer(&request);
        assert_eq!(answer.code, 201, "{answer:?}");
    }

    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        let Request { method, target, content_type, body } = request;
        let method = apiserver::request::Method::parse(method.as_str()).unwrap();
        let body = body.as_ref().map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = apiserver::request::Request {
            content_type: (*content_type).to_owned(),
            accept: "application/json".to_owned(),
            user_agent: "conformance/1".to_owned(),
            ..apiserver::request::Request::new(method, target, body)
        };
        match self.server.handle(&request, self.now) {
            apiserver::Answer::Body { code, body, content_type: _, warnings: _ } => Answer { code, body },
            apiserver::Answer::Watch(_) => panic!("nobody watches"),
        }
    }
}
