//! What a pass sees of a world, and what it has read of it.

use std::{cell::RefCell, sync::Arc};

use capt_api::{
    CAPTCluster, CAPTControlPlane, WorkspaceTemplate, WorkspaceTemplateApply,
    foreign::{ClusterView, SecretView, WorkspaceApi, WorkspaceView},
};

use super::{Coverage, Probe, Relation, Seen, World};
use crate::{
    lookup::Lookup,
    meta,
    object::{Kind, Object, ObjectKey},
};

/// What a pass read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// One object.
    Object(ObjectKey),
    /// All objects of a kind, of one namespace or of all.
    List(Kind, Option<String>),
    /// The objects that say something of another one.
    Related(Relation),
}

/// What a pass read, each once, in the order in which it did first.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    order: Vec<Read>,
    known: Lookup<Read, ()>,
}

impl Reads {
    /// Whether `read` is among them.
    pub fn contains(&self, read: &Read) -> bool {
        self.known.contains(read)
    }

    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Read> {
        self.order.iter()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing was read.
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether they are these, in whatever order; `reads` has each once.
    pub fn are(&self, reads: &[Read]) -> bool {
        self.len() == reads.len() && reads.iter().all(|read| self.contains(read))
    }

    fn insert(&mut self, read: Read) {
        if self.known.insert(read.clone(), ()).is_none() {
            self.order.push(read);
        }
    }
}

impl PartialEq for Reads {
    /// In whatever order.
    fn eq(&self, other: &Self) -> bool {
        self.are(&other.order)
    }
}

impl Eq for Reads {}

impl FromIterator<Read> for Reads {
    fn from_iter<I: IntoIterator<Item = Read>>(reads: I) -> Self {
        let mut all = Self::default();
        reads.into_iter().for_each(|read| all.insert(read));
        all
    }
}

impl IntoIterator for Reads {
    type Item = Read;
    type IntoIter = std::vec::IntoIter<Read>;

    fn into_iter(self) -> Self::IntoIter {
        self.order.into_iter()
    }
}

impl<'r> IntoIterator for &'r Reads {
    type Item = &'r Read;
    type IntoIter = std::slice::Iter<'r, Read>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Reads a [`World`] and records what was read.
#[derive(Debug)]
pub struct View<'w> {
    world: &'w World,
    reads: RefCell<Reads>,
}

/// Accessors by type, by name and by a key of that kind; an object that does not parse is unknown.
macro_rules! accessors {
    ($($get:ident $at:ident $variant:ident $kind:expr => $type:ty;)*) => {
        impl View<'_> {
            $(
                #[doc = concat!("The ", stringify!($type), " `name` in `namespace`.")]
                pub fn $get(&self, namespace: &str, name: &str) -> Seen<Arc<$type>> {
                    self.$at(ObjectKey::new($kind, namespace, name))
                }

                #[doc = concat!("The ", stringify!($type), " at `key`.")]
                pub fn $at(&self, key: ObjectKey) -> Seen<Arc<$type>> {
                    match self.get(key) {
                        Seen::Present(Object::$variant(object)) => Seen::Present(Arc::clone(object)),
                        Seen::Present(_) | Seen::Unknown => Seen::Unknown,
                        Seen::Absent { live } => Seen::Absent { live },
                    }
                }
            )*
        }
    };
}

accessors! {
    cluster cluster_at Cluster Kind::Cluster => ClusterView;
    captcluster captcluster_at CaptCluster Kind::CaptCluster => CAPTCluster;
    control_plane control_plane_at ControlPlane Kind::CaptControlPlane => CAPTControlPlane;
    template template_at Template Kind::Template => WorkspaceTemplate;
    apply apply_at Apply Kind::Apply => WorkspaceTemplateApply;
    secret secret_at Secret Kind::Secret => SecretView;
}

