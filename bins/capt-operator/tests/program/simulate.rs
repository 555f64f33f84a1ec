//! `simulate` plays the scenarios of `examples/scenarios` and says whether they came out as expected.
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Instant,
};

use capt_operator::{FAILURE, Io, OK, simulate::UNEXPECTED};
use serde_json::Value;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios")
}

fn simulate(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut std::io::empty(), stdout: &mut out, stderr: &mut err };
    let all = ["capt-operator", "simulate"].iter().chain(arguments).map(OsString::from);
    let code = capt_operator::main(all, &mut io);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn every_scenario_of_the_library_comes_out_as_expected() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenarios()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    // A thousand clusters take more than a minute where nothing is optimised.
    if std::env::var_os("CAPT_FAULTS").is_none() {
        files.retain(|file| !file.ends_with("thousand-clusters.yaml"));
    }
    let mut wrong = String::new();
    for file in files {
        let begin = Instant::now();
        let (code, out, err) = simulate(&["-f", file.to_str().unwrap(), "--summary"]);
        println!("{} in {:.2} s", out.trim(), begin.elapsed().as_secs_f64());
        if code != OK {
            wrong.push_str(&out);
            wrong.push_str(&err);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_timeline_tells_states_conditions_events_and_writes() {
    let file = scenarios().join("create.yaml");
    let (code, out, _) = simulate(&["-f", file.to_str().unwrap()]);
    assert_eq!(code, OK, "{out}");
    for what in [
        "  state      CAPTControlPlane/default/demo  Ready",
        "  condition  CAPTCluster/default/demo  VPCReady True",
        "  event      CAPTControlPlane/default/demo  Ready",
        "  write      WorkspaceTemplateApply/default/demo-vpc  create",
        "  made       Workspace/demo-vpc",
    ] {
        assert!(out.contains(what), "{what} is not in:\n{out}");
    }
    assert!(out.lines().last().unwrap().starts_with("create: as expected, "), "{out}");
}

#[test]
fn chances_follow_from_the_seed_and_the_output_can_be_read_by_programs() {
    let file = scenarios().join("api-trouble.yaml");
    let play = || simulate(&["-f", file.to_str().unwrap(), "--seed", "7", "--runs", "3", "-o", "json"]);
    let (code, out, err) = play();
    assert_eq!(code, OK, "{out}{err}");
    let read: Value = serde_json::from_str(&out).unwrap();
    let runs = read["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 8, 9]);
    assert_ne!(runs[0]["timeline"], runs[1]["timeline"], "another seed is another run");
    assert_eq!(out, play().1, "the same seed is the same run");
}

#[test]
fn what_does_not_come_true_is_said_and_is_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.yaml");
    let head = "apiVersion: capt.cluster.x-k8s.io/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  description: d\n  until: 1m\n";
    std::fs::write(&file, format!("{head}  expect: [{{object: Cluster/default/none}}]\n")).unwrap();
    let (code, out, _) = simulate(&["-f", file.to_str().unwrap()]);
    assert_eq!(code, UNEXPECTED);
    assert!(out.contains("s: NOT as expected") && out.contains("there is no Cluster/default/none"), "{out}");
    std::fs::write(&file, format!("{head}  nonsense: 1\n")).unwrap();
    let (code, _, err) = simulate(&["-f", file.to_str().unwrap()]);
    assert!(code == FAILURE && err.contains("nonsense"), "{err}");
    assert_eq!(simulate(&["-f", "/nowhere"]).0, FAILURE);
}
