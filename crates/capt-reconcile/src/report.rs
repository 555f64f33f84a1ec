//! Plans as JSON, for `plan -o json` and for reading: additive changes only, absolute times, and the
//! values of Secrets never shown.

use serde_json::{Value, json};

use crate::{
    object::{Kind, ObjectKey},
    plan::{Action, Counts, EventType, Op, Plan, Precondition, Query},
};

/// What stands in the place of a value.
const REDACTED: &str = "<redacted>";

/// All passes of one call, as one document of kind Plan.
pub fn passes(plans: &[Plan]) -> Value {
    json!({
        "apiVersion": "capt.cluster.x-k8s.io/v1alpha1",
        "kind": "Plan",
        "passes": plans.iter().map(pass).collect::<Vec<_>>(),
    })
}

fn pass(plan: &Plan) -> Value {
    let Plan { object, state, actions, events, next, note } = plan;
    json!({
        "object": reference(object),
        "state": state,
        "note": note,
        "actions": actions.iter().map(redacted).collect::<Vec<_>>(),
        "events": events.iter().map(|event| json!({
            "type": match event.type_ { EventType::Normal => "Normal", EventType::Warning => "Warning" },
            "reason": event.reason,
            "note": event.note,
        })).collect::<Vec<_>>(),
        "next": next,
    })
}

/// One action, the values of a Secret redacted.
pub fn redacted(action: &Action) -> Value {
    let Action { op, target, precondition, unless, reason } = action;
    let (name, mut body) = match op {
        Op::Create { body } => ("create", body.clone()),
        Op::MergePatch { body } => ("patch", body.clone()),
        Op::JsonPatch { operations } => ("jsonPatch", json!(operations)),
        Op::ApplyStatus { manager: _, status } => ("applyStatus", json!({ "status": status })),
        Op::MergeStatus { manager: _, status } => ("patchStatus", json!({ "status": status })),
        Op::Delete => ("delete", Value::Null),
    };
    if target.kind == Kind::Secret {
        for field in ["data", "stringData"] {
            for value in body.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut())
            {
                *value = json!(REDACTED);
            }
        }
    }
    let precondition = match precondition {
        Precondition::MustNotExist => json!({"mustNotExist": true}),
        Precondition::Observed { uid, resource_version } => json!({"uid": uid, "resourceVersion": resource_version}),
        Precondition::AfterAction(index) => json!({"afterAction": index}),
        Precondition::Uid(uid) => json!({"uid": uid}),
    };
    let mut value = json!({
        "op": name,
        "ref": reference(target),
        "precondition": precondition,
        "body": body,
        "reason": reason,
    });
    if !unless.is_empty() {
        value["unless"] = unless.iter().map(query).collect();
    }
    value
}

fn query(query: &Query) -> Value {
    match query {
        Query::Object { key, counts } => {
            let counts = match counts {
                Counts::Any => json!("any"),
                Counts::LabelAbsentOr { label, value } => json!({"labelAbsentOr": {*label: value}}),
                Counts::OwnedBy { kind, name, uid } => {
                    json!({"ownedBy": {"kind": kind.name(), "name": name, "uid": uid}})
                }
                Counts::SecretKey { key } => json!({"secretKey": key}),
            };
            json!({"ref": reference(key), "counts": counts})
        }
        Query::Labelled { kind, label, value } => {
            json!({"apiVersion": kind.api_version(), "kind": kind.name(), "labels": {*label: value}})
        }
    }
}

fn reference(key: &ObjectKey) -> Value {
    let mut reference = json!({"apiVersion": key.kind.api_version(), "kind": key.kind.name(), "name": key.name});
    if let Some(namespace) = &key.namespace {
        reference["namespace"] = json!(namespace);
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_secret_are_never_shown() {
        let action = |op| Action {
            op,
            target: ObjectKey::new(Kind::Secret, "ns", "s"),
            precondition: Precondition::MustNotExist,
            unless: Vec::new(),
            reason: "because".to_owned(),
        };
        let body = json!({"data": {"value": "Y2FuYXJ5"}, "stringData": {"other": "canary"}});
        for op in [Op::Create { body: body.clone() }, Op::MergePatch { body }] {
            let shown = redacted(&action(op)).to_string();
            assert!(!shown.contains("canary") && !shown.contains("Y2FuYXJ5") && shown.contains("other"), "{shown}");
        }
    }
}
