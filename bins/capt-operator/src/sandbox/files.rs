//! The examples that this program carries, and their way into the sandbox.

use bytes::Bytes;
use capt_sim::service::Service;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

/// Templates that clusters are made from.
pub(super) const TEMPLATES: &[&str] =
    &[include_str!("../../../../examples/vpc-template.yaml"), include_str!("../../../../examples/eks-template.yaml")];
/// One cluster.
pub(super) const CLUSTER: &[&str] = &[include_str!("../../../../examples/cluster.yaml")];

/// Applies every document, as `kubectl apply --server-side` does.
pub(super) async fn install(service: &Service, texts: &[&str]) -> Result<(), String> {
    for text in texts {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
        for document in documents {
            apply(service, &document).await?;
        }
    }
    Ok(())
}

/// Applies one document.
pub(super) async fn apply(service: &Service, document: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&document["apiVersion"]), text(&document["kind"]));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let resource = service.with(|world| world.server().resources().of_kind(group, &kind).cloned());
    let resource = resource.ok_or_else(|| format!("{kind} ({api_version}) is not served"))?;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let namespace = match (resource.namespaced, document["metadata"]["namespace"].as_str()) {
        (true, namespace) => format!("/namespaces/{}", namespace.unwrap_or("default")),
        (false, _) => String::new(),
    };
    let name = text(&document["metadata"]["name"]);
    let path =
        format!("{root}{namespace}/{}/{name}?fieldManager=sandbox&force=true&fieldValidation=Strict", resource.plural);
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Full::new(Bytes::from(document.to_string())))
        .map_err(|error| error.to_string())?;
    let response = service.respond(request).await;
    if response.status().is_success() {
        return Ok(());
    }
    let body =
        response.into_body().collect().await.map_or_else(|never| match never {}, http_body_util::Collected::to_bytes);
    Err(format!("{kind} {name}: {}", String::from_utf8_lossy(&body)))
}
