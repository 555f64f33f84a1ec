//! The status of a CAPTControlPlane: latches, last-known outputs, versions, conditions.

use capt_api::{
    CAPTControlPlane, CAPTControlPlaneStatus, ControlPlaneInitialization, ControlPlaneVersion, foreign::WorkspaceView,
    names::conditions,
};
use capt_status::{
    CheckName, CheckResult, CheckStatus, ConditionStatus, State,
    condition::{self, Verdict},
    machine::{self, Cause, Infrastructure, Inputs, Next, Workspace},
    text::{MAX_MESSAGE, truncate},
};
use serde_json::Value;

use super::{bounds, details, endpoint::Other, observe::Observed, provision::Found, secrets};
use crate::{
    reasons,
    status::{self, Draft, set, set_text},
};

/// Condition types that only a CAPTControlPlane has.
pub(super) const OWN_CONDITIONS: [&str; 9] = [
    conditions::INITIALIZED,
    conditions::CREATING,
    conditions::FAILED,
    conditions::WORKSPACE_SYNCED,
    conditions::WORKSPACE_READY,
    conditions::ENDPOINT_AVAILABLE,
    conditions::SECRETS_READY,
    conditions::ROLLING_OUT,
    conditions::SPOT_ROLE_READY,
];

/// Takes over into `wanted`, which is the stored status, what the pass found; its conditions.
pub(super) fn status(
    observed: &Observed,
    stored: &CAPTControlPlaneStatus,
    wanted: &mut Draft<'_, CAPTControlPlaneStatus>,
    found: &Found,
    next: &Next,
    cause: &Cause,
) -> Vec<Verdict> {
    let control_plane = observed.control_plane.as_ref();
    set!(wanted.external_managed_control_plane = Some(true));
    if let Ok(endpoint) = &found.endpoint {
        set!(wanted.endpoint = Some(endpoint.to_string()));
    }
    // While an update runs the Secrets of before are the current ones, as long as they are there.
    let are_ready = if found.ready.is_some() { found.secrets.is_ok() } else { secrets::are_there(observed) };
    set!(wanted.secrets_ready = are_ready);
    if found.endpoint.is_ok() && found.secrets.is_ok() {
        initialize(wanted);
    }
    set!(wanted.ready = wanted.ready || next.memory.served);
    workspace(observed, found, stored, wanted);
    if let Some(workspace) = &found.ready
        && let Some(version) = version(&control_plane.spec.version, workspace)
    {
        set_text!(wanted.version = Some(version.as_str()));
        set!(wanted.versions = vec![ControlPlaneVersion { version, replicas: None }]);
    }
    let available = condition::is_true(&wanted.conditions, conditions::AVAILABLE);
    let mut verdicts = machine::verdicts(next.state, wanted.ready, next.stalled, cause, available);
    verdicts.extend(own_verdicts(found, cause, next.state, wanted));
    verdicts.extend(found.spot_role.clone());
    verdicts
}

/// Sets the latches that say that the control plane accepts requests.
pub(super) fn initialize(wanted: &mut Draft<'_, CAPTControlPlaneStatus>) {
    set!(wanted.initialized = true);
    set!(wanted.initialization = Some(ControlPlaneInitialization { control_plane_initialized: Some(true) }));
}

/// Whether the spec asks for another version than the one that runs.
pub(super) fn is_upgrade(control_plane: &CAPTControlPlane, stored: &CAPTControlPlaneStatus) -> bool {
    match (minor(&control_plane.spec.version), stored.version.as_deref().and_then(minor)) {
        (Some(wanted), Some(running)) => wanted != running,
        (None, _) | (_, None) => false,
    }
}

/// Checks of health; what is not there yet is not known.
pub(super) fn checks<'a>(found: &'a Found, cause: &'a Cause) -> [CheckResult<'a>; 5] {
    let passed = |name| CheckResult::plain(name, CheckStatus::Passed);
    let unknown = |name| CheckResult::plain(name, CheckStatus::Unknown);
    let failed = |name, cause: &'a Cause| CheckResult::failed(name, &cause.reason, &cause.message);
    let part = |name, is_known: bool, error: Option<&'a Cause>| match (is_known, error) {
        (false, _) => unknown(name),
        (true, None) => passed(name),
        (true, Some(cause)) => failed(name, cause),
    };
    let dependencies = match (found.inputs, found.infrastructure) {
        (Inputs::Valid, Infrastructure::Ready) => passed(CheckName::Dependency),
        (Inputs::Valid, Infrastructure::Queued | Infrastructure::Begun) => unknown(CheckName::Dependency),
        (Inputs::Unresolved | Inputs::Invalid | Inputs::Unsupported, _) => failed(CheckName::Dependency, cause),
    };
    let workspace = match found.workspace {
        Workspace::Ready => passed(CheckName::Workspace),
        Workspace::Failing(_) => failed(CheckName::Workspace, cause),
        Workspace::Queued | Workspace::Applying => unknown(CheckName::Workspace),
    };
    let is_known = found.ready.is_some();
    [
        dependencies,
        workspace,
        part(CheckName::Endpoint, is_known, found.endpoint.as_ref().err()),
        part(CheckName::Secret, is_known, found.secrets.as_ref().err()),
        match &found.connection.cause {
            Some(cause) => failed(CheckName::Connection, cause),
            None => CheckResult::plain(CheckName::Connection, found.connection.status),
        },
    ]
}

