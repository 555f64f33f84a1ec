//! Each request with its precondition, each answer with its outcome, and the live reads before a write.

use super::*;
use crate::plan::Plan;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Apply, "ns", name)
}

fn action(op: Op, precondition: Precondition) -> Action {
    Action { op, target: key("a"), precondition, unless: Vec::new(), reason: "because".to_owned() }
}

fn observed() -> Precondition {
    Precondition::Observed { uid: "u1".to_owned(), resource_version: "5".to_owned() }
}

fn executor(actions: Vec<Action>) -> Executor<'static> {
    Executor::new(&Plan { actions, ..Plan::nothing(key("a"), "") }).into_owned()
}

fn status() -> Op {
    Op::ApplyStatus { manager: "m", status: json!({"ready": true}) }
}

fn refused(code: u16) -> Response {
    Response::Refused(Refusal { code, reason: "R".to_owned(), message: "m".to_owned() })
}

fn answer(version: &str) -> Response {
    Response::Object(Arc::new(json!({"metadata": {"uid": "u1", "resourceVersion": version}})))
}

#[test]
fn an_empty_plan_is_done() {
    assert_eq!(executor(Vec::new()).next(), Step::Done(Outcome::Applied));
}

#[test]
fn a_write_that_changed_nothing_is_known_by_the_version_that_it_was_asked_of() {
    let body = || json!({"spec": {}});
    let (merged, applied) = (Op::MergePatch { body: body() }, status());
    let patched = Op::JsonPatch { operations: vec![json!({"op": "remove", "path": "/x"})] };
    let told = Op::MergeStatus { manager: "m", status: json!({}) };
    for op in [merged, applied, patched, told] {
        let Step::Send(request) = executor(vec![action(op, observed())]).next() else { panic!("nothing is sent") };
        for (version, nothing) in [(json!("5"), true), (json!("6"), false), (json!(5), false), (Value::Null, false)] {
            let answer = json!({"metadata": {"resourceVersion": version}});
            assert_eq!(request.changed_nothing(&answer), nothing, "{request:?} {version}");
        }
        assert!(!request.changed_nothing(&json!({"kind": "Status"})));
    }
    // Whatever is not asked of a version changes something.
    let unguarded = [
        Request::MergePatch { target: key("a"), body: body() },
        Request::JsonPatch { target: key("a"), operations: vec![json!({"op": "remove", "path": "/x"})] },
        Request::Create { target: key("a"), body: json!({"metadata": {"resourceVersion": "5"}}) },
        Request::Delete { target: key("a"), uid: "u1".to_owned(), resource_version: Some("5".to_owned()) },
    ];
    for request in unguarded {
        for answer in [json!({"metadata": {"resourceVersion": "5"}}), json!({"metadata": {}})] {
            assert!(!request.changed_nothing(&answer), "{request:?}");
        }
    }
}

#[test]
fn an_answer_says_whether_the_object_is_stored_gone_or_as_it_was() {
    let merge = Request::MergePatch { target: key("a"), body: json!({"metadata": {"resourceVersion": "5"}}) };
    let delete = Request::Delete { target: key("a"), uid: "u1".to_owned(), resource_version: None };
    let get = Request::Get { target: key("a") };
    let object = |version: &str, deleting: bool, finalizers: &[&str]| {
        let at = deleting.then_some("2026-01-01T00:00:00Z");
        json!({"kind": "X", "metadata": {"resourceVersion": version, "deletionTimestamp": at, "finalizers": finalizers}})
    };
    let done = json!({"kind": "Status", "status": "Success", "metadata": {}});
    for (request, answer, effect) in [
        (&merge, object("6", false, &[]), Effect::Stored),
        (&merge, object("6", false, &["f"]), Effect::Stored),
        (&merge, object("6", true, &["f"]), Effect::Stored),
        (&merge, object("6", true, &[]), Effect::Gone),
        (&merge, object("5", false, &[]), Effect::Nothing),
        (&merge, done.clone(), Effect::Stored),
        (&delete, done, Effect::Gone),
        (&delete, object("6", true, &["f"]), Effect::Stored),
        (&delete, object("6", true, &[]), Effect::Gone),
        (&get, object("6", true, &[]), Effect::Nothing),
    ] {
        assert_eq!(request.effect(&answer), effect, "{request:?} {answer}");
    }
    assert_eq!([merge.written(), delete.written(), get.written()], [Some(&key("a")), Some(&key("a")), None]);
}

