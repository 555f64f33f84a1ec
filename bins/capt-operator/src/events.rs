//! Publishes the events of a plan, once its writes succeeded.
//!
//! An event is a courtesy to people: when it cannot be published, that is logged and nothing else
//! depends on it.

use std::time::Duration;

use capt_reconcile::{
    object::ObjectKey,
    plan::{Event, EventType},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{self, Recorder},
};
use tokio::time::timeout;

use crate::causes::chain;

/// Publishes events; one for all passes, because it merges repeated ones.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    timeout: Duration,
}

impl Events {
    /// Events through `client`, each given up after `timeout`.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self { recorder: Recorder::new(client, "capt-operator".into()), timeout }
    }

    /// Publishes `events` about `object`, whose uid is `uid`.
    pub async fn publish(&self, object: &ObjectKey, uid: Option<String>, events: &[Event]) {
        let regarding = ObjectReference {
            api_version: Some(object.kind.api_version()),
            kind: Some(object.kind.name().to_owned()),
            name: Some(object.name.clone()),
            namespace: object.namespace.clone(),
            uid,
            ..ObjectReference::default()
        };
        for Event { type_, reason, note } in events {
            let event = events::Event {
                type_: match type_ {
                    EventType::Normal => events::EventType::Normal,
                    EventType::Warning => events::EventType::Warning,
                },
                reason: (*reason).to_owned(),
                note: Some(note.clone()),
                action: "Reconcile".to_owned(),
                secondary: None,
            };
            match timeout(self.timeout, self.recorder.publish(&event, &regarding)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%object, reason, error = chain(&error), "cannot publish an event"),
                Err(_) => tracing::warn!(%object, reason, "cannot publish an event: no answer"),
            }
        }
    }
}
