//! What is served, as clients ask for it: groups, versions, resources, and the version of the server.

use serde_json::{Value, json};

use super::{
    Answer, ApiServer, RELEASE, openapi,
    request::{Method, Request},
    resources::{Resource, Version},
};

/// `Content-Type` of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl ApiServer {
    /// The answer to a question about the server itself; `None` for anything else.
    pub(super) fn discover(&self, request: &Request) -> Option<Answer> {
        if request.method != Method::Get {
            return None;
        }
        let segments: Vec<&str> = request.path.split('/').filter(|segment| !segment.is_empty()).collect();
        let aggregated = request.accept.contains("APIGroupDiscoveryList") && request.accept.contains("v=v2");
        let body = match segments[..] {
            ["version"] => {
                let (major, minor) = RELEASE.trim_start_matches('v').split_once('.').unwrap_or_default();
                json!({"major": major, "minor": minor.split('.').next(), "gitVersion": RELEASE, "platform": "capt/sandbox",
                    "gitCommit": "", "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": ""})
            }
            ["healthz" | "livez" | "readyz"] => json!("ok"),
            ["api" | "apis"] if aggregated => {
                let wants_core = segments == ["api"];
                let groups: Vec<Value> = self
                    .groups()
                    .filter(|group| group.is_empty() == wants_core)
                    .map(|group| self.aggregated(group))
                    .collect();
                let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups});
                return Some(Answer::Body { code: 200, body, content_type: AGGREGATED, warnings: Vec::new() });
            }
            ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            ["apis"] => {
                let groups: Vec<Value> =
                    self.groups().filter(|group| !group.is_empty()).map(|group| self.group(group)).collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            }
            ["api", version] => self.resource_list("", version)?,
            ["apis", group] if self.groups().any(|known| known == group) => {
                let mut found = self.group(group);
                found["kind"] = json!("APIGroup");
                found["apiVersion"] = json!("v1");
                found
            }
            ["apis", group, version] => self.resource_list(group, version)?,
            ["openapi", "v3"] => openapi::index(self.group_versions()),
            ["openapi", "v3", "api", version] => openapi::document("", version, self.served("", version)),
            ["openapi", "v3", "apis", group, version] => openapi::document(group, version, self.served(group, version)),
            _ => return None,
        };
        Some(Answer::ok(body))
    }

    fn groups(&self) -> impl Iterator<Item = &str> {
        let mut groups: Vec<&str> = self.resources.all().map(|resource| resource.group.as_str()).collect();
        groups.dedup();
        groups.into_iter()
    }

    fn group_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.groups().flat_map(|group| self.versions(group).into_iter().map(move |version| (group, version)))
    }

    /// Served versions of a group, the preferred one first.
    fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions = Vec::new();
        for resource in self.resources.all().filter(|resource| resource.group == group) {
            for version in resource.versions.iter().filter(|version| version.served) {
                if !versions.contains(&version.name.as_str()) {
                    versions.push(&version.name);
                }
            }
        }
        versions
    }

    fn served<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
        let of_group = self.resources.all().filter(move |resource| resource.group == group);
        of_group.filter_map(move |resource| Some((&**resource, resource.version(version)?)))
    }

    fn group(&self, group: &str) -> Value {
        let versions: Vec<Value> = self
            .versions(group)
            .into_iter()
            .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
            .collect();
        json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
    }

    fn resource_list(&self, group: &str, version: &str) -> Option<Value> {
        let mut resources = Vec::new();
        for (resource, version) in self.served(group, version) {
            let mut entry = json!({
                "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
                "kind": resource.kind, "verbs": VERBS,
            });
            if !resource.short_names.is_empty() {
                entry["shortNames"] = json!(resource.short_names);
            }
            if !resource.categories.is_empty() {
                entry["categories"] = json!(resource.categories);
            }
            resources.push(entry);
            if version.status {
                resources.push(json!({
                    "name": format!("{}/status", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                    "kind": resource.kind, "verbs": ["get", "patch", "update"],
                }));
            }
        }
        if resources.is_empty() {
            return None;
        }
        let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Some(
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
        )
    }

    fn aggregated(&self, group: &str) -> Value {
        let versions: Vec<Value> = self
            .versions(group)
            .into_iter()
            .map(|name| {
                let resources: Vec<Value> = self
                    .served(group, name)
                    .map(|(resource, version)| {
                        let kind = json!({"group": group, "version": name, "kind": resource.kind});
                        let subresources = if version.status {
                            json!([{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}])
                        } else {
                            json!([])
                        };
                        json!({
                            "resource": resource.plural, "responseKind": kind, "singularResource": resource.singular,
                            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "verbs": VERBS,
                            "shortNames": resource.short_names, "categories": resource.categories, "subresources": subresources,
                        })
                    })
                    .collect();
                json!({"version": name, "resources": resources, "freshness": "Current"})
            })
            .collect();
        json!({"metadata": {"name": group}, "versions": versions})
    }
}

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
