//! What must hold of each version of an object after the one before it, and of each write of CAPT;
//! names as in `docs/verification.md`. Pure: whoever plays a world asks.

use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_status::State;
use serde_json::Value;

use crate::core::Release;

/// A law that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the law.
    pub law: &'static str,
    /// Object and what is wrong with it.
    pub text: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.law, self.text)
    }
}

/// Fields that never go back, and never get lost, while the object lives.
const LATCHES: [&str; 8] = [
    "/status/ready",
    "/status/initialized",
    "/status/initialization/provisioned",
    "/status/initialization/controlPlaneInitialized",
    "/status/endpoint",
    "/status/vpcId",
    "/status/workspaceStatus/atProvider/outputs",
    "/spec/controlPlaneEndpoint/host",
];

/// Largest status, in bytes of JSON.
const LARGEST_STATUS: usize = 256 * 1024;

/// Longest message of a condition, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// Which state the status of a provider object shows.
pub fn state_of(object: &Value) -> Option<State> {
    serde_json::from_value(object["status"]["state"].clone()).ok()
}

/// Laws of `after` in the place of `before`, which is null if it was just made: of the kinds that have a
/// state (P5, P7, P8, P10, P11, P18, P20), and of the times and sizes of an apply.
pub fn of_change(key: &ObjectKey, before: &Value, after: &Value) -> Vec<Violation> {
    let mut broken = Vec::new();
    let mut violated = |law, text: String| broken.push(Violation { law, text });
    let has_state = match key.kind {
        Kind::CaptCluster | Kind::CaptControlPlane => true,
        Kind::Apply => false,
        Kind::Cluster | Kind::Template | Kind::Workspace(_) | Kind::Secret => return broken,
    };
    for latch in LATCHES {
        let is_set = |value: &Value| value.pointer(latch).is_some_and(|value| *value != false && !value.is_null());
        if is_set(before) && !is_set(after) {
            violated("P5", format!("{latch} of {key} went back"));
        }
    }
    if before["status"] == after["status"] || after["status"].is_null() {
        return broken;
    }
    for condition in after["status"]["conditions"].as_array().into_iter().flatten() {
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        if text(condition, "message").len() > LONGEST_MESSAGE {
            violated("P18", format!("{key}: the message of {} is too long", condition["type"]));
        }
        let old = before["status"]["conditions"].as_array().into_iter().flatten();
        let Some(old) = old.into_iter().find(|old| old["type"] == condition["type"]) else { continue };
        let (then, now) = (text(old, "lastTransitionTime"), text(condition, "lastTransitionTime"));
        if now < then {
            violated("P7", format!("{key}: condition {} went back in time", condition["type"]));
        }
        if old["status"] == condition["status"] && then != now {
            violated("P7", format!("{key}: time of condition {} moved without it", condition["type"]));
        }
    }
    if after["status"].to_string().len() > LARGEST_STATUS {
        violated("P18", format!("the status of {key} is too large"));
    }
    if has_state {
        of_state(key, before, after, &mut violated);
    }
    broken
}