/// What the Workspace says; what it does not say keeps its last value.
fn workspace(
    observed: &Observed,
    found: &Found,
    stored: &CAPTControlPlaneStatus,
    wanted: &mut Draft<'_, CAPTControlPlaneStatus>,
) {
    if observed.cluster.present().is_none() {
        return;
    }
    let apply = observed.eks.apply.present().and_then(|apply| apply.status.as_ref());
    let view = observed.eks.claim.as_ref().and_then(crate::ownership::Claim::ours);
    let state = view
        .and_then(|view| view.ready.as_ref())
        .map_or_else(|| reasons::CREATING.to_owned(), |ready| truncate(&ready.reason, MAX_MESSAGE));
    let revision = apply.and_then(|apply| apply.last_applied_revision.as_deref());
    let mut template = status::part(stored.workspace_template_status.as_ref());
    let mut workspace = status::part(stored.workspace_status.as_ref());
    set_text!(template.state = Some(state.as_str()));
    set_text!(workspace.state = Some(state.as_str()));
    set!(template.ready = found.workspace == Workspace::Ready);
    set!(workspace.ready = found.workspace == Workspace::Ready);
    if let Some(ready) = &found.ready {
        // Outputs count only now: those of a failed apply are of things that may be gone.
        if let Some(details) = details::updated(wanted.eks.as_ref(), ready.outputs()) {
            set!(wanted.eks = Some(details));
        }
        if !bounds::are_outputs(&template.outputs, ready.outputs()) {
            set!(template.outputs = bounds::outputs(ready.outputs()));
        }
        if revision.is_some() {
            set_text!(template.last_applied_revision = revision);
        }
        set_text!(template.last_failed_revision = None::<&str>);
        set_text!(template.last_failure_message = None::<&str>);
        if let Some(at_provider) = ready.at_provider.as_ref().filter(|value| value["outputs"].is_object()) {
            let (at_provider, truncated) = bounds::at_provider(at_provider);
            if workspace.at_provider.as_ref() != Some(&*at_provider) {
                workspace.to_mut().at_provider = Some(at_provider.into_owned());
            }
            set!(workspace.truncated_outputs = truncated);
        }
    } else if let Some(failure) = observed.eks.last_failure(found.workspace, &found.workspace_cause) {
        set_text!(template.last_failed_revision = revision);
        set_text!(template.last_failure_message = Some(failure.as_str()));
    }
    status::put(wanted, template, |status| &mut status.workspace_template_status);
    status::put(wanted, workspace, |status| &mut status.workspace_status);
}

