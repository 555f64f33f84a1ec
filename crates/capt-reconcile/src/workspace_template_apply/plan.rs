//! What the pass of an apply writes.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::{WorkspaceApi, WorkspaceView},
    names::{
        APPLY_FINALIZER, APPLY_MANAGER, CLUSTER_NAME_LABEL, EXTERNAL_NAME_ANNOTATION, OWNER_NAME_ANNOTATION,
        OWNER_NAMESPACE_ANNOTATION, OWNER_UID_LABEL, RECREATE_WORKSPACE_ANNOTATION, conditions,
    },
};
use capt_status::{ConditionStatus, Time, condition::Verdict, machine::Cause};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    delete,
    observe::{Evidence, Observed, Wait},
};
use crate::{
    meta::{self, Writer},
    object::{Kind, ObjectKey},
    outputs::{self, Progress},
    ownership::{self, Owner},
    plan::{Counts, Op, Plan, Precondition, Query},
    reasons,
    render::{self, Rendered, compare},
    status,
    world::Seen,
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

/// What the pass found out about the Workspace's spec.
#[derive(Debug, Clone, PartialEq)]
enum Sync {
    /// It carries the current rendering once the plan is carried out.
    Current,
    /// It will, once something is there.
    Waiting(Cause),
    /// It cannot without a person.
    Stalled(Cause),
}

/// What to write for an apply.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let apply = observed.apply.as_ref();
    let key = meta::key_of(Kind::Apply, apply);
    let stored = apply.status.clone().unwrap_or_default();
    let generation = meta::generation(apply);
    let mut writer = Writer::new(key.clone(), &apply.metadata);
    if let Some(message) = &observed.paused {
        status::write_paused(&mut writer, APPLY_MANAGER, &stored, message, &CONDITIONS, generation, now);
        writer.note(format!("paused: {message}"));
        return writer.finish();
    }
    if observed.claim.is_unknown() {
        return Plan::nothing(key, format!("{} is not known yet", observed.claim.key));
    }
    if meta::is_deleting(apply) {
        return delete::plan(observed, writer, &stored, now);
    }
    if !meta::has_finalizer(apply, APPLY_FINALIZER) {
        let mut operations = meta::add_finalizer(apply, APPLY_FINALIZER);
        if !apply.annotations().contains_key(EXTERNAL_NAME_ANNOTATION) && observed.claim.ours().is_none() {
            operations.extend(meta::set_annotation(apply, EXTERNAL_NAME_ANNOTATION, &new_external_name(observed)));
        }
        writer.own(Op::JsonPatch { operations }, "finalizer before anything is made");
    }
    let mut wanted = stored.clone();
    wanted.observed_generation = Some(generation);
    let mut regressive = None;
    let sync = match &observed.claim.found {
        // is_unknown covers both; saying nothing is right for them in any case.
        Seen::Unknown | Seen::Present((_, Owner::Unknown)) => return Plan::nothing(key, "not known yet"),
        Seen::Absent { live } => match absent(observed, &mut writer, &mut wanted, now) {
            Some(sync) => {
                if !live && sync_is(&sync, reasons::WORKSPACE_MISSING) {
                    regressive = Some(Query::Object { key: observed.claim.key.clone(), counts: Counts::Any });
                }
                sync
            }
            None => return Plan::nothing(key, "the template is not known yet"),
        },
        Seen::Present((workspace, Owner::Foreign(of))) => Sync::Stalled(Cause::new(
            reasons::NAME_COLLISION,
            format!(
                "Workspace {} belongs to {of}; nothing was touched: choose another name for the apply, or set annotation \
                 capt.cluster.x-k8s.io/adopt: {} if it is this one's",
                workspace.meta.name, workspace.meta.uid
            ),
        )),
        Seen::Present((workspace, owner @ (Owner::Ours | Owner::Adopted))) => {
            match present(observed, workspace, *owner == Owner::Ours, &mut writer, &mut wanted, now) {
                Some(sync) => sync,
                None => return Plan::nothing(key, "the template is not known yet"),
            }
        }
    };
    wanted.applied = sync == Sync::Current;
    let verdicts = verdicts(observed, &sync, &writer);
    let note = summary(&verdicts);
    let written = status::write(&mut writer, APPLY_MANAGER, &stored, wanted, verdicts, generation, now);
    if let (true, Some(query), Some(last)) = (written, regressive, writer.plan().actions.last_mut()) {
        last.unless.push(query);
    }
    writer.note(note);
    writer.finish()
}

