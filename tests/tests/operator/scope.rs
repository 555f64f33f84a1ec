//! An operator of one namespace, with the roles of one: it works there, and nowhere else.

use std::time::Duration;

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
}
