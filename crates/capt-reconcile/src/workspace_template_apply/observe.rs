//! What the pass of an apply depends on.

use std::sync::Arc;

use capt_api::{
    WorkspaceTemplate, WorkspaceTemplateApply,
    names::{CLUSTER_NAME_LABEL, conditions},
};
use capt_status::condition;
use kube::ResourceExt;

use crate::{
    captcluster, captcontrolplane, meta,
    object::{Kind, ObjectKey},
    outputs::{self, Progress},
    ownership::{self, Claim},
    pass::Settings,
    pause, was_ready,
    world::{Seen, View},
};

/// What the pass of an apply depends on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The apply.
    pub apply: Arc<WorkspaceTemplateApply>,
    /// Why it is paused, if it is.
    pub paused: Option<String>,
    /// Its template.
    pub template: Seen<Arc<WorkspaceTemplate>>,
    /// Its Workspace.
    pub claim: Claim,
    /// What it waits for, in the order of its spec; only what is not there yet.
    pub waits: Vec<Wait>,
    /// Whether the infrastructure of its owner was ever ready.
    pub evidence: Evidence,
    /// Who keeps it from going; asked only when it is being deleted. `None` if not all are known.
    pub dependents: Option<Vec<ObjectKey>>,
}

/// Something an apply waits for that is not there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// A Secret without a non-empty key, or none.
    Secret(String),
    /// An apply or a Workspace that is not ready, or none.
    Workspace(String),
}

/// Whether the infrastructure behind an apply was ever ready, as its owner remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// No owner that remembers, or it says no.
    NeverReady,
    /// The owner says so.
    WasReady,
    /// The owner is not known; counts as ready.
    Unknown,
}

/// Takes out of the world what the pass of `apply` depends on.
pub fn observe(view: &View<'_>, apply: Arc<WorkspaceTemplateApply>, settings: Settings) -> Observed {
    let namespace = apply.namespace().unwrap_or_default();
    let reference = &apply.spec.template_ref;
    let template = view.template(
        reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(&namespace),
        &reference.name,
    );
    Observed {
        paused: pause::reason(
            view,
            Kind::Apply,
            apply.as_ref(),
            apply.labels().get(CLUSTER_NAME_LABEL).map(String::as_str),
        ),
        template,
        claim: ownership::claim(view, &apply, settings.workspace_api),
        waits: waits(view, &apply, &namespace, settings),
        evidence: evidence(view, &apply, &namespace),
        dependents: if meta::is_deleting(apply.as_ref()) {
            dependents(view, &apply, &namespace)
        } else {
            Some(Vec::new())
        },
        apply,
    }
}

fn waits(view: &View<'_>, apply: &WorkspaceTemplateApply, namespace: &str, settings: Settings) -> Vec<Wait> {
    let secrets = apply.spec.wait_for_secrets.iter().filter_map(|reference| {
        let namespace = if reference.namespace.is_empty() { namespace } else { &reference.namespace };
        let secret = view.secret(namespace, &reference.name);
        let is_there = secret.present().is_some_and(|secret| secret.data.values().any(|value| !value.is_empty()));
        (!is_there).then(|| Wait::Secret(format!("Secret/{namespace}/{}", reference.name)))
    });
    let workspaces = apply.spec.wait_for_workspaces.iter().filter_map(|reference| {
        let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(namespace);
        wait_for(view, namespace, &reference.name, settings).map(Wait::Workspace)
    });
    secrets.chain(workspaces).collect()
}

/// What is missing of the apply `name`, or where there is no such apply, of the Workspace `name`.
fn wait_for(view: &View<'_>, namespace: &str, name: &str, settings: Settings) -> Option<String> {
    match view.apply(namespace, name) {
        Seen::Present(apply) => {
            let claim = ownership::claim(view, &apply, settings.workspace_api);
            let is_ready = is_current(&apply)
                && claim.ours().is_some_and(|workspace| outputs::progress(workspace) == Progress::Ready);
            (!is_ready).then(|| meta::key_of(Kind::Apply, apply.as_ref()).to_string())
        }
        Seen::Unknown => Some(format!("WorkspaceTemplateApply/{namespace}/{name}")),
        Seen::Absent { live: _ } => {
            let is_ready = capt_api::foreign::WorkspaceApi::ALL.into_iter().any(|api| {
                view.workspace(ObjectKey::new(Kind::Workspace(api), namespace, name))
                    .present()
                    .is_some_and(|workspace| outputs::progress(workspace) == Progress::Ready)
            });
            (!is_ready).then(|| format!("Workspace {name}"))
        }
    }
}