fn sync_is(sync: &Sync, reason: &str) -> bool {
    match sync {
        Sync::Current => false,
        Sync::Waiting(cause) | Sync::Stalled(cause) => cause.reason == reason,
    }
}

/// No Workspace: make it, unless that could be a second one.
fn absent(
    observed: &Observed,
    writer: &mut Writer,
    wanted: &mut WorkspaceTemplateApplyStatus,
    now: Time,
) -> Option<Sync> {
    let apply = observed.apply.as_ref();
    let name = observed.claim.key.name.as_str();
    let released =
        apply.annotations().get(RECREATE_WORKSPACE_ANNOTATION).is_some_and(|value| *value == apply.name_any());
    let was_there = wanted.workspace_name.is_some();
    let was_ready = match observed.evidence {
        Evidence::NeverReady => false,
        Evidence::WasReady | Evidence::Unknown => true,
    };
    if (was_there || was_ready) && !released {
        let message = format!(
            "Workspace {name} is gone and was there before; none is made, since what it stood for may still run: restore it, or \
             set annotation {RECREATE_WORKSPACE_ANNOTATION}: {} on the apply",
            apply.name_any()
        );
        return Some(Sync::Stalled(Cause::new(reasons::WORKSPACE_MISSING, message)));
    }
    if let Some(waiting) = waiting(&observed.waits) {
        return Some(Sync::Waiting(waiting));
    }
    let rendered = match rendered(observed, name)? {
        Ok(rendered) => rendered,
        Err(sync) => return Some(sync),
    };
    if (was_there || was_ready) && released {
        // The word is good for one creation: left in place it would allow another one some day. It is
        // taken back first, so that a crash in between makes none.
        let operations = meta::remove_annotation(RECREATE_WORKSPACE_ANNOTATION);
        writer.own(Op::JsonPatch { operations }, "the release to make the Workspace again is used up");
    }
    let external_name = recorded_external_name(observed, wanted).unwrap_or_else(|| new_external_name(observed));
    let body = workspace(observed, &rendered, &external_name);
    writer.other(
        observed.claim.key.clone(),
        Op::Create { body },
        Precondition::MustNotExist,
        format!("render template {}", template_name(observed)),
    );
    record(observed, wanted, &rendered, Some(now));
    wanted.external_name = Some(external_name);
    Some(Sync::Current)
}

/// A Workspace of ours: bring its spec up to date, if it was made by us.
fn present(
    observed: &Observed,
    workspace: &WorkspaceView,
    made_by_us: bool,
    writer: &mut Writer,
    wanted: &mut WorkspaceTemplateApplyStatus,
    now: Time,
) -> Option<Sync> {
    let name = workspace.meta.name.as_str();
    wanted.workspace_name = Some(name.to_owned());
    wanted.external_name =
        workspace.meta.annotations.get(EXTERNAL_NAME_ANNOTATION).cloned().or_else(|| wanted.external_name.take());
    if workspace.meta.deleting {
        let message = format!("Workspace {name} is being deleted, and not by its apply");
        return Some(Sync::Stalled(Cause::new(reasons::WORKSPACE_DELETING, message)));
    }
    let rendered = match rendered(observed, name)? {
        Ok(rendered) => rendered,
        Err(sync) => return Some(sync),
    };
    let difference = compare::difference(&rendered.spec, &workspace.spec);
    match difference {
        Some(difference) if made_by_us => {
            let precondition = Precondition::Observed {
                uid: workspace.meta.uid.clone(),
                resource_version: workspace.meta.resource_version.clone(),
            };
            let reason = format!("bring {} up to date", difference.fields.join(", "));
            writer.other(
                observed.claim.key.clone(),
                Op::MergePatch { body: json!({"spec": difference.patch}) },
                precondition,
                reason,
            );
            record(observed, wanted, &rendered, Some(now));
        }
        // Made with inputs that we do not know: shown as pending, not written.
        Some(_) => {}
        None => record(observed, wanted, &rendered, None),
    }
    Some(Sync::Current)
}

