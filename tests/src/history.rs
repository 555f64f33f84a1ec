//! What happened to the objects, in order: every change that the API server told.
//!
//! It watches as any other client does, so it shows when others can see something. Versions are
//! comparable between all kinds of objects (they are revisions of one etcd), times are not older than
//! what they stand for.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
    runtime::watcher::{self, Event, watcher},
};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet};

/// How long the first lists may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A list did not arrive.
    #[error("the objects could not be listed within {0:?}; does the API server serve all of their kinds?")]
    Slow(Duration),
}

/// A kind of object that is watched, as its group tells its two Workspaces apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Cluster API's Cluster.
    Cluster,
    /// CAPTCluster.
    CaptCluster,
    /// CAPTControlPlane.
    ControlPlane,
    /// WorkspaceTemplateApply.
    Apply,
    /// `Workspace.tf.upbound.io`.
    Workspace,
    /// `Workspace.tf.m.upbound.io`.
    NamespacedWorkspace,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Cluster, Self::CaptCluster, Self::ControlPlane, Self::Apply, Self::Workspace, Self::NamespacedWorkspace];

    /// How the API server calls it.
    pub fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Cluster => ("cluster.x-k8s.io", "v1beta2", "Cluster"),
            Self::CaptCluster => ("infrastructure.cluster.x-k8s.io", "v1beta1", "CAPTCluster"),
            Self::ControlPlane => ("controlplane.cluster.x-k8s.io", "v1beta1", "CAPTControlPlane"),
            Self::Apply => ("infrastructure.cluster.x-k8s.io", "v1beta1", "WorkspaceTemplateApply"),
            Self::Workspace => ("tf.upbound.io", "v1beta1", "Workspace"),
            Self::NamespacedWorkspace => ("tf.m.upbound.io", "v1beta1", "Workspace"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    /// Objects of this kind, in `namespace` if it has namespaces and one is given.
    pub fn api(self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match (self, namespace) {
            (Self::Workspace, _) | (_, None) => Api::all_with(client.clone(), &self.resource()),
            (_, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &self.resource()),
        }
    }
}

/// One change.
#[derive(Debug, Clone)]
pub struct Change {
    /// When it was seen.
    pub at: Instant,
    /// Kind of the object.
    pub kind: Kind,
    /// Whether the object is gone now.
    pub gone: bool,
    /// The object as it is now, or as it was last.
    pub object: DynamicObject,
}

impl Change {
    /// Whether it is about the object of `kind` with `name`; `namespace` does not matter where there is none.
    pub fn is_of(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        let own = self.namespace();
        self.kind == kind && self.name() == name && (own.is_empty() || own == namespace)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// The object's namespace; empty where there is none.
    pub fn namespace(&self) -> &str {
        self.object.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The revision that made this change; 0 if the API server does not count.
    pub fn version(&self) -> u64 {
        self.object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Whether the object is being deleted, or is gone.
    pub fn ends(&self) -> bool {
        self.gone || self.object.metadata.deletion_timestamp.is_some()
    }

    /// A field of the object below `status`, such as `/status/ready`.
    pub fn field(&self, pointer: &str) -> &Value {
        self.object.data.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Whether the condition is True for the current generation, where it says which one it is about.
    pub fn is(&self, condition: &str) -> bool {
        is_true(&self.object, condition)
    }
}

/// Whether `object` has `condition` with status True, for the current generation where it says which.
pub fn is_true(object: &DynamicObject, condition: &str) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|found| {
        let about = found["observedGeneration"].as_i64().filter(|generation| *generation > 0);
        found["type"] == condition
            && found["status"] == "True"
            && about.is_none_or(|generation| Some(generation) == object.metadata.generation)
    })
}

/// The changes so far. Dropping it ends its watches.
#[derive(Debug)]
pub struct History {
    changes: Arc<Mutex<Vec<Change>>>,
    count: watch::Receiver<usize>,
    _watches: JoinSet<()>,
}

impl History {
    /// Watches every kind of [`Kind`] in all namespaces, from now on.
    pub async fn start(client: &Client) -> Result<Self, Error> {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (sender, count) = watch::channel(0);
        let (listed, mut lists) = tokio::sync::mpsc::channel(Kind::ALL.len());
        let mut watches = JoinSet::new();
        for kind in Kind::ALL {
            let (changes, sender, listed, api) =
                (Arc::clone(&changes), sender.clone(), listed.clone(), kind.api(client, None));
            watches.spawn(async move {
                let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
                // A watch that fails is opened again by the next poll.
                while let Some(event) = events.next().await {
                    let (gone, object) = match event {
                        Ok(Event::Apply(object) | Event::InitApply(object)) => (false, object),
                        Ok(Event::Delete(object)) => (true, object),
                        Ok(Event::InitDone) => {
                            // Nobody listens any more after the first lists.
                            let _ = listed.try_send(());
                            continue;
                        }
                        Ok(Event::Init) | Err(_) => continue,
                    };
                    let mut changes = lock(&changes);
                    changes.push(Change { at: Instant::now(), kind, gone, object });
                    sender.send_modify(|count| *count += 1);
                }
            });
        }
        let all = async {
            for _ in Kind::ALL {
                lists.recv().await;
            }
        };
        tokio::time::timeout(LIMIT, all).await.map_err(|_| Error::Slow(LIMIT))?;
        Ok(Self { changes, count, _watches: watches })
    }

    /// Every change so far, oldest first.
    pub fn changes(&self) -> Vec<Change> {
        lock(&self.changes).clone()
    }

    /// The first change for which `is` holds.
    pub fn first(&self, is: impl Fn(&Change) -> bool) -> Option<Change> {
        lock(&self.changes).iter().find(|change| is(change)).cloned()
    }

    /// The last change for which `is` holds.
    pub fn last(&self, is: impl Fn(&Change) -> bool) -> Option<Change> {
        lock(&self.changes).iter().rfind(|change| is(change)).cloned()
    }

    /// Waits for the next change; returns at once if there was one since the last call.
    pub async fn changed(&mut self) {
        if self.count.changed().await.is_err() {
            // The watches never end while this value lives.
            std::future::pending::<()>().await;
        }
    }
}

fn lock(changes: &Mutex<Vec<Change>>) -> MutexGuard<'_, Vec<Change>> {
    // A push either happened or not, whatever panicked.
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}
