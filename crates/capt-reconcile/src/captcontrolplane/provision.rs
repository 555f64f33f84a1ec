//! The EKS apply, made once the VPC is there, and how far its Workspace is.

use std::sync::Arc;

use capt_api::{
    CAPTControlPlaneStatus, SecretReference, WorkspaceReference,
    foreign::{ClusterView, WorkspaceView},
};
use capt_status::{
    CheckStatus, Endpoint, Time,
    condition::Verdict,
    machine::{Cause, Configuration, Infrastructure, Inputs, Workspace},
};
use kube::ResourceExt;

use super::{connection::Connection, endpoint::Other, observe::Observed, unsupported, variables};
use crate::{
    child::{ChildProgress, Wanted},
    meta::Writer,
    object::Kind,
    provider, reasons, was_ready,
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
    pub(super) other_endpoint: Option<Other>,
    /// Whether CA and kubeconfig are there and current after this plan, and what there is to say of them
    /// if they are.
    pub(super) secrets: Result<Option<Cause>, Cause>,
    /// A change that is asked for and not made.
    pub(super) unsupported: Option<Cause>,
    /// What there is to say of the Spot role.
    pub(super) spot_role: Option<Verdict>,
    /// Whether the API server answers.
    pub(super) connection: Connection,
    /// When to look again for the sake of a token.
    pub(super) next: Option<Time>,
}

impl Found {
    pub(super) fn new(workspace: Workspace, cause: Cause) -> Self {
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
            other_endpoint: None,
            unsupported: None,
            spot_role: None,
            connection: Connection { status: CheckStatus::Unknown, cause: None, at: None },
            next: None,
        }
    }
}

/// Makes the EKS apply once the VPC is there, and says how far its Workspace is.
pub(super) fn provision(
    observed: &Observed,
    cluster: &ClusterView,
    stored: &CAPTControlPlaneStatus,
    writer: &mut Writer,
) -> Found {
    let control_plane = observed.control_plane.as_ref();
    let applies = [&observed.eks, &observed.kubeconfig].map(|child| child.key.name.as_str());
    if let Some(cause) = provider::name_problem(&cluster.meta.name, applies) {
        return Found { inputs: Inputs::Invalid, ..Found::new(Workspace::Queued, cause) };
    }
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
    if let Some(cause) = variables::too_large(&variables) {
        return Found { inputs: Inputs::Invalid, ..Found::new(Workspace::Queued, cause) };
    }
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
        retain: None,
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
    let found = match told_elsewhere(observed) {
        Some(cause) => Found { workspace_cause: cause.clone(), cause, ..found },
        None => found,
    };
    Found { unsupported, ..found }
}

/// Where the VPC fails for the same reason with the same text (credentials that expired, an account that is
/// suspended), the CAPTCluster tells it, which is nearer to the cause.
fn told_elsewhere(observed: &Observed) -> Option<Cause> {
    let (captcluster, vpc) = observed.infrastructure.as_ref()?;
    let (own, vpc) = (observed.eks.failure()?, vpc.as_ref()?.failure()?);
    let name = captcluster.present()?.name_any();
    let is_same = own.reason == vpc.reason && own.message == vpc.message;
    is_same.then(|| {
        Cause::new(
            own.reason.as_str(),
            format!("waiting for CAPTCluster/{name}, which fails for the same reason and tells it"),
        )
    })
}

/// Whether all that is known says that the control plane was never ready; only then its Workspace may be
/// recreated. Cluster API's own latches and Secrets count, since a restore loses our status.
pub(super) fn may_recreate(observed: &Observed) -> bool {
    let is_absent = |secret: &Seen<_>| match secret {
        Seen::Absent { live: _ } => true,
        Seen::Unknown | Seen::Present(_) => false,
    };
    !was_ready::control_plane(&observed.control_plane)
        && is_absent(&observed.kubeconfig_secret)
        && is_absent(&observed.ca_secret)
        && observed.cluster.present().is_some_and(|cluster| !was_ready::control_plane_of(cluster))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        captcontrolplane::observe,
        object::{Object, ObjectKey},
        pass::{Settings, tests::world},
        world::{View, World},
    };

    fn says(world: &World) -> bool {
        let view = View::new(world);
        let control_plane = view.control_plane("a", "p").present().unwrap().clone();
        may_recreate(&observe(&view, control_plane, Settings::default()))
    }

    #[test]
    fn a_control_plane_is_made_anew_only_if_nothing_remembers_one() {
        let of = |change: fn([&mut Value; 3])| says(&world(change));
        assert!(of(|[_, _, _]| {}));
        assert!(of(|[cluster, _, _]| {
            cluster["status"] = json!({"initialization": {"infrastructureProvisioned": true}});
        }));
        assert!(!of(|[cluster, _, _]| {
            cluster["status"] = json!({"initialization": {"controlPlaneInitialized": true}});
        }));
        assert!(!of(|[_, _, plane]| plane["status"] = json!({"initialized": true})));
        for name in ["c-kubeconfig", "c-ca"] {
            let key = ObjectKey::new(Kind::Secret, "a", name);
            let mut lacking = world(|[_, _, _]| {});
            lacking.set_unknown(key.clone());
            assert!(!says(&lacking), "{name} is not known");
            let secret = json!({"metadata": {"namespace": "a", "name": name, "uid": "s"}, "data": {}});
            let mut with_secret = world(|[_, _, _]| {});
            with_secret.watched(key, 1, Object::parse(Kind::Secret, &secret));
            assert!(!says(&with_secret), "{name} is there");
        }
        let mut lacking = world(|[_, _, _]| {});
        lacking.set_unknown(ObjectKey::new(Kind::Cluster, "a", "c"));
        assert!(!says(&lacking), "the Cluster is not known");
    }
}