fn of_state(key: &ObjectKey, before: &Value, after: &Value, violated: &mut impl FnMut(&'static str, String)) {
    // A pause from birth shows a condition and no state.
    let (from, Some(to)) = (state_of(before), state_of(after)) else { return };
    if from.is_some_and(|from| from != to && !from.successors().contains(&to)) {
        violated("P8", format!("{key} went from {from:?} to {to:?}"));
    }
    let status = &after["status"];
    if status["observedGeneration"] != after["metadata"]["generation"] && before["status"]["state"] != status["state"] {
        violated("P20", format!("{key} shows {to:?} for a generation that it did not see"));
    }
    let has_endpoint = status["endpoint"].as_str().is_some_and(|endpoint| !endpoint.starts_with(':'));
    if to == State::Ready && key.kind == Kind::CaptControlPlane && !has_endpoint {
        violated("P10", format!("{key} is Ready without an endpoint"));
    }
    if status["failureReason"].is_null() == (to == State::Failed) {
        violated("P11", format!("{key} in {to:?} has failureReason {}", status["failureReason"]));
    }
}

/// Whether nothing changes but that a failure is gone that core had taken over from a provider object.
fn clears_failure(before: &Value, after: &Value) -> bool {
    let copied =
        before["status"]["failureMessage"].as_str().is_some_and(|text| text.starts_with("Failure detected from"));
    let mut without = before.clone();
    if let Some(status) = without["status"].as_object_mut() {
        status.retain(|field, _| !matches!(field.as_str(), "failureReason" | "failureMessage"));
    }
    copied && without["status"] == after["status"] && before["spec"] == after["spec"]
}

/// Whether `after` differs from `before` in nothing but a URL in the place of the endpoint's host.
fn is_repair(before: &Value, after: &Value) -> bool {
    let endpoint = "/spec/controlPlaneEndpoint";
    let was_url = before.pointer(endpoint).and_then(|endpoint| endpoint["host"].as_str());
    let mut repaired = before.clone();
    if let (Some(old), Some(new)) = (repaired.pointer_mut(endpoint), after.pointer(endpoint)) {
        old.clone_from(new);
    }
    was_url.is_some_and(|host| host.contains("://"))
        && repaired["spec"] == after["spec"]
        && before["status"] == after["status"]
}

/// Whether `after` differs from `before` in nothing but what core would publish, without the signs of core itself: the
/// status, and an endpoint where there was none or a URL.
fn is_publication(before: &Value, after: &Value) -> bool {
    let mut published = before.clone();
    if before["spec"]["controlPlaneEndpoint"]["host"]
        .as_str()
        .is_none_or(|host| host.is_empty() || host.contains("://"))
        && !after["spec"]["controlPlaneEndpoint"].is_null()
    {
        published["spec"]["controlPlaneEndpoint"] = after["spec"]["controlPlaneEndpoint"].clone();
    }
    let others = ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"];
    !before.is_null()
        && published["spec"] == after["spec"]
        && after["status"]["observedGeneration"] == before["status"]["observedGeneration"]
        && others.iter().all(|field| before["metadata"][field] == after["metadata"][field])
}

/// Laws of a write of CAPT beside that core, which made `after` of `before`; each is null if the object is not there
/// (P15: what is not ours stays; P23: no other Terraform state).
pub fn of_write(core: Release, request: &Request, before: &Value, after: &Value) -> Vec<Violation> {
    let mut broken = Vec::new();
    let Some(key) = request.written() else { return broken };
    let mut violated = |law, text: String| broken.push(Violation { law, text });
    match key.kind {
        Kind::Cluster if core == Release::Absent && is_publication(before, after) => {}
        // Beside core the repair of a URL that Go left is all there is, and of a failure that core copied from us and
        // never clears.
        Kind::Cluster if is_repair(before, after) || clears_failure(before, after) => {}
        Kind::Cluster | Kind::Template => violated("P15", format!("{key} was written")),
        Kind::CaptCluster | Kind::CaptControlPlane | Kind::Apply => {
            let host = |value: &Value| value["spec"]["controlPlaneEndpoint"]["host"].clone();
            if host(before) != host(after) && host(after).as_str().is_some_and(|host| host.contains("://")) {
                violated("P10", format!("{key} gets an endpoint that is none"));
            }
        }
        Kind::Workspace(_) => {
            let name = |value: &Value| value["metadata"]["annotations"]["crossplane.io/external-name"].clone();
            let both = !before.is_null() && !after.is_null();
            if both && name(before) != name(after) {
                violated("P23", format!("{key} selects another Terraform state"));
            }
            if both && before["status"] != after["status"] {
                violated("P15", format!("the status of {key} was written"));
            }
        }
        Kind::Secret => {
            if !key.name.ends_with("-kubeconfig") && !key.name.ends_with("-ca") {
                violated("P15", format!("{key} was written"));
            }
        }
    }
    if let Request::Delete { uid, .. } = request
        && uid.is_empty()
    {
        violated("P15", format!("{key} is deleted whoever it is"));
    }
    broken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn writes_cluster(core: Release, edit: impl FnOnce(&mut Value)) -> usize {
        let before = json!({"metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {"paused": false}, "status": {}});
        let mut after = before.clone();
        edit(&mut after);
        let target = ObjectKey::new(Kind::Cluster, "ns", "c");
        let request = Request::MergePatch { target, body: Value::Null };
        of_write(core, &request, &before, &after).len()
    }

    #[test]
    fn a_cluster_is_written_only_where_there_is_no_core_and_only_what_it_would_publish() {
        let publish = |cluster: &mut Value| {
            cluster["status"]["phase"] = json!("Provisioned");
            cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "a", "port": 443});
        };
        assert_eq!(writes_cluster(Release::Absent, publish), 0);
        for release in Release::ALL {
            assert_eq!(writes_cluster(release, publish), 1, "{release:?}");
        }
        let further: [fn(&mut Value); 5] = [
            |cluster| cluster["status"]["observedGeneration"] = json!(1),
            |cluster| cluster["metadata"]["finalizers"] = json!(["cluster.cluster.x-k8s.io"]),
            |cluster| cluster["metadata"]["labels"] = json!({}),
            |cluster| cluster["spec"]["paused"] = json!(true),
            |cluster| *cluster = Value::Null,
        ];
        for (index, edit) in further.into_iter().enumerate() {
            assert_eq!(writes_cluster(Release::Absent, edit), 1, "{index}");
        }
    }
}
