//! What the pass of a CAPTCluster writes.

use std::collections::BTreeMap;

use capt_api::{
    CAPTCluster, CAPTClusterStatus, FailureDomain, InfrastructureInitialization,
    foreign::ClusterVersion,
    names::{CAPTCLUSTER_FINALIZER, CAPTCLUSTER_MANAGER, ENVIRONMENT_ANNOTATION, conditions},
};
use capt_status::{
    CheckName, CheckResult, CheckStatus, Condition, ConditionStatus, Operation, State, Time,
    condition::{self, Verdict},
    machine::{
        self, Cause, Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Owner, Role, Timeouts, Workspace,
    },
};
use kube::ResourceExt;
use serde_json::json;

use super::observe::{Observed, apply_name};
use crate::{
    captcontrolplane::unsupported,
    child::{ChildProgress, Wanted},
    dependencies::{After, Graph},
    memory,
    meta::{self, Writer},
    object::Kind,
    outputs,
    plan::{EventType, Op, Plan},
    provider::{self, Deletion},
    reasons,
    recovery::{self, Actions},
    status::{self, Draft, set, set_text},
    was_ready,
};

/// Condition types that only a CAPTCluster has.
const OWN_CONDITIONS: [&str; 4] =
    [conditions::VPC_READY, conditions::VPC_CREATING, conditions::VPC_FAILED, conditions::WAITING_FOR_CLUSTER];

/// Variables whose change replaces the VPC.
const FIXED: [(&str, &str); 1] = [("region", "region")];

/// `environment` of templates where the Cluster names none.
const DEFAULT_ENVIRONMENT: &str = "production";

/// What to write for a CAPTCluster.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let captcluster = observed.captcluster.as_ref();
    let key = meta::key_of(Kind::CaptCluster, captcluster);
    let empty = CAPTClusterStatus::default();
    let stored = captcluster.status.as_ref().unwrap_or(&empty);
    let mut generation = meta::generation(captcluster);
    let mut writer = Writer::new(key.clone(), &captcluster.metadata);
    if observed.externally_managed {
        return Plan::nothing(key, "externally managed: nothing is touched");
    }
    if let Some(message) = &observed.paused {
        provider::pause(&mut writer, CAPTCLUSTER_MANAGER, stored, message, &OWN_CONDITIONS, generation, now);
        return writer.finish();
    }
    if observed.cluster.is_unknown() || observed.vpc.is_unknown() {
        return Plan::nothing(key, "the Cluster, the apply or its Workspace is not known yet");
    }
    if meta::is_deleting(captcluster) {
        return delete(observed, writer, stored, now);
    }
    let mut wanted = Draft::Borrowed(stored);
    let owner = match observed.cluster.present() {
        Some(cluster) if cluster.meta.deleting => {
            return Plan::nothing(key, format!("Cluster {} is being deleted: nothing new is made", cluster.meta.name));
        }
        Some(_) => Owner::Known,
        None => Owner::Missing,
    };
    let mut found = if let Some(cluster) = observed.cluster.present() {
        let name_is_empty = captcluster.spec.workspace_template_apply_name.as_deref().unwrap_or_default().is_empty();
        let fills_name = name_is_empty && captcluster.spec.vpc_template_ref.is_some();
        let name = fills_name.then(|| apply_name(captcluster)).filter(|name| name.len() <= provider::MAX_NAME);
        let writes_spec = provider::prepare(&mut writer, captcluster, CAPTCLUSTER_FINALIZER, name);
        // Our own write of the spec raises the generation by one; the status that follows in this
        // plan is about that one.
        generation += i64::from(writes_spec);
        vpc(observed, stored, &cluster.meta.name, cluster.meta.annotations.get(ENVIRONMENT_ANNOTATION), &mut writer)
    } else {
        Vpc::queued(provider::waiting_for_cluster(captcluster))
    };
    if let Some(circle) = observed.dependencies.as_ref().and_then(Graph::circle) {
        found.inputs = Inputs::Invalid;
        found.cause = circle;
    }
    found.record(observed, stored, &mut wanted);
    let hash = provider::spec_hash(captcluster, &captcluster.spec, &["workspaceTemplateApplyName"]);
    let mut limits = limits(captcluster, observed.timeouts);
    let actions = Actions::of(captcluster.spec.recovery_strategy.as_ref(), may_recreate(observed), observed.features);
    if actions.is_empty() {
        limits.budget.max_retries = 0;
    }
    let facts = Facts {
        role: Role::Infrastructure,
        lifecycle: Lifecycle::Active,
        owner,
        inputs: found.inputs,
        infrastructure: Infrastructure::Ready,
        workspace: found.workspace,
        busy: observed.vpc.busy() || actions.are_pending(stored.recovery.as_ref()),
        configuration: found.configuration,
        checks: Checks::Passing,
        same_failure: memory::is_shown(stored, &found.cause.reason),
        user_changed: memory::is_answered(stored, &hash, &observed.vpc),
    };
    let mut remembered = memory::read(stored);
    let restored = was_restored(observed);
    remembered.served |= restored;
    let next = machine::follow(&remembered, &facts, &limits, now);
    let turn = actions.turn(stored.recovery.as_ref(), &facts, &next, &limits, observed.vpc.busy(), now);
    turn.carry_out(&observed.vpc, || recovery::guards(observed.cluster.present()), &mut writer, now);
    let cause = memory::cause(stored, &next, &found.cause, &limits);
    let state = next.state;
    set!(wanted.ready = wanted.ready || restored);
    set!(wanted.observed_generation = Some(generation));
    set_text!(wanted.spec_hash = Some(hash.as_str()));
    if let Some(endpoint) = endpoint(observed) {
        set!(wanted.endpoint = Some(endpoint));
    }
    memory::record_progress(&mut wanted, &facts, &next, &cause, Operation::Update, &limits, now);
    memory::record_health(&mut wanted, &checks(&found, &cause), now);
    memory::record(&mut wanted, &next, &facts, &cause);
    turn.record(&mut wanted, next.act);
    if next.memory.served {
        set!(wanted.ready = true);
        set!(wanted.initialization = Some(InfrastructureInitialization { provisioned: Some(true) }));
    }
    let after = After { root: &key, state, ready: wanted.ready, actions: &writer.plan().actions };
    memory::record_dependencies(&mut wanted, observed.dependencies.as_ref(), &after);
    memory::untrack(&mut wanted, observed.features);
    let available = condition::is_true(&stored.conditions, conditions::AVAILABLE);
    let mut verdicts = machine::verdicts(state, wanted.ready, next.stalled, &cause, available);
    verdicts.extend(own_verdicts(&found, &cause, state, owner));
    writer.plan().state = Some(state);
    let ready = || format!("VPC {} is ready", wanted.vpc_id.as_deref().unwrap_or_default());
    writer.plan().events.extend(memory::events(stored, &next, &cause, ready));
    writer.note(if state == State::Ready { "VPC ready".to_owned() } else { cause.message });
    writer.plan().next = [next.at, turn.at].into_iter().flatten().min();
    let (both, later) = ((stored, wanted), memory::worth_a_write_at);
    status::write_batched(&mut writer, CAPTCLUSTER_MANAGER, both, verdicts, generation, now, later);
    writer.finish()
}

