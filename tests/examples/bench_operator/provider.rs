//! provider-terraform in no time: each Workspace is Ready as soon as it is seen.

use std::collections::BTreeMap;

use capt_sim::{provider::Outputs, terraform};
use capt_tests::history::Kind;
use futures::StreamExt;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};

/// Workspaces at a time.
const PARALLEL: usize = 16;

/// Runs until it is aborted; what fails is tried again with the next event of its Workspace.
pub(super) async fn run(client: Client) {
    let api = Kind::NamespacedWorkspace.api(&client, None);
    let workspaces = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
    workspaces
        .for_each_concurrent(PARALLEL, |workspace| {
            let client = client.clone();
            async move {
                let done = match workspace {
                    Ok(workspace) if workspace.data["status"]["conditions"].is_null() => {
                        make_ready(&client, &workspace).await
                    }
                    Ok(_) => Ok(()),
                    // The watch begins anew.
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = done {
                    eprintln!("provider: {error}");
                }
            }
        })
        .await;
}

async fn make_ready(client: &Client, workspace: &DynamicObject) -> Result<(), super::Error> {
    let namespace = workspace.metadata.namespace.clone().unwrap_or_default();
    let name = workspace.metadata.name.clone().unwrap_or_default();
    let Outputs { plain, sensitive, .. } = terraform::guess(&serde_json::to_value(workspace)?);
    if let Some(secret) = workspace.data["spec"]["writeConnectionSecretToRef"]["name"].as_str() {
        let texts = plain.iter().map(|(name, value)| (name.clone(), text(value)));
        let data: BTreeMap<String, ByteString> =
            texts.chain(sensitive).map(|(name, value)| (name, ByteString(value.into_bytes()))).collect();
        let metadata = ObjectMeta { name: Some(secret.to_owned()), ..ObjectMeta::default() };
        let secret = Secret { metadata, data: Some(data), ..Secret::default() };
        Api::<Secret>::namespaced(client.clone(), &namespace).create(&PostParams::default(), &secret).await?;
    }
    let condition = |type_: &str, reason: &str| {
        json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": jiff::Timestamp::now().to_string(),
            "observedGeneration": workspace.metadata.generation})
    };
    let status = json!({"status": {
        "conditions": [condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")],
        "atProvider": {"outputs": plain},
    }});
    let api = Kind::NamespacedWorkspace.api(client, Some(&namespace));
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// As provider-terraform writes an output into the connection Secret.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
