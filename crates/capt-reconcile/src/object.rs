//! Kinds, keys and parsed objects: the edge where JSON becomes types.
//!
//! An object is parsed once, when it enters the [`World`](crate::world::World). Foreign kinds are
//! read leniently; an object of ours that does not parse is kept as [`Object::Malformed`], so that
//! one bad object never stops a list.

use std::{
    cmp::Ordering,
    fmt::{self, Write},
    hash::{BuildHasher, Hash, Hasher},
    ops::Deref,
    sync::{Arc, LazyLock},
};

use capt_api::{
    CAPTCluster, CAPTControlPlane, WorkspaceTemplate, WorkspaceTemplateApply,
    foreign::{ClusterView, SecretView, ViewMeta, WorkspaceApi, WorkspaceView},
};
use foldhash::fast::RandomState;
use serde_json::{Value, json};

/// A kind of object that a pass reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Cluster API's Cluster.
    Cluster,
    /// Our infrastructure cluster.
    CaptCluster,
    /// Our control plane.
    CaptControlPlane,
    /// WorkspaceTemplate.
    Template,
    /// WorkspaceTemplateApply.
    Apply,
    /// provider-terraform's Workspace, of either API.
    Workspace(WorkspaceApi),
    /// A core v1 Secret.
    Secret,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Cluster,
        Self::CaptCluster,
        Self::CaptControlPlane,
        Self::Template,
        Self::Apply,
        Self::Workspace(WorkspaceApi::Cluster),
        Self::Workspace(WorkspaceApi::Namespaced),
        Self::Secret,
    ];

    /// The kind with this `kind` in this API group, if it is one of ours to read.
    pub fn find(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.group() == group && known.name() == kind)
    }

    /// As in the `kind` field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::CaptCluster => "CAPTCluster",
            Self::CaptControlPlane => "CAPTControlPlane",
            Self::Template => "WorkspaceTemplate",
            Self::Apply => "WorkspaceTemplateApply",
            Self::Workspace(_) => "Workspace",
            Self::Secret => "Secret",
        }
    }

    /// API group, empty for core.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Cluster => "cluster.x-k8s.io",
            Self::CaptCluster | Self::Template | Self::Apply => "infrastructure.cluster.x-k8s.io",
            Self::CaptControlPlane => "controlplane.cluster.x-k8s.io",
            Self::Workspace(WorkspaceApi::Cluster) => "tf.upbound.io",
            Self::Workspace(WorkspaceApi::Namespaced) => "tf.m.upbound.io",
            Self::Secret => "",
        }
    }

    /// Version that is written; Cluster is read in whichever version is served.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Cluster => "v1beta2",
            Self::CaptCluster | Self::CaptControlPlane | Self::Template | Self::Apply | Self::Workspace(_) => "v1beta1",
            Self::Secret => "v1",
        }
    }

    /// Group and version as in the `apiVersion` field.
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// Name of the resource in a path.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::CaptCluster => "captclusters",
            Self::CaptControlPlane => "captcontrolplanes",
            Self::Template => "workspacetemplates",
            Self::Apply => "workspacetemplateapplies",
            Self::Workspace(_) => "workspaces",
            Self::Secret => "secrets",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Workspace(WorkspaceApi::Cluster) => false,
            Self::Cluster
            | Self::CaptCluster
            | Self::CaptControlPlane
            | Self::Template
            | Self::Apply
            | Self::Workspace(WorkspaceApi::Namespaced)
            | Self::Secret => true,
        }
    }
}

/// Where an object is: kind, namespace and name. Copies share it, since it is copied wherever something is said of an
/// object, and others are told from it by their hash.
#[derive(Clone)]
pub struct ObjectKey(Arc<Hashed>);

#[derive(PartialEq, Eq)]
struct Hashed {
    hash: u64,
    place: Place,
}

/// What an [`ObjectKey`] consists of.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Kind.
    pub kind: Kind,
    /// Namespace; absent exactly for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The key of `name` in `namespace`; the namespace is dropped for cluster-scoped kinds.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self::of(Place { kind, namespace: kind.is_namespaced().then(|| namespace.to_owned()), name: name.to_owned() })
    }

    /// The key of a foreign object of `kind` with this metadata.
    pub fn of_view(kind: Kind, meta: &ViewMeta) -> Self {
        Self::new(kind, meta.namespace.as_deref().unwrap_or_default(), &meta.name)
    }

    /// What sorts before all keys of `kind`, in one namespace or in all.
    pub fn before(kind: Kind, namespace: Option<&str>) -> Self {
        Self::of(Place { kind, namespace: namespace.map(str::to_owned), name: String::new() })
    }

    fn of(place: Place) -> Self {
        // Users choose names; nobody knows which ones would have the same hash in a process.
        static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        Self(Arc::new(Hashed { hash: STATE.hash_one(&place), place }))
    }
}

