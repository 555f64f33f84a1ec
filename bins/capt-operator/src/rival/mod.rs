//! Keeps passes from starting while another operator writes the statuses that are ours, as the Go implementation
//! does that somebody forgot to stop.
//!
//! ```text
//! cache -- updates by others --> machine (pure) -- held? --> waker, readiness, metrics, log
//! ```
//!
//! Watches go on meanwhile. It must not decide anything about an object.

pub mod machine;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capt_reconcile::{
    object::{Object, ObjectKey},
    plan::{Event, EventType},
    reasons,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    cache::Cache,
    events::Events,
    metrics::Metrics,
    scheduler::Waker,
    worker::{Clock, system_clock},
};
use machine::{Held, Rivals, Update};

/// What the cache tells of other writers.
#[derive(Debug)]
pub struct Lookout {
    rivals: Mutex<Rivals>,
    news: Notify,
    clock: Clock,
}

impl Default for Lookout {
    fn default() -> Self {
        Self { rivals: Mutex::default(), news: Notify::new(), clock: system_clock }
    }
}

impl Lookout {
    fn rivals(&self) -> MutexGuard<'_, Rivals> {
        // No method leaves it half changed at a point where it could panic.
        self.rivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `object` has this update by somebody else; `listing` while the first list arrives.
    pub fn saw(&self, object: &ObjectKey, update: Update, listing: bool) {
        let now = Instant::now();
        if listing {
            self.rivals().listed(object, update, (self.clock)(), now);
        } else {
            self.rivals().changed(object, update, now);
            self.news.notify_one();
        }
    }

    /// The object is gone.
    pub fn gone(&self, object: &ObjectKey) {
        self.rivals().gone(object);
    }

    /// Something has changed that decides whether passes may start.
    pub fn look_again(&self) {
        self.news.notify_one();
    }
}

/// The newest update of the status of an object of ours by somebody else.
pub fn update_of(object: &Object) -> Option<Update> {
    let entries = match object {
        Object::CaptCluster(object) => object.metadata.managed_fields.as_deref(),
        Object::ControlPlane(object) => object.metadata.managed_fields.as_deref(),
        Object::Apply(object) => object.metadata.managed_fields.as_deref(),
        Object::Cluster(_) | Object::Template(_) | Object::Workspace(_) | Object::Secret(_) | Object::Malformed(_) => {
            None
        }
    };
    Update::newest(entries.unwrap_or_default())
}

/// Lets passes start once everything is known and nobody else writes, and keeps them from it whenever somebody
/// does. Runs until it is dropped.
pub async fn keep_watch(cache: Arc<Cache>, waker: Waker, metrics: Arc<Metrics>, events: Events) {
    let mut told = false;
    loop {
        let (held, writes) = {
            let rivals = cache.lookout().rivals();
            (rivals.held(Instant::now()), rivals.writes())
        };
        waker.hold(held.is_some() || !cache.is_complete());
        metrics.rival(held.as_ref().map(describe), writes);
        match &held {
            Some(held) if !told => {
                tracing::warn!(object = %held.object, manager = held.manager, "{}", describe(held));
                let event =
                    Event { type_: EventType::Warning, reason: reasons::FOREIGN_OPERATOR, note: describe(held) };
                events.publish(&held.object, cache.uid(&held.object), &[event]).await;
            }
            None if told => tracing::info!("nobody else writes any more: going on"),
            Some(_) | None => {}
        }
        told = held.is_some();
        let over = async {
            match &held {
                Some(held) => sleep_until(held.until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cache.lookout().news.notified() => {}
            () = over => {}
        }
    }
}

fn describe(held: &Held) -> String {
    let Held { object, manager, until: _ } = held;
    format!(
        "another operator (field manager `{manager}`) writes the status of {object}: stop it; nothing is reconciled \
         until it is quiet, see docs/migration.md"
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, convert::Infallible, time::Duration};

    use capt_reconcile::{object::Kind, pass::Settings};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};
    use tokio::{sync::mpsc, time::sleep};

    use super::*;
    use crate::{keep, queue::Trigger, scheduler, scope::Scope};

    fn captcluster(version: u64, status: Option<(&str, &str)>) -> keep::Kept {
        let entries: Vec<Value> = status
            .into_iter()
            .map(|(manager, time)| {
                json!({"manager": manager, "operation": "Update", "subresource": "status", "time": time})
            })
            .collect();
        keep::from_value(
            Kind::CaptCluster,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
                "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(),
                    "managedFields": entries},
                "spec": {"region": "eu-west-1"},
            }),
        )
    }

    /// A client to which nobody answers anything of use.
    fn client() -> Client {
        let service = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::from(b"{}".to_vec())))
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn passes_start_when_all_is_known_stop_while_another_operator_writes_and_go_on_when_it_is_quiet() {
        let cache = Arc::new(Cache::new(&BTreeSet::from([Kind::CaptCluster]), Settings::default(), Scope::default()));
        let (waker, metrics) = (Waker::new(1), Arc::new(Metrics::new()));
        let events = Events::new(client(), Duration::from_secs(1));
        waker.hold(true);
        tokio::spawn(keep_watch(Arc::clone(&cache), waker.clone(), Arc::clone(&metrics), events));
        let (sender, mut passes) = mpsc::unbounded_channel();
        let driver = waker.clone();
        tokio::spawn(async move {
            let pass = |_, _| {
                let _ = sender.send(());
                async { crate::queue::Verdict::Settled { next: None } }
            };
            scheduler::run(&driver, pass, std::future::pending(), Duration::ZERO).await;
        });
        let mut count = || std::iter::from_fn(|| passes.try_recv().ok()).count();
        let settle = || sleep(Duration::from_millis(1));
        let event = Trigger::Event(Kind::CaptCluster);
        let key = ObjectKey::new(Kind::CaptCluster, "ns", "c");

        waker.wake(cache.applied(captcluster(1, Some(("manager", "2020-01-01T00:00:00Z")))), event);
        waker.wake([key.clone()], event);
        settle().await;
        assert_eq!(count(), 0, "not everything is known");
        waker.wake(cache.listed(Kind::CaptCluster, None, &BTreeSet::from([key.clone()])), event);
        settle().await;
        assert_eq!((count(), metrics.rival_text()), (1, None), "what was written long ago is the past");

        waker.wake(cache.applied(captcluster(2, Some(("manager", "2020-01-01T00:00:05Z")))), event);
        settle().await;
        assert_eq!(count(), 1, "one write may be anything");
        waker.wake(cache.applied(captcluster(3, Some(("manager", "2020-01-01T00:00:06Z")))), event);
        settle().await;
        waker.wake([key.clone()], event);
        sleep(Duration::from_secs(59)).await;
        // The pass that the second write itself woke may have been faster.
        assert!(count() <= 1);
        assert!(metrics.rival_text().unwrap().contains("`manager`"), "and it is said why");
        assert!(metrics.text(true).contains("capt_foreign_status_writes_total 2"), "{}", metrics.text(true));
        sleep(Duration::from_secs(2)).await;
        assert_eq!((count(), metrics.rival_text()), (1, None), "it is quiet, and nothing was lost");
    }
}
