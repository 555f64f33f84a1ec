//! Tests of the counters and of the text.

use capt_reconcile::object::ObjectKey;
use serde_json::json;

use super::*;

fn has(metrics: &Metrics, lines: &[&str]) {
    let text = metrics.text(false);
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_status_write_counts_for_each_group_of_fields_that_changed() {
    let metrics = Metrics::new();
    let conditions = json!([{"type": "Ready", "reason": "Provisioning"}]);
    let before = json!({"state": "Pending", "phase": "Creating", "endpoint": "a:443"});
    let after = json!({"state": "Validating", "phase": "Creating", "endpoint": "a:443", "conditions": conditions});
    metrics.status_written(Kind::CaptCluster, &before, &after);
    metrics.status_written(Kind::CaptCluster, &after, &after);
    has(
        &metrics,
        &[
            r#"capt_status_writes_total{kind="CAPTCluster",fields="state",reason="Provisioning"} 1"#,
            r#"capt_status_writes_total{kind="CAPTCluster",fields="conditions",reason="Provisioning"} 1"#,
        ],
    );
    assert!(!metrics.text(false).contains(r#"fields="endpoint""#));
}

#[test]
fn a_change_of_state_counts_and_the_first_sight_does_not() {
    let metrics = Metrics::new();
    let key = ObjectKey::new(Kind::CaptCluster, "ns", "a");
    for state in [State::Pending, State::Pending, State::Ready] {
        metrics.state(&key, state);
    }
    has(
        &metrics,
        &[
            r#"capt_state_transitions_total{kind="CAPTCluster",from="Pending",to="Ready"} 1"#,
            r#"capt_state_duration_seconds_count{kind="CAPTCluster",state="Pending"} 1"#,
        ],
    );
    metrics.gone(&key);
    assert!(metrics.states().is_empty(), "what is gone takes no memory");
}

#[test]
fn events_tell_of_deadlines_and_recovery() {
    let metrics = Metrics::new();
    let event = |type_, reason| Event { type_, reason, note: "ns/secret-name".to_owned() };
    metrics.events(
        Kind::CaptControlPlane,
        &[event(EventType::Warning, "ControlPlaneTimeout"), event(EventType::Normal, "RecoveryAttempt")],
    );
    has(
        &metrics,
        &[
            r#"capt_events_total{kind="CAPTControlPlane",type="Warning",reason="ControlPlaneTimeout"} 1"#,
            r#"capt_deadlines_missed_total{kind="CAPTControlPlane",deadline="ControlPlaneTimeout"} 1"#,
            r#"capt_recovery_attempts_total{kind="CAPTControlPlane"} 1"#,
        ],
    );
    assert!(!metrics.text(false).contains("secret-name"), "names of objects are no labels");
}

/// To Prometheus an increase begins with the second sample, so that without a 0 the first of each would be lost.
#[test]
fn what_can_be_counted_is_there_before_it_happens() {
    let metrics = Metrics::new();
    has(
        &metrics,
        &[
            r#"capt_state_transitions_total{kind="CAPTCluster",from="Provisioning",to="Ready"} 0"#,
            r#"capt_state_transitions_total{kind="CAPTControlPlane",from="Ready",to="Degraded"} 0"#,
            r#"capt_deadlines_missed_total{kind="CAPTCluster",deadline="VPCCreationTimeout"} 0"#,
            r#"capt_deadlines_missed_total{kind="CAPTControlPlane",deadline="SecretTimeout"} 0"#,
            r#"capt_recovery_attempts_total{kind="CAPTControlPlane"} 0"#,
            r#"capt_passes_total{kind="Cluster",outcome="slowed"} 0"#,
        ],
    );
    let text = metrics.text(false);
    let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    let edges: usize = State::ALL.iter().map(|from| from.successors().iter().filter(|to| *to != from).count()).sum();
    assert_eq!(count("capt_state_transitions_total{"), 2 * edges);
    assert_eq!(count("capt_deadlines_missed_total{"), 2 * 5);
    assert_eq!(count("capt_passes_total{"), 4 * PassOutcome::ALL.len());
    assert!(text.lines().count() < 500, "the number of series is bounded: {}", text.lines().count());
}

#[test]
fn every_deadline_is_known_by_its_reason() {
    // The grace for a lack of permission is no deadline of anybody.
    for timer in Timer::ALL.into_iter().filter(|timer| *timer != Timer::PermissionGrace) {
        assert!(timer.reason().ends_with("Timeout"), "{}", timer.reason());
    }
}

#[test]
fn passes_queue_and_lease_are_told() {
    let metrics = Metrics::new();
    metrics.pass(Kind::Apply, PassOutcome::NoAnswer, Duration::from_millis(3));
    metrics.started(Duration::from_millis(3));
    has(
        &metrics,
        &[
            r#"capt_passes_total{kind="WorkspaceTemplateApply",outcome="no_answer"} 1"#,
            r#"capt_pass_duration_seconds_count{kind="WorkspaceTemplateApply"} 1"#,
            "capt_queue_latency_seconds_count 1",
            "capt_leader 0",
        ],
    );
    assert!(metrics.text(true).contains("\ncapt_leader 1\n"));
    assert!(metrics.text(true).contains("capt_build_info{version="));
}
