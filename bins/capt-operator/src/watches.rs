//! Keeps the cache in step with the API server: one watch for each kind that is served, or one in each
//! namespace.
//!
//! A watch that fails is opened again with growing pauses; meanwhile the cache keeps what it has.
//! Nothing here decides what an event means.

use std::{collections::BTreeSet, sync::Arc};

use capt_reconcile::object::{Kind, Object, ObjectKey};
use futures::{StreamExt, future::join_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use crate::{
    cache::Cache,
    causes::chain,
    discovery::Served,
    keep::{self, Kept},
    queue::Trigger,
    scheduler::Waker,
    scope::Scope,
};

/// Watches everything that is served, where `scope` says. Never returns.
pub async fn watch_all(client: Client, served: Served, scope: Scope, cache: Arc<Cache>, waker: Waker) {
    let places = served
        .kinds()
        .flat_map(|(kind, version)| scope.places(kind).into_iter().map(move |namespace| (kind, version, namespace)));
    let watches = places.map(|(kind, version, namespace)| {
        let (api, api_version) = api(&client, kind, version, namespace.as_deref());
        let (cache, waker) = (Arc::clone(&cache), waker.clone());
        Watch { kind, api_version, namespace, cache, waker, listed: BTreeSet::new() }.run(api)
    });
    join_all(watches).await;
}

/// The API of `kind` in `version`, and its apiVersion.
pub(crate) fn api(client: &Client, kind: Kind, version: &str, namespace: Option<&str>) -> (Api<DynamicObject>, String) {
    let group = kind.group().to_owned();
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resource = ApiResource {
        group,
        version: version.to_owned(),
        api_version: api_version.clone(),
        kind: kind.name().to_owned(),
        plural: kind.plural().to_owned(),
    };
    let api = match namespace {
        Some(namespace) if kind.is_namespaced() => Api::namespaced_with(client.clone(), namespace, &resource),
        Some(_) | None => Api::all_with(client.clone(), &resource),
    };
    (api, api_version)
}

struct Watch {
    kind: Kind,
    api_version: String,
    /// Where; absent for everywhere.
    namespace: Option<String>,
    cache: Arc<Cache>,
    waker: Waker,
    /// What the list that is arriving contains so far.
    listed: BTreeSet<ObjectKey>,
}

impl Watch {
    async fn run(mut self, api: Api<DynamicObject>) {
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.event(event),
                // A watch that was away too long starts again with a list; that is no failure.
                Err(watcher::Error::WatchError(status)) if status.code == 410 => {
                    tracing::debug!(kind = self.kind.name(), "the watch expired");
                }
                Err(error) => tracing::warn!(
                    kind = self.api_version,
                    error = chain(&error),
                    "the watch failed and is opened again"
                ),
            }
        }
    }

    fn event(&mut self, event: Event<DynamicObject>) {
        let woken = match event {
            Event::Init => {
                self.listed.clear();
                return;
            }
            Event::InitApply(object) => {
                let kept = self.kept(object);
                self.listed.insert(kept.key.clone());
                self.cache.applied(kept)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                tracing::debug!(kind = self.kind.name(), objects = listed.len(), "listed");
                self.cache.listed(self.kind, self.namespace.as_deref(), &listed)
            }
            Event::Apply(object) => self.cache.applied(self.kept(object)),
            Event::Delete(object) => {
                let Kept { key, resource_version, object: _ } = self.kept(object);
                self.cache.deleted(&key, resource_version)
            }
        };
        self.waker.wake(woken, Trigger::Event(self.kind));
    }

    fn kept(&self, object: DynamicObject) -> Kept {
        let kept = keep::from_watch(self.kind, &self.api_version, object);
        if let Object::Malformed(reason) = &kept.object {
            tracing::warn!(object = %kept.key, %reason, "left alone: the object does not parse");
        }
        kept
    }
}
