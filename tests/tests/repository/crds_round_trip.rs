//! Examples through the Rust types and back: what the types lose, the operator would lose.

use capt_api::{
    CAPTCluster, CAPTClusterTemplate, CAPTControlPlane, CAPTControlPlaneTemplate, WorkspaceTemplate,
    WorkspaceTemplateApply,
};
use capt_tests::{beside, documents, missing, root, yaml_files};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

fn through<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, serde_json::Error> {
    serde_json::from_value::<K>(object.clone()).and_then(|typed| serde_json::to_value(&typed))
}

/// `object` as its type writes it; `None` if the kind is not ours.
fn round_trip(object: &Value) -> Option<Result<Value, serde_json::Error>> {
    Some(match object["kind"].as_str()? {
        "CAPTCluster" => through::<CAPTCluster>(object),
        "CAPTClusterTemplate" => through::<CAPTClusterTemplate>(object),
        "CAPTControlPlane" => through::<CAPTControlPlane>(object),
        "CAPTControlPlaneTemplate" => through::<CAPTControlPlaneTemplate>(object),
        "WorkspaceTemplate" => through::<WorkspaceTemplate>(object),
        "WorkspaceTemplateApply" => through::<WorkspaceTemplateApply>(object),
        _ => return None,
    })
}

#[test]
fn our_examples_lose_nothing() {
    let mut seen = 0;
    for file in yaml_files(&root().join("examples")).unwrap() {
        for object in documents(&file).unwrap() {
            let Some(written) = round_trip(&object) else { continue };
            let written = written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert_eq!(missing(&object, &written), None, "{}", file.display());
            if file.ends_with("every-field.yaml") {
                // Nothing is added either, above all no null and no empty list.
                assert_eq!(missing(&written, &object), None, "{}", file.display());
                assert!(!written.to_string().contains("null"), "{written}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} examples of our kinds found");
}

/// Fields that the Go CRDs do not have and prune: left over from older releases of them.
const PRUNED: [&str; 2] = [".spec.waitForSecret", ".spec.dependencies"];

/// The Go implementation's samples, where they are beside the project: what parses loses nothing.
#[test]
fn samples_of_the_go_implementation_lose_nothing() {
    let Some(samples) = beside("samples-go") else {
        println!("the Go implementation's samples are not beside this project: nothing to compare with");
        return;
    };
    let (mut seen, mut unreadable) = (0, Vec::new());
    for file in yaml_files(&samples).unwrap() {
        for object in documents(&file).unwrap_or_default() {
            match round_trip(&object) {
                Some(Ok(written)) => {
                    let lost = missing(&object, &written).filter(|lost| !PRUNED.contains(&lost.as_str()));
                    assert_eq!(lost, None, "{}", file.display());
                    seen += 1;
                }
                Some(Err(error)) => unreadable.push(format!("{}: {error}", file.display())),
                None => {}
            }
        }
    }
    // No spec, or a spec that the Go CRDs refuse too: see the test on the API server.
    assert!(unreadable.len() <= 4, "{unreadable:#?}");
    assert!(seen >= 25, "only {seen} samples seen");
}