/// The version that runs, as a semantic version: the output `cluster_version`, else the spec's. EKS
/// knows major and minor only; the patch level is the spec's where they agree, else 0.
fn version(spec: &str, workspace: &WorkspaceView) -> Option<String> {
    let running = match workspace.outputs().get("cluster_version") {
        Some(Value::String(running)) => running.as_str(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => spec,
    };
    let (major, minor, patch) = parts(running)?;
    let patch = patch.or_else(|| {
        let (spec_major, spec_minor, spec_patch) = parts(spec)?;
        if (spec_major, spec_minor) == (major, minor) { spec_patch } else { None }
    });
    Some(format!("v{major}.{minor}.{}", patch.unwrap_or(0)))
}

/// Major and minor of a version.
pub(super) fn minor(version: &str) -> Option<(u64, u64)> {
    parts(version).map(|(major, minor, _)| (major, minor))
}

/// Major, minor and, where it is there, patch of `1.31`, `v1.31` or `v1.31.4-eks-1`.
fn parts(version: &str) -> Option<(u64, u64, Option<u64>)> {
    let digits = |text: &str| text.parse::<u64>().ok();
    let mut fields = version.trim().trim_start_matches('v').splitn(3, '.');
    let (major, minor) = (digits(fields.next()?)?, digits(fields.next()?)?);
    let patch = fields.next().map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    match patch {
        None => Some((major, minor, None)),
        Some(patch) => Some((major, minor, Some(digits(&patch)?))),
    }
}

fn own_verdicts(found: &Found, cause: &Cause, state: State, wanted: &CAPTControlPlaneStatus) -> Vec<Verdict> {
    let Cause { reason, message } = cause;
    let because = |type_, status: ConditionStatus| Verdict::new(type_, status, reason.clone(), message.clone());
    let latch = |type_, is_so: bool, so: &'static str| {
        if is_so { Verdict::new(type_, true, so, "") } else { because(type_, ConditionStatus::False) }
    };
    let part = |type_, part: Result<&Option<Cause>, &Cause>, so: &'static str| match part {
        Ok(None) => Verdict::new(type_, true, so, ""),
        Ok(Some(told)) => Verdict::new(type_, true, told.reason.clone(), told.message.clone()),
        Err(cause) => Verdict::new(type_, false, cause.reason.clone(), cause.message.clone()),
    };
    let workspace = &found.workspace_cause;
    let workspace_is = |type_, status: ConditionStatus| {
        Verdict::new(type_, status, workspace.reason.clone(), workspace.message.clone())
    };
    let is_creating = matches!(
        state,
        State::Pending | State::Validating | State::Provisioning | State::Configuring | State::Recovering
    );
    vec![
        latch(conditions::INITIALIZED, wanted.initialized, "Initialized"),
        if is_creating && !wanted.ready {
            because(conditions::CREATING, ConditionStatus::True)
        } else {
            Verdict::new(conditions::CREATING, false, "NotCreating", "")
        },
        if state == State::Failed {
            because(conditions::FAILED, ConditionStatus::True)
        } else {
            Verdict::new(conditions::FAILED, false, "NotFailed", "")
        },
        match found.workspace {
            Workspace::Ready => Verdict::new(conditions::WORKSPACE_SYNCED, true, reasons::WORKSPACE_SYNCED, ""),
            Workspace::Failing(_) => workspace_is(conditions::WORKSPACE_SYNCED, ConditionStatus::False),
            Workspace::Queued | Workspace::Applying => {
                workspace_is(conditions::WORKSPACE_SYNCED, ConditionStatus::Unknown)
            }
        },
        if found.workspace == Workspace::Ready {
            Verdict::new(conditions::WORKSPACE_READY, true, reasons::AVAILABLE, "")
        } else {
            workspace_is(conditions::WORKSPACE_READY, ConditionStatus::False)
        },
        match (&found.other_endpoint, &found.endpoint, &wanted.endpoint) {
            (Some(Other::Overridden(other)), _, _) => Verdict::new(
                conditions::ENDPOINT_AVAILABLE,
                true,
                reasons::ENDPOINT_OVERRIDDEN,
                format!("Terraform puts out {other}; spec.controlPlaneEndpoint says another one, which is kept"),
            ),
            (Some(Other::Changed(other)), _, _) => Verdict::new(
                conditions::ENDPOINT_AVAILABLE,
                true,
                reasons::ENDPOINT_CHANGED,
                format!(
                    "Terraform puts out {other} now; the endpoint in use is kept: clear spec.controlPlaneEndpoint to take it"
                ),
            ),
            // While an update runs the last known endpoint still serves.
            (None, Ok(_), _) | (None, Err(_), Some(_)) => {
                Verdict::new(conditions::ENDPOINT_AVAILABLE, true, reasons::AVAILABLE, "")
            }
            (None, Err(cause), None) => {
                Verdict::new(conditions::ENDPOINT_AVAILABLE, false, cause.reason.clone(), cause.message.clone())
            }
        },
        if found.ready.is_none() && wanted.secrets_ready {
            Verdict::new(conditions::SECRETS_READY, true, reasons::AVAILABLE, "")
        } else {
            part(conditions::SECRETS_READY, found.secrets.as_ref(), reasons::AVAILABLE)
        },
        if is_creating && wanted.ready {
            because(conditions::ROLLING_OUT, ConditionStatus::True)
        } else {
            Verdict::new(conditions::ROLLING_OUT, false, "NotRollingOut", "")
        },
    ]
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use serde_json::json;

    use super::*;

    fn workspace(outputs: &Value) -> WorkspaceView {
        WorkspaceView::parse(
            WorkspaceApi::Cluster,
            &json!({"metadata": {"name": "w"}, "status": {"atProvider": {"outputs": outputs}}}),
        )
    }

    #[test]
    fn the_version_is_semantic_and_says_what_runs() {
        for (spec, running, expected) in [
            ("1.31", json!("1.31"), Some("v1.31.0")),
            ("v1.31.4", json!("1.31"), Some("v1.31.4")),
            ("v1.32.1", json!("1.31"), Some("v1.31.0")),
            ("1.31", Value::Null, Some("v1.31.0")),
            ("1.30", json!(1.3), Some("v1.30.0")),
            ("v1.31.4-eks-2", Value::Null, Some("v1.31.4")),
            ("latest", Value::Null, None),
        ] {
            assert_eq!(
                version(spec, &workspace(&json!({"cluster_version": running}))).as_deref(),
                expected,
                "{spec} {running}"
            );
        }
    }
}
