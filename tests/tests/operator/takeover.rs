//! Objects of another's making: what the Go implementation leaves, and what is there after a move that
//! lost every status. The operator takes them as they are, and nothing that runs is touched.

use capt_stack::Stack;
use capt_tests::{history::Kind, operator::Operator};
use jiff::Timestamp;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::{Value, json};

use crate::place::{Place, SOON};

/// Field manager of the Go implementation.
const GO: &str = "manager";
/// Applies, and the variables that the Go implementation did not hand in.
const APPLIES: [(&str, &[&str]); 2] = [
    ("heir-vpc", &["region"]),
    ("heir-eks-controlplane-apply", &["public_access_cidrs", "addons", "vpc_id", "vpc_private_subnets"]),
];

fn put() -> PostParams {
    PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() }
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z"})
}

/// Makes everything of the cluster `heir` look as if the Go implementation had made it: nothing on a
/// Workspace says whose it is, statuses have its words and its manager, an error that passed stands in them.
async fn as_go_left_it(place: &Place<Box<Stack>>) {
    for workspace in Place::<Box<Stack>>::workspace_names("heir") {
        let object = Kind::Workspace.api(&place.client, None).get(&workspace).await.unwrap();
        let nulls = |names: Vec<&String>| -> Value {
            let ours = names.into_iter().filter(|name| name.contains("cluster.x-k8s.io"));
            ours.map(|name| (name.clone(), Value::Null)).collect::<serde_json::Map<_, _>>().into()
        };
        let labels = nulls(object.metadata.labels.iter().flatten().map(|(name, _)| name).collect());
        let annotations = nulls(object.metadata.annotations.iter().flatten().map(|(name, _)| name).collect());
        let bare = json!({"metadata": {"labels": labels, "annotations": annotations}});
        place.edit(Kind::Workspace, &workspace, bare).await;
    }
    for (apply, news) in APPLIES {
        let variables: serde_json::Map<String, Value> =
            news.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
        let bare = json!({"metadata": {"annotations": null}, "spec": {"variables": variables}});
        place.edit(Kind::Apply, apply, bare).await;
        let status = json!({
            "applied": true, "workspaceName": apply.trim_end_matches("-apply"), "lastAppliedTime": "2025-01-01T00:00:00Z",
            "conditions": [condition("Synced", "True", "ReconcileSuccess"), condition("Ready", "True", "Available")],
        });
        replace_status(place, Kind::Apply, apply, status).await;
    }
    let id = place.field(Kind::CaptCluster, "heir", "/status/vpcId");
    let infrastructure = json!({
        "ready": true, "vpcId": id, "vpcWorkspaceName": "heir-vpc",
        "failureReason": "VPCReconciliationFailed", "failureMessage": "the object has been modified",
        "conditions": [condition("VPCReady", "True", "VPCReady"), condition("VPCFailed", "True", "VPCCreationFailed")],
    });
    replace_status(place, Kind::CaptCluster, "heir", infrastructure).await;
    let control_plane = json!({
        "ready": true, "initialized": true, "phase": "Failed",
        "workspaceTemplateStatus": {"ready": true, "state": "Available", "lastAppliedRevision": "2025-01-01 00:00:00 +0000 UTC m=+1.5"},
        "conditions": [condition("Ready", "False", "Failed")],
    });
    replace_status(place, Kind::ControlPlane, "heir", control_plane).await;
}

/// Writes a status as [`GO`] does, and leaves no trace of who wrote one before.
async fn replace_status(place: &Place<Box<Stack>>, kind: Kind, name: &str, status: Value) {
    let api = kind.api(&place.client, Some(place.namespace));
    let mut entries = api.get(name).await.unwrap().metadata.managed_fields.unwrap();
    entries.retain(|entry| entry.subresource.as_deref() != Some("status"));
    assert!(!entries.is_empty(), "without any the API server would begin anew to count");
    place.edit(kind, name, json!({"metadata": {"managedFields": entries}})).await;
    let mut object = api.get(name).await.unwrap();
    object.data["status"] = status;
    api.replace_status(name, &put(), &object).await.unwrap();
}