#[test]
fn each_write_carries_its_precondition() {
    let merge = Op::MergePatch { body: json!({"spec": {"a": null}}) };
    let json = Op::JsonPatch { operations: vec![json!({"op": "remove", "path": "/x"})] };
    let body = json!({"kind": "X"});
    for (action, request) in [
        (
            action(Op::Create { body: body.clone() }, Precondition::MustNotExist),
            Request::Create { target: key("a"), body },
        ),
        (
            action(merge, observed()),
            Request::MergePatch {
                target: key("a"),
                body: json!({"spec": {"a": null}, "metadata": {"uid": "u1", "resourceVersion": "5"}}),
            },
        ),
        (
            action(json, observed()),
            Request::JsonPatch {
                target: key("a"),
                operations: vec![
                    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "5"}),
                    json!({"op": "remove", "path": "/x"}),
                ],
            },
        ),
        (
            action(status(), observed()),
            Request::ApplyStatus {
                target: key("a"),
                manager: "m",
                body: json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
                    "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
                    "status": {"ready": true},
                }),
            },
        ),
        (
            action(Op::Delete, Precondition::Uid("u1".to_owned())),
            Request::Delete { target: key("a"), uid: "u1".to_owned(), resource_version: None },
        ),
        (
            action(Op::Delete, observed()),
            Request::Delete { target: key("a"), uid: "u1".to_owned(), resource_version: Some("5".to_owned()) },
        ),
    ] {
        assert_eq!(executor(vec![action]).next(), Step::Send(request));
    }
}

#[test]
fn a_later_write_to_the_same_object_follows_the_version_that_the_first_returned() {
    let finalizer = Op::JsonPatch { operations: Vec::new() };
    let mut executor = executor(vec![action(finalizer, observed()), action(status(), Precondition::AfterAction(0))]);
    executor.answer(&answer("8"));
    let Step::Send(Request::ApplyStatus { body, .. }) = executor.next() else { panic!("{:?}", executor.next()) };
    assert_eq!(body["metadata"]["resourceVersion"], "8");
    executor.answer(&answer("9"));
    assert_eq!(executor.next(), Step::Done(Outcome::Applied));
}

#[test]
fn it_stops_at_the_first_failure_and_says_what_kind_it_is() {
    let refusal = |code| Refusal { code, reason: "R".to_owned(), message: "m".to_owned() };
    for (response, outcome) in [
        (refused(409), Outcome::Conflict { action: 0, refusal: refusal(409) }),
        (refused(404), Outcome::Conflict { action: 0, refusal: refusal(404) }),
        (refused(403), Outcome::Rejected { action: 0, refusal: refusal(403) }),
        (refused(422), Outcome::Rejected { action: 0, refusal: refusal(422) }),
        (refused(500), Outcome::Rejected { action: 0, refusal: refusal(500) }),
        (Response::NoAnswer("timeout".to_owned()), Outcome::NoAnswer { action: 0, message: "timeout".to_owned() }),
    ] {
        let mut executor = executor(vec![action(status(), observed()), action(status(), observed())]);
        executor.answer(&response);
        assert_eq!(executor.next(), Step::Done(outcome));
    }
}

#[test]
fn what_shall_go_and_is_gone_is_no_failure() {
    let mut executor = executor(vec![action(Op::Delete, Precondition::Uid("u1".to_owned()))]);
    executor.answer(&refused(404));
    assert_eq!(executor.next(), Step::Done(Outcome::Applied));
}

