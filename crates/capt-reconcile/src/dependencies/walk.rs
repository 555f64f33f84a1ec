//! The walk along the references of specs that makes a [`Graph`].
//!
//! What CAPT is about to make is put in as it will be, so that a graph does not change when it is made.

use capt_api::{CAPTCluster, CAPTControlPlane, TemplateReference, WorkspaceTemplateApply, foreign::WorkspaceView};
use kube::{Resource, ResourceExt};

use super::{Graph, Maker, Standing};
use crate::{
    captcluster, captcontrolplane, meta,
    object::{Kind, ObjectKey},
    outputs, ownership,
    pass::Settings,
    world::{Seen, View, target},
};

/// What those that refer to an object know of it.
#[derive(Debug, Clone, Default)]
struct Origin {
    maker: Option<Maker>,
    /// Whether it was there for whoever makes it.
    ready: bool,
    late: bool,
    /// Of an apply: its template and what it will wait for, while it does not exist.
    template: Option<ObjectKey>,
    after: Option<ObjectKey>,
}

pub(super) fn graph(view: &View<'_>, roots: impl IntoIterator<Item = ObjectKey>, settings: Settings) -> Graph {
    let mut walk = Walk { view, settings, graph: Graph::default(), origins: Vec::new() };
    for root in roots {
        walk.place(root);
    }
    // Whoever is referred to gets a place behind all that have one, and its turn there.
    let mut at = 0;
    while let Some(key) = walk.graph.nodes.get(at).map(|node| node.key.clone()) {
        walk.visit(at, &key);
        at += 1;
    }
    walk.graph
}

