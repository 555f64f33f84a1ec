//! Health and metrics of the running process, as a kubelet and a Prometheus read them; and that no
//! value of a Secret comes out anywhere.

use std::collections::BTreeMap;

use capt_stack::{Stack, Tier, eventually};
use capt_tests::operator::{self, Operator};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, Config, api::PostParams};
use serde_json::json;

use crate::place::SOON;

/// Nothing else looks like this, as it is and as base64.
const CANARIES: [&str; 2] = ["canary-8f1e0c", "Y2FuYXJ5LThmMWUwYw=="];

/// Who may read the metrics, and who is known but may not.
pub(crate) const READERS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: somebody, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}, {nonResourceURLs: [/log-level], verbs: [get, put]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
";

/// Where the process says that it serves `what`.
pub(crate) async fn address(operator: &Operator, what: &str) -> String {
    let found = || {
        let log = operator.log();
        let line = log.lines().find(|line| line.contains(&format!("serves {what}")))?;
        let rest = line.split("address=").nth(1).or_else(|| line.split("\"address\":\"").nth(1))?;
        Some(rest.split(['"', ' ']).next().unwrap_or_default().to_owned())
    };
    eventually("an address in the log", SOON, || async { found().map(drop).ok_or_else(|| operator.log()) })
        .await
        .unwrap();
    found().unwrap()
}

/// A client of a server that is no API server, with a token.
pub(crate) fn visitor(url: &str, token: Option<String>) -> Client {
    let mut config = Config::new(url.parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.token = token.map(Into::into);
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

pub(crate) async fn get(client: &Client, method: &str, path: &str, body: &str) -> Result<String, u16> {
    let request = http::Request::builder().method(method).uri(path).body(body.as_bytes().to_vec()).unwrap();
    match client.request_text(request).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

pub(crate) async fn token(client: &Client, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

/// Name and labels of each sample, and its value.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap()).map(|(name, value)| (name, value.parse().unwrap())).collect()
}

#[tokio::test]
#[ignore = "needs the real stack: just test-stack"]
async fn health_and_metrics_are_served_to_whom_they_may_and_no_secret_comes_out() {
    let manifests = [operator::manifests().unwrap(), operator::lease_manifests().unwrap(), READERS.to_owned()];
    let stack = Stack::builder(Tier::ApiServer).install(manifests.join("\n---\n")).start().await.unwrap();
    let admin = stack.admin_client().await.unwrap();
    for type_ in ["connection.crossplane.io/v1alpha1", "Opaque"] {
        let name = format!("canary-{}", type_.len());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
            "type": type_, "stringData": {"vpc_id": CANARIES[0], "kubeconfig": CANARIES[0]},
        });
        stack.apply(&secret.to_string()).await.unwrap();
    }
    let operator = Operator::start(&stack, &["--leader-elect", "--log-level=trace", "--log-format=json"]).unwrap();
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "CAPTCluster",
        "metadata": {"name": "measured", "namespace": "default"},
        "spec": {"region": "eu-west-1", "vpcTemplateRef": {"name": "vpc"}},
    });
    stack.apply(&object.to_string()).await.unwrap();

    let health = visitor(&format!("http://{}", address(&operator, "health").await), None);
    assert_eq!(get(&health, "GET", "/livez", "").await, Ok("ok\n".to_owned()));
    eventually("readiness", SOON, || async {
        get(&health, "GET", "/readyz", "").await.map(drop).map_err(|code| code.to_string())
    })
    .await
    .unwrap();
    let ready = get(&health, "GET", "/readyz", "").await.unwrap();
    for check in ["[+] caches: complete", "[+] api-server: answers", "[+] watches: oldest", "[+] lease: leader"] {
        assert!(ready.contains(check), "{ready}");
    }
    assert_eq!(get(&health, "GET", "/metrics", "").await, Err(404), "metrics are not for everybody");

    let url = format!("https://{}", address(&operator, "metrics").await);
    let (reader, somebody) = (token(&admin, "prometheus").await, token(&admin, "somebody").await);
    assert_eq!(get(&visitor(&url, None), "GET", "/metrics", "").await, Err(401));
    assert_eq!(get(&visitor(&url, Some("nonsense".to_owned())), "GET", "/metrics", "").await, Err(401));
    assert_eq!(get(&visitor(&url, Some(somebody)), "GET", "/metrics", "").await, Err(403));
    let prometheus = visitor(&url, Some(reader));
    let text = get(&prometheus, "GET", "/metrics", "").await.unwrap();
    let samples = samples(&text);
    for (sample, least) in [
        (r#"capt_passes_total{kind="CAPTCluster",outcome="wrote"}"#, 1.0),
        (r#"capt_pass_duration_seconds_count{kind="CAPTCluster"}"#, 1.0),
        (r#"capt_objects{kind="CAPTCluster",state="Pending",phase="Creating"}"#, 1.0),
        (r#"capt_api_requests_total{verb="watch",resource="secrets",code="200"}"#, 1.0),
        (r#"capt_api_requests_total{verb="create",resource="leases.coordination.k8s.io",code="201"}"#, 1.0),
        (r#"capt_api_request_duration_seconds_count{verb="watch"}"#, 5.0),
        ("capt_queue_latency_seconds_count", 1.0),
        ("capt_queue_depth", 0.0),
        ("capt_passes_running", 0.0),
        ("capt_leader", 1.0),
        ("capt_orphaned_workspaces", 0.0),
        ("process_cpu_seconds_total", 0.001),
        ("process_resident_memory_bytes", 1_000_000.0),
        ("process_open_fds", 5.0),
        ("process_start_time_seconds", 1_700_000_000.0),
    ] {
        assert!(samples.get(sample).is_some_and(|value| *value >= least), "{sample} >= {least} is not in\n{text}");
    }
    assert!(samples.keys().any(|name| name.starts_with("capt_build_info{version=")), "{text}");
    assert!(samples.keys().any(|name| name.starts_with("capt_status_writes_total{kind=\"CAPTCluster\",fields=")));
    assert!(!text.contains("measured"), "names of objects are no labels:\n{text}");

    assert_eq!(get(&prometheus, "PUT", "/log-level", "loud=noise=x").await, Err(400));
    let level = get(&prometheus, "PUT", "/log-level", "warn").await.unwrap();
    assert!(level.contains("warn"), "{level}");

    let objects = capt_tests::history::Kind::CaptCluster.api(&admin, Some("default"));
    let status = serde_json::to_string(&objects.get("measured").await.unwrap()).unwrap();
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(admin.clone());
    let events = serde_json::to_string(&events.list(&kube::api::ListParams::default()).await.unwrap().items).unwrap();
    let log = operator.log();
    assert!(log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""), "the log tells everything");
    for (place, text) in [("log", &log), ("metrics", &text), ("status", &status), ("events", &events)] {
        for canary in CANARIES {
            assert!(!text.contains(canary), "the value of a Secret is in the {place}");
        }
    }
}
