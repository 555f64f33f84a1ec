//! What Cluster API core computes for a Cluster, as a function of the Cluster and its two provider objects.
//!
//! Source: `core/reconcilers/cluster` of Cluster API 1.14 for v1beta2, release 1.10 for v1beta1. Conditions that
//! speak of Machines or of core's own connection are not computed: there is nothing to compute them from.
//! `status.observedGeneration` is never set, since it is the sign by which core is known.

mod conditions;
mod v1beta1;

use capt_api::{
    CAPTCluster, CAPTControlPlane, FailureDomain,
    common::ApiEndpoint,
    foreign::{ClusterVersion, ClusterView},
    names::PAUSED_ANNOTATION,
};
use capt_status::{
    Time,
    condition::{Verdict, reasons, types},
};
use kube::Resource;
use serde_json::{Map, Value, json};

use crate::object::Kind;

/// Why a stored status cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not what the CRD allows.
    #[error("the stored status does not parse, so nothing is written over it: {0}")]
    Status(#[from] serde_json::Error),
}

/// A provider object as core sees it.
#[derive(Debug)]
pub enum Provider<'a, T> {
    /// The Cluster names none.
    Unreferenced,
    /// It is not there.
    Missing,
    /// It is there.
    There(&'a T),
}

impl<T> Clone for Provider<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

// A derive would ask the object to be Copy too.
impl<T> Copy for Provider<'_, T> {}

impl<'a, T: Resource> Provider<'a, T> {
    /// The object while it is not being deleted; core takes over nothing from one that is.
    fn alive(self) -> Option<&'a T> {
        match self {
            Self::There(object) if object.meta().deletion_timestamp.is_none() => Some(object),
            Self::There(_) | Self::Unreferenced | Self::Missing => None,
        }
    }

    const fn there(self) -> Option<&'a T> {
        match self {
            Self::There(object) => Some(object),
            Self::Unreferenced | Self::Missing => None,
        }
    }
}

/// What core reads.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Cluster.
    pub cluster: &'a ClusterView,
    /// Its infrastructure.
    pub infrastructure: Provider<'a, CAPTCluster>,
    /// Its control plane.
    pub control_plane: Provider<'a, CAPTControlPlane>,
}

