//! Running a program, and looking at what it left behind.

use std::{ffi::OsStr, path::Path, process::Command};

use capt_deploy::settings;
use capt_stack::Stack;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

/// What a program printed: its output, or where it failed all that it said.
pub(crate) type Said = Result<String, String>;

/// Runs `program` as the administrator of `stack`.
pub(crate) fn run<A: AsRef<OsStr>>(program: &Path, stack: Option<&Stack>, arguments: &[A]) -> Said {
    run_with(program, stack, &[], arguments)
}

/// As [`run`], with `variables` in the environment.
pub(crate) fn run_with<A: AsRef<OsStr>>(
    program: &Path,
    stack: Option<&Stack>,
    variables: &[(&str, &str)],
    arguments: &[A],
) -> Said {
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied());
    // Without a stack it must not find somebody's cluster.
    let kubeconfig = stack.map_or_else(|| "/dev/null".into(), |stack| stack.admin().unwrap());
    let home = std::env::temp_dir().join(format!("capt-install-{}", std::process::id()));
    command.env("KUBECONFIG", kubeconfig).env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(out.into_owned()) } else { Err(format!("{out}{err}")) }
}

/// The documents of a text.
pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn api(client: &Client, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// An object as it is stored, if it is.
pub(crate) async fn stored(
    client: &Client,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Value> {
    let object = api(client, version, kind, namespace).get_opt(name).await.unwrap();
    object.map(|object| serde_json::to_value(object).unwrap())
}

/// The Deployment of the operator as it is stored, if it is.
pub(crate) async fn deployment(client: &Client) -> Option<Value> {
    stored(client, "apps/v1", "Deployment", Some(settings::NAMESPACE), settings::DEPLOYMENT).await
}

/// Name and uid of every CRD of ours and of the Go implementation's.
pub(crate) async fn crds(client: &Client) -> Vec<(String, String)> {
    let list = api(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let mut crds: Vec<_> = list
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter(|crd| crd.metadata.deletion_timestamp.is_none())
        .map(|crd| (crd.metadata.name.unwrap(), crd.metadata.uid.unwrap()))
        .filter(|(name, _)| name.starts_with("capt") || name.starts_with("workspacetemplate"))
        .collect();
    crds.sort();
    crds
}