/// The rendering, or why there is none; `None` if the template is not known.
fn rendered(observed: &Observed, name: &str) -> Option<Result<Rendered, Sync>> {
    match &observed.template {
        Seen::Unknown => None,
        Seen::Absent { live: _ } => {
            let message = format!(
                "WorkspaceTemplate {} does not exist; create it, or name another in spec.templateRef",
                template_name(observed)
            );
            Some(Err(Sync::Waiting(Cause::new(reasons::TEMPLATE_NOT_FOUND, message))))
        }
        Seen::Present(template) => Some(
            render::render(template, &observed.apply, name, observed.claim.api)
                .map_err(|error| Sync::Stalled(Cause::new(error.reason(), error.to_string()))),
        ),
    }
}

/// Records the rendering in the status; the time moves only with a write of the spec.
fn record(
    observed: &Observed,
    wanted: &mut WorkspaceTemplateApplyStatus,
    rendered: &Rendered,
    written_at: Option<Time>,
) {
    wanted.workspace_name = Some(observed.claim.key.name.clone());
    let is_recorded = wanted.last_applied_revision.as_ref().is_some_and(|revision| revision.ends_with(&rendered.hash));
    if !is_recorded {
        let generation = observed.template.present().map_or(0, |template| meta::generation(template.as_ref()));
        wanted.last_applied_revision = Some(format!("{generation}-{}", rendered.hash));
    }
    if let Some(now) = written_at {
        wanted.last_applied_time = Some(now);
    }
}

/// The first things that are waited for, secrets before Workspaces.
fn waiting(waits: &[Wait]) -> Option<Cause> {
    let (mut secrets, mut workspaces) = (Vec::new(), Vec::new());
    for wait in waits {
        match wait {
            Wait::Secret(name) => secrets.push(name.as_str()),
            Wait::Workspace(name) => workspaces.push(name.as_str()),
        }
    }
    if !secrets.is_empty() {
        let message = format!("waiting for a value in {}", secrets.join(", "));
        return Some(Cause::new(reasons::WAITING_FOR_SECRETS, message));
    }
    (!workspaces.is_empty()).then(|| {
        Cause::new(reasons::WAITING_FOR_WORKSPACES, format!("waiting for {} to become ready", workspaces.join(", ")))
    })
}

fn template_name(observed: &Observed) -> String {
    let reference = &observed.apply.spec.template_ref;
    let namespace = reference.namespace.clone().filter(|name| !name.is_empty()).or_else(|| observed.apply.namespace());
    format!("{}/{}", namespace.unwrap_or_default(), reference.name)
}

fn recorded_external_name(observed: &Observed, stored: &WorkspaceTemplateApplyStatus) -> Option<String> {
    stored.external_name.clone().or_else(|| observed.apply.annotations().get(EXTERNAL_NAME_ANNOTATION).cloned())
}

fn new_external_name(observed: &Observed) -> String {
    ownership::external_name(
        observed.claim.api,
        &observed.apply.namespace().unwrap_or_default(),
        &observed.claim.key.name,
    )
}

/// The Workspace to create: name, owner and Terraform state in one POST.
fn workspace(observed: &Observed, rendered: &Rendered, external_name: &str) -> Value {
    let apply = observed.apply.as_ref();
    let kind = Kind::Workspace(observed.claim.api);
    let mut labels = json!({OWNER_UID_LABEL: meta::uid(apply)});
    if let Some(cluster) = apply.labels().get(CLUSTER_NAME_LABEL) {
        labels[CLUSTER_NAME_LABEL] = json!(cluster);
    }
    let mut metadata = json!({
        "name": observed.claim.key.name,
        "labels": labels,
        "annotations": {
            OWNER_NAMESPACE_ANNOTATION: apply.namespace().unwrap_or_default(),
            OWNER_NAME_ANNOTATION: apply.name_any(),
            EXTERNAL_NAME_ANNOTATION: external_name,
        },
    });
    if observed.claim.api == WorkspaceApi::Namespaced {
        metadata["namespace"] = json!(apply.namespace().unwrap_or_default());
    }
    json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": rendered.spec})
}

