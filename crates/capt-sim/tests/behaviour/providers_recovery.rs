//! Recovery after a failure: which action is taken when, and what is never recreated.

use crate::common::{FILES, condition, create, documents, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::Span;
use serde_json::{Value, json};

/// A cluster whose Workspaces with `part` in their name fail, with this strategy on both objects.
fn failing(part: &'static str, strategy: &Value) -> Simulation {
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
    simulation.terraform(fails(part));
    for mut object in documents("cluster.yaml") {
        if object["kind"] != "Cluster" {
            object["spec"]["recoveryStrategy"] = strategy.clone();
        }
        create(&mut simulation, object);
    }
    simulation
}

fn fails(part: &'static str) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let result = match workspace["metadata"]["name"].as_str() {
            Some(name) if name.contains(part) => Ending::Failure("something odd happened".to_owned()),
            Some(_) | None => Ending::Success,
        };
        Outputs { result, ..terraform(workspace) }
    }
}

fn workspace(name: &str) -> ObjectKey {
    key(Kind::Workspace(WorkspaceApi::Cluster), name)
}

/// What was done to Workspaces, in order: created, asked to try again, deleted.
fn done(simulation: &Simulation) -> Vec<String> {
    let is_workspace = |target: &ObjectKey| matches!(target.kind, Kind::Workspace(_));
    let mut done = Vec::new();
    for (request, result) in &simulation.requests {
        match request {
            Request::Create { target, body: _ } if is_workspace(target) => done.push(format!("create {}", target.name)),
            Request::MergePatch { target, body } if is_workspace(target) => {
                assert!(body["metadata"]["resourceVersion"].is_string() && body["metadata"]["uid"].is_string());
                done.push(format!("retry {}", target.name));
            }
            Request::Delete { target, uid: _, resource_version } if is_workspace(target) => {
                assert!(resource_version.is_some(), "deleted only as it was seen");
                done.push(format!("delete {}", target.name));
            }
            Request::Create { .. }
            | Request::MergePatch { .. }
            | Request::Delete { .. }
            | Request::JsonPatch { .. }
            | Request::ApplyStatus { .. }
            | Request::MergeStatus { .. }
            | Request::Get { .. }
            | Request::List { .. } => continue,
        }
        assert_eq!(*result, Ok(()));
    }
    done
}

fn recreate() -> Value {
    json!({"maxRetries": 1, "actions": [
        {"type": "RetryWorkspace", "timeout": "1m"},
        {"type": "RecreateWorkspace", "parameters": {"confirm": "true"}},
    ]})
}

#[test]
fn the_actions_of_an_attempt_have_their_turn_in_order_and_the_next_attempt_waits_for_all() {
    let mut simulation = failing(
        "eks",
        &json!({"maxRetries": 2, "actions": [
            {"type": "Reread", "timeout": "1m"}, {"type": "RetryWorkspace", "timeout": "2m"},
        ]}),
    );
    assert!(simulation.run());
    let mut seen: Vec<(Value, Value)> = Vec::new();
    for _ in 0..40 {
        let recovery = status(&simulation, Kind::CaptControlPlane, "demo")["recovery"].clone();
        let now = (recovery["attempts"].clone(), recovery["currentAction"].clone());
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        assert!(simulation.run_for(Span::from_seconds(15)));
    }
    let expected = [
        (0, Value::Null),
        (1, json!("Reread")),
        (1, json!("RetryWorkspace")),
        (2, json!("Reread")),
        (2, json!("RetryWorkspace")),
        (2, Value::Null),
    ]
    .map(|(attempts, action)| (json!(attempts), action));
    assert_eq!(seen, expected);
    assert_eq!(done(&simulation)[2..], ["retry demo-eks-controlplane"; 2]);
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&plane["state"], &plane["recovery"]["lastResult"]], ["Failed", "Failed"]);
    assert_eq!(plane["recovery"]["escalated"], true);
}

#[test]
fn looking_again_writes_nothing_to_the_workspace() {
    let mut simulation = failing("eks", &json!({"maxRetries": 3, "actions": [{"type": "Reread"}]}));
    assert!(simulation.run_for(Span::from_minutes(60)));
    assert_eq!(done(&simulation), ["create demo-vpc", "create demo-eks-controlplane"]);
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!([&plane["state"], &plane["recovery"]["attempts"]], [&json!("Failed"), &json!(3)]);
}

