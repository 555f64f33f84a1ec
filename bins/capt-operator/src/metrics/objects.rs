//! How many objects there are, and how they are: counted in the cache when somebody scrapes.

use capt_api::{
    foreign::{ForeignCondition, WorkspaceApi, WorkspaceView},
    names,
};
use capt_reconcile::{
    object::{Kind, Object, ObjectKey},
    outputs, ownership,
    world::{View, World},
};
use capt_status::{Phase, State};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::scope::Scope;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    kind: &'static str,
    state: &'static str,
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkspaceLabels {
    api: &'static str,
    health: &'static str,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Gauges of what is there.
#[derive(Debug, Default)]
pub(super) struct Objects {
    by_state: Family<ObjectLabels, Gauge>,
    malformed: Family<KindLabel, Gauge>,
    workspaces: Family<WorkspaceLabels, Gauge>,
    orphans: Gauge,
}

impl Objects {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let objects = Self::default();
        registry.register("objects", "Objects by state and phase", objects.by_state.clone());
        registry.register("malformed_objects", "Objects of ours that do not parse", objects.malformed.clone());
        registry.register(
            "workspaces",
            "Workspaces of ours by health and, if the last apply failed, class of the failure",
            objects.workspaces.clone(),
        );
        registry.register("orphaned_workspaces", "Workspaces of ours whose apply is gone", objects.orphans.clone());
        objects
    }

    /// Counts what is in `world`; of our own kinds with passes what is in `scope`, so that the sum over several
    /// operators counts each object once.
    pub(super) fn read(&self, world: &World, scope: &Scope) {
        self.by_state.clear();
        self.malformed.clear();
        self.workspaces.clear();
        for kind in [Kind::CaptCluster, Kind::CaptControlPlane, Kind::Template, Kind::Apply] {
            // Templates have no passes, and no owner that could say whose they are.
            let counts = |key: &&ObjectKey| kind == Kind::Template || scope.holds(&View::new(world), key);
            for key in world.keys(kind).filter(counts) {
                match world.peek(key) {
                    Some(Object::CaptCluster(object)) => {
                        let status = object.status.as_ref();
                        self.count(kind, status.and_then(|it| it.state), status.and_then(|it| it.phase));
                    }
                    Some(Object::ControlPlane(object)) => {
                        let status = object.status.as_ref();
                        self.count(kind, status.and_then(|it| it.state), status.and_then(|it| it.phase));
                    }
                    Some(Object::Malformed(_)) => {
                        self.malformed.get_or_create(&KindLabel { kind: kind.name() }).inc();
                    }
                    Some(Object::Template(_) | Object::Apply(_)) => self.count(kind, None, None),
                    Some(Object::Cluster(_) | Object::Workspace(_) | Object::Secret(_)) | None => {}
                }
            }
        }
        for api in WorkspaceApi::ALL {
            for key in world.keys(Kind::Workspace(api)) {
                let Some(Object::Workspace(workspace)) = world.peek(key) else { continue };
                if !workspace.meta.labels.contains_key(names::OWNER_UID_LABEL) {
                    continue;
                }
                let (health, class) = health(workspace);
                self.workspaces.get_or_create(&WorkspaceLabels { api: api.group(), health, class }).inc();
            }
        }
        let orphans = ownership::orphans(&View::new(world)).map_or(0, |orphans| orphans.len());
        self.orphans.set(i64::try_from(orphans).unwrap_or(i64::MAX));
    }

    fn count(&self, kind: Kind, state: Option<State>, phase: Option<Phase>) {
        let labels = ObjectLabels {
            kind: kind.name(),
            state: state.map_or("", State::as_str),
            phase: phase.map_or("", phase_name),
        };
        self.by_state.get_or_create(&labels).inc();
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Creating => "Creating",
        Phase::Ready => "Ready",
        Phase::Failed => "Failed",
        Phase::Deleting => "Deleting",
    }
}

/// Health of a Workspace, and the class of its failure if it fails.
fn health(workspace: &WorkspaceView) -> (&'static str, &'static str) {
    let is = |condition: &Option<ForeignCondition>, status: &str| {
        condition.as_ref().is_some_and(|condition| condition.status == status)
    };
    if let Some(failure) = &workspace.failure {
        ("failing", failure.class.as_str())
    } else if outputs::is_paused(workspace) {
        ("paused", "")
    } else if is(&workspace.synced, "True") && is(&workspace.ready, "True") {
        ("ready", "")
    } else {
        ("progressing", "")
    }
}
