//! `tree`, `explain` and `reasons` as a user calls them.

use std::{ffi::OsString, path::Path};

use capt_operator::Io;
use serde_json::Value;

const INPUT: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: ns, uid: cu}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: net}
status: {phase: Provisioning}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: CAPTCluster
metadata:
  name: net
  namespace: ns
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: demo, uid: cu}]
spec: {region: eu-west-1, existingVpcId: vpc-0123}
status: {ready: true, state: Ready}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: CAPTControlPlane
metadata:
  name: plane
  namespace: ns
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: demo, uid: cu}]
spec: {version: '1.31', workspaceTemplateRef: {name: eks}}
status:
  state: Provisioning
  deadlines: [{name: controlPlaneTimeout, startedAt: '2026-01-01T00:00:00Z', suspendedFor: 0s}]
  progress: {currentOperation: Create, startedAt: '2026-01-01T00:00:00Z', milestone: 2 of 5, percentComplete: 40, history: []}
  conditions:
  - {type: Reconciling, status: 'True', reason: WaitingForWorkspace, message: \"waiting for\\e[2J Workspace plane-eks-controlplane\",
     lastTransitionTime: '2026-01-01T00:03:00Z', observedGeneration: 1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: WorkspaceTemplateApply
metadata:
  name: plane-eks-controlplane-apply
  namespace: ns
  uid: au
  generation: 1
  ownerReferences: [{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: CAPTControlPlane, name: plane, uid: '', controller: true}]
spec: {templateRef: {name: eks}}
---
apiVersion: tf.upbound.io/v1beta1
kind: Workspace
metadata: {name: plane-eks-controlplane, labels: {capt.cluster.x-k8s.io/owner-uid: au}}
spec: {forProvider: {source: Inline, module: ''}}
status:
  conditions:
  - {type: Synced, status: 'False', reason: ReconcileError, lastTransitionTime: '2026-01-01T00:04:00Z',
     message: 'apply failed: creating EKS Cluster (plane): operation error EKS: CreateCluster, https response error StatusCode: 403, AccessDeniedException: User is not authorized to perform: eks:CreateCluster'}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: WorkspaceTemplate
metadata: {name: eks, namespace: ns}
spec: {template: {spec: {forProvider: {source: Inline, module: ''}}}}
";

fn call(args: &[&str], stdin: &str) -> (u8, String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin.as_bytes(), stdout: &mut stdout, stderr: &mut stderr };
    let code = capt_operator::main(["capt-operator"].iter().chain(args).map(OsString::from), &mut io);
    (code, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn tree(args: &[&str]) -> (u8, String, String) {
    call(&[&["tree", "-f", "-", "--now", "2026-01-01T00:05:00Z"], args].concat(), INPUT)
}

fn explain(args: &[&str]) -> (u8, String, String) {
    call(&[&["explain", "-f", "-", "--now", "2026-01-01T00:05:00Z"], args].concat(), INPUT)
}

#[test]
fn the_tree_shows_dependencies_states_progress_and_ages() {
    for args in [&[][..], &["demo"], &["-n", "ns"]] {
        let (code, stdout, stderr) = tree(args);
        assert_eq!((code, stderr.as_str()), (0, ""));
        for line in [
            "Cluster/ns/demo  Provisioning\n",
            "└─ CAPTControlPlane/ns/plane  Provisioning  Create 2 of 5, for 5m0s\n",
            "      WaitingForWorkspace for 2m0s: waiting for [2J Workspace plane-eks-controlplane\n",
            "   ├─ CAPTCluster/ns/net  Ready\n",
            "   ├─ WorkspaceTemplate/ns/eks  Present\n",
            "   │  └─ Workspace/plane-eks-controlplane  Failing\n",
            "   └─ Secret/ns/demo-kubeconfig  Pending\n",
        ] {
            assert!(stdout.contains(line), "{stdout}\nlacks: {line}");
        }
        assert_eq!(stdout.matches("Cluster/ns/demo").count(), 1, "a heading: {stdout}");
    }
}

#[test]
fn lines_fit_the_width_and_colour_is_asked_for() {
    let (_, narrow, _) = tree(&["--width", "40"]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    assert!(narrow.contains('…') && !narrow.contains('\u{1b}'));
    let (_, painted, _) = tree(&["--colour", "always"]);
    assert!(
        painted.contains("\u{1b}[32mReady\u{1b}[0m") && painted.contains("\u{1b}[33mProvisioning\u{1b}[0m"),
        "{painted}"
    );
    assert!(!painted.contains("\u{1b}[2J"), "a foreign text moves no cursor");
}

#[test]
fn impact_reads_the_edges_backwards() {
    let (code, stdout, _) = tree(&["--impact", "workspace/plane-eks-controlplane"]);
    assert_eq!(code, 0);
    let told: Vec<&str> =
        stdout.lines().filter(|line| line.contains('/')).map(|line| line.trim().split_once("  ").unwrap().0).collect();
    let expected = [
        "Workspace/plane-eks-controlplane",
        "WorkspaceTemplateApply/ns/plane-eks-controlplane-apply",
        "CAPTControlPlane/ns/plane",
    ];
    assert_eq!(told, expected, "{stdout}");
    let (code, _, stderr) = tree(&["--impact", "secret/none"]);
    assert_eq!((code, stderr.starts_with("error: there is no Secret/none")), (1, true), "{stderr}");
}

#[test]
fn the_graph_is_the_same_in_every_form() {
    let (_, text, _) = tree(&["-o", "json"]);
    let graph: Value = serde_json::from_str(&text).unwrap();
    let edges: usize =
        graph["edges"].as_object().unwrap().values().map(|targets| targets.as_array().unwrap().len()).sum();
    let nodes = graph["nodes"].as_object().unwrap().len();
    assert!(nodes >= 6 && edges >= 7, "{text}");
    let (_, dot, _) = tree(&["-o", "dot"]);
    assert!(dot.starts_with("digraph capt {") && dot.ends_with("}\n"));
    assert_eq!((dot.matches(" -> ").count(), dot.matches("[label=").count()), (edges, nodes), "{dot}");
    assert!(dot.contains("\"CAPTCluster/ns/net\" -> \"Cluster/ns/demo\";"), "{dot}");
    let (_, mermaid, _) = tree(&["-o", "mermaid"]);
    assert_eq!((mermaid.matches(" --> ").count(), mermaid.matches("<br/>").count()), (edges, nodes), "{mermaid}");
}

#[test]
fn an_unknown_cluster_is_an_error_that_names_the_known_ones() {
    let (code, _, stderr) = tree(&["other"]);
    assert_eq!(
        (code, stderr.as_str()),
        (1, "error: there is no Cluster other with objects of CAPT: name one of demo\n")
    );
}

#[test]
fn an_explanation_leads_to_the_cause_and_says_what_to_do() {
    let (code, stdout, stderr) = explain(&["captcp/plane"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    for line in [
        "CAPTControlPlane/ns/plane: Provisioning\n",
        "  says      Reconciling=True since 2026-01-01T00:03:00Z (2m0s ago), WaitingForWorkspace: waiting for",
        "  because   Workspace/plane-eks-controlplane is Failing: Synced=False since 2026-01-01T00:04:00Z (1m0s ago), ",
        "  operation Create, 2 of 5, since 2026-01-01T00:00:00Z (5m0s ago)\n",
        "  deadline  controlPlaneTimeout at 2026-01-01T00:30:00Z, in 25m0s\n",
        "  decided   at 2026-01-01T00:03:00Z: Reconciling=True (WaitingForWorkspace)\n",
        "  next pass ",
        "  to do     ",
    ] {
        assert!(stdout.contains(line), "{stdout}\nlacks: {line}");
    }
    assert!(!stdout.contains('\u{1b}'));
    let (_, json, _) = explain(&["captcp/plane", "-o", "json"]);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["remedy"]["object"], "Workspace/plane-eks-controlplane", "{told:#}");
    let reason = told["remedy"]["reason"].as_str().unwrap();
    let (_, meaning, _) = call(&["reasons", reason, "-o", "json"], "");
    let meaning: Value = serde_json::from_str(&meaning).unwrap();
    assert_eq!(meaning[0]["remedy"], told["remedy"]["remedy"]);
    assert_eq!((&meaning[0]["group"], meaning.as_array().unwrap().len()), (&"Permission".into(), 1));
    let (code, _, stderr) = explain(&["captcp/other"]);
    assert_eq!((code, stderr.as_str()), (1, "error: there is no CAPTControlPlane/other\n"));
}

#[test]
fn the_document_is_what_the_command_prints() {
    let (code, printed, _) = call(&["reasons", "-o", "markdown"], "");
    assert_eq!(code, 0);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reasons.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let document = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(document == printed, "docs/reasons.md is stale: run `just docs`");
    let (code, _, stderr) = call(&["reasons", "NoSuchReason"], "");
    assert_eq!((code, stderr.contains("NoSuchReason")), (1, true), "{stderr}");
}
