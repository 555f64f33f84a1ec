//! What a Cluster may be told of by what it refers to, beside an old core and in another namespace.

use super::*;

/// Core never clears what it copied, and before 1.11 the Cluster then shows Failed for ever.
#[test]
fn beside_an_old_core_our_own_stale_failure_text_is_cleared() {
    let copied = |kind: &str| {
        let group = if kind == "CAPTCluster" { "infrastructure" } else { "controlplane" };
        format!(
            "Failure detected from referenced resource {group}.cluster.x-k8s.io/v1beta1, Kind={kind} with name \"p\": x"
        )
    };
    let stale = |version: &str, text: &str| {
        with(
            cluster(version),
            "/status",
            json!({"observedGeneration": 2, "failureReason": "CreateError", "failureMessage": text}),
        )
    };
    let settings = auto(ClusterCrd::OfCore);
    for kind in ["CAPTCluster", "CAPTControlPlane"] {
        let plan = plan_of(settings, &[&served()[..], &[stale("v1beta1", &copied(kind))]].concat());
        let [action] = &plan.actions[..] else { panic!("{plan:?}") };
        let status = json!({"failureReason": null, "failureMessage": null});
        assert_eq!(action.op, Op::MergeStatus { manager: "capt-cluster-status", status });
        assert_eq!(action.precondition, Precondition::Observed { uid: "cu".into(), resource_version: "5".into() });
    }
    let own = copied("CAPTControlPlane");
    let mut still = served();
    still[1]["status"]["failureMessage"] = json!("x");
    let kept = [
        (served(), stale("v1beta1", "of somebody else")),
        (served(), stale("v1beta2", &own)),
        (still, stale("v1beta1", &own)),
        (served(), with(stale("v1beta1", &own), "/spec/paused", json!(true))),
        (served(), with(stale("v1beta1", &own), "/metadata/deletionTimestamp", json!(CREATED))),
    ];
    for (objects, cluster) in kept {
        assert_eq!(
            plan_of(settings, &[&objects[..], std::slice::from_ref(&cluster)].concat()).actions,
            [],
            "{cluster}"
        );
    }
    let mut unseen_by_core = stale("v1beta2", &own);
    unseen_by_core["status"]["observedGeneration"] = Value::Null;
    let forced = plan_of(forced(ClusterStatus::Contract), &[&served()[..], &[unseen_by_core]].concat());
    assert_eq!(forced.actions, [], "where both versions are served it has no effect");
    let without = plan_of(settings, &[served()[0].clone(), stale("v1beta1", &own)]);
    assert_eq!(without.actions, [], "what is not there may only be not seen");
}

/// v1beta1 can name another namespace, which core's webhook refuses and core never looks into: what stands there
/// belongs to others, whatever its name.
#[test]
fn what_a_cluster_refers_to_is_in_its_own_namespace() {
    let mut elsewhere = served();
    for object in &mut elsewhere {
        object["metadata"]["namespace"] = json!("elsewhere");
        object["metadata"]["ownerReferences"] = Value::Null;
    }
    let mut refers = cluster("v1beta1");
    for reference in ["infrastructureRef", "controlPlaneRef"] {
        refers["spec"][reference]["namespace"] = json!("elsewhere");
    }
    let plan = plan_of(forced(ClusterStatus::Standalone), &[&elsewhere[..], std::slice::from_ref(&refers)].concat());
    assert!(plan.actions.iter().all(|action| action.target.kind == Kind::Cluster), "{plan:?}");
    assert_eq!(
        (&status_patch(&plan)["phase"], &status_patch(&plan)["infrastructureReady"]),
        (&json!("Provisioning"), &Value::Null)
    );
    let text = "Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1beta1, Kind=CAPTCluster with name \"p\": x";
    let stale = with(
        refers,
        "/status",
        json!({"observedGeneration": 2, "failureReason": "CreateError", "failureMessage": text}),
    );
    let mut failed = served();
    failed[0]["status"]["failureMessage"] = json!("x");
    let plan = plan_of(auto(ClusterCrd::OfCore), &[&elsewhere[..], &failed, &[stale]].concat());
    assert_eq!(plan.actions, [], "its own still reports the failure");
}
