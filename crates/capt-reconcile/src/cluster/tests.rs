//! The exact writes of the pass of a Cluster, in each mode.

mod references;

use capt_api::foreign::ClusterVersion;
use capt_status::{Span, Time};
use serde_json::{Value, json};

use super::mode::{ClusterCrd, ClusterStatus, Mode, decide};
use crate::{
    object::{Kind, Object, ObjectKey},
    pass::{self, Observation, Settings},
    plan::{Action, EventType, Op, Plan, Precondition},
    world::{Coverage, View, World},
};

const CREATED: &str = "2026-01-01T00:00:00Z";

fn at(minutes: i64) -> Time {
    CREATED.parse::<Time>().unwrap().plus(Span::from_minutes(minutes))
}

fn auto(crd: ClusterCrd) -> Settings {
    Settings { cluster_crd: crd, ..Settings::default() }
}

fn forced(cluster_status: ClusterStatus) -> Settings {
    Settings { cluster_status, ..Settings::default() }
}

fn cluster(version: &str) -> Value {
    let reference = |group: &str, kind: &str| match version {
        "v1beta1" => json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "p", "namespace": "ns"}),
        _ => json!({"apiGroup": group, "kind": kind, "name": "p"}),
    };
    json!({
        "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "cu", "resourceVersion": "5", "generation": 2, "creationTimestamp": CREATED},
        "spec": {
            "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "CAPTCluster"),
            "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "CAPTControlPlane"),
        },
    })
}

