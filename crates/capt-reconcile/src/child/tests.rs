//! What an owner concludes from its apply, and what it writes to it.

use capt_api::foreign::WorkspaceApi;
use kube::core::ObjectMeta;

use super::*;

const API: WorkspaceApi = WorkspaceApi::Cluster;

fn apply(metadata: &Value, spec: &Value, status: &Value) -> Arc<WorkspaceTemplateApply> {
    let mut object = json!({"apiVersion": Kind::Apply.api_version(), "kind": "WorkspaceTemplateApply",
        "metadata": {"namespace": "a", "name": "x-apply", "uid": "1", "generation": 2, "resourceVersion": "7",
            "labels": {CLUSTER_NAME_LABEL: "c"}, "annotations": {INPUTS_SETTLED_ANNOTATION: "true", OWNER_ANNOTATION: "Secret/o"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "o", "uid": "o-uid"}]},
        "spec": {"templateRef": {"name": "t"}}, "status": status});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(object).unwrap())
}

fn workspace(status: &Value) -> Arc<WorkspaceView> {
    let object = json!({"metadata": {"name": "x", "uid": "w", "generation": 1, "resourceVersion": "9"}, "spec": {},
        "status": status});
    Arc::new(WorkspaceView::parse(API, &object))
}

fn ready() -> Value {
    let condition =
        |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "observedGeneration": 1});
    json!({"conditions": [condition("Ready", "Available"), condition("Synced", "ReconcileSuccess")]})
}

fn child(apply: Seen<Arc<WorkspaceTemplateApply>>, workspace: Option<Arc<WorkspaceView>>) -> Child {
    let key = ObjectKey::new(Kind::Workspace(API), "", "x");
    let claim = workspace.map(|workspace| Claim { key, api: API, found: Seen::Present((workspace, Owner::Ours)) });
    Child { key: ObjectKey::new(Kind::Apply, "a", "x-apply"), apply, owned: true, api: API, claim, secret: None }
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "m", "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn synced(applied: bool) -> Value {
    json!({"applied": applied, "observedGeneration": 2, "conditions": [condition("Synced", "True", "Applied")]})
}

#[test]
fn one_part_that_is_not_known_makes_the_child_unknown() {
    let absent = || child(Seen::Absent { live: true }, None);
    assert!(!absent().is_unknown());
    assert!(child(Seen::Unknown, None).is_unknown());
    let claimed = |found| Some(Claim { key: ObjectKey::new(Kind::Workspace(API), "", "x"), api: API, found });
    assert!(Child { claim: claimed(Seen::Unknown), ..absent() }.is_unknown());
    assert!(!Child { claim: claimed(Seen::Absent { live: false }), ..absent() }.is_unknown());
    let secret = |seen| Some((ObjectKey::new(Kind::Secret, "a", "s"), seen));
    assert!(Child { secret: secret(Seen::Unknown), ..absent() }.is_unknown());
    assert!(!Child { secret: secret(Seen::Absent { live: false }), ..absent() }.is_unknown());
}

#[test]
fn the_workspace_has_the_recorded_name_or_that_of_the_apply() {
    let name = |status: Value| child(Seen::Present(apply(&json!({}), &json!({}), &status)), None).workspace_name();
    assert_eq!(name(json!({"applied": true, "workspaceName": "old"})), "old");
    assert_eq!(name(json!({"applied": false})), "x");
    assert_eq!(child(Seen::Absent { live: true }, None).workspace_name(), "x");
}

#[test]
fn ready_is_an_apply_that_is_current_and_stays() {
    let progress = |metadata: Value, status: Value| {
        child(Seen::Present(apply(&metadata, &json!({}), &status)), Some(workspace(&ready()))).progress()
    };
    assert!(matches!(progress(json!({}), synced(true)), ChildProgress::Ready(_)));
    for (metadata, status) in [
        (json!({"generation": 3}), synced(true)),
        (json!({}), synced(false)),
        (json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}), synced(true)),
    ] {
        let found = progress(metadata, status);
        assert!(matches!(found, ChildProgress::InProgress { cause: _, begun: true }), "{found:?}");
    }
}

