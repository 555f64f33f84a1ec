//! What the provider objects say of failures that the provider reports.

use crate::common::{FILES, condition, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::object::Kind;
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::{Reason, Span};
use serde_json::{Value, json};

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

#[test]
fn what_fails_twice_for_one_cause_is_told_in_full_on_the_object_nearest_to_it() {
    let error =
        "configuring Terraform AWS Provider: ExpiredToken: The security token included in the request is expired";
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    simulation.terraform(fails("demo", error));
    assert!(simulation.run());
    let (infrastructure, plane) =
        (status(&simulation, Kind::CaptCluster, "demo"), status(&simulation, Kind::CaptControlPlane, "demo"));
    let (near, far) = (condition(&infrastructure, "Healthy"), condition(&plane, "Healthy"));
    assert_eq!(near["reason"], far["reason"], "the same reason");
    assert!(text(&near["message"]).contains("security token"), "{near:#}");
    assert!(text(&far["message"]).starts_with("waiting for CAPTCluster/demo"), "{far:#}");
    assert!(!plane["conditions"].to_string().contains("security token"), "{plane:#}");
    // Another failure is its own.
    simulation.terraform(move |workspace| {
        let other = workspace["metadata"]["name"].as_str().is_some_and(|name| name.contains("eks"));
        fails("demo", if other { DENIED } else { error })(workspace)
    });
    assert!(simulation.run());
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert!(text(&condition(&plane, "Healthy")["message"]).contains("eks:CreateCluster"), "{plane:#}");
}

#[test]
fn a_destroy_that_is_blocked_is_explained_on_everything_that_waits_for_it() {
    const ERROR: &str =
        "deleting EC2 VPC (vpc-0123): DependencyViolation: The vpc 'vpc-0123' has dependencies and cannot be deleted.";
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    simulation.api.delete(&key(Kind::Cluster, "demo"), None);
    let vpc = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-vpc");
    for _ in 0..60 {
        simulation.run_capt();
        simulation.step_core();
        if !simulation.api.get(&vpc).unwrap()["metadata"]["deletionTimestamp"].is_null() {
            break;
        }
        simulation.step_provider();
    }
    simulation.api.edit(&vpc, |workspace| {
        workspace["status"]["conditions"] = json!([{"type": "Synced", "status": "False", "reason": "ReconcileError",
            "message": format!("delete failed: cannot destroy Terraform configuration: {ERROR}")}]);
    });
    simulation.run_capt();
    let failure = capt_status::failure::classify(&format!("delete failed: {ERROR}"));
    for (kind, name, type_) in [(Kind::CaptCluster, "demo", "Deleting"), (Kind::Apply, "demo-vpc", "Deleting")] {
        let status = status(&simulation, kind, name);
        let told = condition(&status, type_);
        assert!(text(&told["message"]).contains(failure.hint), "{told:#}");
        assert!(text(&told["message"]).contains("dependencies"), "{told:#}");
    }
    let infrastructure = status(&simulation, Kind::CaptCluster, "demo");
    assert_eq!([&infrastructure["state"], &infrastructure["phase"]], ["Deleting", "Deleting"]);
    assert_eq!(condition(&infrastructure, "Reconciling")["reason"], failure.reason.as_str());
    assert!(simulation.run(), "and it goes on by itself");
    assert!(simulation.api.get(&vpc).is_none());
}

/// The record of the last failure must not depend on what else was seen to be wrong first.
#[test]
fn a_workspace_that_fails_while_its_template_is_gone_has_its_failure_kept_all_the_same() {
    for (kind, template, part, record) in [
        (Kind::CaptControlPlane, "eks-template", "eks", "/workspaceTemplateStatus"),
        (Kind::CaptCluster, "vpc-template", "vpc", "/workspaceTemplateStatus"),
    ] {
        for template_first in [true, false] {
            let mut simulation = crate::common::ready();
            let lose = |simulation: &mut Simulation| {
                simulation.api.delete(&key(Kind::Template, template), None);
                assert!(simulation.run());
            };
            if template_first {
                lose(&mut simulation);
                let kept = status(&simulation, kind, "demo");
                assert_eq!(kept.pointer(record).unwrap()["lastFailureMessage"], Value::Null, "nothing failed yet");
            }
            simulation.terraform(move |workspace| {
                let fails = workspace["metadata"]["name"].as_str().is_some_and(|name| name.contains(part));
                let result = Ending::PlanFailure("Error: something odd".to_owned());
                if fails { Outputs { result, ..terraform(workspace) } } else { terraform(workspace) }
            });
            assert!(simulation.run());
            if !template_first {
                lose(&mut simulation);
            }
            let kept = status(&simulation, kind, "demo");
            let message = text(&kept.pointer(record).unwrap()["lastFailureMessage"]);
            assert!(message.contains("something odd"), "{} {template_first}: {kept:#}", kind.name());
        }
    }
}
