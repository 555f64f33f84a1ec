//! Phases, latches and generations.

use capt_reconcile::{executor::Request, object::Kind};
use capt_sim::provider::{Ending, Outputs};
use capt_status::{
    Phase, Span, State, Time,
    failure::Class,
    machine::{
        Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Limits, Memory, Owner, Role, Teardown,
        Timeouts, Workspace, follow,
    },
};
use serde_json::{Value, json};

use crate::{
    common::{condition, key, ready, status, terraform},
    help::{
        assert_still, cluster_key, created_with, eks, ends, failure, fresh, fresh_as, infrastructure,
        infrastructure_key, minutes, plane, plane_key, refusal, statuses, vpc, wait, with_output, writes_to,
    },
};

#[test]
fn cb_008_a_new_generation_without_a_change_is_one_status_write() {
    let mut simulation = ready();
    let before = simulation.requests.len();
    simulation.api.edit(&plane_key(), |object| object["metadata"]["generation"] = json!(40));
    assert!(simulation.run());
    let written = &simulation.requests[before..];
    assert!(matches!(written, [(Request::ApplyStatus { .. }, Ok(()))]), "{written:?}");
    assert_eq!(plane(&simulation)["observedGeneration"], 40);
    assert_still(&mut simulation, &[1, 60]);
}

#[test]
fn cb_108_a_status_that_stays_ready_follows_the_generation() {
    let mut simulation = ready();
    for key in [plane_key(), infrastructure_key()] {
        let generation = simulation.api.get(&key).unwrap()["metadata"]["generation"].as_i64().unwrap() + 1;
        simulation.api.edit(&key, |object| object["metadata"]["generation"] = json!(generation));
        simulation.run_capt();
        let status = simulation.api.get(&key).unwrap()["status"].clone();
        assert_eq!([&status["observedGeneration"], &status["state"]], [&json!(generation), &json!("Ready")]);
    }
}

#[test]
fn cb_023_an_endpoint_that_only_terraform_knows_lets_the_cluster_go_on() {
    let mut simulation = fresh();
    assert_eq!(simulation.api.get(&cluster_key()).unwrap()["spec"].get("controlPlaneEndpoint"), None);
    assert!(simulation.run());
    let cluster = simulation.api.get(&cluster_key()).unwrap();
    assert_eq!(cluster["status"]["phase"], "Provisioned");
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "demo.eks.invalid", "port": 443}));
}

#[test]
fn cb_024_a_ready_workspace_without_an_endpoint_is_no_cluster() {
    let simulation = created_with(|workspace| {
        let mut outputs = terraform(workspace);
        outputs.plain.remove("cluster_endpoint");
        outputs
    });
    let plane = plane(&simulation);
    assert_eq!(condition(&plane, "WorkspaceReady")["status"], "True");
    for type_ in ["Ready", "Initialized", "EndpointAvailable"] {
        let told = condition(&plane, type_);
        assert_eq!([&told["status"], &told["reason"]], ["False", "EndpointNotReady"], "{type_}");
    }
    let object = simulation.api.get(&plane_key()).unwrap();
    assert_eq!(object["spec"].get("controlPlaneEndpoint"), None);
    assert_eq!(status(&simulation, Kind::Cluster, "demo")["phase"], "Provisioning");
}

#[test]
fn cb_026_infrastructure_is_reported_under_both_contracts_and_stays() {
    let mut simulation = ready();
    let latches = |simulation: &capt_sim::Simulation| {
        let status = infrastructure(simulation);
        [status["ready"].clone(), status["initialization"]["provisioned"].clone()]
    };
    assert_eq!(latches(&simulation), [json!(true), json!(true)]);
    simulation.terraform(ends("vpc", failure("odd")));
    wait(&mut simulation, minutes(120));
    simulation.api.edit(&vpc(), |workspace| workspace["status"] = Value::Null);
    wait(&mut simulation, minutes(120));
    assert_eq!(latches(&simulation), [json!(true), json!(true)]);
}