/// Managers of a status, as the API server counts them.
async fn managers(place: &Place<Box<Stack>>, kind: Kind, name: &str) -> Vec<String> {
    let object = kind.api(&place.client, Some(place.namespace)).get(name).await.unwrap();
    let entries = object.metadata.managed_fields.unwrap_or_default().into_iter();
    entries.filter(|entry| entry.subresource.as_deref() == Some("status")).filter_map(|entry| entry.manager).collect()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn what_go_left_is_taken_over_in_place_and_its_drift_waits_for_a_word() {
    let mut place = Place::own("takeover").await;
    let operator = Operator::start(&place.stack, &[]).unwrap();
    place.templates().await;
    place.cluster("heir").await;
    place.ready("heir").await;
    drop(operator);
    let before = place.workspaces("heir").await;

    as_go_left_it(&place).await;
    let mark = Timestamp::now();
    let operator = Operator::start(&place.stack, &[]).unwrap();
    mended(&mut place).await;
    assert_eq!(place.workspaces("heir").await, before, "neither made again nor changed");
    let mut writes = place.writes_since("heir", mark);
    // What an apply has to carry, its variables, and whose it is and its baseline on both Workspaces.
    let applies = writes.remove("patch workspacetemplateapplies").unwrap_or_default();
    let workspaces = writes.remove("patch workspaces").unwrap_or_default();
    assert!((2..=8).contains(&applies) && (2..=4).contains(&workspaces), "{applies} and {workspaces}");
    // Nothing else but the fields of the statuses, once each.
    let expected = [("patch captclusters", 1), ("patch captcontrolplanes", 1)];
    assert_eq!(writes, expected.map(|(write, count)| (write.to_owned(), count)).into());
    let objects = [
        (Kind::CaptCluster, "heir", "capt-captcluster"),
        (Kind::ControlPlane, "heir", "capt-controlplane"),
        (Kind::Apply, "heir-vpc", "capt-apply"),
    ];
    for (kind, name, manager) in objects {
        assert_eq!(managers(&place, kind, name).await, [manager], "{kind:?}: taken over, once");
    }
    place.assert_rest("heir").await;

    // A template that was edited while the Go implementation, which never looked again, was in charge.
    drop(operator);
    as_go_left_it(&place).await;
    place
        .apply_changed("vpc-template.yaml", "", "Environment  ", "Tier = \"second\"\n                Environment")
        .await;
    let operator = Operator::start(&place.stack, &[]).unwrap();
    mended(&mut place).await;
    place
        .until("a report of the drift", SOON, |place| {
            let pending = place.condition(Kind::Apply, "heir-vpc", "PendingTakeoverChanges");
            if pending[0] == "True" { Ok(()) } else { Err(format!("{pending:?}")) }
        })
        .await;
    place.assert_rest("heir").await;
    assert_eq!(place.workspaces("heir").await, before, "it waits");
    let [_, _, message] = place.condition(Kind::Apply, "heir-vpc", "PendingTakeoverChanges");
    let (_, after) = message.split_once("apply-pending: ").unwrap();
    let hash: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
    let release = json!({"metadata": {"annotations": {"capt.cluster.x-k8s.io/apply-pending": hash}}});
    place.edit(Kind::Apply, "heir-vpc", release).await;
    place
        .until("the drift on the Workspace", SOON, |place| {
            let workspace = place.latest(Kind::Workspace, "heir-vpc").ok_or("gone")?;
            let has_it = workspace.field("/spec").to_string().contains("Tier = ");
            if has_it && workspace.is("Ready") { Ok(()) } else { Err(workspace.field("/status").to_string()) }
        })
        .await;
    let after = place.workspaces("heir").await;
    assert_eq!(after[0], (before[0].0.clone(), before[0].1 + 1), "once, on the same Workspace");
    assert_eq!(after[1], before[1], "and on no other");
    place.delete_quickly("heir").await;
    place.assert_rights_suffice();
    drop(operator);
}

/// Waits until the statuses are ours and true.
async fn mended(place: &mut Place<Box<Stack>>) {
    place.ready("heir").await;
    place
        .until("statuses without what was wrong in them", SOON, |place| {
            let mut wrong = Vec::new();
            for kind in [Kind::CaptCluster, Kind::ControlPlane] {
                for (pointer, expected) in [("/status/state", json!("Ready")), ("/status/failureReason", Value::Null)] {
                    let found = place.field(kind, "heir", pointer);
                    if found != expected {
                        wrong.push(format!("{kind:?} {pointer} {found}"));
                    }
                }
                let ready = place.condition(kind, "heir", "Ready");
                if ready[0] != "True" {
                    wrong.push(format!("{kind:?} {ready:?}"));
                }
            }
            for (apply, _) in APPLIES {
                let synced = place.condition(Kind::Apply, apply, "Synced");
                let generation = place.field(Kind::Apply, apply, "/status/observedGeneration");
                if synced[0] != "True" || generation.is_null() {
                    wrong.push(format!("{apply} {synced:?}"));
                }
            }
            if place.condition(Kind::CaptCluster, "heir", "VPCFailed")[0] == "True" {
                wrong.push("VPCFailed".to_owned());
            }
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
        })
        .await;
}

/// What `clusterctl move` takes along, owners before what they own.
fn moved() -> Vec<(ApiResource, &'static str)> {
    let secret = ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&());
    vec![
        (Kind::Cluster.resource(), "away"),
        (Kind::CaptCluster.resource(), "away"),
        (Kind::ControlPlane.resource(), "away"),
        (Kind::Apply.resource(), "away-vpc"),
        (Kind::Apply.resource(), "away-eks-controlplane-apply"),
        (secret.clone(), "away-kubeconfig"),
        (secret, "away-ca"),
    ]
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn after_a_move_that_lost_every_status_the_cluster_is_found_again() {
    let mut place = Place::own("move").await;
    let operator = Operator::start(&place.stack, &[]).unwrap();
    place.templates().await;
    place.cluster("away").await;
    place.ready("away").await;
    let before = place.workspaces("away").await;
    let endpoint = place.field(Kind::ControlPlane, "away", "/spec/controlPlaneEndpoint");
    place.edit(Kind::Cluster, "away", json!({"spec": {"paused": true}})).await;
    place
        .until("the provider's hands off", SOON, |place| {
            let annotations =
                place.latest(Kind::Apply, "away-eks-controlplane-apply").unwrap().object.metadata.annotations;
            match annotations.unwrap_or_default().get("clusterctl.cluster.x-k8s.io/block-move") {
                None => Ok(()),
                Some(_) => Err("block-move".to_owned()),
            }
        })
        .await;
    drop(operator);

    let mut objects = Vec::new();
    for (resource, name) in moved() {
        let api: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), "move", &resource);
        objects.push((api.clone(), api.get(name).await.unwrap()));
    }
    // Dependents first, so that the garbage collector finds nothing to do.
    for (api, object) in objects.iter().rev() {
        let name = object.metadata.name.as_deref().unwrap();
        let free = json!({"metadata": {"finalizers": null}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
        api.delete(name, &DeleteParams::background()).await.unwrap();
        while api.get_opt(name).await.unwrap().is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    // Each anew, with another uid, without a status, and owned by the new uids.
    let mut uids: Vec<(String, String, String)> = Vec::new();
    for (api, mut object) in objects {
        for owner in object.metadata.owner_references.iter_mut().flatten() {
            let new = uids.iter().find(|(kind, name, _)| *kind == owner.kind && *name == owner.name);
            owner.uid.clone_from(&new.unwrap_or_else(|| panic!("{} {} did not move", owner.kind, owner.name)).2);
        }
        object.metadata.uid = None;
        object.metadata.resource_version = None;
        object.metadata.managed_fields = None;
        if let Some(data) = object.data.as_object_mut() {
            data.remove("status");
        }
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        let kind = object.types.unwrap().kind;
        uids.push((kind, made.metadata.name.unwrap(), made.metadata.uid.unwrap()));
    }
    let mark = Timestamp::now();
    let operator = Operator::start(&place.stack, &[]).unwrap();
    place.edit(Kind::Cluster, "away", json!({"spec": {"paused": null}})).await;
    place.ready("away").await;
    place
        .until("Workspaces that go on", SOON, |place| {
            let goes =
                |name: &str| place.latest(Kind::Workspace, name).is_some_and(|it| it.is("Ready") && it.is("Synced"));
            if goes("away-vpc") && goes("away-eks-controlplane") { Ok(()) } else { Err("paused".to_owned()) }
        })
        .await;
    assert_eq!(place.workspaces("away").await, before, "neither made again nor changed");
    assert_eq!(place.field(Kind::ControlPlane, "away", "/spec/controlPlaneEndpoint"), endpoint);
    let writes = place.writes_since("away", mark);
    let made: Vec<&String> = writes.keys().filter(|write| write.starts_with("create")).collect();
    assert!(made.is_empty(), "everything was there: {writes:?}");
    assert!(!writes.keys().any(|write| write.starts_with("delete")), "{writes:?}");
    let workspaces = Kind::Workspace.api(&place.client, None).list(&ListParams::default()).await.unwrap();
    assert_eq!(workspaces.items.len(), 2);
    place.assert_rest("away").await;
    place.delete_quickly("away").await;
    place.assert_rights_suffice();
    drop(operator);
}
