//! Lists and watches.

use std::{collections::VecDeque, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    Answer, ApiServer, meta,
    request::{Request, Target},
    resources::{EVENTS, Nature, Resource},
    selector::Selector,
    shown,
    status::Status,
    store::Id,
    table,
};

/// Objects and where they are.
pub(super) type Objects = Vec<(Id, Arc<Value>)>;

/// A watch that is being followed.
#[derive(Debug)]
pub struct Watch {
    request: Request,
    resource: Arc<Resource>,
    version: String,
    namespace: Option<String>,
    selector: Selector,
    /// Changes up to this version were told.
    seen: u64,
    /// Events that come before any change.
    first: VecDeque<Value>,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    /// How long the client wants to listen.
    pub seconds: Option<u64>,
    is_over: bool,
}

/// Events that a watch gets now.
#[derive(Debug, PartialEq)]
pub struct Followed {
    /// Events, oldest first.
    pub events: Vec<Value>,
    /// Whether the watch ends with them.
    pub is_over: bool,
}

impl ApiServer {
    /// A list, or the beginning of a watch.
    pub(super) fn collection(
        &self,
        request: &Request,
        target: &Target,
        resource: &Arc<Resource>,
    ) -> Result<Answer, Status> {
        if target.namespace.is_some() && !resource.namespaced {
            return Err(Status::no_such_resource());
        }
        if request.flag("watch") {
            return self.watch(request, target, resource).map(|watch| Answer::Watch(Box::new(watch)));
        }
        let (version, objects) = self.selected(request, target, resource)?;
        let limit = request.number("limit")?.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok());
        let after = match request.parameter("continue") {
            "" => None,
            token => Some(position(token)?.1),
        };
        let mut rest = objects
            .into_iter()
            .filter(|(id, _)| after.as_ref().is_none_or(|after| (&id.namespace, &id.name) > (&after.0, &after.1)));
        let mut page: Objects = rest.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
        let left = rest.count();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if let (true, Some((last, _))) = (left > 0, page.last()) {
            let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": [last.namespace, last.name]});
            metadata["continue"] = json!(URL_SAFE_NO_PAD.encode(token.to_string()));
            // With a selector the API server does not count what is left.
            if request.parameter("labelSelector").is_empty() && request.parameter("fieldSelector").is_empty() {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        // A list of a built-in kind says once what its items are.
        let item = |mut object: Value| {
            if resource.nature != Nature::Custom {
                meta::clear(&mut object, "apiVersion");
                meta::clear(&mut object, "kind");
            }
            object
        };
        let items: Vec<Value> = page
            .drain(..)
            .map(|(_, object)| shown(resource, &target.version, Value::clone(&object)))
            .map(item)
            .collect();
        Ok(Answer::ok(table::presented_list(request, resource, &target.version, items, &metadata)))
    }

    /// The version of a list, and all objects that it selects, by namespace and name.
    pub(super) fn selected(
        &self,
        request: &Request,
        target: &Target,
        resource: &Resource,
    ) -> Result<(u64, Objects), Status> {
        let selector = selector(request, resource)?;
        let current = self.store.version();
        let exact = match (request.parameter("continue"), request.number("resourceVersion")?) {
            ("", Some(wanted)) if wanted > current => return Err(Status::too_new(wanted, current)),
            ("", Some(wanted)) if request.parameter("resourceVersionMatch") == "Exact" => Some(wanted),
            ("", _) => None,
            (token, _) => Some(position(token)?.0),
        };
        let group = group(resource);
        let namespace = target.namespace.as_deref();
        let objects: Objects = match exact {
            None => self.store.list(group, &resource.plural, namespace).map(|(id, object)| (id.clone(), Arc::clone(object))).collect(),
            Some(version) => self
                .store
                .list_at(group, &resource.plural, namespace, version)
                .ok_or_else(|| Status::expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter."))?
                .into_iter()
                .collect(),
        };
        let wanted = objects.into_iter().filter(|(_, object)| selector.matches(object)).collect();
        Ok((exact.unwrap_or(current), wanted))
    }

    fn watch(&self, request: &Request, target: &Target, resource: &Arc<Resource>) -> Result<Watch, Status> {
        let wanted = request.number("resourceVersion")?;
        let initial = request.flag("sendInitialEvents");
        let current = self.store.version();
        if let Some(wanted) = wanted.filter(|wanted| *wanted > current) {
            return Err(Status::too_new(wanted, current));
        }
        let mut watch = Watch {
            selector: selector(request, resource)?,
            request: request.clone(),
            resource: Arc::clone(resource),
            version: target.version.clone(),
            namespace: target.namespace.clone(),
            seen: wanted.filter(|wanted| *wanted > 0 && !initial).unwrap_or(current),
            first: VecDeque::new(),
            bookmarks: request.flag("allowWatchBookmarks"),
            seconds: request.number("timeoutSeconds")?,
            is_over: false,
        };
        // Without a version to start from everything that is there is told first.
        if wanted.is_none_or(|wanted| wanted == 0) && request.parameter("sendInitialEvents") != "false" || initial {
            let there = self.store.list(group(resource), &resource.plural, target.namespace.as_deref());
            let there: Vec<Value> = there
                .filter(|(_, object)| watch.selector.matches(object))
                .map(|(_, object)| watch.event("ADDED", object))
                .collect();
            watch.first.extend(there);
            if initial && watch.bookmarks {
                let end = watch.bookmark(true);
                watch.first.push_back(end);
            }
        }
        Ok(watch)
    }

    /// What `watch` has not been told yet.
    pub fn follow(&self, watch: &mut Watch) -> Followed {
        let mut events: Vec<Value> = watch.first.drain(..).collect();
        if self.resources.get(&watch.resource.group, &watch.resource.plural).is_none() {
            watch.is_over = true;
        } else if let Some(changes) = self.store.since(watch.seen) {
            for change in changes {
                watch.seen = change.version;
                events.extend(watch.told(&change.id, change.version, change.old.as_deref(), change.new.as_deref()));
            }
        } else {
            let message = format!("too old resource version: {} ({})", watch.seen, self.store.compacted());
            events.push(json!({"type": "ERROR", "object": Status::expired(message).body()}));
            watch.is_over = true;
        }
        Followed { events, is_over: watch.is_over }
    }
}

impl Watch {
    /// A bookmark at the version up to which everything was told.
    pub fn bookmark(&self, ends_initial_events: bool) -> Value {
        let mut object = json!({
            "kind": self.resource.kind, "apiVersion": self.resource.api_version(&self.version),
            "metadata": {"resourceVersion": self.seen.to_string(), "creationTimestamp": null},
        });
        if ends_initial_events {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        json!({"type": "BOOKMARK", "object": table::presented(&self.request, &self.resource, &self.version, object)})
    }

    /// What a watch with this selector sees of a change.
    fn told(&self, id: &Id, version: u64, old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
        if id.group != group(&self.resource)
            || id.plural != self.resource.plural
            || self.namespace.as_ref().is_some_and(|namespace| *namespace != id.namespace)
        {
            return None;
        }
        let old = old.filter(|old| self.selector.matches(old));
        let new = new.filter(|new| self.selector.matches(new));
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(self.event("ADDED", new)),
            (Some(_), Some(new)) => Some(self.event("MODIFIED", new)),
            (Some(old), None) => {
                let mut last = old.clone();
                last["metadata"]["resourceVersion"] = json!(version.to_string());
                Some(self.event("DELETED", &last))
            }
        }
    }

    fn event(&self, type_: &str, object: &Value) -> Value {
        let object = shown(&self.resource, &self.version, object.clone());
        json!({"type": type_, "object": table::presented(&self.request, &self.resource, &self.version, object)})
    }
}

/// The group under which objects of a resource are stored.
fn group(resource: &Resource) -> &str {
    if resource.group == EVENTS { "" } else { &resource.group }
}

/// Version and last (namespace, name) of a continue token.
fn position(token: &str) -> Result<(u64, (String, String)), Status> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let read = |value: &Value| {
        let text = |index: usize| value["start"][index].as_str().map(str::to_owned);
        Some((value["rv"].as_u64()?, (text(0)?, text(1)?)))
    };
    decoded.as_ref().and_then(read).ok_or_else(|| Status::bad_request("continue key is not valid"))
}

fn selector(request: &Request, resource: &Resource) -> Result<Selector, Status> {
    let selector = Selector::parse(request.parameter("labelSelector"), request.parameter("fieldSelector"))
        .map_err(Status::bad_request)?;
    let allowed: &[&str] = match resource.nature {
        Nature::Secret => &["type"],
        Nature::Namespace => &["status.phase"],
        Nature::Event => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Nature::Custom | Nature::Definition | Nature::Plain => &[],
    };
    for name in selector.field_names() {
        let known = ["metadata.name", "metadata.namespace"].contains(&name)
            || allowed.contains(&name)
            || resource.selectable.iter().any(|path| path.trim_start_matches('.') == name);
        if !known {
            return Err(Status::bad_request(format!("field label not supported: {name}")));
        }
    }
    Ok(selector)
}
