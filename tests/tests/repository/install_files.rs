//! The install files are what the code generates, and they fit the code: flags, names, selectors.

use std::{collections::BTreeSet, fs};

use capt_deploy::{Source, clusterctl, files, settings, workload};
use capt_operator::cli::Cli;
use capt_tests::{documents, root};
use clap::CommandFactory;
use serde_json::Value;

fn source() -> Source {
    Source::read(&root()).unwrap()
}

#[test]
fn every_file_is_what_the_code_generates() {
    for (path, text) in files(&source()).unwrap() {
        let file = root().join(&path);
        if std::env::var_os("UPDATE_DEPLOY").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        assert!(stored == text, "{path} is stale: run `just deploy`");
    }
}

/// A flag that does not exist would end the process at its start, on somebody's cluster.
#[test]
fn the_deployment_starts_the_operator_with_flags_that_it_has() {
    let arguments = settings::arguments();
    let command = std::iter::once("capt-operator".to_owned()).chain(arguments.clone());
    let parsed = Cli::command().try_get_matches_from(command).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    let (name, given) = parsed.subcommand().unwrap();
    assert_eq!(name, settings::COMMAND);
    for (flag, _) in settings::FLAGS {
        let id = flag.replace('-', "_");
        assert_eq!(given.value_source(&id), Some(clap::parser::ValueSource::CommandLine), "--{flag}");
    }
}

/// What is probed and scraped is where the flags say.
#[test]
fn the_ports_are_those_of_the_flags() {
    let flag = |name: &str| settings::FLAGS.iter().find(|(flag, _)| *flag == name).unwrap().1;
    assert_eq!(flag("health-address"), format!(":{}", settings::HEALTH_PORT));
    assert_eq!(flag("metrics-address"), format!(":{}", settings::METRICS_PORT));
    let deployment = workload::deployment();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(
            (&container[probe]["httpGet"]["path"], &container[probe]["httpGet"]["port"]),
            (&path.into(), &"health".into())
        );
    }
    assert_eq!(workload::metrics_service()["spec"]["selector"], deployment["spec"]["selector"]["matchLabels"]);
}

/// Whoever scrapes or probes must come through, and nothing else: neither in nor out.
#[test]
fn the_network_policy_is_about_the_pods_and_opens_the_ports_of_the_flags() {
    let policy = &documents(&root().join("deploy/network-policy/network-policy.yaml")).unwrap()[0];
    let selector = &policy["spec"]["podSelector"]["matchLabels"];
    for (label, value) in selector.as_object().unwrap() {
        assert_eq!(&workload::deployment()["spec"]["template"]["metadata"]["labels"][label], value);
    }
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    let ports = |direction: &str| -> Vec<i64> {
        let [rule] = &policy["spec"][direction].as_array().unwrap()[..] else { panic!("{direction}") };
        rule["ports"].as_array().unwrap().iter().map(|port| port["port"].as_i64().unwrap()).collect()
    };
    assert_eq!(ports("ingress"), [settings::HEALTH_PORT, settings::METRICS_PORT]);
    assert_eq!(ports("egress"), settings::API_SERVER_PORTS);
}

#[test]
fn the_roles_are_bound_to_the_service_account_of_the_deployment() {
    let bindings: Vec<Value> =
        source().rbac.into_iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding")).collect();
    assert!(!bindings.is_empty());
    for binding in bindings {
        let subject = &binding["subjects"][0];
        assert_eq!(
            (subject["kind"].as_str(), subject["name"].as_str(), subject["namespace"].as_str()),
            (Some("ServiceAccount"), Some(settings::SERVICE_ACCOUNT), Some(settings::NAMESPACE)),
            "{binding}"
        );
    }
}

/// What the `restricted` pod security standard asks for; the namespace enforces it.
#[test]
fn the_pod_is_as_restricted_as_its_namespace_wants() {
    let pod = &workload::deployment()["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["securityContext"]["runAsUser"], 0);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in pod["containers"].as_array().unwrap() {
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"].is_object());
    }
    assert!(pod.get("hostNetwork").is_none() && pod.get("volumes").is_none());
    assert_eq!(workload::namespace("n")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

/// clusterctl's rules for components: one Namespace, every namespaced object in it, a label on each,
/// and between the two files all CRDs, each once.
#[test]
fn the_components_keep_the_rules_of_clusterctl() {
    let mut crds = Vec::new();
    let mut deployments = 0;
    for provider in clusterctl::Provider::ALL {
        let objects = documents(&root().join("deploy/clusterctl").join(provider.file())).unwrap();
        let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
        let [namespace] = of_kind("Namespace")[..] else { panic!("{}: not one Namespace", provider.file()) };
        for object in &objects {
            assert_eq!(object["metadata"]["labels"][clusterctl::PROVIDER_LABEL], provider.label(), "{object}");
            if let Some(place) = object["metadata"]["namespace"].as_str() {
                assert_eq!(place, namespace["metadata"]["name"].as_str().unwrap(), "{object}");
            }
        }
        for deployment in of_kind("Deployment") {
            deployments += 1;
            assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["name"], "manager");
        }
        crds.extend(of_kind("CustomResourceDefinition").iter().map(|crd| crd["metadata"]["name"].to_string()));
    }
    assert_eq!(deployments, 1, "the process serves both providers");
    let all: BTreeSet<String> = source().crds.iter().map(|crd| crd["metadata"]["name"].to_string()).collect();
    assert_eq!((crds.len(), crds.into_iter().collect::<BTreeSet<_>>()), (6, all));
}

/// clusterctl replaces `${...}` in components, and fails on a variable that nobody set.
#[test]
fn no_component_holds_a_variable_by_accident() {
    for provider in clusterctl::Provider::ALL {
        let text = fs::read_to_string(root().join("deploy/clusterctl").join(provider.file())).unwrap();
        let escaped = text.matches("$${").count();
        assert_eq!(text.matches("${").count(), escaped, "{}", provider.file());
        assert!(provider == clusterctl::Provider::ControlPlane || escaped > 0, "the CRDs speak of ${{VARIABLE}}");
    }
}
