//! Our CRDs beside those of the Go implementation: every field is there, of the same type, and no
//! value of a spec that its CRDs take is refused by our schema. Needs those CRDs beside the project.

use std::collections::BTreeSet;

use capt_tests::{beside, documents, yaml_files};
use serde_json::{Value, json};

/// What differs on purpose, by field: the list of failure domains (Cluster API refuses the map), the
/// flag that may be a variable, and what belongs to one cluster alone and so not into a template.
const ON_PURPOSE: [&str; 7] = [
    "CAPTCluster.status.failureDomains",
    "WorkspaceTemplate.spec.template.spec.forProvider.enableTerraformCLILogging",
    "CAPTControlPlaneTemplate.spec.template.metadata.finalizers",
    "CAPTControlPlaneTemplate.spec.template.metadata.name",
    "CAPTControlPlaneTemplate.spec.template.metadata.namespace",
    "CAPTControlPlaneTemplate.spec.template.spec.controlPlaneEndpoint",
    "CAPTControlPlaneTemplate.spec.template.spec.workspaceTemplateApplyName",
];

fn strings(value: &Value) -> BTreeSet<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn compare(path: &str, go: &Value, ours: &Value, wrong: &mut Vec<String>) {
    if ON_PURPOSE.contains(&path) {
        return;
    }
    if go["type"] != ours["type"] {
        wrong.push(format!("{path}: type {} instead of {}", ours["type"], go["type"]));
    }
    // What the Go CRD fills in is filled in as before; timeouts are not, so that flags apply, and a
    // status is never.
    let filled = !path.contains(".status.") && !path.contains("imeout") && go["default"] != json!("");
    if filled && go["default"] != ours["default"] {
        wrong.push(format!("{path}: default {} instead of {}", ours["default"], go["default"]));
    }
    let (go_values, our_values) = (strings(&go["enum"]), strings(&ours["enum"]));
    if !our_values.is_empty()
        && (go_values.is_empty() || !go_values.is_subset(&our_values))
        && !path.contains(".status")
    {
        wrong.push(format!("{path}: takes only {our_values:?} where Go takes {go_values:?}"));
    }
    let more: Vec<_> = strings(&ours["required"]).difference(&strings(&go["required"])).copied().collect();
    // The template without a spec is of use to nobody, and of a new kind here.
    if !more.is_empty() && !path.contains(".status") && path != "CAPTControlPlaneTemplate.spec.template" {
        wrong.push(format!("{path}: {more:?} must be there, in Go they need not"));
    }
    if !ours["pattern"].is_null() && !path.contains(".status") {
        wrong.push(format!("{path}: has a pattern, which no rule explains to the user"));
    }
    for (name, property) in go["properties"].as_object().into_iter().flatten() {
        if path.contains('.') || !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            compare(&format!("{path}.{name}"), property, &ours["properties"][name], wrong);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if go[inner].is_object() {
            compare(path, &go[inner], &ours[inner], wrong);
        }
    }
}

#[test]
fn every_field_of_the_go_crds_is_there() {
    let Some(directory) = beside("crds/capt-go") else {
        println!("the Go implementation's CRDs are not beside this project: nothing to compare with");
        return;
    };
    let ours: Vec<Value> = capt_api::crds::all().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in yaml_files(&directory).unwrap() {
        for go in documents(&file).unwrap() {
            let our = ours.iter().find(|crd| crd["metadata"]["name"] == go["metadata"]["name"]).unwrap();
            let kind = our["spec"]["names"]["kind"].as_str().unwrap();
            let schema = |crd: &Value| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            compare(kind, &schema(&go), &schema(our), &mut wrong);
            for names in ["shortNames", "categories"] {
                let kept = strings(&go["spec"]["names"][names]).is_subset(&strings(&our["spec"]["names"][names]));
                assert!(kept, "{kind}: {names} of Go are gone");
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, 5);
}
