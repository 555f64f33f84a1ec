//! What an apply's conditions say: what the pass found out, and what the Workspace says of itself.
//!
//! `Synced` is about the last attempt, `Ready` about what stands: a Workspace that serves stays Ready
//! while a later attempt runs or fails.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::WorkspaceView,
    names::{CROSSPLANE_PAUSED_ANNOTATION, conditions},
};
use capt_status::{
    Class, ConditionStatus,
    condition::{self, Verdict},
    machine::Cause,
};

use super::{observe::Observed, pausing, plan::Sync};
use crate::{
    outputs::{self, Progress},
    reasons,
};

/// Condition types of an apply that are ours.
pub(super) const CONDITIONS: [&str; 7] = [
    conditions::SYNCED,
    conditions::READY,
    conditions::RECONCILING,
    conditions::STALLED,
    conditions::PENDING_TAKEOVER_CHANGES,
    conditions::PAUSED,
    conditions::DELETING,
];

/// The conditions; `writes_spec` if the plan writes the Workspace's spec, so that what it says is old.
pub(super) fn verdicts(
    observed: &Observed,
    stored: &WorkspaceTemplateApplyStatus,
    wanted: &WorkspaceTemplateApplyStatus,
    sync: &Sync,
    writes_spec: bool,
) -> Vec<Verdict> {
    let name = &observed.claim.key.name;
    let workspace = observed.claim.ours().map(AsRef::as_ref);
    let progress = match workspace {
        Some(workspace) if !writes_spec => progress(workspace),
        Some(_) | None => Progress::InProgress,
    };
    let serves = workspace.is_some_and(outputs::serves);
    let of_workspace = match &progress {
        Progress::Failing(failure) => Some((outputs::cause(name, failure), failure.class)),
        Progress::InProgress | Progress::Paused | Progress::ObserveOnly | Progress::Deleting | Progress::Ready => None,
    };
    let cause = match (sync, &progress) {
        // What the provider suffers from is not hidden behind what we wait for.
        (Sync::Waiting(cause) | Sync::Stalled(cause), _) => match &of_workspace {
            Some((failure, _)) => Cause::new(cause.reason.clone(), format!("{}; {}", cause.message, failure.message)),
            None => cause.clone(),
        },
        (Sync::Current | Sync::Pending(_), Progress::Failing(_)) => {
            of_workspace.as_ref().map_or_else(|| creating(name), |(cause, _)| cause.clone())
        }
        (Sync::Current | Sync::Pending(_), Progress::Paused) => Cause::new(
            reasons::WORKSPACE_PAUSED,
            format!("Workspace {name} was paused by somebody: remove its annotation {CROSSPLANE_PAUSED_ANNOTATION}"),
        ),
        (Sync::Current | Sync::Pending(_), Progress::ObserveOnly) => {
            Cause::new(reasons::OBSERVE_ONLY, outputs::observe_only(name))
        }
        (Sync::Current | Sync::Pending(_), Progress::Deleting) => {
            Cause::new(reasons::DELETING, format!("Workspace {name} is being deleted"))
        }
        (Sync::Current | Sync::Pending(_), Progress::InProgress | Progress::Ready) => creating(name),
    };
    let (is_synced, is_stalled, is_reconciling) = match (sync, &progress) {
        (Sync::Waiting(_), _) => (false, false, true),
        (Sync::Stalled(_), _) => (false, true, false),
        (Sync::Current | Sync::Pending(_), progress) => match progress {
            Progress::Ready => (true, false, false),
            Progress::InProgress | Progress::Deleting => (true, false, true),
            Progress::Paused => (false, false, false),
            Progress::ObserveOnly => (true, true, false),
            // The provider tries for ever; what only a person can mend is said to be so, unless it serves.
            Progress::Failing(failure) => {
                let needs_a_person = !serves && failure.class == Class::Config;
                (false, needs_a_person, !serves && !needs_a_person)
            }
        },
    };
    let because = |type_, status: bool| Verdict::new(type_, status, cause.reason.clone(), cause.message.clone());
    let mut verdicts = vec![
        if is_synced {
            Verdict::new(conditions::SYNCED, true, reasons::WORKSPACE_SYNCED, "")
        } else {
            because(conditions::SYNCED, false)
        },
        if serves {
            Verdict::new(conditions::READY, true, reasons::AVAILABLE, "")
        } else {
            because(conditions::READY, false)
        },
        if is_reconciling {
            because(conditions::RECONCILING, true)
        } else {
            Verdict::new(conditions::RECONCILING, false, "NotReconciling", "")
        },
        if is_stalled {
            because(conditions::STALLED, true)
        } else {
            Verdict::new(conditions::STALLED, false, "NotStalled", "")
        },
        Verdict::new(conditions::PAUSED, false, "NotPaused", ""),
        Verdict::new(conditions::DELETING, false, "NotDeleting", ""),
    ];
    verdicts.extend(pending(stored, wanted, sync));
    verdicts
}

/// How far the provider is, once our own pause is lifted.
fn progress(workspace: &WorkspaceView) -> Progress {
    if !pausing::is_ours(workspace) {
        return outputs::progress(workspace);
    }
    let mut resumed = workspace.clone();
    resumed.meta.annotations.remove(CROSSPLANE_PAUSED_ANNOTATION);
    outputs::progress(&resumed)
}

fn creating(workspace: &str) -> Cause {
    Cause::new(reasons::CREATING, format!("waiting for the provider to apply Workspace {workspace}"))
}

/// Whether something waits since a takeover; nothing where nothing ever did.
fn pending(
    stored: &WorkspaceTemplateApplyStatus,
    wanted: &WorkspaceTemplateApplyStatus,
    sync: &Sync,
) -> Option<Verdict> {
    let type_ = conditions::PENDING_TAKEOVER_CHANGES;
    let shown = condition::find(&stored.conditions, type_);
    match sync {
        Sync::Pending(message) => Some(Verdict::new(type_, true, "SpecDiffers", message.clone())),
        Sync::Waiting(_) | Sync::Stalled(_) if wanted.takeover_baseline.is_some() => Some(shown.map_or_else(
            || {
                let message = "taken over as it is; what differs is not known before the apply can be rendered";
                Verdict::new(type_, ConditionStatus::Unknown, "NotRendered", message)
            },
            |last| Verdict::new(type_, last.status, last.reason.clone(), last.message.clone()),
        )),
        Sync::Current | Sync::Waiting(_) | Sync::Stalled(_) => {
            shown.map(|_| Verdict::new(type_, false, "NothingPending", ""))
        }
    }
}
