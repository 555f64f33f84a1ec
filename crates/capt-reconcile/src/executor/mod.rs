//! Carries out a [`Plan`] without doing I/O: it says which request is next and takes the answer.
//!
//! The kube layer and the simulator drive the same machine, so what is tested in one holds in the
//! other. It stops at the first failure and turns no API error into status: what an error means for
//! the object is decided by the next pass, from what it observes then.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use crate::{
    meta,
    object::{Kind, ObjectKey},
    plan::{Action, Counts, Op, Plan, Precondition, Query},
};

/// Where an object says which version it is.
const RESOURCE_VERSION: &str = "/metadata/resourceVersion";

/// A request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// POST.
    Create {
        /// Where.
        target: ObjectKey,
        /// The object.
        body: Value,
    },
    /// PATCH with `application/merge-patch+json`.
    MergePatch {
        /// Where.
        target: ObjectKey,
        /// The patch, with uid and resourceVersion.
        body: Value,
    },
    /// PATCH with `application/json-patch+json`.
    JsonPatch {
        /// Where.
        target: ObjectKey,
        /// Operations, resourceVersion first.
        operations: Vec<Value>,
    },
    /// PATCH of the status subresource with `application/apply-patch+yaml`, force.
    ApplyStatus {
        /// Where.
        target: ObjectKey,
        /// Field manager.
        manager: &'static str,
        /// apiVersion, kind, metadata with resourceVersion, status.
        body: Value,
    },
    /// PATCH of the status subresource with `application/merge-patch+json`.
    MergeStatus {
        /// Where.
        target: ObjectKey,
        /// Field manager.
        manager: &'static str,
        /// metadata with uid and resourceVersion, status.
        body: Value,
    },
    /// DELETE with background propagation.
    Delete {
        /// Where.
        target: ObjectKey,
        /// uid precondition.
        uid: String,
        /// resourceVersion precondition, where what is there may have become worth keeping.
        resource_version: Option<String>,
    },
    /// GET, from the API server and not from a cache.
    Get {
        /// Where.
        target: ObjectKey,
    },
    /// LIST in all namespaces, from the API server.
    List {
        /// Kind.
        kind: Kind,
        /// Label selector, `name=value`.
        selector: String,
    },
}

impl Request {
    /// Whether the request changes something.
    pub const fn is_write(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::MergePatch { .. }
            | Self::JsonPatch { .. }
            | Self::ApplyStatus { .. }
            | Self::MergeStatus { .. }
            | Self::Delete { .. } => true,
            Self::Get { .. } | Self::List { .. } => false,
        }
    }

    /// The object that the request is about; a list is about none in particular.
    pub const fn target(&self) -> Option<&ObjectKey> {
        match self {
            Self::Create { target, .. }
            | Self::MergePatch { target, .. }
            | Self::JsonPatch { target, .. }
            | Self::ApplyStatus { target, .. }
            | Self::MergeStatus { target, .. }
            | Self::Delete { target, .. }
            | Self::Get { target } => Some(target),
            Self::List { .. } => None,
        }
    }

    /// The object that the request changes.
    pub fn written(&self) -> Option<&ObjectKey> {
        self.target().filter(|_| self.is_write())
    }

    /// What `answer` says that the request did.
    pub fn effect(&self, answer: &Value) -> Effect {
        let metadata = &answer["metadata"];
        let no_finalizer = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        // A deletion that is complete is answered by a Status; what is being deleted goes with its last finalizer.
        let is_gone = (matches!(self, Self::Delete { .. }) && answer["kind"] == "Status")
            || (!metadata["deletionTimestamp"].is_null() && no_finalizer);
        if !self.is_write() || self.changed_nothing(answer) {
            Effect::Nothing
        } else if is_gone {
            Effect::Gone
        } else {
            Effect::Stored
        }
    }

    /// Whether the object still has the version that was asked for.
    fn changed_nothing(&self, answer: &Value) -> bool {
        let asked = match self {
            Self::MergePatch { target: _, body }
            | Self::ApplyStatus { target: _, manager: _, body }
            | Self::MergeStatus { target: _, manager: _, body } => body.pointer(RESOURCE_VERSION),
            Self::JsonPatch { target: _, operations } => {
                let asks = |operation: &&Value| operation["path"] == RESOURCE_VERSION;
                operations.iter().find(asks).map(|operation| &operation["value"])
            }
            Self::Create { .. } | Self::Delete { .. } | Self::Get { .. } | Self::List { .. } => None,
        };
        asked.is_some_and(|version| version.is_string() && Some(version) == answer.pointer(RESOURCE_VERSION))
    }

    /// The status that the request applies, and to which object of ours; the status of a Cluster is not one of these.
    pub fn applied_status(&self) -> Option<(&ObjectKey, &Value)> {
        match self {
            Self::ApplyStatus { target, manager: _, body } => Some((target, &body["status"])),
            Self::MergeStatus { .. }
            | Self::Create { .. }
            | Self::MergePatch { .. }
            | Self::JsonPatch { .. }
            | Self::Delete { .. }
            | Self::Get { .. }
            | Self::List { .. } => None,
        }
    }
}

