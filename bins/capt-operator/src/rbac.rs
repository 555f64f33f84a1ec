//! What the operator may do: one table, from which the roles are written and the start-up check asks.
//!
//! A right that is missing here is refused on a real cluster, and one that is here without need is
//! somebody's risk; so each rule says why. It must not know how rights are asked for.

use std::fmt::Write as _;

/// Name of the cluster role.
pub const ROLE: &str = "capt-operator";
/// Name of the role for the lease.
pub const LEASE_ROLE: &str = "capt-operator-leader-election";
/// Namespace and service account of the install files.
pub const NAMESPACE: &str = "capt-system";

const INFRASTRUCTURE: &[&str] = &["infrastructure.cluster.x-k8s.io"];
const CONTROL_PLANE: &[&str] = &["controlplane.cluster.x-k8s.io"];
const READ: &[&str] = &["get", "list", "watch"];
const READ_PATCH: &[&str] = &["get", "list", "watch", "patch"];
const ALL: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// Kinds of the Go implementation that this one has not.
pub const LEFT_OVER: &[&str] = &["captmachines", "captmachinesets", "captmachinedeployments", "captmachinetemplates"];

/// What a rule is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Passes.
    Passes,
    /// Asking who may read the metrics.
    Metrics,
    /// The lease, in its own namespace.
    Lease,
}

/// Where an operator of some namespaces needs a rule; one of all namespaces needs each everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In each of its namespaces.
    Namespaces,
    /// Everywhere.
    Everywhere,
}

/// Some verbs on some resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Why, for people.
    pub why: &'static str,
    /// What for.
    pub need: Need,
    /// Where.
    pub reach: Reach,
    /// API groups, empty for core.
    pub groups: &'static [&'static str],
    /// Plural names, with subresource.
    pub resources: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
}

const fn rule(
    why: &'static str,
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Rule {
    Rule { why, need: Need::Passes, reach: Reach::Namespaces, groups, resources, verbs }
}

impl Rule {
    const fn everywhere(self) -> Self {
        let Self { why, need, reach: _, groups, resources, verbs } = self;
        Self { why, need, reach: Reach::Everywhere, groups, resources, verbs }
    }
}

/// What an operator of some namespaces reads in all of them: a cluster-scoped Workspace may be claimed from any, and
/// not to know that could mean to take or destroy what is somebody else's.
pub const READ_EVERYWHERE: [Rule; 2] = [
    rule("Any of them may claim a Workspace.", INFRASTRUCTURE, &["workspacetemplateapplies"], READ).everywhere(),
    rule("Whether one of ours is left is asked everywhere.", &["tf.m.upbound.io"], &["workspaces"], READ).everywhere(),
];

/// Everything.
pub const RULES: [Rule; 19] = [
    rule(
        "Provider objects: users create and delete them; finalizers, endpoint and names are patched.",
        INFRASTRUCTURE,
        &["captclusters"],
        READ_PATCH,
    ),
    rule("The same for control planes.", CONTROL_PLANE, &["captcontrolplanes"], READ_PATCH),
    rule("Templates are the users'.", INFRASTRUCTURE, &["workspacetemplates"], READ).everywhere(),
    rule(
        "Applies are made for the VPC, the control plane and the kubeconfig.",
        INFRASTRUCTURE,
        &["workspacetemplateapplies"],
        ALL,
    ),
    rule("Statuses.", INFRASTRUCTURE, &["captclusters/status", "workspacetemplateapplies/status"], &["patch"]),
    rule("The status of control planes.", CONTROL_PLANE, &["captcontrolplanes/status"], &["patch"]),
    rule(
        "Children carry blockOwnerDeletion, which some clusters allow only with this.",
        INFRASTRUCTURE,
        &["captclusters/finalizers", "workspacetemplateapplies/finalizers"],
        &["update"],
    ),
    rule("The same for children of control planes.", CONTROL_PLANE, &["captcontrolplanes/finalizers"], &["update"]),
    rule(
        "Patched where the Go implementation left a URL in the place of the endpoint's host, or where no core copies it.",
        &["cluster.x-k8s.io"],
        &["clusters"],
        READ_PATCH,
    ),
    rule(
        "In the place of core where none runs; beside core a failure text that it never clears.",
        &["cluster.x-k8s.io"],
        &["clusters/status"],
        &["patch"],
    ),
    rule("Workspaces of both APIs: those without a namespace.", &["tf.upbound.io"], &["workspaces"], ALL).everywhere(),
    rule("And those in one.", &["tf.m.upbound.io"], &["workspaces"], ALL),
    rule(
        "Outputs are read from connection Secrets; CA and kubeconfig Secrets are written. The garbage collector deletes them.",
        &[""],
        &["secrets"],
        &["get", "list", "watch", "create", "patch"],
    ),
    rule("Events.", &["events.k8s.io"], &["events"], &["create", "patch"]),
    rule(
        "To notice that the Terraform provider or a new version of Cluster is installed, and whether our CRDs are of this version.",
        &["apiextensions.k8s.io"],
        &["customresourcedefinitions"],
        READ,
    )
    .everywhere(),
    rule(
        "To say whether there are objects that only the Go implementation can delete; they are left alone.",
        INFRASTRUCTURE,
        LEFT_OVER,
        &["list"],
    )
    .everywhere(),
    Rule {
        why: "One of several replicas writes.",
        need: Need::Lease,
        reach: Reach::Namespaces,
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "list", "watch", "create", "patch"],
    },
    Rule {
        why: "Who reads the metrics.",
        need: Need::Metrics,
        reach: Reach::Everywhere,
        groups: &["authentication.k8s.io"],
        resources: &["tokenreviews"],
        verbs: &["create"],
    },
    Rule {
        why: "Whether they may.",
        need: Need::Metrics,
        reach: Reach::Everywhere,
        groups: &["authorization.k8s.io"],
        resources: &["subjectaccessreviews"],
        verbs: &["create"],
    },
];

