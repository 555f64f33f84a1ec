//! What is known of the cluster, and what a pass read of it.
//!
//! Fed by watches (the operator), by documents (`plan -f`) or by a simulator. It answers a question
//! with [`Seen`], which keeps "not there" and "not known" apart. Reading goes through a [`View`],
//! which records each read; a recorded read says which later events concern the pass, so every
//! dependency is watched because it was read and none has to be listed by hand.

use std::{cell::RefCell, collections::BTreeMap, collections::BTreeSet, sync::Arc};

use capt_api::{
    CAPTCluster, CAPTControlPlane, WorkspaceTemplate, WorkspaceTemplateApply,
    foreign::{ClusterView, OwnerView, SecretView, WorkspaceApi, WorkspaceView},
};
use capt_status::Time;
use kube::ResourceExt;

use crate::{
    meta,
    object::{Kind, Object, ObjectKey},
};

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// The cache is not complete, or the object does not parse: nothing may be concluded.
    Unknown,
    /// Not there. `live` tells whether that was read from the API server itself and not from a
    /// cache that may lag; only then it justifies a destructive or regressive decision.
    Absent {
        /// Read live.
        live: bool,
    },
    /// There.
    Present(T),
}

impl<T> Seen<T> {
    /// The object if it is there.
    pub const fn present(&self) -> Option<&T> {
        match self {
            Self::Present(object) => Some(object),
            Self::Unknown | Self::Absent { live: _ } => None,
        }
    }

    /// Whether nothing may be concluded.
    pub const fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Absent { live: _ } | Self::Present(_) => false,
        }
    }

    /// The same knowledge of what `f` makes of the object.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Unknown => Seen::Unknown,
            Self::Absent { live } => Seen::Absent { live },
            Self::Present(object) => Seen::Present(f(object)),
        }
    }
}

/// How much is known of the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The first list has not arrived.
    Incomplete,
    /// A cache that follows the API server and may lag.
    Cached,
    /// All there is, by definition: the input of `plan -f`, or an API that is not served.
    Live,
}

/// What a pass read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// One object.
    Object(ObjectKey),
    /// All objects of a kind, of one namespace or of all.
    List(Kind, Option<String>),
}

#[derive(Debug, Clone)]
struct Entry {
    object: Object,
    resource_version: u64,
}

/// What a probe of a control plane's API server said, by whoever feeds the world; there need not be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Whether it answered.
    pub answers: bool,
    /// Since when it does, or does not.
    pub since: Time,
    /// Why it does not; never a secret.
    pub message: String,
}

/// The objects that are known.
#[derive(Debug, Clone, Default)]
pub struct World {
    objects: BTreeMap<ObjectKey, Entry>,
    coverage: BTreeMap<Kind, Coverage>,
    /// Single objects that are not known although their kind is.
    unknown: BTreeSet<ObjectKey>,
    /// Probes of API servers, by control plane.
    probes: BTreeMap<ObjectKey, Probe>,
    /// Newest resourceVersion seen on the watch of a kind; of one namespace where the kind is limited.
    watched: BTreeMap<(Kind, Option<String>), u64>,
    /// Kinds of which only some namespaces are known.
    limits: BTreeMap<Kind, BTreeSet<String>>,
    /// Whether any Cluster ever carried what only Cluster API core leaves behind.
    core_seen: bool,
}

impl World {
    /// Says how much is known of `kind`; without it a kind is [`Coverage::Incomplete`].
    pub fn set_coverage(&mut self, kind: Kind, coverage: Coverage) {
        self.coverage.insert(kind, coverage);
    }

    /// Says that of `kind` only objects in `namespaces` are known; ignored for cluster-scoped kinds. What is
    /// elsewhere is neither there nor absent.
    pub fn limit(&mut self, kind: Kind, namespaces: BTreeSet<String>) {
        if kind.is_namespaced() {
            self.limits.insert(kind, namespaces);
        }
    }

