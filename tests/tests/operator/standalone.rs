//! Without Cluster API core: the operator says of the Cluster what core would say, and stops at rest.

use capt_stack::{Effect, Stack, Tier};
use capt_tests::{
    history::Kind,
    operator::{self, Operator, USER},
};
use serde_json::json;

use crate::place::{DELETION, Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn without_core_a_cluster_lives_and_dies_as_it_does_with_it() {
    let builder = Stack::builder(Tier::Provider).without_core().install(operator::manifests().unwrap());
    let mut place = Place::of(Box::new(builder.start().await.unwrap()), "alone").await;
    let operator = Operator::start(&place.stack, &["--cluster-status", "standalone"]).unwrap();
    place.templates().await;
    place.cluster("self").await;
    place
        .until("a Cluster that is provisioned and available", SOON, |place| {
            let phase = place.field(Kind::Cluster, "self", "/status/phase");
            let available = place.condition(Kind::Cluster, "self", "Available");
            if phase == "Provisioned" && available[0] == "True" {
                Ok(())
            } else {
                Err(format!("{phase} {available:?}"))
            }
        })
        .await;
    place.ready("self").await;
    let endpoint = place.field(Kind::ControlPlane, "self", "/spec/controlPlaneEndpoint");
    assert_eq!(place.field(Kind::Cluster, "self", "/spec/controlPlaneEndpoint"), endpoint);
    assert_eq!(
        place.field(Kind::Cluster, "self", "/status/initialization"),
        json!({"infrastructureProvisioned": true, "controlPlaneInitialized": true})
    );
    for kind in [Kind::CaptCluster, Kind::ControlPlane] {
        let owners = place.latest(kind, "self").unwrap().object.metadata.owner_references.unwrap();
        assert_eq!([owners[0].kind.as_str(), owners[0].name.as_str()], ["Cluster", "self"]);
    }
    place.assert_rest("self").await;
    let requests = place.stack.audit().requests_of(USER).unwrap();
    let of_cluster = |request: &capt_stack::Request| request.resource.split('/').next() == Some("clusters");
    let writes = requests.filter(|request| request.effect() == Effect::Write && of_cluster(request));
    assert!((2..=8).contains(&writes.len()), "writes of the Cluster:\n{}", writes.table());

    for workspace in Place::<Box<Stack>>::workspace_names("self") {
        place.stack.age_workspace(None, &workspace).await.unwrap();
    }
    // Nobody puts core's finalizer on the Cluster, so it goes at once, and the garbage collector takes the
    // rest along; the finalizers of ours keep the order.
    place.delete("self").await;
    place
        .until("the end of the VPC", DELETION, |place| match place.latest(Kind::CaptCluster, "self") {
            None => Ok(()),
            Some(cluster) => Err(cluster.field("/status/conditions").to_string()),
        })
        .await;
    place.gone("self").await;
    place.assert_order_of_deletion("self");
    place.assert_rights_suffice();
    drop(operator);
}
