//! The provider object that owns an apply: what it remembers, and whether it is paused.
//!
//! Read only. An apply without such an owner is a user's own.

use capt_api::{
    WorkspaceTemplateApply,
    foreign::{ClusterView, WorkspaceApi},
    names::{
        CLUSTER_NAME_LABEL, EXTERNAL_NAME_ANNOTATION, INPUTS_SETTLED_ANNOTATION, MANAGED_BY_ANNOTATION,
        PAUSED_ANNOTATION, RECREATE_WORKSPACE_ANNOTATION, conditions,
    },
};
use capt_status::{Condition, condition};
use kube::{Resource, ResourceExt};

use super::observe::{Evidence, Rivals};
use crate::{
    captcluster, captcontrolplane, meta,
    object::{Kind, ObjectKey},
    ownership,
    pause::Pause,
    plan::Precondition,
    was_ready,
    world::{Seen, View},
};

/// The provider object that owns an apply.
#[derive(Debug, Clone)]
pub struct Owner {
    /// Where it is.
    pub key: ObjectKey,
    /// Whether its infrastructure was ever ready.
    pub evidence: Evidence,
    /// Whether it carries the annotation that pauses it.
    pub paused: bool,
    /// Whether its status still says that it is paused.
    pub shows_paused: bool,
    /// Whether the apply's owner reference has another uid than it has: the apply is from before a move or
    /// a restore, and the garbage collector takes it for an object without an owner.
    pub changed_uid: bool,
    /// deletionTimestamp is set.
    pub deleting: bool,
    /// Whether it uses this apply; the apply that it used under a former name is still owned by it.
    pub uses_it: bool,
    /// Whether it still has to say what it wants of this apply.
    pub unsettled: bool,
    /// How to take back its word that the lost Workspace of this apply may be made again; `None` without.
    pub release: Option<Precondition>,
    /// Name of its Cluster.
    pub cluster: Option<String>,
}

/// The owner of `apply`; `None` if it has none of our provider kinds.
pub(super) fn observe(view: &View<'_>, apply: &WorkspaceTemplateApply, namespace: &str) -> Option<Seen<Owner>> {
    let (kind, name, uid) = apply.owner_references().iter().find_map(|owner| {
        match Kind::find(meta::group(&owner.api_version), &owner.kind)? {
            kind @ (Kind::CaptCluster | Kind::CaptControlPlane) => {
                Some((kind, owner.name.as_str(), owner.uid.as_str()))
            }
            Kind::Cluster | Kind::Template | Kind::Apply | Kind::Workspace(_) | Kind::Secret => None,
        }
    })?;
    let apply_name = apply.name_any();
    let is_settled = apply.annotations().contains_key(INPUTS_SETTLED_ANNOTATION);
    Some(if kind == Kind::CaptCluster {
        view.captcluster(namespace, name).map(|object| {
            let evidence = if captcluster::apply_name(&object) == apply_name {
                // A control plane that was ready had a VPC.
                let by_planes = captcluster::control_planes(view, &object).map_or(Evidence::Unknown, |planes| {
                    say(planes.iter().any(|plane| was_ready::control_plane(plane)))
                });
                let by_cluster = of_cluster(view, object.as_ref(), was_ready::vpc_of);
                say(was_ready::vpc(&object)).or(by_planes).or(by_cluster)
            } else {
                Evidence::NeverReady
            };
            let shown = object.status.as_ref().map(|status| status.conditions.as_slice());
            let found = owner(kind, object.as_ref(), shown, uid, &apply_name, evidence);
            let uses_it = captcluster::apply_name(&object) == apply_name;
            Owner { uses_it, unsettled: !is_settled && uses_it, ..found }
        })
    } else {
        view.control_plane(namespace, name).map(|object| {
            let evidence = if captcontrolplane::apply_name(&object) == apply_name {
                let kubeconfig = meta::owner_cluster_name(object.as_ref())
                    .map(|cluster| view.secret(namespace, &format!("{cluster}-kubeconfig")));
                let by_secret = match kubeconfig {
                    Some(Seen::Unknown) => Evidence::Unknown,
                    Some(Seen::Present(_)) => Evidence::WasReady,
                    Some(Seen::Absent { live: _ }) | None => Evidence::NeverReady,
                };
                let by_cluster = of_cluster(view, object.as_ref(), was_ready::control_plane_of);
                say(was_ready::control_plane(&object)).or(by_secret).or(by_cluster)
            } else {
                Evidence::NeverReady
            };
            let shown = object.status.as_ref().map(|status| status.conditions.as_slice());
            let found = owner(kind, object.as_ref(), shown, uid, &apply_name, evidence);
            let is_eks = captcontrolplane::apply_name(&object) == apply_name;
            let uses_it = is_eks || captcontrolplane::further_applies(name).contains(&apply_name);
            Owner { uses_it, unsettled: !is_settled && is_eks, ..found }
        })
    })
}

/// What the Cluster of `object` remembers.
fn of_cluster<K: Resource>(view: &View<'_>, object: &K, remembers: fn(&ClusterView) -> bool) -> Evidence {
    let name = meta::owner_cluster_name(object);
    match name.map(|name| view.cluster(&object.namespace().unwrap_or_default(), name)) {
        Some(Seen::Unknown) => Evidence::Unknown,
        Some(Seen::Present(cluster)) => say(remembers(&cluster)),
        Some(Seen::Absent { live: _ }) | None => Evidence::NeverReady,
    }
}