    /// Whether it would be known if there were an object at `key`, once its kind is.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match (self.limits.get(&key.kind), &key.namespace) {
            (None, _) | (Some(_), None) => true,
            (Some(namespaces), Some(namespace)) => namespaces.contains(namespace),
        }
    }

    /// Newest resourceVersion that the watch which delivers `key` has shown.
    fn newest(&mut self, key: &ObjectKey) -> &mut u64 {
        let namespace = if self.limits.contains_key(&key.kind) { key.namespace.clone() } else { None };
        self.watched.entry((key.kind, namespace)).or_default()
    }

    /// Takes over what a probe of the API server of the control plane at `key` said; `None` if it is not
    /// probed any more. Whoever calls this starts the pass of that object.
    pub fn set_probe(&mut self, key: ObjectKey, probe: Option<Probe>) {
        match probe {
            Some(probe) => self.probes.insert(key, probe),
            None => self.probes.remove(&key),
        };
    }

    /// Says that nothing is known of one object.
    pub fn set_unknown(&mut self, key: ObjectKey) {
        self.unknown.insert(key);
    }

    /// Takes over what a watch or a list delivered. An older state than the one that is known
    /// (the answer to our own write) is ignored. Returns whether the known state changed.
    pub fn watched(&mut self, key: ObjectKey, resource_version: u64, object: Object) -> bool {
        let newest = self.newest(&key);
        *newest = resource_version.max(*newest);
        if self
            .objects
            .get(&key)
            .is_some_and(|known| known.resource_version >= resource_version && resource_version > 0)
        {
            return false;
        }
        self.store(key, object, resource_version);
        true
    }

    /// Takes over the answer to our own write, so that the next pass sees it at once. Ignored when
    /// the watch is already past it: the object may be gone by then.
    pub fn written(&mut self, key: ObjectKey, resource_version: u64, object: Object) {
        let past = *self.newest(&key) >= resource_version;
        let known = self.objects.get(&key).is_some_and(|known| known.resource_version >= resource_version);
        if !past && !known {
            self.store(key, object, resource_version);
        }
    }

    fn store(&mut self, key: ObjectKey, object: Object, resource_version: u64) {
        if let Object::Cluster(cluster) = &object {
            self.core_seen |= cluster.shows_core();
        }
        self.objects.insert(key, Entry { object, resource_version });
    }

    /// Takes over that an object is gone.
    pub fn deleted(&mut self, key: &ObjectKey, resource_version: u64) {
        let newest = self.newest(key);
        *newest = resource_version.max(*newest);
        self.objects.remove(key);
    }

    /// Takes over a complete list, of a namespace or of all: what is known of `kind` there and not in `listed`
    /// is gone. Returns the keys that went.
    pub fn relisted(&mut self, kind: Kind, namespace: Option<&str>, listed: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let known = self.of(kind, namespace).map(|(key, _)| key);
        let gone: Vec<ObjectKey> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        for key in &gone {
            self.objects.remove(key);
        }
        gone
    }

    /// The keys of all objects of `kind` that are known.
    pub fn keys(&self, kind: Kind) -> impl Iterator<Item = &ObjectKey> {
        self.of(kind, None).map(|(key, _)| key)
    }

    /// The objects of `kind`, of one namespace or of all. Keys are ordered by kind, namespace and name,
    /// so nothing else is looked at.
    fn of(&self, kind: Kind, namespace: Option<&str>) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        let namespace = namespace.map(str::to_owned);
        let first = ObjectKey { kind, namespace: namespace.clone(), name: String::new() };
        self.objects
            .range(first..)
            .take_while(move |(key, _)| key.kind == kind && (namespace.is_none() || key.namespace == namespace))
    }

    /// The object at `key`, without recording a read.
    pub fn peek(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key).map(|entry| &entry.object)
    }

    fn get(&self, key: &ObjectKey) -> Seen<&Object> {
        if self.unknown.contains(key) {
            return Seen::Unknown;
        }
        if let Some(entry) = self.objects.get(key) {
            return Seen::Present(&entry.object);
        }
        if !self.covers(key) {
            return Seen::Unknown;
        }
        match self.coverage.get(&key.kind) {
            None | Some(Coverage::Incomplete) => Seen::Unknown,
            Some(Coverage::Cached) => Seen::Absent { live: false },
            Some(Coverage::Live) => Seen::Absent { live: true },
        }
    }
}

/// Reads a [`World`] and records what was read.
#[derive(Debug)]
pub struct View<'w> {
    world: &'w World,
    reads: RefCell<BTreeSet<Read>>,
}

