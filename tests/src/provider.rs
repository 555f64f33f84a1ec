//! provider-terraform as a program would play it that makes nothing: each Workspace is Ready, changed and gone as soon
//! as it should be. For tests and measurements that are about the operator and not about Terraform.
//!
//! It survives an API server that goes away: what it has begun it tries until it is done.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capt_sim::{provider::Outputs, terraform};
use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::history::Kind;

/// Workspaces at a time.
const PARALLEL: usize = 16;
/// The finalizer of the real one.
const FINALIZER: &str = "finalizer.tf.upbound.io";
/// How it signs its applies.
const MANAGER: &str = "provider-terraform";
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(500);

/// What became of one Workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    /// Newest generation that was applied; 0 if none was.
    pub applied: i64,
    /// Whether what it made was destroyed.
    pub destroyed: bool,
}

/// By name, and then by uid: two lives under a name are two Workspaces.
pub type Ledger = BTreeMap<String, BTreeMap<String, Life>>;

/// Runs until it is dropped.
#[derive(Debug)]
pub struct Provider {
    ledger: Arc<Mutex<Ledger>>,
    _watches: JoinSet<()>,
}

impl Provider {
    /// Takes care of all Workspaces of both kinds; each run of Terraform takes as long as `takes`.
    pub fn start(client: &Client, takes: Duration) -> Self {
        let (ledger, mut watches) = (Arc::new(Mutex::new(Ledger::new())), JoinSet::new());
        for kind in [Kind::Workspace, Kind::NamespacedWorkspace] {
            let work = Work { client: client.clone(), kind, takes, ledger: Arc::clone(&ledger) };
            watches.spawn(work.run());
        }
        Self { ledger, _watches: watches }
    }

    /// What became of all Workspaces so far.
    pub fn ledger(&self) -> Ledger {
        lock(&self.ledger).clone()
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // An entry is either there or not, whatever panicked.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Work {
    client: Client,
    kind: Kind,
    takes: Duration,
    ledger: Arc<Mutex<Ledger>>,
}

impl Work {
    async fn run(self) {
        let config = watcher::Config::default();
        let workspaces = watcher(self.kind.api(&self.client, None), config).default_backoff().applied_objects();
        workspaces
            .for_each_concurrent(PARALLEL, |workspace| async {
                // What fails here is a watch that begins anew.
                let Ok(mut workspace) = workspace else { return };
                while self.step(&workspace).await.is_err() {
                    tokio::time::sleep(AGAIN).await;
                    let api = self.kind.api(&self.client, workspace.metadata.namespace.as_deref());
                    match api.get_opt(&workspace.name_any()).await {
                        Ok(Some(now)) if now.metadata.uid == workspace.metadata.uid => workspace = now,
                        Ok(_) => return,
                        // The API server is away.
                        Err(_) => {}
                    }
                }
            })
            .await;
    }

    async fn step(&self, workspace: &DynamicObject) -> Result<(), kube::Error> {
        let (name, uid) = (workspace.name_any(), workspace.uid().unwrap_or_default());
        let generation = workspace.metadata.generation.unwrap_or_default();
        let api = self.kind.api(&self.client, workspace.metadata.namespace.as_deref());
        let is_held = workspace.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        let record = |change: fn(&mut Life, i64)| {
            change(lock(&self.ledger).entry(name.clone()).or_default().entry(uid.clone()).or_default(), generation);
        };
        if workspace.metadata.deletion_timestamp.is_some() {
            if !is_held {
                return Ok(());
            }
            tokio::time::sleep(self.takes).await;
            record(|life, _| life.destroyed = true);
            if let Some((secret, namespace)) = secret_of(workspace) {
                let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.client.clone(), &namespace);
                match secrets.delete(&secret, &DeleteParams::default()).await {
                    Ok(_) => {}
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            let left: Vec<&String> = workspace.finalizers().iter().filter(|it| *it != FINALIZER).collect();
            let finalizers = json!({"metadata": {"finalizers": left, "uid": uid}});
            return api.patch(&name, &PatchParams::default(), &Patch::Merge(finalizers)).await.map(drop);
        }
        let observed = workspace.data.pointer("/status/conditions/0/observedGeneration").and_then(Value::as_i64);
        if observed == Some(generation) {
            return Ok(());
        }
        if !is_held {
            let all: Vec<&str> = workspace.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
            let finalizers = json!({"metadata": {"finalizers": all, "uid": uid}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
        }
        tokio::time::sleep(self.takes).await;
        record(|life, generation| life.applied = life.applied.max(generation));
        self.make_ready(workspace, &api).await
    }

    async fn make_ready(&self, workspace: &DynamicObject, api: &Api<DynamicObject>) -> Result<(), kube::Error> {
        let value = serde_json::to_value(workspace).map_err(kube::Error::SerdeError)?;
        let Outputs { plain, sensitive, .. } = terraform::guess(&value);
        let applying = PatchParams::apply(MANAGER).force();
        if let Some((secret, namespace)) = secret_of(workspace) {
            let texts = plain.iter().map(|(name, value)| (name.clone(), text(value)));
            let data: BTreeMap<String, String> = texts.chain(sensitive).collect();
            let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.client.clone(), &namespace);
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": data});
            secrets.patch(&secret, &applying, &Patch::Apply(body)).await?;
        }
        let condition = |type_: &str, reason: &str| {
            json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": jiff::Timestamp::now().to_string(),
                "observedGeneration": workspace.metadata.generation})
        };
        let status = json!({"metadata": {"uid": workspace.metadata.uid}, "status": {
            "conditions": [condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")],
            "atProvider": {"outputs": plain},
        }});
        api.patch_status(&workspace.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}

/// Name and namespace of the connection Secret.
fn secret_of(workspace: &DynamicObject) -> Option<(String, String)> {
    let reference = workspace.data.pointer("/spec/writeConnectionSecretToRef")?;
    let name = reference["name"].as_str()?;
    let namespace = reference["namespace"].as_str().or(workspace.metadata.namespace.as_deref())?;
    Some((name.to_owned(), namespace.to_owned()))
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(answer) if answer.code == 404)
}

/// As provider-terraform writes an output into the connection Secret.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
