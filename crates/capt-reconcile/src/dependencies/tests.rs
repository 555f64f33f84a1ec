//! The graphs of small worlds.

use capt_status::dependencies::MAX_NODES;
use serde_json::{Value, json};

use super::*;
use crate::{
    object::Object,
    plan::{Op, Precondition},
    world::{Coverage, Read, World},
};

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let group = match kind {
        "Cluster" => "cluster.x-k8s.io/v1beta2",
        "CAPTControlPlane" => "controlplane.cluster.x-k8s.io/v1beta1",
        "Workspace" => "tf.upbound.io/v1beta1",
        "Secret" => "v1",
        _ => "infrastructure.cluster.x-k8s.io/v1beta1",
    };
    let mut value = json!({"apiVersion": group, "kind": kind, "spec": spec,
        "metadata": {"name": name, "namespace": "ns", "uid": format!("{kind}-{name}"), "generation": 1}});
    if kind == "Workspace" {
        value["metadata"]["namespace"] = Value::Null;
    }
    value
}

fn owned(mut value: Value) -> Value {
    value["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cu"}]);
    value
}

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::with_coverage(Coverage::Cached);
    for value in objects {
        let group = value["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
        let kind = Kind::find(group, value["kind"].as_str().unwrap()).unwrap();
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
        world.watched(ObjectKey::new(kind, &text("namespace"), &text("name")), 0, Object::parse(kind, &value));
    }
    world
}

/// What the status of `root` shows; and a stored one says so exactly if it is this one.
fn shown(graph: &Graph, root: &str, state: State, ready: bool, actions: &[Action]) -> Dependencies {
    let root = key(root);
    let after = After { root: &root, state, ready, actions };
    let shown = graph.status(&after);
    assert!(graph.is_shown_by(&shown, &after), "{shown:?}");
    let others = |change: fn(&mut Dependencies, &str)| {
        shown.nodes.keys().map(move |name| {
            let mut other = graph.status(&after);
            change(&mut other, name);
            other
        })
    };
    let changes: [fn(&mut Dependencies, &str); 10] = [
        |it, name| drop(it.nodes.remove(name)),
        |it, name| it.nodes.get_mut(name).unwrap().type_ = "Other".to_owned(),
        |it, name| it.nodes.get_mut(name).unwrap().status = "Other".to_owned(),
        |it, name| it.nodes.get_mut(name).unwrap().name = "other".to_owned(),
        |it, name| it.nodes.get_mut(name).unwrap().namespace = Some("other".to_owned()),
        |it, name| drop(it.edges.remove(name)),
        |it, name| drop(it.edges.get_mut(name).and_then(Vec::pop)),
        |it, name| it.edges.entry(name.to_owned()).or_default().push("other".to_owned()),
        |it, name| {
            it.edges.get_mut(name).and_then(|targets| targets.last_mut()).into_iter().for_each(|last| last.push('x'));
        },
        |it, _| it.truncated = !it.truncated,
    ];
    for other in changes.into_iter().flat_map(others) {
        assert_eq!(graph.is_shown_by(&other, &after), other == shown, "{other:?}");
    }
    shown
}

fn apply(name: &str, waits: &[&str]) -> Value {
    let waits: Vec<Value> = waits.iter().map(|name| json!({"name": name})).collect();
    object("WorkspaceTemplateApply", name, &json!({"templateRef": {"name": "t"}, "waitForWorkspaces": waits}))
}

/// The Workspace of the apply of that name, which the provider has made.
fn workspace(name: &str, of: &str) -> Value {
    let mut value = object(
        "Workspace",
        name,
        &json!({"writeConnectionSecretToRef": {"name": format!("{name}-out"), "namespace": "ns"}}),
    );
    value["metadata"]["labels"] = json!({"capt.cluster.x-k8s.io/owner-uid": format!("WorkspaceTemplateApply-{of}")});
    value
}

const INFRASTRUCTURE: &str = "CAPTCluster/ns/i";
const PLANE: &str = "CAPTControlPlane/ns/p";
const VPC: &str = "WorkspaceTemplateApply/ns/i-vpc";
const EKS: &str = "WorkspaceTemplateApply/ns/p-eks-controlplane-apply";

/// What a user creates.
fn declared() -> Vec<Value> {
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CAPTCluster", "name": "i"});
    let plane = json!({"version": "1.31", "workspaceTemplateRef": {"name": "t", "namespace": "shared"}});
    vec![
        object("Cluster", "c", &json!({"infrastructureRef": reference})),
        owned(object("CAPTCluster", "i", &json!({"region": "eu-west-1", "vpcTemplateRef": {"name": "t"}}))),
        owned(object("CAPTControlPlane", "p", &plane)),
    ]
}

