//! Whether an object is paused: by its own annotation, whatever its value, or by its Cluster.
//!
//! A paused object gets nothing but its Paused condition. Handing the pause on to Workspaces, so
//! that the provider stops too, will be planned from here.

use capt_api::names::PAUSED_ANNOTATION;
use kube::{Resource, ResourceExt};

use crate::{object::Kind, world::View};

/// The message of the Paused condition, in Cluster API's words, if `object` is paused.
pub fn reason<K: Resource>(view: &View<'_>, kind: Kind, object: &K, cluster: Option<&str>) -> Option<String> {
    let by_cluster = cluster.is_some_and(|name| {
        let cluster = view.cluster(&object.namespace().unwrap_or_default(), name);
        cluster.present().is_some_and(|cluster| cluster.paused)
    });
    let by_annotation = object.annotations().contains_key(PAUSED_ANNOTATION);
    let mut parts = Vec::new();
    if by_cluster {
        parts.push("Cluster spec.paused is set to true".to_owned());
    }
    if by_annotation {
        parts.push(format!("{} has the {PAUSED_ANNOTATION} annotation", kind.name()));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
