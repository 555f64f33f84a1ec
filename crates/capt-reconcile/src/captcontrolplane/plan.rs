//! What the pass of a CAPTControlPlane writes.

use capt_api::{
    CAPTControlPlane, CAPTControlPlaneStatus,
    names::{CONTROL_PLANE_FINALIZER, CONTROL_PLANE_MANAGER, conditions},
};
use capt_status::{
    CheckName, Condition, Operation, State, Time,
    condition::{self, Verdict},
    machine::{self, Cause, Checks, Configuration, Facts, Inputs, Lifecycle, Owner, Role, Timeouts, Timer, Workspace},
};

use super::{
    configure::configure,
    connection,
    observe::{Observed, apply_name},
    provision::{Found, may_recreate, provision},
    report, secrets, spot,
};
use crate::{
    child::Child,
    dependencies::{After, Graph},
    memory,
    meta::{self, Writer},
    object::Kind,
    plan::{Op, Plan},
    provider::{self, Deletion},
    recovery::{self, Actions},
    status::{self, Draft, set, set_text},
    world::Seen,
};

/// Fields of the spec whose change is no change by the user.
const WRITTEN_BY_US: [&str; 2] = ["workspaceTemplateApplyName", "controlPlaneEndpoint"];

/// What to write for a CAPTControlPlane.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let control_plane = observed.control_plane.as_ref();
    let key = meta::key_of(Kind::CaptControlPlane, control_plane);
    let empty = CAPTControlPlaneStatus::default();
    let stored = control_plane.status.as_ref().unwrap_or(&empty);
    let mut generation = meta::generation(control_plane);
    let mut writer = Writer::new(key.clone(), &control_plane.metadata);
    if let Some(message) = &observed.paused {
        provider::pause(&mut writer, CONTROL_PLANE_MANAGER, stored, message, &report::OWN_CONDITIONS, generation, now);
        return writer.finish();
    }
    if observed.cluster.is_unknown() {
        // Not even a deletion goes on: it may be paused.
        return Plan::nothing(key, "the Cluster is not known yet");
    }
    if meta::is_deleting(control_plane) {
        return delete(observed, writer, stored, now);
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
            let name = fills_name.then(|| apply_name(control_plane)).filter(|name| name.len() <= provider::MAX_NAME);
            let writes_spec = provider::prepare(&mut writer, control_plane, CONTROL_PLANE_FINALIZER, name);
            // A write of the spec raises the generation by one; the status that follows is about that one.
            generation += i64::from(writes_spec);
            let mut found = provision(observed, cluster, stored, &mut writer);
            generation += i64::from(configure(observed, cluster, stored, &mut found, &mut writer, now));
            found.spot_role = spot::role(observed, cluster, &mut writer);
            let has_passed = memory::has_passed(stored, CheckName::Connection);
            let core = cluster.remote_connection_probe.as_ref();
            found.connection = connection::judge(core, observed.probe.as_ref(), has_passed, now);
            if let (Configuration::Complete, Some(cause)) = (found.configuration, &found.connection.cause) {
                found.cause = cause.clone();
            }
            if let Some(cause) = found.unsupported.clone() {
                found.inputs = Inputs::Unsupported;
                found.cause = cause;
            }
            if let Some(circle) = observed.dependencies.as_ref().and_then(Graph::circle) {
                found.inputs = Inputs::Invalid;
                found.cause = circle;
            }
            (Owner::Known, found)
        }
        None => (Owner::Missing, Found::new(Workspace::Queued, provider::waiting_for_cluster(control_plane))),
    };
    let hash = provider::spec_hash(control_plane, &control_plane.spec, &WRITTEN_BY_US);
    let mut limits = limits(control_plane, observed.timeouts);
    let actions = Actions::of(control_plane.spec.recovery_strategy.as_ref(), may_recreate(observed), observed.features);
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
        checks: if found.connection.cause.is_some() { Checks::Failing } else { Checks::Passing },
        same_failure: memory::is_shown(stored, &found.cause.reason),
        user_changed: memory::is_answered(stored, &hash, &observed.eks),
    };
    let mut remembered = memory::read(stored);
    let restored = was_restored(observed);
    remembered.served |= restored;
    let next = machine::follow(&remembered, &facts, &limits, now);
    let turn = actions.turn(stored.recovery.as_ref(), &facts, &next, &limits, observed.eks.busy(), now);
    turn.carry_out(&observed.eks, || recovery::guards(observed.cluster.present()), &mut writer, now);
    let cause = memory::cause(stored, &next, &found.cause, &limits);
    let state = next.state;
    // Before the status says what runs now.
    let change = if report::is_upgrade(control_plane, stored) { Operation::Upgrade } else { Operation::Update };
    let mut wanted = Draft::Borrowed(stored);
    if restored {
        set!(wanted.ready = true);
        report::initialize(&mut wanted);
    }
    memory::record_progress(&mut wanted, &facts, &next, &cause, change, &limits, now);
    set!(wanted.observed_generation = Some(generation));
    set_text!(wanted.spec_hash = Some(hash.as_str()));
    let verdicts = report::status(observed, stored, &mut wanted, &found, &next, &cause);
    memory::record_health(&mut wanted, &report::checks(&found, &cause), now);
    memory::record(&mut wanted, &next, &facts, &cause);
    turn.record(&mut wanted, next.act);
    let after = After { root: &key, state, ready: wanted.ready, actions: &writer.plan().actions };
    memory::record_dependencies(&mut wanted, observed.dependencies.as_ref(), &after);
    memory::untrack(&mut wanted, observed.features);
    writer.plan().state = Some(state);
    let ready = || format!("control plane serves at {}", wanted.endpoint.as_deref().unwrap_or_default());
    writer.plan().events.extend(memory::events(stored, &next, &cause, ready));
    writer.note(if state == State::Ready { "ready".to_owned() } else { cause.message });
    writer.plan().next = [next.at, turn.at, found.next, found.connection.at].into_iter().flatten().min();
    let (both, later) = ((stored, wanted), memory::worth_a_write_at);
    status::write_batched(&mut writer, CONTROL_PLANE_MANAGER, both, verdicts, generation, now, later);
    writer.finish()
}

