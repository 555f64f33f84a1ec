//! Changes of a cluster that serves: made without dropping a latch, or told and not made.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

mod common;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::Simulation;
use capt_status::Span;
use common::{condition, create, documents, key, ready, simulation, status};
use serde_json::{Value, json};

/// What was written since `before`, other than the status of our objects.
fn written(simulation: &Simulation, before: usize) -> Vec<ObjectKey> {
    let target = |request: &Request| match request {
        Request::Create { target, body: _ }
        | Request::MergePatch { target, body: _ }
        | Request::JsonPatch { target, operations: _ }
        | Request::Delete { target, uid: _, resource_version: _ } => Some(target.clone()),
        Request::ApplyStatus { .. } | Request::MergeStatus { .. } | Request::Get { .. } | Request::List { .. } => None,
    };
    simulation.requests[before..].iter().filter_map(|(request, _)| target(request)).collect()
}

/// An edit of an object, and words of the message that tells why it is not made.
type Change = (Kind, fn(&mut Value), &'static str);

#[test]
fn a_change_that_cannot_be_made_is_told_and_nothing_is_written_until_it_is_taken_back() {
    let changes: [Change; 4] = [
        (Kind::CaptControlPlane, |object| object["spec"]["version"] = json!("1.30"), "no downgrade"),
        (Kind::CaptControlPlane, |object| object["spec"]["version"] = json!("1.33"), "write 1.32 first"),
        (
            Kind::CaptControlPlane,
            |object| object["spec"]["controlPlaneConfig"]["region"] = json!("us-east-1"),
            "the region",
        ),
        (Kind::CaptCluster, |object| object["spec"]["region"] = json!("us-east-1"), "the region"),
    ];
    for (kind, change, words) in changes {
        let mut simulation = ready();
        let (before, spec) =
            (simulation.requests.len(), simulation.api.get(&key(kind, "demo")).unwrap()["spec"].clone());
        let shown = status(&simulation, kind, "demo");
        simulation.api.edit(&key(kind, "demo"), change);
        assert!(simulation.run_for(Span::from_minutes(24 * 60)), "{words}");
        assert_eq!(written(&simulation, before), [], "{words}");
        let after = status(&simulation, kind, "demo");
        assert_eq!([&after["state"], &after["phase"]], ["Degraded", "Ready"], "{after:#}");
        for latch in ["ready", "initialized", "initialization", "endpoint", "vpcId", "version", "failureReason"] {
            assert_eq!(after[latch], shown[latch], "{latch}");
        }
        let healthy = condition(&after, "Healthy");
        assert_eq!(healthy["reason"], "UnsupportedChange", "{healthy}");
        assert!(healthy["message"].as_str().unwrap().contains(words), "{healthy}");
        assert_eq!(condition(&after, "Ready")["status"], "True");
        simulation.api.edit(&key(kind, "demo"), |object| object["spec"] = spec);
        assert!(simulation.run_for(Span::from_minutes(1)));
        assert_eq!(status(&simulation, kind, "demo")["state"], "Ready");
        assert_eq!(written(&simulation, before), []);
    }
}

#[test]
fn a_restore_that_lost_the_status_forgets_no_version_and_no_region() {
    for (change, words) in [
        ((|object: &mut Value| object["spec"]["version"] = json!("1.29")) as fn(&mut Value), "no downgrade"),
        (|object| object["spec"]["controlPlaneConfig"]["region"] = json!("us-east-1"), "the region"),
    ] {
        let mut simulation = ready();
        let before = simulation.requests.len();
        simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
            object["status"] = json!({});
            change(object);
        });
        assert!(simulation.run());
        assert_eq!(written(&simulation, before), [], "the endpoint in the spec says that it was ready");
        let ready = condition(&status(&simulation, Kind::CaptControlPlane, "demo"), "Ready");
        assert_eq!(ready["status"], "True", "{ready}");
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert!(condition(&plane, "Healthy")["message"].as_str().unwrap().contains(words), "{plane:#}");
        assert_eq!([&plane["state"], &plane["failureReason"]], [&json!("Degraded"), &Value::Null]);
        assert_eq!([&plane["ready"], &plane["initialized"]], [true; 2]);
        assert_eq!(plane["initialization"]["controlPlaneInitialized"], true);
    }
}

#[test]
fn another_vpc_under_a_control_plane_is_never_handed_on() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &[]);
    for mut object in documents("eks-template.yaml").into_iter().chain(documents("cluster.yaml")) {
        if object["kind"] == "WorkspaceTemplate" {
            // An existing VPC has no outputs.
            let text = object.to_string().replace("${vpc_private_subnets}", "[]");
            object = serde_json::from_str(&text).unwrap();
        }
        if object["kind"] == "CAPTCluster" {
            object["spec"].as_object_mut().unwrap().remove("vpcTemplateRef");
            object["spec"]["existingVpcId"] = json!("vpc-a");
        }
        create(&mut simulation, object);
    }
    assert!(simulation.run());
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!([&infrastructure["state"], &infrastructure["vpcId"]], ["Ready", "vpc-a"], "{infrastructure:#}");
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    assert!(simulation.api.get(&key(Kind::Apply, "demo-vpc")).is_none(), "nothing is made");
    let before = simulation.requests.len();
    simulation.api.edit(&key(Kind::CaptCluster, "demo"), |object| object["spec"]["existingVpcId"] = json!("vpc-b"));
    assert!(simulation.run_for(Span::from_minutes(60)));
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!([&infrastructure["state"], &infrastructure["vpcId"]], ["Degraded", "vpc-a"], "{infrastructure:#}");
    assert_eq!(condition(&infrastructure, "Healthy")["reason"], "UnsupportedChange");
    // Even if the status says so.
    simulation.api.edit(&key(Kind::CaptCluster, "demo"), |object| object["status"]["vpcId"] = json!("vpc-b"));
    assert!(simulation.run_for(Span::from_minutes(60)));
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(plane["state"], "Degraded", "{plane:#}");
    assert!(condition(&plane, "Healthy")["message"].as_str().unwrap().contains("the VPC of a control plane"));
    assert_eq!(written(&simulation, before), []);
}