fn provider(kind: &str, status: &Value) -> Value {
    let group = if kind == "CAPTCluster" { "infrastructure" } else { "controlplane" };
    let spec = if kind == "CAPTCluster" {
        json!({"region": "eu-west-1"})
    } else {
        json!({"version": "1.31", "workspaceTemplateRef": {"name": "t"}, "controlPlaneEndpoint": {"host": "a.invalid", "port": 443}})
    };
    json!({
        "apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind,
        "metadata": {"name": "p", "namespace": "ns", "uid": format!("{kind}-uid"), "resourceVersion": "7", "generation": 1,
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cu"}]},
        "spec": spec, "status": status,
    })
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": CREATED, "observedGeneration": 1})
}

fn served() -> [Value; 2] {
    [
        provider(
            "CAPTCluster",
            &json!({"ready": true, "initialization": {"provisioned": true}, "conditions": [condition("Ready", "True", "Ready")],
                "failureDomains": [{"name": "a", "controlPlane": true}]}),
        ),
        provider(
            "CAPTControlPlane",
            &json!({"ready": true, "initialized": true, "initialization": {"controlPlaneInitialized": true},
                "conditions": [condition("Available", "True", "Available"), condition("Ready", "True", "Ready")]}),
        ),
    ]
}

fn world(objects: &[Value]) -> World {
    let mut world = World::with_coverage(Coverage::Cached);
    for object in objects {
        add(&mut world, object);
    }
    world
}

fn add(world: &mut World, object: &Value) {
    let group = object["apiVersion"].as_str().unwrap().split_once('/').unwrap().0;
    let kind = Kind::find(group, object["kind"].as_str().unwrap()).unwrap();
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = ObjectKey::new(kind, &text("namespace"), &text("name"));
    world.watched(key, 0, Object::parse(kind, object));
}

fn plan(settings: Settings, world: &World, now: Time) -> Plan {
    let key = ObjectKey::new(Kind::Cluster, "ns", "c");
    match pass::observe(&View::new(world), &key, settings) {
        Observation::Complete(observed) => pass::plan(&observed, now),
        other => panic!("{other:?}"),
    }
}

fn plan_of(settings: Settings, objects: &[Value]) -> Plan {
    plan(settings, &world(objects), at(10))
}

fn with(mut cluster: Value, field: &str, value: Value) -> Value {
    *cluster
        .pointer_mut(field.rsplit_once('/').unwrap().0)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .entry(field.rsplit_once('/').unwrap().1.to_owned())
        .or_insert(Value::Null) = value;
    cluster
}

/// The status patch of a plan, which is its last action.
fn status_patch(plan: &Plan) -> &Value {
    match plan.actions.last().map(|action| &action.op) {
        Some(Op::MergeStatus { manager: "capt-cluster-status", status }) => status,
        other => panic!("{other:?}\n{}", plan.note),
    }
}

/// The Cluster as it is after the plan's own writes.
fn after(mut cluster: Value, plan: &Plan) -> Value {
    for Action { op, target, .. } in &plan.actions {
        if target.kind == Kind::Cluster {
            match op {
                Op::MergePatch { body } => json_merge(&mut cluster, body),
                Op::MergeStatus { manager: _, status } => json_merge(&mut cluster, &json!({ "status": status })),
                other => panic!("{other:?}"),
            }
        }
    }
    cluster
}

fn json_merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else { return *into = patch.clone() };
    if !into.is_object() {
        *into = json!({});
    }
    let fields = into.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            json_merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn standalone_has_to_be_proved() {
    let parsed = |value: &Value| capt_api::foreign::ClusterView::parse(value);
    let (auto, bare) = (ClusterStatus::Auto, ClusterCrd::Bare);
    let fresh = parsed(&cluster("v1beta2"));
    assert!(matches!(decide(auto, bare, false, &fresh, at(5)), Mode::Standalone(_)));
    assert_eq!(decide(auto, bare, false, &fresh, at(4)), Mode::Undecided(at(5)));
    let finalizer = parsed(&with(cluster("v1beta2"), "/metadata/finalizers", json!(["cluster.cluster.x-k8s.io"])));
    let observed = parsed(&with(cluster("v1beta2"), "/status", json!({"observedGeneration": 1})));
    let ageless = parsed(&with(cluster("v1beta2"), "/metadata/creationTimestamp", Value::Null));
    for (crd, core_seen, cluster) in [
        (bare, false, &finalizer),
        (bare, false, &observed),
        (bare, false, &ageless),
        (bare, true, &fresh),
        (ClusterCrd::OfCore, false, &fresh),
        (ClusterCrd::Unknown, false, &fresh),
    ] {
        assert!(matches!(decide(auto, crd, core_seen, cluster, at(99)), Mode::Contract(_)), "{crd:?} {core_seen}");
    }
    // The user's word goes before any sign.
    assert!(matches!(
        decide(ClusterStatus::Standalone, ClusterCrd::OfCore, true, &observed, at(0)),
        Mode::Standalone(_)
    ));
    assert!(matches!(decide(ClusterStatus::Contract, bare, false, &fresh, at(99)), Mode::Contract(_)));
}

/// An owner reference proves nothing, core's work on any Cluster does, and for as long as the process lives.
#[test]
fn contract_once_seen_is_sticky() {
    let mut world = world(&[served().as_slice(), &[cluster("v1beta2")]].concat());
    let settings = auto(ClusterCrd::Bare);
    assert!(plan(settings, &world, at(10)).note.starts_with("standalone: "));
    let mut other = with(cluster("v1beta2"), "/metadata/finalizers", json!(["cluster.cluster.x-k8s.io"]));
    other["metadata"]["name"] = json!("other");
    add(&mut world, &other);
    assert!(plan(settings, &world, at(10)).note.starts_with("contract: "));
    world.deleted(&ObjectKey::new(Kind::Cluster, "ns", "other"), 0);
    let plan = plan(settings, &world, at(10));
    assert!(plan.note.starts_with("contract: ") && plan.actions.is_empty(), "{plan:?}");
}

#[test]
fn beside_core_nothing_is_written() {
    let mut failed = served();
    failed[1]["status"]["failureReason"] = json!("CreateError");
    failed[1]["status"]["failureMessage"] = json!("no");
    for version in ["v1beta1", "v1beta2"] {
        for objects in [served(), failed.clone()] {
            for settings in [auto(ClusterCrd::OfCore), auto(ClusterCrd::Unknown), forced(ClusterStatus::Contract)] {
                let plan = plan_of(settings, &[&objects[..], &[cluster(version)]].concat());
                assert_eq!((&plan.actions[..], &plan.events[..], plan.next), (&[][..], &[][..], None), "{}", plan.note);
            }
        }
    }
    let undecided = plan(auto(ClusterCrd::Bare), &world(&[cluster("v1beta2")]), at(1));
    assert_eq!((undecided.actions.len(), undecided.next), (0, Some(at(5))), "{}", undecided.note);
}

#[test]
fn beside_core_the_provider_objects_are_not_even_read() {
    let reads = |cluster: Value| {
        let world = world(&[&served()[..], &[cluster]].concat());
        let view = View::new(&world);
        pass::observe(&view, &ObjectKey::new(Kind::Cluster, "ns", "c"), auto(ClusterCrd::OfCore));
        view.into_reads().len()
    };
    let status = json!({"observedGeneration": 2, "phase": "Provisioned"});
    let failed = json!({"observedGeneration": 2, "phase": "Failed", "failureMessage": "x"});
    for (version, status, expected) in
        [("v1beta2", &status, 1), ("v1beta1", &status, 1), ("v1beta2", &failed, 1), ("v1beta1", &failed, 3)]
    {
        let cluster = with(cluster(version), "/status", status.clone());
        assert_eq!(
            reads(cluster),
            expected,
            "{version} {status}: only the Cluster itself, unless there is something to repair"
        );
    }
}

#[test]
fn without_core_a_cluster_that_serves_is_provisioned() {
    let plan = plan_of(auto(ClusterCrd::Bare), &[&served()[..], &[cluster("v1beta2")]].concat());
    let [endpoint, status] = &plan.actions[..] else { panic!("{plan:?}") };
    assert_eq!(
        endpoint.op,
        Op::MergePatch { body: json!({"spec": {"controlPlaneEndpoint": {"host": "a.invalid", "port": 443}}}) }
    );
    let observed = Precondition::Observed { uid: "cu".into(), resource_version: "5".into() };
    assert_eq!((&endpoint.precondition, &status.precondition), (&observed, &Precondition::AfterAction(0)));
    assert_eq!(status.target, ObjectKey::new(Kind::Cluster, "ns", "c"), "the Cluster comes last");
    let of_cluster = |type_: &str, status: &str, reason: &str, since: &str| {
        json!({"type": type_, "status": status,
        "reason": reason, "message": "", "observedGeneration": 2, "lastTransitionTime": since})
    };
    let now = at(10).to_string();
    assert_eq!(
        *status_patch(&plan),
        json!({
            "phase": "Provisioned",
            "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
            "failureDomains": [{"name": "a", "controlPlane": true}],
            // Mirrors keep the time of what they mirror. No observedGeneration: it is the sign of core.
            "conditions": [
                of_cluster("Available", "True", "Available", &now),
                of_cluster("InfrastructureReady", "True", "Ready", CREATED),
                of_cluster("ControlPlaneInitialized", "True", "Initialized", &now),
                of_cluster("ControlPlaneAvailable", "True", "Available", CREATED),
                of_cluster("Paused", "False", "NotPaused", &now),
                of_cluster("Deleting", "False", "NotDeleting", &now),
            ],
        })
    );
    let events: Vec<_> = plan.events.iter().map(|event| (event.type_, event.reason)).collect();
    assert_eq!(
        events,
        [(EventType::Normal, "ClusterStatusStandalone"), (EventType::Normal, "Provisioned")],
        "each told once"
    );
    let cluster = after(cluster("v1beta2"), &plan);
    let again = plan_of(auto(ClusterCrd::Bare), &[&served()[..], &[cluster]].concat());
    assert_eq!((&again.actions[..], &again.events[..]), (&[][..], &[][..]), "a second pass writes nothing");
}

#[test]
fn without_core_the_old_version_gets_the_old_fields() {
    let plan = plan_of(auto(ClusterCrd::Bare), &[&served()[..], &[cluster("v1beta1")]].concat());
    let patch = status_patch(&plan);
    assert_eq!(
        (&patch["phase"], &patch["infrastructureReady"], &patch["controlPlaneReady"], &patch["initialization"]),
        (&json!("Provisioned"), &json!(true), &json!(true), &Value::Null)
    );
    let types: Vec<_> = patch["conditions"].as_array().unwrap().iter().map(|condition| &condition["type"]).collect();
    assert_eq!(types, ["ControlPlaneInitialized", "ControlPlaneReady", "InfrastructureReady"]);
    let cluster = after(cluster("v1beta1"), &plan);
    assert_eq!(capt_api::foreign::ClusterView::parse(&cluster).version, ClusterVersion::V1Beta1);
    assert_eq!(plan_of(auto(ClusterCrd::Bare), &[&served()[..], &[cluster]].concat()).actions, []);
}

#[test]
fn without_core_provider_objects_get_their_owner_as_core_sets_it() {
    let mut objects = served();
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "m"});
    objects[0]["metadata"]["ownerReferences"] = json!([foreign]);
    objects[1]["metadata"]["labels"] = Value::Null;
    let plan = plan_of(auto(ClusterCrd::Bare), &[&objects[..], &[cluster("v1beta2")]].concat());
    let [infrastructure, control_plane, ..] = &plan.actions[..] else { panic!("{plan:?}") };
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cu"});
    let label = json!({"cluster.x-k8s.io/cluster-name": "c"});
    assert_eq!(
        (&infrastructure.op, &infrastructure.precondition),
        (
            &Op::MergePatch { body: json!({"metadata": {"labels": label, "ownerReferences": [foreign, owner]}}) },
            &Precondition::Observed { uid: "CAPTCluster-uid".into(), resource_version: "7".into() }
        )
    );
    assert_eq!(control_plane.op, Op::MergePatch { body: json!({"metadata": {"labels": label}}) });
}

