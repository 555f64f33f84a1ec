//! A stack ends with its owner, however that ends, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use capt_stack::{Stack, Tier, eventually};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Processes that work inside `directory`: every component does, and every terraform.
fn processes_in(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        if std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)) {
            let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

async fn gone(directory: &Path) {
    eventually("the end of every process", Duration::from_secs(10), || async {
        let left = processes_in(directory);
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn nothing_is_left_after_a_drop() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let directory = stack.directory().to_owned();
    assert_eq!(processes_in(&directory).len(), 2, "etcd and the API server");
    drop(stack);
    assert_eq!(processes_in(&directory), Vec::<String>::new());
    assert!(!directory.exists());
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_panic_ends_the_stack_and_keeps_its_logs() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let owner = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let stack = runtime.block_on(Stack::start(Tier::ApiServer)).unwrap();
        sender.send(stack.directory().to_owned()).unwrap();
        panic!("a test that fails");
    });
    let directory = receiver.recv().unwrap();
    owner.join().unwrap_err();
    assert_eq!(processes_in(&directory), Vec::<String>::new());
    assert!(directory.join("logs/kube-apiserver.log").exists());
    assert!(!directory.join("etcd").exists(), "the data is of no use");
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn kill_9_of_the_owner_ends_every_process_and_terraform_too() {
    let example = std::env::current_exe().unwrap();
    let example = example.parent().unwrap().parent().unwrap().join("examples/stack");
    assert!(example.exists(), "build it first: cargo build -p capt-stack --examples");
    let mut owner = Command::new(example).arg("provider").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let admin = lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(PathBuf::from)).unwrap();
    let directory = admin.parent().unwrap().parent().unwrap().to_owned();

    let client = client(&admin).await;
    let workspaces: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(
        client,
        &kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("tf.upbound.io", "v1beta1", "Workspace")),
    );
    let slow = serde_json::from_value(serde_json::json!({
        "apiVersion": "tf.upbound.io/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "slow"},
        "spec": {
            "providerConfigRef": {"name": "default"},
            "forProvider": {"source": "Inline", "module":
                "resource \"terraform_data\" \"slow\" {\n  provisioner \"local-exec\" {\n    \
                 command = \"sleep 600\"\n  }\n}\n"},
        },
    }))
    .unwrap();
    workspaces.create(&kube::api::PostParams::default(), &slow).await.unwrap();
    eventually("a running terraform apply", Duration::from_mins(1), || async {
        let running = processes_in(&directory);
        if running.iter().any(|line| line.starts_with("sleep 600")) { Ok(()) } else { Err(running.join("\n")) }
    })
    .await
    .unwrap();

    owner.kill().unwrap();
    owner.wait().unwrap();
    gone(&directory).await;
    assert!(directory.join("logs/provider-terraform.log").exists());
    std::fs::remove_dir_all(&directory).unwrap();
    let credentials = Path::new("/tmp").join(directory.strip_prefix("/").unwrap());
    eventually("the removal of the provider's second directory", Duration::from_secs(10), || async {
        if credentials.exists() { Err(credentials.display().to_string()) } else { Ok(()) }
    })
    .await
    .unwrap();
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn a_stack_that_stays_is_ended_by_its_process_id() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let directory = stack.directory().to_owned();
    let client = client(&stack.admin().unwrap()).await;
    let id = stack.leave_running().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.apiserver_version().await.unwrap();
    let killed = Command::new("kill").arg(id.to_string()).status().unwrap();
    assert!(killed.success());
    gone(&directory).await;
    eventually("the removal of the directory", Duration::from_secs(10), || async {
        if directory.exists() { Err("still there".to_owned()) } else { Ok(()) }
    })
    .await
    .unwrap();
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}