#[test]
fn cb_027_a_control_plane_needs_no_infrastructure_object() {
    let mut simulation = fresh_as(|kind, object| {
        if kind == "Cluster" {
            object["spec"].as_object_mut().unwrap().remove("infrastructureRef");
        } else if kind == "CAPTControlPlane" {
            object["spec"]["controlPlaneConfig"]["region"] = json!("eu-west-1");
        }
    });
    simulation.api.delete(&infrastructure_key(), None);
    simulation.api.edit(&key(Kind::Template, "eks-template"), |template| {
        let variables = template["spec"]["template"]["spec"]["forProvider"]["vars"].as_array_mut().unwrap();
        variables.retain(|variable| !variable.to_string().contains("${vpc_"));
    });
    assert!(simulation.run());
    assert_eq!(plane(&simulation)["state"], "Ready", "{:#}", plane(&simulation));
}

#[test]
fn cb_028_a_spec_that_becomes_invalid_destroys_nothing() {
    let mut simulation = ready();
    let before = (simulation.requests.len(), simulation.api.get(&vpc()).unwrap().clone());
    // The CRD refuses this; an object from before its rule may hold it.
    simulation.api.edit(&infrastructure_key(), |object| object["spec"]["existingVpcId"] = json!("vpc-other"));
    wait(&mut simulation, minutes(120));
    assert_eq!(*simulation.api.get(&vpc()).unwrap(), before.1);
    assert_eq!(writes_to(&simulation, before.0, "delete"), [""; 0]);
    let status = infrastructure(&simulation);
    assert_eq!([&status["ready"], &status["vpcId"]], [&json!(true), &json!("vpc-0123")]);
    // Neither of the two: the last word is told, and nothing else happens.
    simulation.api.edit(&infrastructure_key(), |object| {
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("existingVpcId");
        spec.remove("vpcTemplateRef");
    });
    wait(&mut simulation, minutes(120));
    let status = infrastructure(&simulation);
    assert_eq!(condition(&status, "VPCReady")["reason"], "NoVPCConfigured", "{status:#}");
    assert_eq!(
        status["observedGeneration"],
        simulation.api.get(&infrastructure_key()).unwrap()["metadata"]["generation"]
    );
    assert_eq!([&status["ready"], &status["vpcId"]], [&json!(true), &json!("vpc-0123")]);
    assert_eq!(*simulation.api.get(&vpc()).unwrap(), before.1);
    assert_eq!(writes_to(&simulation, before.0, "delete"), [""; 0]);
}

#[test]
fn cb_029_a_status_write_that_fails_last_is_made_again() {
    let mut simulation = fresh();
    let mut refused = 0;
    simulation.refuse(move |request| match request {
        Request::ApplyStatus { target, body, .. }
            if target.kind == Kind::CaptControlPlane && body["status"]["state"] == "Ready" && refused < 1 =>
        {
            refused += 1;
            Some(refusal(500, "InternalError"))
        }
        _ => None,
    });
    wait(&mut simulation, minutes(5));
    let ready: Vec<Value> =
        statuses(&simulation, &plane_key(), 0).into_iter().filter(|status| status["state"] == "Ready").collect();
    assert_eq!(ready.len(), 2);
    let without_times = |status: &Value| {
        let conditions = status["conditions"].as_array().unwrap().iter();
        let told: Vec<_> =
            conditions.map(|told| [&told["type"], &told["status"], &told["reason"]].map(Value::to_string)).collect();
        (told, status["endpoint"].clone(), status["workspaceStatus"].clone())
    };
    assert_eq!(without_times(&ready[0]), without_times(&ready[1]));
    assert_eq!(plane(&simulation)["state"], "Ready");
}