impl<'w> View<'w> {
    /// A view that has read nothing yet.
    pub fn new(world: &'w World) -> Self {
        // About as much as a control plane reads.
        let reads = Reads { order: Vec::with_capacity(28), known: Lookup::with_capacity(28) };
        Self { world, reads: RefCell::new(reads) }
    }

    /// The Workspace at `key`.
    pub fn workspace(&self, key: ObjectKey) -> Seen<Arc<WorkspaceView>> {
        match self.get(key) {
            Seen::Present(Object::Workspace(workspace)) => Seen::Present(Arc::clone(workspace)),
            Seen::Present(_) | Seen::Unknown => Seen::Unknown,
            Seen::Absent { live } => Seen::Absent { live },
        }
    }

    /// The control planes in `namespace` that the Cluster `cluster` owns; `None` if not all are known. One that
    /// does not parse concerns its own Cluster and no other.
    pub fn control_planes_of(&self, namespace: Option<&str>, cluster: &str) -> Option<Vec<Arc<CAPTControlPlane>>> {
        let mut planes = Vec::new();
        for object in self.owned(Kind::CaptControlPlane, namespace, Kind::Cluster, cluster)? {
            match object {
                // Of several owners of that kind the first counts.
                Object::ControlPlane(plane) if meta::owner_cluster_name(plane.as_ref()) == Some(cluster) => {
                    planes.push(Arc::clone(plane));
                }
                Object::Malformed(_) => return None,
                Object::ControlPlane(_)
                | Object::Cluster(_)
                | Object::CaptCluster(_)
                | Object::Template(_)
                | Object::Apply(_)
                | Object::Workspace(_)
                | Object::Secret(_) => {}
            }
        }
        Some(planes)
    }

