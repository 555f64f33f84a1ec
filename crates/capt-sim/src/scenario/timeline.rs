//! What happened in a scenario, by time: states, conditions, events and writes.

use std::collections::BTreeMap;

use capt_reconcile::{
    executor::{Request, Response},
    object::{Kind, ObjectKey},
    plan::Event,
};
use capt_status::Time;
use serde::Serialize;
use serde_json::Value;

use crate::{Api, api::Change};

/// A write of CAPT.
#[derive(Debug, Clone)]
pub struct Write {
    /// When.
    pub at: Time,
    /// `create`, `patch`, `status`, `finalizers` or `delete`.
    pub verb: &'static str,
    /// Of what.
    pub object: Option<ObjectKey>,
    /// The code and reason of a refusal.
    pub refused: Option<String>,
}

impl Write {
    pub(super) fn new(request: &Request, response: &Response, at: Time) -> Self {
        let refused = match response {
            Response::Refused(refusal) => Some(format!("{} {}", refusal.code, refusal.reason)),
            Response::Object(_) | Response::Items(_) | Response::NoAnswer(_) => None,
        };
        Self { at, verb: verb(request), object: request.target().cloned(), refused }
    }
}

/// A word for a request.
pub const fn verb(request: &Request) -> &'static str {
    match request {
        Request::Create { .. } => "create",
        Request::MergePatch { .. } => "patch",
        Request::JsonPatch { .. } => "finalizers",
        Request::ApplyStatus { .. } | Request::MergeStatus { .. } => "status",
        Request::Delete { .. } => "delete",
        Request::Get { .. } => "get",
        Request::List { .. } => "list",
    }
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Seconds after the beginning.
    pub at: i64,
    /// `made`, `gone`, `state`, `condition`, `event` or `write`.
    pub what: &'static str,
    /// About which object.
    pub object: String,
    /// What is to be said.
    pub text: String,
}

/// What happened.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// When it began.
    pub begin: Time,
    pub(super) writes: Vec<Write>,
    pub(super) told: Vec<(Time, ObjectKey, Event)>,
}

impl Timeline {
    /// The lines, by time; those of the changes that `api` kept among them.
    pub fn lines(&self, api: &Api) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut add = |at: Time, what, object: &ObjectKey, text| {
            let at = at.as_unix() - self.begin.as_unix();
            lines.push(Line { at, what, object: object.to_string(), text });
        };
        let mut last: BTreeMap<&ObjectKey, &Value> = BTreeMap::new();
        for Change { key, resource_version: _, at, object } in api.changes(0) {
            let before = match object {
                Some(object) => last.insert(key, object),
                None => last.remove(key),
            };
            match (before, object) {
                (None, Some(_)) => add(*at, "made", key, String::new()),
                (_, None) => add(*at, "gone", key, String::new()),
                (Some(_), Some(_)) => {}
            }
            let Some(object) = object else { continue };
            let before = before.unwrap_or(&Value::Null);
            if before["status"]["state"] != object["status"]["state"] {
                let text = object["status"]["state"].as_str().unwrap_or_default().to_owned();
                add(*at, "state", key, text);
            }
            if matches!(key.kind, Kind::Secret | Kind::Template) {
                continue;
            }
            for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
                let word = |condition: &Value| {
                    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
                    let words = [text("type"), text("status"), text("reason"), text("message")];
                    words.join(" ").trim().to_owned()
                };
                let old = before["status"]["conditions"].as_array().into_iter().flatten();
                let old = old.into_iter().find(|old| old["type"] == condition["type"]).map(word);
                if old.as_ref() != Some(&word(condition)) {
                    add(*at, "condition", key, word(condition));
                }
            }
        }
        for Write { at, verb, object, refused } in &self.writes {
            if let Some(object) = object {
                let text = refused.as_ref().map_or_else(|| (*verb).to_owned(), |why| format!("{verb}, refused: {why}"));
                add(*at, "write", object, text);
            }
        }
        for (at, object, event) in &self.told {
            add(*at, "event", object, format!("{} {}", event.reason, event.note));
        }
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// Writes that CAPT made and that arrived.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }
}
