//! Another operator that was not stopped: ours says so and does nothing until it is quiet.

use std::{sync::Arc, time::Duration};

use capt_stack::{Stack, Tier, eventually};
use capt_tests::{
    history::Kind,
    operator::{self, Operator, USER},
};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::{sync::Notify, time::sleep};

use crate::place::SOON;

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn while_another_operator_writes_nothing_is_written_and_afterwards_everything_is() {
    let stack = Stack::builder(Tier::ApiServer).install(operator::manifests().unwrap()).start().await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let captcluster = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
        "metadata": {"name": "c", "namespace": "default"}, "spec": {"region": "eu-west-1"}});
    stack.apply(&captcluster.to_string()).await.unwrap();
    let api = Kind::CaptCluster.api(&client, Some("default"));
    let stop = Arc::new(Notify::new());
    let writer = {
        let (api, stop) = (api.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let parameters = PatchParams { field_manager: Some("manager".to_owned()), ..PatchParams::default() };
            let mut round = 0;
            loop {
                round += 1;
                let status = json!({"status": {"vpcWorkspaceName": format!("round-{round}")}});
                api.patch_status("c", &parameters, &Patch::Merge(status)).await.unwrap();
                tokio::select! {
                    () = sleep(Duration::from_secs(1)) => {}
                    () = stop.notified() => break,
                }
            }
        })
    };
    sleep(Duration::from_secs(2)).await;
    let operator = Operator::start(&stack, &[]).unwrap();
    eventually("a word on the other operator", SOON, || async {
        let log = operator.log();
        if log.contains("another operator (field manager `manager`)") { Ok(()) } else { Err(operator.last_lines(20)) }
    })
    .await
    .unwrap();
    // Longer than it waits where it only suspects something.
    sleep(Duration::from_secs(20)).await;
    let written = || {
        let requests = stack.audit().requests_of(USER).unwrap().writes();
        requests.filter(|request| request.resource != "events" && !request.resource.ends_with("accessreviews"))
    };
    assert!(written().is_empty(), "{}", written().table());

    stop.notify_one();
    writer.await.unwrap();
    eventually("our own status", SOON, || async {
        let state = api.get("c").await.unwrap().data["status"]["state"].clone();
        if state.is_string() { Ok(()) } else { Err(operator.last_lines(20)) }
    })
    .await
    .unwrap();
    assert!(operator.log().contains("nobody else writes any more"));
    assert!(!written().is_empty());
}
