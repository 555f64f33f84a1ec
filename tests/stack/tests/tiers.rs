//! Each tier comes up, and what it is there for works.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use capt_stack::{ADMIN, CORE, PROVIDER, Stack, Tier, eventually};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

fn dynamic(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

const READER: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: some}
data: {a: b}
---
{apiVersion: v1, kind: Namespace, metadata: {name: some}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: some}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: 'system:test:reader'}]
";

const CLUSTER: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: some}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: DummyCluster
metadata: {name: one, namespace: some}
spec: {controlPlaneEndpoint: {host: one.example, port: 443}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: one, namespace: some}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DummyCluster, name: one}
";

const BAD_CLUSTER: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: bad, namespace: some}
spec: {clusterNetwork: {pods: {cidrBlocks: [no-cidr]}}}
";

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_api_server_has_rbac_and_an_audit_log_that_tells_users_apart() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    stack.apply(READER).await.unwrap();

    let version = stack.admin_client().await.unwrap().apiserver_version().await;
    assert!(!version.unwrap().git_version.starts_with("v0.0.0"), "the API server must know its version");

    let reader = stack.client("system:test:reader").await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), "some");
    eventually("the right to read", Duration::from_secs(10), || async {
        maps.get("one").await.map_err(|error| error.to_string())
    })
    .await
    .unwrap();
    let mark = Timestamp::now();
    maps.get("one").await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    let refused = maps.delete("one", &DeleteParams::default()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    let stranger = stack.client("stranger").await.unwrap();
    let refused = Api::<ConfigMap>::namespaced(stranger, "some").get("one").await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));

    let audit = stack.audit();
    let seen = eventually("four audited requests", Duration::from_secs(5), || async {
        let seen = audit.requests().unwrap().since(mark);
        let seen = seen.filter(|request| request.resource == "configmaps");
        if seen.len() == 4 { Ok(seen) } else { Err(seen.table()) }
    })
    .await
    .unwrap();
    let counts: Vec<_> = seen.clone().of("system:test:reader").counts().into_iter().collect();
    let key = |verb: &str, code| (verb.to_owned(), "configmaps".to_owned(), code);
    assert_eq!(counts, [(key("delete", 403), 1), (key("get", 200), 1), (key("list", 200), 1)]);
    assert_eq!(seen.clone().of("stranger").reads().len(), 1);
    assert_eq!(seen.writes().len(), 1);
    let applied = audit.requests_of(ADMIN).unwrap().writes();
    assert!(
        applied
            .iter()
            .any(|request| request.verb == "patch" && request.resource == "namespaces" && request.code == 201),
        "{}",
        applied.table()
    );
}

