//! Cluster API core: adopts the provider objects, mirrors what they publish, deletes in order.
//!
//! As seen of release 1.14 with the v1beta2 contract: an owner reference without `controller`, the
//! label with the Cluster's name, latches, the endpoint copied once, the control plane deleted
//! before the infrastructure.

use capt_reconcile::object::{Kind, ObjectKey};
use serde_json::{Value, json};

use crate::objects::Objects;

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// One pass of core over every Cluster; true if something was written.
pub fn step(api: &mut impl Objects) -> bool {
    let clusters = api.keys(Kind::Cluster);
    let before = api.writes();
    for cluster in clusters {
        reconcile(api, &cluster);
    }
    api.writes() != before
}

fn reconcile(api: &mut impl Objects, key: &ObjectKey) {
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
        adopt(api, referenced, &cluster);
    }
    let read = |key: &Option<ObjectKey>| key.as_ref().and_then(|key| api.shared(key)).unwrap_or_default();
    let (infrastructure, control_plane) = (read(&infrastructure), read(&control_plane));
    api.edit(key, |cluster| mirror(cluster, &infrastructure, &control_plane));
}

fn referenced(cluster: &ObjectKey, reference: &Value) -> Option<ObjectKey> {
    let kind = Kind::find(reference["apiGroup"].as_str()?, reference["kind"].as_str()?)?;
    Some(ObjectKey::new(kind, cluster.namespace.as_deref()?, reference["name"].as_str()?))
}

fn adopt(api: &mut impl Objects, key: &ObjectKey, cluster: &Value) {
    let metadata = &cluster["metadata"];
    let reference = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": metadata["name"], "uid": metadata["uid"]});
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
    let finalizers = &mut cluster["metadata"]["finalizers"];
    if finalizers.is_null() {
        *finalizers = json!([FINALIZER]);
    }
    if infrastructure["status"]["initialization"]["provisioned"] == true {
        cluster["status"]["initialization"]["infrastructureProvisioned"] = json!(true);
    }
    if control_plane["status"]["initialization"]["controlPlaneInitialized"] == true {
        cluster["status"]["initialization"]["controlPlaneInitialized"] = json!(true);
        let endpoint = &control_plane["spec"]["controlPlaneEndpoint"];
        if cluster["spec"]["controlPlaneEndpoint"].is_null() && endpoint.is_object() {
            cluster["spec"]["controlPlaneEndpoint"] = endpoint.clone();
        }
    }
    let is_provisioned = cluster["status"]["initialization"]["infrastructureProvisioned"] == true
        && cluster["spec"]["controlPlaneEndpoint"].is_object();
    cluster["status"]["phase"] = json!(if is_provisioned { "Provisioned" } else { "Provisioning" });
}
