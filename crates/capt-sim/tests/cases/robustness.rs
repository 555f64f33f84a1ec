//! Pauses, odd objects and odd values.

use capt_reconcile::{
    executor::Request,
    object::Kind,
    pass::KINDS,
    plan::{Op, Plan},
};
use capt_sim::Simulation;
use capt_status::Span;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    common::{condition, create, documents, key, ready},
    help::{cluster_key, fresh, infrastructure_key, minutes, plane, plane_key, wait},
    workspaces::{self, APPLY},
};

const PAUSED: &str = "cluster.x-k8s.io/paused";

/// What the writes since `before` say; with nothing but the word that it is paused they are empty.
fn loud(simulation: &Simulation, before: usize) -> Vec<String> {
    let is_quiet = |request: &Request| match request {
        Request::ApplyStatus { body, .. } => condition(&body["status"], "Paused")["status"] == "True",
        // The pause is handed on to the Workspace, and a move is told to wait.
        Request::MergePatch { body, .. } => body.get("spec").is_none() && body.to_string().contains("paused"),
        Request::JsonPatch { operations, .. } => {
            operations.iter().skip(1).all(|operation| operation["path"].as_str().unwrap().contains("/annotations/"))
        }
        Request::Get { .. } | Request::List { .. } => true,
        Request::Create { .. } | Request::MergeStatus { .. } | Request::Delete { .. } => false,
    };
    simulation.requests[before..]
        .iter()
        .filter(|(request, _)| !is_quiet(request))
        .map(|(request, _)| format!("{request:?}"))
        .collect()
}

#[test]
fn cb_123_a_paused_object_is_left_alone() {
    let mut simulation = ready();
    simulation.api.edit(&plane_key(), |object| object["metadata"]["annotations"][PAUSED] = json!(""));
    assert!(simulation.run());
    let spec = simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap()["spec"].clone();
    let before = simulation.requests.len();
    simulation.api.edit(&plane_key(), |object| object["spec"]["version"] = json!("1.32"));
    wait(&mut simulation, minutes(120));
    assert_eq!(loud(&simulation, before), [""; 0]);
    assert_eq!(simulation.api.get(&key(Kind::Apply, "demo-eks-controlplane-apply")).unwrap()["spec"], spec);
    assert_eq!(condition(&plane(&simulation), "Paused")["status"], "True");
    // Not even a deletion goes on.
    simulation.api.delete(&plane_key(), None);
    wait(&mut simulation, minutes(120));
    assert_eq!(loud(&simulation, before), [""; 0]);
}

/// Who, something that pauses, and what is paused by it.
type Switch<'a> = (&'a str, Box<dyn Fn(&mut Simulation)>, Vec<(Kind, &'a str)>);

#[test]
fn cb_124_both_switches_pause_on_every_way() {
    let annotate = |kind, name: &'static str| {
        move |simulation: &mut Simulation| {
            simulation.api.edit(&key(kind, name), |object| object["metadata"]["annotations"][PAUSED] = json!("true"));
        }
    };
    let by_cluster = |simulation: &mut Simulation| {
        simulation.api.edit(&cluster_key(), |cluster| cluster["spec"]["paused"] = json!(true));
    };
    let switches: [Switch<'_>; 4] = [
        (
            "Cluster",
            Box::new(by_cluster),
            vec![
                (Kind::CaptControlPlane, "demo"),
                (Kind::CaptCluster, "demo"),
                (Kind::Apply, "demo-vpc"),
                (Kind::Apply, "demo-eks-controlplane-apply"),
            ],
        ),
        (
            "control plane",
            Box::new(annotate(Kind::CaptControlPlane, "demo")),
            vec![(Kind::CaptControlPlane, "demo"), (Kind::Apply, "demo-eks-controlplane-apply")],
        ),
        (
            "CAPTCluster",
            Box::new(annotate(Kind::CaptCluster, "demo")),
            vec![(Kind::CaptCluster, "demo"), (Kind::Apply, "demo-vpc")],
        ),
        ("apply", Box::new(annotate(Kind::Apply, "demo-vpc")), vec![(Kind::Apply, "demo-vpc")]),
    ];
    for (name, switch, paused) in switches {
        for after_edit in [true, false] {
            let mut simulation = ready();
            // Whichever event comes first: that of the pause, or that of an edit.
            if after_edit {
                switch(&mut simulation);
                assert!(simulation.run());
            }
            let workspaces = simulation.requests.len();
            simulation.api.edit(&plane_key(), |object| object["spec"]["additionalTags"]["a"] = json!("b"));
            simulation.api.edit(&key(Kind::Template, "vpc-template"), |template| {
                template["spec"]["template"]["spec"]["forProvider"]["module"] = json!("# edited");
            });
            switch(&mut simulation);
            wait(&mut simulation, minutes(10));
            let specs: Vec<&str> = simulation.requests[workspaces..]
                .iter()
                .filter_map(|(request, _)| match request {
                    Request::MergePatch { target, body } if body.get("spec").is_some() => Some(target.name.as_str()),
                    _ => None,
                })
                .collect();
            for (kind, object) in &paused {
                let found = simulation.api.get(&key(*kind, object)).unwrap();
                assert_eq!(condition(&found["status"], "Paused")["status"], "True", "{name}: {object}");
                if *kind == Kind::Apply {
                    let made = object.trim_end_matches("-apply");
                    assert!(!specs.contains(&made), "{name}: the Workspace {made} is written");
                }
            }
        }
    }
}

