//! Whether an object is paused: by its own annotation, whatever its value, or by its Cluster.
//!
//! A paused object gets nothing but its Paused condition. Its applies hand the pause on to their
//! Workspaces, so that the provider stops too (`workspace_template_apply::pausing`).

use capt_api::names::PAUSED_ANNOTATION;
use kube::{Resource, ResourceExt};

use crate::{object::Kind, world::View};

/// Whether something is paused, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// It is not.
    No,
    /// It is; the message of the Paused condition.
    Yes(String),
    /// Nobody knows yet, so nothing may be written.
    Unknown,
}

/// The message of the Paused condition, in Cluster API's words, if `object` is paused.
pub fn reason<K: Resource>(view: &View<'_>, kind: Kind, object: &K, cluster: Option<&str>) -> Option<String> {
    let by_cluster = cluster.is_some_and(|name| {
        let cluster = view.cluster(&object.namespace().unwrap_or_default(), name);
        cluster.present().is_some_and(|cluster| cluster.paused)
    });
    let parts = parts(kind, object, by_cluster);
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What pauses `object`, in Cluster API's words.
pub(crate) fn parts<K: Resource>(kind: Kind, object: &K, by_cluster: bool) -> Vec<String> {
    let mut parts = Vec::new();
    if by_cluster {
        parts.push("Cluster spec.paused is set to true".to_owned());
    }
    if object.annotations().contains_key(PAUSED_ANNOTATION) {
        parts.push(format!("{} has the {PAUSED_ANNOTATION} annotation", kind.name()));
    }
    parts
}