#[test]
fn without_an_action_nothing_is_tried() {
    for strategy in [json!({"actions": []}), json!({"maxRetries": 0})] {
        let mut simulation = failing("eks", &strategy);
        assert!(simulation.run_for(Span::from_minutes(120)));
        assert_eq!(done(&simulation), ["create demo-vpc", "create demo-eks-controlplane"]);
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!([&plane["state"], &plane["recovery"]], [&json!("Failed"), &Value::Null]);
    }
}

#[test]
fn what_was_never_ready_is_recreated_if_the_user_wants_it() {
    for (part, name, kind) in
        [("eks", "demo-eks-controlplane", Kind::CaptControlPlane), ("vpc", "demo-vpc", Kind::CaptCluster)]
    {
        let mut simulation = failing(part, &recreate());
        assert!(simulation.run_for(Span::from_seconds(60)));
        assert!(!done(&simulation).contains(&format!("delete {name}")), "the first action has its time");
        let uid = simulation.api.get(&workspace(name)).unwrap()["metadata"]["uid"].clone();
        simulation.terraform(terraform);
        // The Workspace that fails is kept failing until it is deleted.
        simulation.api.edit(&workspace(name), |object| object["metadata"]["annotations"]["old"] = json!("yes"));
        simulation.terraform(move |workspace| {
            let result = if workspace["metadata"]["annotations"].get("old").is_some() {
                Ending::Failure("something odd happened".to_owned())
            } else {
                Ending::Success
            };
            Outputs { result, ..terraform(workspace) }
        });
        assert!(simulation.run_for(Span::from_minutes(5)));
        assert_eq!(status(&simulation, kind, "demo")["state"], "Ready", "{:#}", status(&simulation, kind, "demo"));
        assert_ne!(simulation.api.get(&workspace(name)).unwrap()["metadata"]["uid"], uid);
        let done: Vec<String> = done(&simulation).into_iter().filter(|line| line.ends_with(name)).collect();
        let expected = ["create", "retry", "delete", "create"].map(|verb| format!("{verb} {name}"));
        assert_eq!(done, expected);
        let apply = if part == "eks" { "demo-eks-controlplane-apply" } else { "demo-vpc" };
        let annotations = simulation.api.get(&key(Kind::Apply, apply)).unwrap()["metadata"]["annotations"].clone();
        assert_eq!(annotations.get("capt.cluster.x-k8s.io/recreate-workspace"), None, "the release is used up");
    }
}

#[test]
fn a_crash_at_any_write_of_a_recreation_does_no_harm() {
    for writes in 0..8 {
        let mut simulation = failing("eks", &recreate());
        assert!(simulation.run_for(Span::from_seconds(60)));
        simulation.terraform(terraform);
        simulation.api.edit(&workspace("demo-eks-controlplane"), |object| {
            object["metadata"]["annotations"]["old"] = json!("yes");
        });
        simulation.terraform(move |workspace| {
            let result = if workspace["metadata"]["annotations"].get("old").is_some() {
                Ending::Failure("something odd happened".to_owned())
            } else {
                Ending::Success
            };
            Outputs { result, ..terraform(workspace) }
        });
        simulation.run();
        simulation.api.now = simulation.api.now.plus(Span::from_minutes(1));
        simulation.restart();
        for _ in 0..4 {
            simulation.run_capt_until_crash(writes);
            simulation.step_provider();
        }
        assert!(simulation.run_for(Span::from_minutes(10)));
        let plane = status(&simulation, Kind::CaptControlPlane, "demo");
        assert_eq!(plane["state"], "Ready", "crash after {writes} writes: {plane:#}");
    }
}

/// Makes something say that it was ready once.
type Hint = fn(&mut Simulation);

