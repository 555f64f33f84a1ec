//! `capt-operator classify` as a user calls it: exit codes, output and messages.

use std::{ffi::OsString, fs};

use capt_operator::Io;
use serde_json::{Value, json};

struct Output {
    code: u8,
    stdout: String,
    stderr: String,
}

fn classify(args: &[&str], stdin: &str) -> Output {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin.as_bytes(), stdout: &mut stdout, stderr: &mut stderr };
    let args = ["capt-operator", "classify"].iter().chain(args).map(OsString::from);
    let code = capt_operator::main(args, &mut io);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code, stdout: text(stdout), stderr: text(stderr) }
}

const MESSAGE: &str = "create failed: cannot apply Terraform configuration: vpclimitexceeded: no";

fn workspace(synced: &Value) -> Value {
    json!({
        "apiVersion": "tf.upbound.io/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "demo"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Creating"}, synced]},
    })
}

fn failing() -> Value {
    workspace(&json!({"type": "Synced", "status": "False", "reason": "ReconcileError", "message": MESSAGE}))
}

#[test]
fn a_message_is_explained_to_people() {
    let output = classify(&[], MESSAGE);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let expected = "class:   Quota\nreason:  VpcQuotaExceeded\nstage:   create\nmessage: vpclimitexceeded: no\nhint:    Delete unused VPCs";
    assert!(output.stdout.starts_with(expected), "{}", output.stdout);
    assert_eq!(classify(&["-o", "text", "-f", "-"], MESSAGE).stdout, output.stdout);
}

#[test]
fn and_to_scripts() {
    let output = classify(&["-o", "json"], "out of tune");
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    let hint = answer["hint"].clone();
    let expected =
        json!({"class": "Unknown", "reason": "Unrecognised", "message": "out of tune", "hint": hint, "stage": null});
    assert_eq!((output.code, &answer), (0, &expected));
    assert!(hint.as_str().unwrap().ends_with('.'));
}

#[test]
fn a_workspace_gives_its_condition() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        workspace(&json!({"type": "Synced", "status": "True", "reason": "ReconcileSuccess"})), failing(),
    ]});
    let documents = [
        failing().to_string(),
        serde_saphyr::to_string(&failing()).unwrap(),
        serde_saphyr::to_string(&list).unwrap(),
        format!("---\n{}---\n{}", serde_saphyr::to_string(&failing()).unwrap(), "kind: Secret\napiVersion: v1\n"),
    ];
    for document in documents {
        fs::write(path, &document).unwrap();
        let output = classify(&["-f", path], "");
        assert_eq!(output.code, 0, "{}\n{document}", output.stderr);
        assert_eq!(output.stdout, classify(&[], MESSAGE).stdout);
    }
}

#[test]
fn what_cannot_be_classified_says_why_and_exits_with_1() {
    let paused = workspace(&json!({"type": "Synced", "status": "False", "reason": "ReconcilePaused"}));
    let two = [failing().to_string(), failing().to_string()].join("\n---\n");
    for (args, stdin, expected) in [
        (vec![], " \n", "the standard input is empty"),
        (vec!["-f", "/nonexistent"], "", "cannot read /nonexistent"),
        (vec!["-o", "xml"], "", "invalid value"),
        (vec!["--nope"], "", "--nope"),
        (vec![], "kind: [Workspace\n", "neither YAML nor JSON"),
        (vec![], &paused.to_string(), "Workspace/demo reports no error: condition Synced is False (ReconcilePaused)"),
        (vec![], "kind: Workspace\nmetadata: {name: a}\n", "Workspace/a reports no error: it has no condition Synced"),
        (vec![], &two, "2 objects report an error: give one"),
    ] {
        let output = classify(&args, stdin);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{args:?} {stdin}");
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
    }
}

#[test]
fn any_bytes_are_a_message() {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut &b"\xff\xfe no such host \0"[..], stdout: &mut stdout, stderr: &mut stderr };
    let args = ["capt-operator", "classify"].map(OsString::from);
    assert_eq!(capt_operator::main(args, &mut io), 0);
    assert!(String::from_utf8(stdout).unwrap().contains("HostNotFound"));
}
