//! What the pass of an apply writes.

use capt_api::{
    WorkspaceTemplateApplyStatus,
    foreign::{WorkspaceApi, WorkspaceView},
    names::{
        APPLY_FINALIZER, APPLY_MANAGER, APPLY_PENDING_ANNOTATION, BLOCK_MOVE_ANNOTATION, EXTERNAL_NAME_ANNOTATION,
        RECREATE_WORKSPACE_ANNOTATION, WORKSPACE_API_ANNOTATION, conditions,
    },
};
use capt_status::{
    ConditionStatus, Reason, Span, Time,
    condition::{self, Verdict},
    machine::Cause,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    delete,
    observe::{Evidence, Observed, Rivals, State},
    pausing, takeover,
    verdicts::verdicts,
    waits::{self, Wait},
};
use crate::{
    meta::{self, Writer},
    object::Kind,
    outputs,
    ownership::{self, Owner},
    pause::Pause,
    plan::{Counts, EventType, Op, Plan, Precondition, Query},
    reasons::{self, ApplyReason},
    render::{self, Rendered},
    status::{self, Draft, set, set_text},
    world::Seen,
};

/// How long after an apply the provider usually needs to find the Workspace ready.
const SUCCESS_SETTLES: Span = Span::from_minutes(1);

/// What the pass found out about the Workspace's spec.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sync {
    /// It carries the current rendering once the plan is carried out.
    Current,
    /// It was taken over and differs; the message says in what, and how to release it.
    Pending(String),
    /// It will, once something is there.
    Waiting(Cause),
    /// It cannot without a person.
    Stalled(Cause),
}

/// What to write for an apply.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let apply = observed.apply.as_ref();
    let key = meta::key_of(Kind::Apply, apply);
    let empty = WorkspaceTemplateApplyStatus::default();
    let stored = apply.status.as_ref().unwrap_or(&empty);
    let generation = meta::generation(apply);
    let mut writer = Writer::new(key.clone(), &apply.metadata);
    match &observed.pause {
        Pause::Yes(message) => return pausing::plan(observed, writer, stored, message, now),
        Pause::Unknown => return Plan::nothing(key, "whether it is paused is not known yet"),
        Pause::No => {}
    }
    if observed.claim.is_unknown() {
        return Plan::nothing(key, format!("{} is not known yet", observed.claim.key));
    }
    if meta::is_deleting(apply) {
        return delete::plan(observed, writer, stored, now);
    }
    if observed.template.is_unknown() {
        return Plan::nothing(key, "the template is not known yet");
    }
    let Some(rivals) = &observed.rivals else {
        return Plan::nothing(key, "the other applies of its owner are not known yet");
    };
    let Some(state) = &observed.state else {
        return Plan::nothing(key, "who uses its Terraform state is not known yet");
    };
    prepare(observed, &mut writer);
    let mut wanted = Draft::Borrowed(stored);
    set!(wanted.observed_generation = Some(generation));
    let mut regressive = None;
    let mut writes_spec = false;
    let sync = match &observed.claim.found {
        // is_unknown covers both; saying nothing is right for them in any case.
        Seen::Unknown | Seen::Present((_, Owner::Unknown)) => return Plan::nothing(key, "not known yet"),
        Seen::Absent { live } => {
            let sync = absent(observed, (rivals, state), &mut writer, &mut wanted, now);
            if !live && cause(&sync).is_some_and(|cause| cause.reason == reasons::WORKSPACE_MISSING) {
                regressive = Some(Query::Object { key: observed.claim.key.clone(), counts: Counts::Any });
            }
            sync
        }
        Seen::Present((workspace, Owner::Foreign(of))) => Sync::Stalled(Cause::new(
            reasons::NAME_COLLISION,
            format!(
                "Workspace {} belongs to {of}; nothing was touched: choose another name for the apply, or set annotation \
                 capt.cluster.x-k8s.io/adopt: {} if it is this one's",
                workspace.meta.name, workspace.meta.uid
            ),
        )),
        Seen::Present((workspace, Owner::Ours | Owner::Adopted | Owner::Promised)) => {
            let written = present(observed, workspace, &mut writer, &mut wanted, now);
            writes_spec = written.spec;
            written.sync
        }
    };
    if sync == Sync::Current && apply.annotations().contains_key(APPLY_PENDING_ANNOTATION) {
        // Nothing waits any more, and left in place the word could release another takeover some day.
        own_annotation(&mut writer, APPLY_PENDING_ANNOTATION, &Value::Null, "the release is used up");
    }
    set!(wanted.applied = sync == Sync::Current);
    let verdicts = verdicts(observed, stored, &wanted, &sync, writes_spec);
    tell(&mut writer, stored, &verdicts);
    let note = summary(&verdicts);
    let both = (stored, wanted);
    let at_once_unless = |stored: &_, wanted: &_, now| worth_a_write_at(observed, stored, wanted, now);
    let written = status::write_batched(&mut writer, APPLY_MANAGER, both, verdicts, generation, now, at_once_unless);
    if let (true, Some(query), Some(last)) = (written, regressive, writer.plan().actions.last_mut()) {
        last.unless.push(query);
    }
    // Last: whoever looks at the apply sees that it has resumed before its Workspace does.
    pausing::lift(observed, &mut writer);
    writer.note(note);
    writer.finish()
}

