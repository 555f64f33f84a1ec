//! Fields of our statuses that another operator wrote by update, as the Go implementation did.
//!
//! Server-side apply removes what its manager no longer sends only where nobody else owns it, so what an
//! update left would stay for ever: a failure that is over, a condition that is no more. Before our first
//! status of such an object its entries become one of ours, whatever their manager is called. Conditions
//! of other writers stay with them.

use serde_json::{Map, Value, json};

/// Whether an entry of `metadata.managedFields` is an update of the status.
pub fn is_update_of_status(operation: Option<&str>, subresource: Option<&str>) -> bool {
    operation == Some("Update") && subresource == Some("status")
}

/// `entries` with the status as applied by `manager`; `None` if no update owns anything of ours.
/// `conditions` are the condition types that are ours.
pub fn taken_over(entries: &[Value], manager: &str, conditions: &[&str]) -> Option<Vec<Value>> {
    let (mut rest, mut moved, mut last) = (Vec::new(), Map::new(), None);
    for entry in entries {
        if !is_update_of_status(entry["operation"].as_str(), entry["subresource"].as_str()) {
            rest.push(entry.clone());
            continue;
        }
        let (ours, others) = split(&entry["fieldsV1"]["f:status"], conditions);
        merge(&mut moved, ours);
        last = Some(entry);
        if !others.is_empty() {
            let mut entry = entry.clone();
            entry["fieldsV1"] = json!({ "f:status": others });
            rest.push(entry);
        }
    }
    let last = last.filter(|_| !moved.is_empty())?;
    let is_ours = |entry: &&mut Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry["subresource"] == "status"
    };
    match rest.iter_mut().find(is_ours) {
        Some(entry) => {
            if let Some(fields) = entry["fieldsV1"]["f:status"].as_object().cloned() {
                merge(&mut moved, fields);
            }
            entry["fieldsV1"]["f:status"] = Value::Object(moved);
        }
        None => rest.push(json!({
            "manager": manager,
            "operation": "Apply",
            "apiVersion": last["apiVersion"],
            "time": last["time"],
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": moved},
            "subresource": "status",
        })),
    }
    Some(rest)
}

/// The fields of a status that are ours, and those that are not.
fn split(status: &Value, conditions: &[&str]) -> (Map<String, Value>, Map<String, Value>) {
    let (mut ours, mut others) = (Map::new(), Map::new());
    for (name, fields) in status.as_object().into_iter().flatten() {
        match fields.as_object().filter(|_| name == "f:conditions") {
            // The list as a whole, from a CRD in which it was no map.
            Some(items) if items.is_empty() => {
                let items = conditions.iter().map(|type_| (item(type_), json!({".": {}})));
                ours.insert(name.clone(), Value::Object(items.collect()));
            }
            Some(items) => {
                let is_ours = |key: &String| key == "." || conditions.iter().any(|type_| *key == item(type_));
                let (mine, theirs): (Map<_, _>, Map<_, _>) =
                    items.clone().into_iter().partition(|(key, _)| is_ours(key));
                if !mine.is_empty() {
                    ours.insert(name.clone(), Value::Object(mine));
                }
                if !theirs.is_empty() {
                    others.insert(name.clone(), Value::Object(theirs));
                }
            }
            None => drop(ours.insert(name.clone(), fields.clone())),
        }
    }
    (ours, others)
}

/// The key of a condition in a set of fields.
fn item(type_: &str) -> String {
    format!("k:{}", json!({ "type": type_ }))
}

fn merge(into: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(inner)), Value::Object(fields)) => merge(inner, fields),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(manager: &str, status: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "g/v1beta1", "time": "2025-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:status": status}, "subresource": "status"})
    }

    fn spec() -> Value {
        json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:region": {}}}})
    }

    #[test]
    fn an_update_of_any_manager_becomes_ours() {
        let fields =
            json!({"f:ready": {}, "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}});
        let entries = [spec(), update("manager", &fields), update("other", &json!({"f:failureReason": {}}))];
        let found = taken_over(&entries, "capt-x", &["Ready"]).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], spec());
        let mut expected = fields;
        expected["f:failureReason"] = json!({});
        assert_eq!(found[1]["fieldsV1"]["f:status"], expected);
        let entry = ["manager", "operation", "subresource", "apiVersion"].map(|field| found[1][field].clone());
        assert_eq!(entry, ["capt-x", "Apply", "status", "g/v1beta1"]);
        assert_eq!(taken_over(&found, "capt-x", &["Ready"]), None, "once");
        assert_eq!(taken_over(&[spec()], "capt-x", &[]), None);
    }

    #[test]
    fn what_is_ours_already_is_kept() {
        let mut ours = update("capt-x", &json!({"f:state": {}, "f:health": {"f:status": {}}}));
        ours["operation"] = json!("Apply");
        let entries = [ours, update("manager", &json!({"f:health": {"f:checks": {}}}))];
        let found = taken_over(&entries, "capt-x", &[]).unwrap();
        assert_eq!(found.len(), 1);
        let expected = json!({"f:state": {}, "f:health": {"f:status": {}, "f:checks": {}}});
        assert_eq!(found[0]["fieldsV1"]["f:status"], expected);
    }

    #[test]
    fn only_our_own_apply_of_the_status_is_added_to() {
        for (field, value) in [("manager", "other"), ("operation", "Update"), ("subresource", "")] {
            let mut theirs = json!({"manager": "capt-x", "operation": "Apply", "subresource": "status",
                "fieldsV1": {"f:spec": {}}});
            theirs[field] = json!(value);
            if field == "operation" {
                theirs["subresource"] = json!("scale");
            }
            let found = taken_over(&[theirs.clone(), update("m", &json!({"f:ready": {}}))], "capt-x", &[]).unwrap();
            assert_eq!(found[0], theirs);
            assert_eq!((found.len(), &found[1]["fieldsV1"]), (2, &json!({"f:status": {"f:ready": {}}})), "{field}");
        }
    }

    #[test]
    fn conditions_of_others_stay_theirs() {
        let theirs = json!({".": {}, "f:status": {}});
        let conditions = json!({"k:{\"type\":\"Ready\"}": {".": {}}, "k:{\"type\":\"x.io/Audited\"}": theirs});
        let found = taken_over(&[update("m", &json!({ "f:conditions": conditions }))], "capt-x", &["Ready"]).unwrap();
        assert_eq!(
            found[0]["fieldsV1"]["f:status"],
            json!({"f:conditions": {"k:{\"type\":\"x.io/Audited\"}": theirs}})
        );
        assert_eq!(found[1]["fieldsV1"]["f:status"], json!({"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}}}}));
        assert_eq!(taken_over(&found, "capt-x", &["Ready"]), None);
        // A list without keys held ours, and nothing says whether it held theirs.
        let found = taken_over(&[update("m", &json!({"f:conditions": {}}))], "capt-x", &["Ready"]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["fieldsV1"]["f:status"], json!({"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}}}}));
    }
}
