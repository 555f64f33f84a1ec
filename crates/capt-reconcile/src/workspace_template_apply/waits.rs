//! What an apply waits for and who waits for it, with the cycles that this can have.
//!
//! Applies name each other in `waitForWorkspaces`, so what a user writes can go round in a circle.
//! While something is to be made, such a circle is an error that names its path. While things are being
//! deleted it must not hold anybody: see [`dependents`].

use std::collections::{BTreeMap, BTreeSet};

use capt_api::{WorkspaceTemplateApply, names::CLUSTER_NAME_LABEL};
use kube::ResourceExt;

use super::observe::is_current;
use crate::{
    meta,
    object::{Kind, ObjectKey},
    outputs::{self, Progress},
    ownership,
    pass::Settings,
    world::{Seen, View, target},
};

/// Something an apply waits for that is not there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// A Secret without a non-empty key, or none.
    Secret(String),
    /// An apply or a Workspace that is not ready, or none.
    Workspace(String),
    /// The apply waits for itself, by way of these.
    Cycle(Vec<ObjectKey>),
}

/// Who keeps an apply that is being deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    /// They need its Workspace and go first.
    pub blocking: Vec<ObjectKey>,
    /// A circle of applies that wait for each other and are all being deleted, from this one back to it.
    pub cycle: Option<Vec<ObjectKey>>,
}

/// A circle for people.
pub(super) fn path(cycle: &[ObjectKey]) -> String {
    cycle.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}

/// What `apply` waits for, in the order of its spec; only what is not there yet.
pub(super) fn observe(
    view: &View<'_>,
    apply: &WorkspaceTemplateApply,
    namespace: &str,
    settings: Settings,
) -> Vec<Wait> {
    let secrets = apply.spec.wait_for_secrets.iter().filter_map(|reference| {
        let namespace = if reference.namespace.is_empty() { namespace } else { &reference.namespace };
        let secret = view.secret(namespace, &reference.name);
        let is_there = secret.present().is_some_and(|secret| secret.data.values().any(|value| !value.is_empty()));
        (!is_there).then(|| Wait::Secret(told(view, &ObjectKey::new(Kind::Secret, namespace, &reference.name))))
    });
    let workspaces = apply
        .spec
        .wait_for_workspaces
        .iter()
        .filter_map(|reference| workspace(view, &target(reference, namespace), settings).map(Wait::Workspace));
    let own = meta::key_of(Kind::Apply, apply);
    let next = |key: &ObjectKey| {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if *key == own {
            return targets(apply, namespace);
        }
        view.apply_at(key.clone()).present().map_or_else(Vec::new, |other| targets(other, namespace))
    };
    let cycle = circle(&own, next).map(Wait::Cycle);
    cycle.into_iter().chain(secrets).chain(workspaces).collect()
}

/// An object that is waited for, for people.
fn told(view: &View<'_>, key: &ObjectKey) -> String {
    if view.covers(key) { key.to_string() } else { format!("{key} (its namespace is not watched here)") }
}

fn targets(apply: &WorkspaceTemplateApply, namespace: &str) -> Vec<ObjectKey> {
    apply.spec.wait_for_workspaces.iter().map(|reference| target(reference, namespace)).collect()
}

/// What is missing of the apply at `key`, or where there is no such apply, of the Workspace of that name.
fn workspace(view: &View<'_>, key: &ObjectKey, settings: Settings) -> Option<String> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    match view.apply_at(key.clone()) {
        Seen::Present(apply) => {
            let claim = ownership::claim(view, &apply, settings.workspace_api);
            let is_ready = is_current(&apply)
                && claim.ours().is_some_and(|workspace| outputs::progress(workspace) == Progress::Ready);
            (!is_ready).then(|| key.to_string())
        }
        Seen::Unknown => Some(key.to_string()),
        Seen::Absent { live: _ } => {
            let is_ready = ownership::keys(namespace, &key.name).into_iter().any(|key| {
                view.workspace(key).present().is_some_and(|workspace| outputs::progress(workspace) == Progress::Ready)
            });
            (!is_ready).then(|| format!("Workspace {}", key.name))
        }
    }
}