struct Walk<'v, 'w> {
    view: &'v View<'w>,
    settings: Settings,
    graph: Graph,
    /// What is known of each object that has a place.
    origins: Vec<Option<Origin>>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, at: usize, key: &ObjectKey) {
        // Each is visited once.
        let origin = self.origins.get_mut(at).and_then(Option::take);
        let standing = match key.kind {
            Kind::Cluster => standing(&self.view.cluster_at(key.clone()), Standing::Missing, |cluster| {
                if cluster.meta.deleting { Standing::Deleting } else { Standing::Present }
            }),
            Kind::CaptCluster => {
                let seen = self.view.captcluster_at(key.clone());
                if let Some(object) = seen.present() {
                    self.captcluster(key, object);
                }
                standing(&seen, Standing::Missing, |object| {
                    provider(object.as_ref(), object.status.as_ref().is_some_and(|status| status.ready))
                })
            }
            Kind::CaptControlPlane => {
                let seen = self.view.control_plane_at(key.clone());
                if let Some(object) = seen.present() {
                    self.control_plane(key, object);
                }
                standing(&seen, Standing::Missing, |object| {
                    provider(object.as_ref(), object.status.as_ref().is_some_and(|status| status.ready))
                })
            }
            Kind::Apply => self.apply(key, origin.as_ref()),
            Kind::Template => standing(&self.view.template_at(key.clone()), Standing::Missing, |_| Standing::Present),
            Kind::Workspace(_) => {
                let seen = self.view.workspace(key.clone());
                standing(&seen, absent(origin.as_ref()), |workspace| of_workspace(workspace, origin.as_ref()))
            }
            Kind::Secret => {
                let seen = self.view.secret_at(key.clone());
                standing(&seen, absent(origin.as_ref()), |_| Standing::Present)
            }
        };
        let Origin { maker, ready: _, late, template: _, after: _ } = origin.unwrap_or_default();
        self.graph.settle(at, standing, maker, late);
    }

    fn captcluster(&mut self, key: &ObjectKey, object: &CAPTCluster) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        self.owner(key, object, namespace);
        let Some(template) = &object.spec.vpc_template_ref else { return };
        let template = template_key(template, namespace);
        self.edge(key, template.clone());
        let name = captcluster::apply_name(object);
        let apply = ObjectKey::new(Kind::Apply, namespace, &name);
        let exists = self.view.apply_at(apply.clone()).present().is_some();
        // Beside a VPC that exists none is made.
        if exists || object.spec.existing_vpc_id.as_deref().is_none_or(str::is_empty) {
            let ready = object.status.as_ref().is_some_and(|status| status.ready);
            let maker = Maker { key: key.clone(), ready };
            self.child(maker, apply, Origin { template: Some(template), ..Origin::default() });
        }
    }

    fn control_plane(&mut self, key: &ObjectKey, object: &CAPTControlPlane) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let ready = object.status.as_ref().is_some_and(|status| status.ready);
        let maker = Maker { key: key.clone(), ready };
        self.owner(key, object, namespace);
        let infrastructure = self.infrastructure(object, namespace);
        // Before the EKS apply, which waits for what it makes.
        let vpc = infrastructure.and_then(|infrastructure| {
            self.edge(key, infrastructure.clone());
            let namespace = infrastructure.namespace.as_deref().unwrap_or_default();
            let seen = self.view.captcluster_at(infrastructure.clone());
            let captcluster = seen.present()?;
            captcluster.spec.vpc_template_ref.as_ref()?;
            Some(ObjectKey::new(Kind::Apply, namespace, &captcluster::apply_name(captcluster)))
        });
        let template = template_key(&object.spec.workspace_template_ref, namespace);
        self.edge(key, template.clone());
        let origin = Origin { template: Some(template), after: vpc, ..Origin::default() };
        let eks = ObjectKey::new(Kind::Apply, namespace, &captcontrolplane::apply_name(object));
        self.child(maker.clone(), eks, origin);
        for name in captcontrolplane::further_applies(&key.name) {
            let further = ObjectKey::new(Kind::Apply, namespace, &name);
            if self.view.apply_at(further.clone()).present().is_some() {
                self.child(maker.clone(), further, Origin { late: true, ..Origin::default() });
            }
        }
        for name in meta::owner_cluster_name(object).into_iter().flat_map(captcontrolplane::secret_names) {
            let secret = ObjectKey::new(Kind::Secret, namespace, &name);
            self.know(secret.clone(), Origin { maker: Some(maker.clone()), ready, late: true, ..Origin::default() });
            self.edge(key, secret);
        }
    }

    /// An apply of a provider object, and the connection Secret that the outputs are read from.
    fn child(&mut self, maker: Maker, key: ObjectKey, origin: Origin) {
        let (owner, ready) = (maker.key.clone(), maker.ready);
        self.edge(&owner, key.clone());
        if let Some(apply) = self.view.apply_at(key.clone()).present()
            && let Some(workspace) = ownership::claim(self.view, apply, self.settings.workspace_api).ours()
            && let Some(secret) = outputs::connection_secret(workspace, key.namespace.as_deref().unwrap_or_default())
        {
            let late = Origin { maker: Some(maker.clone()), ready, late: true, ..Origin::default() };
            self.know(secret.clone(), late);
            self.edge(&owner, secret.clone());
            self.edge(&secret, key.clone());
        }
        self.know(key, Origin { maker: Some(maker), ready, ..origin });
    }

    fn apply(&mut self, key: &ObjectKey, origin: Option<&Origin>) -> Standing {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let seen = self.view.apply_at(key.clone());
        let Some(apply) = seen.present() else {
            if let Some(Origin { maker, ready, late, template, after }) = origin.cloned() {
                for target in template.into_iter().chain(after) {
                    self.edge(key, target);
                }
                let name = ownership::workspace_name(&key.name);
                let workspace = ObjectKey::new(Kind::Workspace(self.settings.workspace_api), namespace, name);
                self.know(workspace.clone(), Origin { maker, ready, late, ..Origin::default() });
                self.edge(key, workspace);
            }
            return standing(&seen, absent(origin), |_| Standing::Unknown);
        };
        // An apply of nobody else remembers by itself.
        let remembers = apply.status.as_ref().and_then(|status| status.was_ready) == Some(true);
        let Origin { maker, ready, late, template: _, after } =
            origin.cloned().unwrap_or(Origin { ready: remembers, ..Origin::default() });
        self.edge(key, template_key(&apply.spec.template_ref, namespace));
        let workspace = ownership::claim(self.view, apply, self.settings.workspace_api).key;
        self.know(workspace.clone(), Origin { maker, ready, late, ..Origin::default() });
        self.edge(key, workspace);
        for reference in &apply.spec.wait_for_workspaces {
            let target = self.waited_for(target(reference, namespace));
            self.graph.has_waits |= Some(&target) != after.as_ref();
            self.edge(key, target);
        }
        if let Some(target) = after {
            self.edge(key, target);
        }
        for reference in &apply.spec.wait_for_secrets {
            let namespace = if reference.namespace.is_empty() { namespace } else { &reference.namespace };
            let secret = ObjectKey::new(Kind::Secret, namespace, &reference.name);
            self.graph.has_waits = true;
            self.edge(key, secret.clone());
            self.writers(&secret);
        }
        if meta::is_deleting(apply.as_ref()) {
            Standing::Deleting
        } else if ready {
            Standing::Provisioned
        } else {
            Standing::Pending
        }
    }

    /// The apply of that name, or the Workspace where there is only that.
    fn waited_for(&self, apply: ObjectKey) -> ObjectKey {
        let namespace = apply.namespace.as_deref().unwrap_or_default();
        match self.view.apply_at(apply.clone()) {
            Seen::Unknown | Seen::Present(_) => apply,
            Seen::Absent { live: _ } => ownership::keys(namespace, &apply.name)
                .into_iter()
                .find(|key| self.view.workspace(key.clone()).present().is_some())
                .unwrap_or(apply),
        }
    }

    /// A Secret that somebody waits for depends on the applies that name it as theirs.
    fn writers(&mut self, secret: &ObjectKey) {
        let names = |apply: &WorkspaceTemplateApply| {
            apply.spec.write_connection_secret_to_ref.as_ref().is_some_and(|reference| {
                let own = apply.namespace().unwrap_or_default();
                let namespace = if reference.namespace.is_empty() { &own } else { &reference.namespace };
                (secret.namespace.as_ref(), &secret.name) == (Some(namespace), &reference.name)
            })
        };
        for apply in self.view.applies().into_iter().flatten().filter(|apply| names(apply)) {
            self.edge(secret, meta::key_of(Kind::Apply, apply.as_ref()));
        }
    }

    fn owner<K: Resource>(&mut self, key: &ObjectKey, object: &K, namespace: &str) {
        if let Some(name) = meta::owner_cluster_name(object) {
            self.edge(key, ObjectKey::new(Kind::Cluster, namespace, name));
        }
    }

    /// The infrastructure of the control plane's Cluster, if it is ours.
    fn infrastructure(&self, object: &CAPTControlPlane, namespace: &str) -> Option<ObjectKey> {
        let cluster = self.view.cluster(namespace, meta::owner_cluster_name(object)?);
        captcontrolplane::infrastructure_key(cluster.present()?, namespace)
    }

    /// Says what is known of an object before it is looked at; who says it first counts.
    fn know(&mut self, key: ObjectKey, origin: Origin) {
        let at = self.place(key);
        if let Some(known @ None) = self.origins.get_mut(at) {
            *known = Some(origin);
        }
    }

    fn edge(&mut self, from: &ObjectKey, to: ObjectKey) {
        let (from, to) = (self.place(from.clone()), self.place(to));
        self.graph.connect(from, to);
    }

    fn place(&mut self, key: ObjectKey) -> usize {
        let at = self.graph.place(key);
        if self.origins.len() <= at {
            self.origins.push(None);
        }
        at
    }
}

