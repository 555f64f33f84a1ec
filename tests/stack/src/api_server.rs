//! The first tier: etcd and kube-apiserver, with RBAC and an audit log.
//!
//! Ready means `/readyz` and the namespace `default`: the API server answers some seconds before its
//! own start-up hooks have made the objects that everyone expects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::assets::Part;
use crate::site::{Site, free_ports};
use crate::supervise::Process;
use crate::{Error, audit, pki, wait};

/// 4-7 seconds are usual; two busy cores with builds beside it took half a minute.
const LIMIT: Duration = Duration::from_mins(2);

/// Where the audit log of a site is.
pub(crate) fn audit_log(directory: &Path) -> PathBuf {
    directory.join("logs").join("audit.jsonl")
}

/// Both processes, and what it takes to start the second one again.
pub(crate) struct Running {
    pub(crate) etcd: Process,
    pub(crate) api_server: Process,
    etcd_url: String,
}

/// Starts both and waits until the API server serves `client`.
pub(crate) async fn start(site: &Site, client: &Client) -> Result<Running, Error> {
    let [etcd_port, peer_port] = free_ports()?;
    let etcd_url = format!("http://127.0.0.1:{etcd_port}");
    let etcd = site.supervisor.spawn(
        "etcd",
        site.command(Part::Etcd)?
            .arg("--data-dir")
            .arg(site.directory.join("etcd"))
            .args(["--listen-client-urls", &etcd_url])
            .args(["--advertise-client-urls", &etcd_url])
            .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer_port}")])
            // The data does not outlive the process, so it need not reach the disk.
            .args(["--unsafe-no-fsync", "--log-level=warn"]),
    )?;
    let server = site.authority.server()?;
    let (public, private) = pki::signing_key()?;
    site.write("pki/ca.crt", &site.authority.pem())?;
    site.write("pki/server.crt", &server.certificate)?;
    site.write("pki/server.key", &server.key)?;
    site.write("pki/tokens.pub", &public)?;
    site.write("pki/tokens.key", &private)?;
    site.write("audit-policy.yaml", audit::POLICY)?;
    let mut running = Running { api_server: spawn(site, &etcd_url)?, etcd, etcd_url };
    running.wait(client).await?;
    Ok(running)
}

fn spawn(site: &Site, etcd_url: &str) -> Result<Process, Error> {
    let file = |name: &str| site.directory.join(name);
    let command = &mut site.command(Part::ApiServer)?;
    command
        .args(["--etcd-servers", etcd_url])
        .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
        .args(["--secure-port", &site.port().to_string()])
        .arg("--cert-dir")
        .arg(file("pki"))
        .arg("--tls-cert-file")
        .arg(file("pki/server.crt"))
        .arg("--tls-private-key-file")
        .arg(file("pki/server.key"))
        .arg("--client-ca-file")
        .arg(file("pki/ca.crt"))
        .args(["--service-account-issuer", &site.url])
        .arg("--service-account-key-file")
        .arg(file("pki/tokens.pub"))
        .arg("--service-account-signing-key-file")
        .arg(file("pki/tokens.key"))
        .args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"])
        // No controller here makes the service accounts that this plugin waits for.
        .arg("--disable-admission-plugins=ServiceAccount")
        .arg("--audit-policy-file")
        .arg(file("audit-policy.yaml"))
        .arg("--audit-log-path")
        .arg(audit_log(&site.directory))
        // Megabytes; the default of 100 would rotate away what a long test still has to count.
        .arg("--audit-log-maxsize=4096");
    Ok(site.supervisor.spawn("kube-apiserver", command)?)
}

impl Running {
    /// Kills the API server, starts it again, and waits until it serves `client`.
    pub(crate) async fn restart(&mut self, site: &Site, client: &Client) -> Result<(), Error> {
        self.api_server.kill();
        audit::end_at_a_line(&audit_log(&site.directory))?;
        self.api_server = spawn(site, &self.etcd_url)?;
        self.wait(client).await
    }

    /// Has etcd forget every version but the newest.
    pub(crate) async fn compact(&self) -> Result<(), Error> {
        let etcd = Client::try_from(Config::new(self.etcd_url.parse().map_err(|_| Error::Etcd)?))?;
        let ask = async |path: &str, body: Value| -> Result<Value, Error> {
            let request = http::Request::post(path).body(body.to_string().into_bytes()).map_err(|_| Error::Etcd)?;
            Ok(etcd.request(request).await?)
        };
        // The key "a", which is none; the answer says how far etcd is.
        let answer = ask("/v3/kv/range", json!({"key": "YQ=="})).await?;
        let revision = answer["header"]["revision"].as_str().ok_or(Error::Etcd)?;
        ask("/v3/kv/compaction", json!({"revision": revision, "physical": true})).await?;
        Ok(())
    }

    async fn wait(&mut self, client: &Client) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let ready = || async {
            let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
            client.request_text(request).await.map_err(|error| format!("/readyz: {error}"))?;
            namespaces.get("default").await.map(|_| ()).map_err(|error| format!("namespace default: {error}"))
        };
        Ok(wait::ready(&mut [&mut self.etcd, &mut self.api_server], LIMIT, ready).await?)
    }
}
