//! The connection Secret of a Workspace, as the provider keeps it.

use std::collections::BTreeMap;

use capt_api::foreign::SecretBytes;
use capt_reconcile::object::ObjectKey;
use serde_json::{Value, json};

use super::{Outputs, connection_secret, faults};
use crate::objects::Objects;

/// Writes the Secret; values are added and never removed. The Secret of somebody else stays as it is.
pub(super) fn publish(world: &mut impl Objects, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    let Some(secret) = connection_secret(key, workspace).filter(|_| !faults::loses_secret(workspace)) else { return };
    let encoded: BTreeMap<String, String> = outputs
        .secret_data()
        .into_iter()
        .map(|(name, value)| (name, SecretBytes::new(value.into_bytes()).to_base64()))
        .collect();
    if world.get(&secret).is_none() {
        let owner = json!({"apiVersion": key.kind.api_version(), "kind": "Workspace", "name": key.name,
            "uid": workspace["metadata"]["uid"], "controller": true});
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
            "metadata": {"namespace": secret.namespace, "name": secret.name, "ownerReferences": [owner]},
        });
        world.create(&secret, body);
    }
    if !encoded.is_empty() {
        world.edit(&secret, |object| {
            for (name, value) in encoded {
                object["data"][name] = json!(value);
            }
        });
    }
}

/// Takes the Secret away, as a person might.
pub(super) fn lose(world: &mut impl Objects, key: &ObjectKey, workspace: &Value) {
    if let Some(secret) = connection_secret(key, workspace).filter(|secret| world.get(secret).is_some()) {
        world.delete(&secret);
    }
}
