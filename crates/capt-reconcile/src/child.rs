//! An apply that a provider object owns: found, made, kept up to date, deleted.

use std::{collections::BTreeMap, sync::Arc};

use capt_api::{
    SecretReference, TemplateReference, WorkspaceReference, WorkspaceTemplateApply,
    foreign::{SecretView, WorkspaceApi, WorkspaceView},
    names::{
        APPLY_FINALIZER, BLOCK_MOVE_ANNOTATION, CLUSTER_NAME_LABEL, INPUTS_SETTLED_ANNOTATION, OWNER_ANNOTATION,
        WORKSPACE_API_ANNOTATION, conditions,
    },
};
use capt_status::{
    Class, Failure, Reason, Time, condition,
    machine::{Cause, Workspace},
    text::{MAX_MESSAGE, truncate},
};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::{
    meta::{self, Writer},
    object::{Kind, ObjectKey},
    outputs::{self, Progress},
    ownership::{self, Claim, Owner},
    pass::Settings,
    plan::{Action, Counts, Op, Precondition, Query},
    reasons::{self, ApplyReason, Meaning},
    workspace_template_apply::is_current,
    world::{Seen, View},
};

/// Annotation on a Workspace whose change makes the provider reconcile at once.
const RECONCILE_REQUESTED_ANNOTATION: &str = "crossplane.io/reconcile-requested-at";

/// An apply that a provider object owns or would make, with its Workspace and connection Secret.
#[derive(Debug, Clone)]
pub struct Child {
    /// Where the apply is.
    pub key: ObjectKey,
    /// The apply.
    pub apply: Seen<Arc<WorkspaceTemplateApply>>,
    /// Whether the provider object owns it, or did so before the apply lost all its owners; true where there is none.
    pub owned: bool,
    /// The API of its Workspace, where the apply does not say it.
    pub api: WorkspaceApi,
    /// Its Workspace, where the apply is there.
    pub claim: Option<Claim>,
    /// The connection Secret that the Workspace names, where there is one.
    pub secret: Option<(ObjectKey, Seen<Arc<SecretView>>)>,
}

/// How far a child is, as the provider object sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildProgress {
    /// Something that the apply refers to is not there yet.
    Unresolved(Cause),
    /// Waiting, for a reason.
    InProgress {
        /// What is waited for.
        cause: Cause,
        /// Whether the provider has begun on the Workspace.
        begun: bool,
    },
    /// Something is wrong.
    Failing(Cause, Class),
    /// Its Workspace is ready and carries the apply's current spec.
    Ready(Arc<WorkspaceView>),
}

/// What an apply shall look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Template.
    pub template: TemplateReference,
    /// Variables.
    pub variables: BTreeMap<String, String>,
    /// Connection Secret, where the owner decides it.
    pub secret: Option<SecretReference>,
    /// What the apply waits for.
    pub wait_for: Vec<WorkspaceReference>,
    /// Whether the Workspace stays when the apply goes, where the owner decides it.
    pub retain: Option<bool>,
}

impl Child {
    /// Finds the apply `name` of `owner`. One that lost its owners is taken back only with `template`, if that is
    /// given: what it made should not become something else on that occasion.
    pub fn observe<O: Resource<DynamicType = ()>>(
        view: &View<'_>,
        (kind, owner): (Kind, &O),
        name: &str,
        template: Option<&TemplateReference>,
        settings: Settings,
    ) -> Self {
        let namespace = owner.namespace().unwrap_or_default();
        let key = ObjectKey::new(Kind::Apply, &namespace, name);
        let apply = view.apply_at(key.clone());
        let claim = apply.present().map(|apply| ownership::claim(view, apply, settings.workspace_api));
        let secret = claim.as_ref().and_then(Claim::ours).and_then(|workspace| {
            let key = outputs::connection_secret(workspace, &namespace)?;
            Some((key.clone(), view.secret_at(key)))
        });
        let belongs = apply.present().is_none_or(|apply| {
            let is_left = || {
                // One that is being deleted keeps its hands off what a user has cut off from it.
                !meta::is_deleting(owner)
                    && meta::made_by(apply) == Some((kind, &owner.name_any()))
                    && template.is_none_or(|template| same_template(&apply.spec.template_ref, template, &key))
            };
            meta::is_owned_by(apply.as_ref(), kind, owner) || is_left()
        });
        Self { key, apply, owned: belongs, api: settings.workspace_api, claim, secret }
    }

