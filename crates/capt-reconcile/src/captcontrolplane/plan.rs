//! What the pass of a CAPTControlPlane writes.

use std::{collections::BTreeMap, sync::Arc};

use capt_api::{
    CAPTControlPlane, CAPTControlPlaneStatus, SecretReference, WorkspaceReference,
    foreign::{ClusterView, WorkspaceView},
    names::{CONTROL_PLANE_FINALIZER, CONTROL_PLANE_MANAGER},
};
use capt_status::{
    Condition, Endpoint, Operation, State, Time,
    condition::{self, Verdict},
    machine::{
        self, Cause, Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Owner, Role, Timer, Workspace,
    },
};
use kube::ResourceExt;
use serde_json::json;

use super::{
    endpoint::{self, Decision},
    observe::{Observed, apply_name},
    report, secrets, unsupported, variables,
};
use crate::{
    child::{Child, ChildProgress, Wanted},
    memory,
    meta::{self, Writer},
    object::Kind,
    outputs,
    plan::{Counts, Op, Plan, Query},
    provider::{self, Deletion},
    reasons,
    recovery::{self, Actions},
    status, was_ready,
    world::Seen,
};

/// What the pass found out.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) inputs: Inputs,
    pub(super) infrastructure: Infrastructure,
    pub(super) workspace: Workspace,
    pub(super) configuration: Configuration,
    /// What is waited for, or suffered from.
    pub(super) cause: Cause,
    /// The same of the EKS Workspace alone.
    pub(super) workspace_cause: Cause,
    /// The EKS Workspace, where its outputs count.
    pub(super) ready: Option<Arc<WorkspaceView>>,
    /// The endpoint that the spec carries after this plan.
    pub(super) endpoint: Result<Endpoint, Cause>,
    /// Another endpoint that Terraform puts out now.
    pub(super) changed_to: Option<Endpoint>,
    /// Whether CA and kubeconfig are there and current after this plan.
    pub(super) secrets: Result<(), Cause>,
    /// A change that is asked for and not made.
    pub(super) unsupported: Option<Cause>,
}

impl Found {
    fn new(workspace: Workspace, cause: Cause) -> Self {
        Self {
            inputs: Inputs::Valid,
            infrastructure: Infrastructure::Ready,
            workspace,
            configuration: Configuration::Incomplete,
            endpoint: Err(cause.clone()),
            secrets: Err(cause.clone()),
            workspace_cause: cause.clone(),
            cause,
            ready: None,
            changed_to: None,
            unsupported: None,
        }
    }
}

