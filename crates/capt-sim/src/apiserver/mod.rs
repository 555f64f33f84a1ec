//! A model of kube-apiserver: a state machine without I/O and without a clock.
//!
//! ```text
//! Request, now --> ApiServer::handle --> Answer (an object, a refusal, or a watch to be followed)
//! ```
//!
//! It serves what it is given: built-in kinds that CAPT and kubectl touch, and whatever CRDs define.
//! What it leaves out on purpose (authorisation, admission webhooks, conversion) is listed in
//! `docs/verification.md`. [`collect`](ApiServer::collect) is the garbage and namespace collection of
//! kube-controller-manager, one step at a time. [`service`](crate::service) puts HTTP around it.

pub mod collect;
mod discovery;
mod events;
pub mod fields;
mod meta;
mod openapi;
pub mod read;
pub mod request;
pub mod resources;
pub mod schema;
pub mod selector;
pub mod status;
pub mod store;
mod table;
pub mod write;

use std::sync::Arc;

use capt_status::Time;
use serde_json::{Value, json};

use self::{
    read::Watch,
    request::{Method, Request, Target},
    resources::{EVENTS, Nature, Resource, Resources},
    status::Status,
    store::{Id, Store},
    write::{DeleteOptions, Done, PatchKind, Propagation, Unknown, Write},
};

/// How many changes are remembered for watches.
const HISTORY: usize = 20_000;
/// The release whose behaviour is modelled.
pub const RELEASE: &str = "v1.36.3";

/// The API server.
#[derive(Debug, Clone)]
pub struct ApiServer {
    resources: Resources,
    store: Store,
    /// How many uids and name suffixes were given.
    given: u64,
}

/// What a request leads to.
#[derive(Debug)]
pub enum Answer {
    /// One body.
    Body {
        /// HTTP status code.
        code: u16,
        /// JSON.
        body: Value,
        /// `Content-Type`.
        content_type: &'static str,
        /// Texts for `Warning` headers.
        warnings: Vec<String>,
    },
    /// A stream of events; [`ApiServer::follow`] gives them.
    Watch(Box<Watch>),
}

/// `Content-Type` of most answers.
pub const JSON: &str = "application/json";

impl Answer {
    fn ok(body: Value) -> Self {
        Self::Body { code: 200, body, content_type: JSON, warnings: Vec::new() }
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Body { code: status.code, body: status.body(), content_type: JSON, warnings: Vec::new() }
    }
}

/// Where a client asks what it may do.
const SELF_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Everything is allowed: there are no users here.
fn allowed(mut review: Value) -> Answer {
    review["status"] = json!({"allowed": true});
    Answer::Body { code: 201, body: review, content_type: JSON, warnings: Vec::new() }
}

impl Default for ApiServer {
    fn default() -> Self {
        let mut server = Self { resources: Resources::default(), store: Store::new(HISTORY), given: 0 };
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            // A new server has room for its own namespaces.
            let made = server.make("", "namespaces", "", namespace, Time::from_unix(0));
            debug_assert!(made.is_ok(), "{made:?}");
        }
        server
    }
}

impl ApiServer {
    /// Carries out a request at `now`.
    pub fn handle(&mut self, request: &Request, now: Time) -> Answer {
        self.route(request, now).unwrap_or_else(Answer::from)
    }

    fn route(&mut self, request: &Request, now: Time) -> Result<Answer, Status> {
        if let Some(answer) = self.discover(request) {
            return Ok(answer);
        }
        if request.path == SELF_REVIEWS && request.method == Method::Post {
            return Ok(allowed(request.document()?));
        }
        let target = Target::parse(&request.path).ok_or_else(Status::no_such_resource)?;
        let resource = self.resources.get(&target.group, &target.plural).ok_or_else(Status::no_such_resource)?;
        let resource = Arc::clone(resource);
        let version = resource.version(&target.version).ok_or_else(Status::no_such_resource)?;
        let is_status = match target.subresource.as_str() {
            "" => false,
            "status" if version.status => true,
            _ => return Err(Status::no_such_resource()),
        };
        let has_namespace = target.namespace.is_some();
        match (&target.name, request.method) {
            (None, Method::Get) => return self.collection(request, &target, &resource),
            // An object of a namespaced kind is always named with its namespace.
            _ if has_namespace != resource.namespaced => return Err(Status::no_such_resource()),
            _ => {}
        }
        let write = Write {
            id: id(&resource, target.namespace.as_deref(), target.name.as_deref()),
            version: target.version.clone(),
            status: is_status,
            manager: request.manager(),
            dry_run: request.parameter("dryRun") == "All",
            unknown: match request.parameter("fieldValidation") {
                "Strict" => Unknown::Strict,
                "Ignore" => Unknown::Ignore,
                "" | "Warn" => Unknown::Warn,
                other => return Err(Status::bad_request(format!("fieldValidation: unknown value {other}"))),
            },
            resource: Arc::clone(&resource),
            now,
        };
        let done = match (target.name.is_some(), request.method) {
            (true, Method::Get) => {
                let object = self.store.get(&write.id).ok_or_else(|| Status::not_found(&write.about()))?;
                Done { code: 200, object: Value::clone(object), warnings: Vec::new() }
            }
            (false, Method::Post) => {
                let object = events::stored(&resource.group, request.document()?);
                self.create(&in_store(write.clone()), object)?
            }
            (true, Method::Put) => {
                let object = events::stored(&resource.group, request.document()?);
                self.replace(&in_store(write.clone()), object)?
            }
            (true, Method::Patch) => self.patched(request, &in_store(write.clone()))?,
            (true, Method::Delete) => self.delete(&write, &delete_options(request)?)?,
            (false, Method::Delete) => return self.delete_collection(request, &target, &write),
            (true, Method::Post) | (false, Method::Get | Method::Put | Method::Patch) => {
                return Err(Status::method_not_allowed());
            }
        };
        let Done { code, object, warnings } = done;
        let object = shown(&resource, &target.version, object);
        let body = table::presented(request, &resource, &target.version, object);
        Ok(Answer::Body { code, body, content_type: JSON, warnings })
    }

