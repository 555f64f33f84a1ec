//! Where a test takes place: a namespace of a stack with an operator, and what happens in it.

use std::{
    collections::BTreeMap,
    fs,
    ops::Deref,
    time::{Duration, Instant},
};

use capt_stack::{Request, Requests, Shared, Stack, Tier, eventually, shared_from};
use capt_tests::{
    history::{Change, History, Kind},
    operator::{self, Operator, USER},
    root,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time::timeout};

/// Three seconds each are usual; a busy machine takes ten times as long.
pub(crate) const SOON: Duration = Duration::from_mins(2);
/// The two Workspaces go one after the other, and each may take 45 seconds if it is young.
pub(crate) const DELETION: Duration = Duration::from_mins(4);

/// After this long nothing that core or the provider does can be a late consequence of what was before.
const SETTLED: Duration = Duration::from_secs(12);
/// The provider looks at each Workspace every ten seconds.
const ROUND: Duration = Duration::from_secs(12);

/// The operator beside the shared stack. It ends with the stack, and that with this process.
static SHARED_OPERATOR: OnceCell<Operator> = OnceCell::const_new();

pub(crate) struct Place<S: Deref<Target = Stack>> {
    pub(crate) stack: S,
    pub(crate) client: Client,
    pub(crate) namespace: &'static str,
    pub(crate) history: History,
    /// The kind of the Workspaces.
    pub(crate) workspaces: Kind,
}

impl Place<Shared> {
    /// A namespace of the shared stack, with the shared operator.
    pub(crate) async fn shared(namespace: &'static str) -> Self {
        let builder = Stack::builder(Tier::Provider).install(operator::manifests().unwrap());
        let stack = shared_from(builder).await.unwrap();
        SHARED_OPERATOR.get_or_try_init(|| async { Operator::start(&stack, &[]) }).await.unwrap();
        Self::new(stack, namespace).await
    }
}

impl Place<Box<Stack>> {
    /// A namespace of a stack of its own, without an operator.
    pub(crate) async fn own(namespace: &'static str) -> Self {
        let stack = Stack::builder(Tier::Provider).install(operator::manifests().unwrap()).start().await.unwrap();
        Self::of(Box::new(stack), namespace).await
    }

    /// A namespace of `stack`.
    pub(crate) async fn of(stack: Box<Stack>, namespace: &'static str) -> Self {
        Self::new(stack, namespace).await
    }
}

impl<S: Deref<Target = Stack>> Place<S> {
    async fn new(stack: S, namespace: &'static str) -> Self {
        let client = stack.admin_client().await.unwrap();
        let history = History::start(&client).await.unwrap();
        let place = Self { stack, client, namespace, history, workspaces: Kind::Workspace };
        place.make_namespace(namespace).await;
        place
    }