/// What to write for a CAPTControlPlane.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let control_plane = observed.control_plane.as_ref();
    let key = meta::key_of(Kind::CaptControlPlane, control_plane);
    let stored = control_plane.status.clone().unwrap_or_default();
    let mut generation = meta::generation(control_plane);
    let mut writer = Writer::new(key.clone(), &control_plane.metadata);
    if let Some(message) = &observed.paused {
        provider::pause(&mut writer, CONTROL_PLANE_MANAGER, &stored, message, &report::OWN_CONDITIONS, generation, now);
        return writer.finish();
    }
    if meta::is_deleting(control_plane) {
        return delete(observed, writer, &stored, now);
    }
    if observed.is_unknown() {
        return Plan::nothing(key, "something that it depends on is not known yet");
    }
    let (owner, found) = match observed.cluster.present() {
        Some(cluster) if cluster.meta.deleting => {
            return Plan::nothing(key, format!("Cluster {} is being deleted: nothing new is made", cluster.meta.name));
        }
        Some(cluster) => {
            let fills_name = control_plane.spec.workspace_template_apply_name.as_deref().unwrap_or_default().is_empty();
            let name = fills_name.then(|| apply_name(control_plane));
            let writes_spec = provider::prepare(&mut writer, control_plane, CONTROL_PLANE_FINALIZER, name);
            // A write of the spec raises the generation by one; the status that follows is about that one.
            generation += i64::from(writes_spec);
            let mut found = provision(observed, cluster, &stored, &mut writer);
            if found.ready.is_some() {
                generation += i64::from(configure(observed, cluster, &stored, &mut found, &mut writer));
            }
            if let Some(cause) = found.unsupported.clone() {
                found.inputs = Inputs::Unsupported;
                found.cause = cause;
            }
            (Owner::Known, found)
        }
        None => (Owner::Missing, Found::new(Workspace::Queued, provider::waiting_for_cluster(control_plane))),
    };
    let written_by_us = ["workspaceTemplateApplyName", "controlPlaneEndpoint"];
    let hash = provider::spec_hash(control_plane, &control_plane.spec, &written_by_us);
    let mut limits = limits(control_plane);
    let actions = Actions::of(control_plane.spec.recovery_strategy.as_ref(), may_recreate(observed));
    if actions.is_empty() {
        limits.budget.max_retries = 0;
    }
    let facts = Facts {
        role: Role::ControlPlane,
        lifecycle: Lifecycle::Active,
        owner,
        inputs: found.inputs,
        infrastructure: found.infrastructure,
        workspace: found.workspace,
        busy: observed.eks.busy() || actions.are_pending(stored.recovery.as_ref()),
        configuration: found.configuration,
        checks: Checks::Passing,
        same_failure: memory::is_shown(&stored, &found.cause.reason),
        user_changed: stored.spec_hash.as_ref().is_some_and(|stored| *stored != hash),
    };
    let mut remembered = memory::read(&stored);
    let restored = was_restored(observed);
    remembered.served |= restored;
    let next = machine::follow(&remembered, &facts, &limits, now);
    let turn = actions.turn(stored.recovery.as_ref(), &facts, &next, &limits, observed.eks.busy(), now);
    turn.carry_out(&observed.eks, recovery::guards(observed.cluster.present()), &mut writer, now);
    let cause = memory::cause(&stored, &next, &found.cause, &limits);
    let state = next.state;
    // Before the status says what runs now.
    let change = if report::is_upgrade(control_plane, &stored) { Operation::Upgrade } else { Operation::Update };
    let mut wanted = stored.clone();
    if restored {
        wanted.ready = true;
        report::initialize(&mut wanted);
    }
    memory::record_progress(&mut wanted, &facts, &next, &cause, change, &limits, now);
    wanted.observed_generation = Some(generation);
    wanted.spec_hash = Some(hash);
    let verdicts = report::status(observed, &mut wanted, &found, &next, &cause);
    memory::record_health(&mut wanted, &report::checks(&found, &cause), now);
    memory::record(&mut wanted, &next, &facts, &cause);
    turn.record(&mut wanted, next.act);
    writer.plan().state = Some(state);
    let ready = format!("control plane serves at {}", wanted.endpoint.as_deref().unwrap_or_default());
    writer.plan().events.extend(memory::events(&stored, &next, &cause, &ready));
    writer.note(if state == State::Ready { "ready".to_owned() } else { cause.message });
    writer.plan().next = [next.at, turn.at].into_iter().flatten().min();
    status::write_batched(&mut writer, CONTROL_PLANE_MANAGER, &stored, wanted, verdicts, generation, now);
    writer.finish()
}

/// Whether the control plane served before its status was lost by a move or a restore: its endpoint is in
/// the spec, and there is a kubeconfig that was made for it.
fn was_restored(observed: &Observed) -> bool {
    let control_plane = observed.control_plane.as_ref();
    control_plane.spec.control_plane_endpoint.as_ref().is_some_and(capt_api::ApiEndpoint::is_set)
        && observed.kubeconfig_secret.present().is_some_and(|secret| {
            secrets::is_ours(control_plane, secret) && secret.data.get("value").is_some_and(|value| !value.is_empty())
        })
}

/// Whether all that is known says that the control plane was never ready; only then its Workspace may be
/// recreated. Cluster API's own latches and Secrets count, since a restore loses our status.
fn may_recreate(observed: &Observed) -> bool {
    let is_absent = |secret: &Seen<_>| match secret {
        Seen::Absent { live: _ } => true,
        Seen::Unknown | Seen::Present(_) => false,
    };
    !was_ready::control_plane(&observed.control_plane)
        && is_absent(&observed.kubeconfig_secret)
        && is_absent(&observed.ca_secret)
        && observed.cluster.present().is_some_and(|cluster| !was_ready::control_plane_of(cluster))
}

