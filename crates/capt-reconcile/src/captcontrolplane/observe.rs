//! What the pass of a CAPTControlPlane depends on.

use std::sync::Arc;

use capt_api::{
    CAPTCluster, CAPTControlPlane, TemplateReference,
    foreign::{ClusterView, SecretView},
};
use capt_status::machine::Timeouts;
use kube::ResourceExt;

use super::spot::{self, Spot};
use crate::{
    captcluster,
    child::Child,
    dependencies::Graph,
    meta,
    object::{Kind, ObjectKey},
    pass::{Features, Settings},
    pause,
    world::{Probe, Seen, View},
};

/// Template of the kubeconfig apply where the spec names none.
const KUBECONFIG_TEMPLATE: &str = "eks-kubeconfig-template";

/// What the pass of a CAPTControlPlane depends on.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The control plane.
    pub control_plane: Arc<CAPTControlPlane>,
    /// What the operator was told to do and to leave.
    pub features: Features,
    /// How long each timer may run where the spec does not say.
    pub timeouts: Timeouts,
    /// What it depends on, where that is tracked.
    pub dependencies: Option<Graph>,
    /// Why it is paused, if it is.
    pub paused: Option<String>,
    /// The owner Cluster; absent without an owner reference.
    pub cluster: Seen<Arc<ClusterView>>,
    /// The CAPTCluster of that Cluster, with its VPC; `None` if its infrastructure is of another kind.
    pub infrastructure: Option<(Seen<Arc<CAPTCluster>>, Option<Child>)>,
    /// What the operator's own probe of the API server says, where there is one.
    pub probe: Option<Probe>,
    /// The apply of the EKS cluster.
    pub eks: Child,
    /// The apply that makes a kubeconfig where the EKS Workspace has no such output.
    pub kubeconfig: Child,
    /// The template of that apply: the first that exists of those that may be used.
    pub kubeconfig_template: Seen<TemplateReference>,
    /// The applies for the Spot role, where there are any.
    pub spot: Spot,
    /// Secret `<cluster>-kubeconfig`.
    pub kubeconfig_secret: Seen<Arc<SecretView>>,
    /// Secret `<cluster>-ca`.
    pub ca_secret: Seen<Arc<SecretView>>,
    /// Secret `<control plane>-ca` of the Go implementation, where that is another one.
    pub go_ca_secret: Seen<Arc<SecretView>>,
}

impl Observed {
    /// Whether nothing may be concluded.
    pub fn is_unknown(&self) -> bool {
        let infrastructure = self.infrastructure.as_ref();
        self.cluster.is_unknown()
            || infrastructure.is_some_and(|(captcluster, vpc)| {
                captcluster.is_unknown() || vpc.as_ref().is_some_and(Child::is_unknown)
            })
            || self.eks.is_unknown()
            || self.kubeconfig.is_unknown()
            || self.kubeconfig_template.is_unknown()
            || self.kubeconfig_secret.is_unknown()
            || self.ca_secret.is_unknown()
            || self.go_ca_secret.is_unknown()
    }
}

/// Takes out of the world what the pass of `control_plane` depends on.
pub fn observe(view: &View<'_>, control_plane: Arc<CAPTControlPlane>, settings: Settings) -> Observed {
    let owner = meta::owner_cluster_name(control_plane.as_ref());
    let namespace = control_plane.namespace().unwrap_or_default();
    let cluster = owner.map_or(Seen::Absent { live: false }, |name| view.cluster(&namespace, name));
    let of = |name: &str, template: Option<&TemplateReference>| {
        Child::observe(view, (Kind::CaptControlPlane, control_plane.as_ref()), name, template, settings)
    };
    let child = |name: &str| of(name, None);
    let key = meta::key_of(Kind::CaptControlPlane, control_plane.as_ref());
    let [kubeconfig_secret, ca_secret] = match owner {
        Some(name) => secret_names(name).map(|name| view.secret(&namespace, &name)),
        None => [Seen::Absent { live: false }, Seen::Absent { live: false }],
    };
    let probe = view.probe(&key).cloned();
    Observed {
        features: settings.features,
        timeouts: settings.timeouts,
        dependencies: settings.features.dependencies.then(|| Graph::observe(view, [key], settings)),
        paused: pause::reason(view, Kind::CaptControlPlane, control_plane.as_ref(), owner),
        infrastructure: infrastructure(view, &cluster, &namespace, settings),
        probe,
        eks: of(&apply_name(&control_plane), Some(&control_plane.spec.workspace_template_ref)),
        kubeconfig: child(&kubeconfig_apply(&control_plane.name_any())),
        spot: Spot::observe(view, &control_plane.name_any(), child),
        kubeconfig_template: kubeconfig_template(view, &control_plane, &namespace),
        kubeconfig_secret,
        ca_secret,
        go_ca_secret: if owner == Some(control_plane.name_any().as_str()) {
            Seen::Absent { live: false }
        } else {
            view.secret(&namespace, &format!("{}-ca", control_plane.name_any()))
        },
        cluster,
        control_plane,
    }
}

