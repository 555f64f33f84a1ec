//! The CRDs of the modelled world: CAPT's own, and small ones of Cluster and Workspace.
//!
//! Those of others are written for this project and say no more than CAPT and a person looking at it
//! need; the real ones are used by the tests against the real components.

use capt_status::Time;
use serde_json::Value;

use crate::apiserver::{ApiServer, status::Status};

const FOREIGN: [&str; 3] = [
    include_str!("../crds/cluster.yaml"),
    include_str!("../crds/workspace-cluster.yaml"),
    include_str!("../crds/workspace-namespaced.yaml"),
];

/// Why the world cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CRD of this crate is not YAML.
    #[error("a CRD of the modelled world is not YAML: {0}")]
    Yaml(String),
    /// A CRD cannot be written as JSON.
    #[error("a CRD cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The API server refuses one.
    #[error("the modelled API server refuses a CRD: {}", .0.message)]
    Refused(Status),
}

/// Every CRD of the world.
pub fn all() -> Result<Vec<Value>, Error> {
    let foreign =
        FOREIGN.iter().map(|text| serde_saphyr::from_str(text).map_err(|error| Error::Yaml(error.to_string())));
    let ours = capt_api::crds::all().into_iter().map(|crd| serde_json::to_value(crd).map_err(Error::from));
    foreign.chain(ours).collect()
}

/// An API server that serves them.
pub fn server(now: Time) -> Result<ApiServer, Error> {
    let mut server = ApiServer::default();
    for crd in all()? {
        server.make("apiextensions.k8s.io", "customresourcedefinitions", "", crd, now).map_err(Error::Refused)?;
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_it_is() {
        for crd in all().unwrap() {
            assert_eq!(crd["apiVersion"], "apiextensions.k8s.io/v1", "{}", crd["metadata"]["name"]);
            assert_eq!(crd["kind"], "CustomResourceDefinition");
        }
    }

    #[test]
    fn the_world_serves_every_kind_that_a_pass_reads() {
        let server = server(Time::from_unix(0)).unwrap();
        for kind in capt_reconcile::object::Kind::ALL {
            let resource = server.resources().get(kind.group(), kind.plural()).unwrap();
            assert!(resource.version(kind.version()).is_some(), "{kind:?}");
            assert_eq!((resource.namespaced, resource.kind.as_str()), (kind.is_namespaced(), kind.name()));
        }
    }
}
