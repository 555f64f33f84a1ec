//! Changes of a cluster that serves: made without dropping a latch, or told and not made.

use std::{cell::Cell, rc::Rc};

use crate::common::{FILES, condition, create, documents, key, ready, simulation, status, terraform};
use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    executor::{Request, Response},
    object::{Kind, Object, ObjectKey},
    world::World,
};
use capt_sim::{
    Api, Simulation,
    provider::{Ending, Outputs},
    simulation::hooks::Hooks,
};
use capt_status::{Span, Time};
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

/// Kind and name of a provider object, the apply that it uses and its Workspace.
const USED: [(Kind, &str, &str); 2] = [
    (Kind::CaptCluster, "demo-vpc", "demo-vpc"),
    (Kind::CaptControlPlane, "demo-eks-controlplane-apply", "demo-eks-controlplane"),
];

fn workspaces(simulation: &Simulation) -> Vec<String> {
    let keys = simulation.api.keys_of(Kind::Workspace(WorkspaceApi::Cluster));
    keys.into_iter().map(|key| key.name.clone()).collect()
}

fn use_apply(simulation: &mut Simulation, kind: Kind, name: &str) {
    simulation.api.edit(&key(kind, "demo"), |object| {
        object["spec"]["workspaceTemplateApplyName"] = json!(name);
        // Not even the word that allows a new Workspace allows a second one.
        object["metadata"]["annotations"]["capt.cluster.x-k8s.io/recreate-workspace"] = json!(name);
    });
}

#[test]
fn an_apply_under_another_name_makes_nothing_beside_what_runs() {
    for (kind, used, workspace) in USED {
        for was_ready in [false, true] {
            let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
            if !was_ready {
                simulation.terraform(move |found| {
                    let is_it = found["metadata"]["name"] == workspace;
                    Outputs { result: if is_it { Ending::Hang } else { Ending::Success }, ..terraform(found) }
                });
            }
            assert!(simulation.run());
            let before = workspaces(&simulation);
            assert!(before.contains(&workspace.to_owned()));
            use_apply(&mut simulation, kind, "other");
            assert!(simulation.run());
            assert_eq!(workspaces(&simulation), before, "{kind:?}, ready: {was_ready}");
            let shown = status(&simulation, kind, "demo");
            assert_eq!(shown["state"], if was_ready { "Degraded" } else { "Failed" });
            assert!(shown.to_string().contains("UnsupportedChange") && shown.to_string().contains(used), "{shown}");
            // The former name again, and all is well; the other apply stands for nothing.
            simulation.terraform(terraform);
            simulation
                .api
                .edit(&key(kind, "demo"), |object| object["spec"]["workspaceTemplateApplyName"] = json!(used));
            assert!(simulation.run());
            assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
            assert!(before.iter().all(|name| workspaces(&simulation).contains(name)));
            assert!(!workspaces(&simulation).contains(&"other".to_owned()));
            let other = status(&simulation, Kind::Apply, "other");
            assert_eq!(condition(&other, "Synced")["reason"], "NotWanted");
            assert!(simulation.provider.states().values().all(|counts| counts.created <= 1 && counts.destroyed == 0));
        }
    }
}

/// Every pass sees this apply as it was made, as long as it is told to.
struct Behind {
    apply: ObjectKey,
    on: Rc<Cell<bool>>,
}

impl Hooks for Behind {
    fn sees(&mut self, _pass: &ObjectKey, world: &World, api: &Api, _now: Time) -> Option<World> {
        let first = api.changes(0).iter().find(|change| change.key == self.apply).filter(|_| self.on.get())?;
        let mut world = world.clone();
        world.deleted(&self.apply, 0);
        let object = Object::parse(Kind::Apply, first.object.as_ref()?);
        world.watched(self.apply.clone(), first.resource_version, object);
        Some(world)
    }
}

/// Whose apply it was has written nothing down of its Workspace, as after a crash right after the creation.
#[test]
fn nor_where_the_apply_of_the_former_name_is_seen_without_the_workspace_that_it_has() {
    for (kind, used, workspace) in USED {
        let on = Rc::new(Cell::new(false));
        let behind = Behind { apply: key(Kind::Apply, used), on: Rc::clone(&on) };
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES).with_hooks(behind);
        simulation.terraform(move |found| {
            let is_it = found["metadata"]["name"] == workspace;
            Outputs { result: if is_it { Ending::Hang } else { Ending::Success }, ..terraform(found) }
        });
        assert!(simulation.run());
        let (before, requests) = (workspaces(&simulation), simulation.requests.len());
        on.set(true);
        use_apply(&mut simulation, kind, "other");
        assert!(simulation.run_for(Span::from_minutes(1)));
        assert_eq!(workspaces(&simulation), before, "{kind:?}: its label says whose the Workspace is");
        let words = format!("the owner has its infrastructure in WorkspaceTemplateApply {used},");
        assert!(status(&simulation, kind, "demo").to_string().contains(&words));
        let asks = |(request, _): &(Request, _)| !request.is_write();
        assert!(!simulation.requests[requests..].iter().any(asks), "what is known needs no question");
    }
}

