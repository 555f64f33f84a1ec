//! A real Prometheus that scrapes the running operator with the alerts and the dashboard that are delivered: what
//! they ask is there, and an alert fires when it should and is silent otherwise.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use capt_deploy::monitoring::{ALERTS, METRICS};
use capt_stack::{Stack, Tier, eventually};
use capt_tests::{
    operator::{self, Operator},
    provider, root,
};
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::{
    diagnostics::{READERS, address, get, token, visitor},
    place::SOON,
};

/// A deadline of a minute has to pass.
const PATIENCE: Duration = Duration::from_mins(3);
/// Of objects that nobody has here.
const SILENT: [&str; 1] = ["capt_malformed_objects"];

/// Ends with the test; the end of its stack ends it as well.
struct Prometheus {
    process: Child,
    client: Client,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Either fails only if it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// One that reads the operator's metrics at `target` each second; `None` where there is no such program.
    async fn start(stack: &Stack, target: &str, token: &str) -> Option<Self> {
        let program = std::env::var_os("PROMETHEUS").unwrap_or_else(|| "prometheus".into());
        let directory = stack.directory();
        fs::write(directory.join("prometheus-token"), token).unwrap();
        fs::write(directory.join("prometheus.yml"), configuration(target).to_string()).unwrap();
        let log = fs::File::create(directory.join("logs/prometheus.log")).unwrap();
        // In there the stack's end finds it.
        let process = Command::new(program)
            .current_dir(directory)
            .args([
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=prometheus",
                "--web.listen-address=127.0.0.1:0",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                println!("NOT TRIED: no prometheus here ({error}); install it (Debian: prometheus) or set PROMETHEUS");
                return None;
            }
        };
        let address = eventually("Prometheus", SOON, || async {
            let log = fs::read_to_string(directory.join("logs/prometheus.log")).unwrap_or_default();
            let line = log.lines().find(|line| line.contains("Listening on")).ok_or(log.clone())?;
            line.split("address=").nth(1).map(str::to_owned).ok_or(log)
        })
        .await
        .unwrap();
        Some(Self { process, client: visitor(&format!("http://{address}"), None) })
    }

    async fn ask(&self, path: &str) -> Result<Value, String> {
        let text = get(&self.client, "GET", path, "").await.map_err(|code| format!("{path}: {code}"))?;
        let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(format!("{path}: {text}")) }
    }

    /// What an expression gives now.
    async fn query(&self, expression: &str) -> Vec<Value> {
        let query = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        let answer = self.ask(&format!("/api/v1/query?query={query}")).await.unwrap();
        answer["result"].as_array().unwrap().clone()
    }

    /// Each alert with its state; an error if one could not be asked.
    async fn alerts(&self) -> Result<BTreeMap<String, String>, String> {
        let answer = self.ask("/api/v1/rules?type=alert").await?;
        let groups = answer["groups"].as_array().cloned().unwrap_or_default();
        let rules = groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
        rules
            .map(|rule| match rule["health"].as_str() {
                Some("ok") => Ok((text(&rule["name"]), text(&rule["state"]))),
                _ => Err(rule.to_string()),
            })
            .collect()
    }

    /// Waits until exactly these alerts are not silent.
    async fn until(&self, what: &str, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect();
        eventually(what, PATIENCE, || async {
            let mut alerts = self.alerts().await?;
            if alerts.len() != ALERTS.len() {
                return Err(format!("{alerts:?}"));
            }
            alerts.retain(|_, state| state != "inactive");
            if alerts == expected { Ok(()) } else { Err(format!("{alerts:?}")) }
        })
        .await
        .unwrap();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// As the ServiceMonitor says it, but each second.
fn configuration(target: &str) -> Value {
    json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [root().join("deploy/monitoring/alerts.yaml")],
        "scrape_configs": [{
            "job_name": "capt",
            "scheme": "https",
            "metrics_path": "/metrics",
            "authorization": {"type": "Bearer", "credentials_file": "prometheus-token"},
            "tls_config": {"insecure_skip_verify": true},
            "static_configs": [{"targets": [target], "labels": {"namespace": "capt-system", "container": "manager"}}],
        }],
    })
}