/// All roles and bindings, as YAML: for an operator of `namespaces`, or of all where there are none.
pub fn all(namespaces: &[String]) -> String {
    let mut documents = if namespaces.is_empty() { vec![role()] } else { vec![limited_cluster_role()] };
    documents.push(role_binding());
    documents.extend(namespaces.iter().map(|namespace| limited_role(namespace)));
    documents.push(lease_role());
    documents.join("---\n")
}

/// The cluster role, as YAML.
pub fn role() -> String {
    cluster_role(
        "what it reads it watches, what it writes it may write, nothing else.",
        RULES.iter().filter(|rule| rule.need != Need::Lease),
    )
}

/// What an operator of some namespaces may do everywhere, as YAML.
pub fn limited_cluster_role() -> String {
    cluster_role(
        "what an operator of some namespaces may do outside of them.",
        RULES.iter().chain(&READ_EVERYWHERE).filter(|rule| rule.need != Need::Lease && rule.reach == Reach::Everywhere),
    )
}

fn cluster_role<'a>(what: &str, rules: impl Iterator<Item = &'a Rule>) -> String {
    let mut text = format!(
        "# Generated by `capt-operator rbac`: {what}\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {ROLE}\nrules:\n"
    );
    rules.for_each(|rule| write_rule(&mut text, rule));
    text
}

/// What an operator of some namespaces may do in `namespace`, one of them, and the binding, as YAML.
pub fn limited_role(namespace: &str) -> String {
    let mut text = format!(
        "# Generated by `capt-operator rbac`: what an operator of some namespaces may do in each of them.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {ROLE}\n  \
         namespace: {namespace}\nrules:\n"
    );
    for rule in RULES.iter().filter(|rule| rule.need != Need::Lease && rule.reach == Reach::Namespaces) {
        write_rule(&mut text, rule);
    }
    text.push_str("---\n");
    text.push_str(&binding("RoleBinding", "Role", ROLE, &format!("  namespace: {namespace}\n")));
    text
}

/// The role for the lease and its binding, as YAML.
pub fn lease_role() -> String {
    let mut text = format!(
        "# Generated by `capt-operator rbac`: the lease, in the operator's own namespace.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {LEASE_ROLE}\n  \
         namespace: {NAMESPACE}\nrules:\n"
    );
    for rule in RULES.iter().filter(|rule| rule.need == Need::Lease) {
        write_rule(&mut text, rule);
    }
    text.push_str("---\n");
    text.push_str(&binding("RoleBinding", "Role", LEASE_ROLE, &format!("  namespace: {NAMESPACE}\n")));
    text
}

/// The binding of the cluster role, as YAML.
pub fn role_binding() -> String {
    let head = format!(
        "# Generated by `capt-operator rbac`: gives the role to the service account of the operator. For a user instead:\n\
         #   kubectl create clusterrolebinding {ROLE} --clusterrole={ROLE} --user=NAME\n"
    );
    head + &binding("ClusterRoleBinding", "ClusterRole", ROLE, "")
}

fn binding(kind: &str, role_kind: &str, name: &str, namespace: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role_kind}\n  name: {name}\n\
         subjects:\n- kind: ServiceAccount\n  name: {ROLE}\n  namespace: {NAMESPACE}\n"
    )
}

fn write_rule(text: &mut String, rule: &Rule) {
    let Rule { why, need: _, reach: _, groups, resources, verbs } = rule;
    let list = |items: &[&str]| {
        items.iter().map(|item| if item.is_empty() { "\"\"" } else { item }).collect::<Vec<_>>().join(", ")
    };
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "# {why}\n- apiGroups: [{}]\n  resources: [{}]\n  verbs: [{}]\n",
        list(groups),
        list(resources),
        list(verbs)
    );
}
