//! Why an object of ours does not parse, in words that help to repair it.
//!
//! The parse that counts is `Object::parse` of capt-reconcile; this one only names the field.

use capt_api::{CAPTCluster, CAPTControlPlane, WorkspaceTemplate, WorkspaceTemplateApply};
use capt_reconcile::object::Kind;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where and why an object does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}: {fix}")]
pub struct FieldError {
    /// Path of the field, for example `spec.vpcConfig.name`; `.` for the object itself.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

/// Parses `value` as an object of `kind`. Foreign kinds are read leniently and never fail.
pub fn check(kind: Kind, value: &Value) -> Result<(), FieldError> {
    match kind {
        Kind::CaptCluster => parse::<CAPTCluster>(value),
        Kind::CaptControlPlane => parse::<CAPTControlPlane>(value),
        Kind::Template => parse::<WorkspaceTemplate>(value),
        Kind::Apply => parse::<WorkspaceTemplateApply>(value),
        Kind::Cluster | Kind::Workspace(_) | Kind::Secret => Ok(()),
    }
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<(), FieldError> {
    match serde_path_to_error::deserialize::<_, T>(value) {
        Ok(_) => Ok(()),
        Err(error) => {
            let path = error.path().to_string();
            let problem = error.into_inner().to_string();
            let fix = fix(&problem);
            Err(FieldError { path, problem, fix })
        }
    }
}

fn fix(problem: &str) -> String {
    if problem.starts_with("missing field") {
        return "add it".to_owned();
    }
    // serde says `invalid type: integer `5`, expected a string`.
    match problem.split_once(", expected ") {
        // The name of a Rust type tells a user nothing.
        Some((_, expected)) if expected.starts_with("struct ") => "write an object with fields here".to_owned(),
        Some((_, expected)) => format!("write {expected} here"),
        None => "compare with `kubectl explain` of this field".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_and_the_fix_are_named() {
        let object = |spec: Value| json!({"apiVersion": "v", "kind": "k", "metadata": {"name": "a"}, "spec": spec});
        let wrong = check(Kind::CaptCluster, &object(json!({"region": 5}))).unwrap_err();
        assert_eq!(wrong.path, "spec.region");
        assert!(wrong.fix.contains("string"), "{wrong}");
        let missing = check(Kind::CaptCluster, &object(json!({}))).unwrap_err();
        assert!(missing.to_string().contains("region") && missing.fix == "add it", "{missing}");
        assert_eq!(check(Kind::CaptCluster, &object(json!({"region": "eu-west-1"}))), Ok(()));
    }
}