fn key(text: &str) -> ObjectKey {
    let parts: Vec<&str> = text.split('/').collect();
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == parts[0]).unwrap();
    ObjectKey::new(kind, if parts.len() == 3 { parts[1] } else { "" }, parts[parts.len() - 1])
}

fn graph(world: &World, root: &str) -> Graph {
    Graph::observe(&View::new(world), [key(root)], Settings::default())
}

fn edges(graph: &Dependencies) -> Vec<String> {
    graph.edges.iter().map(|(from, targets)| format!("{from} -> {}", targets.join(" "))).collect()
}

#[test]
fn the_graph_follows_every_reference_and_knows_what_is_about_to_be_made() {
    let found = shown(&graph(&world(declared()), PLANE), PLANE, State::Provisioning, false, &[]);
    assert_eq!(
        edges(&found),
        [
            "CAPTCluster/ns/i -> Cluster/ns/c WorkspaceTemplate/ns/t WorkspaceTemplateApply/ns/i-vpc",
            "CAPTControlPlane/ns/p -> CAPTCluster/ns/i Cluster/ns/c WorkspaceTemplate/shared/t WorkspaceTemplateApply/ns/p-eks-controlplane-apply",
            "WorkspaceTemplateApply/ns/i-vpc -> Workspace/i-vpc WorkspaceTemplate/ns/t",
            "WorkspaceTemplateApply/ns/p-eks-controlplane-apply -> Workspace/p-eks-controlplane WorkspaceTemplate/shared/t WorkspaceTemplateApply/ns/i-vpc",
        ]
    );
    let words = |name: &str| found.nodes[name].status.as_str();
    assert_eq!([words(PLANE), words(INFRASTRUCTURE), words("Cluster/ns/c")], ["Provisioning", "Pending", "Present"]);
    assert_eq!(
        [words(EKS), words("Workspace/i-vpc"), words("WorkspaceTemplate/ns/t")],
        ["Pending", "Pending", "Missing"]
    );
    assert!(found.cycle().is_none() && !found.truncated);
    assert_eq!(found.dependents(VPC), [INFRASTRUCTURE, EKS], "both ways");
}

/// Nothing of it may change before the status says something else anyway, since that would be a write of its own.
#[test]
fn a_status_shows_the_same_graph_all_the_time_until_its_object_is_ready() {
    let shown =
        |objects: Vec<Value>, ready| shown(&graph(&world(objects), PLANE), PLANE, State::Provisioning, ready, &[]);
    let declared = declared();
    let before = shown(declared.clone(), false);
    let mut later = declared;
    let mut eks = apply("p-eks-controlplane-apply", &["i-vpc"]);
    eks["spec"]["templateRef"] = json!({"name": "t", "namespace": "shared"});
    for made in [
        apply("i-vpc", &[]),
        workspace("i-vpc", "i-vpc"),
        object("Secret", "i-vpc-out", &Value::Null),
        eks,
        workspace("p-eks-controlplane", "p-eks-controlplane-apply"),
        object("Secret", "p-eks-controlplane-out", &Value::Null),
        apply("p-kubeconfig-apply", &[]),
        apply("p-spot-role-check", &[]),
        object("Secret", "c-ca", &Value::Null),
        object("Secret", "c-kubeconfig", &Value::Null),
    ] {
        let name = made["metadata"]["name"].clone();
        later.push(made);
        assert_eq!(shown(later.clone(), false), before, "{name} was made");
    }
    let after = shown(later.clone(), true);
    for made in
        ["WorkspaceTemplateApply/ns/p-kubeconfig-apply", "Workspace/p-kubeconfig", "Workspace/p-eks-controlplane", EKS]
    {
        assert_eq!(after.nodes[made].status, "Provisioned", "{made}");
    }
    assert_eq!(after.edges["Secret/ns/p-eks-controlplane-out"], [EKS]);
    assert_eq!([&after.nodes["Secret/ns/c-ca"].status, &after.nodes[VPC].status], ["Present", "Pending"]);
    assert!(!after.nodes.contains_key("Secret/ns/i-vpc-out"), "the CAPTCluster is not ready yet");
    later[1]["status"] = json!({"ready": true});
    let last = shown(later, true);
    assert_eq!([&last.nodes[VPC].status, &last.nodes["Secret/ns/i-vpc-out"].status], ["Provisioned", "Present"]);
    assert!(last.cycle().is_none());
}