    /// Whether nothing may be concluded about the child.
    pub fn is_unknown(&self) -> bool {
        self.apply.is_unknown()
            || self.claim.as_ref().is_some_and(Claim::is_unknown)
            || self.secret.as_ref().is_some_and(|(_, secret)| secret.is_unknown())
    }

    /// The connection Secret, if it is there.
    pub fn connection(&self) -> Option<&SecretView> {
        self.secret.as_ref().and_then(|(_, secret)| secret.present()).map(AsRef::as_ref)
    }

    /// Name of the Workspace.
    pub fn workspace_name(&self) -> String {
        let recorded = self.apply.present().and_then(|apply| apply.status.as_ref()?.workspace_name.clone());
        recorded.unwrap_or_else(|| ownership::workspace_name(&self.key.name).to_owned())
    }

    /// How far it is, if the plan in hand leaves its spec alone.
    pub fn progress(&self) -> ChildProgress {
        let waiting = || ChildProgress::InProgress { cause: self.waiting(), begun: self.begun() };
        let Some(apply) = self.apply.present() else { return waiting() };
        if !self.owned {
            let message = if apply.owner_references().is_empty() {
                format!(
                    "{} has no owner: if what it made belongs here, let it use the same template and set its annotation \
                     {OWNER_ANNOTATION} to kind and name of this object, as CAPTCluster/demo; with another name in \
                     spec.workspaceTemplateApplyName all of it is made anew",
                    self.key
                )
            } else {
                format!("{} belongs to somebody else; choose another name in spec.workspaceTemplateApplyName", self.key)
            };
            return ChildProgress::Failing(Cause::new(reasons::NAME_COLLISION, message), Class::Config);
        }
        if let Some(synced) =
            apply.status.as_ref().and_then(|status| condition::find(&status.conditions, conditions::SYNCED))
            && synced.status == condition::ConditionStatus::False
            && synced.observed_generation == Some(meta::generation(apply.as_ref()))
        {
            let cause = Cause::new(synced.reason.clone(), synced.message.clone());
            return match ApplyReason::find(&synced.reason).map(ApplyReason::meaning) {
                Some(Meaning::Unresolved) => ChildProgress::Unresolved(cause),
                Some(Meaning::Waiting) => ChildProgress::InProgress { cause, begun: false },
                // What serves goes on doing so while the provider's hands are off it.
                Some(Meaning::Paused) => match self.claim.as_ref().and_then(Claim::ours) {
                    Some(workspace)
                        if apply.status.as_ref().is_some_and(|status| status.applied) && outputs::serves(workspace) =>
                    {
                        ChildProgress::Ready(Arc::clone(workspace))
                    }
                    Some(_) | None => ChildProgress::InProgress { cause, begun: self.begun() },
                },
                Some(Meaning::Failing(class)) => ChildProgress::Failing(cause, class),
                // The provider's own error.
                None => {
                    let class = Reason::find(&synced.reason).map_or(Class::Unknown, Reason::class);
                    ChildProgress::Failing(cause, class)
                }
            };
        }
        if !is_current(apply) || meta::is_deleting(apply.as_ref()) {
            return waiting();
        }
        match self.claim.as_ref().and_then(Claim::ours) {
            None => waiting(),
            Some(workspace) => match outputs::progress(workspace) {
                Progress::InProgress | Progress::Deleting | Progress::Paused => waiting(),
                Progress::ObserveOnly => {
                    let cause = Cause::new(reasons::OBSERVE_ONLY, outputs::observe_only(&workspace.meta.name));
                    ChildProgress::Failing(cause, Class::Config)
                }
                Progress::Failing(failure) => {
                    ChildProgress::Failing(outputs::cause(&workspace.meta.name, &failure), failure.class)
                }
                Progress::Ready => ChildProgress::Ready(Arc::clone(workspace)),
            },
        }
    }

