//! Manifests into the API server: YAML in, server-side apply out, no kubectl.
//!
//! CRDs and namespaces go first and at the same time, the rest in the order of the documents. Nothing
//! here knows what the objects mean.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::wait::{self, eventually};

/// The field manager of everything that this crate applies.
const MANAGER: &str = "capt-stack";
/// Until a new CRD is served; two seconds are usual, a busy machine takes longer.
const CRD_LIMIT: Duration = Duration::from_mins(1);

/// Why manifests could not be read or applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A manifest file could not be read.
    #[error("cannot read the manifest {path}: {source}; run `just stack` again if it is missing")]
    Read {
        /// The file or directory.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A document is not YAML.
    #[error("a manifest is not valid YAML: {0}")]
    Yaml(String),
    /// A document is not a Kubernetes object.
    #[error("a manifest is no Kubernetes object ({0}): it needs apiVersion, kind and metadata.name")]
    NotAnObject(String),
    /// The API server refused an object.
    #[error("cannot apply {object}: {source}")]
    Refused {
        /// Kind and name.
        object: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// A kind was not served in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// The documents of a YAML text; empty ones are skipped.
pub(crate) fn documents(yaml: &str) -> Result<Vec<Value>, Error> {
    // The limits are there against hostile input; Cluster API's CRDs exceed some of them.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: usize::MAX,
            max_events: usize::MAX,
        },
    };
    serde_saphyr::from_multiple_with_options(yaml, options).map_err(|error| Error::Yaml(error.to_string()))
}

/// The documents of a file, or of every `.yaml` file of a directory, in the order of their names.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>, Error> {
    let fail = |source| Error::Read { path: path.display().to_string(), source };
    if !path.is_dir() {
        return documents(&std::fs::read_to_string(path).map_err(fail)?);
    }
    let mut files = std::fs::read_dir(path)
        .map_err(fail)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(fail)?;
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        all.extend(read(&file)?);
    }
    Ok(all)
}

/// Applies `documents` and returns the objects as they were stored, in the same order.
pub(crate) async fn apply(client: &Client, documents: Vec<Value>) -> Result<Vec<DynamicObject>, Error> {
    let objects = documents
        .into_iter()
        .map(|document| {
            serde_json::from_value::<DynamicObject>(document).map_err(|error| Error::NotAnObject(error.to_string()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut kinds = HashMap::new();
    for object in &objects {
        let kind = kind_of(object)?;
        if is_first(&kind) && !kinds.contains_key(&kind) {
            let served = served(client, &kind).await?;
            kinds.insert(kind, served);
        }
    }
    let first = objects.iter().map(|object| {
        let kinds = &kinds;
        async move {
            match kinds.get(&kind_of(object)?) {
                Some(kind) => store(client, object, kind).await.map(Some),
                None => Ok(None),
            }
        }
    });
    let first = try_join_all(first).await?;
    try_join_all(objects.iter().filter(|object| is_crd(object)).map(|crd| established(client, crd))).await?;

    let mut stored = Vec::with_capacity(objects.len());
    for (object, done) in objects.iter().zip(first) {
        if let Some(done) = done {
            stored.push(done);
            continue;
        }
        let kind = kind_of(object)?;
        if !kinds.contains_key(&kind) {
            let served = served(client, &kind).await?;
            kinds.insert(kind.clone(), served);
        }
        if let Some(kind) = kinds.get(&kind) {
            stored.push(store(client, object, kind).await?);
        }
    }
    Ok(stored)
}

/// Kinds that others depend on.
fn is_first(kind: &GroupVersionKind) -> bool {
    kind.kind == "CustomResourceDefinition" || kind.kind == "Namespace"
}

fn is_crd(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "CustomResourceDefinition")
}

fn kind_of(object: &DynamicObject) -> Result<GroupVersionKind, Error> {
    let types = object.types.as_ref().ok_or_else(|| Error::NotAnObject(format!("named {}", object.name_any())))?;
    GroupVersionKind::try_from(types).map_err(|error| Error::NotAnObject(error.to_string()))
}

/// How the API server serves a kind; a kind whose CRD is new appears in discovery a moment later.
async fn served(client: &Client, kind: &GroupVersionKind) -> Result<(ApiResource, ApiCapabilities), Error> {
    let what = format!("serving of {} {}", kind.api_version(), kind.kind);
    let found =
        eventually(&what, CRD_LIMIT, || async { pinned_kind(client, kind).await.map_err(|error| error.to_string()) });
    Ok(found.await?)
}

async fn store(
    client: &Client,
    object: &DynamicObject,
    (resource, capabilities): &(ApiResource, ApiCapabilities),
) -> Result<DynamicObject, Error> {
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
            Api::namespaced_with(client.clone(), &namespace, resource)
        }
    };
    let name = object.name_any();
    api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))
        .await
        .map_err(|source| Error::Refused { object: format!("{} {name}", resource.kind), source: Box::new(source) })
}

async fn established(client: &Client, crd: &DynamicObject) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd.name_any();
    let what = format!("establishment of CRD {name}");
    let look = || async {
        let crd = api.get(&name).await.map_err(|error| error.to_string())?;
        let conditions = crd.status.and_then(|status| status.conditions);
        conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
            .then_some(())
            .ok_or_else(|| format!("{conditions:?}"))
    };
    Ok(eventually(&what, CRD_LIMIT, look).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_documents_are_skipped() {
        let found = documents("---\na: 1\n---\n# nothing\n---\nb: [2, x]\n").unwrap();
        assert_eq!(found, [serde_json::json!({"a": 1}), serde_json::json!({"b": [2, "x"]})]);
    }

    #[test]
    fn broken_yaml_is_an_error_with_its_place() {
        let error = documents("a: [1\n").unwrap_err().to_string();
        assert!(error.contains("line"), "{error}");
    }
}
