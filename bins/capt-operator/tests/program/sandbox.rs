//! The sandbox as people run it: the built program in a process of its own.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

fn sandbox(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capt-operator"));
    command.arg("sandbox").args(args).stdin(Stdio::null());
    command
}

#[test]
fn the_demonstration_tells_a_whole_life_and_ends() {
    let output = sandbox(&["--demo", "--speed", "120"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = told.as_str();
    for words in [
        "Provisioning",
        "vpc ready",
        "eks creating",
        "The cluster is Ready",
        "kubectl delete",
        "Deleting",
        "Everything is gone",
    ] {
        let at = rest.find(words).unwrap_or_else(|| panic!("no `{words}` where it is due:\n{told}"));
        rest = &rest[at..];
    }
}

/// A sandbox that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Either fails only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one and waits until it says where its kubeconfig is; the address in there.
pub(crate) fn start(kubeconfig: &std::path::Path) -> (Running, String) {
    let path = kubeconfig.to_str().unwrap();
    let mut child = sandbox(&["--kubeconfig", path]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let running = Running(child);
    assert!(lines.any(|line| line.unwrap().contains("export KUBECONFIG=")), "it ended without a kubeconfig");
    // It goes on to talk, and ends when nobody listens any more.
    std::thread::spawn(move || lines.for_each(drop));
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let address = text.split("http://").nth(1).unwrap().split('"').next().unwrap().to_owned();
    (running, address)
}

pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_serves_tables_and_refuses_what_the_crds_refuse() {
    let directory = tempfile::tempdir().unwrap();
    let (_running, address) = start(&directory.path().join("kubeconfig"));
    assert!(address.starts_with("127.0.0.1:"), "loopback only: {address}");
    let group = "/apis/infrastructure.cluster.x-k8s.io/v1beta1";
    let table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n";
    let answer = ask(&address, "GET", &format!("{group}/workspacetemplates"), table, "");
    assert!(answer.contains(r#""kind":"Table""#) && answer.contains("vpc-template"), "{answer}");
    let bad = r#"{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster", "metadata": {"name": "a"},
        "spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "v"}, "existingVpcId": "vpc-1"}}"#;
    let json = "Content-Type: application/json\r\n";
    let answer = ask(&address, "POST", &format!("{group}/namespaces/default/captclusters"), json, bad);
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains(r#""reason":"Invalid""#), "{answer}");
    let good = bad.replace(r#", "existingVpcId": "vpc-1""#, "");
    let answer = ask(&address, "POST", &format!("{group}/namespaces/default/captclusters"), json, &good);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn a_scenario_is_played_in_it_and_told_and_what_it_cannot_play_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let path = directory.path().join("scenario.yaml");
    std::fs::write(
        &path,
        format!(
            "apiVersion: capt.cluster.x-k8s.io/v1alpha1\nkind: Scenario\nmetadata: {{name: short}}\nspec:\n  description: A VPC fails.\n  \
             files: [{examples}/vpc-template.yaml, {examples}/eks-template.yaml, {examples}/cluster.yaml]\n  \
             terraform: [{{workspace: demo-vpc, fail: 'Error: VpcLimitExceeded', takes: 1s}}]\n  events:\n  - {{at: 10m, restart: capt}}\n  \
             - {{at: 11m, restart: provider}}\n  - {{at: 90m, delete: Cluster/default/demo}}\n  until: 2h\n"
        ),
    )
    .unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let args = ["--speed", "600", "--kubeconfig", kubeconfig.to_str().unwrap(), "--scenario", path.to_str().unwrap()];
    let mut child = sandbox(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _running = Running(child);
    for words in ["Scenario short: A VPC fails.", "10m0s  restart capt", "11m0s  restart provider"] {
        assert!(lines.any(|line| line.contains(words)), "it ended without `{words}`");
    }
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let address = text.split("http://").nth(1).unwrap().split('"').next().unwrap();
    let answer = ask(
        address,
        "GET",
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/captclusters/demo",
        "",
        "",
    );
    // The class of the failure, or later what it says beside the deadline.
    assert!(answer.contains("VPCQuotaExceeded") || answer.contains("VpcLimitExceeded"), "{answer}");
    assert!(lines.any(|line| line.contains("1h30m0s  delete Cluster/default/demo")));
    for (file, field) in [("takeover", "spec.stored"), ("api-trouble", "spec.chances")] {
        let output = sandbox(&["--scenario", &format!("{examples}/scenarios/{file}.yaml")]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(field) && error.contains("`simulate`"), "{error}");
    }
}
