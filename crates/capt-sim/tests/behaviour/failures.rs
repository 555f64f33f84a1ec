//! What goes wrong, and what CAPT says and does about it, over hours of virtual time.

use crate::common::{FILES, condition, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

/// Terraform as in the examples, but for the EKS module.
fn eks_ends(result: Ending) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let is_eks = workspace["metadata"]["name"].as_str().is_some_and(|name| name.contains("eks"));
        if is_eks { Outputs { result: result.clone(), ..terraform(workspace) } } else { terraform(workspace) }
    }
}

/// A failure whose text says nothing about its class.
fn odd() -> Ending {
    Ending::Failure("something odd happened".to_owned())
}

fn with(ending: Ending) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    simulation.terraform(eks_ends(ending));
    simulation
}

fn minutes(minutes: i64) -> Span {
    Span::from_minutes(minutes)
}

/// How often the provider was asked to try again.
fn retries(simulation: &Simulation) -> usize {
    let asks = |body: &Value| body["metadata"]["annotations"].get("crossplane.io/reconcile-requested-at").is_some();
    simulation.writes().filter(|request| matches!(request, Request::MergePatch { body, .. } if asks(body))).count()
}

fn plane(simulation: &Simulation) -> Value {
    status(simulation, Kind::CaptControlPlane, "demo")
}

#[test]
fn a_failing_apply_is_tried_again_given_up_and_told() {
    let mut simulation = with(odd());
    assert!(simulation.run_for(minutes(1)));
    let during = plane(&simulation);
    assert_eq!([&during["state"], &during["phase"]], ["Recovering", "Creating"], "{during:#}");
    assert!(condition(&during, "Ready")["message"].as_str().unwrap().contains("something odd happened"));
    assert_eq!(during["failureReason"], Value::Null);
    assert!(simulation.run_for(minutes(60)));
    let after = plane(&simulation);
    assert_eq!([&after["state"], &after["failureReason"]], ["Failed", "CreateError"], "{after:#}");
    assert_eq!(retries(&simulation), 5, "the budget");
    assert_eq!([&after["recovery"]["attempts"], &after["recovery"]["escalated"]], [&json!(5), &json!(true)]);
    assert_eq!(condition(&after, "Stalled")["status"], "True");
    let before = simulation.requests.len();
    assert!(simulation.run_for(minutes(24 * 60)));
    assert_eq!(simulation.requests.len(), before, "nothing is written while nothing happens");
}

#[test]
fn late_success_leads_to_ready_and_clears_the_failure() {
    let mut simulation = with(odd());
    assert!(simulation.run_for(minutes(120)));
    assert_eq!(plane(&simulation)["state"], "Failed");
    simulation.terraform(terraform);
    assert!(simulation.run());
    let after = plane(&simulation);
    assert_eq!(after["state"], "Ready");
    assert_eq!([&after["failureReason"], &after["failureMessage"]], [&Value::Null; 2]);
    assert_eq!(condition(&after, "Failed")["status"], "False");
    assert_eq!(after["recovery"]["lastResult"], "Succeeded");
    assert_eq!(after["deadlines"], Value::Null);
}

#[test]
fn a_change_of_the_spec_or_the_annotation_starts_over() {
    for edit in
        [(|object: &mut Value| object["spec"]["additionalTags"]["a"] = json!("b")) as fn(&mut Value), |object| {
            object["metadata"]["annotations"]["capt.cluster.x-k8s.io/retry"] = json!("1");
        }]
    {
        let mut simulation = with(odd());
        assert!(simulation.run_for(minutes(120)));
        assert_eq!(plane(&simulation)["state"], "Failed");
        simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), edit);
        assert!(simulation.run_for(minutes(1)));
        assert_eq!(plane(&simulation)["state"], "Recovering");
        assert!(simulation.run_for(minutes(120)));
        assert_eq!(
            (plane(&simulation)["state"].clone(), retries(&simulation)),
            (json!("Failed"), 10),
            "a fresh budget"
        );
    }
}

