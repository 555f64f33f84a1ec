//! The place where one stack runs: its directory, authority, supervisor and located parts.
//!
//! The components (`api_server`, `core`, `provider`) get it to start their processes with; it knows
//! none of them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::assets::{Assets, Part};
use crate::pki::Authority;
use crate::supervise::Supervisor;
use crate::{Error, Tier};

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

pub(crate) struct Site {
    pub(crate) directory: PathBuf,
    pub(crate) assets: Assets,
    pub(crate) authority: Authority,
    pub(crate) supervisor: Supervisor,
    /// The API server's address, `https://127.0.0.1:PORT`.
    pub(crate) url: String,
    port: u16,
}

impl Site {
    /// A fresh directory with logs, kubeconfigs and a watching supervisor, but no process yet.
    pub(crate) fn new(tier: Tier) -> Result<Self, Error> {
        let assets = Assets::find(tier)?;
        let directory = tempfile::Builder::new()
            .prefix("capt-stack-")
            .tempdir()
            .map_err(|source| Error::file("the temporary directory", source))?
            // The supervisor removes it: a destructor does not run when a test is killed.
            .keep();
        for name in ["logs", "kubeconfigs", "pki"] {
            let path = directory.join(name);
            std::fs::create_dir(&path).map_err(|source| Error::file(&path.display().to_string(), source))?;
        }
        let [port] = free_ports()?;
        Ok(Self {
            supervisor: Supervisor::new(&directory)?,
            authority: Authority::new()?,
            assets,
            directory,
            url: format!("https://127.0.0.1:{port}"),
            port,
        })
    }

    /// The API server's port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// A command for `part`. Its environment holds `PATH` only, so that a proxy, a kubeconfig or a
    /// Terraform setting of the user cannot reach it.
    pub(crate) fn command(&self, part: Part) -> Result<Command, Error> {
        let mut command = Command::new(self.assets.path(part)?);
        command.env_clear().env("HOME", &self.directory);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        Ok(command)
    }

    /// Writes a file below the directory and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, Error> {
        let path = self.directory.join(name);
        std::fs::write(&path, content).map_err(|source| Error::file(&path.display().to_string(), source))?;
        Ok(path)
    }

    /// The kubeconfig file of `user`; made at the first call, then the same file.
    pub(crate) fn kubeconfig(&self, user: &str, group: Option<&str>) -> Result<PathBuf, Error> {
        let file: String = user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let name = format!("kubeconfigs/{file}.kubeconfig");
        let path = self.directory.join(&name);
        if path.exists() {
            return Ok(path);
        }
        let content = self.authority.kubeconfig(&self.url, user, group)?;
        self.write(&name, &content)
    }
}

/// A client with the identity of a kubeconfig file. It lives as long as the tokio runtime that makes it.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, Error> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // A retry would hide what a test is about to see, and hold up a ready check for minutes.
    config.default_retry = false;
    Client::try_from(config).map_err(Error::from)
}

/// Ports that were free on every address a moment ago. Another process can still take one before it
/// is used; the start of the stack then begins anew.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let fail = |source| Error::file("a free port", source);
    let mut ports = [0; N];
    // All are held until the last is known, or the kernel may hand out the same one again.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind(("0.0.0.0", 0)).map_err(fail)?;
        *port = listener.local_addr().map_err(fail)?.port();
        held.push(listener);
    }
    Ok(ports)
}
