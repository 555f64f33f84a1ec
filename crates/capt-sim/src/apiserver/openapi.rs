//! OpenAPI v3, as far as kubectl needs it: schemas for `explain`, parameters for validation by the server.

use serde_json::{Map, Value, json};

use super::resources::{Resource, Version};

/// Path of a group version below `/openapi/v3/`.
fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The documents that there are.
pub(super) fn index<'a>(group_versions: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let paths: Map<String, Value> = group_versions
        .map(|(group, version)| {
            let path = path(group, version);
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            (path, url)
        })
        .collect();
    json!({"paths": paths})
}

/// The document of one group version.
pub(super) fn document<'a>(
    group: &str,
    version: &str,
    served: impl Iterator<Item = (&'a Resource, &'a Version)>,
) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    schemas.insert(
        META.to_owned(),
        json!({"type": "object", "description": "ObjectMeta is metadata that all persisted resources must have."}),
    );
    for (resource, served_version) in served {
        let kind = json!({"group": group, "version": version, "kind": resource.kind});
        let mut schema = served_version.published.clone();
        schema["properties"]["apiVersion"] = json!({"type": "string"});
        schema["properties"]["kind"] = json!({"type": "string"});
        schema["properties"]["metadata"] =
            json!({"allOf": [{"$ref": format!("#/components/schemas/{META}")}], "default": {}});
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
        let group_name = if group.is_empty() { "io.k8s.api.core" } else { group };
        let name = format!("{group_name}.{version}.{}", resource.kind);
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("/{}{namespace}/{}", path(group, version), resource.plural);
        let operation = |action: &str| {
            let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
            json!({
                "x-kubernetes-group-version-kind": kind, "x-kubernetes-action": action,
                "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
                "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
            })
        };
        paths.insert(collection.clone(), json!({"get": operation("list"), "post": operation("post")}));
        paths.insert(
            format!("{collection}/{{name}}"),
            json!({"get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete")}),
        );
        schemas.insert(name, schema);
    }
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::RELEASE}, "paths": paths, "components": {"schemas": schemas}})
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
