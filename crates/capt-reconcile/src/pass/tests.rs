//! What holds for the passes of both provider objects: names, and what is not known.

use serde_json::{Value, json};

use super::*;
use crate::{
    plan::Op,
    world::{Coverage, World},
};

const NOW: Time = Time::from_unix(1_767_225_600);

fn object(kind: Kind, name: &str, value: &Value) -> (ObjectKey, Object) {
    let mut value = value.clone();
    value["metadata"] = json!({"namespace": "a", "name": name, "uid": format!("{}-{name}", kind.name()),
        "generation": 1, "resourceVersion": "1"});
    if kind != Kind::Cluster {
        value["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "name": "c", "uid": "Cluster-c"}]);
    }
    value["apiVersion"] = json!(kind.api_version());
    value["kind"] = json!(kind.name());
    (ObjectKey::new(kind, "a", name), Object::parse(kind, &value))
}

/// A Cluster whose provider objects were just made, after `change` of Cluster, CAPTCluster and CAPTControlPlane.
pub(crate) fn world(change: impl FnOnce([&mut Value; 3])) -> World {
    let mut world = World::with_coverage(Coverage::Live);
    let mut cluster = json!({"spec": {
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CAPTCluster", "name": "v"},
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "CAPTControlPlane", "name": "p"}}});
    let mut vpc = json!({"spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "t"}}});
    let mut control_plane = json!({"spec": {"version": "1.31", "workspaceTemplateRef": {"name": "t"},
        "controlPlaneConfig": {"region": "eu-west-1"}}});
    change([&mut cluster, &mut vpc, &mut control_plane]);
    for (kind, name, value) in
        [(Kind::Cluster, "c", cluster), (Kind::CaptCluster, "v", vpc), (Kind::CaptControlPlane, "p", control_plane)]
    {
        let (key, object) = object(kind, name, &value);
        world.watched(key, 1, object);
    }
    world
}

/// A Cluster whose provider objects were just made.
fn fresh() -> World {
    world(|[_, _, _]| {})
}

fn planned(world: &World, kind: Kind, name: &str) -> Plan {
    let key = ObjectKey::new(kind, "a", name);
    match observe(&View::new(world), &key, Settings::default()) {
        Observation::Complete(observed) => plan(&observed, NOW),
        other @ (Observation::Gone | Observation::Malformed(_)) => panic!("{other:?}"),
    }
}

fn applies_made(plan: &Plan) -> Vec<&str> {
    let made = plan.actions.iter().filter(|action| matches!(action.op, Op::Create { body: _ }));
    made.filter(|action| action.target.kind == Kind::Apply).map(|action| action.target.name.as_str()).collect()
}

#[test]
fn an_apply_has_the_name_that_the_spec_says() {
    let plan = |name: &str| {
        let world = world(|[_, vpc, _]| vpc["spec"]["workspaceTemplateApplyName"] = json!(name));
        planned(&world, Kind::CaptCluster, "v")
    };
    assert_eq!(applies_made(&planned(&fresh(), Kind::CaptCluster, "v")), ["v-vpc"]);
    assert_eq!(applies_made(&plan("")), ["v-vpc"]);
    assert_eq!(applies_made(&plan("mine")), ["mine"]);
}

#[test]
fn beside_a_vpc_that_exists_none_is_made() {
    let world = world(|[_, vpc, _]| vpc["spec"]["existingVpcId"] = json!("vpc-1"));
    assert_eq!(applies_made(&planned(&world, Kind::CaptCluster, "v")), Vec::<&str>::new());
}

#[test]
fn a_vpc_has_the_name_that_the_spec_says() {
    let name = |config: Value| {
        let world = world(|[_, vpc, _]| vpc["spec"]["vpcConfig"] = config);
        planned(&world, Kind::CaptCluster, "v").actions.into_iter().find_map(|action| {
            let Op::Create { body } = action.op else { return None };
            body["spec"]["variables"]["vpc_name"].as_str().map(ToOwned::to_owned)
        })
    };
    assert_eq!(name(json!({"name": "mine"})).as_deref(), Some("mine"));
    assert_eq!(name(json!({"name": ""})).as_deref(), Some("v-vpc"));
    assert_eq!(name(Value::Null).as_deref(), Some("v-vpc"));
}

#[test]
fn where_something_that_matters_is_not_known_nothing_is_written() {
    let secret = |name: &str| (Kind::Secret, name.to_owned());
    let apply = |name: &str| (Kind::Apply, name.to_owned());
    let cluster = || (Kind::Cluster, "c".to_owned());
    for (kind, name, needed) in [
        (Kind::CaptCluster, "v", vec![cluster(), apply("v-vpc")]),
        (
            Kind::CaptControlPlane,
            "p",
            vec![
                cluster(),
                (Kind::CaptCluster, "v".to_owned()),
                apply("v-vpc"),
                apply("p-eks-controlplane-apply"),
                apply("p-kubeconfig-apply"),
                secret("c-kubeconfig"),
                secret("c-ca"),
                secret("p-ca"),
            ],
        ),
    ] {
        assert_ne!(planned(&fresh(), kind, name).actions, [], "{kind:?}");
        for (of, needed) in needed {
            let mut world = fresh();
            world.set_unknown(ObjectKey::new(of, "a", &needed));
            assert_eq!(planned(&world, kind, name).actions, [], "{kind:?} without {of:?} {needed}");
        }
    }
}
