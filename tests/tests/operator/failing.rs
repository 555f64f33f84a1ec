//! An apply that fails is told with its reason and what to do; after the repair of the template the same
//! Workspace goes on.

use capt_tests::history::Kind;
use jiff::Timestamp;

use crate::place::{Place, SOON};

/// A resource whose creation fails as AWS does when an account has its last VPC.
const FAILS: &str = "resource \"terraform_data\" \"vpc\" {
            provisioner \"local-exec\" {
              command = \"echo 'An error occurred (VpcLimitExceeded) when calling the CreateVpc operation: The maximum number of VPCs has been reached.' >&2; exit 254\"
            }";

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_failing_apply_is_told_and_its_repair_goes_on_with_the_same_workspace() {
    let mut place = Place::shared("failing").await;
    place.apply_changed("vpc-template.yaml", "", "resource \"terraform_data\" \"vpc\" {", FAILS).await;
    place.apply_to("failing", "eks-template.yaml", "").await;
    place.cluster("ill").await;
    place
        .until("a report of the quota", SOON, |place| {
            let apply = place.condition(Kind::Apply, "ill-vpc", "Synced");
            let ready = place.condition(Kind::CaptCluster, "ill", "Ready");
            let told = |[status, reason, message]: &[String; 3]| {
                status == "False" && reason == "VpcQuotaExceeded" && message.contains("maximum number of VPCs")
            };
            if told(&apply) && told(&ready) { Ok(()) } else { Err(format!("{apply:?} {ready:?}")) }
        })
        .await;
    let control_plane = place.condition(Kind::ControlPlane, "ill", "Ready");
    assert_eq!(control_plane[0], "False", "{control_plane:?}");
    assert!(place.latest(Kind::Workspace, "ill-eks-controlplane").is_none(), "nothing is made without its VPC");
    for (kind, pointer) in [(Kind::CaptCluster, "/status/failureReason"), (Kind::CaptCluster, "/status/vpcId")] {
        assert!(place.field(kind, "ill", pointer).is_null(), "{pointer}: a quota can be raised");
    }
    let failing = place.latest(Kind::Workspace, "ill-vpc").unwrap();

    let mark = Timestamp::now();
    place.apply_to("failing", "vpc-template.yaml", "").await;
    place.ready("ill").await;
    let [vpc, _] = place.workspaces("ill").await;
    assert_eq!(Some(vpc.0), failing.object.metadata.uid, "the same Workspace");
    let mut writes = place.writes_since("ill", mark);
    // A retry that was due just then is another patch of a Workspace.
    let patches = writes.remove("patch workspaces").unwrap_or_default();
    assert!((1..=2).contains(&patches), "{patches} patches of Workspaces");
    let expected = [
        ("create secrets", 2),
        ("create workspaces", 1),
        ("create workspacetemplateapplies", 1),
        ("patch captcontrolplanes", 1),
        ("patch workspacetemplateapplies", 1),
    ];
    assert_eq!(writes, expected.map(|(write, count)| (write.to_owned(), count)).into());
    for type_ in ["Stalled", "Reconciling", "VPCFailed"] {
        assert_ne!(place.condition(Kind::CaptCluster, "ill", type_)[0], "True", "{type_} is over");
    }
    place.assert_rest("ill").await;
    place.delete_quickly("ill").await;
    place.assert_rights_suffice();
}
