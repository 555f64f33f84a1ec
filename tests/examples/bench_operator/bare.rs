//! How fast this API server takes writes like the operator's from somebody who does nothing else.

use std::time::Instant;

use capt_tests::history::Kind;
use futures::{StreamExt, stream};
use kube::{
    Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{Error, NAMESPACE};

/// Objects that are made for it, and how often the status of each is applied.
const OBJECTS: usize = 200;
const STATUSES: usize = 5;
/// Requests at a time, as many as the operator has passes.
const PARALLEL: usize = 8;

/// Writes in a second.
pub(super) async fn rate(client: &Client) -> Result<f64, Error> {
    let begin = Instant::now();
    let written: Result<Vec<usize>, Error> = stream::iter(0..OBJECTS)
        .map(|number| life(client, number))
        .buffer_unordered(PARALLEL)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect();
    Ok(written?.into_iter().sum::<usize>() as f64 / begin.elapsed().as_secs_f64())
}

async fn life(client: &Client, number: usize) -> Result<usize, Error> {
    let (api, name) = (Kind::ControlPlane.api(client, Some(NAMESPACE)), format!("bare-{number}"));
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane", "metadata": {"name": name},
        "spec": {"version": "1.31", "workspaceTemplateRef": {"name": "eks-template"}},
    }))?;
    api.create(&PostParams::default(), &object).await?;
    let now = jiff::Timestamp::now().to_string();
    for turn in 0..STATUSES {
        let conditions: Vec<_> = ["Ready", "Available", "Healthy", "Reconciling", "Stalled", "Paused", "Deleting", "WorkspaceReady"]
            .map(|type_| {
                json!({"type": type_, "status": "False", "reason": format!("Turn{turn}"), "message": "as long as such a message is: waiting for something",
                    "lastTransitionTime": now, "observedGeneration": 1})
            })
            .to_vec();
        let status = json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "CAPTControlPlane",
            "status": {"state": "Provisioning", "conditions": conditions},
        });
        api.patch_status(&name, &PatchParams::apply("bare").force(), &Patch::Apply(status)).await?;
    }
    Ok(STATUSES + 1)
}