/// What a request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the object is as it was asked for. Whoever asked has seen that version, so there is nothing to look
    /// at again; a pass that did would ask for the same without an end.
    Nothing,
    /// The object is as it was answered.
    Stored,
    /// The object is gone. The answer does not tell at which version it went.
    Gone,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// The object as it is after the request; shared, so that whoever stores it makes no copy to answer.
    Object(Arc<Value>),
    /// The items of a list.
    Items(Vec<Value>),
    /// The API server refused.
    Refused(Refusal),
    /// No answer, or none that can be understood: the request may or may not have been carried out.
    NoAnswer(String),
}

/// A Status object of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, for example `AlreadyExists`.
    pub reason: String,
    /// Text.
    pub message: String,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this and give the answer to [`Executor::answer`].
    Send(Request),
    /// The pass is over.
    Done(Outcome),
}

/// How a pass ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Every action was carried out.
    Applied,
    /// The view was stale; the cache will catch up and start another pass.
    Conflict {
        /// Which action.
        action: usize,
        /// What the API server said.
        refusal: Refusal,
    },
    /// A live read found what the view does not show yet; the cache will catch up.
    Blocked {
        /// Which action was not carried out.
        action: usize,
        /// What is still there.
        by: ObjectKey,
    },
    /// The API server refused for another reason.
    Rejected {
        /// Which action.
        action: usize,
        /// What the API server said.
        refusal: Refusal,
    },
    /// No answer.
    NoAnswer {
        /// Which action.
        action: usize,
        /// What went wrong.
        message: String,
    },
}

/// Carries out one plan.
#[derive(Debug, Clone)]
pub struct Executor<'p> {
    actions: Cow<'p, [Action]>,
    /// Index of the action in hand.
    current: usize,
    /// How many of its live reads are done.
    queries_done: usize,
    /// uid and resourceVersion that each finished action returned.
    results: Vec<Option<(String, String)>>,
    outcome: Option<Outcome>,
}

impl<'p> Executor<'p> {
    /// An executor of `plan`.
    pub fn new(plan: &'p Plan) -> Self {
        let actions = Cow::Borrowed(plan.actions.as_slice());
        Self { actions, current: 0, queries_done: 0, results: Vec::new(), outcome: None }
    }

