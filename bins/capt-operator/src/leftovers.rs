//! Objects of kinds that the Go implementation has and this one has not: told at the start and never touched.
//!
//! Their finalizers need the Go implementation, so whoever removes that first can never delete them. Nothing is
//! read of them but that they are there.

use std::time::Duration;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use tokio::time::timeout;

use crate::{causes::chain, rbac::LEFT_OVER};

/// Objects of a kind that nobody here takes care of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Plural name of the kind.
    pub plural: &'static str,
    /// How many there are.
    pub count: i64,
}

/// Says once which there are.
pub async fn tell(client: &Client, patience: Duration) {
    for Leftover { plural, count } in find(client, patience).await {
        tracing::warn!(
            "there are {count} {plural}: this operator does not have that kind and leaves them alone; their finalizers \
             need the Go implementation, so drain them before that one goes, see docs/migration.md"
        );
    }
}

/// Those that there are. What cannot be read is logged and counts as none: it decides nothing.
pub async fn find(client: &Client, patience: Duration) -> Vec<Leftover> {
    let mut found = Vec::new();
    for plural in LEFT_OVER {
        let resource = ApiResource {
            group: "infrastructure.cluster.x-k8s.io".to_owned(),
            version: "v1beta1".to_owned(),
            api_version: "infrastructure.cluster.x-k8s.io/v1beta1".to_owned(),
            // A list does not name it.
            kind: String::new(),
            plural: (*plural).to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        match timeout(patience, api.list_metadata(&ListParams::default().limit(1))).await {
            Ok(Ok(list)) if !list.items.is_empty() => {
                let shown = i64::try_from(list.items.len()).unwrap_or(i64::MAX);
                let count = shown.saturating_add(list.metadata.remaining_item_count.unwrap_or_default());
                found.push(Leftover { plural, count });
            }
            Ok(Ok(_)) => {}
            // Nobody installed that kind.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {}
            Ok(Err(error)) => tracing::debug!(plural, error = chain(&error), "cannot see whether there are any"),
            Err(_) => tracing::debug!(plural, "cannot see whether there are any: no answer"),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::client::Body;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_is_there_is_counted_and_a_kind_that_nobody_installed_is_none() {
        let service = tower::service_fn(|request: http::Request<Body>| async move {
            assert_eq!(request.method(), http::Method::GET, "they are left alone");
            let items = |count: usize| -> Vec<_> {
                (0..count)
                    .map(|number| json!({"metadata": {"name": format!("m{number}"), "namespace": "ns"}}))
                    .collect()
            };
            let (code, body) = match request.uri().path().rsplit('/').next().unwrap_or_default() {
                "captmachines" => (200, json!({"metadata": {"remainingItemCount": 4}, "items": items(1)})),
                "captmachinesets" => (200, json!({"metadata": {}, "items": items(0)})),
                "captmachinedeployments" => (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden"})),
                _ => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
            };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
        });
        let found = find(&Client::new(service, "default"), Duration::from_secs(1)).await;
        assert_eq!(found, [Leftover { plural: "captmachines", count: 5 }]);
    }
}
