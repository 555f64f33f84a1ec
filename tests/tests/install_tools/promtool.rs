//! The alerts with promtool: they parse, fire when they should, and are silent close by.

use std::{path::Path, process::Command};

use capt_deploy::monitoring::ALERTS;
use capt_tests::root;

/// `promtool` of `PROMTOOL` or `PATH`, in the directory of the alerts; `None` where there is none.
fn promtool(arguments: &[&str]) -> Option<Result<String, String>> {
    let program = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
    let output = match Command::new(program).args(arguments).current_dir(directory()).output() {
        Ok(output) => output,
        Err(error) => {
            println!("NOT TRIED: no promtool here ({error}); install Prometheus (Debian: prometheus) or set PROMTOOL");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Some(if output.status.success() { Ok(said.into_owned()) } else { Err(said.into_owned()) })
}

fn directory() -> std::path::PathBuf {
    root().join("deploy/monitoring")
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
#[ignore = "needs promtool: just test-install"]
fn the_alerts_fire_when_they_should() {
    let Some(checked) = promtool(&["check", "rules", "alerts.yaml"]) else { return };
    assert!(checked.unwrap().contains(&format!("{} rules found", ALERTS.len())));
    if let Some(Err(said)) = promtool(&["test", "rules", "alerts.test.yaml"]) {
        panic!("{said}");
    }
}

/// Without a test that sees it fire and one that sees it silent, an alert may be either for ever.
#[test]
#[ignore = "runs with the others of promtool: just test-install"]
fn every_alert_is_tested() {
    let tests = read(&directory().join("alerts.test.yaml"));
    for alert in ALERTS {
        let anchor = format!("#{}", alert.name.to_lowercase());
        let fires = tests.contains(&anchor);
        let looked_at = tests.matches(&format!("alertname: {}\n", alert.name)).count();
        assert!(fires && looked_at >= 1, "{} is not tested", alert.name);
    }
}