    /// All applies, everywhere, as far as they say something of other objects; `None` if not all are known. Of
    /// one that does not parse that much is enough, so that it holds up no stranger.
    pub fn applies(&self) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
        about_others(self.list(Kind::Apply, None)?)
    }

    /// The applies in `namespace` that the object `name` of `kind` owns; `None` if not all are known. One that does
    /// not parse concerns its own owner and nobody else.
    pub fn applies_of(
        &self,
        namespace: Option<&str>,
        kind: Kind,
        name: &str,
    ) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
        let owned = self.owned(Kind::Apply, namespace, kind, name)?;
        owned
            .map(|object| match object {
                Object::Apply(apply) => Some(Arc::clone(apply)),
                // What has the key of an apply is one, or does not parse.
                Object::Malformed(_)
                | Object::ControlPlane(_)
                | Object::Cluster(_)
                | Object::CaptCluster(_)
                | Object::Template(_)
                | Object::Workspace(_)
                | Object::Secret(_) => None,
            })
            .collect()
    }

    /// The applies that have lost their owners and were made by the provider object at `owner`; `None` if not all are
    /// known.
    pub fn applies_left_by(&self, owner: &ObjectKey) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
        about_others(self.related(Relation::Left(owner.clone()))?)
    }

    /// The applies that wait for the apply or the Workspace at `key`, everywhere; `None` if not all are known, or if
    /// there is one of which nobody can tell what it waits for.
    pub fn waiting_for(&self, key: &ObjectKey) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
        if self.related(Relation::Unreadable)?.next().is_some() {
            return None;
        }
        about_others(self.related(Relation::Waiting(key.clone()))?)
    }

    /// The Workspaces, in both APIs, that use the Terraform state `name`; `None` if not all are known.
    pub fn users_of_state(&self, name: &str) -> Option<Vec<ObjectKey>> {
        let mut users = Vec::new();
        for api in WorkspaceApi::ALL {
            for object in self.related(Relation::State(api, name.to_owned()))? {
                if let Object::Workspace(workspace) = object {
                    users.push(ObjectKey::of_view(Kind::Workspace(api), &workspace.meta));
                }
            }
        }
        Some(users)
    }

    /// All Workspaces of `api`, everywhere; `None` if not all are known.
    pub fn workspaces(&self, api: WorkspaceApi) -> Option<Vec<Arc<WorkspaceView>>> {
        let objects = self.list(Kind::Workspace(api), None)?;
        let workspaces = objects.filter_map(|object| match object {
            Object::Workspace(workspace) => Some(Arc::clone(workspace)),
            _ => None,
        });
        Some(workspaces.collect())
    }

    /// The object at `key` as it is known, without recording a read.
    pub fn peek(&self, key: &ObjectKey) -> Option<&'w Object> {
        self.world.peek(key)
    }

    /// Records a read of the object at `key`, for whoever looks at it by [`View::peek`].
    pub fn read(&self, key: &ObjectKey) {
        self.reads.borrow_mut().insert(Read::Object(key.clone()));
    }

    /// What a probe of the API server of the control plane at `key` said.
    pub fn probe(&self, key: &ObjectKey) -> Option<&'w Probe> {
        self.world.probes.get(key)
    }

    /// Whether Cluster API core was seen at work on any Cluster, even on one that is gone. This is no read: what
    /// core does to a Cluster is an event on that Cluster.
    pub const fn core_seen(&self) -> bool {
        self.world.core_seen
    }

    /// Whether it would be known if there were an object at `key`; see [`World::covers`].
    pub fn covers(&self, key: &ObjectKey) -> bool {
        self.world.covers(key)
    }

    /// What was read so far.
    pub fn into_reads(self) -> Reads {
        self.reads.into_inner()
    }

    fn get(&self, key: ObjectKey) -> Seen<&'w Object> {
        let (key, seen) = self.world.get(key);
        self.reads.borrow_mut().insert(Read::Object(key));
        seen
    }

    pub(super) fn list(&self, kind: Kind, namespace: Option<&str>) -> Option<impl Iterator<Item = &'w Object>> {
        self.reads.borrow_mut().insert(Read::List(kind, namespace.map(str::to_owned)));
        self.knows_all(kind, namespace).then(|| self.world.of(kind, namespace).map(|(_, entry)| &entry.object))
    }

    /// The objects of `kind` in `namespace` that the `owner` called `name` owns; `None` if not all are known.
    fn owned(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        owner: Kind,
        name: &str,
    ) -> Option<impl Iterator<Item = &'w Object> + use<'w>> {
        self.related(Relation::Owned(kind, ObjectKey::new(owner, namespace.unwrap_or_default(), name)))
    }

    /// The objects that say `relation`; `None` if not all of their kind are known.
    fn related(&self, relation: Relation) -> Option<impl Iterator<Item = &'w Object> + use<'w>> {
        let (kind, namespace) = relation.among();
        let world = self.world;
        let objects =
            self.knows_all(kind, namespace).then(|| world.related(&relation).filter_map(|key| world.peek(key)));
        self.reads.borrow_mut().insert(Read::Related(relation));
        objects
    }

    /// Whether all objects of `kind` in `namespace`, or everywhere, are known.
    fn knows_all(&self, kind: Kind, namespace: Option<&str>) -> bool {
        let is_listed = match self.world.coverage.get(&kind) {
            None | Some(Coverage::Incomplete) => false,
            Some(Coverage::Cached | Coverage::Live) => true,
        };
        let is_limited = self
            .world
            .limits
            .get(&kind)
            .is_some_and(|namespaces| namespace.is_none_or(|namespace| !namespaces.contains(namespace)));
        is_listed && !is_limited
    }
}

/// Of applies what they say of other objects; `None` if one says nothing that can be read.
fn about_others<'w>(objects: impl Iterator<Item = &'w Object>) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
    let mut applies = Vec::new();
    for object in objects {
        match object {
            Object::Apply(apply) => applies.push(Arc::clone(apply)),
            Object::Malformed(malformed) => applies.push(Arc::clone(malformed.apply.as_ref()?)),
            Object::ControlPlane(_)
            | Object::Cluster(_)
            | Object::CaptCluster(_)
            | Object::Template(_)
            | Object::Workspace(_)
            | Object::Secret(_) => {}
        }
    }
    Some(applies)
}
