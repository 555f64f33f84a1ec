//! Deletion of an apply: dependents first, then its Workspace, then its finalizer.
//!
//! Needs no template, Cluster or Secret. The finalizer goes only after live reads found no
//! Workspace of ours, because the cache may not have seen one that was just made.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::{WorkspaceApi, WorkspaceView},
    names::{APPLY_FINALIZER, APPLY_MANAGER, OWNER_UID_LABEL, conditions},
};
use capt_status::{Time, condition::Verdict, machine::Cause};
use kube::ResourceExt;
use serde_json::json;

use super::{
    observe::Observed,
    pausing,
    takeover::{self, precondition},
    waits::{self, Dependents},
};
use crate::{
    meta::{self, Writer},
    object::Kind,
    outputs,
    ownership::{self, Owner},
    plan::{Counts, Op, Plan, Precondition, Query},
    reasons,
    status::{self, Draft, set},
    world::Seen,
};

pub(super) fn plan(observed: &Observed, mut writer: Writer, stored: &WorkspaceTemplateApplyStatus, now: Time) -> Plan {
    let apply = observed.apply.as_ref();
    let Some(operations) = meta::remove_finalizer(apply, APPLY_FINALIZER) else {
        writer.note("being deleted; our finalizer is gone");
        return writer.finish();
    };
    pausing::lift(observed, &mut writer);
    let name = &observed.claim.key.name;
    if let Some(reason) = stays(observed) {
        if let Seen::Present((workspace, Owner::Adopted)) = &observed.claim.found {
            // So that the apply that comes next proves that it is its own.
            let body = json!({"metadata": takeover::marks(observed)});
            let precondition = last_version(observed, &writer, workspace);
            writer.other(observed.claim.key.clone(), Op::MergePatch { body }, precondition, "say whose it was");
        }
        let reason = format!("the Workspace {name} stays: {reason}");
        writer.own(Op::JsonPatch { operations }, reason.clone());
        writer.note(reason);
        return writer.finish();
    }
    let Some(workspace) = observed.claim.ours() else {
        let action = writer.own(Op::JsonPatch { operations }, "no Workspace of it is left");
        action.unless = live_reads(observed, stored);
        writer.note("no Workspace of it is left");
        return writer.finish();
    };
    let cause = match &observed.dependents {
        None => {
            writer.note("being deleted; who depends on it is not known yet");
            return writer.finish();
        }
        Some(Dependents { blocking, cycle: _ }) if !blocking.is_empty() => {
            let names: Vec<String> = blocking.iter().map(ToString::to_string).collect();
            let message = format!("Workspace {name} is kept until these are gone: {}", names.join(", "));
            Cause::new(reasons::WAITING_FOR_DEPENDENTS, message)
        }
        Some(Dependents { blocking: _, cycle }) => {
            if !workspace.meta.deleting {
                writer.other(
                    observed.claim.key.clone(),
                    Op::Delete,
                    Precondition::Uid(workspace.meta.uid.clone()),
                    "the apply is being deleted and nobody needs its Workspace",
                );
            }
            going(workspace, cycle.as_deref())
        }
    };
    tell(observed, &mut writer, stored, cause, now);
    writer.finish()
}

/// Why the Workspace outlives the apply; `None` if it goes with it.
fn stays(observed: &Observed) -> Option<String> {
    let apply = observed.apply.as_ref();
    if apply.spec.retain_workspace_on_delete == Some(true) {
        return Some("retainWorkspaceOnDelete is set".to_owned());
    }
    let workspace = observed.claim.ours().filter(|workspace| !workspace.meta.deleting)?;
    match &observed.owner {
        // Nobody asked for this: uids changed with a restore or a move, so the garbage collector takes the
        // apply for one without an owner. The owner makes it anew, and that one takes the Workspace over.
        Some(Seen::Present(owner)) if owner.changed_uid && !owner.deleting => Some(format!(
            "{} is there and not being deleted, and has another uid than the apply's owner reference, as after a restore",
            owner.key
        )),
        // As above with the owner not restored: what marks the Workspace is an apply of an earlier life.
        Some(Seen::Absent { live: _ }) if is_of_an_earlier_life(observed, workspace) => {
            Some("it was not taken over yet by the apply, and its owner is not there, as after a restore".to_owned())
        }
        Some(Seen::Present(_) | Seen::Absent { live: _ } | Seen::Unknown) | None => None,
    }
}