/// When a status in which nothing is new but that the Workspace was made is worth a write, if that is
/// later: the provider is about to find it ready, and until then the Workspace itself remembers.
fn worth_a_write_at(
    observed: &Observed,
    stored: &WorkspaceTemplateApplyStatus,
    wanted: &WorkspaceTemplateApplyStatus,
    now: Time,
) -> Option<Time> {
    let made_at = observed.claim.ours().and_then(|workspace| outputs::made_at(workspace))?;
    let mut without = wanted.clone();
    without.was_ready = stored.was_ready;
    let at = made_at.plus(SUCCESS_SETTLES);
    (without == *stored && made_at <= now && now < at).then_some(at)
}

const fn cause(sync: &Sync) -> Option<&Cause> {
    match sync {
        Sync::Current | Sync::Pending(_) => None,
        Sync::Waiting(cause) | Sync::Stalled(cause) => Some(cause),
    }
}

/// What must be on the apply before anything is made, and what is recorded on it, since a status does not
/// survive a move: the finalizer, the word that a move has to wait, in which API its Workspace is or will be, and which
/// Terraform state it has.
fn prepare(observed: &Observed, writer: &mut Writer) {
    let apply = observed.apply.as_ref();
    let mut operations = Vec::new();
    if !meta::has_finalizer(apply, APPLY_FINALIZER) {
        operations.extend(meta::add_finalizer(apply, APPLY_FINALIZER));
    }
    let mut edits = Vec::new();
    if !apply.annotations().contains_key(BLOCK_MOVE_ANNOTATION) {
        edits.push((BLOCK_MOVE_ANNOTATION, Some("true")));
    }
    if !apply.annotations().contains_key(WORKSPACE_API_ANNOTATION) {
        edits.push((WORKSPACE_API_ANNOTATION, Some(ownership::api_name(observed.claim.api))));
    }
    let external_name = observed.claim.ours().and_then(|found| found.meta.annotations.get(EXTERNAL_NAME_ANNOTATION));
    if let Some(name) = external_name {
        edits.push((EXTERNAL_NAME_ANNOTATION, Some(name.as_str())));
    }
    operations.extend(meta::edit_annotations(apply, &edits));
    if !operations.is_empty() {
        writer.own(Op::JsonPatch { operations }, "what has to be on it before anything is made");
    }
}

fn own_annotation(writer: &mut Writer, name: &str, value: &Value, reason: &str) {
    let body = json!({"metadata": {"annotations": {name: value}}});
    writer.own(Op::MergePatch { body }, reason);
}

/// Whether what the apply made may still run although its Workspace is gone.
///
/// Only a status of ours that saw the Workspace from its birth and never saw it succeed says no. The Go
/// implementation's does not, and neither does the annotation that is left when a move lost the status.
fn may_run(observed: &Observed, stored: &WorkspaceTemplateApplyStatus) -> bool {
    let was_there =
        stored.workspace_name.is_some() || observed.apply.annotations().contains_key(EXTERNAL_NAME_ANNOTATION);
    let never_succeeded = stored.external_name.is_some() && stored.was_ready != Some(true);
    match observed.evidence() {
        Evidence::NeverReady => was_there && !never_succeeded,
        Evidence::WasReady | Evidence::Unknown => true,
    }
}