impl Input<'_> {
    /// `status.initialization.infrastructureProvisioned`; a latch.
    pub fn provisioned(&self) -> bool {
        let published = self.infrastructure.alive().and_then(|object| object.status.as_ref()).is_some_and(|status| {
            status.ready || status.initialization.as_ref().and_then(|done| done.provisioned) == Some(true)
        });
        let needs_none = match self.infrastructure {
            Provider::Unreferenced => !self.cluster.meta.deleting,
            Provider::Missing | Provider::There(_) => false,
        };
        self.cluster.infrastructure_provisioned || published || needs_none
    }

    /// `status.initialization.controlPlaneInitialized`; a latch.
    pub fn initialized(&self) -> bool {
        let published = self.control_plane.alive().and_then(|object| object.status.as_ref()).is_some_and(|status| {
            status.initialized
                || status.initialization.as_ref().and_then(|done| done.control_plane_initialized) == Some(true)
        });
        self.cluster.control_plane_initialized || published
    }

    /// The endpoint to copy into the Cluster's spec: only where it has none, and only of an initialized control
    /// plane.
    pub fn endpoint(&self) -> Option<&ApiEndpoint> {
        if self.cluster.endpoint.is_some() || !self.initialized() || self.cluster.meta.deleting {
            return None;
        }
        self.control_plane.alive()?.spec.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_set())
    }

    /// `status.phase`.
    pub fn phase(&self) -> &'static str {
        let references = self.cluster.infrastructure_ref.is_some() || self.cluster.control_plane_ref.is_some();
        if self.cluster.meta.deleting {
            "Deleting"
        } else if self.cluster.version == ClusterVersion::V1Beta1 && self.failure() != (None, None) {
            "Failed"
        } else if self.provisioned() && (self.cluster.endpoint.is_some() || self.endpoint().is_some()) {
            "Provisioned"
        } else if references {
            "Provisioning"
        } else {
            "Pending"
        }
    }

    /// Failure reason and text: the control plane's go before the infrastructure's.
    pub fn failure(&self) -> (Option<String>, Option<String>) {
        let of_infrastructure = self.infrastructure.there().and_then(|object| object.status.as_ref()).map(|status| {
            (status.failure_reason.clone(), status.failure_message.as_ref(), self.infrastructure_prefix())
        });
        let of_control_plane = self.control_plane.there().and_then(|object| object.status.as_ref()).map(|status| {
            (status.failure_reason.clone(), status.failure_message.as_ref(), self.control_plane_prefix())
        });
        let (mut reason, mut text) = (None, None);
        for (own_reason, own_text, prefix) in [of_infrastructure, of_control_plane].into_iter().flatten() {
            reason = own_reason.filter(|reason| !reason.is_empty()).or(reason);
            text = own_text.filter(|text| !text.is_empty()).map(|own| format!("{prefix}{own}")).or(text);
        }
        (reason, text)
    }

    /// What core puts before a failure text of the infrastructure.
    pub fn infrastructure_prefix(&self) -> String {
        prefix(Kind::CaptCluster, self.cluster.infrastructure_ref.as_ref().map_or("", |found| &found.name))
    }

    /// What core puts before a failure text of the control plane.
    pub fn control_plane_prefix(&self) -> String {
        prefix(Kind::CaptControlPlane, self.cluster.control_plane_ref.as_ref().map_or("", |found| &found.name))
    }

    fn failure_domains(&self) -> Option<&[FailureDomain]> {
        let status = self.infrastructure.alive()?.status.as_ref();
        self.provisioned().then(|| status.map_or(&[][..], |status| &status.failure_domains))
    }

    /// The status with all that core would have set, starting from the stored one.
    pub fn status(&self, stored: &Value, now: Time) -> Result<Value, Error> {
        let mut status = stored.as_object().cloned().unwrap_or_default();
        status.insert("phase".to_owned(), json!(self.phase()));
        let (reason, text) = self.failure();
        let failure = [("failureReason", reason), ("failureMessage", text)];
        match self.cluster.version {
            ClusterVersion::V1Beta2 => {
                for (field, is_set) in
                    [("infrastructureProvisioned", self.provisioned()), ("controlPlaneInitialized", self.initialized())]
                {
                    if is_set {
                        status.entry("initialization").or_insert_with(|| json!({}))[field] = json!(true);
                    }
                }
                if let Some(domains) = self.failure_domains() {
                    set_or_remove(&mut status, "failureDomains", (!domains.is_empty()).then(|| json!(domains)));
                }
                if failure.iter().any(|(_, value)| value.is_some()) || status.contains_key("deprecated") {
                    let deprecated = status.entry("deprecated").or_insert_with(|| json!({}));
                    if !deprecated["v1beta1"].is_object() {
                        deprecated["v1beta1"] = json!({});
                    }
                    if let Some(fields) = deprecated["v1beta1"].as_object_mut() {
                        for (field, value) in failure {
                            set_or_remove(fields, field, value.map(Value::from));
                        }
                    }
                }
                self.write_conditions(&mut status, now)?;
            }
            ClusterVersion::V1Beta1 => {
                if self.provisioned() {
                    status.insert("infrastructureReady".to_owned(), json!(true));
                }
                let was_ready = status.get("controlPlaneReady") == Some(&json!(true));
                let is_ready = self.control_plane.alive().and_then(|object| object.status.as_ref());
                if was_ready || is_ready.is_some_and(|status| status.ready) {
                    status.insert("controlPlaneReady".to_owned(), json!(true));
                }
                for (field, value) in failure {
                    set_or_remove(&mut status, field, value.map(Value::from));
                }
                self.write_v1beta1_conditions(&mut status, now)?;
            }
        }
        Ok(Value::Object(status))
    }

    /// The status of a paused Cluster: core sets the condition Paused and nothing else.
    pub fn paused_status(&self, stored: &Value, paused: &str, now: Time) -> Result<Value, Error> {
        let mut status = stored.as_object().cloned().unwrap_or_default();
        let verdict = Verdict::new(types::PAUSED, true, reasons::PAUSED, paused);
        match self.cluster.version {
            ClusterVersion::V1Beta2 => {
                conditions::merge(&mut status, vec![verdict], self.cluster.meta.generation, now)?;
            }
            // There is no such condition in v1beta1.
            ClusterVersion::V1Beta1 => {}
        }
        Ok(Value::Object(status))
    }
}

/// Why a Cluster is paused, in core's words, if it is.
pub fn paused(cluster: &ClusterView) -> Option<String> {
    let mut parts = Vec::new();
    if cluster.paused {
        parts.push("Cluster spec.paused is set to true".to_owned());
    }
    if cluster.meta.annotations.contains_key(PAUSED_ANNOTATION) {
        parts.push(format!("Cluster has the {PAUSED_ANNOTATION} annotation"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// As Go prints a GroupVersionKind.
fn prefix(kind: Kind, name: &str) -> String {
    format!(
        "Failure detected from referenced resource {}, Kind={} with name \"{name}\": ",
        kind.api_version(),
        kind.name()
    )
}

fn set_or_remove(fields: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(field.to_owned(), value);
        }
        None => {
            fields.remove(field);
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(list: Option<&Value>) -> Result<Vec<T>, Error> {
    Ok(match list {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => serde_json::from_value(list.clone())?,
    })
}

#[cfg(test)]
mod tests;
