//! The forms in which clients ask for objects: as they are, metadata alone, or as a table.

use jsonpath_rust::JsonPath;
use serde_json::{Value, json};

use super::{
    request::Request,
    resources::{Column, Nature, Resource},
};

/// What a client wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Metadata,
    Table,
}

fn form(request: &Request) -> Form {
    // The first form that is known here counts, as clients list them by preference.
    for choice in request.accept.split(',') {
        let asked =
            |form: &str| choice.split(';').any(|part| part.trim().strip_prefix("as=").is_some_and(|name| name == form));
        if asked("Table") {
            return Form::Table;
        }
        if asked("PartialObjectMetadata") || asked("PartialObjectMetadataList") {
            return Form::Metadata;
        }
        if choice.trim() == "application/json" || choice.trim() == "*/*" {
            return Form::Whole;
        }
    }
    Form::Whole
}

/// One object as the client wants it.
pub(super) fn presented(request: &Request, resource: &Resource, version: &str, object: Value) -> Value {
    if object["kind"] == "Status" {
        return object;
    }
    match form(request) {
        Form::Whole => object,
        Form::Metadata => metadata_of(&object),
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table(request, resource, version, vec![object], &metadata)
        }
    }
}

/// A list as the client wants it.
pub(super) fn presented_list(
    request: &Request,
    resource: &Resource,
    version: &str,
    items: Vec<Value>,
    metadata: &Value,
) -> Value {
    match form(request) {
        Form::Whole => json!({
            "kind": resource.list_kind, "apiVersion": resource.api_version(version), "metadata": metadata, "items": items,
        }),
        Form::Metadata => {
            let items: Vec<Value> = items.iter().map(metadata_of).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
        }
        Form::Table => table(request, resource, version, items, metadata),
    }
}

fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn table(request: &Request, resource: &Resource, version: &str, items: Vec<Value>, metadata: &Value) -> Value {
    let columns = columns(resource, version);
    let mut definitions = vec![json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace.",
    })];
    definitions.extend(columns.iter().map(|column| {
        json!({"name": column.name, "type": column.type_, "format": "", "priority": column.priority, "description": ""})
    }));
    let rows: Vec<Value> = items
        .into_iter()
        .map(|object| {
            let mut cells = vec![object["metadata"]["name"].clone()];
            cells.extend(columns.iter().map(|column| cell(column, &object)));
            let shown = match request.parameter("includeObject") {
                "None" => Value::Null,
                "Object" => object,
                _ => metadata_of(&object),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions, "rows": rows})
}

fn columns(resource: &Resource, version: &str) -> Vec<Column> {
    let column = |name: &str, type_: &str, path: &str| Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        path: path.to_owned(),
        priority: 0,
    };
    let age = || column("Age", "date", ".metadata.creationTimestamp");
    let found = resource.version(version).map(|version| version.columns.clone()).unwrap_or_default();
    if !found.is_empty() {
        return found;
    }
    match resource.nature {
        Nature::Namespace => vec![column("Status", "string", ".status.phase"), age()],
        Nature::Secret => vec![column("Type", "string", ".type"), age()],
        Nature::Event => vec![
            column("Type", "string", ".type"),
            column("Reason", "string", ".reason"),
            column("Object", "string", ".involvedObject.name"),
            column("Message", "string", ".message"),
        ],
        Nature::Custom | Nature::Definition | Nature::Plain => vec![age()],
    }
}

/// The value of a column: the first that its path finds, as its type says.
fn cell(column: &Column, object: &Value) -> Value {
    let found = object.query(&format!("${}", column.path)).ok().and_then(|found| found.first().copied().cloned());
    let Some(value) = found.filter(|value| !value.is_null()) else { return Value::Null };
    match (column.type_.as_str(), &value) {
        // kubectl makes the age of it.
        ("date", _) | ("string", Value::String(_)) => value,
        ("string", other) => json!(other.to_string()),
        ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value,
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell_of(type_: &str, path: &str) -> Value {
        let object = json!({"spec": {"n": 3, "s": "text"}, "status": {"ready": true, "conditions": [
            {"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]}});
        cell(&Column { name: String::new(), type_: type_.into(), path: path.into(), priority: 0 }, &object)
    }

    #[test]
    fn columns_find_what_their_paths_say() {
        assert_eq!(cell_of("string", ".status.conditions[?(@.type=='Ready')].status"), "True");
        assert_eq!(cell_of("boolean", ".status.ready"), true);
        assert_eq!(cell_of("integer", ".spec.n"), 3);
        assert_eq!(cell_of("string", ".spec.n"), "3");
        assert_eq!(cell_of("string", ".spec.absent"), Value::Null);
        assert_eq!(cell_of("integer", ".spec.s"), Value::Null);
    }
}