/// No Workspace: make it, unless that could be a second one.
fn absent(
    observed: &Observed,
    (rivals, state): (&Rivals, &State),
    writer: &mut Writer,
    wanted: &mut Draft<'_, WorkspaceTemplateApplyStatus>,
    now: Time,
) -> Sync {
    let apply = observed.apply.as_ref();
    let name = observed.claim.key.name.as_str();
    if let Some(cause) = unwanted(observed) {
        return Sync::Waiting(cause);
    }
    if let Some(cause) = beside(rivals).or_else(|| shared(state)) {
        return Sync::Stalled(cause);
    }
    if wanted.workspace_name.is_some() && condition::is_true(&wanted.conditions, conditions::PAUSED) {
        // While it was paused nobody took down what the Workspace said, and what is not known counts as ready.
        set!(wanted.was_ready = Some(true));
    }
    let may_run = may_run(observed, wanted);
    let is_released = apply.annotations().get(RECREATE_WORKSPACE_ANNOTATION).is_some_and(|of| *of == apply.name_any());
    let owner = observed.owner.as_ref().and_then(Seen::present).filter(|owner| owner.release.is_some());
    if may_run && !is_released && owner.is_none() {
        let message = format!(
            "Workspace {name} is gone and was there before; none is made, since what it stood for may still run: restore it, or \
             set annotation {RECREATE_WORKSPACE_ANNOTATION}: {} on the apply or its owner",
            apply.name_any()
        );
        return Sync::Stalled(Cause::new(reasons::WORKSPACE_MISSING, message));
    }
    if let Some(sync) = waiting(&observed.waits) {
        return sync;
    }
    let rendered = match rendered(observed, name) {
        Ok(rendered) => rendered,
        Err(sync) => return sync,
    };
    let is_again = ownership::recorded_state(apply).is_some() || wanted.workspace_name.is_some();
    if is_again && !writer.writes_to(&meta::key_of(Kind::Apply, apply)) {
        // That the Workspace is gone may be the end of a deletion which this view of the apply does not show
        // yet. The patch changes nothing; its resourceVersion is refused then, and nothing is made.
        writer.own(Op::MergePatch { body: json!({}) }, "it is as it was seen, so its Workspace is still wanted");
    }
    if may_run {
        // The word is good for one creation: left in place it would allow another one some day. It is
        // taken back first, so that a crash in between makes none.
        let reason = "the release to make the Workspace again is used up";
        if is_released {
            own_annotation(writer, RECREATE_WORKSPACE_ANNOTATION, &Value::Null, reason);
        } else if let Some((owner, release)) = owner.and_then(|owner| Some((owner, owner.release.clone()?))) {
            let body = json!({"metadata": {"annotations": {RECREATE_WORKSPACE_ANNOTATION: null}}});
            writer.other(owner.key.clone(), Op::MergePatch { body }, release, reason);
        }
    }
    if is_again {
        let note = format!("Workspace {name} was gone and is made again, with the same Terraform state");
        writer.event(EventType::Warning, reasons::WORKSPACE_RECREATED, note);
    }
    let external_name = state.name.clone();
    let body = workspace(observed, &rendered, &external_name);
    let creation = writer.other(
        observed.claim.key.clone(),
        Op::Create { body },
        Precondition::MustNotExist,
        format!("render template {}", template_name(observed)),
    );
    // A view that is behind shows the Workspace of a former name as somebody else's that was adopted since.
    creation.unless = rivals.colliding.iter().flat_map(|uid| delete::labelled(uid)).collect();
    if apply.annotations().get(EXTERNAL_NAME_ANNOTATION) != Some(&external_name) {
        // Only now: it also tells that there was a Workspace.
        let value = json!(external_name);
        own_annotation(writer, EXTERNAL_NAME_ANNOTATION, &value, "recorded where a move does not lose it");
    }
    record(observed, wanted, &rendered, Some(now));
    set!(wanted.external_name = Some(external_name));
    // A Workspace that is made from the rendering differs in nothing from it.
    set_text!(wanted.takeover_baseline = None::<&str>);
    Sync::Current
}

