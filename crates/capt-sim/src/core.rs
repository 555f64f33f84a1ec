//! Cluster API core: adopts the provider objects, mirrors what they publish, deletes in order.
//!
//! As seen of release 1.14 with the v1beta2 contract: an owner reference without `controller`, the
//! label with the Cluster's name, latches, the endpoint copied once, the control plane deleted
//! before the infrastructure. [`Release`] says in what earlier releases differ, as their source has it.

use capt_reconcile::{
    meta::group,
    object::{Kind, ObjectKey},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::objects::Objects;

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// Releases of core that behave differently to a provider, and none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Release {
    /// Contract v1beta1; `infrastructureReady` follows the provider and is no latch.
    #[serde(rename = "v1.8")]
    V1_8,
    /// Contract v1beta1, both latches; a failure that is reported makes the Cluster `Failed`.
    #[serde(rename = "v1.10")]
    V1_10,
    /// Contract v1beta2; owner references still say `controller`.
    #[serde(rename = "v1.12")]
    V1_12,
    /// Contract v1beta2.
    #[default]
    #[serde(rename = "v1.14")]
    V1_14,
    /// No core at all: nobody adopts, publishes or deletes.
    #[serde(rename = "none")]
    Absent,
}

impl Release {
    /// Every release.
    pub const ALL: [Self; 4] = [Self::V1_8, Self::V1_10, Self::V1_12, Self::V1_14];

    /// Whether it reads and writes the fields of v1beta1.
    pub const fn is_v1beta1(self) -> bool {
        match self {
            Self::V1_8 | Self::V1_10 => true,
            Self::V1_12 | Self::V1_14 | Self::Absent => false,
        }
    }

    /// The version of Clusters in which it speaks of them.
    pub const fn api_version(self) -> &'static str {
        if self.is_v1beta1() { "cluster.x-k8s.io/v1beta1" } else { "cluster.x-k8s.io/v1beta2" }
    }

    const fn controls(self) -> bool {
        match self {
            Self::V1_8 | Self::V1_10 | Self::V1_12 => true,
            Self::V1_14 | Self::Absent => false,
        }
    }

    const fn latches_infrastructure(self) -> bool {
        match self {
            Self::V1_8 | Self::Absent => false,
            Self::V1_10 | Self::V1_12 | Self::V1_14 => true,
        }
    }
}

/// One pass of core over every Cluster; true if something was written.
pub fn step(api: &mut impl Objects, release: Release) -> bool {
    let clusters = api.keys(Kind::Cluster);
    step_those(api, clusters, release)
}

/// The Clusters that `object` at `key` concerns, if it says so: itself, or the one that it was adopted for.
pub fn concerned(key: &ObjectKey, object: &Value) -> Option<ObjectKey> {
    if key.kind == Kind::Cluster {
        return Some(key.clone());
    }
    let owners = object["metadata"]["ownerReferences"].as_array()?.iter();
    owners.filter_map(|owner| referenced(key, owner)).find(|owner| owner.kind == Kind::Cluster)
}

/// One pass of core over `clusters`, if there is a core; true if something was written.
pub fn step_those(api: &mut impl Objects, clusters: impl IntoIterator<Item = ObjectKey>, release: Release) -> bool {
    if release == Release::Absent {
        return false;
    }
    let before = api.writes();
    for cluster in clusters {
        reconcile(api, &cluster, release);
    }
    api.writes() != before
}

fn reconcile(api: &mut impl Objects, key: &ObjectKey, release: Release) {
    let Some(cluster) = api.shared(key) else { return };
    if cluster["spec"]["paused"] == true {
        return;
    }
    let infrastructure = referenced(key, &cluster["spec"]["infrastructureRef"]);
    let control_plane = referenced(key, &cluster["spec"]["controlPlaneRef"]);
    if !cluster["metadata"]["deletionTimestamp"].is_null() {
        api.edit(key, |cluster| cluster["status"]["phase"] = json!("Deleting"));
        for referenced in [control_plane, infrastructure].into_iter().flatten() {
            if api.get(&referenced).is_some() {
                api.delete(&referenced);
                return;
            }
        }
        api.edit(key, |cluster| {
            if let Some(finalizers) = cluster["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer != FINALIZER);
            }
        });
        return;
    }
    for referenced in [&infrastructure, &control_plane].into_iter().flatten() {
        adopt(api, referenced, &cluster, release);
    }
    let read = |key: &Option<ObjectKey>| key.as_ref().and_then(|key| api.shared(key)).unwrap_or_default();
    let (infrastructure, control_plane) = (read(&infrastructure), read(&control_plane));
    api.edit(key, |cluster| {
        if release.is_v1beta1() {
            mirror_v1beta1(cluster, &infrastructure, &control_plane, release);
        } else {
            mirror(cluster, &infrastructure, &control_plane);
        }
    });
}

