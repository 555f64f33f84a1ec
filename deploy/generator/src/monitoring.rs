//! Alerts and dashboard, from one table of the operator's metrics.
//!
//! An alert says what a person has to look at; each has a section in `docs/operations.md` under its
//! name. It must not name a metric that [`METRICS`] lacks; a test holds both against each other.

use serde_json::{Value, json};

use crate::{settings, text};

/// The metrics that alerts and dashboard use, as `/metrics` calls them.
pub const METRICS: [&str; 15] = [
    "capt_api_request_duration_seconds",
    "capt_api_requests_total",
    "capt_deadlines_missed_total",
    "capt_held",
    "capt_leader",
    "capt_malformed_objects",
    "capt_objects",
    "capt_orphaned_workspaces",
    "capt_pass_duration_seconds",
    "capt_passes_total",
    "capt_queue_latency_seconds",
    "capt_state_transitions_total",
    "capt_status_writes_total",
    "capt_workspaces",
    "process_resident_memory_bytes",
];

/// An alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// Its name, also the heading in `docs/operations.md`.
    pub name: &'static str,
    /// What has to hold, in PromQL.
    pub expr: &'static str,
    /// For how long.
    pub for_: &'static str,
    /// `warning`: on a working day. `critical`: now.
    pub severity: &'static str,
    /// One line.
    pub summary: &'static str,
}

/// All alerts.
pub const ALERTS: [Alert; 13] = [
    Alert {
        name: "CaptObjectsStuck",
        // Somebody is in the state, and for an hour nobody has left it.
        expr: r#"sum by (kind, state) (capt_objects{state=~"Pending|Validating|Provisioning|Configuring|Recovering|Deleting"}) > 0
unless on (kind, state)
label_replace(sum by (kind, from) (increase(capt_state_transitions_total[1h])) > 0, "state", "$1", "from", "(.*)")"#,
        for_: "1h",
        severity: "warning",
        summary: "{{ $value }} {{ $labels.kind }} have been in state {{ $labels.state }} for more than an hour.",
    },
    Alert {
        name: "CaptObjectsFailed",
        expr: r#"sum by (kind) (capt_objects{state="Failed"}) > 0"#,
        for_: "5m",
        severity: "critical",
        summary: "{{ $value }} {{ $labels.kind }} have failed and need a person.",
    },
    Alert {
        name: "CaptObjectsDegraded",
        expr: r#"sum by (kind) (capt_objects{state="Degraded"}) > 0"#,
        for_: "15m",
        severity: "warning",
        summary: "{{ $value }} {{ $labels.kind }} serve, but their last apply, a timer or a check fails.",
    },
    Alert {
        name: "CaptDeadlineMissed",
        // A counter that is new has not increased yet.
        expr: "sum by (kind, deadline) (increase(capt_deadlines_missed_total[15m]) > 0 or (capt_deadlines_missed_total > 0 unless capt_deadlines_missed_total offset 15m))",
        for_: "0m",
        severity: "warning",
        summary: "A {{ $labels.kind }} missed a deadline: {{ $labels.deadline }}.",
    },
    Alert {
        name: "CaptWorkspacesFailing",
        expr: r#"sum by (class) (capt_workspaces{health="failing"}) > 0"#,
        for_: "15m",
        severity: "warning",
        summary: "Terraform fails for {{ $value }} Workspaces; class of the failure: {{ $labels.class }}.",
    },
    Alert {
        name: "CaptNotQuiescent",
        // Leases are renewed all the time; everything else is written because something changed.
        expr: r#"sum(rate(capt_api_requests_total{verb=~"create|update|patch|delete", resource!~"leases.*|.*reviews.*"}[30m])) > 0.05
and sum(increase(capt_state_transitions_total[30m])) == 0"#,
        for_: "30m",
        severity: "warning",
        summary: "{{ $value | humanize }} writes a second although no object has changed its state for half an hour.",
    },
    Alert {
        name: "CaptRequestsFailing",
        expr: r#"sum(rate(capt_api_requests_total{code=~"none|5..|403|429"}[10m])) / sum(rate(capt_api_requests_total[10m])) > 0.1"#,
        for_: "10m",
        severity: "warning",
        summary: "{{ $value | humanizePercentage }} of the requests to the API server fail.",
    },
    Alert {
        name: "CaptWatchStale",
        // Every watch is opened anew at least every five minutes. Those of the first seconds are in no increase, so
        // an operator is judged once it has run for as long.
        expr: r#"sum(increase(capt_api_requests_total{verb="watch", code="200"}[15m])) == 0
and count(capt_api_requests_total{verb="watch", code="200"} offset 15m) > 0"#,
        for_: "5m",
        severity: "critical",
        summary: "No watch was opened for a quarter of an hour: what the operator sees may be old.",
    },
    Alert {
        name: "CaptLeaseFlapping",
        expr: "sum(changes(capt_leader[1h])) > 4",
        for_: "0m",
        severity: "warning",
        summary: "The lease was won or lost {{ $value }} times within an hour.",
    },
    Alert {
        name: "CaptNoLeader",
        expr: "max(capt_leader) == 0 or absent(capt_leader)",
        for_: "5m",
        severity: "critical",
        summary: "No operator holds the lease: nothing is reconciled.",
    },
    Alert {
        name: "CaptHeld",
        expr: "max(capt_held) == 1",
        for_: "15m",
        severity: "critical",
        summary: "Another operator writes the statuses of our kinds: nothing is reconciled until it stops.",
    },
    Alert {
        name: "CaptObjectsSlowed",
        expr: r#"sum by (kind) (increase(capt_passes_total{outcome="slowed"}[10m])) > 0"#,
        for_: "10m",
        severity: "warning",
        summary: "A {{ $labels.kind }} never comes to rest: all of its writes but transitions are held back.",
    },
    Alert {
        name: "CaptMalformedObjects",
        expr: "sum by (kind) (capt_malformed_objects) > 0",
        for_: "5m",
        severity: "warning",
        summary: "{{ $value }} {{ $labels.kind }} do not parse and are left alone.",
    },
];

