//! A cluster that is deleted before it is ready leaves nothing behind, whenever that happens.

use capt_tests::history::Kind;

use crate::place::{Place, SOON};

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_cluster_that_is_deleted_while_it_is_made_leaves_nothing() {
    let mut place = Place::shared("deletion").await;
    place.templates().await;
    for name in ["at-once", "with-vpc", "with-eks"] {
        place.cluster(name).await;
    }
    place.delete("at-once").await;
    for (name, workspace) in [("with-vpc", "with-vpc-vpc"), ("with-eks", "with-eks-eks-controlplane")] {
        place
            .until("a Workspace that was just made", SOON, |place| {
                place.latest(Kind::Workspace, workspace).map(drop).ok_or_else(|| format!("no Workspace {workspace}"))
            })
            .await;
        place.delete(name).await;
    }
    for name in ["at-once", "with-vpc", "with-eks"] {
        place.gone(name).await;
    }
    place.assert_order_of_deletion("with-eks");
    place.assert_rights_suffice();
}