/// Whether the VPC served before its status was lost by a move or a restore: Cluster API remembers it, or a
/// control plane does.
fn was_restored(observed: &Observed) -> bool {
    let by_cluster = observed.cluster.present().is_some_and(|cluster| cluster.infrastructure_provisioned);
    by_cluster
        || observed
            .control_planes
            .as_ref()
            .is_some_and(|planes| planes.iter().any(|plane| plane.status.as_ref().is_some_and(|status| status.ready)))
}

/// Whether all that is known says that nothing of the VPC was ever ready; only then its Workspace may be
/// recreated. A control plane that was ready had a VPC.
fn may_recreate(observed: &Observed) -> bool {
    !was_ready::vpc(&observed.captcluster)
        && observed.cluster.present().is_some_and(|cluster| !was_ready::vpc_of(cluster))
        && observed
            .control_planes
            .as_ref()
            .is_some_and(|planes| !planes.iter().any(|plane| was_ready::control_plane(plane)))
}

/// Checks of health; what is not there yet is not known.
fn checks<'a>(vpc: &Vpc, cause: &'a Cause) -> [CheckResult<'a>; 2] {
    let failed = |name| CheckResult::failed(name, &cause.reason, &cause.message);
    let workspace = match vpc.workspace {
        Workspace::Ready => CheckResult::plain(CheckName::Workspace, CheckStatus::Passed),
        Workspace::Failing(_) => failed(CheckName::Workspace),
        Workspace::Queued | Workspace::Applying => CheckResult::plain(CheckName::Workspace, CheckStatus::Unknown),
    };
    let dependencies = match vpc.inputs {
        Inputs::Valid => CheckResult::plain(CheckName::Dependency, CheckStatus::Passed),
        Inputs::Unresolved | Inputs::Invalid | Inputs::Unsupported => failed(CheckName::Dependency),
    };
    [dependencies, workspace]
}