/// From each state, whatever is seen: the next one is an edge of the table, and what failed for good or was
/// deleted does not come back by itself.
#[test]
fn cb_030_no_state_is_left_by_another_way_than_the_table_has() {
    let limits = Limits { timeouts: Timeouts::default(), budget: capt_status::backoff::Budget::default() };
    let classes = [Class::Transient, Class::Quota, Class::Permission, Class::Config, Class::Unknown];
    let mut workspaces = vec![Workspace::Queued, Workspace::Applying, Workspace::Ready];
    workspaces.extend(classes.map(Workspace::Failing));
    let (mut steps, mut reached) = (0, std::collections::BTreeSet::new());
    for from in State::ALL {
        // What is Ready or Degraded has served.
        for served in [from.phase() == Phase::Ready, true] {
            for workspace in &workspaces {
                for inputs in [Inputs::Valid, Inputs::Unresolved, Inputs::Invalid, Inputs::Unsupported] {
                    for infrastructure in [Infrastructure::Queued, Infrastructure::Begun, Infrastructure::Ready] {
                        for configuration in [Configuration::Complete, Configuration::Incomplete] {
                            for (owner, user_changed, lifecycle) in [
                                (Owner::Known, false, Lifecycle::Active),
                                (Owner::Known, true, Lifecycle::Active),
                                (Owner::Missing, false, Lifecycle::Active),
                                (Owner::Known, false, Lifecycle::Deleting(Teardown::Waiting)),
                                (Owner::Missing, true, Lifecycle::Deleting(Teardown::Blocked(Class::Config))),
                            ] {
                                let facts = Facts {
                                    role: Role::ControlPlane,
                                    lifecycle,
                                    owner,
                                    inputs,
                                    infrastructure,
                                    workspace: *workspace,
                                    busy: false,
                                    configuration,
                                    checks: Checks::Passing,
                                    same_failure: true,
                                    user_changed,
                                };
                                let deleting = !matches!(lifecycle, Lifecycle::Active);
                                if from == State::Deleting && !deleting {
                                    continue; // nobody takes a deletion back
                                }
                                let memory = Memory { state: Some(from), served, ..Memory::default() };
                                let next = follow(&memory, &facts, &limits, Time::from_unix(1_000_000)).state;
                                steps += 1;
                                reached.insert(format!("{from:?} {next:?}"));
                                assert!(
                                    next == from || from.successors().contains(&next),
                                    "{from:?} -> {next:?}: {facts:?}"
                                );
                                assert_eq!(next == State::Deleting, deleting, "{facts:?}");
                                let is_final =
                                    *workspace == Workspace::Failing(Class::Config) && inputs == Inputs::Valid;
                                if from == State::Failed
                                    && is_final
                                    && !user_changed
                                    && !deleting
                                    && !served
                                    && owner == Owner::Known
                                    && infrastructure == Infrastructure::Ready
                                {
                                    assert_eq!(next, State::Failed, "{facts:?}");
                                }
                                if from.phase() == Phase::Ready && served {
                                    assert_ne!(next, State::Pending, "{facts:?}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(steps > 15_000 && reached.len() > 40, "{steps} {}", reached.len());
}

#[test]
fn cb_031_initialized_stays_while_the_workspace_is_not_ready() {
    let mut simulation = ready();
    let conditions = simulation.api.get(&eks()).unwrap()["status"]["conditions"].clone();
    let before = simulation.requests.len();
    simulation.api.edit(&eks(), |workspace| {
        workspace["status"]["conditions"][1] = json!({"type": "Ready", "status": "False", "reason": "Unavailable"});
    });
    simulation.run_capt();
    simulation.api.now = simulation.api.now.plus(Span::from_minutes(5));
    simulation.resync();
    assert_ne!(plane(&simulation)["state"], "Ready");
    simulation.api.edit(&eks(), |workspace| workspace["status"]["conditions"] = conditions);
    wait(&mut simulation, minutes(1));
    assert_eq!(plane(&simulation)["state"], "Ready");
    let written = statuses(&simulation, &plane_key(), before);
    assert!(written.len() > 1);
    for status in written {
        assert_eq!([&status["initialized"], &status["initialization"]["controlPlaneInitialized"]], [true; 2]);
    }
}

#[test]
fn cb_032_a_version_alone_initializes_nothing() {
    let mut simulation = fresh();
    simulation.terraform(ends("eks", Ending::Hang));
    assert!(simulation.run());
    simulation.api.edit(&eks(), |workspace| {
        workspace["status"] = json!({
            "atProvider": {"outputs": {"cluster_version": "1.31"}},
            "conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
                {"type": "Ready", "status": "False", "reason": "Creating"},
            ],
        });
    });
    simulation.run_capt();
    let plane = plane(&simulation);
    assert_eq!([&plane["initialized"], &plane["ready"]], [false; 2]);
    assert_eq!([&plane["version"], &plane["initialization"]["controlPlaneInitialized"]], [&Value::Null; 2]);
    assert_eq!(condition(&plane, "Initialized")["status"], "False");
}

#[test]
fn cb_104_spec_and_status_of_one_pass_both_arrive() {
    let mut simulation = fresh();
    // One pass writes the endpoint into the spec and what follows from it into the status.
    assert!(simulation.run());
    let endpoint = simulation
        .requests
        .iter()
        .position(|(request, _)| matches!(request, Request::MergePatch { body, .. } if body["spec"]["controlPlaneEndpoint"].is_object()))
        .unwrap();
    let after = &simulation.requests[endpoint..];
    let status = after.iter().find_map(|(request, _)| match request {
        Request::ApplyStatus { target, body, .. } if *target == plane_key() => Some(body),
        _ => None,
    });
    assert_eq!(status.unwrap()["status"]["endpoint"], "demo.eks.invalid:443", "the very next status");
    let object = simulation.api.get(&plane_key()).unwrap();
    assert_eq!(object["spec"]["controlPlaneEndpoint"]["host"], "demo.eks.invalid");
    assert_eq!(object["status"]["endpoint"], "demo.eks.invalid:443");
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
}

#[test]
fn cb_107_last_known_outputs_outlive_a_workspace_that_says_nothing() {
    let mut simulation = ready();
    let known = plane(&simulation)["workspaceStatus"]["atProvider"].clone();
    assert_eq!(known["outputs"]["cluster_endpoint"], "https://demo.eks.invalid");
    for status in [json!({}), json!({"atProvider": {}}), json!({"atProvider": {"outputs": null}, "conditions": []})] {
        simulation.api.edit(&eks(), |workspace| workspace["status"] = status.clone());
        wait(&mut simulation, minutes(30));
        simulation.api.edit(&eks(), |workspace| workspace["status"] = status.clone());
        simulation.run_capt();
        assert_eq!(plane(&simulation)["workspaceStatus"]["atProvider"], known, "{status}");
    }
    // A newer value that says something replaces it.
    simulation.terraform(with_output("oidc_provider_arn", json!("arn:aws:iam::1:oidc-provider/x")));
    assert!(simulation.run());
    let new = plane(&simulation)["workspaceStatus"]["atProvider"]["outputs"]["oidc_provider_arn"].clone();
    assert_eq!(new, "arn:aws:iam::1:oidc-provider/x");
}

#[test]
fn cb_110_failure_domains_that_are_gone_are_gone() {
    let zones = |zones: Option<Value>| {
        move |workspace: &Value| {
            let mut outputs: Outputs = terraform(workspace);
            if outputs.plain.remove("azs").is_some()
                && let Some(zones) = &zones
            {
                outputs.plain.insert("azs".into(), zones.clone());
            }
            outputs
        }
    };
    let shown = |simulation: &capt_sim::Simulation| {
        let names = infrastructure(simulation)["failureDomains"].as_array().cloned().unwrap_or_default();
        names.iter().map(|zone| zone["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for last in [Some(json!([])), None] {
        let mut simulation = created_with(zones(Some(json!(["a", "b"]))));
        assert_eq!(shown(&simulation), ["a", "b"]);
        simulation.terraform(zones(Some(json!(["a"]))));
        assert!(simulation.run());
        assert_eq!(shown(&simulation), ["a"]);
        // While nothing is known of the outputs the last ones stay.
        let status = simulation.api.get(&vpc()).unwrap()["status"].clone();
        simulation.api.edit(&vpc(), |workspace| workspace["status"]["atProvider"] = json!({}));
        simulation.run_capt();
        assert_eq!(shown(&simulation), ["a"]);
        simulation.api.edit(&vpc(), |workspace| workspace["status"] = status);
        simulation.terraform(zones(last.clone()));
        assert!(simulation.run());
        assert_eq!(shown(&simulation), [""; 0], "{last:?}");
        assert_eq!(infrastructure(&simulation)["state"], "Ready");
    }
}
