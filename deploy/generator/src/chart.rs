//! What of the Helm chart says how the operator is set up: its metadata, its values and their schema.
//!
//! The templates are written by hand and only place these values. The schema refuses what it does
//! not know, so that neither a typing error nor the values of the Go implementation's chart pass.

use capt_operator::cli::Cli;
use clap::{Arg, ArgAction, CommandFactory};
use serde_json::{Map, Value, json};

use crate::{settings, text};

/// A value at the top of `values.yaml`.
struct Setting {
    name: &'static str,
    about: &'static str,
    default: Value,
    /// JSON schema.
    schema: Value,
}

fn setting(name: &'static str, about: &'static str, default: Value, schema: Value) -> Setting {
    Setting { name, about, default, schema }
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn string() -> Value {
    any("string")
}

fn strings() -> Value {
    json!({"type": "object", "additionalProperties": string()})
}

fn any(kind: &str) -> Value {
    json!({"type": kind})
}

fn enabled(about: &'static str, name: &'static str, default: bool) -> Setting {
    setting(name, about, json!({"enabled": default}), object(&json!({"enabled": {"type": "boolean"}})))
}

fn labelled(name: &'static str, about: &'static str, labels: &Value) -> Setting {
    let properties = json!({
        "enabled": {"type": "boolean"},
        "labels": strings(),
    });
    setting(name, about, json!({"enabled": false, "labels": labels}), object(&properties))
}

fn settings_table() -> Vec<Setting> {
    let mut settings = vec![
        setting(
            "image",
            "The image. An empty tag is the chart's appVersion; a digest wins over a tag.",
            json!({"repository": settings::IMAGE, "tag": "", "digest": "", "pullPolicy": ""}),
            object(&json!({
                "repository": {"type": "string", "minLength": 1},
                "tag": string(),
                "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
                "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
            })),
        ),
        setting("imagePullSecrets", "Secrets for a private registry: [{name: ...}].", json!([]), any("array")),
        setting(
            "replicas",
            "One works, the others wait for its lease.",
            json!(settings::REPLICAS),
            json!({"type": "integer", "minimum": 0}),
        ),
        setting(
            "flags",
            "Flags of `capt-operator run`, without the dashes; a list gives a flag several times.",
            settings::FLAGS
                .iter()
                .map(|(flag, value)| ((*flag).to_owned(), json!(value)))
                .collect::<Map<_, _>>()
                .into(),
            object(&flags()),
        ),
        setting(
            "crds",
            "Whether the CRDs are part of the release. They stay when it goes.",
            json!({"install": true}),
            object(&json!({"install": {"type": "boolean"}})),
        ),
        setting(
            "serviceAccount",
            "The service account; without `create`, `name` is one that exists.",
            json!({"create": true, "name": "", "annotations": {}}),
            object(&json!({"create": {"type": "boolean"}, "name": string(), "annotations": strings()})),
        ),
        enabled("At most one replica is evicted at a time.", "podDisruptionBudget", true),
        setting(
            "networkPolicy",
            "Whether the pods may be reached for probes and metrics only and reach the API server only; its addresses as CIDRs, none for any address on its ports; `egress` has further rules, as for a collector of traces.",
            json!({"enabled": false, "apiServers": [], "ports": settings::API_SERVER_PORTS, "egress": []}),
            object(&json!({
                "enabled": {"type": "boolean"},
                "apiServers": {"type": "array", "items": {"type": "string", "pattern": "/[0-9]+$"}},
                "ports": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
                "egress": {"type": "array", "items": {"type": "object"}},
            })),
        ),
        labelled(
            "serviceMonitor",
            "How Prometheus scrapes, for its operator; labels by which it finds this.",
            &json!({}),
        ),
        labelled(
            "prometheusRule",
            "The alerts, for the Prometheus operator; labels by which it finds them.",
            &json!({}),
        ),
        labelled(
            "dashboard",
            "The dashboard as a ConfigMap; labels by which Grafana's sidecar finds it.",
            &json!({"grafana_dashboard": "1"}),
        ),
    ];
    settings.extend(pod_settings());
    settings.push(setting("fullnameOverride", "Name of everything in place of the release's.", json!(""), string()));
    settings
}

/// What of the pods is nobody's affair but the administrator's.
fn pod_settings() -> [Setting; 14] {
    [
        setting(
            "env",
            "More environment variables of the container, as in a Pod: a header with a token from a Secret, say.",
            json!([]),
            any("array"),
        ),
        setting("volumes", "Volumes of the pods, as for the files that flags name.", json!([]), any("array")),
        setting("volumeMounts", "Where the container has them.", json!([]), any("array")),
        setting(
            "resources",
            "Requests and limits. A limit on the processor could let the lease run out.",
            settings::resources(),
            any("object"),
        ),
        setting("securityContext", "What the container may do.", settings::container_security(), any("object")),
        setting("podSecurityContext", "What the pod may do.", settings::pod_security(), any("object")),
        setting(
            "terminationGracePeriodSeconds",
            "Between SIGTERM and the kill; the lease is handed over in the first second.",
            json!(settings::GRACE_SECONDS),
            json!({"type": "integer", "minimum": 1}),
        ),
        setting("podLabels", "More labels of the pods.", json!({}), strings()),
        setting("podAnnotations", "More annotations of the pods.", json!({}), strings()),
        setting("priorityClassName", "Priority class of the pods.", json!(""), string()),
        setting("nodeSelector", "Where the pods may run.", json!({"kubernetes.io/os": "linux"}), strings()),
        setting("tolerations", "Taints that the pods tolerate.", json!([]), any("array")),
        setting("affinity", "Affinity of the pods.", json!({}), any("object")),
        setting("topologySpreadConstraints", "How the pods are spread.", json!([]), any("array")),
    ]
}

/// The flags of `run` as the command line knows them; how to reach the API server is the pod's affair.
fn flags() -> Value {
    let command = Cli::command();
    let run = command.find_subcommand(settings::COMMAND);
    let arguments = run.into_iter().flat_map(clap::Command::get_arguments);
    let known = arguments.filter(|argument| !["kubeconfig", "context", "help"].contains(&argument.get_id().as_str()));
    known
        .filter_map(|argument| Some((argument.get_long()?.to_owned(), flag(argument))))
        .collect::<Map<String, Value>>()
        .into()
}

fn flag(argument: &Arg) -> Value {
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let one =
        if values.is_empty() { json!({"type": ["string", "number", "boolean"]}) } else { json!({"enum": values}) };
    let mut schema = match argument.get_action() {
        ArgAction::Append => json!({"anyOf": [one, {"type": "array", "items": one}]}),
        ArgAction::SetTrue | ArgAction::SetFalse => json!({"type": ["boolean", "string"]}),
        _ => one,
    };
    if let Some(help) = argument.get_help() {
        schema["description"] = help.to_string().into();
    }
    schema
}

/// `Chart.yaml`.
pub fn chart() -> Result<String, text::Error> {
    text::yaml(&[json!({
        "apiVersion": "v2",
        "name": settings::PROVIDER,
        "description": "Cluster API provider for EKS by Terraform Workspaces",
        "type": "application",
        "version": env!("CARGO_PKG_VERSION"),
        "appVersion": settings::version(),
        // Server-side apply and rules on metadata of CRDs.
        "kubeVersion": ">=1.30.0-0",
        "keywords": ["cluster-api", "eks", "terraform", "crossplane"],
    })])
}

/// `values.yaml`, with what each value means.
pub fn values() -> Result<String, text::Error> {
    let mut out = text::HEAD.to_owned();
    for setting in settings_table() {
        let value = serde_saphyr::to_string(&json!({setting.name: setting.default}))?;
        for part in ["\n# ", setting.about, "\n", &value] {
            out.push_str(part);
        }
    }
    Ok(out)
}

/// `values.schema.json`.
pub fn schema() -> Result<String, text::Error> {
    let mut properties: Map<String, Value> = Map::new();
    for setting in settings_table() {
        let mut schema = setting.schema;
        schema["description"] = setting.about.into();
        properties.insert(setting.name.to_owned(), schema);
    }
    // Helm itself hands this one to charts that are part of another.
    properties.insert("global".to_owned(), json!({"type": "object"}));
    let mut schema = object(&properties.into());
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    Ok(format!("{}\n", serde_json::to_string_pretty(&schema)?))
}