#[test]
fn a_secret_that_the_plan_makes_is_there_and_a_lost_workspace_is_not() {
    let mut objects = declared();
    objects[1]["status"] = json!({"ready": true});
    let ca = Action {
        op: Op::Create { body: json!({}) },
        target: key("Secret/ns/c-ca"),
        precondition: Precondition::MustNotExist,
        unless: Vec::new(),
        reason: String::new(),
    };
    let found = shown(&graph(&world(objects), PLANE), PLANE, State::Ready, true, &[ca]);
    assert_eq!(
        [&found.nodes["Secret/ns/c-ca"].status, &found.nodes["Secret/ns/c-kubeconfig"].status],
        ["Present", "Missing"]
    );
    assert_eq!(
        [&found.nodes[INFRASTRUCTURE].status, &found.nodes["Workspace/i-vpc"].status],
        ["Provisioned", "Missing"]
    );
}

#[test]
fn what_is_in_the_graph_is_watched() {
    let world = world(declared());
    let view = View::new(&world);
    let found = Graph::observe(&view, [key(PLANE)], Settings::default());
    let reads = view.into_reads();
    for (node, _) in found.objects() {
        assert!(reads.contains(&Read::Object(node.clone())), "{node}");
    }
    assert!(found.objects().count() > 8);
}

#[test]
fn circles_are_told_with_their_path_by_way_of_applies_and_of_secrets() {
    let path = |objects: Vec<Value>| graph(&world(objects), "WorkspaceTemplateApply/ns/a").circle();
    assert_eq!(path(vec![apply("a", &["b"]), apply("b", &["c"]), apply("c", &[])]), None);
    let told = path(vec![apply("a", &["b"]), apply("b", &["c"]), apply("c", &["a"])]).unwrap();
    let expected = ["a", "b", "c", "a"].map(|name| format!("WorkspaceTemplateApply/ns/{name}")).join(" -> ");
    assert!(told.message.starts_with(&format!("{expected} wait for each other")), "{}", told.message);
    assert_eq!(told.reason, reasons::DEPENDENCY_CYCLE);
    // `a` waits for a Secret that `b` writes, and `b` for `a`.
    let (mut a, mut b) = (apply("a", &[]), apply("b", &["a"]));
    a["spec"]["waitForSecrets"] = json!([{"name": "s", "namespace": "ns"}]);
    assert_eq!(path(vec![a.clone(), b.clone()]), None);
    b["spec"]["writeConnectionSecretToRef"] = json!({"name": "s", "namespace": "ns"});
    let told = path(vec![a, b]).unwrap();
    let expected = "Secret/ns/s -> WorkspaceTemplateApply/ns/b -> WorkspaceTemplateApply/ns/a -> Secret/ns/s";
    assert!(told.message.starts_with(expected), "{}", told.message);
    // However long it is.
    let names: Vec<String> = (0..40).map(|number| format!("{}-{number}", "long".repeat(20))).collect();
    let next = |at: usize| names[(at + 1) % names.len()].as_str();
    let mut circle: Vec<Value> = names.iter().enumerate().map(|(at, name)| apply(name, &[next(at)])).collect();
    circle.push(apply("a", &[&names[0]]));
    assert!(path(circle).unwrap().message.len() <= MAX_MESSAGE);
}

#[test]
fn what_is_unknown_is_not_called_missing() {
    let mut world = world(declared());
    world.set_unknown(key("WorkspaceTemplate/shared/t"));
    assert_eq!(graph(&world, PLANE).standing(&key("WorkspaceTemplate/shared/t")), Some(Standing::Unknown));
}

#[test]
fn a_status_stays_small_and_keeps_what_is_nearest() {
    let names: Vec<String> = (0..60).map(|number| format!("w{number:02}")).collect();
    let mut objects = declared();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    objects.push(apply("i-vpc", &names));
    objects.extend(names.iter().map(|name| apply(name, &[])));
    let found = graph(&world(objects), INFRASTRUCTURE);
    assert_eq!(found.to_wire().nodes.len(), 5 + 60 * 2, "the whole is known");
    let found = shown(&found, INFRASTRUCTURE, State::Provisioning, false, &[]);
    assert_eq!((found.nodes.len(), found.truncated), (MAX_NODES, true));
    assert!(found.nodes.contains_key("WorkspaceTemplate/ns/t") && found.edges[VPC].len() == 29);
    let size = serde_json::to_string(&found).unwrap().len();
    assert!(size < 16 * 1024, "{size}");
}

#[test]
fn the_impact_of_an_object_is_everything_that_needs_it() {
    let found = graph(&world(declared()), PLANE);
    let workspace = key("Workspace/i-vpc");
    let told: Vec<String> = found.impact(&workspace).iter().map(|(length, key)| format!("{length} {key}")).collect();
    assert_eq!(told, [format!("1 {VPC}"), format!("2 {INFRASTRUCTURE}"), format!("2 {EKS}"), format!("3 {PLANE}")]);
    assert_eq!(found.impact(&key(PLANE)), []);
    // In a circle too an object has no impact on itself.
    let circle = world([apply("a", &["b"]), apply("b", &["a"])]);
    let (a, b) = (key("WorkspaceTemplateApply/ns/a"), key("WorkspaceTemplateApply/ns/b"));
    assert_eq!(graph(&circle, "WorkspaceTemplateApply/ns/a").impact(&a), [(1, &b)]);
}