/// Name of the EKS apply: the stored one, else `<control plane>-eks-controlplane-apply`.
pub fn apply_name(control_plane: &CAPTControlPlane) -> String {
    control_plane
        .spec
        .workspace_template_apply_name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("{}-eks-controlplane-apply", control_plane.name_any()))
}

fn kubeconfig_apply(control_plane: &str) -> String {
    format!("{control_plane}-kubeconfig-apply")
}

/// Names of the applies that a control plane may have beside that of its EKS cluster.
pub fn further_applies(control_plane: &str) -> [String; 3] {
    let spot = |part: &str| format!("{control_plane}-{part}");
    [kubeconfig_apply(control_plane), spot(spot::CHECK), spot(spot::CREATE)]
}

/// Names of the two Secrets of the contract: kubeconfig and CA.
pub fn secret_names(cluster: &str) -> [String; 2] {
    ["kubeconfig", "ca"].map(|part| format!("{cluster}-{part}"))
}

/// The infrastructure that a Cluster in `namespace` names, if it is a CAPTCluster.
pub fn infrastructure_key(cluster: &ClusterView, namespace: &str) -> Option<ObjectKey> {
    let reference = cluster.infrastructure_ref.as_ref()?;
    let is_ours = reference.kind == Kind::CaptCluster.name() && reference.group == Kind::CaptCluster.group();
    is_ours.then(|| ObjectKey::new(Kind::CaptCluster, namespace, &reference.name))
}

fn infrastructure(
    view: &View<'_>,
    cluster: &Seen<Arc<ClusterView>>,
    namespace: &str,
    settings: Settings,
) -> Option<(Seen<Arc<CAPTCluster>>, Option<Child>)> {
    let key = infrastructure_key(cluster.present()?, namespace)?;
    let captcluster = view.captcluster_at(key);
    let made = captcluster.present().filter(|found| found.spec.vpc_template_ref.is_some());
    let vpc = made.map(|found| captcluster::vpc(view, found, settings));
    Some((captcluster, vpc))
}

/// The template the user names; else the well-known one in the own namespace, then in `default`.
fn kubeconfig_template(view: &View<'_>, control_plane: &CAPTControlPlane, namespace: &str) -> Seen<TemplateReference> {
    let look = |namespace: &str, name: &str| {
        view.template(namespace, name)
            .map(|_| TemplateReference { name: name.to_owned(), namespace: Some(namespace.to_owned()) })
    };
    if let Some(reference) = &control_plane.spec.kubeconfig_template_ref {
        let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(namespace);
        return look(namespace, &reference.name);
    }
    match look(namespace, KUBECONFIG_TEMPLATE) {
        Seen::Absent { live: _ } => look("default", KUBECONFIG_TEMPLATE),
        found @ (Seen::Present(_) | Seen::Unknown) => found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_infrastructure_of_another_kind_or_group_is_none_of_ours() {
        let key = |group: &str, kind: &str| {
            let reference = json!({"apiGroup": group, "kind": kind, "name": "v", "namespace": "of-others"});
            infrastructure_key(&ClusterView::parse(&json!({"spec": {"infrastructureRef": reference}})), "a")
        };
        let (group, kind) = (Kind::CaptCluster.group(), Kind::CaptCluster.name());
        assert_eq!(key(group, kind), Some(ObjectKey::new(Kind::CaptCluster, "a", "v")));
        assert_eq!(key(group, "AWSCluster"), None);
        assert_eq!(key("example.com", kind), None);
    }
}