/// Somebody else's Workspace with the Terraform state that a new one would have: each would change and destroy what the
/// other one made.
fn shared(state: &State) -> Option<Cause> {
    let State { name, users } = state;
    let user = users.first()?;
    let message = format!(
        "{user} has the Terraform state {name}, and two must not share it; nothing was made: choose another name for the apply, \
         or another state by its annotation {EXTERNAL_NAME_ANNOTATION} together with {RECREATE_WORKSPACE_ANNOTATION}"
    );
    Some(Cause::new(reasons::NAME_COLLISION, message))
}

/// Another apply that has the infrastructure of the owner, or may still get it. No word releases this: it would be
/// made a second time beside what runs. A POST has no precondition, so one that was sent for the other apply before
/// a process stood still is carried out whenever it arrives.
fn beside(rivals: &Rivals) -> Option<Cause> {
    let Rivals { with_workspace, may_get_one, colliding: _ } = rivals;
    let (other, has, or) = match (with_workspace.first(), may_get_one.first()) {
        (Some(other), _) => (other, "has its infrastructure in", String::new()),
        (None, Some(other)) => (other, "may still get its infrastructure from", format!(", or delete {other}")),
        (None, None) => return None,
    };
    let message = format!(
        "the owner {has} WorkspaceTemplateApply {other}, and none is made beside it: write {other} into \
         spec.workspaceTemplateApplyName again{or}"
    );
    Some(Cause::new(reasons::UNSUPPORTED_CHANGE, message))
}

/// Why nothing is to be made for the apply any more: its owner is gone or going, and the apply with it, or
/// uses another one. An apply that a request on its way made when everything was deleted lives until the
/// garbage collector finds it.
fn unwanted(observed: &Observed) -> Option<Cause> {
    let message = match observed.owner.as_ref()? {
        Seen::Absent { live: _ } => "nothing is made, since the object that owns the apply is gone".to_owned(),
        Seen::Present(owner) if owner.deleting => format!("nothing is made, since {} is being deleted", owner.key),
        Seen::Present(owner) if !owner.uses_it => format!("nothing is made, since {} uses another apply", owner.key),
        Seen::Present(_) | Seen::Unknown => return None,
    };
    Some(Cause::new(reasons::NOT_WANTED, message))
}

/// A Workspace of ours: say whose it is, and bring its spec up to date.
fn present(
    observed: &Observed,
    workspace: &WorkspaceView,
    writer: &mut Writer,
    wanted: &mut Draft<'_, WorkspaceTemplateApplyStatus>,
    now: Time,
) -> takeover::Written {
    let name = workspace.meta.name.as_str();
    set_text!(wanted.workspace_name = Some(name));
    if let Some(external_name) = workspace.meta.annotations.get(EXTERNAL_NAME_ANNOTATION) {
        set_text!(wanted.external_name = Some(external_name.as_str()));
    }
    if outputs::shows_success(workspace) {
        set!(wanted.was_ready = Some(true));
    }
    if workspace.meta.deleting {
        let mut message = format!("Workspace {name} is being deleted, and not by its apply");
        if let Some(failure) = outputs::destroy_failure(workspace) {
            message = format!("{message}; {}", outputs::cause(name, &failure).message);
        }
        let sync = Sync::Waiting(Cause::new(reasons::WORKSPACE_DELETING, message));
        return takeover::Written { sync, spec: false };
    }
    let rendered = rendered(observed, name);
    let written = takeover::write(observed, workspace, &rendered, writer, wanted);
    if let (Ok(rendered), Sync::Current) = (&rendered, &written.sync) {
        record(observed, wanted, rendered, written.spec.then_some(now));
    }
    written
}

/// The rendering, or why there is none.
fn rendered(observed: &Observed, name: &str) -> Result<Rendered, Sync> {
    match &observed.template {
        // A pass with an unknown template has ended before.
        Seen::Unknown | Seen::Absent { live: _ } => {
            let message = format!(
                "WorkspaceTemplate {} does not exist; create it, or name another in spec.templateRef",
                template_name(observed)
            );
            Err(Sync::Waiting(Cause::new(reasons::TEMPLATE_NOT_FOUND, message)))
        }
        Seen::Present(template) => render::render(template, &observed.apply, name, observed.claim.api)
            .map_err(|error| Sync::Stalled(Cause::new(error.reason(), error.to_string()))),
    }
}