/// Limits from the spec.
pub(crate) fn limits(captcluster: &CAPTCluster, defaults: Timeouts) -> machine::Limits {
    let spec = &captcluster.spec;
    memory::limits(defaults, spec.timeouts.as_ref(), &[], spec.recovery_strategy.as_ref())
}

/// What is known of the VPC.
#[derive(Debug)]
struct Vpc {
    inputs: Inputs,
    workspace: Workspace,
    configuration: Configuration,
    cause: Cause,
    id: Option<String>,
    /// Failure domains, where they are known.
    zones: Option<Vec<String>>,
}

impl Vpc {
    fn queued(cause: Cause) -> Self {
        let (inputs, configuration) = (Inputs::Valid, Configuration::Complete);
        Self { inputs, workspace: Workspace::Queued, configuration, cause, id: None, zones: None }
    }

    fn ready(id: String, zones: Option<Vec<String>>) -> Self {
        let found = Self::queued(Cause::new(reasons::READY, ""));
        Self { workspace: Workspace::Ready, id: Some(id), zones, ..found }
    }

    /// The Workspace is ready and says no VPC id.
    fn without_id(cause: Cause) -> Self {
        Self { workspace: Workspace::Ready, configuration: Configuration::Incomplete, ..Self::queued(cause) }
    }

    /// Takes over into the status what is known; what is not known keeps its last value.
    fn record(&self, observed: &Observed, stored: &CAPTClusterStatus, wanted: &mut Draft<'_, CAPTClusterStatus>) {
        if self.id.is_some() {
            set_text!(wanted.vpc_id = self.id.as_deref());
        }
        // A core that knows only v1beta1 reads a map here and fails on the list.
        let reads_lists = observed.cluster.present().is_none_or(|cluster| cluster.version == ClusterVersion::V1Beta2);
        let domain = |zone: &String| FailureDomain {
            name: zone.clone(),
            control_plane: Some(true),
            attributes: BTreeMap::new(),
        };
        if !reads_lists {
            set!(wanted.failure_domains = Vec::new());
        } else if let Some(zones) = &self.zones {
            set!(wanted.failure_domains = zones.iter().map(domain).collect::<Vec<_>>());
        }
        if observed.captcluster.spec.vpc_template_ref.is_none() || observed.cluster.present().is_none() {
            return;
        }
        let name = observed.vpc.workspace_name();
        set_text!(wanted.vpc_workspace_name = Some(name.as_str()));
        let apply = observed.vpc.apply.present().and_then(|apply| apply.status.as_ref());
        let mut template = status::part(stored.workspace_template_status.as_ref());
        set_text!(template.workspace_name = Some(name.as_str()));
        match self.workspace {
            Workspace::Ready => {
                set!(template.ready = self.id.is_some());
                // Taken over when it has succeeded and not while it is tried, so that a revision that is
                // shown as applied was.
                if let Some(applied) = apply {
                    set_text!(template.last_applied_revision = applied.last_applied_revision.as_deref());
                    set!(template.last_applied_time = applied.last_applied_time);
                }
                set_text!(template.last_failed_revision = None::<&str>);
                set_text!(template.last_failure_message = None::<&str>);
            }
            Workspace::Failing(_) | Workspace::Queued | Workspace::Applying => {
                set!(template.ready = false);
                if let Some(failure) = observed.vpc.last_failure(self.workspace, &self.cause) {
                    let revision = apply.and_then(|apply| apply.last_applied_revision.as_deref());
                    set_text!(template.last_failed_revision = revision);
                    set_text!(template.last_failure_message = Some(failure.as_str()));
                }
            }
        }
        status::put(wanted, template, |status| &mut status.workspace_template_status);
    }
}

/// A VPC that is used as it is; another one than the one in use is not taken.
fn existing_vpc(stored: &CAPTClusterStatus, id: String) -> Vpc {
    match &stored.vpc_id {
        Some(used) if stored.ready && *used != id => {
            let message = format!(
                "the control plane runs in VPC {used}, and another one, {id}, would replace it: write {used} again, or create a new \
                 Cluster"
            );
            let cause = Cause::new(reasons::UNSUPPORTED_CHANGE, message);
            Vpc { inputs: Inputs::Unsupported, ..Vpc::queued(cause) }
        }
        Some(_) | None => Vpc::ready(id, None),
    }
}