#[test]
fn cb_122_one_odd_object_stops_no_other() {
    let mut simulation = fresh();
    for number in 0..50 {
        for mut object in documents("cluster.yaml") {
            let name = format!("demo-{number}");
            object["metadata"]["name"] = json!(name);
            if object["kind"] == "Cluster" {
                object["spec"]["infrastructureRef"]["name"] = json!(name);
                object["spec"]["controlPlaneRef"]["name"] = json!(name);
            }
            if number == 25 && object["kind"] == "CAPTControlPlane" {
                object["spec"]["version"] = json!({"not": "a text"});
            }
            create(&mut simulation, object);
        }
    }
    assert!(simulation.run());
    for number in 0..50 {
        let found = simulation.api.get(&key(Kind::CaptControlPlane, &format!("demo-{number}"))).unwrap();
        let expected = if number == 25 { Value::Null } else { json!("Ready") };
        assert_eq!(found["status"]["state"], expected, "{number}: {:#}", found["status"]);
    }
    // Mended, it goes on.
    simulation.api.edit(&key(Kind::CaptControlPlane, "demo-25"), |object| object["spec"]["version"] = json!("1.31"));
    assert!(simulation.run());
    let found = simulation.api.get(&key(Kind::CaptControlPlane, "demo-25")).unwrap();
    assert_eq!(found["status"]["state"], "Ready");
}

#[test]
fn cb_133_a_value_is_a_value_and_never_a_piece_of_json() {
    let values =
        ["\"", "\\", "a\nb", "${cidr}", "$${x}", "\u{1f980}\u{0}", "\"}], \"source\": \"Remote\", \"x\": [{\"y\": \""];
    for value in values {
        let mut simulation = workspaces::world();
        simulation.api.edit(&workspaces::key(Kind::Template, workspaces::TEMPLATE), |template| {
            let spec = &mut template["spec"]["template"]["spec"]["forProvider"];
            spec["module"] = json!("a = \"${cidr}\" b = ${var.cidr} c = ${jsonencode(cidr)}");
            spec["vars"] = json!([{"key": "${cidr}", "value": "<${cidr}|${cidr}>"}]);
        });
        let mut apply = workspaces::apply(APPLY);
        apply["spec"]["variables"]["cidr"] = json!(value);
        simulation.api.create(&workspaces::key(Kind::Apply, APPLY), apply);
        assert!(simulation.run());
        let mut expected = workspaces::spec();
        expected["forProvider"]["module"] =
            json!(format!("a = \"{value}\" b = ${{var.cidr}} c = ${{jsonencode(cidr)}}"));
        expected["forProvider"]["vars"] = json!([{"key": value, "value": format!("<{value}|{value}>")}]);
        assert_eq!(simulation.api.get(&workspaces::workspace()).unwrap()["spec"], expected, "{value:?}");
    }
}

