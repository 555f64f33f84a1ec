//! Faults from outside: annotations on a Workspace that change what the provider makes of it.
//!
//! ```text
//! kubectl annotate workspace demo-vpc sandbox.capt.cluster.x-k8s.io/fail="Error: VpcLimitExceeded"
//! ```

use capt_status::Span;
use serde_json::Value;

use super::{Ending, Outputs};

/// The run fails with this text.
pub const FAIL: &str = "sandbox.capt.cluster.x-k8s.io/fail";
/// The run takes this long, as in `45m`.
pub const TAKES: &str = "sandbox.capt.cluster.x-k8s.io/takes";
/// The run never ends.
pub const HANG: &str = "sandbox.capt.cluster.x-k8s.io/hang";
/// The connection Secret is lost.
pub const LOSE_SECRET: &str = "sandbox.capt.cluster.x-k8s.io/lose-secret";
/// The destroy fails with this text.
pub const FAIL_DESTROY: &str = "sandbox.capt.cluster.x-k8s.io/fail-destroy";

fn annotation<'a>(workspace: &'a Value, name: &str) -> Option<&'a str> {
    workspace["metadata"]["annotations"].get(name).and_then(Value::as_str)
}

/// What becomes of `outputs` under the annotations of `workspace`.
pub fn applied(workspace: &Value, mut outputs: Outputs) -> Outputs {
    if let Some(text) = annotation(workspace, FAIL) {
        outputs.result = Ending::Failure(text.to_owned());
    }
    if let Some(takes) = annotation(workspace, TAKES).and_then(|text| text.parse::<Span>().ok()) {
        outputs.takes = takes;
    }
    if annotation(workspace, HANG).is_some() {
        outputs.result = Ending::Hang;
    }
    if let Some(text) = annotation(workspace, FAIL_DESTROY) {
        outputs.undestroyable = Some(text.to_owned());
    }
    outputs
}

/// Whether the connection Secret is to be lost.
pub fn loses_secret(workspace: &Value) -> bool {
    annotation(workspace, LOSE_SECRET).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_change_what_happens() {
        let workspace = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
        let with = |name: &str, value: &str| applied(&workspace(name, value), Outputs::default());
        assert_eq!(with(FAIL, "no").result, Ending::Failure("no".to_owned()));
        assert_eq!(with(TAKES, "45m").takes, Span::from_minutes(45));
        assert_eq!(with(TAKES, "long").takes, Span::default());
        assert_eq!(with(HANG, "").result, Ending::Hang);
        assert_eq!(with(FAIL_DESTROY, "no").undestroyable.as_deref(), Some("no"));
        assert_eq!(applied(&json!({}), Outputs::default()), Outputs::default());
        assert!(loses_secret(&workspace(LOSE_SECRET, "")) && !loses_secret(&json!({})));
    }
}