    pub(crate) async fn make_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.stack.apply(&namespace.to_string()).await.unwrap();
    }

    /// Applies a file of `examples/` to the namespace, its cluster under `name`.
    pub(crate) async fn apply_to(&self, namespace: &str, file: &str, name: &str) {
        let text = fs::read_to_string(root().join("examples").join(file)).unwrap();
        let text = text
            .replace("namespace: default", &format!("namespace: {namespace}"))
            .replace("name: demo", &format!("name: {name}"));
        self.stack.apply(&text).await.unwrap();
    }

    /// As [`Place::apply_to`] in the place's own namespace, with a text of the file replaced by another.
    pub(crate) async fn apply_changed(&self, file: &str, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(root().join("examples").join(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        let text = text
            .replace("namespace: default", &format!("namespace: {}", self.namespace))
            .replace("name: demo", &format!("name: {name}"))
            .replacen(from, to, 1);
        self.stack.apply(&text).await.unwrap();
    }

    pub(crate) async fn templates(&self) {
        for file in ["vpc-template.yaml", "eks-template.yaml"] {
            self.apply_to(self.namespace, file, "").await;
        }
    }

    pub(crate) async fn cluster(&self, name: &str) {
        self.apply_to(self.namespace, "cluster.yaml", name).await;
    }

    /// Changes an object as a user does.
    pub(crate) async fn edit(&self, kind: Kind, name: &str, change: Value) {
        let api = kind.api(&self.client, Some(self.namespace));
        api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// The object as it was seen last; `None` if it is not there.
    pub(crate) fn latest(&self, kind: Kind, name: &str) -> Option<Change> {
        self.history.last(|change| change.is_of(kind, self.namespace, name)).filter(|change| !change.gone)
    }

    /// A field of an object, null if there is no such object.
    pub(crate) fn field(&self, kind: Kind, name: &str, pointer: &str) -> Value {
        self.latest(kind, name).map(|change| change.field(pointer).clone()).unwrap_or_default()
    }

    /// Status, reason and message of a condition.
    pub(crate) fn condition(&self, kind: Kind, name: &str, type_: &str) -> [String; 3] {
        let conditions = self.field(kind, name, "/status/conditions");
        let condition = conditions.as_array().into_iter().flatten().find(|condition| condition["type"] == type_);
        let text = |field| condition.and_then(|it| it[field].as_str()).unwrap_or_default().to_owned();
        [text("status"), text("reason"), text("message")]
    }

    /// Waits until `probe` is content; it looks again at each change.
    pub(crate) async fn until(&mut self, what: &str, limit: Duration, probe: impl Fn(&Self) -> Result<(), String>) {
        let end = Instant::now() + limit;
        while let Err(seen) = probe(self) {
            let left = end.saturating_duration_since(Instant::now());
            let in_time = timeout(left, self.history.changed()).await.is_ok();
            assert!(in_time, "{what} did not happen within {} s: {seen}\n{}", limit.as_secs(), self.log());
        }
    }

    /// The end of the operator's log.
    fn log(&self) -> String {
        let log = fs::read(self.stack.directory().join("logs/capt-operator.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Waits until the cluster is ready for everybody who looks.
    pub(crate) async fn ready(&mut self, name: &str) {
        let is = |place: &Self, kind, pointer: &str, expected: &Value| {
            let found = place.field(kind, name, pointer);
            if found == *expected { Ok(()) } else { Err(format!("{kind:?} {name}: {pointer} is {found}")) }
        };
        self.until("a ready cluster", SOON, |place| {
            is(place, Kind::CaptCluster, "/status/ready", &json!(true))?;
            is(place, Kind::CaptCluster, "/status/phase", &json!("Ready"))?;
            is(place, Kind::ControlPlane, "/status/ready", &json!(true))?;
            is(place, Kind::ControlPlane, "/status/phase", &json!("Ready"))?;
            let endpoint = place.field(Kind::ControlPlane, name, "/status/endpoint");
            is(place, Kind::CaptCluster, "/status/endpoint", &endpoint)?;
            is(place, Kind::Cluster, "/status/phase", &json!("Provisioned"))
        })
        .await;
    }

    /// Names of the cluster's two Workspaces, the VPC's first.
    pub(crate) fn workspace_names(name: &str) -> [String; 2] {
        [format!("{name}-vpc"), format!("{name}-eks-controlplane")]
    }

    /// Deletes a ready cluster, and waits until nothing of it is left. Its Workspaces are made to look
    /// old, since how long the provider waits is not what is tested.
    pub(crate) async fn delete_quickly(&mut self, name: &str) {
        for workspace in Self::workspace_names(name) {
            let namespace = (self.workspaces == Kind::NamespacedWorkspace).then_some(self.namespace);
            self.stack.age_workspace(namespace, &workspace).await.unwrap();
        }
        self.delete(name).await;
        self.gone(name).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        let clusters = Kind::Cluster.api(&self.client, Some(self.namespace));
        clusters.delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// Waits until nothing of the cluster is left: no object under one of its names, and none with its label.
    pub(crate) async fn gone(&mut self, name: &str) {
        self.until("the end of the cluster", DELETION, |place| match place.latest(Kind::Cluster, name) {
            None => Ok(()),
            Some(cluster) => Err(cluster.field("/status/conditions").to_string()),
        })
        .await;
        eventually("the end of all that belongs to the cluster", SOON, || async {
            let left = self.left_of(name).await;
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await
        .unwrap();
    }

    async fn left_of(&self, name: &str) -> Vec<String> {
        let mut left = Vec::new();
        let all = ListParams::default();
        let labelled = ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={name}"));
        for kind in [Kind::CaptCluster, Kind::ControlPlane, Kind::Apply, Kind::Workspace, Kind::NamespacedWorkspace] {
            let found = kind.api(&self.client, Some(self.namespace)).list(&all).await.unwrap();
            let names = found.items.into_iter().filter_map(|object| object.metadata.name);
            left.extend(names.filter(|found| *found == name || found.starts_with(&format!("{name}-"))));
            // In other namespaces as well, unless they are other clusters of that name.
            let found = kind.api(&self.client, Some(self.namespace)).list(&labelled).await.unwrap();
            left.extend(found.items.into_iter().filter_map(|object| object.metadata.name));
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
        let names = secrets.list(&all).await.unwrap().items.into_iter().filter_map(|secret| secret.metadata.name);
        left.extend(names.filter(|found| found.starts_with(&format!("{name}-"))));
        left.sort();
        left.dedup();
        left
    }

    /// What the operator requested about this cluster: everything in the namespace and, of the
    /// cluster-scoped Workspaces, those under its names.
    pub(crate) fn requests_about(&self, name: &str) -> Requests {
        let prefix = format!("{name}-");
        self.stack.audit().requests_of(USER).unwrap().filter(|request| match &request.namespace {
            Some(namespace) => namespace == self.namespace,
            None => request.name.as_ref().is_some_and(|found| found.starts_with(&prefix)),
        })
    }

    /// What the operator wrote about this cluster since `mark`, and how often: verb and resource. Writes of a
    /// status and events are left out, since their number depends on who was faster, and so are refused ones.
    pub(crate) fn writes_since(&self, name: &str, mark: Timestamp) -> BTreeMap<String, usize> {
        let requests = self.requests_about(name).since(mark).writes();
        let mut counts = BTreeMap::new();
        let is_counted = |request: &&Request| {
            request.code < 300 && !request.resource.ends_with("/status") && request.resource != "events"
        };
        for request in requests.iter().filter(is_counted) {
            *counts.entry(format!("{} {}", request.verb, request.resource)).or_insert(0) += 1;
        }
        counts
    }

    /// Fails unless the operator neither reads nor writes anything about this cluster while the provider
    /// goes round once more.
    pub(crate) async fn assert_rest(&self, name: &str) {
        tokio::time::sleep(SETTLED).await;
        let mark = Timestamp::now();
        tokio::time::sleep(ROUND).await;
        let seen = self.requests_about(name).since(mark).filter(|request| request.verb != "watch");
        assert!(seen.is_empty(), "not at rest:\n{}", seen.table());
    }

    /// Which Workspaces the cluster has: uid, and generation of the spec, the VPC's first.
    pub(crate) async fn workspaces(&self, name: &str) -> [(String, i64); 2] {
        let mut found = Vec::new();
        for workspace in Self::workspace_names(name) {
            let object = self.workspaces.api(&self.client, Some(self.namespace)).get(&workspace).await.unwrap();
            assert_eq!(object.metadata.deletion_timestamp, None, "{workspace}");
            found.push((object.metadata.uid.unwrap(), object.metadata.generation.unwrap()));
        }
        found.try_into().unwrap()
    }

    /// Fails if `pointer` of the object ever had another value than `expected` once it had it.
    pub(crate) fn assert_kept(&self, kind: Kind, name: &str, pointer: &str, expected: &Value) {
        let changes = self.history.changes().into_iter().filter(|change| change.is_of(kind, self.namespace, name));
        let mut had = false;
        for change in changes.filter(|change| !change.gone) {
            let found = change.field(pointer);
            assert!(!had || found == expected, "{kind:?} {name} had {pointer} {expected}, then {found}");
            had |= found == expected;
        }
        assert!(had, "{kind:?} {name} never had {pointer} {expected}");
    }

    /// Fails if the operator was refused something for lack of rights.
    pub(crate) fn assert_rights_suffice(&self) {
        let refused = self.stack.audit().requests_of(USER).unwrap().filter(|request| request.code == 403);
        assert!(refused.is_empty(), "deploy/rbac lacks\n{}", refused.table());
    }

    /// Fails unless the control plane went before the VPC.
    pub(crate) fn assert_order_of_deletion(&self, name: &str) {
        let [vpc, eks] = Self::workspace_names(name);
        let first = |kind, name: &str, is: fn(&Change) -> bool| {
            let first = self.history.first(|change| change.is_of(kind, self.namespace, name) && is(change));
            first.unwrap_or_else(|| panic!("{kind:?} {name} never ended")).version()
        };
        let eks = first(self.workspaces, &eks, |change| change.gone);
        let plane = first(Kind::ControlPlane, name, |change| change.gone);
        let vpc = first(self.workspaces, &vpc, Change::ends);
        assert!(
            eks < plane && plane < vpc,
            "revisions: EKS Workspace {eks}, control plane {plane}, VPC Workspace {vpc}"
        );
    }
}