#[test]
fn what_serves_is_ready_while_somebody_pauses_its_workspace() {
    let progress = |applied: bool, workspace_status: Value| {
        let mut status = synced(applied);
        status["conditions"] = json!([condition("Synced", "False", reasons::WORKSPACE_PAUSED)]);
        let apply = apply(&json!({}), &json!({}), &status);
        child(Seen::Present(apply), Some(workspace(&workspace_status))).progress()
    };
    assert!(matches!(progress(true, ready()), ChildProgress::Ready(_)));
    assert!(matches!(progress(false, ready()), ChildProgress::InProgress { cause: _, begun: true }));
    assert!(matches!(progress(true, json!({})), ChildProgress::InProgress { cause: _, begun: false }));
}

fn ensured(apply: Seen<Arc<WorkspaceTemplateApply>>, wanted: &Wanted) -> (bool, Vec<Op>) {
    let owner = k8s_openapi::api::core::v1::Secret {
        metadata: ObjectMeta { name: Some("o".into()), uid: Some("o-uid".into()), ..ObjectMeta::default() },
        ..Default::default()
    };
    let mut writer = Writer::new(ObjectKey::new(Kind::Secret, "a", "o"), &owner.metadata);
    let told = child(apply, None).ensure(&mut writer, Kind::Secret, &owner, "c", wanted).is_some();
    (told, writer.finish().actions.into_iter().map(|action| action.op).collect())
}

fn wanted(namespace: Option<&str>, name: &str) -> Wanted {
    let template = TemplateReference { name: name.into(), namespace: namespace.map(Into::into) };
    Wanted { template, variables: BTreeMap::new(), secret: None, wait_for: Vec::new(), retain: None }
}

#[test]
fn a_reference_to_the_own_namespace_is_the_same_with_and_without_it() {
    for (have, want) in [
        (json!({"name": "t"}), None),
        (json!({"name": "t"}), Some("a")),
        (json!({"name": "t", "namespace": "a"}), None),
        (json!({"name": "t", "namespace": ""}), Some("a")),
        (json!({"name": "t", "namespace": "b"}), Some("b")),
    ] {
        let apply = apply(&json!({}), &json!({"templateRef": have}), &json!({"applied": false}));
        assert_eq!(ensured(Seen::Present(apply), &wanted(want, "t")), (false, vec![]), "{have} {want:?}");
    }
    for (have, want, name, expected) in [
        (json!({"name": "t"}), None, "u", json!({"name": "u", "namespace": null})),
        (json!({"name": "t"}), Some("b"), "t", json!({"name": "t", "namespace": "b"})),
        (json!({"name": "t", "namespace": "b"}), None, "t", json!({"name": "t", "namespace": null})),
        (json!({"name": "t", "namespace": "b"}), Some("a"), "t", json!({"name": "t", "namespace": null})),
        (json!({"name": "t", "namespace": "b"}), Some(""), "t", json!({"name": "t", "namespace": null})),
    ] {
        let apply = apply(&json!({}), &json!({"templateRef": have}), &json!({"applied": false}));
        let body = json!({"spec": {"templateRef": expected}});
        assert_eq!(ensured(Seen::Present(apply), &wanted(want, name)), (true, vec![Op::MergePatch { body }]));
    }
}

#[test]
fn what_only_completes_the_metadata_is_no_change_of_the_spec() {
    let apply = apply(&json!({"labels": {}}), &json!({}), &json!({"applied": false}));
    let body = json!({"metadata": {"labels": {CLUSTER_NAME_LABEL: "c"}}});
    assert_eq!(ensured(Seen::Present(apply), &wanted(None, "t")), (false, vec![Op::MergePatch { body }]));
}

#[test]
fn a_new_apply_waits_for_what_its_owner_says() {
    let body = |wanted: &Wanted| match ensured(Seen::Absent { live: true }, wanted) {
        (true, actions) => match actions.as_slice() {
            [Op::Create { body }] => body.clone(),
            other => panic!("{other:?}"),
        },
        (false, actions) => panic!("{actions:?}"),
    };
    let mut wanted = wanted(None, "t");
    for own in [None, Some(""), Some("a")] {
        wanted.template.namespace = own.map(Into::into);
        assert_eq!(body(&wanted)["spec"], json!({"templateRef": {"name": "t"}, "variables": {}}), "{own:?}");
    }
    wanted.template.namespace = Some("b".into());
    assert_eq!(body(&wanted)["spec"]["templateRef"], json!({"name": "t", "namespace": "b"}));
    wanted.wait_for = vec![WorkspaceReference { name: "v".into(), namespace: Some("a".into()) }];
    assert_eq!(body(&wanted)["spec"]["waitForWorkspaces"], json!([{"name": "v", "namespace": "a"}]));
}
