//! The plan of a pass: comparable data, no behaviour.
//!
//! Actions are ordered: finalizer, children, the object's own spec, its status, and last a
//! finalizer's removal. Each carries its own precondition, so that a stale view is refused by the
//! API server instead of overwriting. An empty plan is the fixpoint.

/// Events to publish about the object of a plan: what the state machine tells, and what a pass adds.
pub use capt_status::machine::{Event, EventType};
use capt_status::{State, Time};
use serde_json::Value;

use crate::object::{Kind, ObjectKey};

/// What one pass over one object would write, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The object the pass is about.
    pub object: ObjectKey,
    /// State that the object's status shows after the plan; absent for kinds without one and for
    /// objects that are left alone.
    pub state: Option<State>,
    /// Writes in order.
    pub actions: Vec<Action>,
    /// Events to publish once all writes succeeded.
    pub events: Vec<Event>,
    /// When to look again even if nothing happens; absent if only an event can change anything.
    pub next: Option<Time>,
    /// Why there is nothing to write, or what is waited for.
    pub note: String,
}

impl Plan {
    /// A plan that writes nothing, and why.
    pub fn nothing(object: ObjectKey, note: impl Into<String>) -> Self {
        Self { object, state: None, actions: Vec::new(), events: Vec::new(), next: None, note: note.into() }
    }
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What is written.
    pub op: Op,
    /// Where.
    pub target: ObjectKey,
    /// What must hold for the write to happen; checked by the API server.
    pub precondition: Precondition,
    /// Live reads that must find nothing, made right before the write; the pass ends if one does.
    pub unless: Vec<Query>,
    /// Why, for people.
    pub reason: String,
}

/// Kind of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// POST of a whole object.
    Create {
        /// The object.
        body: Value,
    },
    /// JSON merge patch.
    MergePatch {
        /// The patch; nulls remove.
        body: Value,
    },
    /// JSON patch of metadata (finalizers) and of spec fields that go with it.
    JsonPatch {
        /// RFC 6902 operations.
        operations: Vec<Value>,
    },
    /// Server-side apply of the status subresource.
    ApplyStatus {
        /// Field manager.
        manager: &'static str,
        /// The complete status that we want.
        status: Value,
    },
    /// JSON merge patch of the status subresource of an object that is not ours.
    MergeStatus {
        /// Field manager.
        manager: &'static str,
        /// The patch of `status`; nulls remove.
        status: Value,
    },
    /// DELETE, in the background.
    Delete,
}

/// What must hold for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// There is no such object.
    MustNotExist,
    /// The object is exactly the one that was observed.
    Observed {
        /// uid.
        uid: String,
        /// resourceVersion.
        resource_version: String,
    },
    /// The object is as the action with this index of the same plan left it.
    AfterAction(usize),
    /// The object is the observed one, in whatever version.
    Uid(String),
}

/// A live read that must find nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The object at this key, if it is whose the filter says.
    Object {
        /// Where.
        key: ObjectKey,
        /// Which objects count.
        counts: Counts,
    },
    /// All objects of a kind, in all namespaces, with this label.
    Labelled {
        /// Kind.
        kind: Kind,
        /// Label name.
        label: &'static str,
        /// Label value.
        value: String,
    },
}

/// Which objects a [`Query`] counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counts {
    /// Any object.
    Any,
    /// Objects without this label, or with this value of it.
    LabelAbsentOr {
        /// Label name.
        label: &'static str,
        /// Label value.
        value: String,
    },
    /// Objects with an owner reference to this owner: by uid, or by kind and name.
    OwnedBy {
        /// Kind of the owner.
        kind: Kind,
        /// Name of the owner.
        name: String,
        /// uid of the owner.
        uid: String,
    },
    /// Secrets with a non-empty value of this key.
    SecretKey {
        /// Key.
        key: &'static str,
    },
}
