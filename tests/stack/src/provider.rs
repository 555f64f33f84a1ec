//! The third tier: provider-terraform with its CRDs, rights and ProviderConfigs `default`.
//!
//! Terraform's state is kept in Secrets of this API server, so nothing leaves the machine as long as
//! the modules use the built-in provider (`terraform_data`).

use std::path::Path;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::assets::Part;
use crate::site::Site;
use crate::supervise::Process;
use crate::{Error, manifests, wait};

/// The user that provider-terraform, and each terraform that it runs, is.
pub(crate) const USER: &str = "provider-terraform";
/// Controllers of the provider: one gate for CRDs, and two for each of the two APIs.
const CONTROLLERS: usize = 5;
/// Three seconds are usual.
const LIMIT: Duration = Duration::from_mins(2);

/// What has to be applied before the process starts: CRDs, namespace, rights, ProviderConfigs.
pub(crate) fn prerequisites(site: &Site) -> Result<Vec<Value>, Error> {
    let source = site.assets.path(Part::Manifests)?;
    let mut documents = manifests::read(&source.join("provider-terraform").join("crds"))?;
    documents.extend(manifests::documents(include_str!("../manifests/provider-terraform.yaml"))?);
    Ok(documents)
}

/// Starts the provider and waits until all of its controllers work.
pub(crate) async fn start(site: &Site) -> Result<Process, Error> {
    let kubeconfig = site.kubeconfig(USER, None)?;
    let work = site.directory.join("tf");
    let bin = site.directory.join("bin");
    for directory in [&work, &bin] {
        std::fs::create_dir_all(directory).map_err(|source| Error::file(&directory.display().to_string(), source))?;
    }
    let terraform = bin.join("terraform");
    std::os::unix::fs::symlink(site.assets.path(Part::Terraform)?, &terraform)
        .map_err(|source| Error::file(&terraform.display().to_string(), source))?;
    let mut path = bin.into_os_string();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    // The provider keeps Git credentials below /tmp joined with its working directory.
    let relative = work.strip_prefix("/").unwrap_or(&work);
    if let Some(below_tmp) = Path::new("/tmp").join(relative).parent() {
        site.supervisor.also_remove(below_tmp)?;
    }

    let mut provider = site.supervisor.spawn(
        "provider-terraform",
        site.command(Part::ProviderTerraform)?
            .env("PATH", path)
            // It has no flag for a kubeconfig; the second variable is for Terraform's own client,
            // which keeps the state.
            .env("KUBECONFIG", &kubeconfig)
            .env("KUBE_CONFIG_PATH", &kubeconfig)
            .env("XP_TF_DIR", &work)
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_IN_AUTOMATION", "1")
            // Without --debug it discards the lines that the ready check reads.
            .args(["--debug", "--poll=10s", "--poll-jitter=0s", "--sync=1h"])
            .args(["--max-reconcile-rate=4", "--timeout=2m"]),
    )?;
    // There is no health endpoint, so the log has to tell.
    let log = provider.log.clone();
    let working = || async {
        let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        match text.matches("Starting workers").count() {
            count if count >= CONTROLLERS => Ok(()),
            count => Err(format!("{count} of {CONTROLLERS} controllers work")),
        }
    };
    wait::ready(&mut [&mut provider], LIMIT, working).await?;
    Ok(provider)
}

/// Moves the times at which the provider began and finished a creation into the past.
pub(crate) async fn age_workspace(client: &Client, namespace: Option<&str>, name: &str) -> Result<(), Error> {
    let kind = |group| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta1", "Workspace"));
    let api: Api<DynamicObject> = match namespace {
        None => Api::all_with(client.clone(), &kind("tf.upbound.io")),
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind("tf.m.upbound.io")),
    };
    let past = json!({"metadata": {"annotations": {
        "crossplane.io/external-create-pending": "2020-01-01T00:00:00Z",
        "crossplane.io/external-create-succeeded": "2020-01-01T00:00:01Z",
    }}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(past)).await?;
    Ok(())
}
