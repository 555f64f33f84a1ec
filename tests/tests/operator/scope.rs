//! An operator of one namespace, with the roles of one: it works there, and nowhere else.

use std::{process::Command, time::Duration};

use capt_stack::{Stack, Tier, eventually};
use capt_tests::{
    history::Kind,
    operator::{self, Operator, USER},
};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Client, api::ListParams};
use serde_json::{Value, json};

use crate::place::SOON;

const OURS: &str = "watched";
const OTHER: &str = "unwatched";

async fn conditions(client: &Client, kind: Kind, namespace: &str, name: &str) -> Vec<Value> {
    let object = kind.api(client, Some(namespace)).get(name).await.unwrap();
    object.data["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn an_operator_of_one_namespace_touches_no_other_and_says_what_it_does_not_see() {
    let stack = Stack::builder(Tier::ApiServer)
        .install(operator::limited_manifests(&[OURS, OTHER], &[OURS]).unwrap())
        .start()
        .await
        .unwrap();
    let client = stack.admin_client().await.unwrap();
    for namespace in [OURS, OTHER] {
        let metadata = |name: &str| json!({"name": name, "namespace": namespace});
        let version = "infrastructure.cluster.x-k8s.io/v1beta1";
        let objects = [
            json!({"apiVersion": version, "kind": "CAPTCluster", "metadata": metadata("c"), "spec": {"region": "eu-west-1"}}),
            json!({"apiVersion": version, "kind": "WorkspaceTemplate", "metadata": metadata("t"),
                "spec": {"template": {"spec": {"forProvider": {"source": "Inline", "module": "output \"x\" { value = 1 }"}}}}}),
            // There is such a Secret, and nobody here may know.
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("s"), "stringData": {"key": "value"}}),
        ];
        for object in objects {
            stack.apply(&object.to_string()).await.unwrap();
        }
    }
    let apply = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "WorkspaceTemplateApply",
        "metadata": {"name": "a", "namespace": OURS},
        "spec": {"templateRef": {"name": "t", "namespace": OTHER}, "waitForSecrets": [{"name": "s", "namespace": OTHER}]},
    });
    stack.apply(&apply.to_string()).await.unwrap();
    let operator = Operator::start(&stack, &["--namespace", OURS]).unwrap();

    let events: Api<Event> = Api::namespaced(client.clone(), OURS);
    eventually("a word on what is not watched", SOON, || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let notes: Vec<String> = found
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some("NotWatched"))
            .filter_map(|event| event.note)
            .collect();
        if notes.iter().any(|note| note.contains(&format!("Secret/{OTHER}/s"))) {
            Ok(())
        } else {
            Err(operator.last_lines(20))
        }
    })
    .await
    .unwrap();
    eventually("conditions in the watched namespace", SOON, || async {
        let (cluster, apply) = (
            conditions(&client, Kind::CaptCluster, OURS, "c").await,
            conditions(&client, Kind::Apply, OURS, "a").await,
        );
        let waits = apply.iter().any(|condition| {
            condition["message"].as_str().unwrap_or_default().contains("its namespace is not watched here")
        });
        if !cluster.is_empty() && waits { Ok(()) } else { Err(format!("{cluster:?} {apply:?}")) }
    })
    .await
    .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(conditions(&client, Kind::CaptCluster, OTHER, "c").await.is_empty());
    let elsewhere = stack
        .audit()
        .requests_of(USER)
        .unwrap()
        .writes()
        .filter(|request| request.namespace.as_deref().is_some_and(|namespace| namespace != OURS));
    assert!(elsewhere.is_empty(), "{}", elsewhere.table());
    let refused = stack.audit().requests_of(USER).unwrap().filter(|request| request.code == 403);
    assert!(refused.is_empty(), "the printed roles are enough: {}", refused.table());
    the_commands_that_look_read_the_same(&stack);
}

/// What people see by `plan --live`, `tree` and `explain`, of what the operator has just done.
fn the_commands_that_look_read_the_same(stack: &Stack) {
    let mark = jiff::Timestamp::now();
    let say = |arguments: &[&str]| {
        let output = Command::new(operator::program().unwrap())
            .args(arguments)
            .env_clear()
            .env("CAPT_KUBECONFIG", stack.kubeconfig_for(USER).unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said, told)
    };
    let (_, said, told) = say(&["plan", "--live", "-n", OURS, "-o", "json"]);
    let plan: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said} {told}"));
    let passes = plan["passes"].as_array().unwrap();
    let of_cluster = passes.iter().find(|pass| pass["object"]["kind"] == "CAPTCluster").unwrap();
    assert_eq!((&of_cluster["actions"], &of_cluster["state"]), (&json!([]), &json!("Pending")), "{of_cluster}");
    assert!(told.contains(&format!("you may not read Secret/{OTHER}/s")), "{told}");
    let (_, said, _) = say(&["plan", "--live", "-n", OURS]);
    assert!(said.contains("This is of https://127.0.0.1:") && !said.contains("in the input"), "{said}");

    let (code, said, told) = say(&["tree", "-n", OURS]);
    assert_eq!(code, Some(0), "{told}");
    assert!(said.lines().any(|line| line.contains("CAPTCluster") && line.contains("Pending")), "{said}");
    let (code, said, told) = say(&["explain", "captcluster/c", "-n", OURS]);
    assert_eq!(code, Some(0), "{told}");
    assert!(said.contains("WaitingForCluster"), "{said}");
    let written = stack.audit().requests_of(USER).unwrap().since(mark).writes();
    let by_commands = written.filter(|request| request.resource != "events");
    assert!(by_commands.is_empty(), "they only look: {}", by_commands.table());
}