impl Deref for ObjectKey {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0.place
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    /// By kind, namespace and name.
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.place.cmp(&other.0.place) }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { kind, namespace, name } = &**self;
        f.debug_struct("ObjectKey").field("kind", kind).field("namespace", namespace).field("name", name).finish()
    }
}

impl fmt::Display for ObjectKey {
    /// `CAPTCluster/default/demo`, `Workspace/demo-vpc`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { kind, namespace, name } = &**self;
        // In pieces: a status is compared by these names at each pass.
        f.write_str(kind.name())?;
        for part in namespace.iter().chain([name]) {
            f.write_char('/')?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// A parsed object.
#[derive(Debug, Clone)]
pub enum Object {
    /// Cluster API's Cluster.
    Cluster(Arc<ClusterView>),
    /// Our infrastructure cluster.
    CaptCluster(Arc<CAPTCluster>),
    /// Our control plane.
    ControlPlane(Arc<CAPTControlPlane>),
    /// WorkspaceTemplate.
    Template(Arc<WorkspaceTemplate>),
    /// WorkspaceTemplateApply.
    Apply(Arc<WorkspaceTemplateApply>),
    /// Workspace of either API.
    Workspace(Arc<WorkspaceView>),
    /// Secret.
    Secret(Arc<SecretView>),
    /// An object of ours that does not parse.
    Malformed(Arc<Malformed>),
}

/// An object of ours that does not parse: why, and what tells whom it concerns.
#[derive(Debug, Clone)]
pub struct Malformed {
    /// Why, with the field.
    pub reason: String,
    /// Its metadata, as far as it can be read.
    pub meta: ViewMeta,
    /// Of an apply, where that much can be read: its metadata, what it waits for, where its outputs go and which
    /// Workspace it has. Everything else of it is empty.
    pub apply: Option<Arc<WorkspaceTemplateApply>>,
}

/// Of an apply that does not parse, what it says of other objects; `None` if that does not parse either.
fn about_others(value: &Value) -> Option<Arc<WorkspaceTemplateApply>> {
    let spec = &value["spec"];
    let part = json!({
        "metadata": value["metadata"],
        "spec": {
            "templateRef": {"name": ""},
            "writeConnectionSecretToRef": spec["writeConnectionSecretToRef"],
            "waitForSecrets": spec["waitForSecrets"],
            "waitForWorkspaces": spec["waitForWorkspaces"],
        },
        "status": {"workspaceName": value["status"]["workspaceName"]},
    });
    serde_json::from_value(part).ok().map(Arc::new)
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Object {
    /// `value`, which does not parse as an object of `kind` for `reason`.
    pub fn malformed(kind: Kind, reason: &impl fmt::Display, value: &Value) -> Self {
        Self::Malformed(Arc::new(Malformed {
            reason: reason.to_string(),
            meta: ViewMeta::parse(value),
            apply: if kind == Kind::Apply { about_others(value) } else { None },
        }))
    }

    /// Parses `value` as an object of `kind`; total.
    pub fn parse(kind: Kind, value: &Value) -> Self {
        fn typed<T: serde::de::DeserializeOwned>(kind: Kind, value: &Value, wrap: fn(Arc<T>) -> Object) -> Object {
            match T::deserialize(value) {
                Ok(object) => wrap(Arc::new(object)),
                Err(error) => Object::malformed(kind, &error, value),
            }
        }
        match kind {
            Kind::Cluster => Self::Cluster(Arc::new(ClusterView::parse(value))),
            Kind::CaptCluster => typed(kind, value, Self::CaptCluster),
            Kind::CaptControlPlane => typed(kind, value, Self::ControlPlane),
            Kind::Template => typed(kind, value, Self::Template),
            Kind::Apply => typed(kind, value, Self::Apply),
            Kind::Workspace(api) => Self::Workspace(Arc::new(WorkspaceView::parse(api, value))),
            Kind::Secret => Self::Secret(Arc::new(SecretView::parse(value))),
        }
    }
}
