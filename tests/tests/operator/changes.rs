//! Changes of a running cluster: its configuration, its Kubernetes version, its template. Each reaches the
//! Workspace that is there, once, and nothing that was said to be ready stops being so.

use capt_tests::history::{Change, Kind};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::place::{Place, SOON};

/// States of the control plane in the order in which they were first seen since `version`.
fn states_since<S: std::ops::Deref<Target = capt_stack::Stack>>(
    place: &Place<S>,
    kind: Kind,
    name: &str,
    version: u64,
) -> Vec<Value> {
    let changes = place.history.changes().into_iter();
    let mut states: Vec<Value> = changes
        .filter(|change| change.is_of(kind, place.namespace, name) && change.version() > version)
        .map(|change| change.field("/status/state").clone())
        .collect();
    states.dedup();
    states
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn every_change_reaches_the_workspace_that_is_there() {
    let mut place = Place::shared("changes").await;
    place.templates().await;
    place.cluster("live").await;
    place.ready("live").await;
    let [vpc, eks] = place.workspaces("live").await;
    let version = |place: &Place<_>, kind| place.latest(kind, "live").as_ref().map_or(0, Change::version);

    // The configuration.
    let (mark, before) = (Timestamp::now(), version(&place, Kind::ControlPlane));
    let access = json!({"spec": {"controlPlaneConfig": {"endpointAccess": {"publicCIDRs": ["198.51.100.0/24"]}}}});
    place.edit(Kind::ControlPlane, "live", access).await;
    changed(&mut place, "live-eks-controlplane", "198.51.100.0/24").await;
    place.ready("live").await;
    assert_eq!(states_since(&place, Kind::ControlPlane, "live", before), ["Ready", "Provisioning", "Ready"]);
    let one_change = [("patch workspaces", 1), ("patch workspacetemplateapplies", 1)];
    assert_writes(&place, mark, &one_change);

    // The version.
    let (mark, before) = (Timestamp::now(), version(&place, Kind::ControlPlane));
    place.edit(Kind::ControlPlane, "live", json!({"spec": {"version": "1.32"}})).await;
    place
        .until("the new version", SOON, |place| {
            let found = place.field(Kind::ControlPlane, "live", "/status/version");
            if found == "v1.32.0" { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
    place.ready("live").await;
    assert_eq!(states_since(&place, Kind::ControlPlane, "live", before), ["Ready", "Provisioning", "Ready"]);
    assert_eq!(place.field(Kind::ControlPlane, "live", "/status/versions"), json!([{"version": "v1.32.0"}]));
    assert_writes(&place, mark, &one_change);

    // The template: nothing of the cluster's own objects changes, so the Workspace alone is written.
    let (mark, before) = (Timestamp::now(), version(&place, Kind::CaptCluster));
    let tag = "\"tier-of-the-network\" = \"second\"\n                Environment";
    place.apply_changed("vpc-template.yaml", "", "Environment  ", tag).await;
    changed(&mut place, "live-vpc", "tier-of-the-network").await;
    place.ready("live").await;
    assert_eq!(states_since(&place, Kind::CaptCluster, "live", before), ["Provisioning", "Ready"]);
    assert_writes(&place, mark, &[("patch workspaces", 1)]);

    let [vpc_now, eks_now] = place.workspaces("live").await;
    assert_eq!([&vpc_now.0, &eks_now.0], [&vpc.0, &eks.0], "neither was made again");
    assert_eq!([vpc_now.1 - vpc.1, eks_now.1 - eks.1], [1, 2], "one change of the spec each time");
    for (kind, pointer) in [
        (Kind::ControlPlane, "/status/ready"),
        (Kind::ControlPlane, "/status/initialized"),
        (Kind::ControlPlane, "/status/initialization/controlPlaneInitialized"),
        (Kind::CaptCluster, "/status/ready"),
        (Kind::CaptCluster, "/status/initialization/provisioned"),
    ] {
        place.assert_kept(kind, "live", pointer, &json!(true));
    }
    place.assert_rest("live").await;
    place.delete_quickly("live").await;
    place.assert_rights_suffice();
}

/// Waits until the provider has applied a spec of the Workspace that contains `text`.
async fn changed(place: &mut Place<capt_stack::Shared>, workspace: &str, text: &str) {
    place
        .until("a Workspace with the change, applied", SOON, |place| {
            let change = place.latest(Kind::Workspace, workspace).ok_or("it is gone")?;
            let has_it = change.field("/spec").to_string().contains(text);
            if has_it && change.is("Ready") && change.is("Synced") {
                Ok(())
            } else {
                Err(change.field("/status/conditions").to_string())
            }
        })
        .await;
}

fn assert_writes(place: &Place<capt_stack::Shared>, mark: Timestamp, expected: &[(&str, usize)]) {
    let writes = place.writes_since("live", mark);
    let expected = expected.iter().map(|(write, count)| ((*write).to_owned(), *count)).collect();
    assert_eq!(writes, expected);
}
