//! The Kustomize base with kubectl.

use capt_deploy::settings;
use capt_stack::{Stack, Tier};
use capt_tests::root;
use serde_json::json;

use crate::{
    go,
    run::{crds, deployment, run},
};

/// A fresh cluster, and one where the Go implementation's Deployment runs: it is replaced in place,
/// by whichever way of applying, and does not run a second time beside ours.
#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn the_base_is_applied_alone_and_over_the_go_implementation() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let base = root().join("deploy/kustomize").display().to_string();
    let kubectl = stack.kubectl().unwrap().to_owned();
    for server_side in [true, false] {
        let mut arguments = vec!["apply", "-k", &base];
        // Over fields of another manager only force gets through.
        arguments.extend(if server_side { &["--server-side", "--force-conflicts"][..] } else { &[] });
        for over_go in [false, true] {
            let _ = run(&kubectl, Some(&stack), &["delete", "deployment", "-n", settings::NAMESPACE, "--all"]);
            if over_go {
                let deployment = go::deployment(&json!({"control-plane": "controller-manager"})).to_string();
                let file = stack.directory().join("go.json");
                std::fs::write(&file, deployment).unwrap();
                run(&kubectl, Some(&stack), &["apply", "-f", file.to_str().unwrap()]).unwrap();
                if server_side {
                    let said = run(&kubectl, Some(&stack), &arguments).unwrap_err();
                    assert!(said.contains("rollingUpdate: Forbidden"), "docs/migration.md can do without: {said}");
                    let patch = r#"[{"op":"replace","path":"/spec/strategy","value":{"type":"Recreate"}}]"#;
                    let place = ["-n", settings::NAMESPACE, "deployment", settings::DEPLOYMENT];
                    let arguments = [&["patch"], &place[..], &["--type=json", "-p", patch]].concat();
                    run(&kubectl, Some(&stack), &arguments).unwrap();
                }
            }
            run(&kubectl, Some(&stack), &arguments).unwrap_or_else(|said| {
                panic!("server_side={server_side} over_go={over_go}: {said}");
            });
            let deployment = deployment(&client).await.unwrap();
            let spec = &deployment["spec"];
            assert_eq!(spec["strategy"], json!({"type": "Recreate"}), "server_side={server_side} over_go={over_go}");
            let container = &spec["template"]["spec"]["containers"][0];
            assert_eq!(container["args"], json!(settings::arguments()));
            assert_eq!(container["command"], json!([settings::PROGRAM]));
        }
    }
    let names: Vec<String> = crds(&client).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 6, "{names:?}");
}