/// Accessors by type; an object that does not parse is unknown.
macro_rules! accessors {
    ($($get:ident $variant:ident $kind:expr => $type:ty;)*) => {
        impl View<'_> {
            $(
                #[doc = concat!("The ", stringify!($type), " `name` in `namespace`.")]
                pub fn $get(&self, namespace: &str, name: &str) -> Seen<Arc<$type>> {
                    match self.get(ObjectKey::new($kind, namespace, name)) {
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
    cluster Cluster Kind::Cluster => ClusterView;
    captcluster CaptCluster Kind::CaptCluster => CAPTCluster;
    control_plane ControlPlane Kind::CaptControlPlane => CAPTControlPlane;
    template Template Kind::Template => WorkspaceTemplate;
    apply Apply Kind::Apply => WorkspaceTemplateApply;
    secret Secret Kind::Secret => SecretView;
}

impl<'w> View<'w> {
    /// A view that has read nothing yet.
    pub const fn new(world: &'w World) -> Self {
        Self { world, reads: RefCell::new(BTreeSet::new()) }
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
        for object in self.list(Kind::CaptControlPlane, namespace)? {
            match object {
                Object::ControlPlane(plane) if meta::owner_cluster_name(plane.as_ref()) == Some(cluster) => {
                    planes.push(Arc::clone(plane));
                }
                Object::Malformed(malformed)
                    if malformed.meta.owner_references.iter().any(|owner| is_cluster(owner, cluster)) =>
                {
                    return None;
                }
                Object::ControlPlane(_)
                | Object::Malformed(_)
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
        let mut applies = Vec::new();
        for object in self.list(Kind::Apply, None)? {
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

    /// The applies in `namespace` that the object `name` of `kind` owns; `None` if not all are known. One that does
    /// not parse concerns its own owner and nobody else.
    pub fn applies_of(
        &self,
        namespace: Option<&str>,
        kind: Kind,
        name: &str,
    ) -> Option<Vec<Arc<WorkspaceTemplateApply>>> {
        let is_owner = |group: &str, its_kind: &str, its_name: &str| {
            its_name == name && its_kind == kind.name() && group == kind.group()
        };
        let mut applies = Vec::new();
        for object in self.list(Kind::Apply, namespace)? {
            match object {
                Object::Apply(apply)
                    if apply.owner_references().iter().any(|owner| {
                        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
                        is_owner(group, &owner.kind, &owner.name)
                    }) =>
                {
                    applies.push(Arc::clone(apply));
                }
                Object::Malformed(malformed)
                    if malformed
                        .meta
                        .owner_references
                        .iter()
                        .any(|owner| is_owner(owner.group(), &owner.kind, &owner.name)) =>
                {
                    return None;
                }
                Object::Apply(_)
                | Object::Malformed(_)
                | Object::Cluster(_)
                | Object::CaptCluster(_)
                | Object::ControlPlane(_)
                | Object::Template(_)
                | Object::Workspace(_)
                | Object::Secret(_) => {}
            }
        }
        Some(applies)
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
    pub fn into_reads(self) -> BTreeSet<Read> {
        self.reads.into_inner()
    }

    fn get(&self, key: ObjectKey) -> Seen<&'w Object> {
        let seen = self.world.get(&key);
        self.reads.borrow_mut().insert(Read::Object(key));
        seen
    }

    fn list(&self, kind: Kind, namespace: Option<&str>) -> Option<impl Iterator<Item = &'w Object>> {
        self.reads.borrow_mut().insert(Read::List(kind, namespace.map(str::to_owned)));
        match self.world.coverage.get(&kind) {
            None | Some(Coverage::Incomplete) => return None,
            Some(Coverage::Cached | Coverage::Live) => {}
        }
        if let Some(namespaces) = self.world.limits.get(&kind)
            && namespace.is_none_or(|namespace| !namespaces.contains(namespace))
        {
            return None;
        }
        Some(self.world.of(kind, namespace).map(|(_, entry)| &entry.object))
    }
}

fn is_cluster(owner: &OwnerView, name: &str) -> bool {
    owner.kind == Kind::Cluster.name() && owner.group() == Kind::Cluster.group() && owner.name == name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(name: &str) -> (ObjectKey, Object) {
        let value = json!({"metadata": {"name": name, "namespace": "ns"}});
        (ObjectKey::new(Kind::Secret, "ns", name), Object::parse(Kind::Secret, &value))
    }

    fn world() -> World {
        let mut world = World::default();
        world.set_coverage(Kind::Secret, Coverage::Cached);
        world
    }

    #[test]
    fn absent_and_unknown_are_told_apart() {
        let mut world = World::default();
        assert!(View::new(&world).secret("ns", "a").is_unknown());
        world.set_coverage(Kind::Secret, Coverage::Cached);
        assert!(matches!(View::new(&world).secret("ns", "a"), Seen::Absent { live: false }));
        world.set_coverage(Kind::Secret, Coverage::Live);
        assert!(matches!(View::new(&world).secret("ns", "a"), Seen::Absent { live: true }));
        world.set_unknown(ObjectKey::new(Kind::Secret, "ns", "a"));
        assert!(View::new(&world).secret("ns", "a").is_unknown());
    }

    #[test]
    fn an_own_write_is_seen_at_once_and_no_older_event_undoes_it() {
        let mut world = world();
        let (key, object) = secret("a");
        world.watched(key.clone(), 5, object.clone());
        world.written(key.clone(), 9, object.clone());
        assert!(!world.watched(key.clone(), 7, object.clone()), "older than our own write");
        assert!(!world.watched(key.clone(), 9, object.clone()), "the echo of our own write");
        assert!(world.watched(key, 10, object));
    }

    #[test]
    fn the_late_answer_to_a_write_does_not_bring_a_deleted_object_back() {
        let mut world = world();
        let (key, object) = secret("a");
        world.deleted(&key, 12);
        world.written(key.clone(), 9, object);
        assert!(world.peek(&key).is_none());
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut world = world();
        let ((a, object), (b, other)) = (secret("a"), secret("b"));
        world.watched(a.clone(), 1, object);
        world.watched(b.clone(), 2, other);
        assert_eq!(world.relisted(Kind::Secret, None, &BTreeSet::from([a.clone()])), [b]);
        assert!(world.peek(&a).is_some());
    }

    #[test]
    fn what_is_in_a_namespace_that_nobody_looks_at_is_unknown_and_not_absent() {
        let mut world = world();
        world.limit(Kind::Secret, BTreeSet::from(["ns".to_owned()]));
        let view = View::new(&world);
        assert!(matches!(view.secret("ns", "a"), Seen::Absent { live: false }));
        assert!(view.secret("other", "a").is_unknown());
        assert!(view.list(Kind::Secret, Some("ns")).is_some());
        for namespace in [Some("other"), None] {
            assert!(view.list(Kind::Secret, namespace).is_none(), "these are not all");
        }
        world.set_coverage(Kind::Template, Coverage::Cached);
        assert!(matches!(View::new(&world).template("other", "a"), Seen::Absent { live: false }), "another kind");
    }

    #[test]
    fn a_cluster_scoped_kind_has_no_limit() {
        let kind = Kind::Workspace(WorkspaceApi::Cluster);
        let mut world = World::default();
        world.set_coverage(kind, Coverage::Cached);
        world.limit(kind, BTreeSet::from(["ns".to_owned()]));
        assert!(matches!(View::new(&world).workspace(ObjectKey::new(kind, "", "w")), Seen::Absent { live: false }));
        assert!(View::new(&world).workspaces(WorkspaceApi::Cluster).is_some());
    }

    #[test]
    fn a_new_list_of_one_namespace_says_nothing_of_the_others() {
        let mut world = world();
        let (key, object) = secret("a");
        world.watched(key.clone(), 1, object);
        assert_eq!(world.relisted(Kind::Secret, Some("other"), &BTreeSet::new()), []);
        assert_eq!(world.relisted(Kind::Secret, Some("ns"), &BTreeSet::new()), [key]);
    }

    #[test]
    fn how_far_the_watch_of_another_namespace_is_says_nothing_of_our_own_write() {
        let mut world = world();
        world.limit(Kind::Secret, BTreeSet::from(["ns".to_owned(), "other".to_owned()]));
        let (key, object) = secret("a");
        world.watched(ObjectKey::new(Kind::Secret, "other", "b"), 20, object.clone());
        world.written(key.clone(), 9, object);
        assert!(world.peek(&key).is_some(), "the watch of its namespace is not there yet");
    }

    #[test]
    fn reads_are_recorded_whether_or_not_something_is_there() {
        let world = world();
        let view = View::new(&world);
        view.secret("ns", "a");
        view.applies();
        let expected =
            BTreeSet::from([Read::Object(ObjectKey::new(Kind::Secret, "ns", "a")), Read::List(Kind::Apply, None)]);
        assert_eq!(view.into_reads(), expected);
    }
}
