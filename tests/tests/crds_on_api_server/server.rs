//! A few requests as JSON, so that nothing between the test and the API server drops a field.

use std::time::Duration;

use capt_stack::{Stack, eventually};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::{Value, json};

/// An API server as one test sees it: objects go to the test's namespace.
pub(crate) struct Server {
    client: Client,
    namespace: String,
}

/// What the API server said instead of yes.
pub(crate) type Refusal = String;

impl Server {
    /// `stack` with `crds`, and a namespace for the test.
    pub(crate) async fn new(stack: &Stack, namespace: &str, crds: &[CustomResourceDefinition]) -> Self {
        for crd in crds {
            stack.apply(&serde_json::to_string(crd).unwrap()).await.unwrap();
        }
        stack
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).to_string())
            .await
            .unwrap();
        Self { client: stack.admin_client().await.unwrap(), namespace: namespace.to_owned() }
    }

    /// The same API server, another namespace.
    pub(crate) async fn in_namespace(&self, stack: &Stack, namespace: &str) -> Self {
        let Self { client: _, namespace: _ } = self;
        Self::new(stack, namespace, &[]).await
    }

    /// `object` in the test's namespace.
    pub(crate) fn placed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.namespace.clone().into();
        object
    }

    /// Creates; a field that the CRD does not know is an error, not a silent loss.
    pub(crate) async fn create(&self, object: &Value) -> Result<Value, Refusal> {
        let object = self.placed(object);
        let url = format!("{}?fieldValidation=Strict", self.collection(&object));
        self.send(Method::POST, &url, "application/json", Some(&object)).await
    }

    /// As [`Server::create`], but nothing is stored.
    pub(crate) async fn dry_run(&self, object: &Value) -> Result<Value, Refusal> {
        let object = self.placed(object);
        let url = format!("{}?fieldValidation=Strict&dryRun=All", self.collection(&object));
        self.send(Method::POST, &url, "application/json", Some(&object)).await
    }

    /// Reads.
    pub(crate) async fn get(&self, object: &Value) -> Result<Value, Refusal> {
        self.send(Method::GET, &self.url(object), "application/json", None).await
    }

    /// Replaces the spec.
    pub(crate) async fn replace_spec(&self, object: &Value, spec: &Value) -> Result<Value, Refusal> {
        let mut stored = self.get(object).await?;
        stored["spec"] = spec.clone();
        let url = format!("{}?fieldValidation=Strict", self.url(object));
        self.send(Method::PUT, &url, "application/json", Some(&stored)).await
    }

    /// Merges a patch.
    pub(crate) async fn merge(&self, object: &Value, patch: &Value) -> Result<Value, Refusal> {
        self.send(Method::PATCH, &self.url(object), "application/merge-patch+json", Some(patch)).await
    }

    /// Replaces the status.
    pub(crate) async fn set_status(&self, object: &Value, status: &Value) -> Result<Value, Refusal> {
        let mut stored = self.get(object).await?;
        stored["status"] = status.clone();
        let url = format!("{}/status?fieldValidation=Strict", self.url(object));
        self.send(Method::PUT, &url, "application/json", Some(&stored)).await
    }

    /// Applies a status as a controller does: server-side, with its field manager and force.
    pub(crate) async fn apply_status(&self, object: &Value, status: &Value, manager: &str) -> Result<Value, Refusal> {
        let body = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {"name": object["metadata"]["name"], "namespace": self.namespace},
            "status": status,
        });
        let url = format!("{}/status?fieldManager={manager}&force=true&fieldValidation=Strict", self.url(object));
        self.send(Method::PATCH, &url, "application/apply-patch+yaml", Some(&body)).await
    }

    /// The table that `kubectl get` prints.
    pub(crate) async fn table(&self, object: &Value) -> Result<Value, Refusal> {
        let request = Request::get(self.url(object)).header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        self.client.request(request.body(Vec::new()).unwrap()).await.map_err(refusal)
    }

    /// Waits until the API server judges `object` as `accepted` says: a changed CRD counts a moment
    /// after it was written.
    pub(crate) async fn settles(&self, object: &Value, accepted: bool) {
        eventually("use of the changed CRD", Duration::from_secs(30), || async {
            let outcome = self.dry_run(object).await;
            if outcome.is_ok() == accepted { Ok(()) } else { Err(format!("{outcome:?}")) }
        })
        .await
        .unwrap();
    }

    async fn send(&self, method: Method, url: &str, content: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = Request::builder().method(method).uri(url).header("Content-Type", content).body(body).unwrap();
        self.client.request(request).await.map_err(refusal)
    }

    fn collection(&self, object: &Value) -> String {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let plural = match kind {
            "WorkspaceTemplateApply" => "workspacetemplateapplies".to_owned(),
            other => format!("{}s", other.to_lowercase()),
        };
        format!("/apis/{version}/namespaces/{}/{plural}", self.namespace)
    }

    fn url(&self, object: &Value) -> String {
        format!("{}/{}", self.collection(object), object["metadata"]["name"].as_str().unwrap())
    }
}

fn refusal(error: kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