/// An infrastructure object as Cluster API core wants to see it, without a provider.
const DUMMY: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dummyclusters.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: DummyCluster, plural: dummyclusters}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
";

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn core_defaults_validates_and_provisions_a_cluster() {
    let stack = Stack::builder(Tier::Core).install(DUMMY).start().await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let stored = stack.apply(CLUSTER).await.unwrap();
    assert_eq!(stored[2].data["spec"]["infrastructureRef"]["name"], json!("one"));

    let bad = stack.apply(BAD_CLUSTER).await.unwrap_err();
    assert!(bad.to_string().contains("admission webhook"), "{bad}");

    let dummies: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "some", &dynamic("infrastructure.cluster.x-k8s.io", "v1", "DummyCluster"));
    let provisioned = json!({"status": {"initialization": {"provisioned": true}}});
    dummies
        .patch_status("one", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(provisioned))
        .await
        .unwrap();
    let clusters: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "some", &dynamic("cluster.x-k8s.io", "v1beta1", "Cluster"));
    // Read as v1beta1, so that the conversion webhook takes part.
    let cluster = eventually("provisioning", Duration::from_secs(30), || async {
        let cluster = clusters.get("one").await.unwrap();
        if cluster.data["status"]["infrastructureReady"] == json!(true) {
            Ok(cluster)
        } else {
            Err(cluster.data["status"].to_string())
        }
    })
    .await
    .unwrap();
    assert_eq!(cluster.data["spec"]["controlPlaneEndpoint"]["host"], json!("one.example"));
    assert_eq!(cluster.data["status"]["phase"], json!("Provisioned"));
    let owner = &dummies.get("one").await.unwrap().metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Cluster", "one"));
    assert!(!stack.audit().requests_of(CORE).unwrap().writes().is_empty());

    // kube-controller-manager: an owned object goes with its owner, and a namespace goes at all.
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "some");
    let owner = maps.create(&PostParams::default(), &config_map("owner", &json!([]))).await.unwrap();
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
    }]);
    maps.create(&PostParams::default(), &config_map("owned", &reference)).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    eventually("garbage collection", Duration::from_mins(1), || async {
        match maps.get_opt("owned").await.unwrap() {
            None => Ok(()),
            Some(map) => Err(format!("{:?}", map.metadata)),
        }
    })
    .await
    .unwrap();
    clusters.delete("one", &DeleteParams::default()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete("some", &DeleteParams::default()).await.unwrap();
    eventually("the end of the namespace", Duration::from_mins(1), || async {
        match namespaces.get_opt("some").await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(format!("{:?}", namespace.status)),
        }
    })
    .await
    .unwrap();
}

fn config_map(name: &str, owners: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owners}})).unwrap()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_provider_applies_and_destroys_workspaces_of_both_apis() {
    let stack = Stack::start(Tier::Provider).await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let module = r#"
      module: |
        variable "name" { type = string }
        resource "terraform_data" "one" { input = var.name }
        output "endpoint" { value = "https://${terraform_data.one.output}.example" }
      vars: [{key: name, value: some}]
"#;
    stack
        .apply(&format!(
            "
apiVersion: tf.upbound.io/v1beta1
kind: Workspace
metadata: {{name: one}}
spec:
  providerConfigRef: {{name: default}}
  writeConnectionSecretToRef: {{namespace: default, name: one-connection}}
  forProvider:
      source: Inline
{module}
---
apiVersion: tf.m.upbound.io/v1beta1
kind: Workspace
metadata: {{name: two, namespace: default}}
spec:
  providerConfigRef: {{kind: ClusterProviderConfig, name: default}}
  forProvider:
      source: Inline
{module}"
        ))
        .await
        .unwrap();
    let cluster: Api<DynamicObject> = Api::all_with(client.clone(), &dynamic("tf.upbound.io", "v1beta1", "Workspace"));
    let namespaced: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &dynamic("tf.m.upbound.io", "v1beta1", "Workspace"));
    for (workspaces, name, namespace) in [(&cluster, "one", None), (&namespaced, "two", Some("default"))] {
        eventually(&format!("readiness of {name}"), Duration::from_mins(1), || async {
            let status = workspaces.get(name).await.unwrap().data["status"].clone();
            let ready = status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == json!("Ready") && condition["status"] == json!("True"));
            if ready && status["atProvider"]["outputs"]["endpoint"] == json!("https://some.example") {
                Ok(())
            } else {
                Err(status.to_string())
            }
        })
        .await
        .unwrap();
        stack.age_workspace(namespace, name).await.unwrap();
        workspaces.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    let secret = secrets.get("one-connection").await.unwrap();
    assert_eq!(secret.data.unwrap()["endpoint"].0, b"https://some.example");
    for (workspaces, name) in [(&cluster, "one"), (&namespaced, "two")] {
        eventually(&format!("deletion of {name}"), Duration::from_mins(1), || async {
            match workspaces.get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(workspace) => Err(workspace.data["status"].to_string()),
            }
        })
        .await
        .unwrap();
    }
    assert!(!stack.audit().requests_of(PROVIDER).unwrap().writes().is_empty());
}
