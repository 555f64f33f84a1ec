//! Deletion of an apply: dependents first, then its Workspace, then its finalizer.
//!
//! Needs no template, Cluster or Secret. The finalizer goes only after live reads found no
//! Workspace of ours, because the cache may not have seen one that was just made.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::WorkspaceApi,
    names::{APPLY_FINALIZER, APPLY_MANAGER, OWNER_UID_LABEL, conditions},
};
use capt_status::{Time, condition::Verdict, machine::Cause};
use kube::ResourceExt;

use super::{observe::Observed, plan::workspace_keys};
use crate::{
    meta::{self, Writer},
    object::Kind,
    plan::{Counts, Op, Plan, Precondition, Query},
    reasons, status,
};

pub(super) fn plan(observed: &Observed, mut writer: Writer, stored: &WorkspaceTemplateApplyStatus, now: Time) -> Plan {
    let apply = observed.apply.as_ref();
    let Some(operations) = meta::remove_finalizer(apply, APPLY_FINALIZER) else {
        writer.note("being deleted; our finalizer is gone");
        return writer.finish();
    };
    let retained = apply.spec.retain_workspace_on_delete == Some(true);
    let workspace = observed.claim.ours().filter(|_| !retained);
    let Some(workspace) = workspace else {
        let reason = if retained {
            format!("the Workspace {} stays: retainWorkspaceOnDelete is set", observed.claim.key.name)
        } else {
            "the Workspace is gone".to_owned()
        };
        let action = writer.own(Op::JsonPatch { operations }, reason.clone());
        if !retained {
            action.unless = live_reads(observed, stored);
        }
        writer.note(reason);
        return writer.finish();
    };
    let name = &workspace.meta.name;
    let cause = match &observed.dependents {
        None => {
            writer.note("being deleted; who depends on it is not known yet");
            return writer.finish();
        }
        Some(dependents) if !dependents.is_empty() => {
            let names: Vec<String> = dependents.iter().map(ToString::to_string).collect();
            let message = format!("Workspace {name} is kept until these are gone: {}", names.join(", "));
            Cause::new(reasons::WAITING_FOR_DEPENDENTS, message)
        }
        Some(_) => {
            if !workspace.meta.deleting {
                writer.other(
                    observed.claim.key.clone(),
                    Op::Delete,
                    Precondition::Uid(workspace.meta.uid.clone()),
                    "the apply is being deleted and nobody needs its Workspace",
                );
            }
            match crate::outputs::destroy_failure(workspace) {
                Some(failure) => {
                    let cause = crate::outputs::cause(name, &failure);
                    Cause::new(cause.reason, format!("cannot be deleted yet: {}", cause.message))
                }
                None => Cause::new(reasons::DELETING, format!("waiting for Workspace {name} to be deleted")),
            }
        }
    };
    let mut wanted = stored.clone();
    wanted.observed_generation = Some(meta::generation(apply));
    let synced = capt_status::condition::find(&stored.conditions, conditions::SYNCED);
    let verdicts = vec![
        match synced {
            Some(synced) => {
                Verdict::new(conditions::SYNCED, synced.status, synced.reason.clone(), synced.message.clone())
            }
            None => Verdict::new(conditions::SYNCED, false, cause.reason.clone(), cause.message.clone()),
        },
        Verdict::new(conditions::READY, false, cause.reason.clone(), cause.message.clone()),
        Verdict::new(conditions::RECONCILING, true, cause.reason.clone(), cause.message.clone()),
        Verdict::new(conditions::STALLED, false, "NotStalled", ""),
        Verdict::new(conditions::PAUSED, false, "NotPaused", ""),
        Verdict::new(conditions::DELETING, true, cause.reason, cause.message.clone()),
    ];
    status::write(&mut writer, APPLY_MANAGER, stored, wanted, verdicts, meta::generation(apply), now);
    writer.note(cause.message);
    writer.finish()
}

/// Live reads that must find no Workspace of ours: by label (which covers the derived name, since what
/// we make is labelled) and by recorded name.
fn live_reads(observed: &Observed, stored: &WorkspaceTemplateApplyStatus) -> Vec<Query> {
    let apply = observed.apply.as_ref();
    let (namespace, uid) = (apply.namespace().unwrap_or_default(), meta::uid(apply).to_owned());
    let mut queries: Vec<Query> = WorkspaceApi::ALL
        .into_iter()
        .map(|api| Query::Labelled { kind: Kind::Workspace(api), label: OWNER_UID_LABEL, value: uid.clone() })
        .collect();
    // Unlabelled Workspaces count only where our status names them: the Go implementation made those.
    if let Some(recorded) = &stored.workspace_name {
        let counts = Counts::LabelAbsentOr { label: OWNER_UID_LABEL, value: uid };
        queries.extend(workspace_keys(&namespace, recorded).map(|key| Query::Object { key, counts: counts.clone() }));
    }
    queries
}
