//! What is written to a Workspace that is there: marks of ownership, and its spec.
//!
//! **Adoption never applies drift.** The Go implementation never updated a Workspace after its first
//! apply, so years of edits of templates and versions may be waiting, and some of them would replace a
//! running cluster. A Workspace that was not made by this apply is marked as ours and left as it is. Where
//! its spec differs from the rendering, a baseline stays on it (and in the apply's status) until somebody
//! releases exactly the difference that is shown, or it is gone. Whatever changes meanwhile waits with it.
//!
//! An apply of a provider object is taken over only once that has said what it wants of it: variables that
//! the Go implementation did not have must not come afterwards, as a change like any other.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::WorkspaceView,
    names::{
        APPLY_PENDING_ANNOTATION, CLUSTER_NAME_LABEL, OWNER_NAME_ANNOTATION, OWNER_NAMESPACE_ANNOTATION,
        OWNER_UID_LABEL, PAUSE_MARKER_ANNOTATION, TAKEOVER_BASELINE_ANNOTATION,
    },
};
use capt_status::machine::Cause;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{observe::Observed, plan::Sync};
use crate::{
    meta::{self, Writer},
    outputs,
    ownership::Owner,
    plan::{EventType, Op, Precondition},
    reasons,
    render::{Rendered, compare},
    status::{Draft, set},
    world::Seen,
};

/// Baseline of a Workspace that was taken over while its rendering was not to be had.
const NOT_RENDERED: &str = "not-rendered";
/// Most fields that are shown.
const MAX_FIELDS: usize = 16;

/// What became of the Workspace.
#[derive(Debug)]
pub(super) struct Written {
    /// What the apply says about it.
    pub(super) sync: Sync,
    /// Whether its spec is written by this plan.
    pub(super) spec: bool,
}

/// Marks a Workspace of ours if it is not marked yet, and brings its spec up to date if that may be.
///
/// `rendering` is what it should be, or why that is not known.
pub(super) fn write(
    observed: &Observed,
    workspace: &WorkspaceView,
    rendering: &Result<Rendered, Sync>,
    writer: &mut Writer,
    wanted: &mut Draft<'_, WorkspaceTemplateApplyStatus>,
) -> Written {
    let adopting = match &observed.claim.found {
        Seen::Present((_, Owner::Adopted | Owner::Promised)) => true,
        Seen::Present((_, Owner::Ours | Owner::Foreign(_) | Owner::Unknown)) | Seen::Unknown | Seen::Absent { .. } => {
            false
        }
    };
    if adopting && is_unsettled(observed) {
        return as_it_is(observed, workspace, rendering);
    }
    let annotated = workspace.meta.annotations.get(TAKEOVER_BASELINE_ANNOTATION);
    let baseline = annotated.or(wanted.takeover_baseline.as_ref()).cloned();
    let difference = rendering.as_ref().map(|rendered| compare::difference(&rendered.spec, &workspace.spec));
    let mut spec = None;
    let (sync, baseline) = match (rendering, difference) {
        (Ok(rendered), Ok(Some(difference))) => {
            let released = observed.apply.annotations().get(APPLY_PENDING_ANNOTATION) == Some(&rendered.hash);
            let baseline = baseline.or_else(|| adopting.then(|| rendered.hash.clone()));
            if baseline.is_some() && !released {
                (Sync::Pending(pending(&difference.fields, &rendered.hash)), baseline)
            } else if is_paused_by_somebody(workspace) {
                let message = format!(
                    "Workspace {} was paused by somebody, so it does not get the changes of {}: remove its annotation \
                     crossplane.io/paused",
                    workspace.meta.name,
                    listed(&difference.fields)
                );
                (Sync::Waiting(Cause::new(reasons::WORKSPACE_PAUSED, message)), baseline)
            } else {
                spec = Some(difference);
                (Sync::Current, None)
            }
        }
        (Ok(_), Ok(None) | Err(_)) => (Sync::Current, None),
        (Err(sync), _) => (sync.clone(), baseline.or_else(|| adopting.then(|| NOT_RENDERED.to_owned()))),
    };
    let mut metadata = if adopting { marks(observed) } else { json!({}) };
    if annotated != baseline.as_ref() {
        metadata["annotations"][TAKEOVER_BASELINE_ANNOTATION] = json!(baseline);
    }
    set!(wanted.takeover_baseline = baseline);
    let mut body = Map::new();
    let mut reasons = Vec::new();
    if adopting {
        // Its life before is not known, and what is not known counts as ready.
        set!(wanted.was_ready = Some(true));
        let note = format!("took over Workspace {} as it is", workspace.meta.name);
        writer.event(EventType::Normal, reasons::WORKSPACE_ADOPTED, note);
        reasons.push("take it over as it is".to_owned());
    } else if metadata != json!({}) {
        reasons.push("what waited since the takeover has changed".to_owned());
    }
    if metadata != json!({}) {
        body.insert("metadata".to_owned(), metadata);
    }
    let writes_spec = spec.is_some();
    if let Some(difference) = spec {
        reasons.push(format!("bring {} up to date", listed(&difference.fields)));
        body.insert("spec".to_owned(), difference.patch);
    }
    if !body.is_empty() {
        let op = Op::MergePatch { body: Value::Object(body) };
        writer.other(observed.claim.key.clone(), op, precondition(workspace), reasons.join("; "));
    }
    Written { sync, spec: writes_spec }
}

