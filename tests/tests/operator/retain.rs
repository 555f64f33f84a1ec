//! A VPC that is to be kept outlives its cluster, and the next cluster of that name has it again.

use capt_tests::history::Kind;
use jiff::Timestamp;
use serde_json::json;

use crate::place::{DELETION, Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_retained_vpc_outlives_its_cluster_and_serves_the_next() {
    let mut place = Place::shared("retain").await;
    place.templates().await;
    let retained = "  region: eu-west-1\n  retainVpcOnDelete: true\n  vpcTemplateRef";
    place.apply_changed("cluster.yaml", "kept", "  region: eu-west-1\n  vpcTemplateRef", retained).await;
    place.ready("kept").await;
    let [vpc, eks] = place.workspaces("kept").await;
    let id = place.field(Kind::CaptCluster, "kept", "/status/vpcId");

    let mark = Timestamp::now();
    place.stack.age_workspace(None, "kept-eks-controlplane").await.unwrap();
    place.delete("kept").await;
    place
        .until("the end of all but the VPC", DELETION, |place| {
            let left: Vec<_> = [
                (Kind::Cluster, "kept"),
                (Kind::CaptCluster, "kept"),
                (Kind::ControlPlane, "kept"),
                (Kind::Apply, "kept-vpc"),
                (Kind::Workspace, "kept-eks-controlplane"),
            ]
            .into_iter()
            .filter(|(kind, name)| place.latest(*kind, name).is_some())
            .collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    let writes = place.writes_since("kept", mark);
    assert_eq!(writes.get("delete workspaces"), Some(&1), "the control plane's alone: {writes:?}");
    let workspaces = Kind::Workspace.api(&place.client, None);
    let stays = workspaces.get("kept-vpc").await.unwrap();
    assert_eq!((stays.metadata.uid.as_ref(), stays.metadata.deletion_timestamp), (Some(&vpc.0), None));

    let mark = Timestamp::now();
    place.cluster("kept").await;
    place.ready("kept").await;
    let [vpc_now, eks_now] = place.workspaces("kept").await;
    assert_eq!(vpc_now, vpc, "the same Workspace with the same spec");
    assert_ne!(eks_now.0, eks.0);
    assert_eq!(place.field(Kind::CaptCluster, "kept", "/status/vpcId"), id, "and the same VPC");
    let writes = place.writes_since("kept", mark);
    assert_eq!(writes.get("create workspaces"), Some(&1), "the control plane's alone: {writes:?}");
    let adopted = place.condition(Kind::Apply, "kept-vpc", "PendingTakeoverChanges");
    assert_ne!(adopted[0], "True", "nothing differs: {}", json!(adopted));

    place.assert_rest("kept").await;
    place
        .until("a Workspace of the new apply", SOON, |place| {
            let workspace = place.latest(Kind::Workspace, "kept-vpc").ok_or("gone")?;
            let owner = workspace
                .object
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get("capt.cluster.x-k8s.io/owner-uid").cloned());
            let apply = place.latest(Kind::Apply, "kept-vpc").and_then(|apply| apply.object.metadata.uid);
            if owner.is_some() && owner == apply { Ok(()) } else { Err(format!("{owner:?} {apply:?}")) }
        })
        .await;
    // This cluster does not keep it.
    place.delete_quickly("kept").await;
    place.assert_rights_suffice();
}