    /// What a child that is on its way is waited for.
    pub fn waiting(&self) -> Cause {
        Cause::new(
            reasons::WAITING_FOR_WORKSPACE,
            format!("waiting for Workspace {} to become ready", self.workspace_name()),
        )
    }

    /// Whether the provider has begun on the Workspace.
    pub fn begun(&self) -> bool {
        self.claim.as_ref().and_then(Claim::ours).is_some_and(|workspace| outputs::has_begun(workspace))
    }

    /// Whether an apply may be running, so that the provider is not asked for another.
    pub fn busy(&self) -> bool {
        self.claim.as_ref().and_then(Claim::ours).is_some_and(|workspace| outputs::is_busy(workspace))
    }

    /// Whether the Workspace was given something new that the provider has not looked at yet.
    pub fn has_new_inputs(&self) -> bool {
        self.claim.as_ref().and_then(Claim::ours).is_some_and(|workspace| outputs::has_new_generation(workspace))
    }

    /// What the provider says is wrong with the Workspace.
    pub fn failure(&self) -> Option<Failure> {
        match outputs::progress(self.claim.as_ref().and_then(Claim::ours)?) {
            Progress::Failing(failure) => Some(failure),
            Progress::InProgress | Progress::Paused | Progress::ObserveOnly | Progress::Deleting | Progress::Ready => {
                None
            }
        }
    }

    /// What failed last, for the record of its owner, which sees the Workspace as `workspace` and tells `told` of
    /// it. What the provider says counts also while something else is waited for.
    pub fn last_failure(&self, workspace: Workspace, told: &Cause) -> Option<String> {
        let cause = match workspace {
            Workspace::Failing(_) => told.clone(),
            Workspace::Queued | Workspace::Applying | Workspace::Ready => {
                outputs::cause(&self.workspace_name(), &self.failure()?)
            }
        };
        Some(truncate(&cause.message, MAX_MESSAGE))
    }

    /// Why the Workspace cannot be destroyed, while it is being deleted.
    pub fn destroy_failure(&self) -> Option<(Cause, Class)> {
        let workspace = self.claim.as_ref().and_then(Claim::ours)?;
        let failure = outputs::destroy_failure(workspace)?;
        Some((outputs::cause(&workspace.meta.name, &failure), failure.class))
    }

    /// Asks the provider to reconcile the Workspace now; not while an apply may be running.
    pub fn ask(&self, writer: &mut Writer, now: Time, reason: &str) {
        let Some(claim) = &self.claim else { return };
        let Some(workspace) = claim.ours().filter(|workspace| !outputs::is_busy(workspace)) else { return };
        let precondition = Precondition::Observed {
            uid: workspace.meta.uid.clone(),
            resource_version: workspace.meta.resource_version.clone(),
        };
        let body = json!({"metadata": {"annotations": {RECONCILE_REQUESTED_ANNOTATION: now}}});
        writer.other(claim.key.clone(), Op::MergePatch { body }, precondition, reason);
    }

    /// When the provider was last asked to reconcile the Workspace.
    pub fn asked_at(&self) -> Option<Time> {
        let workspace = self.claim.as_ref().and_then(Claim::ours)?;
        workspace.meta.annotations.get(RECONCILE_REQUESTED_ANNOTATION)?.parse().ok()
    }

    /// Whether the Workspace itself says that nothing of it was ever ready, so that it may be recreated;
    /// its owner has to say so too.
    pub fn may_recreate(&self) -> bool {
        let Some(Claim { key: _, api: _, found: Seen::Present((workspace, Owner::Ours)) }) = &self.claim else {
            return false;
        };
        let remembers = self.apply.present().and_then(|apply| apply.status.as_ref()?.was_ready) == Some(true);
        !remembers && outputs::was_never_ready(workspace) && !outputs::is_busy(workspace)
    }

