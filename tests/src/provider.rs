//! provider-terraform as a program would play it that makes nothing: each Workspace is Ready, changed and gone as soon
//! as it should be. For tests and measurements that are about the operator and not about Terraform.
//!
//! It survives an API server that goes away: what it has begun it tries until it is done.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capt_sim::{definitions, terraform};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::history::Kind;

/// The CRDs of the Workspaces that it takes care of, as documents to install.
pub fn workspace_crds() -> Result<Vec<String>, definitions::Error> {
    let is_its = |crd: &&Value| crd["spec"]["group"].as_str().is_some_and(|group| group.starts_with("tf."));
    Ok(definitions::all()?.iter().filter(is_its).map(ToString::to_string).collect())
}

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
                    match self.api(&workspace).get_opt(&workspace.name_any()).await {
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
        let is_held = workspace.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        if workspace.metadata.deletion_timestamp.is_some() {
            return if is_held { self.destroy(workspace).await } else { Ok(()) };
        }
        let observed = workspace.data.pointer("/status/conditions/0/observedGeneration").and_then(Value::as_i64);
        if observed == workspace.metadata.generation {
            return Ok(());
        }
        if !is_held {
            self.hold(workspace, workspace.finalizers().iter().map(String::as_str).chain([FINALIZER])).await?;
        }
        tokio::time::sleep(self.takes).await;
        let generation = workspace.metadata.generation.unwrap_or_default();
        self.record(workspace, |life| life.applied = life.applied.max(generation));
        self.make_ready(workspace).await
    }

    async fn destroy(&self, workspace: &DynamicObject) -> Result<(), kube::Error> {
        tokio::time::sleep(self.takes).await;
        self.record(workspace, |life| life.destroyed = true);
        if let Some((secrets, name)) = self.secret_of(workspace) {
            match secrets.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(answer)) if answer.code == 404 => {}
                result => drop(result?),
            }
        }
        let others = workspace.finalizers().iter().map(String::as_str).filter(|finalizer| *finalizer != FINALIZER);
        self.hold(workspace, others).await
    }

    fn record(&self, workspace: &DynamicObject, change: impl FnOnce(&mut Life)) {
        let mut ledger = lock(&self.ledger);
        let lives = ledger.entry(workspace.name_any()).or_default();
        change(lives.entry(workspace.uid().unwrap_or_default()).or_default());
    }

    /// Gives the Workspace these finalizers.
    async fn hold(&self, workspace: &DynamicObject, finalizers: impl Iterator<Item = &str>) -> Result<(), kube::Error> {
        let finalizers: Vec<&str> = finalizers.collect();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers, "uid": workspace.metadata.uid}}));
        self.api(workspace).patch(&workspace.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }

    fn api(&self, workspace: &DynamicObject) -> Api<DynamicObject> {
        self.kind.api(&self.client, workspace.metadata.namespace.as_deref())
    }

    /// The connection Secret: where, and its name.
    fn secret_of(&self, workspace: &DynamicObject) -> Option<(Api<Secret>, String)> {
        let reference = workspace.data.pointer("/spec/writeConnectionSecretToRef")?;
        let name = reference["name"].as_str()?;
        let namespace = reference["namespace"].as_str().or(workspace.metadata.namespace.as_deref())?;
        Some((Api::namespaced(self.client.clone(), namespace), name.to_owned()))
    }

    async fn make_ready(&self, workspace: &DynamicObject) -> Result<(), kube::Error> {
        let outputs = terraform::guess(&serde_json::to_value(workspace).map_err(kube::Error::SerdeError)?);
        if let Some((secrets, name)) = self.secret_of(workspace) {
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": outputs.secret_data()});
            secrets.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(body)).await?;
        }
        let condition = |type_: &str, reason: &str| {
            json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": jiff::Timestamp::now().to_string(),
                "observedGeneration": workspace.metadata.generation})
        };
        let status = json!({"metadata": {"uid": workspace.metadata.uid}, "status": {
            "conditions": [condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")],
            "atProvider": {"outputs": outputs.plain},
        }});
        let patch = Patch::Merge(status);
        self.api(workspace).patch_status(&workspace.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }
}
