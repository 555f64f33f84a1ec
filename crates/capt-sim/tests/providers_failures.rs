//! What the provider objects say of failures that the provider reports.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

mod common;

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::Kind;
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::{Reason, Span};
use common::{FILES, condition, key, simulation, status, terraform};
use serde_json::Value;

/// Terraform as in the examples, but Workspaces whose name has `part` in it fail with `text`.
fn fails(part: &'static str, text: &str) -> impl Fn(&Value) -> Outputs + use<> {
    let result = Ending::Failure(text.to_owned());
    move |workspace| {
        let fails = workspace["metadata"]["name"].as_str().is_some_and(|name| name.contains(part));
        if fails { Outputs { result: result.clone(), ..terraform(workspace) } } else { terraform(workspace) }
    }
}

fn failing(part: &'static str, text: &str) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(fails(part, text));
    simulation
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const DENIED: &str = "creating EKS Cluster (demo): AccessDeniedException: User: arn:aws:sts::123456789012:assumed-role/tf/1 is not \
     authorized to perform: eks:CreateCluster on resource: *";

#[test]
fn a_failure_is_told_by_its_reason_with_what_to_do_and_its_class_decides() {
    for (error, state) in [
        ("creating EC2 VPC: VpcLimitExceeded: The maximum number of VPCs has been reached.", "Recovering"),
        ("creating EKS Cluster (demo): ThrottlingException: Rate exceeded", "Recovering"),
        (DENIED, "Recovering"),
        ("creating EKS Cluster (demo): InvalidParameterException: unsupported Kubernetes version", "Failed"),
        ("something odd happened", "Recovering"),
    ] {
        let mut simulation = failing("eks", error);
        assert!(simulation.run_for(Span::from_minutes(1)));
        let failure = capt_status::failure::classify(&format!("create failed: {error}"));
        for (kind, name, type_) in [
            (Kind::CaptControlPlane, "demo", "Ready"),
            (Kind::CaptControlPlane, "demo", "WorkspaceSynced"),
            (Kind::Apply, "demo-eks-controlplane-apply", "Synced"),
        ] {
            let status = status(&simulation, kind, name);
            let told = condition(&status, type_);
            assert_eq!(told["reason"], failure.reason.as_str(), "{error}: {told:#}");
            assert!(text(&told["message"]).contains(failure.hint), "{told:#}");
            assert!(text(&told["message"]).len() <= 1024);
        }
        assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], state, "{error}");
    }
}

#[test]
fn what_changes_from_try_to_try_causes_no_write() {
    let error = |id: &str, seconds: u32| {
        format!(
            "creating EKS Cluster (demo): operation error EKS: CreateCluster, https response error StatusCode: 500, \
             RequestID: {id}, ServerException: no answer at 2026-01-01T10:00:{seconds}Z"
        )
    };
    let mut simulation = failing("eks", &error("0b5ae4b6-6a3f-4c0a-9d4e-3f1a2b3c4d5e", 31));
    assert!(simulation.run());
    let (before, text) = (simulation.requests.len(), |simulation: &Simulation| {
        let workspace =
            simulation.api.get(&key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane")).unwrap();
        condition(&workspace["status"], "Synced")["message"].clone()
    });
    let first = text(&simulation);
    for (id, seconds) in [("11111111-2222-4333-8444-555555555555", 42), ("ffffffff-eeee-4ddd-9ccc-bbbbbbbbbbbb", 53)] {
        simulation.terraform(fails("eks", &error(id, seconds)));
        assert!(simulation.step_provider(), "the Workspace says something else");
        assert_ne!(text(&simulation), first);
        simulation.run_capt();
        assert_eq!(simulation.requests[before..], [], "{id}");
    }
}

#[test]
fn lack_of_permission_is_given_its_time_and_then_is_final() {
    let mut simulation = failing("eks", DENIED);
    assert!(simulation.run_for(Span::from_minutes(9)));
    assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Recovering");
    assert!(simulation.run_for(Span::from_minutes(2)));
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(plane["state"], "Failed", "{plane:#}");
    let reason = condition(&plane, "Stalled")["reason"].clone();
    assert!(Reason::find(text(&reason)).is_some(), "the reason is that of the failure: {reason}");
}