/// Whoever adopts an object hands its life to the garbage collector.
#[test]
fn what_may_be_somebody_elses_is_not_adopted() {
    let edits: [fn(&mut Value); 3] = [
        |object| object["metadata"]["ownerReferences"][0]["name"] = json!("other"),
        |object| {
            object["metadata"]["ownerReferences"] = Value::Null;
            object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
        },
        |object| {
            object["metadata"]["ownerReferences"] = Value::Null;
            object["metadata"]["deletionTimestamp"] = json!(CREATED);
        },
    ];
    for edit in edits {
        let mut objects = served();
        edit(&mut objects[0]);
        let plan = plan_of(auto(ClusterCrd::Bare), &[&objects[..], &[cluster("v1beta2")]].concat());
        assert!(plan.actions.iter().all(|action| action.target.kind == Kind::Cluster), "{plan:?}");
    }
    let mut unowned = served();
    unowned[0]["metadata"]["ownerReferences"] = Value::Null;
    let deleting = with(cluster("v1beta2"), "/metadata/deletionTimestamp", json!(CREATED));
    let plan = plan_of(auto(ClusterCrd::Bare), &[&unowned[..], &[deleting]].concat());
    assert!(plan.actions.iter().all(|action| action.target.kind == Kind::Cluster), "the collector would delete it");
    assert_eq!(status_patch(&plan)["phase"], "Deleting");
}

