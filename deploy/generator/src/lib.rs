//! The files that install capt-operator, generated from one table, the CRDs and the roles.
//!
//! ```text
//! settings (the table) -> workload (objects) --+
//! capt_operator::crds ----------------------- -+-> kustomize, clusterctl, chart -> files()
//! deploy/rbac ---------------------------------+
//! ```
//!
//! It must not decide what the operator may do (the roles do) nor what its flags mean (its command
//! line does); it puts them where installers look. `just deploy` writes [`files`].

pub mod argocd;
pub mod chart;
pub mod cluster_templates;
pub mod clusterctl;
pub mod kustomize;
pub mod monitoring;
pub mod settings;
pub mod text;
pub mod workload;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Why the files could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that they are made from cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A file that they are made from is no YAML.
    #[error("{path} is not YAML: {message}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        message: String,
    },
    /// The CRDs cannot be had.
    #[error(transparent)]
    Crds(#[from] capt_operator::crds::Error),
    /// A file cannot be written as text.
    #[error(transparent)]
    Text(#[from] text::Error),
}

/// What the files are made from, besides the table.
#[derive(Debug, Clone)]
pub struct Source {
    /// The CRDs, in the order of their names.
    pub crds: Vec<Value>,
    /// Names of the files below `crds/`.
    pub crd_files: Vec<String>,
    /// Roles and bindings.
    pub rbac: Vec<Value>,
    /// Names of the files below `deploy/rbac/`.
    pub rbac_files: Vec<String>,
}

impl Source {
    /// Reads the roles below `root`, the directory of the project; the CRDs come from the code.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let (mut crds, mut crd_files) = (Vec::new(), Vec::new());
        for (name, document) in capt_operator::crds::documents()? {
            let file = format!("{name}.yaml");
            crds.extend(documents(Path::new(&file), &document)?);
            crd_files.push(file);
        }
        let directory = root.join("deploy/rbac");
        let fail = |source| Error::Read { path: directory.clone(), source };
        let mut rbac_files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                rbac_files.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        rbac_files.sort();
        let mut rbac = Vec::new();
        for file in &rbac_files {
            let path = directory.join(file);
            let text = fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
            rbac.extend(documents(&path, &text)?);
        }
        Ok(Self { crds, crd_files, rbac, rbac_files })
    }
}

/// Without an extension, so that whoever reads all YAML files of a directory finds objects only.
const KUSTOMIZATION: &str = "Kustomization";

fn documents(path: &Path, text: &str) -> Result<Vec<Value>, Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Error::Yaml { path: path.to_owned(), message: error.to_string() })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Every generated file: its path below the directory of the project, and its text.
pub fn files(source: &Source) -> Result<BTreeMap<String, String>, Error> {
    let resources = ["../../crds", "../rbac", "manager.yaml"].map(str::to_owned);
    let mut files = BTreeMap::from([
        ("metadata.yaml".to_owned(), clusterctl::metadata()?),
        (format!("crds/{KUSTOMIZATION}"), kustomize::kustomization(&source.crd_files)?),
        (format!("deploy/rbac/{KUSTOMIZATION}"), kustomize::kustomization(&source.rbac_files)?),
        (format!("deploy/kustomize/{KUSTOMIZATION}"), kustomize::kustomization(&resources)?),
        ("deploy/kustomize/manager.yaml".to_owned(), kustomize::manager()?),
        ("deploy/network-policy/network-policy.yaml".to_owned(), text::yaml(&[workload::network_policy(&[])])?),
        ("deploy/chart/Chart.yaml".to_owned(), chart::chart()?),
        ("deploy/chart/values.yaml".to_owned(), chart::values()?),
        ("deploy/chart/values.schema.json".to_owned(), chart::schema()?),
    ]);
    files.insert("deploy/argocd/argocd-cm.yaml".to_owned(), argocd::config_map()?);
    for (file, text) in [
        ("alerts.yaml", monitoring::rules()?),
        ("service-monitor.yaml", monitoring::service_monitor()?),
        ("prometheus-rule.yaml", monitoring::prometheus_rule()?),
        ("dashboard.json", monitoring::dashboard()?),
    ] {
        files.insert(format!("deploy/monitoring/{file}"), text);
    }
    for (file, text) in cluster_templates::all() {
        files.insert(format!("deploy/clusterctl/{file}"), text);
    }
    for provider in clusterctl::Provider::ALL {
        let path = format!("deploy/clusterctl/{}", provider.file());
        files.insert(path, clusterctl::components(provider, source)?);
    }
    Ok(files)
}
