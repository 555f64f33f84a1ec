//! The example that the README starts with, through the built program.

use std::{path::Path, process::Command};

use serde_json::Value;

fn plan(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_capt-operator"))
        .args(["plan", "-f", "examples/first-pass.yaml", "--now", "2026-01-01T00:00:00Z"])
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().filter(|line| line.contains("error")).count(), 0);
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_first_pass_takes_hold_and_makes_the_vpc_first() {
    let (code, text) = plan(&[]);
    assert_eq!(code, Some(2), "there is something to write:\n{text}");
    for line in [
        "CAPTCluster/default/first: Provisioning\n",
        "  1. patch CAPTCluster/default/first: finalizer before anything is made, and the name of the apply\n",
        "  2. create WorkspaceTemplateApply/default/first-vpc: apply template first-vpc\n",
        "CAPTControlPlane/default/first: Provisioning\n  waiting for CAPTCluster/first to be ready\n",
        "\n5 writes.\n",
    ] {
        assert!(text.contains(line), "{text}\nlacks: {line}");
    }

    let (code, json) = plan(&["-o", "json"]);
    assert_eq!(code, Some(2));
    let value: Value = serde_json::from_str(&json).unwrap();
    let passes = value["passes"].as_array().unwrap();
    let ops = |pass: &Value| -> Vec<String> {
        let actions = pass["actions"].as_array().unwrap();
        actions.iter().map(|action| action["op"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(passes.len(), 3, "{json}");
    assert_eq!((ops(&passes[0]).len(), ops(&passes[1]).len()), (3, 2), "{json}");
    assert_eq!((&passes[2]["object"]["kind"], ops(&passes[2]).len()), (&"Cluster".into(), 0), "{json}");
    assert_eq!(ops(&passes[0])[1], "create", "{json}");
    assert_eq!(passes[0]["actions"][1]["body"]["spec"]["variables"]["vpc_name"], "first-vpc");
}
