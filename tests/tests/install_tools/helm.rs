//! The chart with helm.

use std::{collections::BTreeSet, path::PathBuf};

use capt_deploy::settings;
use capt_stack::{Stack, Tier, tool};
use capt_tests::root;
use serde_json::{Value, json};

use crate::{
    go,
    run::{Said, crds, deployment, documents, run, stored},
};

fn chart() -> String {
    root().join("deploy/chart").display().to_string()
}

fn helm(stack: Option<&Stack>, arguments: &[&str]) -> Said {
    run(&tool("helm").unwrap(), stack, arguments)
}

fn rendered(extra: &[&str]) -> Result<Vec<Value>, String> {
    let chart = chart();
    let arguments = [&["template", "capt", &chart, "--namespace", settings::NAMESPACE], extra].concat();
    Ok(documents(&helm(None, &arguments)?))
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// Without the marks that each tool leaves, so that what is left is what it installs.
fn bare(mut object: Value) -> Value {
    for labels in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels", "/spec/selector"]
    {
        if let Some(Value::Object(labels)) = object.pointer_mut(labels) {
            labels.retain(|key, _| !key.starts_with("app.kubernetes.io/") && key != "helm.sh/chart");
        }
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, value| key != "annotations" && *value != json!({}));
    }
    object
}

#[test]
#[ignore = "needs helm: just test-install"]
fn the_defaults_render_what_the_base_holds() {
    let base = root().join("deploy/kustomize").display().to_string();
    let key = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    let sorted = |objects: Vec<Value>| {
        let mut objects: Vec<Value> =
            objects.into_iter().filter(|object| object["kind"] != "Namespace").map(bare).collect();
        objects.sort_by_key(key);
        objects
    };
    let base = sorted(documents(&run(&which("kubectl"), None, &["kustomize", &base]).unwrap()));
    let chart = sorted(rendered(&[]).unwrap());
    assert_eq!(chart.iter().map(key).collect::<Vec<_>>(), base.iter().map(key).collect::<Vec<_>>());
    for (chart, base) in chart.iter().zip(&base) {
        assert_eq!(chart, base, "{}", key(base));
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file()).unwrap()
}