fn is_of_an_earlier_life(observed: &Observed, workspace: &WorkspaceView) -> bool {
    let uid = meta::uid(observed.apply.as_ref());
    workspace.meta.labels.get(OWNER_UID_LABEL).is_some_and(|labelled| labelled != uid)
}

fn last_version(observed: &Observed, writer: &Writer, workspace: &WorkspaceView) -> Precondition {
    writer.last_write_to(&observed.claim.key).map_or_else(|| precondition(workspace), Precondition::AfterAction)
}

/// What a Workspace that is being deleted is waited for.
fn going(workspace: &WorkspaceView, cycle: Option<&[crate::object::ObjectKey]>) -> Cause {
    let name = &workspace.meta.name;
    let mut cause = match outputs::destroy_failure(workspace) {
        Some(failure) => {
            let cause = outputs::cause(name, &failure);
            Cause::new(cause.reason, format!("cannot be deleted yet: {}", cause.message))
        }
        None => Cause::new(reasons::DELETING, format!("waiting for Workspace {name} to be deleted")),
    };
    if workspace.spec["deletionPolicy"] == "Orphan" {
        cause.message.push_str("; what it made stays, since its deletionPolicy is Orphan");
    }
    if let Some(cycle) = cycle {
        cause.message.push_str("; these wait for each other and are all being deleted, so none is kept for another: ");
        cause.message.push_str(&waits::path(cycle));
    }
    cause
}

fn tell(observed: &Observed, writer: &mut Writer, stored: &WorkspaceTemplateApplyStatus, cause: Cause, now: Time) {
    let apply = observed.apply.as_ref();
    let mut wanted = Draft::Borrowed(stored);
    set!(wanted.observed_generation = Some(meta::generation(apply)));
    let synced = capt_status::condition::find(&stored.conditions, conditions::SYNCED);
    let mut verdicts = vec![
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
    // What waited since a takeover waits no more.
    if capt_status::condition::find(&stored.conditions, conditions::PENDING_TAKEOVER_CHANGES).is_some() {
        verdicts.push(Verdict::new(conditions::PENDING_TAKEOVER_CHANGES, false, reasons::DELETING, ""));
    }
    status::write(writer, APPLY_MANAGER, (stored, wanted), verdicts, meta::generation(apply), now);
    writer.note(cause.message);
}

/// Live reads for Workspaces of the apply with this uid, in both APIs.
pub(super) fn labelled(uid: &str) -> impl Iterator<Item = Query> {
    WorkspaceApi::ALL.into_iter().map(move |api| Query::Labelled {
        kind: Kind::Workspace(api),
        label: OWNER_UID_LABEL,
        value: uid.to_owned(),
    })
}

/// Live reads that must find no Workspace of ours: by label (which covers the derived name, since what
/// we make is labelled) and by recorded name.
fn live_reads(observed: &Observed, stored: &WorkspaceTemplateApplyStatus) -> Vec<Query> {
    let apply = observed.apply.as_ref();
    let (namespace, uid) = (apply.namespace().unwrap_or_default(), meta::uid(apply).to_owned());
    let mut queries: Vec<Query> = labelled(&uid).collect();
    // Unlabelled Workspaces count only where our status names them (the Go implementation made those) and not where
    // another apply's does too: they would be found each time, and the other one keeps them.
    if let Some(recorded) = &stored.workspace_name {
        let counts = Counts::LabelAbsentOr { label: OWNER_UID_LABEL, value: uid };
        let keys = ownership::keys(&namespace, recorded).into_iter();
        let open = keys.filter(|key| !observed.strangers.contains(key));
        queries.extend(open.map(|key| Query::Object { key, counts: counts.clone() }));
    }
    queries
}
