//! A paused Cluster: the provider keeps its hands off, nothing of what users change arrives, and everything
//! does when it goes on.

use capt_tests::history::Kind;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::place::{Place, SOON};

const PROVIDERS: [Kind; 2] = [Kind::CaptCluster, Kind::ControlPlane];

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_pause_reaches_the_workspaces_and_what_came_meanwhile_is_made_up_for() {
    let mut place = Place::shared("pause").await;
    place.templates().await;
    place.cluster("idle").await;
    place.ready("idle").await;
    let before = place.workspaces("idle").await;

    let mark = Timestamp::now();
    place.edit(Kind::Cluster, "idle", json!({"spec": {"paused": true}})).await;
    paused(&mut place, true).await;
    let writes = place.writes_since("idle", mark);
    // The annotation on both Workspaces, and the word that a move may begin on both applies.
    let expected = [("patch workspaces", 2), ("patch workspacetemplateapplies", 2)];
    assert_eq!(writes, expected.map(|(write, count)| (write.to_owned(), count)).into());

    let mark = Timestamp::now();
    let access = json!({"spec": {"controlPlaneConfig": {"endpointAccess": {"publicCIDRs": ["198.51.100.0/24"]}}}});
    place.edit(Kind::ControlPlane, "idle", access).await;
    place
        .apply_changed("vpc-template.yaml", "", "Environment  ", "Tier = \"second\"\n                Environment")
        .await;
    place.assert_rest("idle").await;
    assert_eq!(place.writes_since("idle", mark), [].into(), "a pause is a pause");
    assert_eq!(place.workspaces("idle").await, before);
    for kind in PROVIDERS {
        assert_eq!(place.field(kind, "idle", "/status/ready"), json!(true), "what was ready stays ready");
    }

    place.edit(Kind::Cluster, "idle", json!({"spec": {"paused": null}})).await;
    paused(&mut place, false).await;
    place
        .until("both changes on the Workspaces", SOON, |place| {
            let has = |name: &str, text: &str| {
                let change = place.latest(Kind::Workspace, name);
                change.is_some_and(|change| change.field("/spec").to_string().contains(text) && change.is("Ready"))
            };
            let made = [has("idle-eks-controlplane", "198.51.100.0/24"), has("idle-vpc", "Tier = ")];
            if made == [true; 2] { Ok(()) } else { Err(format!("{made:?}")) }
        })
        .await;
    place.ready("idle").await;
    let after = place.workspaces("idle").await;
    assert_eq!([&after[0].0, &after[1].0], [&before[0].0, &before[1].0], "the same Workspaces");
    assert_eq!([after[0].1 - before[0].1, after[1].1 - before[1].1], [1, 1], "one change each");
    place.assert_rest("idle").await;
    place.delete_quickly("idle").await;
    place.assert_rights_suffice();
}

/// Waits until everything says that it is paused, or that it is not.
async fn paused(place: &mut Place<capt_stack::Shared>, is: bool) {
    place
        .until("everybody's word about the pause", SOON, |place| {
            let mut wrong = Vec::new();
            for kind in PROVIDERS {
                let condition = place.condition(kind, "idle", "Paused");
                if (condition[0] == "True") != is {
                    wrong.push(format!("{kind:?} {condition:?}"));
                }
            }
            for (name, apply) in [("idle-vpc", "idle-vpc"), ("idle-eks-controlplane", "idle-eks-controlplane-apply")] {
                let workspace = place.latest(Kind::Workspace, name).ok_or("no Workspace")?;
                let annotations = workspace.object.metadata.annotations.clone().unwrap_or_default();
                let said = annotations.get("crossplane.io/paused").map(String::as_str) == Some("true");
                let synced = workspace.field("/status/conditions").as_array().cloned().unwrap_or_default();
                let synced = synced.iter().find(|condition| condition["type"] == "Synced").cloned();
                let seen = synced.unwrap_or(Value::Null)["reason"] == "ReconcilePaused";
                let apply = place.latest(Kind::Apply, apply).ok_or("no apply")?;
                let annotations = apply.object.metadata.annotations.clone().unwrap_or_default();
                let blocks_move = annotations.contains_key("clusterctl.cluster.x-k8s.io/block-move");
                if said != is || seen != is || blocks_move == is {
                    wrong.push(format!("{name}: paused {said}, seen {seen}, block-move {blocks_move}"));
                }
            }
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
        })
        .await;
}
