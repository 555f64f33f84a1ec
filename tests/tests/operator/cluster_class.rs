//! A cluster that core makes from a ClusterClass: its objects have generated names.

use std::fs;

use capt_tests::{history::Kind, root};
use serde_json::json;

use crate::place::{Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_cluster_of_a_class_gets_ready_under_generated_names_and_goes_again() {
    let mut place = Place::shared("class").await;
    place.templates().await;
    let templates = fs::read_to_string(root().join("examples/cluster-class-templates.yaml")).unwrap();
    place.stack.apply(&templates.replace("namespace: default", "namespace: class")).await.unwrap();
    let template = |group: &str, kind: &str| json!({"templateRef": {"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind, "name": "eks"}});
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "eks", "namespace": "class"},
        "spec": {
            "infrastructure": template("infrastructure", "CAPTClusterTemplate"),
            "controlPlane": template("controlplane", "CAPTControlPlaneTemplate"),
        },
    });
    place.stack.apply(&class.to_string()).await.unwrap();
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "classy", "namespace": "class"},
        "spec": {"topology": {"classRef": {"name": "eks"}, "version": "v1.31.0"}},
    });
    place.stack.apply(&cluster.to_string()).await.unwrap();
    place
        .until("a provisioned cluster with an endpoint", SOON, |place| {
            let phase = place.field(Kind::Cluster, "classy", "/status/phase");
            let host = place.field(Kind::Cluster, "classy", "/spec/controlPlaneEndpoint/host");
            let is_up = place.field(Kind::Cluster, "classy", "/status/initialization/controlPlaneInitialized");
            if phase == "Provisioned" && host.is_string() && is_up == json!(true) {
                Ok(())
            } else {
                Err(format!("{phase} {host} {is_up}"))
            }
        })
        .await;
    let reference = |place: &Place<_>, field: &str| {
        let name = place.field(Kind::Cluster, "classy", &format!("/spec/{field}/name"));
        name.as_str().unwrap().to_owned()
    };
    let (infrastructure, control_plane) =
        (reference(&place, "infrastructureRef"), reference(&place, "controlPlaneRef"));
    for (kind, name) in [(Kind::CaptCluster, &infrastructure), (Kind::ControlPlane, &control_plane)] {
        assert!(name.starts_with("classy-") && name.len() > "classy-".len(), "a generated name: {name}");
        assert_eq!(place.field(kind, name, "/status/ready"), json!(true));
    }
    assert_eq!(place.field(Kind::ControlPlane, &control_plane, "/status/version"), "v1.31.0");
    // One Workspace each, called after the object that owns its apply.
    let mut workspaces: Vec<String> = place
        .history
        .changes()
        .into_iter()
        .filter(|change| change.kind == Kind::Workspace && change.name().starts_with("classy-"))
        .map(|change| change.name().to_owned())
        .collect();
    workspaces.sort();
    workspaces.dedup();
    let mut expected = [format!("{infrastructure}-vpc"), format!("{control_plane}-eks-controlplane")];
    expected.sort();
    assert_eq!(workspaces, expected);
    place.assert_rest("classy").await;

    for workspace in expected {
        place.stack.age_workspace(None, &workspace).await.unwrap();
    }
    place.delete("classy").await;
    place.gone("classy").await;
    place.assert_rights_suffice();
}
