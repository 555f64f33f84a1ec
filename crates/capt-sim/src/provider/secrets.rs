//! The connection Secret of a Workspace, as the provider keeps it.

use std::collections::BTreeMap;

use capt_api::foreign::SecretBytes;
use capt_reconcile::object::ObjectKey;
use serde_json::{Value, json};

use super::{Outputs, connection_secret, faults};
use crate::objects::Objects;

const TYPE: &str = "connection.crossplane.io/v1alpha1";

/// Why the Secret may not be written: another Workspace controls it, or it is no connection Secret.
pub(super) fn refusal(world: &impl Objects, key: &ObjectKey, workspace: &Value) -> Option<String> {
    let secret = world.get(&connection_secret(key, workspace)?)?;
    let mut owners = secret["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let uid = &workspace["metadata"]["uid"];
    let why = match owners.find(|owner| owner["controller"] == true) {
        Some(controller) if controller["uid"] == *uid => return None,
        Some(_) => format!("existing secret is not controlled by UID {uid}"),
        None if secret["type"] == TYPE => return None,
        None => format!("refusing to modify uncontrolled secret of type {}", secret["type"]),
    };
    Some(format!("cannot create or update connection secret: {why}"))
}

/// Writes the Secret, which is not refused; values are added and never removed.
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
            "apiVersion": "v1", "kind": "Secret", "type": TYPE,
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
