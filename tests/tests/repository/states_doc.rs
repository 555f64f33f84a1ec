//! docs/states.md is what the code says: rendered from the states, their phases, edges and timers.

use std::{fmt::Write, path::Path};

use capt_status::{
    State,
    condition::ConditionStatus,
    machine::{Cause, Timer, verdicts},
};

fn meaning(state: State) -> &'static str {
    match state {
        State::Pending => "no owner Cluster yet",
        State::Validating => "something that the object refers to is not there yet",
        State::Provisioning => "waiting for the VPC or the Workspace; an update or upgrade is in flight",
        State::Configuring => "the Workspace is ready; endpoint, CA and kubeconfig are collected",
        State::Ready => "serving and up to date",
        State::Degraded => "serving, but the last apply, a timer or a check fails",
        State::Recovering => "a failure that may pass, before the object was ever ready",
        State::Failed => "never ready so far, and: a failure that will not pass, an expired timer, or a spent budget",
        State::Deleting => "deletionTimestamp is set",
    }
}

const HEAD: &str = "# States

Generated from the code by `just docs`; a test fails when it is stale.

`status.state` of CAPTCluster and CAPTControlPlane, and what it shows. Where two values stand, the second is that of an
object that was ready once.

| state | phase | Ready | Available | Reconciling | Stalled | meaning |
|---|---|---|---|---|---|---|
";

fn render() -> String {
    let mut out = String::from(HEAD);
    for state in State::ALL {
        let shown = |served| {
            let verdicts = verdicts(state, served, state == State::Failed, &Cause::new("Reason", "text"), served);
            ["Ready", "Available", "Reconciling", "Stalled"].map(|type_| {
                let verdict = verdicts.iter().find(|verdict| verdict.type_ == type_).unwrap();
                verdict.status == ConditionStatus::True
            })
        };
        // What was ready once is in none of the others.
        let serves = matches!(state, State::Provisioning | State::Ready | State::Degraded | State::Deleting);
        let cells: Vec<String> = shown(false)
            .into_iter()
            .zip(shown(serves))
            .map(|(first, served)| if first == served { first.to_string() } else { format!("{first} / {served}") })
            .collect();
        writeln!(out, "| {} | {:?} | {} | {} |", state.as_str(), state.phase(), cells.join(" | "), meaning(state))
            .unwrap();
    }
    out.push_str("\n## Edges\n\nStaying is always legal. What was ready once is never Failed and never goes back to a first creation.\n\n| from | to |\n|---|---|\n");
    for state in State::ALL {
        let to: Vec<&str> = state.successors().iter().map(|next| next.as_str()).collect();
        let to = if to.is_empty() { "(the end)".to_owned() } else { to.join(", ") };
        writeln!(out, "| {} | {to} |", state.as_str()).unwrap();
    }
    out.push_str("\n```mermaid\nstateDiagram-v2\n    [*] --> Pending\n");
    for state in State::ALL {
        for next in state.successors() {
            writeln!(out, "    {} --> {}", state.as_str(), next.as_str()).unwrap();
        }
    }
    out.push_str(
        "    Deleting --> [*]\n```\n\n## Timers\n\n| timer | default | reason when it expires |\n|---|---|---|\n",
    );
    for timer in Timer::ALL {
        writeln!(out, "| {} | {} | {} |", timer.name(), timer.default_span(), timer.reason()).unwrap();
    }
    out
}

#[test]
fn the_document_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/states.md");
    let rendered = render();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &rendered).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == rendered, "docs/states.md is stale: run `just docs`");
}