    /// The same, to keep when the plan is gone.
    pub fn into_owned(self) -> Executor<'static> {
        let Self { actions, current, queries_done, results, outcome } = self;
        Executor { actions: Cow::Owned(actions.into_owned()), current, queries_done, results, outcome }
    }

    /// The next step; the same until [`answer`](Self::answer) is called.
    pub fn next(&self) -> Step {
        if let Some(outcome) = &self.outcome {
            return Step::Done(outcome.clone());
        }
        let Some(action) = self.actions.get(self.current) else {
            return Step::Done(Outcome::Applied);
        };
        match action.unless.get(self.queries_done) {
            Some(query) => Step::Send(read(query)),
            None => match self.write(action) {
                Some(request) => Step::Send(request),
                None => Step::Done(Outcome::NoAnswer {
                    action: self.current,
                    message: "an earlier write of this pass returned no resourceVersion".to_owned(),
                }),
            },
        }
    }

    /// Takes the answer to the request that [`next`](Self::next) gave.
    pub fn answer(&mut self, response: &Response) {
        let Some(action) = self.actions.get(self.current) else { return };
        match action.unless.get(self.queries_done) {
            Some(query) => match found(query, response) {
                Ok(None) => self.queries_done += 1,
                Ok(Some(by)) => self.outcome = Some(Outcome::Blocked { action: self.current, by }),
                Err(failure) => self.outcome = Some(self.failed(failure)),
            },
            None => match response {
                Response::Object(object) => self.finished(version_of(object)),
                Response::Items(_) => self.finished(None),
                // What shall be deleted and is not there is deleted.
                Response::Refused(refusal) if refusal.code == 404 && action.op == Op::Delete => self.finished(None),
                failure @ (Response::Refused(_) | Response::NoAnswer(_)) => self.outcome = Some(self.failed(failure)),
            },
        }
    }

    fn finished(&mut self, version: Option<(String, String)>) {
        self.results.push(version);
        self.current += 1;
        self.queries_done = 0;
    }

    fn failed(&self, failure: &Response) -> Outcome {
        let action = self.current;
        match failure {
            // 404 on a patch: the object went; 409: it changed, or is there already.
            Response::Refused(refusal) if matches!(refusal.code, 404 | 409) => {
                Outcome::Conflict { action, refusal: refusal.clone() }
            }
            Response::Refused(refusal) => Outcome::Rejected { action, refusal: refusal.clone() },
            Response::NoAnswer(message) => Outcome::NoAnswer { action, message: message.clone() },
            Response::Object(_) | Response::Items(_) => {
                Outcome::NoAnswer { action, message: "the answer does not fit the request".to_owned() }
            }
        }
    }

    /// The request of `action`, with its precondition written into it.
    fn write(&self, action: &Action) -> Option<Request> {
        let target = action.target.clone();
        let version = match &action.precondition {
            Precondition::MustNotExist => None,
            Precondition::Observed { uid, resource_version } => Some((uid.clone(), Some(resource_version.clone()))),
            Precondition::AfterAction(index) => {
                let (uid, resource_version) = self.results.get(*index)?.clone()?;
                Some((uid, Some(resource_version)))
            }
            Precondition::Uid(uid) => Some((uid.clone(), None)),
        };
        Some(match &action.op {
            Op::Create { body } => Request::Create { target, body: body.clone() },
            Op::MergePatch { body } => {
                let mut body = body.clone();
                if let Some((uid, resource_version)) = version {
                    body["metadata"]["uid"] = json!(uid);
                    if let Some(resource_version) = resource_version {
                        body["metadata"]["resourceVersion"] = json!(resource_version);
                    }
                }
                Request::MergePatch { target, body }
            }
            Op::JsonPatch { operations } => {
                let mut guarded = Vec::with_capacity(operations.len() + 1);
                if let Some((_, Some(resource_version))) = version {
                    // A resourceVersion belongs to one incarnation of one object, so it guards the uid too.
                    guarded.push(json!({"op": "replace", "path": RESOURCE_VERSION, "value": resource_version}));
                }
                guarded.extend(operations.iter().cloned());
                Request::JsonPatch { target, operations: guarded }
            }
            Op::MergeStatus { manager, status } => {
                let (uid, resource_version) = version?;
                let mut metadata = json!({"uid": uid});
                if let Some(resource_version) = resource_version {
                    metadata["resourceVersion"] = json!(resource_version);
                }
                Request::MergeStatus { target, manager, body: json!({"metadata": metadata, "status": status}) }
            }
            Op::ApplyStatus { manager, status } => {
                let mut metadata = json!({"name": target.name});
                if let Some(namespace) = &target.namespace {
                    metadata["namespace"] = json!(namespace);
                }
                if let Some((uid, resource_version)) = version {
                    metadata["uid"] = json!(uid);
                    if let Some(resource_version) = resource_version {
                        metadata["resourceVersion"] = json!(resource_version);
                    }
                }
                let mut body = json!({"apiVersion": target.kind.api_version(), "kind": target.kind.name()});
                body["metadata"] = metadata;
                body["status"] = status.clone();
                Request::ApplyStatus { target, manager, body }
            }
            Op::Delete => {
                let (uid, resource_version) = version?;
                Request::Delete { target, uid, resource_version }
            }
        })
    }
}

fn read(query: &Query) -> Request {
    match query {
        Query::Object { key, counts: _ } => Request::Get { target: key.clone() },
        Query::Labelled { kind, label, value } => Request::List { kind: *kind, selector: format!("{label}={value}") },
    }
}

/// What `query` found, or the response if it is no answer to it.
fn found<'r>(query: &Query, response: &'r Response) -> Result<Option<ObjectKey>, &'r Response> {
    match (query, response) {
        (Query::Object { key, counts }, Response::Object(object)) => Ok(count(counts, object).then(|| key.clone())),
        (Query::Object { .. }, Response::Refused(refusal)) if refusal.code == 404 => Ok(None),
        // An API that is not served has no objects.
        (Query::Labelled { .. }, Response::Refused(refusal)) if refusal.code == 404 => Ok(None),
        (Query::Labelled { kind, label: _, value: _ }, Response::Items(items)) => Ok(items.first().map(|item| {
            let text = |pointer| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            ObjectKey::new(*kind, text("/metadata/namespace"), text("/metadata/name"))
        })),
        (Query::Object { .. } | Query::Labelled { .. }, other) => Err(other),
    }
}

fn count(counts: &Counts, object: &Value) -> bool {
    match counts {
        Counts::Any => true,
        Counts::LabelAbsentOr { label, value } => {
            match object["metadata"]["labels"].get(label).and_then(Value::as_str) {
                Some(found) => found == value,
                None => true,
            }
        }
        Counts::OwnedBy { kind, name, uid } => {
            let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners
                .map(|owner| {
                    ["apiVersion", "kind", "name", "uid"].map(|field| owner[field].as_str().unwrap_or_default())
                })
                .any(|[version, found, its_name, its_uid]| {
                    meta::is_reference_to(*kind, name, uid, (version, found, its_name, its_uid))
                })
        }
        Counts::SecretKey { key } => {
            object["data"].get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
        }
    }
}

fn version_of(object: &Value) -> Option<(String, String)> {
    let text = |field: &str| object["metadata"].get(field).and_then(Value::as_str).map(str::to_owned);
    Some((text("uid")?, text("resourceVersion")?))
}

#[cfg(test)]
mod tests;