/// Makes the VPC's apply, or takes an existing VPC, and says how far it is.
fn vpc(
    observed: &Observed,
    stored: &CAPTClusterStatus,
    cluster: &str,
    environment: Option<&String>,
    writer: &mut Writer,
) -> Vpc {
    let captcluster = observed.captcluster.as_ref();
    let spec = &captcluster.spec;
    let existing = spec.existing_vpc_id.clone().filter(|id| !id.is_empty());
    let template = match (&spec.vpc_template_ref, existing) {
        // Both are set only on objects from before the rule against it. An apply that is there made the
        // VPC; without one nothing is made beside a VPC that exists.
        (Some(_), Some(id)) if observed.vpc.apply.present().is_none() => return Vpc::ready(id, None),
        (Some(template), _) => template,
        (None, Some(id)) => return existing_vpc(stored, id),
        (None, None) => {
            let message = "neither spec.vpcTemplateRef nor spec.existingVpcId is set; set one of them";
            return Vpc { inputs: Inputs::Invalid, ..Vpc::queued(Cause::new(reasons::NO_VPC_CONFIGURED, message)) };
        }
    };
    if let Some(cause) = provider::name_problem(cluster, [observed.vpc.key.name.as_str()]) {
        return Vpc { inputs: Inputs::Invalid, ..Vpc::queued(cause) };
    }
    let vpc_name = spec
        .vpc_config
        .as_ref()
        .and_then(|config| config.name.clone())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("{}-vpc", captcluster.name_any()));
    let wanted = Wanted {
        template: template.clone(),
        variables: BTreeMap::from([
            ("cluster_name".to_owned(), captcluster.name_any()),
            ("vpc_name".to_owned(), vpc_name),
            ("environment".to_owned(), environment.cloned().unwrap_or_else(|| DEFAULT_ENVIRONMENT.to_owned())),
            ("region".to_owned(), spec.region.clone()),
        ]),
        secret: None,
        wait_for: Vec::new(),
        // Set long before a deletion: that of a namespace hits the apply at the same time.
        retain: spec.retain_vpc_on_delete,
    };
    let apply = observed.vpc.apply.present().filter(|_| stored.ready || was_ready::vpc(captcluster));
    if let Some(cause) =
        apply.and_then(|apply| unsupported::fixed(&apply.spec.variables, &wanted.variables, &FIXED, "a VPC"))
    {
        return Vpc { inputs: Inputs::Unsupported, ..Vpc::queued(cause) };
    }
    let changes_spec = observed.vpc.ensure(writer, Kind::CaptCluster, captcluster, cluster, &wanted).is_some();
    match observed.vpc.progress() {
        ChildProgress::Ready(_) if changes_spec => {
            Vpc { workspace: Workspace::Applying, ..Vpc::queued(observed.vpc.waiting()) }
        }
        ChildProgress::Unresolved(cause) => Vpc { inputs: Inputs::Unresolved, ..Vpc::queued(cause) },
        ChildProgress::InProgress { cause, begun } => {
            Vpc { workspace: if begun { Workspace::Applying } else { Workspace::Queued }, ..Vpc::queued(cause) }
        }
        ChildProgress::Failing(cause, class) => Vpc { workspace: Workspace::Failing(class), ..Vpc::queued(cause) },
        ChildProgress::Ready(workspace) => match outputs::text(&workspace, observed.vpc.connection(), "vpc_id") {
            Ok(Some(id)) => Vpc::ready(id.trim().to_owned(), outputs::availability_zones(workspace.outputs())),
            Ok(None) => Vpc::without_id(Cause::new(
                reasons::VPC_ID_NOT_FOUND,
                format!(
                    "Workspace {} is ready but has no output vpc_id, neither in its status nor in its connection Secret",
                    workspace.meta.name
                ),
            )),
            Err(error) => {
                let message = format!("Workspace {}: {error}", workspace.meta.name);
                Vpc::without_id(Cause::new(reasons::VPC_ID_NOT_FOUND, message))
            }
        },
    }
}

/// `host:port` of the control plane, which owns it.
fn endpoint(observed: &Observed) -> Option<String> {
    let planes = observed.control_planes.as_ref()?;
    planes.iter().find_map(|plane| plane.status.as_ref()?.endpoint.clone())
}