fn verdicts(observed: &Observed, sync: &Sync, writer: &Writer) -> Vec<Verdict> {
    let name = &observed.claim.key.name;
    let writes_spec = writer.writes_to(&observed.claim.key);
    let progress = match observed.claim.ours() {
        Some(_) if writes_spec => Progress::InProgress,
        Some(workspace) => outputs::progress(workspace),
        None => Progress::InProgress,
    };
    let was_available = observed
        .claim
        .ours()
        .is_some_and(|workspace| workspace.ready.as_ref().is_some_and(capt_api::foreign::ForeignCondition::is_true));
    let in_progress = Cause::new(reasons::CREATING, format!("waiting for the provider to apply Workspace {name}"));
    let (synced, cause) = match (sync, &progress) {
        (Sync::Waiting(cause) | Sync::Stalled(cause), _) => {
            (Verdict::new(conditions::SYNCED, false, cause.reason.clone(), cause.message.clone()), cause.clone())
        }
        (Sync::Current, Progress::Failing(failure)) => {
            let cause = outputs::cause(name, failure);
            (Verdict::new(conditions::SYNCED, false, cause.reason.clone(), cause.message.clone()), cause)
        }
        (Sync::Current, Progress::InProgress | Progress::Deleting | Progress::Ready) => {
            (Verdict::new(conditions::SYNCED, true, reasons::WORKSPACE_SYNCED, ""), in_progress.clone())
        }
    };
    let ready = match &progress {
        Progress::Ready => Verdict::new(conditions::READY, true, reasons::AVAILABLE, ""),
        // The provider keeps Ready while a later apply fails: it still stands.
        Progress::Failing(_) if was_available => Verdict::new(conditions::READY, true, reasons::AVAILABLE, ""),
        Progress::InProgress | Progress::Failing(_) => {
            Verdict::new(conditions::READY, false, cause.reason.clone(), cause.message.clone())
        }
        Progress::Deleting => {
            Verdict::new(conditions::READY, false, reasons::DELETING, format!("Workspace {name} is being deleted"))
        }
    };
    let is_stalled = match sync {
        Sync::Stalled(_) => true,
        Sync::Current | Sync::Waiting(_) => false,
    };
    let is_done = *sync == Sync::Current && progress == Progress::Ready;
    let mut verdicts = vec![
        synced,
        ready,
        match (is_done, is_stalled) {
            (false, false) => Verdict::new(conditions::RECONCILING, true, cause.reason.clone(), cause.message.clone()),
            (true, _) | (false, true) => Verdict::new(conditions::RECONCILING, false, "NotReconciling", ""),
        },
        if is_stalled {
            Verdict::new(conditions::STALLED, true, cause.reason, cause.message)
        } else {
            Verdict::new(conditions::STALLED, false, "NotStalled", "")
        },
        Verdict::new(conditions::PAUSED, false, "NotPaused", ""),
        Verdict::new(conditions::DELETING, false, "NotDeleting", ""),
    ];
    verdicts.extend(pending_changes(observed));
    verdicts
}

/// For a Workspace that was not made by us: whether it differs from what the apply renders to.
fn pending_changes(observed: &Observed) -> Option<Verdict> {
    let Seen::Present((workspace, Owner::Adopted)) = &observed.claim.found else { return None };
    let template = observed.template.present()?;
    let rendered = render::render(template, &observed.apply, &workspace.meta.name, observed.claim.api).ok()?;
    Some(match compare::difference(&rendered.spec, &workspace.spec) {
        Some(difference) => Verdict::new(
            conditions::PENDING_TAKEOVER_CHANGES,
            true,
            "SpecDiffers",
            format!(
                "adopted as it is; these fields differ from the template and are not applied: {}",
                difference.fields.join(", ")
            ),
        ),
        None => Verdict::new(conditions::PENDING_TAKEOVER_CHANGES, false, "SpecAgrees", ""),
    })
}

fn summary(verdicts: &[Verdict]) -> String {
    verdicts
        .iter()
        .find(|verdict| {
            matches!(verdict.type_.as_str(), conditions::SYNCED | conditions::READY)
                && verdict.status != ConditionStatus::True
        })
        .map_or_else(|| "applied and ready".to_owned(), |verdict| verdict.message.clone())
}

/// The key of the apply's Workspace, in both APIs, for live reads.
pub(super) fn workspace_keys(namespace: &str, name: &str) -> [ObjectKey; 2] {
    WorkspaceApi::ALL.map(|api| ObjectKey::new(Kind::Workspace(api), namespace, name))
}