/// A panel of the dashboard: title, unit, queries with their legends.
type Panel = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PANELS: [Panel; 12] = [
    ("Objects by state", "short", &[("sum by (kind, state) (capt_objects{state!=\"\"})", "{{kind}} {{state}}")]),
    (
        "Workspaces by health",
        "short",
        &[
            ("sum by (health, class) (capt_workspaces)", "{{health}} {{class}}"),
            ("sum(capt_orphaned_workspaces)", "orphaned"),
        ],
    ),
    (
        "State transitions",
        "ops",
        &[(
            "sum by (kind, from, to) (rate(capt_state_transitions_total[$__rate_interval]))",
            "{{kind}} {{from}} -> {{to}}",
        )],
    ),
    (
        "Deadlines missed",
        "short",
        &[("sum by (deadline) (increase(capt_deadlines_missed_total[$__range]))", "{{deadline}}")],
    ),
    (
        "Status writes",
        "ops",
        &[("sum by (kind, fields) (rate(capt_status_writes_total[$__rate_interval]))", "{{kind}} {{fields}}")],
    ),
    ("Passes by outcome", "ops", &[("sum by (outcome) (rate(capt_passes_total[$__rate_interval]))", "{{outcome}}")]),
    (
        "Duration of passes, 95 %",
        "s",
        &[(
            "histogram_quantile(0.95, sum by (kind, le) (rate(capt_pass_duration_seconds_bucket[$__rate_interval])))",
            "{{kind}}",
        )],
    ),
    (
        "Waiting in the queue, 95 %",
        "s",
        &[(
            "histogram_quantile(0.95, sum by (le) (rate(capt_queue_latency_seconds_bucket[$__rate_interval])))",
            "queue",
        )],
    ),
    (
        "Requests by verb and code",
        "ops",
        &[("sum by (verb, code) (rate(capt_api_requests_total[$__rate_interval]))", "{{verb}} {{code}}")],
    ),
    (
        "Duration of requests, 95 %",
        "s",
        &[(
            "histogram_quantile(0.95, sum by (verb, le) (rate(capt_api_request_duration_seconds_bucket[$__rate_interval])))",
            "{{verb}}",
        )],
    ),
    ("Leader", "short", &[("capt_leader", "{{pod}}")]),
    (
        "Memory",
        "bytes",
        &[("process_resident_memory_bytes{namespace=\"$namespace\", container=\"manager\"}", "{{pod}}")],
    ),
];

