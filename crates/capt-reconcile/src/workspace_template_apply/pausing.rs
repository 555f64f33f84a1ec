//! An apply that is paused hands the pause on to its Workspace, and takes it back when it resumes.
//!
//! Without that the provider would go on applying: after a `clusterctl move` two of them would work on one
//! control plane. A Workspace that we pause carries a marker; only such a pause is lifted. While the pause
//! has not reached the provider, the apply keeps the annotation that makes a move wait.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::WorkspaceView,
    names::{APPLY_MANAGER, BLOCK_MOVE_ANNOTATION, CROSSPLANE_PAUSED_ANNOTATION, PAUSE_MARKER_ANNOTATION},
};
use capt_status::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{observe::Observed, takeover::precondition, verdicts::CONDITIONS};
use crate::{
    meta::{self, Writer},
    outputs,
    plan::{Op, Plan, Precondition},
    status,
};

/// The Paused condition, the pause of the Workspace, and no more.
pub(super) fn plan(
    observed: &Observed,
    mut writer: Writer,
    stored: &WorkspaceTemplateApplyStatus,
    message: &str,
    now: Time,
) -> Plan {
    let apply = observed.apply.as_ref();
    status::write_paused(&mut writer, APPLY_MANAGER, stored, message, &CONDITIONS, meta::generation(apply), now);
    writer.note(format!("paused: {message}"));
    if observed.claim.is_unknown() {
        return writer.finish();
    }
    let has_reached = match observed.claim.ours() {
        None => true,
        Some(workspace) if !outputs::is_paused(workspace) => {
            let body = annotations(&json!("true"));
            writer.other(observed.claim.key.clone(), Op::MergePatch { body }, precondition(workspace), "paused");
            false
        }
        Some(workspace) => outputs::pause_is_seen(workspace),
    };
    if has_reached && apply.annotations().contains_key(BLOCK_MOVE_ANNOTATION) {
        let body = json!({"metadata": {"annotations": {BLOCK_MOVE_ANNOTATION: null}}});
        writer.own(Op::MergePatch { body }, "the pause has reached the provider: it may be moved");
    }
    writer.finish()
}

/// Lifts our own pause; nobody else's.
pub(super) fn lift(observed: &Observed, writer: &mut Writer) {
    let Some(workspace) = observed.claim.ours().filter(|workspace| is_ours(workspace)) else { return };
    let key = observed.claim.key.clone();
    let precondition = writer.last_write_to(&key).map_or_else(|| precondition(workspace), Precondition::AfterAction);
    let body = annotations(&Value::Null);
    writer.other(key, Op::MergePatch { body }, precondition, "resumed");
}

/// Whether the Workspace is paused by us.
pub(super) fn is_ours(workspace: &WorkspaceView) -> bool {
    workspace.meta.annotations.contains_key(PAUSE_MARKER_ANNOTATION)
}

/// The pause and its marker, or with null none of them.
fn annotations(value: &Value) -> Value {
    json!({"metadata": {"annotations": {CROSSPLANE_PAUSED_ANNOTATION: value, PAUSE_MARKER_ANNOTATION: value}}})
}