/// Limits from the spec, and from where the Go implementation has them.
fn limits(control_plane: &CAPTControlPlane) -> machine::Limits {
    let spec = &control_plane.spec;
    let go = spec.control_plane_config.as_ref().and_then(|config| config.timeouts.as_ref()).map_or_else(
        Vec::new,
        |timeouts| {
            vec![(Timer::ControlPlane, timeouts.control_plane_timeout), (Timer::VpcReady, timeouts.vpc_ready_timeout)]
        },
    );
    memory::limits(spec.timeouts.as_ref(), &go, spec.recovery_strategy.as_ref())
}

/// Makes the EKS apply once the VPC is there, and says how far its Workspace is.
fn provision(
    observed: &Observed,
    cluster: &ClusterView,
    stored: &CAPTControlPlaneStatus,
    writer: &mut Writer,
) -> Found {
    let control_plane = observed.control_plane.as_ref();
    let Some(region) = variables::region(observed) else {
        let message = "no region: set spec.controlPlaneConfig.region, the CAPTCluster's spec.region, or the Cluster's annotation \
                       cluster.x-k8s.io/region";
        let found = Found::new(Workspace::Queued, Cause::new(reasons::REGION_MISSING, message));
        return Found { inputs: Inputs::Invalid, ..found };
    };
    let variables = match variables::eks(observed, region) {
        Ok(variables) => variables,
        Err(variables::Waiting { inputs, infrastructure, cause }) => {
            return Found { inputs, infrastructure, ..Found::new(Workspace::Queued, cause) };
        }
    };
    let wanted = Wanted {
        template: control_plane.spec.workspace_template_ref.clone(),
        variables,
        secret: Some(SecretReference {
            name: format!("{}-eks-connection", control_plane.name_any()),
            namespace: control_plane.namespace().unwrap_or_default(),
        }),
        wait_for: variables::vpc_apply(observed)
            .map(|vpc| WorkspaceReference { name: vpc.key.name.clone(), namespace: vpc.key.namespace.clone() })
            .into_iter()
            .collect(),
    };
    let served = stored.ready || was_ready::control_plane(control_plane);
    let unsupported = observed
        .eks
        .apply
        .present()
        .filter(|_| served)
        .and_then(|apply| unsupported::change(&apply.spec.variables, &wanted.variables, stored.version.as_deref()));
    // What cannot be changed is left as it is, and everything else with it.
    let changes_spec = unsupported.is_none()
        && observed.eks.ensure(writer, Kind::CaptControlPlane, control_plane, &cluster.meta.name, &wanted).is_some();
    let strategy = control_plane.spec.recovery_strategy.as_ref();
    if recovery::is_recreating(stored.recovery.as_ref(), strategy, may_recreate(observed))
        && observed.eks.release(writer, recovery::guards(observed.cluster.present()))
    {
        return Found::new(Workspace::Queued, observed.eks.waiting());
    }
    let found = match observed.eks.progress() {
        ChildProgress::Ready(workspace) if !changes_spec => {
            Found { ready: Some(workspace), ..Found::new(Workspace::Ready, Cause::new(reasons::READY, "")) }
        }
        ChildProgress::Ready(_) => Found::new(Workspace::Applying, observed.eks.waiting()),
        ChildProgress::Unresolved(cause) => {
            Found { inputs: Inputs::Unresolved, ..Found::new(Workspace::Queued, cause) }
        }
        ChildProgress::InProgress { cause, begun } => {
            Found::new(if begun { Workspace::Applying } else { Workspace::Queued }, cause)
        }
        ChildProgress::Failing(cause, class) => Found::new(Workspace::Failing(class), cause),
    };
    Found { unsupported, ..found }
}