    /// Makes the apply or brings its spec up to date; an apply of somebody else is left alone.
    /// Returns the action, if the apply is made or its spec changes.
    pub fn ensure<'w, O: Resource<DynamicType = ()>>(
        &self,
        writer: &'w mut Writer,
        kind: Kind,
        owner: &O,
        cluster: &str,
        wanted: &Wanted,
    ) -> Option<&'w mut Action> {
        match &self.apply {
            Seen::Unknown => None,
            Seen::Absent { live: _ } => {
                let body = self.body(kind, owner, cluster, wanted);
                let reason = format!("apply template {}", wanted.template.name);
                Some(writer.other(self.key.clone(), Op::Create { body }, Precondition::MustNotExist, reason))
            }
            Seen::Present(apply) if self.owned && !meta::is_deleting(apply.as_ref()) => {
                let mut spec = json!({});
                let mut fields = Vec::new();
                if apply.spec.variables != wanted.variables {
                    let gone = apply.spec.variables.keys().filter(|name| !wanted.variables.contains_key(*name));
                    let mut variables: serde_json::Map<String, Value> =
                        gone.map(|name| (name.clone(), Value::Null)).collect();
                    for (name, value) in &wanted.variables {
                        if apply.spec.variables.get(name) != Some(value) {
                            variables.insert(name.clone(), json!(value));
                        }
                    }
                    spec["variables"] = Value::Object(variables);
                    fields.push("variables");
                }
                if !same_template(&apply.spec.template_ref, &wanted.template, &self.key) {
                    // A namespace that stands there and is not wanted has to go: it would be found again each time.
                    let namespace = other_namespace(&wanted.template, &self.key);
                    spec["templateRef"] = json!({"name": wanted.template.name, "namespace": namespace});
                    fields.push("templateRef");
                }
                // An apply that names its Secret already keeps it: its users mount that one.
                if apply.spec.write_connection_secret_to_ref.is_none()
                    && let Some(secret) = &wanted.secret
                {
                    spec["writeConnectionSecretToRef"] = json!({"name": secret.name, "namespace": secret.namespace});
                    fields.push("writeConnectionSecretToRef");
                }
                if wanted
                    .retain
                    .is_some_and(|retain| retain != apply.spec.retain_workspace_on_delete.unwrap_or_default())
                {
                    spec["retainWorkspaceOnDelete"] = json!(wanted.retain);
                    fields.push("retainWorkspaceOnDelete");
                }
                let mut body = json!({});
                let metadata = completed(apply, kind, owner, cluster);
                if metadata != json!({}) {
                    body["metadata"] = metadata;
                }
                if !fields.is_empty() {
                    body["spec"] = spec;
                }
                let reason = match (fields.is_empty(), body.get("metadata")) {
                    (true, None) => return None,
                    (true, Some(_)) => "say whose it is, and that it is what its owner wants".to_owned(),
                    (false, _) => format!("bring {} up to date", fields.join(", ")),
                };
                let precondition = meta::observed(&apply.metadata);
                let action = writer.other(self.key.clone(), Op::MergePatch { body }, precondition, reason);
                (!fields.is_empty()).then_some(action)
            }
            Seen::Present(_) => None,
        }
    }

    fn body<O: Resource<DynamicType = ()>>(&self, kind: Kind, owner: &O, cluster: &str, wanted: &Wanted) -> Value {
        // The finalizer goes with the POST, so that there is no moment in which the apply has made a
        // Workspace and could go without it.
        let mut body = json!({
            "apiVersion": Kind::Apply.api_version(),
            "kind": Kind::Apply.name(),
            "metadata": {
                "namespace": self.key.namespace,
                "name": self.key.name,
                "labels": {CLUSTER_NAME_LABEL: cluster},
                "finalizers": [APPLY_FINALIZER],
                // Early, since a move looks for it before it pauses.
                "annotations": {
                    BLOCK_MOVE_ANNOTATION: "true",
                    INPUTS_SETTLED_ANNOTATION: "true",
                    OWNER_ANNOTATION: meta::maker(kind, &owner.name_any()),
                    // For good: a request that makes a Workspace may be on its way while CAPT is started again with
                    // another default.
                    WORKSPACE_API_ANNOTATION: ownership::api_name(self.api),
                },
                "ownerReferences": [meta::controller_reference(kind, owner)],
            },
            "spec": {
                "templateRef": {"name": wanted.template.name},
                "variables": wanted.variables,
            },
        });
        if let Some(namespace) = other_namespace(&wanted.template, &self.key) {
            body["spec"]["templateRef"]["namespace"] = json!(namespace);
        }
        if let Some(secret) = &wanted.secret {
            body["spec"]["writeConnectionSecretToRef"] = json!({"name": secret.name, "namespace": secret.namespace});
        }
        if wanted.retain == Some(true) {
            body["spec"]["retainWorkspaceOnDelete"] = json!(true);
        }
        if !wanted.wait_for.is_empty() {
            body["spec"]["waitForWorkspaces"] = wanted
                .wait_for
                .iter()
                .map(|reference| json!({"name": reference.name, "namespace": reference.namespace}))
                .collect();
        }
        body
    }

    /// Deletes the apply if it is there and owned; true once there is nothing left to wait for.
    pub fn delete(&self, writer: &mut Writer, reason: &str) -> bool {
        match &self.apply {
            Seen::Unknown => false,
            Seen::Absent { live: _ } => true,
            Seen::Present(_) if !self.owned => true,
            Seen::Present(apply) => {
                if !meta::is_deleting(apply.as_ref()) {
                    let precondition = Precondition::Uid(meta::uid(apply.as_ref()).to_owned());
                    writer.other(self.key.clone(), Op::Delete, precondition, reason);
                }
                false
            }
        }
    }

    /// The live read that must not find the apply before the owner's finalizer goes.
    pub fn must_be_gone<O: Resource<DynamicType = ()>>(&self, kind: Kind, owner: &O) -> Query {
        let counts = Counts::OwnedBy { kind, name: owner.name_any(), uid: meta::uid(owner).to_owned() };
        Query::Object { key: self.key.clone(), counts }
    }
}