#[test]
fn the_state_of_the_root_alone_is_kept_up_to_date_during_a_deletion() {
    let mut found = shown(&graph(&world(declared()), PLANE), PLANE, State::Ready, true, &[]);
    let before = found.clone();
    found = with_state(&found, &key(PLANE), State::Deleting).unwrap();
    assert_eq!(with_state(&found, &key(PLANE), State::Deleting), None, "it says so already");
    assert_eq!(with_state(&found, &key("Cluster/ns/other"), State::Deleting), None, "it is not known");
    assert_eq!(found.nodes[PLANE].status, "Deleting");
    found.nodes.insert(PLANE.to_owned(), before.nodes[PLANE].clone());
    assert_eq!(found, before);
}

fn deleting(mut value: Value) -> Value {
    value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    value["metadata"]["finalizers"] = json!(["f"]);
    value
}

#[test]
fn what_goes_is_told_so_whatever_it_was() {
    for ready in [false, true] {
        let mut objects = declared();
        objects[1]["status"] = json!({"ready": ready});
        objects.extend([apply("i-vpc", &[]), workspace("i-vpc", "i-vpc")]);
        let found = graph(&world(objects.into_iter().map(deleting)), PLANE);
        for name in ["Cluster/ns/c", INFRASTRUCTURE, PLANE, VPC, "Workspace/i-vpc"] {
            assert_eq!(found.standing(&key(name)), Some(Standing::Deleting), "{name}");
        }
    }
}

/// An apply of no provider object remembers by itself, and so does a Workspace that nobody here made.
#[test]
fn what_nobody_makes_stands_as_it_says_itself() {
    const OWN: &str = "WorkspaceTemplateApply/ns/a";
    for (remembers, standing) in [(Value::Null, Standing::Pending), (json!(true), Standing::Provisioned)] {
        let mut own = apply("a", &["w"]);
        own["status"] = json!({"wasReady": remembers});
        let mut waited = workspace("w", "nobody");
        waited["metadata"]["labels"] = Value::Null;
        if standing == Standing::Provisioned {
            waited["metadata"]["annotations"] =
                json!({"crossplane.io/external-create-succeeded": "2026-01-01T00:00:00Z"});
        }
        let found = graph(&world([own, workspace("a", "a"), waited]), OWN);
        let told = [OWN, "Workspace/a", "Workspace/w"].map(|name| found.standing(&key(name)));
        assert_eq!(told, [Some(standing); 3]);
    }
}

#[test]
fn beside_a_vpc_that_exists_an_apply_belongs_to_the_graph_if_it_is_there() {
    let shows = |existing: &str, is_there: bool| {
        let mut objects = declared();
        objects[1]["spec"]["existingVpcId"] = json!(existing);
        if is_there {
            objects.push(apply("i-vpc", &[]));
        }
        shown(&graph(&world(objects), INFRASTRUCTURE), INFRASTRUCTURE, State::Provisioning, false, &[])
            .nodes
            .contains_key(VPC)
    };
    assert_eq!([shows("vpc-1", false), shows("vpc-1", true), shows("", false)], [false, true, true]);
}

#[test]
fn no_namespace_is_the_own_one() {
    let (mut a, mut b, mut c) = (apply("a", &[]), apply("b", &[]), apply("c", &[]));
    a["spec"]["templateRef"]["namespace"] = json!("");
    a["spec"]["waitForSecrets"] = json!([{"name": "s", "namespace": ""}, {"name": "s", "namespace": "other"}]);
    b["spec"]["writeConnectionSecretToRef"] = json!({"name": "s", "namespace": ""});
    c["spec"]["writeConnectionSecretToRef"] = json!({"name": "s", "namespace": "other"});
    let found = graph(&world([a, b, c]), "WorkspaceTemplateApply/ns/a").to_wire();
    let targets = |name: &str| found.edges[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        targets("WorkspaceTemplateApply/ns/a"),
        ["WorkspaceTemplate/ns/t", "Workspace/a", "Secret/ns/s", "Secret/other/s"]
    );
    assert_eq!(targets("Secret/ns/s"), ["WorkspaceTemplateApply/ns/b"]);
    assert_eq!(targets("Secret/other/s"), ["WorkspaceTemplateApply/ns/c"]);
}