/// The object that a reference in the one at `key` names.
fn referenced(key: &ObjectKey, reference: &Value) -> Option<ObjectKey> {
    let api_version = || reference["apiVersion"].as_str().map(group);
    let group = reference["apiGroup"].as_str().or_else(api_version)?;
    let kind = Kind::find(group, reference["kind"].as_str()?)?;
    Some(ObjectKey::new(kind, key.namespace.as_deref()?, reference["name"].as_str()?))
}

fn adopt(api: &mut impl Objects, key: &ObjectKey, cluster: &Value, release: Release) {
    let metadata = &cluster["metadata"];
    let mut reference = json!({
        "apiVersion": release.api_version(), "kind": "Cluster", "name": metadata["name"], "uid": metadata["uid"],
    });
    if release.controls() {
        reference["controller"] = json!(true);
        reference["blockOwnerDeletion"] = json!(true);
    }
    api.edit(key, |object| {
        object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = metadata["name"].clone();
        let owners = &mut object["metadata"]["ownerReferences"];
        match owners.as_array_mut() {
            Some(owners) if owners.contains(&reference) => {}
            Some(owners) => owners.push(reference),
            None => *owners = json!([reference]),
        }
    });
}

fn mirror(cluster: &mut Value, infrastructure: &Value, control_plane: &Value) {
    keep(cluster);
    for object in [infrastructure, control_plane] {
        copy_failure(&mut cluster["status"]["deprecated"]["v1beta1"], object);
    }
    if cluster["status"]["deprecated"]["v1beta1"].is_null() {
        remove(&mut cluster["status"], "deprecated");
    }
    let status = &mut cluster["status"]["initialization"];
    for (object, latch, own) in [
        (infrastructure, "infrastructureProvisioned", "provisioned"),
        (control_plane, "controlPlaneInitialized", "controlPlaneInitialized"),
    ] {
        if object["status"]["initialization"][own] == true {
            status[latch] = json!(true);
        }
    }
    if status.is_null() {
        remove(&mut cluster["status"], "initialization");
    }
    if control_plane["status"]["initialization"]["controlPlaneInitialized"] == true {
        copy_endpoint(cluster, control_plane);
    }
    let is_provisioned = cluster["status"]["initialization"]["infrastructureProvisioned"] == true;
    cluster["status"]["phase"] = json!(phase(cluster, is_provisioned));
}

fn mirror_v1beta1(cluster: &mut Value, infrastructure: &Value, control_plane: &Value, release: Release) {
    keep(cluster);
    for object in [infrastructure, control_plane] {
        copy_failure(&mut cluster["status"], object);
    }
    let (is_ready, was_ready) = (infrastructure["status"]["ready"] == true, &cluster["status"]["infrastructureReady"]);
    let is_provisioned = is_ready || release.latches_infrastructure() && *was_ready == true;
    cluster["status"]["infrastructureReady"] = json!(is_provisioned);
    if cluster["status"]["controlPlaneReady"] != true {
        cluster["status"]["controlPlaneReady"] = json!(control_plane["status"]["ready"] == true);
    }
    if control_plane["status"]["initialized"] == true {
        cluster["status"]["conditions"] = json!([{"type": "ControlPlaneInitialized", "status": "True"}]);
        copy_endpoint(cluster, control_plane);
    }
    let has_failed = !(cluster["status"]["failureReason"].is_null() && cluster["status"]["failureMessage"].is_null());
    cluster["status"]["phase"] = json!(if has_failed { "Failed" } else { phase(cluster, is_provisioned) });
}

fn keep(cluster: &mut Value) {
    let finalizers = &mut cluster["metadata"]["finalizers"];
    if finalizers.is_null() {
        *finalizers = json!([FINALIZER]);
    }
}

/// What a provider object reports is taken over, and never taken back.
fn copy_failure(status: &mut Value, object: &Value) {
    let text = |field: &str| object["status"][field].as_str().filter(|text| !text.is_empty());
    if let Some(reason) = text("failureReason") {
        status["failureReason"] = json!(reason);
    }
    if let Some(message) = text("failureMessage") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let (api_version, kind) = (&object["apiVersion"], &object["kind"]);
        let what = [api_version, kind].map(|text| text.as_str().unwrap_or_default()).join(", Kind=");
        let message = format!("Failure detected from referenced resource {what} with name \"{name}\": {message}");
        status["failureMessage"] = json!(message);
    }
}

fn copy_endpoint(cluster: &mut Value, control_plane: &Value) {
    let endpoint = &control_plane["spec"]["controlPlaneEndpoint"];
    if cluster["spec"]["controlPlaneEndpoint"].is_null() && endpoint.is_object() {
        cluster["spec"]["controlPlaneEndpoint"] = endpoint.clone();
    }
}

fn phase(cluster: &Value, is_provisioned: bool) -> &'static str {
    let has_endpoint = cluster["spec"]["controlPlaneEndpoint"].is_object();
    if is_provisioned && has_endpoint { "Provisioned" } else { "Provisioning" }
}

/// A field that was looked at and is not there.
fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
