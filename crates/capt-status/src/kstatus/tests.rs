//! Objects and what the tools say of them. What the Go code says of many more is in
//! `tests/as_go_does.rs`.

use alloc::{vec, vec::Vec};

use proptest::{collection::vec as vec_of, prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;

fn object(metadata: &Value, status: &Value) -> Manifest {
    serde_json::from_value(json!({"kind": "Database", "metadata": metadata, "status": status})).unwrap()
}

fn condition_of(type_: &str, status: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "Because", "message": type_})
}

#[test]
fn the_table_of_kstatus() {
    let conditions = |list: &[(&str, &str)]| json!({"conditions": list.iter().map(|(type_, status)| condition_of(type_, status)).collect::<Vec<_>>()});
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let second = json!({"generation": 2});
    for (metadata, status, kstatus, message) in [
        (&deleted, conditions(&[("Stalled", "True")]), Kstatus::Terminating, "Resource scheduled for deletion"),
        (&json!({"deletionTimestamp": ""}), json!({}), Kstatus::Current, "Resource is current"),
        (
            &second,
            json!({"observedGeneration": 1, "conditions": [condition_of("Stalled", "True")]}),
            Kstatus::InProgress,
            "Database generation is 2, but latest observed generation is 1",
        ),
        (
            &second,
            json!({"observedGeneration": 3}),
            Kstatus::InProgress,
            "Database generation is 2, but latest observed generation is 3",
        ),
        (&second, json!({"observedGeneration": 2}), Kstatus::Current, "Resource is current"),
        (&json!({}), json!({"observedGeneration": 1}), Kstatus::Current, "Resource is current"),
        (&second, conditions(&[("Reconciling", "True"), ("Ready", "True")]), Kstatus::InProgress, "Reconciling"),
        (&second, conditions(&[("Ready", "True"), ("Stalled", "True")]), Kstatus::Failed, "Stalled"),
        // Both at once: the first in the list counts.
        (&second, conditions(&[("Reconciling", "True"), ("Stalled", "True")]), Kstatus::InProgress, "Reconciling"),
        (&second, conditions(&[("Stalled", "True"), ("Reconciling", "True")]), Kstatus::Failed, "Stalled"),
        (&second, conditions(&[("Stalled", "False"), ("Ready", "True")]), Kstatus::Current, "Resource is Ready"),
        (&second, conditions(&[("Ready", "False")]), Kstatus::InProgress, "Ready"),
        (&second, conditions(&[("Ready", "Unknown")]), Kstatus::InProgress, "Ready"),
        (&second, conditions(&[("Ready", "true")]), Kstatus::Current, "Resource is current"),
        (&second, conditions(&[("Available", "False")]), Kstatus::Current, "Resource is current"),
    ] {
        let manifest = object(metadata, &status);
        let report = compute(&manifest.object());
        assert_eq!((report.status, &*report.message), (kstatus, message), "{metadata} {status}");
    }
}

#[test]
fn the_table_of_kubectl_wait() {
    let ready = |status: &str, observed: Option<i64>| match observed {
        Some(observed) => json!({"type": "Ready", "status": status, "observedGeneration": observed}),
        None => json!({"type": "Ready", "status": status}),
    };
    for (text, generation, observed, condition, met) in [
        ("condition=Ready", None, None, ready("True", None), true),
        ("condition=ready", None, None, ready("True", None), true),
        ("condition=Ready=true", None, None, ready("True", None), true),
        ("condition=Ready=False", None, None, ready("True", None), false),
        ("condition=Ready=false", None, None, ready("False", None), true),
        ("condition=Ready=unknown", None, None, ready("Unknown", None), true),
        ("condition=Ready=", None, None, ready("", None), true),
        ("condition=Available", None, None, ready("True", None), false),
        // An older generation is not met, and the condition knows better than the status.
        ("condition=Ready", Some(2), None, ready("True", None), true),
        ("condition=Ready", Some(2), Some(1), ready("True", None), false),
        ("condition=Ready", Some(2), Some(1), ready("True", Some(2)), true),
        ("condition=Ready", Some(2), Some(2), ready("True", Some(1)), false),
        ("condition=Ready", Some(2), Some(3), ready("True", Some(3)), true),
        ("condition=Ready", None, Some(1), ready("True", Some(1)), true),
    ] {
        let metadata = generation.map_or_else(|| json!({}), |generation| json!({"generation": generation}));
        let status = json!({"observedGeneration": observed, "conditions": [condition]});
        let wait = Wait::parse(text).unwrap();
        assert_eq!(wait.is_met(&object(&metadata, &status).object()), met, "{text} {metadata} {status}");
    }
    for text in ["Ready", "condition=", "condition==true", "delete"] {
        assert!(text.parse::<Wait>().is_err(), "{text}");
    }
}

#[test]
fn argo_shows_what_the_script_says() {
    use argo::ArgoHealth::{Degraded, Healthy, Progressing, Suspended};
    let second = json!({"generation": 2});
    for (status, health) in [
        (json!({}), Progressing),
        (json!({"conditions": []}), Progressing),
        (json!({"observedGeneration": 1, "conditions": [condition_of("Ready", "True")]}), Progressing),
        (json!({"failureMessage": "no", "conditions": [condition_of("Ready", "True")]}), Degraded),
        (json!({"failureMessage": "", "conditions": [condition_of("Ready", "True")]}), Healthy),
        (json!({"conditions": [condition_of("Ready", "True"), condition_of("RollingOut", "True")]}), Progressing),
        (json!({"conditions": [condition_of("Ready", "True"), condition_of("Paused", "True")]}), Suspended),
        (json!({"conditions": [{"type": "VPCReady", "status": "False", "severity": "Error"}]}), Degraded),
        (json!({"conditions": [{"type": "VPCReady", "status": "False", "severity": "Info"}]}), Progressing),
    ] {
        assert_eq!(argo::health(&object(&second, &status).object()).0, health, "{status}");
    }
}

proptest! {
    #[test]
    fn every_object_gets_exactly_one_answer(
        types in vec_of(
            (select(vec!["Ready", "Reconciling", "Stalled", "Paused", "X"]), "True|False|Unknown|true|"), 0..6,
        ),
        generation in proptest::option::of(-1i64..3),
        observed in proptest::option::of(-1i64..3),
        deleting: bool,
    ) {
        let conditions: Vec<Value> =
            types.iter().map(|(type_, status)| condition_of(type_, status)).collect();
        let deletion = if deleting { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        let manifest = object(
            &json!({"generation": generation, "deletionTimestamp": deletion}),
            &json!({"observedGeneration": observed, "conditions": conditions}),
        );
        let object = manifest.object();
        let status = compute(&object).status;
        prop_assert_eq!(status == Kstatus::Terminating, deleting);
        let is_true = |name: &str| types.iter().any(|(type_, status)| *type_ == name && status == "True");
        prop_assert!(status != Kstatus::Failed || is_true("Stalled"));
        prop_assert!(status != Kstatus::Current || !is_true("Stalled") && !is_true("Reconciling"));
        prop_assert!(!argo::health(&object).0.as_str().is_empty());
    }
}
