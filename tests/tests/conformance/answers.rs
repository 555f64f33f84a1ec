//! What a server has given so far, the request that follows from it, and answers without what differs
//! between any two servers.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::{
    parts::Kind,
    steps::{Named, Step, Verb, basis},
};

/// A request as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.code < 300
    }
}

/// Uids and versions of one server, by the order in which it gave them; and its objects as they were seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    uids: Vec<String>,
    versions: Vec<String>,
    seen: BTreeMap<(Kind, String), Vec<Value>>,
}

/// Number of `text` in `known`, which it joins.
fn number(known: &mut Vec<String>, text: &str) -> usize {
    known.iter().position(|known| known == text).unwrap_or_else(|| {
        known.push(text.to_owned());
        known.len() - 1
    })
}

impl Names {
    /// The request that `step` is to this server.
    pub(crate) fn fill(&self, step: &Step) -> Request {
        let Step { kind, name, namespace, verb, status, query } = step;
        let (collection, none) = (kind.path(namespace), Vec::new());
        let object = format!("{collection}/{name}{}", if *status { "/status" } else { "" });
        let seen = self.seen.get(&(*kind, (*name).to_owned())).unwrap_or(&none);
        let find = |named: Named, field: &str, other: &str| match named {
            Named::Nothing => Value::Null,
            Named::Last => seen.last().map_or(Value::Null, |object| object["metadata"][field].clone()),
            Named::First => seen.first().map_or(Value::Null, |object| object["metadata"][field].clone()),
            Named::Other => json!(other),
        };
        let version = |named| find(named, "resourceVersion", "999999999");
        let uid = |named| find(named, "uid", "00000000-0000-0000-0000-000000000000");
        let complete = |body: &Value| {
            let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {"name": name}});
            json_patch::merge(&mut object, body);
            object
        };
        let (method, path, content_type, body) = match verb {
            Verb::Create(body) => (Method::POST, collection, "application/json", Some(complete(body))),
            Verb::Get => (Method::GET, object, "", None),
            Verb::List => (Method::GET, collection, "", None),
            Verb::Replace { edits, version: of_version, uid: of_uid } => {
                let mut body = seen.last().cloned().unwrap_or_else(|| complete(&basis(*kind)));
                json_patch::merge(&mut body, edits);
                body["metadata"]["resourceVersion"] = version(*of_version);
                if *of_uid != Named::Last {
                    body["metadata"]["uid"] = uid(*of_uid);
                }
                (Method::PUT, object, "application/json", Some(body))
            }
            Verb::Merge { patch, version: of_version } => {
                let mut body = patch.clone();
                if *of_version != Named::Nothing {
                    json_patch::merge(&mut body, &json!({"metadata": {"resourceVersion": "v"}}));
                    body["metadata"]["resourceVersion"] = version(*of_version);
                }
                (Method::PATCH, object, "application/merge-patch+json", Some(body))
            }
            Verb::Json(operations) => (Method::PATCH, object, "application/json-patch+json", Some(operations.clone())),
            Verb::Apply(body) => (Method::PATCH, object, "application/apply-patch+yaml", Some(complete(body))),
            Verb::Delete { version: of_version, uid: of_uid, propagation } => {
                let preconditions = json!({"resourceVersion": version(*of_version), "uid": uid(*of_uid)});
                let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions,
                    "propagationPolicy": propagation});
                (Method::DELETE, object, "application/json", Some(options))
            }
        };
        let body = body.map(|body| self.with_uids(&body));
        Request { method, target: format!("{path}?{}", query.join("&")), content_type, body }
    }

    /// Puts in the uids of objects that a body refers to by name.
    fn with_uids(&self, body: &Value) -> Value {
        match body {
            Value::String(text) if text == "uid of ConfigMap a" => {
                let seen = self.seen.get(&(Kind::ConfigMap, "a".to_owned())).and_then(|seen| seen.last());
                seen.map_or_else(|| json!("none"), |object| object["metadata"]["uid"].clone())
            }
            Value::Array(items) => items.iter().map(|item| self.with_uids(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), self.with_uids(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => body.clone(),
        }
    }

    /// Remembers what the answer says, and takes out of it what is this server's alone.
    pub(crate) fn learn(&mut self, step: &Step, answer: Answer) -> Answer {
        let Answer { code, mut body } = answer;
        let is_dry = step.query.iter().any(|parameter| parameter == "dryRun=All");
        if code < 300 && !is_dry && body["kind"] == step.kind.name() {
            self.seen.entry((step.kind, step.name.to_owned())).or_default().push(body.clone());
        }
        if body["items"].is_array() {
            for item in body["items"].as_array_mut().into_iter().flatten() {
                self.simplify(item, true);
            }
            body = json!({"items": body["items"]});
        } else if body["kind"] == "Status" {
            self.simplify_status(&mut body);
        } else {
            self.simplify(&mut body, !is_dry);
        }
        Answer { code, body }
    }

    fn simplify(&mut self, object: &mut Value, keep: bool) {
        let metadata = &mut object["metadata"];
        for time in ["creationTimestamp", "deletionTimestamp"] {
            if metadata[time].is_string() {
                metadata[time] = json!("a time");
            }
        }
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let version = metadata["resourceVersion"].as_str().unwrap_or_default().to_owned();
        // What a dry run gives is not seen again.
        metadata["uid"] = if keep { json!(number(&mut self.uids, &uid)) } else { json!(self.uids.contains(&uid)) };
        metadata["resourceVersion"] =
            if keep { json!(number(&mut self.versions, &version)) } else { json!(self.versions.contains(&version)) };
        for owner in metadata["ownerReferences"].as_array_mut().into_iter().flatten() {
            if let Some(at) = owner["uid"].as_str().and_then(|uid| self.uids.iter().position(|known| known == uid)) {
                owner["uid"] = json!(at);
            }
        }
        if let Some(entries) = metadata["managedFields"].as_array_mut() {
            for entry in entries.iter_mut() {
                entry["time"] = Value::Null;
            }
            // They are ordered by time, and a second may begin anywhere.
            entries.sort_by_key(ToString::to_string);
            // Owners are named by uid.
            let mut text = metadata["managedFields"].to_string();
            for (at, uid) in self.uids.iter().enumerate().filter(|(_, uid)| !uid.is_empty()) {
                text = text.replace(uid, &format!("uid {at}"));
            }
            metadata["managedFields"] = serde_json::from_str(&text).unwrap();
        }
    }

    fn simplify_status(&mut self, status: &mut Value) {
        if let Some(uid) = status["details"]["uid"].as_str() {
            status["details"]["uid"] = json!(number(&mut self.uids, uid));
        }
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        let mut causes: Vec<Value> =
            causes.map(|cause| json!({"reason": cause["reason"], "field": cause["field"]})).collect();
        causes.sort_by_key(ToString::to_string);
        causes.dedup();
        let (mut details, text) = (status["details"].clone(), status["message"].clone());
        for field in ["name", "kind", "group"] {
            // Empty or not there.
            if details[field] == "" {
                details[field] = Value::Null;
            }
        }
        *status = json!({"kind": "Status", "status": status["status"], "reason": status["reason"], "text": text,
            "details": {"name": details["name"], "kind": details["kind"], "group": details["group"],
                "uid": details["uid"], "causes": causes}});
    }
}

/// The first place in which two answers differ; what they say to people does not count.
pub(crate) fn difference(real: &Answer, model: &Answer) -> Option<String> {
    if real.code != model.code {
        let text = |answer: &Answer| format!("{} {}", answer.code, answer.body["text"].as_str().unwrap_or_default());
        return Some(format!("real: {}\n  model: {}", text(real), text(model)));
    }
    walk("", &real.body, &model.body)
}

fn walk(path: &str, real: &Value, model: &Value) -> Option<String> {
    match (real, model) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            let shown = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
            names
                .into_iter()
                .filter(|name| *name != "text")
                .find_map(|name| walk(&format!("{path}.{name}"), &shown(real, name), &shown(model, name)))
                .map(|told| match (path, real["text"].as_str(), model["text"].as_str()) {
                    ("", Some(left), Some(right)) => format!("{told}\n  real: {left}\n  model: {right}"),
                    _ => told,
                })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| walk(&format!("{path}[{at}]"), left, right)),
        _ => (real != model).then(|| format!("{path}: real {real}, model {model}")),
    }
}
