//! What the demo claims, read from the API server and from what kubectl printed.

use capt_stack::eventually;
use capt_tests::history::{Change, History, Kind, is_true};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};
use serde_json::Value;

use crate::{Error, NAME, NAMESPACE, OURS, scene::Scene, table};

/// How long the garbage collector may take for what is owned by what is gone.
const GARBAGE: std::time::Duration = std::time::Duration::from_mins(1);
/// Label of everything that belongs to a Cluster.
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// The Workspaces of the example, as the operator names them.
const VPC_WORKSPACE: &str = "demo-vpc";
const EKS_WORKSPACE: &str = "demo-eks-controlplane";

/// What is still missing for a ready cluster, as far as the history tells; `None` when it is ready.
pub(crate) fn not_yet_ready(history: &History) -> Option<String> {
    let changes = history.changes();
    let latest = |kind, name| changes.iter().rfind(|change| change.kind == kind && change.name() == name);
    let is =
        |kind, pointer: &str, value: &Value| latest(kind, NAME).is_some_and(|change| change.field(pointer) == value);
    let ready = Value::Bool(true);
    if !is(Kind::CaptCluster, "/status/ready", &ready) {
        return Some("the CAPTCluster is not ready".to_owned());
    }
    if !is(Kind::ControlPlane, "/status/ready", &ready) {
        return Some("the CAPTControlPlane is not ready".to_owned());
    }
    // It mirrors the control plane's endpoint in a pass of its own.
    if latest(Kind::CaptCluster, NAME)?.field("/status/endpoint").is_null() {
        return Some("the CAPTCluster has no endpoint".to_owned());
    }
    for apply in changes.iter().filter(|change| change.kind == Kind::Apply) {
        if !latest(Kind::Apply, apply.name()).is_some_and(|latest| latest.is("Ready")) {
            return Some(format!("the WorkspaceTemplateApply {} is not Ready", apply.name()));
        }
    }
    let phase = latest(Kind::Cluster, NAME).map(|cluster| cluster.field("/status/phase"));
    (phase != Some(&Value::from("Provisioned"))).then(|| "the Cluster is not in phase Provisioned".to_owned())
}

