//! Random lives with failures, restores and recoveries: what served is never destroyed, nothing that was
//! reached is taken back, and once everything works again it is Ready.

use std::collections::BTreeSet;

use crate::common::{FILES, create, documents, key, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::Request,
    object::{Kind, ObjectKey},
};
use capt_sim::{
    Simulation,
    provider::{Ending, Outputs},
};
use capt_status::{Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How Terraform ends from now on.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Works,
    Odd,
    Denied,
    Hangs,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Capt,
    CaptCrashesAfter(usize),
    Core,
    Provider,
    Terraform(Mood),
    /// A restore without status.
    LosesStatus(Kind),
    Probe(bool),
    Retry(u8),
    Clock(i64),
    Runs,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Capt),
        2 => (0usize..4).prop_map(Event::CaptCrashesAfter),
        2 => Just(Event::Core),
        3 => Just(Event::Provider),
        3 => prop_oneof![Just(Mood::Works), Just(Mood::Odd), Just(Mood::Denied), Just(Mood::Hangs)].prop_map(Event::Terraform),
        1 => prop_oneof![Just(Kind::CaptCluster), Just(Kind::CaptControlPlane)].prop_map(Event::LosesStatus),
        1 => any::<bool>().prop_map(Event::Probe),
        1 => any::<u8>().prop_map(Event::Retry),
        1 => (-60i64..1200).prop_map(Event::Clock),
        6 => Just(Event::Runs),
    ]
}

fn ends(mood: Mood) -> impl Fn(&Value) -> Outputs {
    move |workspace| {
        let result = match mood {
            Mood::Works => Ending::Success,
            Mood::Odd => Ending::Failure("something odd".to_owned()),
            Mood::Denied => Ending::Failure("AccessDenied: no".to_owned()),
            Mood::Hangs => Ending::Hang,
        };
        Outputs { result, ..terraform(workspace) }
    }
}

fn happen(simulation: &mut Simulation, event: Event) {
    match event {
        Event::Capt => {
            simulation.run_capt();
        }
        Event::CaptCrashesAfter(writes) => simulation.run_capt_until_crash(writes),
        Event::Core => {
            simulation.step_core();
        }
        Event::Provider => {
            simulation.step_provider();
        }
        Event::Terraform(mood) => simulation.terraform(ends(mood)),
        Event::LosesStatus(kind) => {
            simulation.api.edit(&key(kind, "demo"), |object| object["status"] = json!({}));
        }
        Event::Probe(answers) => {
            let (status, now) = (if answers { "True" } else { "False" }, simulation.api.now);
            let condition = json!({"type": "RemoteConnectionProbe", "status": status, "lastTransitionTime": now});
            simulation
                .api
                .edit(&key(Kind::Cluster, "demo"), |cluster| cluster["status"]["conditions"] = json!([condition]));
        }
        Event::Retry(word) => {
            simulation.api.edit(&key(Kind::CaptControlPlane, "demo"), |object| {
                object["metadata"]["annotations"]["capt.cluster.x-k8s.io/retry"] = json!(word.to_string());
            });
        }
        Event::Clock(seconds) => {
            let now = simulation.api.now.as_unix().saturating_add(seconds).max(0);
            simulation.api.now = Time::from_unix(now);
        }
        Event::Runs => {
            simulation.run_for(Span::from_minutes(3));
        }
    }
}

/// Uids of Workspaces of which the provider says that they were made.
fn made(simulation: &Simulation) -> BTreeSet<String> {
    let keys: Vec<&ObjectKey> = simulation.api.keys().filter(|key| matches!(key.kind, Kind::Workspace(_))).collect();
    keys.into_iter()
        .filter_map(|key| simulation.api.get(key))
        .filter(|workspace| {
            workspace["metadata"]["annotations"].get("crossplane.io/external-create-succeeded").is_some()
        })
        .map(|workspace| workspace["metadata"]["uid"].as_str().unwrap().to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_served_is_never_destroyed_and_in_the_end_all_is_ready(
        recreate in any::<bool>(),
        events in prop::collection::vec(event(), 0..50),
    ) {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES[..2]);
        for mut object in documents("cluster.yaml") {
            if recreate && object["kind"] != "Cluster" {
                object["spec"]["recoveryStrategy"] = json!({"actions": [
                    {"type": "RetryWorkspace", "timeout": "1m"},
                    {"type": "RecreateWorkspace", "parameters": {"confirm": "true"}},
                ]});
            }
            create(&mut simulation, object);
        }
        simulation.step_core();
        let (mut stands, mut seen) = (BTreeSet::new(), 0);
        for event in events.into_iter().chain([Event::Terraform(Mood::Works), Event::Probe(true)]) {
            happen(&mut simulation, event);
            for (request, _) in &simulation.requests[seen..] {
                if let Request::Delete { target, uid, resource_version } = request {
                    prop_assert!(matches!(target.kind, Kind::Workspace(_)) && recreate, "{target} is deleted by nobody's wish");
                    prop_assert!(!stands.contains(uid), "{target} stood, and is deleted after {event:?}");
                    prop_assert!(resource_version.is_some(), "{target} is deleted without a look");
                }
            }
            seen = simulation.requests.len();
            stands.extend(made(&simulation));
        }
        // A failure that was final needs the user's word.
        for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
            simulation.api.edit(&key(kind, "demo"), |object| {
                object["metadata"]["annotations"]["capt.cluster.x-k8s.io/retry"] = json!("the last");
            });
        }
        prop_assert!(simulation.run_for(Span::from_minutes(30)), "it never comes to rest");
        for kind in [Kind::CaptCluster, Kind::CaptControlPlane] {
            let status = status(&simulation, kind, "demo");
            prop_assert_eq!([&status["state"], &status["ready"]], [&json!("Ready"), &json!(true)], "{:#}", status);
            prop_assert_eq!(&status["failureReason"], &Value::Null);
        }
        let before = simulation.requests.len();
        prop_assert!(!simulation.resync());
        prop_assert_eq!(simulation.requests.len(), before);
    }
}