/// Whether the owner has not said yet what it wants.
fn is_unsettled(observed: &Observed) -> bool {
    match &observed.owner {
        Some(Seen::Present(owner)) => owner.unsettled && !owner.deleting,
        Some(Seen::Unknown | Seen::Absent { live: _ }) | None => false,
    }
}

/// A Workspace that is not taken over yet: told, and not written to.
fn as_it_is(observed: &Observed, workspace: &WorkspaceView, rendering: &Result<Rendered, Sync>) -> Written {
    let sync = match rendering {
        Ok(rendered) => match compare::difference(&rendered.spec, &workspace.spec) {
            Some(difference) => {
                let owner = observed.owner.as_ref().and_then(Seen::present).map(|owner| owner.key.to_string());
                Sync::Pending(format!(
                    "not taken over before {} has said what it wants; until then these fields differ: {}",
                    owner.unwrap_or_default(),
                    listed(&difference.fields)
                ))
            }
            None => Sync::Current,
        },
        Err(sync) => sync.clone(),
    };
    Written { sync, spec: false }
}

/// "Exactly the Workspace that was observed".
pub(super) fn precondition(workspace: &WorkspaceView) -> Precondition {
    Precondition::Observed {
        uid: workspace.meta.uid.clone(),
        resource_version: workspace.meta.resource_version.clone(),
    }
}

/// The metadata that says whose a Workspace is.
pub(super) fn marks(observed: &Observed) -> Value {
    let apply = observed.apply.as_ref();
    let mut labels = json!({OWNER_UID_LABEL: meta::uid(apply)});
    if let Some(cluster) = apply.labels().get(CLUSTER_NAME_LABEL) {
        labels[CLUSTER_NAME_LABEL] = json!(cluster);
    }
    json!({
        "labels": labels,
        "annotations": {
            OWNER_NAMESPACE_ANNOTATION: apply.namespace().unwrap_or_default(),
            OWNER_NAME_ANNOTATION: apply.name_any(),
        },
    })
}

/// Whether it is paused, and not by us.
fn is_paused_by_somebody(workspace: &WorkspaceView) -> bool {
    outputs::is_paused(workspace) && !workspace.meta.annotations.contains_key(PAUSE_MARKER_ANNOTATION)
}

fn pending(fields: &[String], hash: &str) -> String {
    format!(
        "taken over as it is; these fields differ from what the apply renders to and are not applied: {}. To apply all of it, \
         set annotation {APPLY_PENDING_ANNOTATION}: {hash} on the apply",
        listed(fields)
    )
}

/// Names of fields, never their values, and not too many.
fn listed(fields: &[String]) -> String {
    let shown = fields.iter().take(MAX_FIELDS).cloned().collect::<Vec<_>>().join(", ");
    match fields.len().saturating_sub(MAX_FIELDS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