/// Endpoint, CA and kubeconfig of a ready Workspace; true if the spec changes with it.
fn configure(
    observed: &Observed,
    cluster: &ClusterView,
    stored: &CAPTControlPlaneStatus,
    found: &mut Found,
    writer: &mut Writer,
) -> bool {
    let control_plane = observed.control_plane.as_ref();
    let Some(workspace) = found.ready.clone() else { return false };
    let output = |name: &'static str, reason: &'static str| -> Result<String, Cause> {
        match outputs::text(&workspace, observed.eks.connection(), name) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(Cause::new(
                reason,
                format!(
                    "Workspace {} has no output {name}, neither in its status nor in its connection Secret",
                    workspace.meta.name
                ),
            )),
            Err(error) => Err(Cause::new(reason, format!("Workspace {}: {error}", workspace.meta.name))),
        }
    };
    let url = output("cluster_endpoint", reasons::ENDPOINT_NOT_READY);
    let parsed = url.clone().and_then(|url| {
        url.parse::<Endpoint>()
            .map_err(|error| Cause::new(reasons::ENDPOINT_NOT_READY, format!("output cluster_endpoint: {error}")))
    });
    let shown = stored.endpoint.as_deref();
    let spec = control_plane.spec.control_plane_endpoint.as_ref();
    let mut changes_spec = false;
    found.endpoint = match endpoint::decide(spec, shown, parsed, stored.ready) {
        Decision::Keep { endpoint, changed_to } => {
            found.changed_to = changed_to;
            Ok(endpoint)
        }
        Decision::Write(endpoint) => {
            let body = json!({"spec": {"controlPlaneEndpoint": {"host": endpoint.host(), "port": endpoint.port()}}});
            writer.own(Op::MergePatch { body }, format!("endpoint {endpoint}"));
            changes_spec = true;
            Ok(endpoint)
        }
        Decision::Missing(cause) => Err(cause),
    };
    let encoded_ca = output("cluster_certificate_authority_data", reasons::CA_NOT_READY);
    let ca = encoded_ca.clone().and_then(|encoded| secrets::ca_pem(&encoded)).and_then(|pem| {
        let data = BTreeMap::from([("tls.crt", pem)]);
        secrets::ensure(writer, control_plane, &cluster.meta.name, "ca", &observed.ca_secret, &data)
    });
    let kubeconfig = kubeconfig(observed, cluster, &workspace, url.and_then(|url| Ok((url, encoded_ca?))), writer)
        .and_then(|text| {
            let data = BTreeMap::from([("value", text)]);
            secrets::ensure(writer, control_plane, &cluster.meta.name, "kubeconfig", &observed.kubeconfig_secret, &data)
        });
    // The kubeconfig first: without it nobody reaches the cluster.
    found.secrets = kubeconfig.and(ca);
    match found.endpoint.as_ref().err().or_else(|| found.secrets.as_ref().err()) {
        Some(cause) => found.cause = cause.clone(),
        None => found.configuration = Configuration::Complete,
    }
    changes_spec
}

