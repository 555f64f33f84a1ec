//! The first tier: etcd and kube-apiserver, with RBAC and an audit log.
//!
//! Ready means `/readyz` and the namespace `default`: the API server answers some seconds before its
//! own start-up hooks have made the objects that everyone expects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

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

/// Starts both and waits until the API server serves `client`.
pub(crate) async fn start(site: &Site, client: &Client) -> Result<Vec<Process>, Error> {
    let [etcd_port, peer_port] = free_ports()?;
    let etcd_url = format!("http://127.0.0.1:{etcd_port}");
    let mut etcd = site.supervisor.spawn(
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
    let ca = site.write("pki/ca.crt", &site.authority.pem())?;
    let certificate = site.write("pki/server.crt", &server.certificate)?;
    let key = site.write("pki/server.key", &server.key)?;
    let tokens_public = site.write("pki/tokens.pub", &public)?;
    let tokens_private = site.write("pki/tokens.key", &private)?;
    let policy = site.write("audit-policy.yaml", audit::POLICY)?;
    let mut api_server = site.supervisor.spawn(
        "kube-apiserver",
        site.command(Part::ApiServer)?
            .args(["--etcd-servers", &etcd_url])
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .args(["--secure-port", &site.port().to_string()])
            .arg("--cert-dir")
            .arg(site.directory.join("pki"))
            .arg("--tls-cert-file")
            .arg(certificate)
            .arg("--tls-private-key-file")
            .arg(key)
            .arg("--client-ca-file")
            .arg(ca)
            .args(["--service-account-issuer", &site.url])
            .arg("--service-account-key-file")
            .arg(tokens_public)
            .arg("--service-account-signing-key-file")
            .arg(tokens_private)
            .args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"])
            // No controller here makes the service accounts that this plugin waits for.
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--audit-policy-file")
            .arg(policy)
            .arg("--audit-log-path")
            .arg(audit_log(&site.directory))
            // Megabytes; the default of 100 would rotate away what a long test still has to count.
            .arg("--audit-log-maxsize=4096"),
    )?;

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ready = || async {
        let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
        client.request_text(request).await.map_err(|error| format!("/readyz: {error}"))?;
        namespaces.get("default").await.map(|_| ()).map_err(|error| format!("namespace default: {error}"))
    };
    wait::ready(&mut [&mut etcd, &mut api_server], LIMIT, ready).await?;
    Ok(vec![etcd, api_server])
}