/// Whether the control plane served before its status was lost by a move or a restore: its endpoint is in
/// the spec, and there is a kubeconfig that was made for it.
fn was_restored(observed: &Observed) -> bool {
    let control_plane = observed.control_plane.as_ref();
    control_plane.spec.control_plane_endpoint.as_ref().is_some_and(capt_api::ApiEndpoint::is_set)
        && secrets::is_filled(&observed.kubeconfig_secret, "value")
        && observed.kubeconfig_secret.present().is_some_and(|secret| secrets::is_ours(control_plane, secret))
}

/// Limits from the spec, and from where the Go implementation has them.
pub(crate) fn limits(control_plane: &CAPTControlPlane, defaults: Timeouts) -> machine::Limits {
    let spec = &control_plane.spec;
    let go = spec.control_plane_config.as_ref().and_then(|config| config.timeouts.as_ref()).map_or_else(
        Vec::new,
        |timeouts| {
            vec![(Timer::ControlPlane, timeouts.control_plane_timeout), (Timer::VpcReady, timeouts.vpc_ready_timeout)]
        },
    );
    memory::limits(defaults, spec.timeouts.as_ref(), &go, spec.recovery_strategy.as_ref())
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
    // Nobody waits for these.
    for child in [&observed.spot.check, &observed.spot.create] {
        child.delete(&mut writer, "the CAPTControlPlane is being deleted");
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
        limits: &limits(control_plane, observed.timeouts),
        generation: meta::generation(control_plane),
        features: observed.features,
    };
    // What is known of the parts stays as it was last seen.
    let own = |stored: &[Condition], cause: &Cause| {
        let verdict = |type_| match condition::find(stored, type_) {
            Some(last) => Verdict::new(type_, last.status, last.reason.clone(), last.message.clone()),
            None => Verdict::new(type_, false, cause.reason.clone(), cause.message.clone()),
        };
        let is_told = |type_: &&str| *type_ != conditions::SPOT_ROLE_READY || condition::find(stored, type_).is_some();
        report::OWN_CONDITIONS.into_iter().filter(is_told).map(verdict).collect()
    };
    deletion.tell(&mut writer, stored, own, now);
    writer.finish()
}