    fn patched(&mut self, request: &Request, write: &Write) -> Result<Done, Status> {
        let body = request.document()?;
        let body = match body {
            Value::Object(_) => events::stored(&write.resource.group, body),
            other => other,
        };
        let is_custom = write.resource.nature == Nature::Custom;
        match request.media_type() {
            "application/merge-patch+json" => self.patch(write, PatchKind::Merge, &body),
            "application/strategic-merge-patch+json" if !is_custom => self.patch(write, PatchKind::Merge, &body),
            "application/json-patch+json" => self.patch(write, PatchKind::Json, &body),
            "application/apply-patch+yaml" => self.apply(write, &body, request.flag("force")),
            _ => Err(Status::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }

    fn delete_collection(&mut self, request: &Request, target: &Target, write: &Write) -> Result<Answer, Status> {
        let options = delete_options(request)?;
        let (_, objects) = self.selected(request, target, &write.resource)?;
        for (id, _) in objects {
            // One that went meanwhile is gone, as wanted.
            let _ = self.delete(&Write { id, ..write.clone() }, &options);
        }
        Ok(Answer::ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})))
    }

    /// Makes an object as an administrator does, through all checks.
    pub fn make(
        &mut self,
        group: &str,
        plural: &str,
        namespace: &str,
        object: Value,
        now: Time,
    ) -> Result<Done, Status> {
        let resource = self.resources.get(group, plural).ok_or_else(Status::no_such_resource)?;
        let version = object["apiVersion"].as_str().and_then(|version| version.rsplit('/').next()).unwrap_or_default();
        let write = Write {
            id: id(resource, Some(namespace), None),
            version: version.to_owned(),
            status: false,
            manager: "admin".to_owned(),
            dry_run: false,
            unknown: Unknown::Warn,
            resource: Arc::clone(resource),
            now,
        };
        self.create(&write, object)
    }

    /// Everything that is stored.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What is served.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Forgets the past, as etcd's compaction does: watches that are behind end with 410.
    pub fn compact(&mut self) {
        self.store.compact();
    }

    fn uid(&mut self) -> String {
        self.given += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.given)
    }

    fn suffix(&mut self) -> String {
        self.given += 1;
        format!("{:05x}", self.given)
    }
}

/// The object that a path names.
fn id(resource: &Resource, namespace: Option<&str>, name: Option<&str>) -> Id {
    Id {
        group: if resource.group == EVENTS { String::new() } else { resource.group.clone() },
        plural: resource.plural.clone(),
        namespace: if resource.namespaced { namespace.unwrap_or_default().to_owned() } else { String::new() },
        name: name.unwrap_or_default().to_owned(),
    }
}

/// `write` as the store takes it: an event of the newer group is one of the core group there.
fn in_store(mut write: Write) -> Write {
    if write.resource.group == EVENTS {
        let mut core = Resource::clone(&write.resource);
        core.group = String::new();
        write.resource = Arc::new(core);
        "v1".clone_into(&mut write.version);
    }
    write
}

/// An object as a version of a resource shows it.
fn shown(resource: &Resource, version: &str, mut object: Value) -> Value {
    if object["kind"] == json!(resource.kind) {
        object["apiVersion"] = json!(resource.api_version(version));
    }
    match resource.nature {
        Nature::Event => events::shown(&resource.group, object),
        Nature::Custom | Nature::Namespace | Nature::Secret | Nature::Definition | Nature::Plain => object,
    }
}

fn delete_options(request: &Request) -> Result<DeleteOptions, Status> {
    let body = if request.body.is_empty() { Value::Null } else { request.document()? };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let wanted = body["propagationPolicy"].as_str().unwrap_or_else(|| request.parameter("propagationPolicy"));
    Ok(DeleteOptions {
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: match wanted {
            "Foreground" => Some(Propagation::Foreground),
            "Orphan" => Some(Propagation::Orphan),
            "Background" => Some(Propagation::Background),
            _ if body["orphanDependents"] == true => Some(Propagation::Orphan),
            _ => None,
        },
    })
}