#[test]
fn live_reads_come_right_before_the_write_and_block_it_if_they_find_something() {
    let labelled = Query::Labelled {
        kind: Kind::Workspace(capt_api::foreign::WorkspaceApi::Cluster),
        label: "l",
        value: "v".to_owned(),
    };
    let counts = Counts::OwnedBy { kind: Kind::CaptCluster, name: "o".to_owned(), uid: "u1".to_owned() };
    let mut guarded = action(Op::JsonPatch { operations: Vec::new() }, observed());
    guarded.unless = vec![labelled, Query::Object { key: key("child"), counts }];
    let mut clear = executor(vec![guarded.clone()]);
    assert!(matches!(clear.next(), Step::Send(Request::List { ref selector, .. }) if selector == "l=v"));
    clear.answer(&Response::Items(Vec::new()));
    assert_eq!(clear.next(), Step::Send(Request::Get { target: key("child") }));
    // Of somebody else, so it does not count.
    clear.answer(&Response::Object(Arc::new(json!({"metadata": {"ownerReferences": [{"uid": "u2"}]}}))));
    assert!(matches!(clear.next(), Step::Send(Request::JsonPatch { .. })));

    let mut blocked = executor(vec![guarded.clone()]);
    blocked.answer(&Response::Items(vec![json!({"metadata": {"name": "w"}})]));
    let by = ObjectKey::new(Kind::Workspace(capt_api::foreign::WorkspaceApi::Cluster), "", "w");
    assert_eq!(blocked.next(), Step::Done(Outcome::Blocked { action: 0, by }));

    // An answer that is no answer never counts as "nothing there".
    for response in [refused(403), refused(500), Response::NoAnswer("x".to_owned())] {
        let mut unknown = executor(vec![guarded.clone()]);
        unknown.answer(&response);
        assert!(matches!(unknown.next(), Step::Done(Outcome::Rejected { .. } | Outcome::NoAnswer { .. })));
    }
    // An API that is not served has no objects.
    let mut unserved = executor(vec![guarded]);
    unserved.answer(&refused(404));
    assert!(matches!(unserved.next(), Step::Send(Request::Get { .. })));
}

#[test]
fn which_objects_count() {
    let object =
        json!({"metadata": {"labels": {"l": "v"}, "ownerReferences": [{"uid": "u"}]}, "data": {"k": "eA==", "e": ""}});
    let label = |value: &str| Counts::LabelAbsentOr { label: "l", value: value.to_owned() };
    let owner = |uid: &str| Counts::OwnedBy { kind: Kind::CaptCluster, name: "o".to_owned(), uid: uid.to_owned() };
    let reference = |group: &str, kind: &str, name: &str| {
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": format!("{group}/v1"), "kind": kind, "name": name, "uid": "before-the-restore"},
        ]}})
    };
    for (counts, object, expected) in [
        (Counts::Any, &object, true),
        (label("v"), &object, true),
        (label("w"), &object, false),
        (label("w"), &json!({"metadata": {}}), true),
        (owner("u"), &object, true),
        (owner("x"), &object, false),
        // The one rule of whose a child is: after a restore uids differ, kind and name do not.
        (owner("x"), &reference(Kind::CaptCluster.group(), "CAPTCluster", "o"), true),
        (owner("x"), &reference(Kind::CaptCluster.group(), "CAPTCluster", "other"), false),
        (owner("x"), &reference(Kind::CaptCluster.group(), "CAPTControlPlane", "o"), false),
        (owner("x"), &reference("elsewhere", "CAPTCluster", "o"), false),
        (Counts::SecretKey { key: "k" }, &object, true),
        (Counts::SecretKey { key: "e" }, &object, false),
        (Counts::SecretKey { key: "x" }, &object, false),
    ] {
        assert_eq!(count(&counts, object), expected, "{counts:?}");
    }
}