fn standing<T>(seen: &Seen<T>, absent: Standing, of: impl FnOnce(&T) -> Standing) -> Standing {
    match seen {
        Seen::Unknown => Standing::Unknown,
        Seen::Absent { live: _ } => absent,
        Seen::Present(object) => of(object),
    }
}

/// What somebody makes and what was never there is on its way.
fn absent(origin: Option<&Origin>) -> Standing {
    match origin {
        Some(origin) if !origin.ready => Standing::Pending,
        Some(_) | None => Standing::Missing,
    }
}

fn provider<K: Resource>(object: &K, ready: bool) -> Standing {
    match (meta::is_deleting(object), ready) {
        (true, _) => Standing::Deleting,
        (false, true) => Standing::Provisioned,
        (false, false) => Standing::Pending,
    }
}

fn of_workspace(workspace: &WorkspaceView, origin: Option<&Origin>) -> Standing {
    let ready = origin.map_or_else(|| !outputs::was_never_ready(workspace), |origin| origin.ready);
    if workspace.meta.deleting {
        Standing::Deleting
    } else if ready {
        Standing::Provisioned
    } else {
        Standing::Pending
    }
}

fn template_key(reference: &TemplateReference, own: &str) -> ObjectKey {
    let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(own);
    ObjectKey::new(Kind::Template, namespace, &reference.name)
}