fn groups() -> Value {
    let rules: Vec<Value> = ALERTS
        .iter()
        .map(|Alert { name, expr, for_, severity, summary }| {
            json!({
                "alert": name,
                "expr": expr,
                "for": for_,
                "labels": {"severity": severity},
                "annotations": {"summary": summary, "runbook": format!("docs/operations.md#{}", name.to_lowercase())},
            })
        })
        .collect();
    json!([{"name": settings::PROVIDER, "rules": rules}])
}

/// The rules as Prometheus itself reads them.
pub fn rules() -> Result<String, text::Error> {
    text::yaml(&[json!({"groups": groups()})])
}

/// The rules for the Prometheus operator.
pub fn prometheus_rule() -> Result<String, text::Error> {
    text::yaml(&[json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": settings::PROVIDER, "namespace": settings::NAMESPACE, "labels": settings::labels()},
        "spec": {"groups": groups()},
    })])
}

/// How the Prometheus operator scrapes. The certificate is made at each start, so it is not checked;
/// who scrapes proves itself by its service account's token, and needs `get` on `/metrics`.
pub fn service_monitor() -> Result<String, text::Error> {
    let (key, value) = settings::SELECTOR;
    text::yaml(&[json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": settings::PROVIDER, "namespace": settings::NAMESPACE, "labels": settings::labels()},
        "spec": {
            "selector": {"matchLabels": {key: value, "app.kubernetes.io/name": settings::PROVIDER}},
            "endpoints": [{
                "port": "metrics",
                "path": "/metrics",
                "scheme": "https",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": {"insecureSkipVerify": true},
            }],
        },
    })])
}

/// The dashboard as Grafana imports it.
pub fn dashboard() -> Result<String, text::Error> {
    let datasource = json!({"type": "prometheus", "uid": "${datasource}"});
    let panels: Vec<Value> = PANELS
        .iter()
        .enumerate()
        .map(|(index, (title, unit, queries))| {
            let targets: Vec<Value> = queries
                .iter()
                .zip('A'..)
                .map(|((expr, legend), id)| json!({"refId": id, "expr": expr, "legendFormat": legend, "datasource": datasource}))
                .collect();
            json!({
                "id": index + 1,
                "type": "timeseries",
                "title": title,
                "datasource": datasource,
                "gridPos": {"x": index % 2 * 12, "y": index / 2 * 8, "w": 12, "h": 8},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": targets,
            })
        })
        .collect();
    let dashboard = json!({
        "title": "CAPT",
        "uid": "capt-operator",
        "schemaVersion": 39,
        "editable": true,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            {"name": "namespace", "type": "constant", "query": settings::NAMESPACE},
        ]},
        "panels": panels,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&dashboard)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every word of a query that can only be the name of a metric.
    fn named(expr: &str) -> impl Iterator<Item = String> {
        let words = expr.split(|c: char| !c.is_alphanumeric() && c != '_');
        let metrics = words.filter(|word| word.starts_with("capt_") || word.starts_with("process_"));
        metrics.map(|word| word.trim_end_matches("_bucket").to_owned())
    }

    #[test]
    fn queries_use_the_metrics_of_the_table_and_all_of_them() {
        let panels = PANELS.iter().flat_map(|(_, _, queries)| queries.iter().map(|(expr, _)| *expr));
        let used: BTreeSet<String> = ALERTS.iter().map(|alert| alert.expr).chain(panels).flat_map(named).collect();
        assert_eq!(used, METRICS.iter().map(|name| (*name).to_owned()).collect());
    }
}