/// Merge patch of the metadata that an apply of ours lacks: one that the Go implementation made has no
/// label, and after a move or a restore the owner reference may have the uid from before, so that the
/// garbage collector takes it for an object without an owner.
fn completed<O: Resource<DynamicType = ()>>(
    apply: &WorkspaceTemplateApply,
    kind: Kind,
    owner: &O,
    cluster: &str,
) -> Value {
    let mut metadata = json!({});
    if !apply.annotations().contains_key(INPUTS_SETTLED_ANNOTATION) {
        metadata["annotations"] = json!({INPUTS_SETTLED_ANNOTATION: "true"});
    }
    // What stands there stays: of two that own it, each would write its own name for ever.
    if !apply.annotations().contains_key(OWNER_ANNOTATION) {
        metadata["annotations"][OWNER_ANNOTATION] = json!(meta::maker(kind, &owner.name_any()));
    }
    if !apply.labels().contains_key(CLUSTER_NAME_LABEL) {
        metadata["labels"] = json!({CLUSTER_NAME_LABEL: cluster});
    }
    if !apply.owner_references().iter().any(|reference| reference.uid == meta::uid(owner)) {
        let of_owner = |reference: &Value| {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            meta::is_reference_to(
                kind,
                &owner.name_any(),
                meta::uid(owner),
                (text("apiVersion"), text("kind"), text("name"), text("uid")),
            )
        };
        let others = apply.owner_references().iter().map(|reference| json!(reference)).filter(|found| !of_owner(found));
        metadata["ownerReferences"] = others.chain([meta::controller_reference(kind, owner)]).collect();
    }
    metadata
}

/// The namespace of a template where that is not the apply's own. Nothing else is written, so that an apply looks
/// the same however its owner once spelled the reference.
fn other_namespace<'t>(template: &'t TemplateReference, apply: &ObjectKey) -> Option<&'t str> {
    template.namespace.as_deref().filter(|name| !name.is_empty() && Some(*name) != apply.namespace.as_deref())
}

/// Whether two references name the same template, however that is spelled.
fn same_template(have: &TemplateReference, want: &TemplateReference, apply: &ObjectKey) -> bool {
    have.name == want.name && other_namespace(have, apply) == other_namespace(want, apply)
}

#[cfg(test)]
mod tests;
