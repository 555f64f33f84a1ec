//! What a Workspace says: how far the provider is, and its outputs.
//!
//! Rules (provider-terraform's real behaviour): absent conditions mean "in progress"; error text
//! lives in Synced only; an output counts only once the provider has synced the current
//! generation; sensitive outputs are in the connection Secret alone. The Secret's values are what
//! Terraform put out, already decoded.

use std::{borrow::Cow, collections::BTreeMap};

use capt_api::{
    foreign::{ForeignCondition, SecretView, WorkspaceView},
    names::{
        CROSSPLANE_PAUSED_ANNOTATION, EXTERNAL_CREATE_FAILED_ANNOTATION, EXTERNAL_CREATE_PENDING_ANNOTATION,
        EXTERNAL_CREATE_SUCCEEDED_ANNOTATION,
    },
};
use capt_status::{
    Time,
    failure::{Failure, Stage},
    machine::Cause,
    text::{MAX_MESSAGE, truncate},
};
use serde_json::{Map, Value};

use crate::object::{Kind, ObjectKey};

/// Reason of Synced where the provider leaves the Workspace alone.
const RECONCILE_PAUSED: &str = "ReconcilePaused";

/// How far the provider is with a Workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Not seen yet, or at work on the current generation.
    InProgress,
    /// Paused by its annotation.
    Paused,
    /// In order, but Terraform would change something and may not: never Ready without a person.
    ObserveOnly,
    /// deletionTimestamp is set.
    Deleting,
    /// The last attempt failed.
    Failing(Failure),
    /// Synced and Ready, of the current generation.
    Ready,
}

/// How far the provider is with `workspace`.
///
/// What it said of an older generation counts no more, an error as little as a success: the new one may be the
/// answer to it. Providers that name no generation are taken at their word. Whether it is paused is told by the
/// annotation: `Synced` keeps the word until the provider has been there again.
pub fn progress(workspace: &WorkspaceView) -> Progress {
    if workspace.meta.deleting {
        return Progress::Deleting;
    }
    if is_paused(workspace) {
        return Progress::Paused;
    }
    if has_new_generation(workspace) {
        return Progress::InProgress;
    }
    if let Some(failure) = &workspace.failure {
        return Progress::Failing(failure.clone());
    }
    let Some(synced) = &workspace.synced else { return Progress::InProgress };
    match (synced.status.as_str(), synced.reason.as_str()) {
        // Just unpaused: what was ready before is ready still.
        ("True", _) | ("False", RECONCILE_PAUSED) if serves(workspace) => Progress::Ready,
        ("True", _) if workspace.ready.is_none() && is_observe_only(workspace) => Progress::ObserveOnly,
        _ => Progress::InProgress,
    }
}

/// Whether the provider has spoken, and not yet of the present generation.
pub fn has_new_generation(workspace: &WorkspaceView) -> bool {
    let seen = workspace.synced.as_ref().and_then(|synced| synced.observed_generation);
    seen.is_some_and(|seen| seen < workspace.meta.generation)
}

/// The connection Secret that the Workspace names; `namespace` where it names none.
pub fn connection_secret(workspace: &WorkspaceView, namespace: &str) -> Option<ObjectKey> {
    let reference = &workspace.spec["writeConnectionSecretToRef"];
    let namespace = reference["namespace"].as_str().unwrap_or(namespace);
    Some(ObjectKey::new(Kind::Secret, namespace, reference["name"].as_str()?))
}

/// Whether the provider last found nothing to do, whatever came after: it still stands.
pub fn serves(workspace: &WorkspaceView) -> bool {
    !workspace.meta.deleting && workspace.ready.as_ref().is_some_and(ForeignCondition::is_true)
}

/// Whether the provider leaves the Workspace alone, by its annotation.
pub fn is_paused(workspace: &WorkspaceView) -> bool {
    workspace.meta.annotations.get(CROSSPLANE_PAUSED_ANNOTATION).is_some_and(|value| value == "true")
}

/// Whether the provider says that it leaves the Workspace alone, so that no run is in flight.
pub fn pause_is_seen(workspace: &WorkspaceView) -> bool {
    is_paused(workspace) && workspace.synced.as_ref().is_some_and(|synced| synced.reason == RECONCILE_PAUSED)
}

/// Whether the Workspace shows that what it stands for was ever there.
pub fn shows_success(workspace: &WorkspaceView) -> bool {
    workspace.ready.as_ref().is_some_and(ForeignCondition::is_true)
        || !workspace.outputs().is_empty()
        || workspace.meta.annotations.contains_key(EXTERNAL_CREATE_SUCCEEDED_ANNOTATION)
}