/// The expressions of the dashboard, with what Grafana puts in for its variables.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(root().join("deploy/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let expressions = targets.map(|target| {
        let expression = target["expr"].as_str().unwrap();
        expression.replace("$__rate_interval", "1m").replace("$__range", "1h").replace("$namespace", "capt-system")
    });
    expressions.collect()
}

/// Beside the real Cluster API core, where nobody ever works on a Workspace.
async fn stack() -> Stack {
    let mut manifests = vec![operator::manifests().unwrap(), operator::lease_manifests().unwrap(), READERS.to_owned()];
    manifests.extend(provider::workspace_crds().unwrap());
    Stack::builder(Tier::Core).install(manifests.join("\n---\n")).start().await.unwrap()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn prometheus_finds_what_alerts_and_dashboard_ask_and_the_right_ones_fire() {
    let stack = stack().await;
    let admin = stack.admin_client().await.unwrap();
    let mut operator = Operator::start(&stack, &["--leader-elect", "--vpc-creation-timeout=1m"]).unwrap();
    let target = address(&operator, "metrics").await;
    let Some(prometheus) = Prometheus::start(&stack, &target, &token(&admin, "prometheus").await).await else { return };
    eventually("a scrape", SOON, || async {
        let targets = prometheus.ask("/api/v1/targets?state=active").await?;
        let target = &targets["activeTargets"][0];
        if target["health"] == "up" { Ok(()) } else { Err(target.to_string()) }
    })
    .await
    .unwrap();
    prometheus.until("silence where nothing is wrong", &[]).await;

    for file in ["vpc-template.yaml", "eks-template.yaml", "cluster.yaml"] {
        stack.apply(&fs::read_to_string(root().join("examples").join(file)).unwrap()).await.unwrap();
    }
    let (missed, failed) = (("CaptDeadlineMissed", "firing"), ("CaptObjectsFailed", "pending"));
    // Whoever waits may be stuck; an hour tells.
    let waiting = ("CaptObjectsStuck", "pending");
    prometheus.until("a deadline that is missed", &[missed, failed, waiting]).await;
    let samples = prometheus.query("ALERTS{alertname=\"CaptDeadlineMissed\"}").await;
    assert_eq!(samples.len(), 1, "{samples:?}");
    assert_eq!(samples[0]["metric"]["deadline"], "VPCCreationTimeout");
    assert_eq!(samples[0]["metric"]["kind"], "CAPTCluster");

    let names = prometheus.ask("/api/v1/label/__name__/values").await.unwrap();
    let names: BTreeSet<String> = names.as_array().unwrap().iter().map(text).collect();
    for metric in METRICS.into_iter().filter(|metric| !SILENT.contains(metric)) {
        let is_there = names.contains(metric) || names.contains(&format!("{metric}_bucket"));
        assert!(is_there, "{metric} is in no scrape: {names:?}");
    }
    for expression in dashboard() {
        let found = prometheus.query(&expression).await;
        assert!(!found.is_empty(), "an empty panel: {expression}");
        let is_number = |sample: &Value| text(&sample["value"][1]).parse::<f64>().is_ok_and(f64::is_finite);
        assert!(found.iter().any(is_number), "{expression}: {found:?}");
    }
    let seen = fs::read_to_string(stack.directory().join("logs/prometheus.log")).unwrap();
    assert!(!seen.contains("level=error") && !seen.contains("level=warn"), "{seen}");

    // Its series end with it: what is left is its absence, and what increased in the last quarter of an hour.
    operator.kill();
    prometheus.until("an operator that is gone", &[missed, ("CaptNoLeader", "pending")]).await;
}