/// Records the rendering in the status; the time moves only with a write of the spec.
fn record(
    observed: &Observed,
    wanted: &mut Draft<'_, WorkspaceTemplateApplyStatus>,
    rendered: &Rendered,
    written_at: Option<Time>,
) {
    set_text!(wanted.workspace_name = Some(observed.claim.key.name.as_str()));
    let is_recorded = wanted.last_applied_revision.as_ref().is_some_and(|revision| revision.ends_with(&rendered.hash));
    if !is_recorded {
        let generation = observed.template.present().map_or(0, |template| meta::generation(template.as_ref()));
        set!(wanted.last_applied_revision = Some(format!("{generation}-{}", rendered.hash)));
    }
    if let Some(now) = written_at {
        set!(wanted.last_applied_time = Some(now));
    }
}

/// What is waited for: a circle first, since it never ends, then Secrets, then Workspaces.
fn waiting(waits: &[Wait]) -> Option<Sync> {
    let (mut secrets, mut workspaces) = (Vec::new(), Vec::new());
    for wait in waits {
        match wait {
            Wait::Secret(name) => secrets.push(name.as_str()),
            Wait::Workspace(name) => workspaces.push(name.as_str()),
            Wait::Cycle(cycle) => {
                let message = format!(
                    "waitForWorkspaces goes round in a circle, so nothing of it can be made: {}; take one of them out",
                    waits::path(cycle)
                );
                return Some(Sync::Stalled(Cause::new(reasons::DEPENDENCY_CYCLE, message)));
            }
        }
    }
    // Whoever gives the same things in another order reads the same.
    for names in [&mut secrets, &mut workspaces] {
        names.sort_unstable();
        names.dedup();
    }
    let (reason, message) = if !secrets.is_empty() {
        (reasons::WAITING_FOR_SECRETS, format!("waiting for a value in {}", secrets.join(", ")))
    } else if workspaces.is_empty() {
        return None;
    } else {
        (reasons::WAITING_FOR_WORKSPACES, format!("waiting for {} to become ready", workspaces.join(", ")))
    };
    Some(Sync::Waiting(Cause::new(reason, message)))
}

fn template_name(observed: &Observed) -> String {
    let reference = &observed.apply.spec.template_ref;
    let namespace = reference.namespace.clone().filter(|name| !name.is_empty()).or_else(|| observed.apply.namespace());
    format!("{}/{}", namespace.unwrap_or_default(), reference.name)
}

/// The Workspace to create: name, owner and Terraform state in one POST.
fn workspace(observed: &Observed, rendered: &Rendered, external_name: &str) -> Value {
    let kind = Kind::Workspace(observed.claim.api);
    let mut metadata = takeover::marks(observed);
    metadata["name"] = json!(observed.claim.key.name);
    metadata["annotations"][EXTERNAL_NAME_ANNOTATION] = json!(external_name);
    if observed.claim.api == WorkspaceApi::Namespaced {
        metadata["namespace"] = json!(observed.apply.namespace().unwrap_or_default());
    }
    json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": rendered.spec})
}

/// Events of what becomes of `Synced`: told when it changes, and not again.
fn tell(writer: &mut Writer, stored: &WorkspaceTemplateApplyStatus, verdicts: &[Verdict]) {
    let shown = |type_| condition::find(&stored.conditions, type_).map(|shown| (shown.status, shown.reason.as_str()));
    for verdict in verdicts {
        let is_news = shown(verdict.type_.as_str()) != Some((verdict.status, verdict.reason.as_str()));
        match (verdict.type_.as_str(), verdict.status) {
            (conditions::SYNCED, ConditionStatus::False) if is_news => {
                let of_apply = ApplyReason::find(verdict.reason.as_str()).filter(|reason| !reason.is_waiting());
                let of_provider = || Reason::find(verdict.reason.as_str()).map(Reason::as_str);
                if let Some(reason) = of_apply.map(ApplyReason::as_str).or_else(of_provider) {
                    writer.event(EventType::Warning, reason, verdict.message.clone());
                }
            }
            (conditions::PENDING_TAKEOVER_CHANGES, ConditionStatus::True) if is_news => {
                writer.event(EventType::Warning, conditions::PENDING_TAKEOVER_CHANGES, verdict.message.clone());
            }
            _ => {}
        }
    }
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