/// When the provider made what the Workspace stands for, where it has not found it ready yet.
pub fn made_at(workspace: &WorkspaceView) -> Option<Time> {
    if serves(workspace) || !workspace.outputs().is_empty() {
        return None;
    }
    workspace.meta.annotations.get(EXTERNAL_CREATE_SUCCEEDED_ANNOTATION)?.parse().ok()
}

/// What is wrong with [`Progress::ObserveOnly`], and what to do.
pub fn observe_only(workspace: &str) -> String {
    format!(
        "Workspace {workspace} may only be observed (managementPolicies [Observe]) and Terraform would change something; allow \
         it in the template, or bring the module in line with what is there"
    )
}

fn is_observe_only(workspace: &WorkspaceView) -> bool {
    workspace.spec["managementPolicies"].as_array().is_some_and(|policies| *policies == ["Observe"])
}

/// A failure of a Workspace for people: what it means, what happened, and what to do about it.
pub fn cause(workspace: &str, failure: &Failure) -> Cause {
    let message = failure.message.trim_end_matches(['.', ' ']);
    let told = format!("Workspace {workspace}: {message}. {}", failure.hint);
    Cause::new(failure.reason.as_str(), truncate(&told, MAX_MESSAGE))
}

/// Why a Workspace that is being deleted does not go, where the provider says so. What an apply reported
/// before the deletion is no reason.
pub fn destroy_failure(workspace: &WorkspaceView) -> Option<Failure> {
    let failure = workspace.failure.as_ref().filter(|_| workspace.meta.deleting)?;
    match failure.stage {
        Some(Stage::Create | Stage::Update) => None,
        Some(Stage::Connect | Stage::Observe | Stage::Delete) | None => Some(failure.clone()),
    }
}

/// Whether the provider has begun on a Workspace: its external name does not tell, since we set it.
pub fn has_begun(workspace: &WorkspaceView) -> bool {
    workspace.synced.is_some()
        || workspace.ready.is_some()
        || !workspace.meta.finalizers.is_empty()
        || workspace.meta.annotations.contains_key(EXTERNAL_CREATE_PENDING_ANNOTATION)
}

/// Whether all that a Workspace says is compatible with nothing of it ever having been ready.
pub fn was_never_ready(workspace: &WorkspaceView) -> bool {
    !workspace.meta.deleting && !shows_success(workspace)
}

/// Whether an apply may be running: a creation was begun and not ended, or the current generation is
/// not seen yet.
pub fn is_busy(workspace: &WorkspaceView) -> bool {
    let at = |name: &str| workspace.meta.annotations.get(name).map_or("", String::as_str);
    let ended = at(EXTERNAL_CREATE_SUCCEEDED_ANNOTATION).max(at(EXTERNAL_CREATE_FAILED_ANNOTATION));
    // RFC 3339 in UTC, so the later one is the greater text.
    at(EXTERNAL_CREATE_PENDING_ANNOTATION) > ended || has_new_generation(workspace)
}

/// Why an output cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The output is there and is no text.
    #[error("output `{0}` is not a string; change the module to output a string")]
    NotText(String),
    /// The value in the connection Secret is not UTF-8.
    #[error("key `{0}` of the connection Secret is not text")]
    NotUtf8(String),
    /// Nothing of that name is as long.
    #[error("output `{0}` is longer than {1} bytes; change the module to output what the name says")]
    TooLong(String, usize),
}

/// Longest text that output `name` may be, in bytes.
fn longest(name: &str) -> usize {
    match name {
        "vpc_id" => 128,
        "cluster_endpoint" => 1024,
        "kubeconfig" => 512 << 10,
        _ => 64 << 10,
    }
}

/// The text of output `name`: from the status, else (sensitive outputs) from the connection Secret;
/// `None` if it is in neither, empty or null. What the status says to be null is so: values in the Secret
/// are never removed.
pub fn text(workspace: &WorkspaceView, secret: Option<&SecretView>, name: &str) -> Result<Option<String>, OutputError> {
    let fits = |text: &str| match longest(name) {
        longest if text.len() > longest => Err(OutputError::TooLong(name.to_owned(), longest)),
        _ => Ok(Some(text.to_owned())),
    };
    match workspace.outputs().get(name) {
        Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if !is_nothing(text) => return fits(text),
        None | Some(Value::String(_)) => {}
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(OutputError::NotText(name.to_owned()));
        }
    }
    match secret.and_then(|secret| secret.data.get(name)) {
        None => Ok(None),
        Some(bytes) => match bytes.expose_text() {
            Some(text) if is_nothing(text) => Ok(None),
            Some(text) => fits(text),
            None => Err(OutputError::NotUtf8(name.to_owned())),
        },
    }
}