/// A package holds what the directory holds by links.
#[test]
#[ignore = "needs helm: just test-install"]
fn the_chart_is_clean_and_its_package_renders_the_same() {
    let said = helm(None, &["lint", "--strict", &chart()]).unwrap();
    assert!(said.contains("0 chart(s) failed") && !said.contains("[WARNING]"), "{said}");
    let directory = std::env::temp_dir().join(format!("capt-chart-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    helm(None, &["package", &chart(), "--destination", directory.to_str().unwrap()]).unwrap();
    let package = directory.join(format!("capt-{}.tgz", settings::version().trim_start_matches('v')));
    let packed =
        helm(None, &["template", "capt", package.to_str().unwrap(), "--namespace", settings::NAMESPACE]).unwrap();
    assert_eq!(documents(&packed), rendered(&[]).unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
#[ignore = "needs helm: just test-install"]
fn values_reach_their_place_and_unknown_ones_are_refused() {
    let digest = format!("image.digest=sha256:{}", "0".repeat(64));
    let objects = rendered(&[
        "--set=replicas=2",
        &format!("--set={digest}"),
        "--set-json=flags.concurrency=4",
        "--set=serviceAccount.create=false,serviceAccount.name=mine",
        "--set=podDisruptionBudget.enabled=false,crds.install=false",
        "--set-json=tolerations=[{\"operator\":\"Exists\"}]",
        "--set-json=env=[{\"name\":\"OTEL_SERVICE_NAME\",\"value\":\"capt\"}]",
        "--set-json=volumes=[{\"name\":\"tls\",\"secret\":{\"secretName\":\"tls\"}}]",
        "--set-json=volumeMounts=[{\"name\":\"tls\",\"mountPath\":\"/tls\"}]",
    ])
    .unwrap();
    let spec = &find(&objects, "Deployment")["spec"];
    let pod = &spec["template"]["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(pod["containers"][0]["image"], format!("{}@sha256:{}", settings::IMAGE, "0".repeat(64)));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["volumes"], json!([{"name": "tls", "secret": {"secretName": "tls"}}]));
    assert_eq!(pod["containers"][0]["volumeMounts"], json!([{"name": "tls", "mountPath": "/tls"}]));
    assert_eq!(pod["containers"][0]["env"], json!([{"name": "OTEL_SERVICE_NAME", "value": "capt"}]));
    assert_eq!(pod["serviceAccountName"], "mine");
    assert_eq!(find(&objects, "ClusterRoleBinding")["subjects"][0]["name"], "mine");
    let arguments: Vec<&str> =
        pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(arguments.contains(&"--concurrency=4") && arguments.contains(&"--log-format=json"), "{arguments:?}");
    let others = ["ServiceAccount", "PodDisruptionBudget", "CustomResourceDefinition"];
    assert!(objects.iter().all(|object| !others.contains(&object["kind"].as_str().unwrap())));

    for wrong in [
        // Values of the Go implementation's chart: its flags would stop the process.
        "controllerManager.replicas=2",
        "flags.metrics-bind-address=:8443",
        "flags.log-format=xml",
        "replicas=many",
        "image.digest=latest",
    ] {
        let refused = rendered(&[&format!("--set={wrong}")]).unwrap_err();
        assert!(refused.contains("values don't meet the specifications of the schema"), "{wrong}: {refused}");
    }
}

/// Each value of a pod that stands under its own name.
#[test]
#[ignore = "needs helm: just test-install"]
fn what_a_pod_is_given_is_in_its_template() {
    let selector = json!({"matchLabels": {"a": "b"}});
    for (value, pointer, given) in [
        ("affinity", "/spec/affinity", json!({"nodeAffinity": {}})),
        ("nodeSelector", "/spec/nodeSelector", json!({"a": "b"})),
        ("priorityClassName", "/spec/priorityClassName", json!("high")),
        ("imagePullSecrets", "/spec/imagePullSecrets", json!([{"name": "s"}])),
        (
            "topologySpreadConstraints",
            "/spec/topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]),
        ),
        ("podLabels", "/metadata/labels", json!({"team": "a"})),
        ("podAnnotations", "/metadata/annotations", json!({"team": "a"})),
    ] {
        let objects = rendered(&[&format!("--set-json={value}={given}")]).unwrap();
        let found = find(&objects, "Deployment")["spec"]["template"].pointer(pointer).cloned().unwrap_or_default();
        let has = match (&given, &found) {
            // Beside what is there anyway.
            (Value::Object(given), Value::Object(found)) => {
                given.iter().all(|(name, value)| found.get(name) == Some(value))
            }
            (given, found) => given == found,
        };
        assert!(has, "{value}: {found}");
    }
}

/// With a CRD would go all its objects, and with those the clusters.
#[test]
#[ignore = "needs helm: just test-install"]
fn every_crd_is_kept() {
    let objects = rendered(&[]).unwrap();
    let crds: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    assert!(crds.len() > 4);
    for crd in crds {
        assert_eq!(crd["metadata"]["annotations"]["helm.sh/resource-policy"], "keep", "{}", crd["metadata"]["name"]);
    }
}

/// The policy of the chart, and with the same values that of the file.
#[test]
#[ignore = "needs helm: just test-install"]
fn the_network_policy_is_that_of_the_file_and_knows_the_addresses_that_it_is_told() {
    let policy = |extra: &[&str]| {
        let objects = rendered(&[&["--set=networkPolicy.enabled=true"], extra].concat()).unwrap();
        bare(find(&objects, "NetworkPolicy").clone())["spec"].clone()
    };
    let without_labels = |spec: Value| bare(json!({"spec": spec}))["spec"].clone();
    let stored = capt_tests::documents(&root().join("deploy/network-policy/network-policy.yaml")).unwrap().remove(0);
    for field in ["policyTypes", "ingress", "egress"] {
        assert_eq!(policy(&[])[field], without_labels(stored["spec"].clone())[field], "{field}");
    }
    let told = policy(&["--set-json=networkPolicy.apiServers=[\"10.0.0.1/32\"]"]);
    assert_eq!(told["egress"], capt_deploy::workload::network_policy(&["10.0.0.1/32"])["spec"]["egress"]);
    let further = json!({"ports": [{"port": 4318, "protocol": "TCP"}], "to": [{"podSelector": {}}]});
    let told = policy(&[&format!("--set-json=networkPolicy.egress=[{further}]")]);
    assert_eq!(told["egress"], json!([without_labels(stored["spec"].clone())["egress"][0], further]));
    assert!(rendered(&[]).unwrap().iter().all(|object| object["kind"] != "NetworkPolicy"), "only if asked for");
    assert!(rendered(&["--set-json=networkPolicy.apiServers=[\"10.0.0.1\"]"]).is_err(), "no CIDR");
}

/// Kind, namespace and name of the roles and bindings.
fn roles(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = objects.iter().filter(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1").map(|object| {
        [&object["kind"], &object["metadata"]["namespace"], &object["metadata"]["name"]].map(text).join("/")
    });
    names.collect()
}

#[test]
#[ignore = "needs helm: just test-install"]
fn an_operator_of_some_namespaces_has_a_role_in_each_and_may_read_no_secret_elsewhere() {
    let all = roles(&rendered(&[]).unwrap());
    let mut expected = all.clone();
    for kind in ["Role", "RoleBinding"] {
        expected.extend(["a", "b"].map(|namespace| format!("{kind}/{namespace}/capt-operator")));
    }
    for value in [r#"["a","b"]"#, r#""a,b""#] {
        let objects = rendered(&[&format!("--set-json=flags.namespace={value}")]).unwrap();
        assert_eq!(roles(&objects), expected, "{value}");
        let rules = find(&objects, "ClusterRole")["rules"].to_string();
        assert!(!rules.contains("secrets") && rules.contains("workspacetemplateapplies"), "{rules}");
    }
    assert!(find(&rendered(&[]).unwrap(), "ClusterRole")["rules"].to_string().contains("secrets"));
}

#[test]
#[ignore = "needs helm: just test-install"]
fn alerts_and_dashboard_are_the_files() {
    let objects =
        rendered(&["--set=serviceMonitor.enabled=true,prometheusRule.enabled=true,prometheusRule.labels.team=x,dashboard.enabled=true"]).unwrap();
    let file = root().join("deploy/monitoring");
    // The monitor selects the service, and the port is one that the service has.
    let (monitor, service) = (find(&objects, "ServiceMonitor"), find(&objects, "Service"));
    for (label, value) in monitor["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&service["metadata"]["labels"][label], value, "{label}");
    }
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
    let rule = find(&objects, "PrometheusRule");
    assert_eq!(rule["metadata"]["labels"]["team"], "x");
    let stored = capt_tests::documents(&file.join("prometheus-rule.yaml")).unwrap();
    assert_eq!(rule["spec"], stored[0]["spec"]);
    let text = find(&objects, "ConfigMap")["data"]["capt.json"].as_str().unwrap();
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let stored = std::fs::read_to_string(file.join("dashboard.json")).unwrap();
    assert_eq!(dashboard, serde_json::from_str::<Value>(&stored).unwrap());
}

#[test]
#[ignore = "needs helm: just test-install"]
fn another_release_has_names_of_its_own() {
    let of = |release: &str| documents(&helm(None, &["template", release, &chart(), "--namespace", "teams"]).unwrap());
    let deployment = |release: &str| find(&of(release), "Deployment")["metadata"]["name"].clone();
    assert_eq!([deployment("capt"), deployment("my-capt")], ["capt-controller-manager", "my-capt-controller-manager"]);
    let objects = of("blue");
    assert_eq!(find(&objects, "Deployment")["metadata"]["name"], "blue-capt-controller-manager");
    let binding = find(&objects, "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], find(&objects, "ClusterRole")["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], find(&objects, "ServiceAccount")["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["namespace"], "teams");
    assert_eq!(
        find(&objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"],
        find(&objects, "ServiceAccount")["metadata"]["name"]
    );
}

const CLUSTER: &str = r#"{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
    "metadata": {"name": "running", "namespace": "default"}, "spec": {"region": "eu-west-1"}}"#;

async fn uid_of_the_cluster(client: &kube::Client) -> Value {
    let version = "infrastructure.cluster.x-k8s.io/v1beta1";
    stored(client, version, "CAPTCluster", Some("default"), "running").await.unwrap()["metadata"]["uid"].clone()
}

#[tokio::test]
#[ignore = "needs the real stack and helm: just test-install"]
async fn a_release_is_installed_upgraded_and_gone_and_the_clusters_stay() {
    let stack = Stack::start(Tier::ApiServer).await.unwrap();
    let client = stack.admin_client().await.unwrap();
    let helm = |arguments: &[&str]| {
        let said = helm(Some(&stack), &[arguments, &["--namespace", settings::NAMESPACE]].concat());
        said.unwrap_or_else(|said| panic!("{arguments:?}: {said}"))
    };
    let notes = helm(&["install", "capt", &chart(), "--create-namespace"]);
    assert!(notes.contains("no CRD clusters.cluster.x-k8s.io"), "{notes}");
    stack.apply(CLUSTER).await.unwrap();
    let before = (crds(&client).await, uid_of_the_cluster(&client).await);
    assert_eq!(before.0.len(), 6);

    helm(&["upgrade", "capt", &chart(), "--set=replicas=2"]);
    assert_eq!(deployment(&client).await.unwrap()["spec"]["replicas"], 2);
    // Both ways of losing CRDs: out of the release, and the release itself.
    helm(&["upgrade", "capt", &chart(), "--set=crds.install=false"]);
    assert_eq!((crds(&client).await, uid_of_the_cluster(&client).await), before);
    helm(&["upgrade", "capt", &chart(), "--set=crds.install=true"]);
    helm(&["uninstall", "capt"]);
    assert_eq!((crds(&client).await, uid_of_the_cluster(&client).await), before);
    assert_eq!(deployment(&client).await, None);
}

/// Helm deletes what the last release had and this one has not. The Go implementation's chart has
/// CRDs of its own: the upgrade stops before it deletes them, says how to keep them, and goes
/// through afterwards. Tried with both ways in which Helm may have applied that chart.
#[tokio::test]
#[ignore = "needs the real stack and helm: just test-install"]
async fn an_upgrade_from_the_go_implementations_chart_deletes_no_crd() {
    for server_side in ["true", "false"] {
        let stack = Stack::start(Tier::ApiServer).await.unwrap();
        let client = stack.admin_client().await.unwrap();
        let helm =
            |arguments: &[&str]| helm(Some(&stack), &[arguments, &["--namespace", settings::NAMESPACE]].concat());
        let old = stack.directory().join("go-chart");
        go::chart(&old);
        let how = format!("--server-side={server_side}");
        helm(&["install", "capt", old.to_str().unwrap(), "--create-namespace", &how]).unwrap();
        stack.apply(CLUSTER).await.unwrap();
        let machine = CLUSTER.replace("CAPTCluster", "CaptMachine");
        stack.apply(&machine).await.unwrap();
        let before = (crds(&client).await, uid_of_the_cluster(&client).await);
        let old_deployment = deployment(&client).await.unwrap();

        let refused = helm(&["upgrade", "capt", &chart()]).unwrap_err();
        let advice: Vec<&str> = refused.lines().map(str::trim).filter(|line| line.starts_with("kubectl ")).collect();
        assert_eq!(advice.len(), 2, "{refused}");
        for name in
            ["captmachines.infrastructure.cluster.x-k8s.io", "captcontrolplanetemplates.controlplane.cluster.x-k8s.io"]
        {
            assert!(advice[0].contains(name), "{advice:?}");
        }
        assert_eq!((crds(&client).await, uid_of_the_cluster(&client).await), before);
        assert_eq!(deployment(&client).await.unwrap()["spec"], old_deployment["spec"], "nothing was changed");

        for command in advice {
            let kubectl = stack.kubectl().unwrap().display().to_string();
            run(&which("sh"), Some(&stack), &["-c", &command.replacen("kubectl", &kubectl, 1)]).unwrap();
        }
        let notes = helm(&["upgrade", "capt", &chart()]).unwrap_or_else(|said| panic!("{how}: {said}"));
        assert!(notes.contains("kind CaptControlPlaneTemplate"), "{notes}");

        let (crds, cluster) = (crds(&client).await, uid_of_the_cluster(&client).await);
        assert_eq!(cluster, before.1);
        for crd in &before.0 {
            assert!(crds.contains(crd), "{} is gone or was made anew", crd.0);
        }
        assert!(
            stored(&client, "infrastructure.cluster.x-k8s.io/v1beta1", "CaptMachine", Some("default"), "running")
                .await
                .is_some()
        );
        let new_deployment = deployment(&client).await.unwrap();
        assert_eq!(new_deployment["metadata"]["uid"], old_deployment["metadata"]["uid"]);
        assert_eq!(new_deployment["spec"]["strategy"], json!({"type": "Recreate"}));
        let container = &new_deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(settings::arguments()));
        assert_eq!(container["command"], json!([settings::PROGRAM]));
        assert_eq!(container.get("env"), None, "left over from the Go chart");
    }
}