/// The conditions of the Go implementation, kept true.
fn own_verdicts(vpc: &Vpc, cause: &Cause, state: State, owner: Owner) -> Vec<Verdict> {
    let Cause { reason, message } = cause;
    let because = |type_, status: ConditionStatus| Verdict::new(type_, status, reason.clone(), message.clone());
    let is_failing = matches!(vpc.workspace, Workspace::Failing(_))
        || matches!(vpc.inputs, Inputs::Invalid | Inputs::Unsupported) && vpc.id.is_none()
        || state == State::Failed;
    let is_ready = vpc.id.is_some() && !is_failing;
    let is_creating = match state {
        State::Validating | State::Provisioning | State::Configuring | State::Recovering | State::Pending => {
            !is_failing && !is_ready
        }
        State::Ready | State::Degraded | State::Failed | State::Deleting => false,
    };
    vec![
        if is_ready {
            Verdict::new(conditions::VPC_READY, true, reasons::READY, "")
        } else {
            because(conditions::VPC_READY, ConditionStatus::False)
        },
        if is_creating {
            because(conditions::VPC_CREATING, ConditionStatus::True)
        } else {
            Verdict::new(conditions::VPC_CREATING, false, "NotCreating", "")
        },
        if is_failing {
            because(conditions::VPC_FAILED, ConditionStatus::True)
        } else {
            Verdict::new(conditions::VPC_FAILED, false, "NotFailed", "")
        },
        match owner {
            Owner::Missing => {
                Verdict::new(conditions::WAITING_FOR_CLUSTER, true, vpc.cause.reason.clone(), vpc.cause.message.clone())
            }
            Owner::Known => Verdict::new(conditions::WAITING_FOR_CLUSTER, false, "ClusterFound", ""),
        },
    ]
}

/// Control planes first, then the VPC's apply, then the finalizer.
fn delete(observed: &Observed, mut writer: Writer, stored: &CAPTClusterStatus, now: Time) -> Plan {
    let captcluster = observed.captcluster.as_ref();
    let Some(operations) = meta::remove_finalizer(captcluster, CAPTCLUSTER_FINALIZER) else {
        writer.note("being deleted; our finalizer is gone");
        return writer.finish();
    };
    writer.plan().state = Some(State::Deleting);
    let Some(planes) = &observed.control_planes else {
        writer.note("being deleted; the control planes are not known yet");
        return writer.finish();
    };
    let message = if let Some(plane) = planes.first() {
        format!("waiting for {} to be deleted before the VPC", meta::key_of(Kind::CaptControlPlane, plane.as_ref()))
    } else {
        let retain = captcluster.spec.retain_vpc_on_delete == Some(true);
        if let (true, Some(apply)) = (retain && observed.vpc.owned, observed.vpc.apply.present())
            && apply.spec.retain_workspace_on_delete != Some(true)
        {
            let body = json!({"spec": {"retainWorkspaceOnDelete": true}});
            writer.other(
                observed.vpc.key.clone(),
                Op::MergePatch { body },
                meta::observed(&apply.metadata),
                "retainVpcOnDelete is set: the Workspace survives the apply",
            );
        }
        if observed.vpc.delete(&mut writer, "the CAPTCluster is being deleted and no control plane is left") {
            let action = writer.own(Op::JsonPatch { operations }, "the VPC's apply is gone");
            action.unless = vec![observed.vpc.must_be_gone(Kind::CaptCluster, captcluster)];
            if let (true, Some(id)) = (retain, stored.vpc_id.as_deref()) {
                let name = observed.vpc.workspace_name();
                let note = format!("VPC {id} and its Workspace {name} stay: retainVpcOnDelete is set");
                writer.event(EventType::Normal, reasons::VPC_RETAINED, note);
            }
            writer.note("the VPC's apply is gone");
            return writer.finish();
        }
        let stays = if retain { "; its Workspace and the VPC stay: retainVpcOnDelete is set" } else { "" };
        format!("waiting for {} to be deleted{stays}", observed.vpc.key)
    };
    let deletion = Deletion {
        role: Role::Infrastructure,
        manager: CAPTCLUSTER_MANAGER,
        waiting_for: message,
        blocked: observed.vpc.destroy_failure(),
        limits: &limits(captcluster, observed.timeouts),
        generation: meta::generation(captcluster),
        features: observed.features,
    };
    let own = |_: &[Condition], cause: &Cause| {
        vec![
            Verdict::new(conditions::VPC_READY, false, cause.reason.clone(), cause.message.clone()),
            Verdict::new(conditions::VPC_CREATING, false, "NotCreating", ""),
            Verdict::new(conditions::VPC_FAILED, false, "NotFailed", ""),
            Verdict::new(conditions::WAITING_FOR_CLUSTER, false, "ClusterFound", ""),
        ]
    };
    deletion.tell(&mut writer, stored, own, now);
    writer.finish()
}

#[cfg(test)]
mod tests;
