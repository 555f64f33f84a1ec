//! What objects say of others, so that those who ask find them without looking at everything.
//!
//! An answer is as good as a look at all objects of the kind: a change that makes an object say something, or no longer,
//! concerns those who asked for that, and nobody else.

use std::collections::BTreeSet;

use capt_api::{WorkspaceReference, WorkspaceTemplateApply, foreign::WorkspaceApi};
use kube::ResourceExt;

use crate::{
    meta,
    object::{Kind, Object, ObjectKey},
    ownership,
};

/// Something that an object says of another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// An object of this kind, a CAPTControlPlane or an apply, is owned by the one at the key, in its namespace.
    Owned(Kind, ObjectKey),
    /// An apply that has lost its owners was made by the provider object at this key.
    Left(ObjectKey),
    /// A Workspace of this API uses this Terraform state.
    State(WorkspaceApi, String),
    /// An apply waits for the apply at this key, or for the Workspace of that name.
    Waiting(ObjectKey),
    /// An apply is so broken that it cannot be told what it waits for.
    Unreadable,
}

impl Relation {
    /// Kind and namespace of the objects that can say it; no namespace for all.
    pub fn among(&self) -> (Kind, Option<&str>) {
        match self {
            Self::Owned(kind, owner) => (*kind, owner.namespace.as_deref()),
            Self::Left(owner) => (Kind::Apply, owner.namespace.as_deref()),
            Self::State(api, _) => (Kind::Workspace(*api), None),
            Self::Waiting(_) | Self::Unreadable => (Kind::Apply, None),
        }
    }
}

/// The apply that a reference would name; a Workspace where there is no such apply.
pub(crate) fn target(reference: &WorkspaceReference, namespace: &str) -> ObjectKey {
    let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(namespace);
    ObjectKey::new(Kind::Apply, namespace, &reference.name)
}

/// What the object at `key` says of others.
pub(super) fn of(key: &ObjectKey, object: &Object) -> Vec<Relation> {
    let mut said: BTreeSet<Relation> = BTreeSet::new();
    let mut own = |group: &str, kind: &str, name: &str| {
        if let Some(owner) = Kind::find(group, kind) {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            said.insert(Relation::Owned(key.kind, ObjectKey::new(owner, namespace, name)));
        }
    };
    match object {
        Object::ControlPlane(plane) => own_all(plane.as_ref(), own),
        Object::Apply(apply) => {
            own_all(apply.as_ref(), &mut own);
            said.extend(left(key, meta::made_by(apply)));
            said.extend(waits(key, apply));
        }
        Object::Malformed(malformed) if [Kind::CaptControlPlane, Kind::Apply].contains(&key.kind) => {
            for owner in &malformed.meta.owner_references {
                own(owner.group(), &owner.kind, &owner.name);
            }
            if key.kind == Kind::Apply {
                let about = &malformed.meta;
                said.extend(left(key, meta::said_maker(about.owner_references.len(), &about.annotations)));
            }
            match &malformed.apply {
                Some(apply) => said.extend(waits(key, apply)),
                None if key.kind == Kind::Apply => {
                    said.insert(Relation::Unreadable);
                }
                None => {}
            }
        }
        Object::Workspace(workspace) => {
            said.insert(Relation::State(workspace.api, ownership::state_of(workspace).to_owned()));
        }
        Object::Cluster(_)
        | Object::CaptCluster(_)
        | Object::Template(_)
        | Object::Secret(_)
        | Object::Malformed(_) => {}
    }
    said.into_iter().collect()
}

fn own_all<K: ResourceExt>(object: &K, mut own: impl FnMut(&str, &str, &str)) {
    for owner in object.owner_references() {
        own(meta::group(&owner.api_version), &owner.kind, &owner.name);
    }
}

fn left(key: &ObjectKey, maker: Option<(Kind, &str)>) -> Option<Relation> {
    let (kind, name) = maker?;
    Some(Relation::Left(ObjectKey::new(kind, key.namespace.as_deref().unwrap_or_default(), name)))
}

fn waits(key: &ObjectKey, apply: &WorkspaceTemplateApply) -> impl Iterator<Item = Relation> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    apply.spec.wait_for_workspaces.iter().map(move |reference| Relation::Waiting(target(reference, namespace)))
}
