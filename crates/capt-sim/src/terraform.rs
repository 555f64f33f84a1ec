//! What a Terraform module would put out, guessed from its text: for worlds that people play with.
//!
//! It finds the module's `output` blocks and gives each a value that looks like the real one. Nothing is
//! made anywhere. How long a run takes follows what the outputs say that it makes.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use capt_reconcile::hash;
use capt_status::Span;
use serde_json::{Value, json};

use crate::provider::{self, Outputs};

/// How long a VPC takes.
const VPC: Span = Span::from_minutes(3);
/// How long an EKS control plane takes.
const CONTROL_PLANE: Span = Span::from_minutes(11);
/// How long anything else takes.
const OTHER: Span = Span::from_seconds(40);

/// The variables that `workspace` hands to its module.
pub fn variables(workspace: &Value) -> BTreeMap<&str, &str> {
    let variables = workspace["spec"]["forProvider"]["vars"].as_array().into_iter().flatten();
    variables.filter_map(|variable| Some((variable["key"].as_str()?, variable["value"].as_str()?))).collect()
}

/// What an apply of `workspace` would put out.
pub fn guess(workspace: &Value) -> Outputs {
    let variables = variables(workspace);
    let module = workspace["spec"]["forProvider"]["module"].as_str().unwrap_or_default();
    let name = workspace["metadata"]["name"].as_str().unwrap_or_default();
    let cluster = variables.get("cluster_name").copied().unwrap_or(name);
    let mut outputs = Outputs { takes: OTHER, ..Outputs::default() };
    for Output { name: output, is_sensitive } in declared(module) {
        match output {
            "vpc_id" => outputs.takes = outputs.takes.max(VPC),
            "cluster_endpoint" => outputs.takes = outputs.takes.max(CONTROL_PLANE),
            _ => {}
        }
        let value = value(output, cluster, &variables);
        if is_sensitive {
            outputs.sensitive.insert(output.to_owned(), provider::text(&value));
        } else {
            outputs.plain.insert(output.to_owned(), value);
        }
    }
    outputs
}

struct Output<'a> {
    name: &'a str,
    is_sensitive: bool,
}

/// The outputs that a module declares.
fn declared(module: &str) -> Vec<Output<'_>> {
    let mut outputs = Vec::new();
    for (index, _) in module.match_indices("output \"") {
        let rest = module.get(index + "output \"".len()..).unwrap_or_default();
        let Some((name, rest)) = rest.split_once('"') else { continue };
        let block = rest.split("\n}").next().unwrap_or_default();
        let is_sensitive = block.lines().any(|line| line.replace(' ', "").starts_with("sensitive=true"));
        outputs.push(Output { name, is_sensitive });
    }
    outputs
}

fn value(output: &str, cluster: &str, variables: &BTreeMap<&str, &str>) -> Value {
    let id = hash::of_text(cluster, 32);
    let part = |length: usize| id.get(..length).unwrap_or_default();
    let region = variables.get("region").copied().unwrap_or("eu-west-1");
    match output {
        "vpc_id" => json!(format!("vpc-{}", part(17))),
        "azs" | "availability_zones" => json!([format!("{region}a"), format!("{region}b"), format!("{region}c")]),
        "cluster_endpoint" => json!(format!("https://{}.gr7.{region}.eks.amazonaws.com", part(32).to_uppercase())),
        "cluster_certificate_authority_data" => json!(STANDARD.encode(certificate(&id))),
        "cluster_name" => json!(cluster),
        "cluster_version" => json!(variables.get("kubernetes_version").copied().unwrap_or("1.31")),
        "oidc_provider_arn" => json!(format!(
            "arn:aws:iam::123456789012:oidc-provider/oidc.eks.{region}.amazonaws.com/id/{}",
            part(32).to_uppercase()
        )),
        "kubeconfig" => json!(kubeconfig(cluster)),
        "role_exists" => json!("true"),
        other if other.ends_with("subnets") || other.ends_with("subnet_ids") => {
            json!([format!("subnet-{}a", part(16)), format!("subnet-{}b", part(16))])
        }
        other => json!(format!("{other}-of-{cluster}")),
    }
}

fn certificate(id: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(id))
}

fn kubeconfig(cluster: &str) -> String {
    let server = "https://127.0.0.1:1";
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: {cluster}\n  cluster: {{server: {server}}}\ncontexts:\n- name: {cluster}\n  context: {{cluster: {cluster}, user: {cluster}}}\ncurrent-context: {cluster}\nusers:\n- name: {cluster}\n  user: {{}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_found_and_told_apart() {
        let module =
            "output \"vpc_id\" {\n  value = 1\n}\noutput \"kubeconfig\" {\n  value     = 2\n  sensitive = true\n}\n";
        let workspace = json!({"metadata": {"name": "w"}, "spec": {"forProvider": {"module": module, "vars": [{"key": "cluster_name", "value": "demo"}]}}});
        let outputs = guess(&workspace);
        assert!(outputs.plain["vpc_id"].as_str().unwrap().starts_with("vpc-"));
        assert_eq!(outputs.plain.len(), 1);
        assert!(outputs.sensitive["kubeconfig"].contains("current-context: demo"));
        assert_eq!(outputs.takes, VPC);
        assert_eq!(guess(&workspace), outputs, "the same each time");
    }
}