#[test]
fn a_cluster_of_other_providers_is_left_alone() {
    let foreign = with(
        cluster("v1beta2"),
        "/spec/infrastructureRef",
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "p"}),
    );
    let none = with(cluster("v1beta2"), "/spec", json!({}));
    for cluster in [foreign, none] {
        let plan = plan_of(forced(ClusterStatus::Standalone), &[&served()[..], &[cluster]].concat());
        assert_eq!((&plan.actions[..], plan.note.starts_with("left alone: ")), (&[][..], true), "{}", plan.note);
    }
}

#[test]
fn what_is_not_known_is_not_computed_with() {
    let mut world = world(&[&served()[..], &[cluster("v1beta2")]].concat());
    world.set_unknown(ObjectKey::new(Kind::CaptCluster, "ns", "p"));
    assert_eq!(plan(forced(ClusterStatus::Standalone), &world, at(10)).actions, []);
}

#[test]
fn failures_are_told_in_cores_words_and_go_when_nobody_reports_one() {
    let mut failed = served();
    failed[0]["status"]["failureReason"] = json!("CreateError");
    failed[0]["status"]["failureMessage"] = json!("vpc");
    failed[1]["status"]["failureMessage"] = json!("eks");
    let text = "Failure detected from referenced resource controlplane.cluster.x-k8s.io/v1beta1, Kind=CAPTControlPlane with name \"p\": eks";
    for (version, at) in [("v1beta2", "/deprecated/v1beta1"), ("v1beta1", "")] {
        let plan = plan_of(forced(ClusterStatus::Standalone), &[&failed[..], &[cluster(version)]].concat());
        let found = status_patch(&plan).pointer(at).unwrap();
        assert_eq!((&found["failureReason"], &found["failureMessage"]), (&json!("CreateError"), &json!(text)));
        assert_eq!(status_patch(&plan)["phase"], if version == "v1beta1" { "Failed" } else { "Provisioned" });
        let cluster = after(cluster(version), &plan);
        let healed =
            plan_of(forced(ClusterStatus::Standalone), &[&served()[..], std::slice::from_ref(&cluster)].concat());
        let gone = status_patch(&healed).pointer(at).unwrap();
        assert!(gone.as_object().unwrap().get("failureMessage").is_some_and(Value::is_null), "{gone}");
        let cluster = after(cluster, &healed);
        assert!(capt_api::foreign::ClusterView::parse(&cluster).failure_message.is_none());
    }
}