#[test]
fn nor_where_the_apply_of_the_former_name_may_still_get_one() {
    for (kind, used, workspace) in USED {
        let mut simulation = simulation(WorkspaceApi::Cluster, &FILES);
        // The POST was sent, and its process stands still.
        simulation.refuse(move |request| match request {
            Request::Create { target, body: _ } if target.kind != Kind::Apply && target.name == workspace => {
                Some(Response::NoAnswer("the time is over".to_owned()))
            }
            _ => None,
        });
        simulation.run_for(Span::from_seconds(30));
        let apply = key(Kind::Apply, used);
        simulation.api.edit(&apply, |apply| apply["spec"]["templateRef"]["name"] = json!("none"));
        simulation.refuse(|_| None);
        use_apply(&mut simulation, kind, "other");
        assert!(simulation.run_for(Span::from_minutes(5)));
        assert!(!workspaces(&simulation).contains(&"other".to_owned()), "{kind:?}");
        let shown = status(&simulation, kind, "demo");
        assert_eq!(shown["state"], "Failed");
        let words =
            format!("may still get its infrastructure from WorkspaceTemplateApply {used}, and none is made beside it");
        assert!(shown.to_string().contains(&words) && shown.to_string().contains(&format!("or delete {used}")));
        // The user says that nothing is on its way.
        simulation.api.delete(&apply, None);
        assert!(simulation.run_for(Span::from_minutes(5)));
        assert!(simulation.api.get(&apply).is_none());
        assert!(workspaces(&simulation).contains(&"other".to_owned()), "{kind:?}");
        assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    }
}

/// No pass sees the Workspace that is there, as long as it is told to.
struct Blind {
    workspace: ObjectKey,
    on: Rc<Cell<bool>>,
}

impl Hooks for Blind {
    fn sees(&mut self, _pass: &ObjectKey, world: &World, _api: &Api, _now: Time) -> Option<World> {
        self.on.get().then(|| {
            let mut world = world.clone();
            world.deleted(&self.workspace, 0);
            world
        })
    }
}

/// The patch before a creation that is not the first changes nothing, so its answer is no reason to look again.
#[test]
fn a_workspace_that_is_there_and_not_seen_is_asked_for_less_and_less_often() {
    let workspace = key(Kind::Workspace(WorkspaceApi::Cluster), "demo-eks-controlplane");
    let on = Rc::new(Cell::new(false));
    let blind = Blind { workspace: workspace.clone(), on: Rc::clone(&on) };
    let mut simulation = simulation(WorkspaceApi::Cluster, &FILES).with_hooks(blind);
    let hangs = |found: &Value| Outputs { result: Ending::Hang, ..terraform(found) };
    simulation
        .terraform(move |found| if found["metadata"]["name"] == "demo-vpc" { terraform(found) } else { hangs(found) });
    assert!(simulation.run());
    assert!(simulation.api.get(&workspace).is_some());
    let apply = key(Kind::Apply, USED[1].1);
    on.set(true);
    simulation.api.edit(&apply, |apply| apply["metadata"]["annotations"]["somebody"] = json!("was here"));
    let before = simulation.requests.len();
    simulation.run_for(Span::from_minutes(5));
    let creations =
        |(request, _): &&(Request, _)| matches!(request, Request::Create { target, .. } if *target == workspace);
    let asked = simulation.requests[before..].iter().filter(creations).count();
    assert!((2..=40).contains(&asked), "asked {asked} times in five minutes");
    on.set(false);
    assert!(simulation.run());
}

#[test]
fn what_somebody_adds_to_the_template_reference_of_an_apply_is_taken_back_once() {
    let mut simulation = ready();
    for (_, used, _) in USED {
        simulation
            .api
            .edit(&key(Kind::Apply, used), |apply| apply["spec"]["templateRef"]["namespace"] = json!("other"));
        let before = simulation.writes().count();
        assert!(simulation.run(), "it is written over and over");
        let apply = simulation.api.get(&key(Kind::Apply, used)).unwrap();
        assert_eq!(apply["spec"]["templateRef"].get("namespace"), None);
        assert!(simulation.writes().count() - before <= 6, "{}", simulation.writes().count() - before);
        assert_eq!(status(&simulation, Kind::CaptControlPlane, "demo")["state"], "Ready");
    }
}