#[test]
fn what_may_have_been_ready_is_never_recreated() {
    let hints: [(&str, Hint); 8] = [
        ("the provider's word", |simulation| {
            simulation.api.edit(&workspace("demo-eks-controlplane"), |object| {
                object["metadata"]["annotations"]["crossplane.io/external-create-succeeded"] =
                    json!("2020-01-01T00:00:00Z");
            });
        }),
        ("outputs", |simulation| {
            simulation.api.edit(&workspace("demo-eks-controlplane"), |object| {
                object["status"]["atProvider"]["outputs"]["cluster_name"] = json!("demo");
            });
        }),
        ("not made by this apply", |simulation| {
            simulation.api.edit(&workspace("demo-eks-controlplane"), |object| {
                object["metadata"]["labels"]["capt.cluster.x-k8s.io/owner-uid"] = json!("before-a-restore");
            });
        }),
        ("a kubeconfig", |simulation| {
            let secret = json!({"metadata": {"name": "demo-kubeconfig", "namespace": "default"}});
            simulation.api.create(&key(Kind::Secret, "demo-kubeconfig"), secret);
        }),
        ("the endpoint in the spec", |simulation| {
            simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
                object["spec"]["controlPlaneEndpoint"] = json!({"host": "a.invalid", "port": 443});
            });
        }),
        ("the endpoint of the Cluster", |simulation| {
            simulation.api.edit(&key(Kind::Cluster, "demo"), |object| {
                object["spec"]["controlPlaneEndpoint"] = json!({"host": "a.invalid", "port": 443});
            });
        }),
        ("core's latch", |simulation| {
            simulation.api.edit(&key(Kind::Cluster, "demo"), |object| {
                object["status"]["initialization"]["controlPlaneInitialized"] = json!(true);
            });
        }),
        ("no word of the user", |simulation| {
            simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
                object["spec"]["recoveryStrategy"]["actions"][1]["parameters"] = json!({"confirm": "yes"});
            });
        }),
    ];
    for (what, hint) in hints {
        let mut simulation = failing("eks", &recreate());
        assert!(simulation.run());
        hint(&mut simulation);
        assert!(simulation.run_for(Span::from_minutes(24 * 60)), "{what}");
        let done = done(&simulation);
        assert!(!done.iter().any(|line| line.starts_with("delete")), "{what}: {done:?}");
        assert_eq!(done.iter().filter(|line| line.starts_with("create")).count(), 2, "{what}: {done:?}");
    }
}

#[test]
fn a_kubeconfig_that_the_cache_has_not_seen_stops_the_deletion() {
    let mut simulation = failing("eks", &recreate());
    assert!(simulation.run());
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
        object["spec"]["recoveryStrategy"]["actions"] =
            json!([{"type": "RecreateWorkspace", "parameters": {"confirm": "true"}}]);
    });
    assert!(simulation.run());
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(1));
    let plan = simulation.plan(&key(Kind::CaptControlPlane, "demo")).unwrap();
    let delete = plan.actions.iter().find(|action| action.op == capt_reconcile::plan::Op::Delete).unwrap();
    assert_eq!(delete.target, workspace("demo-eks-controlplane"));
    assert_eq!(delete.unless.len(), 1, "{delete:?}");
    assert!(format!("{:?}", delete.unless[0]).contains("demo-kubeconfig"), "{delete:?}");
}

#[test]
fn nothing_is_done_while_an_apply_may_be_running() {
    let mut simulation = failing("eks", &recreate());
    assert!(simulation.run());
    simulation.api.edit(&workspace("demo-eks-controlplane"), |object| {
        object["metadata"]["annotations"]["crossplane.io/external-create-pending"] = json!("2100-01-01T00:00:00Z");
    });
    assert!(simulation.run_for(Span::from_minutes(120)));
    assert_eq!(done(&simulation), ["create demo-vpc", "create demo-eks-controlplane"]);
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(condition(&plane, "Ready")["reason"], "ControlPlaneTimeout", "the deadline ends it");
}

#[test]
fn an_action_that_the_failure_outlives_by_vanishing_is_shown_until_its_time_is_over() {
    let mut simulation = failing("eks", &json!({}));
    assert!(simulation.run_for(Span::from_seconds(40)));
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(plane["recovery"]["currentAction"], "RetryWorkspace", "{plane:#}");
    simulation.terraform(terraform);
    assert!(simulation.run());
    let plane = status(&simulation, Kind::CaptControlPlane, "demo");
    assert_eq!(
        [&plane["recovery"]["currentAction"], &plane["recovery"]["lastResult"]],
        [&Value::Null, &json!("Succeeded")]
    );
    assert_eq!([&plane["recovery"]["actionIndex"], &plane["recovery"]["actionStartedAt"]], [&Value::Null; 2]);
}
