//! One cluster's life, and what it costs.

use std::collections::BTreeMap;

use capt_tests::history::Kind;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;

use crate::place::Place;

/// Most writes that one cluster's life may take, with two Workspaces: 36, and two for states in between that
/// only a busy machine shows.
const WRITES: usize = 38;

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_cluster_becomes_ready_and_goes_again_at_a_known_cost() {
    let mut place = Place::shared("life").await;
    place.templates().await;
    place.cluster("one").await;
    place.ready("one").await;

    let endpoint = place.field(Kind::ControlPlane, "one", "/status/endpoint");
    let host = endpoint.as_str().unwrap().strip_suffix(":443").unwrap().to_owned();
    let spec = place.field(Kind::ControlPlane, "one", "/spec/controlPlaneEndpoint");
    assert_eq!(spec, json!({"host": host, "port": 443}));
    assert_eq!(place.field(Kind::Cluster, "one", "/spec/controlPlaneEndpoint"), spec, "core copied it");
    assert!(place.field(Kind::CaptCluster, "one", "/status/vpcId").as_str().unwrap().starts_with("vpc-"));
    let zones = place.field(Kind::CaptCluster, "one", "/status/failureDomains");
    let zones: Vec<_> = zones.as_array().unwrap().iter().map(|zone| zone["name"].clone()).collect();
    assert_eq!(zones, ["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    for condition in ["Ready", "Available"] {
        assert_eq!(place.condition(Kind::ControlPlane, "one", condition)[0], "True", "{condition}");
    }
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), "life");
    let kubeconfig = secrets.get("one-kubeconfig").await.unwrap();
    assert_eq!(kubeconfig.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    assert_eq!(kubeconfig.metadata.labels.unwrap()["cluster.x-k8s.io/cluster-name"], "one");
    let text = String::from_utf8(kubeconfig.data.unwrap()["value"].0.clone()).unwrap();
    assert!(text.contains(&format!("https://{host}")), "{text}");
    let ca = secrets.get("one-ca").await.unwrap();
    assert!(ca.data.unwrap()["tls.crt"].0.starts_with(b"-----BEGIN CERTIFICATE-----"));

    place.delete_quickly("one").await;
    place.assert_order_of_deletion("one");
    place.assert_rights_suffice();

    let requests = place.requests_about("one");
    let writes = requests.clone().writes();
    println!("{}", requests.table());
    // A conflict is somebody else's write at the same moment, and changes nothing.
    let accepted = writes.clone().filter(|request| request.code != 409).len();
    assert!(accepted <= WRITES, "{accepted} writes, more than {WRITES}:\n{}", requests.table());
    // How often a status is written depends on who was faster; everything else does not.
    let mut counts = BTreeMap::new();
    for request in writes.iter().filter(|request| request.code < 300 && !request.resource.ends_with("/status")) {
        *counts.entry((request.verb.as_str(), request.resource.as_str())).or_insert(0) += 1;
    }
    let expected = [
        (("create", "events"), 2),
        (("create", "secrets"), 2),
        (("create", "workspaces"), 2),
        (("create", "workspacetemplateapplies"), 2),
        (("delete", "workspaces"), 2),
        (("delete", "workspacetemplateapplies"), 2),
        // Finalizer on and off; the control plane also gets its endpoint; applies are made with theirs.
        (("patch", "captclusters"), 2),
        (("patch", "captcontrolplanes"), 3),
        // Finalizer off, and which Terraform state it has.
        (("patch", "workspacetemplateapplies"), 4),
    ];
    assert_eq!(counts, BTreeMap::from(expected), "{}", requests.table());
}