/// Whether a value is none: the provider writes an output that is null as JSON.
fn is_nothing(text: &str) -> bool {
    matches!(text.trim(), "" | "null")
}

/// An output as the text of a variable: strings as they are, everything else as compact JSON.
pub fn as_variable(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// All outputs as texts.
pub fn as_variables(outputs: &Map<String, Value>) -> BTreeMap<String, String> {
    outputs.iter().map(|(name, value)| (name.clone(), as_variable(value).into_owned())).collect()
}

/// Names of failure domains from output `availability_zones` or `azs`; none where the module puts out
/// neither, and `None` where nothing is known of its outputs.
pub fn availability_zones(outputs: &Map<String, Value>) -> Option<Vec<String>> {
    if outputs.is_empty() {
        return None;
    }
    let zones = ["availability_zones", "azs"].into_iter().find_map(|name| outputs.get(name)?.as_array());
    // The contract allows names of 1 to 256 bytes.
    let is_name = |name: &&str| (1..=256).contains(&name.len());
    let mut names: Vec<String> =
        zones.into_iter().flatten().filter_map(Value::as_str).filter(is_name).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    // The contract allows 100 failure domains.
    names.truncate(100);
    Some(names)
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use capt_status::failure::classify;
    use serde_json::json;

    use super::*;

    fn workspace(generation: i64, status: &Value) -> WorkspaceView {
        let value = json!({"metadata": {"name": "w", "generation": generation}, "spec": {}, "status": status});
        WorkspaceView::parse(WorkspaceApi::Cluster, &value)
    }

    fn conditions(synced: &Value, ready: Option<&str>) -> Value {
        let mut list = vec![synced.clone()];
        if let Some(status) = ready {
            list.push(json!({"type": "Ready", "status": status, "reason": "Available"}));
        }
        json!({ "conditions": list })
    }

    /// The provider leaves some trace before it says anything.
    #[test]
    fn the_provider_has_begun_once_it_has_left_a_trace() {
        let begun = |metadata: Value, status: Value| {
            let value = json!({"metadata": metadata, "spec": {}, "status": status});
            has_begun(&WorkspaceView::parse(WorkspaceApi::Cluster, &value))
        };
        let annotated = |name: &str| json!({"annotations": {name: "2026-01-01T00:00:00Z"}});
        assert!(!begun(json!({}), json!({})));
        assert!(!begun(annotated("crossplane.io/external-name"), json!({})), "that is ours");
        assert!(begun(json!({"finalizers": ["finalizer.managedresource.crossplane.io"]}), json!({})));
        assert!(begun(annotated(EXTERNAL_CREATE_PENDING_ANNOTATION), json!({})));
        let told = |type_: &str| json!({"conditions": [{"type": type_, "status": "False", "reason": "R"}]});
        assert!(begun(json!({}), told("Synced")));
        assert!(begun(json!({}), told("Ready")));
    }

    #[test]
    fn an_apply_may_be_running_from_its_begin_to_its_end_and_before_the_provider_has_looked() {
        let busy = |annotations: &[(&str, u32)], generation: i64, seen: Option<i64>| {
            let times = annotations
                .iter()
                .map(|(name, minute)| ((*name).to_owned(), json!(format!("2026-01-01T00:{minute:02}:00Z"))));
            let annotations: Map<String, Value> = times.collect();
            let synced = json!({"type": "Synced", "status": "True", "reason": "R", "observedGeneration": seen});
            let value = json!({
                "metadata": {"generation": generation, "annotations": annotations},
                "status": {"conditions": [synced]},
            });
            is_busy(&WorkspaceView::parse(WorkspaceApi::Cluster, &value))
        };
        let (pending, succeeded, failed) = (
            EXTERNAL_CREATE_PENDING_ANNOTATION,
            EXTERNAL_CREATE_SUCCEEDED_ANNOTATION,
            EXTERNAL_CREATE_FAILED_ANNOTATION,
        );
        assert!(!busy(&[], 1, Some(1)));
        assert!(busy(&[(pending, 1)], 1, Some(1)));
        assert!(!busy(&[(pending, 1), (succeeded, 2)], 1, Some(1)));
        assert!(!busy(&[(pending, 1), (failed, 2)], 1, Some(1)));
        assert!(busy(&[(pending, 3), (succeeded, 1), (failed, 2)], 1, Some(1)), "once more");
        assert!(busy(&[(pending, 1), (succeeded, 2)], 2, Some(1)), "another spec, and the provider has not looked");
        assert!(!busy(&[(pending, 1), (succeeded, 2)], 2, None), "it names no generation");
    }

    #[test]
    fn progress_follows_synced_first_and_then_ready() {
        let success =
            json!({"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 2});
        let paused = json!({"type": "Synced", "status": "False", "reason": "ReconcilePaused"});
        let old_provider = json!({"type": "Synced", "status": "True", "reason": "ReconcileSuccess"});
        let message = "create failed: cannot apply Terraform configuration: VpcLimitExceeded: no more";
        let failed = json!({"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message});
        let mut failed_before = failed.clone();
        failed_before["observedGeneration"] = json!(1);
        for (generation, status, expected) in [
            (1, json!({}), Progress::InProgress),
            (2, conditions(&success, None), Progress::InProgress),
            (2, conditions(&success, Some("False")), Progress::InProgress),
            (2, conditions(&success, Some("True")), Progress::Ready),
            (3, conditions(&success, Some("True")), Progress::InProgress),
            (7, conditions(&old_provider, Some("True")), Progress::Ready),
            // Unpaused, and the provider has not been there again.
            (1, conditions(&paused, Some("True")), Progress::Ready),
            (1, conditions(&paused, Some("False")), Progress::InProgress),
            (1, conditions(&paused, None), Progress::InProgress),
            (1, conditions(&failed, Some("True")), Progress::Failing(classify(message))),
            (1, conditions(&failed_before, Some("True")), Progress::Failing(classify(message))),
            (2, conditions(&failed_before, Some("True")), Progress::InProgress),
            (2, conditions(&failed_before, Some("False")), Progress::InProgress),
        ] {
            assert_eq!(progress(&workspace(generation, &status)), expected, "{status}");
        }
    }

    #[test]
    fn only_a_failure_to_destroy_blocks_a_deletion() {
        for (message, deleting, blocks) in [
            ("delete failed: cannot destroy: DependencyViolation: has dependencies", true, true),
            ("connect failed: cannot initialize: NoCredentialProviders", true, true),
            ("no stage at all", true, true),
            ("create failed: VpcLimitExceeded", true, false),
            ("update failed: VpcLimitExceeded", true, false),
            ("delete failed: DependencyViolation", false, false),
        ] {
            let synced = json!({"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message});
            let mut found = workspace(1, &conditions(&synced, None));
            found.meta.deleting = deleting;
            assert_eq!(destroy_failure(&found).is_some(), blocks, "{message} {deleting}");
        }
    }

    #[test]
    fn a_cause_says_what_to_do_and_is_bounded() {
        let failure = classify("create failed: VpcLimitExceeded: The maximum number of VPCs has been reached.");
        let cause = cause("demo-vpc", &failure);
        assert_eq!(cause.reason, "VpcQuotaExceeded");
        assert!(
            cause.message.starts_with("Workspace demo-vpc: ") && cause.message.ends_with(failure.hint),
            "{cause:?}"
        );
        assert!(!cause.message.contains(".."), "{cause:?}");
        let long = Failure { message: "x".repeat(4096), ..failure };
        assert!(super::cause("w", &long).message.len() <= MAX_MESSAGE);
    }

    #[test]
    fn an_output_is_a_string_or_a_sensitive_one_in_the_secret() {
        let workspace = workspace(
            1,
            &json!({"atProvider": {"outputs": {"a": "x", "b": {"h": 1}, "c": "", "d": "text", "g": null, "h": "null"}}}),
        );
        let secret = SecretView::parse(
            &json!({"metadata": {"name": "s"}, "data": {"c": "eQ==", "e": "eg==", "f": "/w==", "g": "b2xk"}}),
        );
        let read = |name| text(&workspace, Some(&secret), name);
        assert_eq!(read("a"), Ok(Some("x".to_owned())));
        assert_eq!(read("b"), Err(OutputError::NotText("b".to_owned())));
        assert_eq!(read("c"), Ok(Some("y".to_owned())), "empty in the status, there in the Secret");
        assert_eq!(read("e"), Ok(Some("z".to_owned())));
        assert_eq!(read("f"), Err(OutputError::NotUtf8("f".to_owned())));
        assert_eq!(read("g"), Ok(None), "the Secret keeps what was there once");
        assert_eq!(read("h"), Ok(None));
        assert_eq!(read("i"), Ok(None));
        assert_eq!(text(&workspace, None, "e"), Ok(None));
    }

    #[test]
    fn zones_are_sorted_and_bounded() {
        let outputs = Map::from_iter([("azs".to_owned(), json!(["b", "a", "b", 3]))]);
        assert_eq!(availability_zones(&outputs), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(availability_zones(&Map::from_iter([("vpc_id".to_owned(), json!("v"))])), Some(Vec::new()));
        assert_eq!(availability_zones(&Map::new()), None, "nothing is known");
    }
}