/// A module that Terraform refuses, and what the user may do about it.
#[test]
fn whoever_answers_a_failure_sees_at_once_that_it_is_worked_on() {
    let refused = || Ending::Failure("Error: Unsupported argument".to_owned());
    let spec = (Kind::CaptControlPlane, "demo", (|object| object["spec"]["version"] = json!("1.32")) as fn(&mut Value));
    let template = (
        Kind::Template,
        "eks-template",
        (|template| {
            let module = &mut template["spec"]["template"]["spec"]["forProvider"]["module"];
            *module = json!(format!("{}\n", module.as_str().unwrap()));
        }) as fn(&mut Value),
    );
    for (kind, name, answer) in [spec, template] {
        let mut simulation = with(refused());
        assert!(simulation.run_for(minutes(60)));
        assert_eq!(plane(&simulation)["failureReason"], "InvalidConfiguration");
        // Long enough to be looked at.
        simulation.terraform(eks_ends(Ending::Hang));
        simulation.events.clear();
        simulation.api.edit(&key(kind, name), answer);
        assert!(simulation.run_for(minutes(5)));
        let during = plane(&simulation);
        assert_eq!([&during["state"], &during["failureReason"]], [&json!("Provisioning"), &Value::Null], "{kind:?}");
        assert_eq!(condition(&during, "Stalled")["status"], "False");
        assert!(simulation.events.iter().any(|(_, event)| event.reason == "Retrying"), "{kind:?}");
        // Nobody ever looks at it again: a deadline says so, and that is the end of it.
        assert!(simulation.run_for(minutes(60)));
        let after = plane(&simulation);
        assert_eq!(after["state"], "Failed", "{kind:?}");
        assert!(condition(&after, "Ready")["reason"].as_str().unwrap().ends_with("Timeout"), "{kind:?}");
        let before = simulation.requests.len();
        assert!(simulation.run_for(minutes(24 * 60)));
        assert_eq!(simulation.requests.len(), before, "{kind:?}: it goes back and forth");
    }
}

/// The same failure once more is told once more.
#[test]
fn an_answer_that_is_none_fails_again() {
    let mut simulation = with(Ending::Failure("Error: Unsupported argument".to_owned()));
    assert!(simulation.run_for(minutes(60)));
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run_for(minutes(60)));
    let after = plane(&simulation);
    assert_eq!([&after["state"], &after["failureReason"]], ["Failed", "InvalidConfiguration"]);
    let failed = |(_, event): &&(_, capt_reconcile::plan::Event)| event.reason == "Failed";
    assert_eq!(simulation.events.iter().filter(failed).count(), 2);
}

#[test]
fn a_workspace_that_hangs_meets_its_deadline_and_no_retry() {
    let mut simulation = with(Ending::Hang);
    assert!(simulation.run_for(minutes(20)));
    let during = plane(&simulation);
    assert_eq!(during["state"], "Provisioning");
    let names: Vec<&str> =
        during["deadlines"].as_array().unwrap().iter().map(|deadline| deadline["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["workspaceReadyTimeout", "controlPlaneTimeout"]);
    assert!(simulation.run_for(minutes(15)));
    let after = plane(&simulation);
    assert_eq!(after["state"], "Failed");
    assert_eq!(condition(&after, "Ready")["reason"], "ControlPlaneTimeout");
    assert_eq!(retries(&simulation), 0, "an apply may be running");
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready", "a timeout is not the end");
}

#[test]
fn a_serving_cluster_is_degraded_by_a_failing_update_and_keeps_everything() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    simulation.terraform(eks_ends(odd()));
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    assert!(simulation.run_for(minutes(24 * 60)));
    let after = plane(&simulation);
    assert_eq!([&after["state"], &after["phase"]], ["Degraded", "Ready"], "{after:#}");
    assert_eq!([&after["ready"], &after["initialized"]], [true; 2]);
    assert_eq!(condition(&after, "Ready")["status"], "True");
    assert_eq!(condition(&after, "Healthy")["status"], "False");
    assert_eq!(after["workspaceStatus"]["atProvider"]["outputs"]["cluster_version"], "1.31");
    assert_eq!(after["failureReason"], Value::Null);
    assert_eq!(retries(&simulation), 5, "within the budget");
    simulation.terraform(terraform);
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["version"], "v1.32.0");
}

#[test]
fn a_pause_stops_the_deadline() {
    let mut simulation = with(Ending::Hang);
    assert!(simulation.run_for(minutes(20)));
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(true));
    assert!(simulation.run_for(minutes(600)));
    assert_eq!(plane(&simulation)["state"], "Provisioning");
    simulation.api.edit(&key(Kind::Cluster, "demo"), |cluster| cluster["spec"]["paused"] = json!(false));
    assert!(simulation.run_for(minutes(5)));
    assert_eq!(plane(&simulation)["state"], "Provisioning", "10 minutes are left");
    assert!(simulation.run_for(minutes(10)));
    assert_eq!(plane(&simulation)["state"], "Failed");
}

#[test]
fn progress_is_told_and_the_past_gives_an_estimate() {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
    assert!(simulation.run());
    let ready = plane(&simulation);
    assert_eq!(
        [&ready["progress"]["percentComplete"], &ready["progress"]["milestone"]],
        [&json!(100), &json!("5 of 5")]
    );
    assert_eq!(ready["progress"]["history"][0]["operation"], "Create");
    assert_eq!(ready["health"]["status"], "Healthy");
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| object["spec"]["version"] = json!("1.32"));
    simulation.run_capt();
    assert_eq!(plane(&simulation)["progress"]["currentOperation"], "Upgrade");
    assert!(simulation.run());
    let operations: Vec<Value> = plane(&simulation)["progress"]["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["operation"].clone())
        .collect();
    assert_eq!(operations, ["Create", "Upgrade"]);
}