/// A shortest way from `start` along `next` back to it, both ends included.
fn circle(start: &ObjectKey, next: impl Fn(&ObjectKey) -> Vec<ObjectKey>) -> Option<Vec<ObjectKey>> {
    let mut came_from: BTreeMap<ObjectKey, ObjectKey> = BTreeMap::new();
    let mut found: Vec<ObjectKey> = vec![start.clone()];
    let mut at = 0;
    while let Some(key) = found.get(at).cloned() {
        at += 1;
        for target in next(&key) {
            if target == *start {
                let mut way = vec![target, key.clone()];
                while let Some(before) = way.last().and_then(|last| came_from.get(last)) {
                    way.push(before.clone());
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(&target) {
                came_from.insert(target.clone(), key.clone());
                found.push(target);
            }
        }
    }
    None
}

/// Who needs the apply's Workspace: applies that wait for it, and, for the VPC's apply, control planes of
/// the same Cluster. A namespace deletion hits all of them at once. `None` if not all are known.
///
/// An apply that waits for this one and is waited for by it keeps nobody once the whole circle is being
/// deleted: there is no right order any more, the user wants all of it gone, and a Terraform destroy that
/// comes too early fails and is tried again. As long as one of the circle shall stay, it holds.
pub(super) fn dependents(view: &View<'_>, apply: &WorkspaceTemplateApply, namespace: &str) -> Option<Dependents> {
    let own = meta::key_of(Kind::Apply, apply);
    let mut deleting: BTreeSet<ObjectKey> = BTreeSet::new();
    if meta::is_deleting(apply) {
        deleting.insert(own.clone());
    }
    // From each apply to those that wait for it, as far as this one leads.
    let mut waiting: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
    let mut left = vec![own.clone()];
    while let Some(key) = left.pop() {
        if waiting.contains_key(&key) {
            continue;
        }
        let mut keys = Vec::new();
        for other in view.waiting_for(&key)? {
            let other_key = meta::key_of(Kind::Apply, other.as_ref());
            if meta::is_deleting(other.as_ref()) {
                deleting.insert(other_key.clone());
            }
            keys.push(other_key);
        }
        left.extend(keys.iter().cloned());
        waiting.insert(key, keys);
    }
    let waiting_for = |key: &ObjectKey| waiting.get(key).cloned().unwrap_or_default();
    let deleting_after = |key: &ObjectKey| {
        let mut after = waiting_for(key);
        after.retain(|other| deleting.contains(other));
        after
    };
    let mut dependents = Dependents::default();
    for other in waiting_for(&own).into_iter().filter(|other| *other != own) {
        let in_circle = deleting.contains(&other) && reaches(&other, &own, deleting_after);
        if !in_circle {
            dependents.blocking.push(other);
        }
    }
    // Along what is waited for, as a person reads it.
    dependents.cycle = circle(&own, deleting_after).map(|mut way| {
        way.reverse();
        way
    });
    let is_vpc = apply.owner_references().iter().any(|owner| {
        owner.kind == Kind::CaptCluster.name() && meta::group(&owner.api_version) == Kind::CaptCluster.group()
    });
    if is_vpc && let Some(cluster) = apply.labels().get(CLUSTER_NAME_LABEL) {
        let planes = view.control_planes_of(Some(namespace), cluster)?;
        let keys = planes.iter().map(|plane| meta::key_of(Kind::CaptControlPlane, plane.as_ref()));
        dependents.blocking.extend(keys);
    }
    dependents.blocking.sort();
    dependents.blocking.dedup();
    Some(dependents)
}

fn reaches(from: &ObjectKey, to: &ObjectKey, next: impl Fn(&ObjectKey) -> Vec<ObjectKey>) -> bool {
    let mut seen = BTreeSet::from([from.clone()]);
    let mut left = vec![from.clone()];
    while let Some(key) = left.pop() {
        if key == *to {
            return true;
        }
        left.extend(next(&key).into_iter().filter(|target| seen.insert(target.clone())));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Apply, "ns", name)
    }

    fn of(edges: &[(&str, &str)], start: &str) -> Option<String> {
        let next =
            |from: &ObjectKey| edges.iter().filter(|(a, _)| *a == from.name).map(|(_, b)| key(b)).collect::<Vec<_>>();
        circle(&key(start), next).map(|way| way.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_circle_is_found_with_its_shortest_way_and_only_from_within() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "a"), ("c", "c"), ("a", "y")];
        assert_eq!(of(&edges, "a").as_deref(), Some("a b c a"));
        assert_eq!(of(&edges, "b").as_deref(), Some("b c a b"));
        assert_eq!(of(&edges, "c").as_deref(), Some("c c"));
        assert_eq!(of(&edges, "x"), None, "it waits for a circle and is none of it");
        assert_eq!(of(&[("a", "b"), ("b", "a")], "a").as_deref(), Some("a b a"));
        assert_eq!(of(&[], "a"), None);
    }
}