/// Every place in a document, objects and lists included.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.push(at.clone());
                places(inner, &at, found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                found.push(format!("{at}/{index}"));
                places(inner, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts something else, or nothing, in the place number `which` of an object.
fn mangle(object: &mut Value, which: usize, with: usize) {
    let mut found = Vec::new();
    places(object, "", &mut found);
    // Without its name an object cannot come from an API server.
    found.retain(|at| !matches!(at.as_str(), "/metadata" | "/metadata/name" | "/metadata/namespace" | "/metadata/uid"));
    let Some(at) = found.get(which % found.len().max(1)) else { return };
    let (parent, name) = at.rsplit_once('/').unwrap();
    let odd =
        [Value::Null, json!(""), json!(-1), json!([]), json!({}), json!(true), json!("\u{0}\u{1f980}"), json!([null])];
    match (object.pointer_mut(parent), with % (odd.len() + 1)) {
        (Some(Value::Object(fields)), 0) => drop(fields.remove(&name.replace("~1", "/").replace("~0", "~"))),
        (Some(Value::Array(items)), 0) => drop(items.remove(name.parse().unwrap())),
        (_, with) => *object.pointer_mut(at).unwrap() = odd[with.saturating_sub(1)].clone(),
    }
}

/// Each field of each object of a cluster that is ready, gone or of another type, one after the other.
#[test]
fn cb_139_no_single_field_is_needed() {
    let mut simulation = ready();
    let objects: Vec<_> =
        simulation.api.keys().map(|key| (key.clone(), simulation.api.get(key).unwrap().clone())).collect();
    let passes: Vec<_> = objects.iter().map(|(key, _)| key.clone()).filter(|key| KINDS.contains(&key.kind)).collect();
    let mut asked = 0;
    for (key, object) in &objects {
        let mut found = Vec::new();
        places(object, "", &mut found);
        for which in 0..found.len() {
            // Missing, a negative number, an object.
            for with in [0, 3, 5] {
                let mut odd = object.clone();
                mangle(&mut odd, which, with);
                simulation.api.restore(key, odd);
                for pass in &passes {
                    let actions = simulation.plan_shuffled(pass, 0).map_or_else(Vec::new, |plan| plan.actions);
                    assert!(actions.iter().all(|action| action.op != Op::Delete), "{key} {which} {with}: {actions:?}");
                    asked += 1;
                }
            }
        }
        simulation.api.restore(key, object.clone());
    }
    assert!(asked > 3000, "{asked}");
}

/// How many random worlds: `CAPT_ODD_WORLDS=100000` for a night.
fn odd_worlds() -> u32 {
    std::env::var("CAPT_ODD_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: odd_worlds(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any field of any object is missing or of another type, several at once: a pass ends, says the same
    /// when it is asked again, and deletes nothing.
    #[test]
    fn cb_139_nothing_that_is_missing_or_odd_ends_the_process(
        rounds in 0usize..12,
        mangled in prop::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 1..8),
    ) {
        let mut simulation = fresh();
        for _ in 0..rounds {
            simulation.api.now = simulation.api.now.plus(Span::from_seconds(30));
            simulation.step_core();
            simulation.run_capt();
            simulation.step_provider();
        }
        let keys: Vec<_> = simulation.api.keys().cloned().collect();
        for (object, which, with) in mangled {
            let key = keys[object % keys.len()].clone();
            simulation.api.edit(&key, |object| mangle(object, which, with));
        }
        for key in simulation.api.keys().filter(|key| KINDS.contains(&key.kind)).cloned().collect::<Vec<_>>() {
            let plan = simulation.plan(&key);
            prop_assert_eq!(&plan, &simulation.plan(&key));
            // A world that is built anew has not seen who was there before.
                let actions = |plan: &Option<Plan>| plan.as_ref().map(|plan| plan.actions.clone());
                prop_assert_eq!(actions(&plan), actions(&simulation.plan_shuffled(&key, 7)));
            for action in plan.into_iter().flat_map(|plan| plan.actions) {
                let is_deleting = |key| simulation.api.get(key).is_some_and(|object: &Value| !object["metadata"]["deletionTimestamp"].is_null());
                prop_assert!(action.op != Op::Delete || is_deleting(&key), "{:?}", action);
            }
        }
        simulation.run_capt();
        prop_assert!(simulation.api.get(&infrastructure_key()).is_some());
    }
}