/// Checks every claim about the ready cluster; returns its endpoint.
pub(crate) async fn ready(scene: &Scene) -> Result<String, Error> {
    let client = scene.stack.admin_client().await?;
    let mut wrong = Vec::new();
    let mut check = |holds: bool, claim: &str| {
        if !holds {
            wrong.push(claim.to_owned());
        }
    };
    let text = |object: &kube::api::DynamicObject, pointer: &str| {
        object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let flag =
        |object: &kube::api::DynamicObject, pointer: &str| object.data.pointer(pointer) == Some(&Value::Bool(true));

    let plane = Kind::ControlPlane.api(&client, Some(NAMESPACE)).get(NAME).await?;
    let endpoint = text(&plane, "/status/endpoint");
    check(flag(&plane, "/status/ready"), "CAPTControlPlane: status.ready is true");
    check(flag(&plane, "/status/initialization/controlPlaneInitialized"), "CAPTControlPlane: it is initialized");
    check(text(&plane, "/status/phase") == "Ready", "CAPTControlPlane: status.phase is Ready");
    check(endpoint.ends_with(":443") && !endpoint.contains('/'), "CAPTControlPlane: status.endpoint is host:443");
    check(is_true(&plane, "Available"), "CAPTControlPlane: condition Available is True");

    let infra = Kind::CaptCluster.api(&client, Some(NAMESPACE)).get(NAME).await?;
    check(flag(&infra, "/status/ready"), "CAPTCluster: status.ready is true");
    check(text(&infra, "/status/phase") == "Ready", "CAPTCluster: status.phase is Ready");
    check(text(&infra, "/status/vpcId").starts_with("vpc-"), "CAPTCluster: status.vpcId is an id of a VPC");
    check(text(&infra, "/status/endpoint") == endpoint, "CAPTCluster: status.endpoint is the control plane's");

    let cluster = Kind::Cluster.api(&client, Some(NAMESPACE)).get(NAME).await?;
    let host = text(&cluster, "/spec/controlPlaneEndpoint/host");
    check(text(&cluster, "/status/phase") == "Provisioned", "Cluster: status.phase is Provisioned");
    check(!host.is_empty() && format!("{host}:443") == endpoint, "Cluster: core copied the endpoint");

    for name in [VPC_WORKSPACE, EKS_WORKSPACE] {
        let workspace = Kind::Workspace.api(&client, None).get(name).await?;
        check(is_true(&workspace, "Ready") && is_true(&workspace, "Synced"), &format!("Workspace {name}: it is Ready"));
    }
    let secrets: Api<Secret> = Api::namespaced(client, NAMESPACE);
    for (name, key) in [("demo-kubeconfig", "value"), ("demo-ca", "tls.crt")] {
        let data = secrets.get_opt(name).await?.and_then(|secret| secret.data).unwrap_or_default();
        let is_filled = data.get(key).is_some_and(|value| !value.0.is_empty());
        check(is_filled, &format!("Secret {name}: it has a value for {key}"));
    }

    // And what people see of it.
    let row = table::row(scene.shown(), &format!("captcontrolplane.controlplane.cluster.x-k8s.io/{NAME}"));
    let version = text(&plane, "/spec/version");
    let expected = ["true", "Ready", version.as_str(), endpoint.as_str()];
    let is_shown = row.as_ref().is_some_and(|cells| cells.get(1..5) == Some(&expected[..]));
    check(is_shown, &format!("kubectl shows READY, PHASE, VERSION, ENDPOINT as {}", expected.join(" ")));
    if wrong.is_empty() { Ok(endpoint) } else { Err(format!("this is not so:\n  {}", wrong.join("\n  ")).into()) }
}

/// What of the Cluster is left, as far as the history tells.
pub(crate) fn not_yet_gone(history: &History) -> Option<String> {
    let changes = history.changes();
    let is_gone = |change: &Change| {
        let same = |other: &&Change| other.kind == change.kind && other.name() == change.name();
        changes.iter().rfind(same).is_some_and(|latest| latest.gone)
    };
    let left = changes.iter().find(|change| !is_gone(change))?;
    let word = OURS.iter().find(|(kind, _)| *kind == left.kind).map_or("object", |(_, word)| word);
    Some(format!("{word} {} is still there", left.name()))
}

/// Asks the API server itself that nothing is left.
pub(crate) async fn gone(scene: &Scene) -> Result<(), Error> {
    let client = scene.stack.admin_client().await?;
    let labelled = ListParams::default().labels(&format!("{CLUSTER_LABEL}={NAME}"));
    eventually("the end of everything that belongs to the Cluster", GARBAGE, || async {
        let mut left = Vec::new();
        for (kind, word) in OURS {
            let found =
                kind.api(&client, None).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            left.extend(found.items.into_iter().map(|it| format!("{word} {}", it.metadata.name.unwrap_or_default())));
        }
        let secrets: Api<Secret> = Api::all(client.clone());
        for params in [&labelled, &ListParams::default().fields("type=connection.crossplane.io/v1alpha1")] {
            let found = secrets.list(params).await.map_err(|error| error.to_string())?;
            left.extend(found.items.into_iter().map(|it| format!("Secret {}", it.metadata.name.unwrap_or_default())));
        }
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await?;
    Ok(())
}

/// Checks that the control plane went before the VPC; returns the order in words.
pub(crate) fn order(scene: &Scene) -> Result<Vec<String>, Error> {
    let first = |kind, name, is: fn(&Change) -> bool| {
        let first = scene.history.first(|change| change.is_of(kind, NAMESPACE, name) && is(change));
        first.map(|change| change.version())
    };
    let eks = first(Kind::Workspace, EKS_WORKSPACE, |change| change.gone);
    let plane = first(Kind::ControlPlane, NAME, |change| change.gone);
    let vpc = first(Kind::Workspace, VPC_WORKSPACE, Change::ends);
    match (eks, plane, vpc) {
        (Some(eks), Some(plane), Some(vpc)) if eks < plane && plane < vpc => Ok(vec![format!(
            "in order: Workspace {EKS_WORKSPACE} was gone (revision {eks}), CAPTControlPlane {NAME} was gone ({plane}), then \
             the deletion of Workspace {VPC_WORKSPACE} began ({vpc})"
        )]),
        (eks, plane, vpc) => Err(format!(
            "the control plane did not go before the VPC: revisions of the end of Workspace {EKS_WORKSPACE}, the end of \
             CAPTControlPlane {NAME} and the beginning of the end of Workspace {VPC_WORKSPACE}: {eks:?}, {plane:?}, {vpc:?}"
        )
        .into()),
    }
}

/// How long after its Workspace was Ready each of our objects said so.
pub(crate) fn reactions(history: &History) -> Vec<(&'static str, std::time::Duration)> {
    let is_done = |change: &Change| change.is("Ready") && change.is("Synced");
    let says_so = |change: &Change| change.field("/status/ready") == &Value::Bool(true);
    [
        ("VPC Workspace Ready -> CAPTCluster ready", VPC_WORKSPACE, Kind::CaptCluster),
        ("EKS Workspace Ready -> CAPTControlPlane ready", EKS_WORKSPACE, Kind::ControlPlane),
    ]
    .into_iter()
    .filter_map(|(what, workspace, kind)| {
        let done = history.first(|change| change.is_of(Kind::Workspace, NAMESPACE, workspace) && is_done(change))?;
        let said = history.first(|change| change.is_of(kind, NAMESPACE, NAME) && says_so(change))?;
        Some((what, said.at.saturating_duration_since(done.at)))
    })
    .collect()
}
