//! Whether the CRDs that are installed have the fields that this version writes.
//!
//! An older CRD prunes what it does not know and refuses values that its enums lack, in the midst of
//! a cluster's life; so a start waits until they are right. More than we know of is no harm.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

/// Fields told of one CRD; more would not help.
const TOLD: usize = 5;

/// What each installed CRD of ours lacks, by its name. CRDs that are not installed, or that cannot be
/// read in time, are left out: discovery tells of those.
pub async fn lacking(client: &Client, patience: Duration) -> Result<BTreeMap<String, Vec<String>>, kube::Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut found = BTreeMap::new();
    for ours in capt_api::crds::all() {
        let name = ours.metadata.name.clone().unwrap_or_default();
        let Ok(stored) = timeout(patience, crds.get_opt(&name)).await else { continue };
        let Some(theirs) = stored? else { continue };
        let mut fields = compare(&ours, &theirs);
        if !fields.is_empty() {
            let more = fields.len().saturating_sub(TOLD);
            fields.truncate(TOLD);
            if more > 0 {
                fields.push(format!("{more} more"));
            }
            found.insert(name, fields);
        }
    }
    Ok(found)
}

/// Paths of fields and enum values that `ours` has and `theirs` lacks.
fn compare(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Vec<String> {
    let mut fields = Vec::new();
    if ours.spec.names.kind != theirs.spec.names.kind {
        return vec![format!("kind {}", ours.spec.names.kind)];
    }
    for version in &ours.spec.versions {
        let schema = |crd: &CustomResourceDefinition| {
            let found = crd.spec.versions.iter().find(|other| other.name == version.name)?;
            serde_json::to_value(found.schema.as_ref()?.open_api_v3_schema.as_ref()?).ok()
        };
        match (schema(ours), schema(theirs)) {
            (Some(ours), Some(theirs)) => walk(&ours, &theirs, "", &mut fields),
            (Some(_), None) => fields.push(format!("version {}", version.name)),
            (None, _) => {}
        }
    }
    fields
}

fn walk(ours: &Value, theirs: &Value, path: &str, fields: &mut Vec<String>) {
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if let Some(values) = theirs["enum"].as_array() {
        let lacking = ours["enum"].as_array().into_iter().flatten().filter(|value| !values.contains(value));
        fields.extend(lacking.map(|value| format!("{path}={value}")));
    }
    for (name, field) in ours["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match theirs["properties"].get(name) {
            Some(other) => walk(field, other, &path, fields),
            None => fields.push(path),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if ours[inner].is_object() && theirs[inner].is_object() {
            walk(&ours[inner], &theirs[inner], &format!("{path}[]"), fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Our CRDs with `change` made to the schema of the first version.
    fn changed(change: impl Fn(&mut Value)) -> Vec<String> {
        let mut found = Vec::new();
        for ours in capt_api::crds::all() {
            let mut value = serde_json::to_value(&ours).unwrap();
            change(&mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]);
            found.extend(compare(&ours, &serde_json::from_value(value).unwrap()));
        }
        found
    }

    #[test]
    fn our_own_crds_lack_nothing_and_more_fields_do_no_harm() {
        assert_eq!(changed(|_| {}), Vec::<String>::new());
        assert_eq!(
            changed(|schema| schema["spec"]["properties"]["new"] = json!({"type": "string"})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_field_and_a_value_that_an_older_crd_lacks_are_named() {
        let found = changed(|schema| {
            if let Some(status) = schema["status"]["properties"].as_object_mut() {
                status.remove("state");
                if let Some(phase) = status.get_mut("phase") {
                    phase["enum"] = json!(["Creating", "Ready", "Failed"]);
                }
            }
        });
        assert!(found.contains(&"status.state".to_owned()), "{found:?}");
        assert!(found.contains(&r#"status.phase="Deleting""#.to_owned()), "{found:?}");
    }

    #[test]
    fn a_crd_that_holds_another_kind_is_told_by_the_kind() {
        let ours = capt_api::crds::all().into_iter().next().unwrap();
        let mut theirs = ours.clone();
        theirs.spec.names.kind = "CaptOther".to_owned();
        assert_eq!(compare(&ours, &theirs), [format!("kind {}", ours.spec.names.kind)]);
    }
}