#[test]
fn a_paused_cluster_gets_the_paused_condition_and_nothing_else() {
    let mut unowned = served();
    unowned[0]["metadata"]["ownerReferences"] = Value::Null;
    let paused = with(cluster("v1beta2"), "/spec/paused", json!(true));
    let plan = plan_of(forced(ClusterStatus::Standalone), &[&unowned[..], std::slice::from_ref(&paused)].concat());
    let expected = json!({"conditions": [{"type": "Paused", "status": "True", "reason": "Paused",
        "message": "Cluster spec.paused is set to true", "observedGeneration": 2, "lastTransitionTime": at(10).to_string()}]});
    assert_eq!((plan.actions.len(), status_patch(&plan)), (1, &expected));
    let again = plan_of(forced(ClusterStatus::Standalone), &[&unowned[..], &[after(paused, &plan)]].concat());
    assert_eq!(again.actions, []);
}

#[test]
fn latches_of_a_cluster_do_not_fall_and_conditions_of_others_stay() {
    let stored = json!({
        "phase": "Provisioned", "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
        "conditions": [condition("UsersOwn", "True", "Because"), condition("ControlPlaneInitialized", "True", "Initialized")],
        "controlPlane": {"replicas": 3},
    });
    let cluster = with(
        with(cluster("v1beta2"), "/status", stored),
        "/spec/controlPlaneEndpoint",
        json!({"host": "b", "port": 1}),
    );
    let objects = [
        provider("CAPTCluster", &json!({"conditions": [condition("Ready", "False", "Gone")]})),
        provider("CAPTControlPlane", &json!({"conditions": [condition("Available", "False", "Gone")]})),
        cluster.clone(),
    ];
    let plan = plan_of(forced(ClusterStatus::Standalone), &objects);
    assert_eq!(plan.actions.len(), 1, "the endpoint is there already");
    let patch = status_patch(&plan);
    assert_eq!(patch.as_object().unwrap().keys().collect::<Vec<_>>(), ["conditions"], "{patch}");
    let found = |type_: &str| {
        patch["conditions"].as_array().unwrap().iter().find(|found| found["type"] == type_).unwrap().clone()
    };
    assert_eq!(found("UsersOwn"), condition("UsersOwn", "True", "Because"));
    assert_eq!(found("ControlPlaneInitialized"), condition("ControlPlaneInitialized", "True", "Initialized"));
    assert_eq!(found("Available")["status"], "False");
}

/// Core waits for both; a condition says which of the two is not there.
#[test]
fn a_missing_provider_object_is_told_as_core_tells_it() {
    let plan = plan_of(forced(ClusterStatus::Standalone), &[cluster("v1beta2")]);
    let patch = status_patch(&plan);
    assert_eq!(patch["phase"], "Provisioning");
    let found = |type_: &str| {
        let conditions = patch["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|found| found["type"] == type_).unwrap();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned()).join("|")
    };
    assert_eq!(found("InfrastructureReady"), "False|InfrastructureDoesNotExist|CAPTCluster does not exist");
    assert_eq!(found("ControlPlaneInitialized"), "Unknown|ControlPlaneDoesNotExist|CAPTControlPlane does not exist");
    assert_eq!(
        found("Available"),
        "False|NotAvailable|* InfrastructureReady: CAPTCluster does not exist\n* ControlPlaneAvailable: CAPTControlPlane does not exist"
    );
}

#[test]
fn a_stored_status_that_does_not_parse_is_left_as_it_is() {
    let cluster = with(cluster("v1beta2"), "/status", json!({"conditions": [{"type": "A"}]}));
    let plan = plan_of(forced(ClusterStatus::Standalone), &[&served()[..], &[cluster]].concat());
    assert!(plan.actions.iter().all(|action| !matches!(action.op, Op::MergeStatus { .. })), "{plan:?}");
    assert!(plan.note.contains("does not parse"), "{}", plan.note);
}