/// The applies that stand for the same as `apply` to its owner. None for what a control plane has beside its
/// EKS cluster; `None` if not all are known.
pub(super) fn rivals(
    view: &View<'_>,
    apply: &WorkspaceTemplateApply,
    owner: &Owner,
    default: WorkspaceApi,
) -> Option<Rivals> {
    let further = match owner.key.kind {
        Kind::CaptControlPlane => captcontrolplane::further_applies(&owner.key.name).to_vec(),
        Kind::CaptCluster | Kind::Cluster | Kind::Template | Kind::Apply | Kind::Workspace(_) | Kind::Secret => {
            Vec::new()
        }
    };
    let name = apply.name_any();
    if further.contains(&name) {
        return Some(Rivals::default());
    }
    let mut applies = view.applies_of(apply.namespace().as_deref(), owner.key.kind, &owner.key.name)?;
    // What one that lost its owners made is there all the same.
    applies.extend(view.applies_left_by(&owner.key)?);
    let has_workspace = |other: &WorkspaceTemplateApply| {
        other.annotations().contains_key(EXTERNAL_NAME_ANNOTATION)
            || other.status.as_ref().is_some_and(|status| status.workspace_name.is_some())
    };
    let mut rivals = Rivals::default();
    for other in applies {
        let other_name = other.name_any();
        if other_name == name || further.contains(&other_name) {
            continue;
        }
        if has_workspace(&other) {
            rivals.with_workspace.push(other_name);
            continue;
        }
        // What the apply could not write down yet.
        match ownership::claim(view, &other, default).found {
            Seen::Unknown | Seen::Present((_, ownership::Owner::Unknown)) => return None,
            Seen::Present((_, ownership::Owner::Ours | ownership::Owner::Adopted | ownership::Owner::Promised)) => {
                rivals.with_workspace.push(other_name);
            }
            Seen::Present((_, ownership::Owner::Foreign(_))) => {
                rivals.colliding.push(meta::uid(other.as_ref()).to_owned());
            }
            Seen::Absent { live: _ } => rivals.may_get_one.push(other_name),
        }
    }
    Some(rivals)
}

const fn say(was_ready: bool) -> Evidence {
    if was_ready { Evidence::WasReady } else { Evidence::NeverReady }
}

fn owner<K: Resource<DynamicType = ()>>(
    kind: Kind,
    object: &K,
    shown: Option<&[Condition]>,
    uid: &str,
    apply: &str,
    evidence: Evidence,
) -> Owner {
    let annotations = object.annotations();
    let released = annotations.get(RECREATE_WORKSPACE_ANNOTATION).is_some_and(|value| value == apply);
    // What somebody else manages gets no status from us, so what stands there is no news.
    let is_ours = !annotations.contains_key(MANAGED_BY_ANNOTATION) && !meta::is_deleting(object);
    Owner {
        key: meta::key_of(kind, object),
        evidence,
        paused: annotations.contains_key(PAUSED_ANNOTATION),
        shows_paused: is_ours && shown.is_some_and(|shown| condition::is_true(shown, conditions::PAUSED)),
        changed_uid: meta::uid(object) != uid,
        deleting: meta::is_deleting(object),
        uses_it: false,
        unsettled: false,
        release: released.then(|| meta::observed(object.meta())),
        cluster: meta::owner_cluster_name(object).map(str::to_owned),
    }
}

/// Whether `apply` is paused: by its own annotation, by its Cluster, or by the provider object that owns
/// it. It resumes after its owner has, so that the one that decides is awake first.
pub(super) fn pause(
    view: &View<'_>,
    apply: &WorkspaceTemplateApply,
    owner: Option<&Seen<Owner>>,
    namespace: &str,
) -> Pause {
    let owner = match owner {
        Some(Seen::Unknown) => return Pause::Unknown,
        Some(Seen::Present(owner)) => Some(owner),
        Some(Seen::Absent { live: _ }) | None => None,
    };
    let by_label = apply.labels().get(CLUSTER_NAME_LABEL).cloned();
    let cluster = by_label.or_else(|| owner.and_then(|owner| owner.cluster.clone()));
    let cluster = match cluster.map(|name| view.cluster(namespace, &name)) {
        Some(Seen::Unknown) => return Pause::Unknown,
        Some(Seen::Present(cluster)) => cluster.paused,
        Some(Seen::Absent { live: _ }) | None => false,
    };
    let mut parts = crate::pause::parts(Kind::Apply, apply, cluster);
    if let Some(owner) = owner {
        if owner.paused {
            parts.push(format!("{} has the {PAUSED_ANNOTATION} annotation", owner.key));
        } else if owner.shows_paused && parts.is_empty() && is_shown(apply) {
            parts.push(format!("{} has not resumed yet", owner.key));
        }
    }
    if parts.is_empty() { Pause::No } else { Pause::Yes(parts.join(", ")) }
}

/// Whether the apply's status says that it is paused.
fn is_shown(apply: &WorkspaceTemplateApply) -> bool {
    apply.status.as_ref().is_some_and(|status| condition::is_true(&status.conditions, conditions::PAUSED))
}
