//! provider-terraform: takes each Workspace through the states that the real one was seen to show.
//!
//! One call of [`step`] moves each Workspace by one state: finalizer and annotations and an empty
//! connection Secret, then the apply's success (conditions without outputs, full Secret), then Ready
//! with outputs; on deletion the destroy, then the finalizer. What Terraform would put out is asked
//! of a function of the Workspace's name and variables.

use std::collections::BTreeMap;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::{Kind, ObjectKey};
use serde_json::{Value, json};

use crate::api::Api;

const FINALIZER: &str = "finalizer.managedresource.crossplane.io";
const PENDING: &str = "crossplane.io/external-create-pending";
const SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
const FAILED: &str = "crossplane.io/external-create-failed";
const PAUSED: &str = "crossplane.io/paused";

/// What Terraform makes of a Workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outputs {
    /// How it ends.
    pub result: Ending,
    /// Shown in the status and in the connection Secret.
    pub plain: BTreeMap<String, Value>,
    /// In the connection Secret alone.
    pub sensitive: BTreeMap<String, String>,
}

/// How a run of Terraform ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Ending {
    /// With outputs.
    #[default]
    Success,
    /// With this text on standard error, each time it is tried.
    Failure(String),
    /// Not at all.
    Hang,
}

/// Moves every Workspace by one state; true if something was written.
pub fn step(api: &mut Api, terraform: &dyn Fn(&Value) -> Outputs) -> bool {
    let workspaces: Vec<ObjectKey> = api.keys().filter(|key| matches!(key.kind, Kind::Workspace(_))).cloned().collect();
    let before = api.changes(0).len();
    for key in workspaces {
        if let Some(workspace) = api.get(&key).cloned() {
            reconcile(api, &key, &workspace, terraform);
        }
    }
    api.changes(0).len() != before
}

fn reconcile(api: &mut Api, key: &ObjectKey, workspace: &Value, terraform: &dyn Fn(&Value) -> Outputs) {
    let (metadata, status) = (&workspace["metadata"], &workspace["status"]);
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    let synced = |status: &'static str, reason: &'static str| json!({"type": "Synced", "status": status, "reason": reason, "observedGeneration": generation});
    if metadata["annotations"][PAUSED] == "true" {
        // The provider says so once and does nothing else, not even for a deletion.
        if condition(status, "Synced").is_none_or(|synced| synced["reason"] != "ReconcilePaused") {
            let ready = condition(status, "Ready").cloned();
            api.edit(key, |workspace| {
                let conditions: Vec<Value> = [synced("False", "ReconcilePaused")].into_iter().chain(ready).collect();
                workspace["status"]["conditions"] = json!(conditions);
            });
        }
        return;
    }
    if !metadata["deletionTimestamp"].is_null() {
        let is_deleting = condition(status, "Ready").is_some_and(|ready| ready["reason"] == "Deleting");
        if is_deleting {
            api.edit(key, |workspace| workspace["metadata"]["finalizers"] = json!([]));
        } else {
            let ready =
                json!({"type": "Ready", "status": "False", "reason": "Deleting", "observedGeneration": generation});
            api.edit(key, |workspace| {
                workspace["status"]["conditions"] = json!([synced("True", "ReconcileSuccess"), ready]);
            });
        }
        return;
    }
    let annotation = |name: &str| metadata["annotations"].get(name).is_some();
    let outputs = terraform(workspace);
    if !annotation(PENDING) {
        let now = json!(api.now);
        api.edit(key, |workspace| {
            workspace["metadata"]["finalizers"] = json!([FINALIZER]);
            workspace["metadata"]["annotations"][PENDING] = now;
        });
        publish(api, key, workspace, &Outputs::default());
    } else if outputs.result == Ending::Hang {
        // A queue of other Workspaces, or a provider that is away.
    } else if let Ending::Failure(stderr) = &outputs.result {
        fail(api, key, stderr, generation, annotation(SUCCEEDED));
    } else if !annotation(SUCCEEDED) {
        publish(api, key, workspace, &outputs);
        let now = json!(api.now);
        let ready = json!({"type": "Ready", "status": "False", "reason": "Creating", "observedGeneration": generation});
        api.edit(key, |workspace| {
            workspace["metadata"]["annotations"][SUCCEEDED] = now;
            workspace["status"] = json!({"atProvider": {}, "conditions": [synced("True", "ReconcileSuccess"), ready]});
        });
    } else {
        // Ready carries no observedGeneration, as in the real one.
        let ready = json!({"type": "Ready", "status": "True", "reason": "Available"});
        publish(api, key, workspace, &outputs);
        api.edit(key, |workspace| {
            workspace["status"] = json!({
                "atProvider": {"checksum": "0", "outputs": outputs.plain},
                "conditions": [synced("True", "ReconcileSuccess"), ready],
            });
        });
    }
}

/// What a failed run leaves: the text in Synced, and Ready as it was or, before the first success, False.
fn fail(api: &mut Api, key: &ObjectKey, stderr: &str, generation: i64, succeeded: bool) {
    let stage = if succeeded { "update" } else { "create" };
    let message = format!(
        "{stage} failed: cannot apply Terraform configuration: Terraform encountered an error. Summary: {stderr}"
    );
    let synced = json!({"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message, "observedGeneration": generation});
    let now = json!(api.now);
    api.edit(key, |workspace| {
        if workspace["metadata"]["annotations"].get(FAILED).is_none() && !succeeded {
            workspace["metadata"]["annotations"][FAILED] = now;
        }
        let ready = condition(&workspace["status"], "Ready").cloned().unwrap_or_else(
            || json!({"type": "Ready", "status": "False", "reason": "Creating", "observedGeneration": generation}),
        );
        workspace["status"]["conditions"] = json!([synced, ready]);
    });
}

/// Writes the connection Secret; values are added and never removed.
fn publish(api: &mut Api, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    let reference = &workspace["spec"]["writeConnectionSecretToRef"];
    let namespace = match key.kind {
        Kind::Workspace(WorkspaceApi::Namespaced) => key.namespace.as_deref(),
        Kind::Workspace(WorkspaceApi::Cluster)
        | Kind::Cluster
        | Kind::CaptCluster
        | Kind::CaptControlPlane
        | Kind::Template
        | Kind::Apply
        | Kind::Secret => reference["namespace"].as_str(),
    };
    let (Some(namespace), Some(name)) = (namespace, reference["name"].as_str()) else { return };
    let secret = ObjectKey::new(Kind::Secret, namespace, name);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut data: BTreeMap<String, String> =
        outputs.plain.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    data.extend(outputs.sensitive.clone());
    let encoded: BTreeMap<String, String> = data
        .into_iter()
        .map(|(name, value)| (name, capt_api::foreign::SecretBytes::new(value.into_bytes()).to_base64()))
        .collect();
    if api.get(&secret).is_none() {
        let owner = json!({"apiVersion": key.kind.api_version(), "kind": "Workspace", "name": key.name,
            "uid": workspace["metadata"]["uid"], "controller": true});
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
            "metadata": {"namespace": namespace, "name": name, "ownerReferences": [owner]},
        });
        api.create(&secret, body);
    }
    if !encoded.is_empty() {
        api.edit(&secret, |object| {
            for (name, value) in encoded {
                object["data"][name] = json!(value);
            }
        });
    }
}

fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}
