//! Two clusters of one name want the same cluster-scoped Workspace: whoever made it has it.

use capt_stack::Effect;
use capt_tests::{history::Kind, operator::USER};
use kube::api::DeleteParams;

use crate::place::{Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_second_cluster_of_a_name_says_so_and_touches_nothing() {
    let mut place = Place::shared("collision").await;
    place.templates().await;
    place.cluster("twice").await;
    place.ready("twice").await;
    let before = place.latest(Kind::Workspace, "twice-vpc").unwrap();
    let mark = jiff::Timestamp::now();

    place.make_namespace("collision-too").await;
    for file in ["vpc-template.yaml", "eks-template.yaml", "cluster.yaml"] {
        place.apply_to("collision-too", file, "twice").await;
    }
    place.namespace = "collision-too";
    place
        .until("a report of the collision", SOON, |place| {
            let [status, reason, message] = place.condition(Kind::Apply, "twice-vpc", "Synced");
            let stalled = place.condition(Kind::Apply, "twice-vpc", "Stalled");
            let names_owner = message.contains("WorkspaceTemplateApply/collision/twice-vpc");
            if status == "False" && reason == "NameCollision" && names_owner && stalled[0] == "True" {
                Ok(())
            } else {
                Err(format!("{status} {reason} {message} {stalled:?}"))
            }
        })
        .await;
    // Its end must not take along what is not its own.
    let clusters = Kind::Cluster.api(&place.client, Some("collision-too"));
    clusters.delete("twice", &DeleteParams::background()).await.unwrap();
    place
        .until("the end of the second cluster", SOON, |place| {
            match [Kind::Cluster, Kind::CaptCluster, Kind::Apply]
                .iter()
                .find_map(|kind| place.latest(*kind, if *kind == Kind::Apply { "twice-vpc" } else { "twice" }))
            {
                None => Ok(()),
                Some(left) => Err(format!("{:?} {}", left.kind, left.name())),
            }
        })
        .await;

    let touched = place.stack.audit().requests_of(USER).unwrap().since(mark).filter(|request| {
        let is_theirs = request.name.as_deref().is_some_and(|name| name.starts_with("twice-"));
        request.effect() == Effect::Write && request.resource.starts_with("workspaces") && is_theirs
    });
    assert!(touched.is_empty(), "{}", touched.table());
    let after = Kind::Workspace.api(&place.client, None).get("twice-vpc").await.unwrap();
    assert_eq!(after.metadata.uid, before.object.metadata.uid);
    assert_eq!(after.metadata.generation, before.object.metadata.generation);
    assert_eq!(after.metadata.deletion_timestamp, None);

    place.namespace = "collision";
    place.delete_quickly("twice").await;
    place.assert_rights_suffice();
}
