//! `capt-operator plan` and `crds` as a user calls them: exit codes, output and messages.

use std::{ffi::OsString, fs, io::Write as _};

use capt_operator::Io;
use serde_json::Value;

struct Output {
    code: u8,
    stdout: String,
    stderr: String,
}

fn call(args: &[&str], stdin: &str) -> Output {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin.as_bytes(), stdout: &mut stdout, stderr: &mut stderr };
    let args = ["capt-operator"].iter().chain(args).map(OsString::from);
    let code = capt_operator::main(args, &mut io);
    Output { code, stdout: String::from_utf8(stdout).unwrap(), stderr: String::from_utf8(stderr).unwrap() }
}

fn plan(args: &[&str], stdin: &str) -> Output {
    let fixed = ["plan", "-f", "-", "--now", "2026-01-01T00:00:00Z"];
    call(&[&fixed, args].concat(), stdin)
}

/// A Cluster and its provider object as they are once core has adopted it.
const ADOPTED: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, uid: cluster-uid}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: demo}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: CAPTCluster
metadata:
  name: demo
  ownerReferences:
  - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: demo, uid: cluster-uid}
spec:
  region: eu-west-1
  vpcTemplateRef: {name: vpc-template}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: WorkspaceTemplate
metadata: {name: vpc-template}
spec:
  template:
    spec:
      forProvider: {source: Inline, module: \"output \\\"vpc_id\\\" { value = 1 }\"}
";

#[test]
fn a_plan_says_what_would_be_written_and_exits_with_2() {
    let output = plan(&[], ADOPTED);
    assert_eq!((output.code, output.stderr.as_str()), (2, ""), "{}", output.stdout);
    assert!(output.stdout.contains("create WorkspaceTemplateApply/default/demo-vpc: "), "{}", output.stdout);
    let last = "Objects that are not in the input count as not existing; say --unknown where that is not known.\n";
    assert!(output.stdout.ends_with(last), "{}", output.stdout);
}

#[test]
fn as_json_it_is_one_object_and_the_same_each_time() {
    let output = plan(&["-o", "json"], ADOPTED);
    assert_eq!(output.code, 2);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&value["apiVersion"], &value["kind"]), (&"capt.cluster.x-k8s.io/v1alpha1".into(), &"Plan".into()));
    let pass = &value["passes"][0];
    assert_eq!(pass["object"]["kind"], "CAPTCluster");
    assert!(pass["actions"].as_array().unwrap().iter().any(|action| action["op"] == "create"), "{pass}");
    assert!(output.stderr.contains("not in the input"), "{}", output.stderr);
    assert_eq!(plan(&["-o", "json"], ADOPTED).stdout, output.stdout);
}

#[test]
fn nothing_to_write_exits_with_0() {
    let output = plan(&[], "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("No object in the input has passes"), "{}", output.stdout);
    assert!(output.stderr.starts_with("note: standard input, document 1, line 2: "), "{}", output.stderr);
}

#[test]
fn an_object_that_is_unknown_is_not_taken_for_absent() {
    let without = ADOPTED.split("---\n").take(2).collect::<Vec<_>>().join("---\n");
    let absent = plan(&["-o", "json"], &without).stdout;
    let unknown = plan(&["-o", "json", "--unknown", "WorkspaceTemplateApply/default/demo-vpc"], &without).stdout;
    assert_ne!(absent, unknown);
    assert!(!unknown.contains(r#""op": "create""#), "{unknown}");
}

#[test]
fn objects_come_from_many_files_and_a_place_names_its_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(ADOPTED.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(call(&["plan", "-f", path, "-f", "-"], "").code, 2);
    let again = call(&["plan", "-f", path, "-f", path], "");
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.starts_with(&format!("error: {path}, document 1, line 3: Cluster/default/demo is there already")),
        "{}",
        again.stderr
    );
    fs::remove_file(path).unwrap();
    let missing = call(&["plan", "-f", path], "");
    assert_eq!((missing.code, missing.stderr.contains(path)), (1, true), "{}", missing.stderr);
}

#[test]
fn bad_input_exits_with_1_and_names_document_line_field_and_fix() {
    let output = plan(&[], &ADOPTED.replace("region: eu-west-1", "region: [eu-west-1]"));
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    let expected = "error: standard input, document 2, line 14: spec.region: invalid type: sequence, expected a string: write a string here\n";
    assert_eq!(output.stderr, expected);
}

#[test]
fn bad_usage_exits_with_1_and_help_with_0() {
    for (args, message) in [
        (vec!["plan"], "--file"),
        (vec!["plna"], "some similar subcommands exist: 'explain', 'plan'"),
        (vec!["plan", "-f", "-", "--now", "today"], "write it as 2026-01-31T12:00:00Z"),
        (vec!["plan", "-f", "-", "--unknown", "Pod/a"], "a pass reads no `Pod`"),
        (vec!["plan", "-f", "-", "-f", "-"], "give `-f -` once"),
        (vec!["run", "--concurrency", "0"], "--concurrency"),
        (vec!["--write-timeout", "never"], "write it as 90s"),
        (vec!["run", "--kubeconfig", "/nowhere/at/all"], "/nowhere/at/all"),
    ] {
        let output = call(&args, "");
        assert_eq!(output.code, 1, "{args:?}");
        assert!(output.stderr.contains(message), "{args:?}: {}", output.stderr);
    }
    for args in [["--help"], ["--version"], ["help"]] {
        let output = call(&args, "");
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn no_value_of_a_secret_is_printed() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: demo-kubeconfig}\ntype: cluster.x-k8s.io/secret\nstringData: {value: canary}\n";
    for format in ["text", "json"] {
        let output = plan(&["-o", format], &format!("{ADOPTED}---\n{secret}"));
        assert_eq!(output.code, 2);
        let all = output.stdout + &output.stderr;
        assert!(!all.contains("canary") && !all.contains("Y2FuYXJ5"), "{all}");
    }
}

#[test]
fn the_crds_are_printed_as_yaml() {
    let output = call(&["crds"], "");
    assert_eq!(output.code, 0);
    let crds: Vec<Value> = serde_saphyr::from_multiple(&output.stdout).unwrap();
    assert!(crds.iter().any(|crd| crd["spec"]["names"]["kind"] == "CAPTCluster"));
}