/// The kubeconfig: the EKS Workspace's own output, else that of a further apply.
fn kubeconfig(
    observed: &Observed,
    cluster: &ClusterView,
    workspace: &WorkspaceView,
    inputs: Result<(String, String), Cause>,
    writer: &mut Writer,
) -> Result<String, Cause> {
    let not_ready = |message: String| Cause::new(reasons::KUBECONFIG_NOT_READY, message);
    let text = |workspace: &WorkspaceView, secret| {
        outputs::text(workspace, secret, "kubeconfig")
            .map_err(|error| not_ready(format!("Workspace {}: {error}", workspace.meta.name)))
    };
    if let Some(own) = text(workspace, observed.eks.connection())? {
        return Ok(own);
    }
    // A sensitive output is in the connection Secret alone, so as long as that is not seen nobody
    // knows whether there is one.
    if observed.eks.secret.is_some() && observed.eks.connection().is_none_or(|secret| secret.data.is_empty()) {
        return Err(not_ready(format!("waiting for the connection Secret of Workspace {}", workspace.meta.name)));
    }
    let control_plane = observed.control_plane.as_ref();
    let Some(template) = observed.kubeconfig_template.present() else {
        return Err(Cause::new(
            reasons::KUBECONFIG_TEMPLATE_NOT_FOUND,
            format!(
                "Workspace {} has no output kubeconfig, and there is no template to make one: add the output, or create the \
                 WorkspaceTemplate of spec.kubeconfigTemplateRef or eks-kubeconfig-template",
                workspace.meta.name
            ),
        ));
    };
    let region = variables::region(observed).unwrap_or_default();
    let (url, ca) = inputs?;
    let wanted = Wanted {
        template: template.clone(),
        variables: variables::kubeconfig(&cluster.meta.name, region, url, ca),
        secret: Some(SecretReference {
            name: format!("{}-outputs-kubeconfig", cluster.meta.name),
            namespace: control_plane.namespace().unwrap_or_default(),
        }),
        wait_for: vec![WorkspaceReference {
            name: observed.eks.key.name.clone(),
            namespace: observed.eks.key.namespace.clone(),
        }],
    };
    let kind = Kind::CaptControlPlane;
    let exists = observed.kubeconfig.apply.present().is_some();
    let changes = observed.kubeconfig.ensure(writer, kind, control_plane, &cluster.meta.name, &wanted);
    let changes_spec = changes.is_some();
    if let (Some(action), false, Some((secret, _))) = (changes, exists, &observed.eks.secret) {
        // The cache may lag behind the Secret; a further apply is made only if it truly has no kubeconfig.
        action.unless.push(Query::Object { key: secret.clone(), counts: Counts::SecretKey { key: "kubeconfig" } });
    }
    match observed.kubeconfig.progress() {
        ChildProgress::Ready(made) if !changes_spec => text(&made, observed.kubeconfig.connection())?
            .ok_or_else(|| not_ready(format!("Workspace {} has no output kubeconfig yet", made.meta.name))),
        ChildProgress::Ready(_) => {
            Err(not_ready(format!("waiting for Workspace {}", observed.kubeconfig.workspace_name())))
        }
        ChildProgress::Unresolved(cause)
        | ChildProgress::InProgress { cause, begun: _ }
        | ChildProgress::Failing(cause, _) => Err(not_ready(cause.message)),
    }
}

/// Both applies, then the finalizer. Needs no template, Cluster or Secret.
fn delete(observed: &Observed, mut writer: Writer, stored: &CAPTControlPlaneStatus, now: Time) -> Plan {
    let control_plane = observed.control_plane.as_ref();
    let Some(operations) = meta::remove_finalizer(control_plane, CONTROL_PLANE_FINALIZER) else {
        writer.note("being deleted; our finalizer is gone");
        return writer.finish();
    };
    writer.plan().state = Some(State::Deleting);
    let children = [&observed.kubeconfig, &observed.eks];
    if children.iter().any(|child| matches!(child.apply, Seen::Unknown)) {
        writer.note("being deleted; its applies are not known yet");
        return writer.finish();
    }
    let mut left = Vec::new();
    for child in children {
        if !child.delete(&mut writer, "the CAPTControlPlane is being deleted") {
            left.push(child.key.to_string());
        }
    }
    if left.is_empty() {
        let action = writer.own(Op::JsonPatch { operations }, "its applies are gone");
        action.unless = children.map(|child| child.must_be_gone(Kind::CaptControlPlane, control_plane)).into();
        writer.note("its applies are gone");
        return writer.finish();
    }
    let message = format!("waiting for {} to be deleted", left.join(", "));
    let deletion = Deletion {
        role: Role::ControlPlane,
        manager: CONTROL_PLANE_MANAGER,
        waiting_for: message,
        blocked: children.into_iter().find_map(Child::destroy_failure),
        limits: &limits(control_plane),
        generation: meta::generation(control_plane),
    };
    // What is known of the parts stays as it was last seen.
    let own = |stored: &[Condition], cause: &Cause| {
        let verdict = |type_| match condition::find(stored, type_) {
            Some(last) => Verdict::new(type_, last.status, last.reason.clone(), last.message.clone()),
            None => Verdict::new(type_, false, cause.reason.clone(), cause.message.clone()),
        };
        report::OWN_CONDITIONS.into_iter().map(verdict).collect()
    };
    deletion.tell(&mut writer, stored, own, now);
    writer.finish()
}