/// Whether the apply's Workspace carries what the apply's current spec renders to.
pub(crate) fn is_current(apply: &WorkspaceTemplateApply) -> bool {
    apply.status.as_ref().is_some_and(|status| {
        status.applied
            && status.observed_generation == Some(meta::generation(apply))
            && condition::is_true(&status.conditions, conditions::SYNCED)
    })
}

fn evidence(view: &View<'_>, apply: &WorkspaceTemplateApply, namespace: &str) -> Evidence {
    let name = apply.name_any();
    let say = |was_ready| if was_ready { Evidence::WasReady } else { Evidence::NeverReady };
    for owner in apply.owner_references() {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        match Kind::find(group, &owner.kind) {
            Some(Kind::CaptCluster) => {
                return match view.captcluster(namespace, &owner.name) {
                    Seen::Unknown => Evidence::Unknown,
                    Seen::Absent { live: _ } => Evidence::NeverReady,
                    Seen::Present(owner) if captcluster::apply_name(&owner) == name => {
                        // A control plane that was ready had a VPC.
                        match captcluster::control_planes(view, &owner) {
                            None => Evidence::Unknown,
                            Some(planes) => {
                                say(was_ready::vpc(&owner)
                                    || planes.iter().any(|plane| was_ready::control_plane(plane)))
                            }
                        }
                    }
                    Seen::Present(_) => Evidence::NeverReady,
                };
            }
            Some(Kind::CaptControlPlane) => {
                return match view.control_plane(namespace, &owner.name) {
                    Seen::Unknown => Evidence::Unknown,
                    Seen::Absent { live: _ } => Evidence::NeverReady,
                    Seen::Present(owner) if captcontrolplane::apply_name(&owner) == name => {
                        let kubeconfig = meta::owner_cluster_name(owner.as_ref())
                            .map(|cluster| view.secret(namespace, &format!("{cluster}-kubeconfig")));
                        match kubeconfig {
                            Some(Seen::Unknown) => Evidence::Unknown,
                            Some(Seen::Present(_)) => Evidence::WasReady,
                            Some(Seen::Absent { live: _ }) | None => say(was_ready::control_plane(&owner)),
                        }
                    }
                    Seen::Present(_) => Evidence::NeverReady,
                };
            }
            Some(Kind::Cluster | Kind::Template | Kind::Apply | Kind::Workspace(_) | Kind::Secret) | None => {}
        }
    }
    Evidence::NeverReady
}

/// Who needs the apply's Workspace: applies that wait for it, and, for the VPC's apply, control
/// planes of the same Cluster. A namespace deletion hits all of them at once.
fn dependents(view: &View<'_>, apply: &WorkspaceTemplateApply, namespace: &str) -> Option<Vec<ObjectKey>> {
    let name = apply.name_any();
    let mut dependents: Vec<ObjectKey> = view
        .applies(None)?
        .iter()
        .filter(|other| meta::uid(other.as_ref()) != meta::uid(apply))
        .filter(|other| {
            let own_namespace = other.namespace().unwrap_or_default();
            other.spec.wait_for_workspaces.iter().any(|reference| {
                reference.name == name
                    && reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(&own_namespace)
                        == namespace
            })
        })
        .map(|other| meta::key_of(Kind::Apply, other.as_ref()))
        .collect();
    let is_vpc = apply.owner_references().iter().any(|owner| {
        owner.kind == Kind::CaptCluster.name() && owner.api_version.starts_with(Kind::CaptCluster.group())
    });
    if is_vpc && let Some(cluster) = apply.labels().get(CLUSTER_NAME_LABEL) {
        let planes = view.control_planes(Some(namespace))?;
        dependents.extend(
            planes
                .iter()
                .filter(|plane| meta::owner_cluster_name(plane.as_ref()) == Some(cluster))
                .map(|plane| meta::key_of(Kind::CaptControlPlane, plane.as_ref())),
        );
    }
    dependents.sort();
    Some(dependents)
}
