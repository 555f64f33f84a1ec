//! Variables that the control plane hands to its templates.

use std::collections::BTreeMap;

use capt_api::{CAPTControlPlane, names::REGION_ANNOTATION};
use capt_status::{
    machine::{Cause, Infrastructure, Inputs},
    text::truncate,
};
use kube::ResourceExt;
use serde_json::json;

use super::observe::Observed;
use crate::{
    child::{Child, ChildProgress},
    outputs, reasons,
};

/// Most bytes of all variables together; etcd takes objects of 1.5 MiB.
const MAX_VARIABLES: usize = 512 << 10;

/// The AWS region: the control plane's own, else the CAPTCluster's, else the Cluster's annotation.
pub(super) fn region(observed: &Observed) -> Option<String> {
    let own = observed.control_plane.spec.control_plane_config.as_ref().map(|config| config.region.clone());
    let captcluster = || {
        let (captcluster, _) = observed.infrastructure.as_ref()?;
        Some(captcluster.present()?.spec.region.clone())
    };
    let annotation = || observed.cluster.present()?.meta.annotations.get(REGION_ANNOTATION).cloned();
    let given = |region: &String| !region.is_empty();
    own.filter(given).or_else(|| captcluster().filter(given)).or_else(|| annotation().filter(given))
}

/// What the variables of the EKS template wait for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Waiting {
    /// Whether the CAPTCluster is there at all.
    pub(super) inputs: Inputs,
    /// How far its VPC is.
    pub(super) infrastructure: Infrastructure,
    /// The same for people.
    pub(super) cause: Cause,
}

/// Variables of the EKS template, or what they wait for.
pub(super) fn eks(observed: &Observed, region: String) -> Result<BTreeMap<String, String>, Waiting> {
    let control_plane = observed.control_plane.as_ref();
    let mut variables = own(control_plane, region);
    for (name, value) in vpc(observed)? {
        variables.entry(name).or_insert(value);
    }
    Ok(variables)
}

/// What is wrong with variables that no object could hold: neither the apply nor the Workspace with its module.
pub(super) fn too_large(variables: &BTreeMap<String, String>) -> Option<Cause> {
    let sizes = || variables.iter().map(|(name, value)| (name.len() + value.len(), name));
    let size: usize = sizes().map(|(size, _)| size).sum();
    let (largest, name) = sizes().max()?;
    (size > MAX_VARIABLES).then(|| {
        let message = format!(
            "the variables of the EKS template have {size} bytes, more than {MAX_VARIABLES}; the largest one, {}, has \
             {largest}: output less in the VPC template",
            truncate(name, 100),
        );
        Cause::new(reasons::VARIABLES_TOO_LARGE, message)
    })
}

fn own(control_plane: &CAPTControlPlane, region: String) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        // Not the Cluster's name: changing it would rename a live EKS cluster.
        ("cluster_name".to_owned(), control_plane.name_any()),
        ("kubernetes_version".to_owned(), control_plane.spec.version.clone()),
        ("region".to_owned(), region),
    ]);
    let config = control_plane.spec.control_plane_config.as_ref();
    if let Some(access) = config.and_then(|config| config.endpoint_access.as_ref()) {
        // Go's zero value of a missing flag is false, and templates were written for that.
        variables.insert("endpoint_public_access".to_owned(), access.public.unwrap_or_default().to_string());
        variables.insert("endpoint_private_access".to_owned(), access.private.unwrap_or_default().to_string());
        variables.insert("public_access_cidrs".to_owned(), json!(access.public_cidrs).to_string());
    }
    let addons = config.map_or_else(|| json!([]), |config| json!(config.addons));
    variables.insert("addons".to_owned(), addons.to_string());
    for (key, value) in &control_plane.spec.additional_tags {
        variables.insert(format!("tags_{key}"), value.clone());
    }
    variables
}

/// `vpc_id`, and each output of the VPC as `vpc_<output>`.
///
/// Only outputs of a Workspace that is ready count. While the VPC is being updated the EKS apply
/// keeps what it has: a variable that comes and goes would be a change of a running cluster.
fn vpc(observed: &Observed) -> Result<BTreeMap<String, String>, Waiting> {
    let Some((captcluster, vpc)) = &observed.infrastructure else { return Ok(BTreeMap::new()) };
    let Some(captcluster) = captcluster.present() else {
        return kept(observed).ok_or_else(|| Waiting {
            inputs: Inputs::Unresolved,
            infrastructure: Infrastructure::Queued,
            cause: Cause::new(reasons::WAITING_FOR_VPC, "waiting for the CAPTCluster that the Cluster names to exist"),
        });
    };
    let begun = vpc.as_ref().is_some_and(Child::begun);
    let waiting = |message: String| Waiting {
        inputs: Inputs::Valid,
        infrastructure: if begun { Infrastructure::Begun } else { Infrastructure::Queued },
        cause: Cause::new(reasons::WAITING_FOR_VPC, message),
    };
    let name = captcluster.name_any();
    let status = captcluster.status.as_ref().filter(|status| status.ready);
    let Some(id) = status.and_then(|status| status.vpc_id.clone()) else {
        // The reason stands on the CAPTCluster, which is nearer to it.
        return kept(observed).ok_or_else(|| waiting(format!("waiting for CAPTCluster/{name} to be ready")));
    };
    let Some(vpc) = vpc else { return Ok(BTreeMap::from([("vpc_id".to_owned(), id)])) };
    match vpc.progress() {
        ChildProgress::Ready(workspace) => {
            let mut variables = BTreeMap::from([("vpc_id".to_owned(), id)]);
            for (name, value) in outputs::as_variables(workspace.outputs()) {
                if name != "vpc_id" {
                    variables.insert(format!("vpc_{name}"), value);
                }
            }
            Ok(variables)
        }
        ChildProgress::Unresolved(_)
        | ChildProgress::InProgress { cause: _, begun: _ }
        | ChildProgress::Failing(_, _) => kept(observed)
            .ok_or_else(|| waiting(format!("waiting for Workspace {} of CAPTCluster/{name}", vpc.workspace_name()))),
    }
}

/// The variables from the VPC that the EKS apply has already.
fn kept(observed: &Observed) -> Option<BTreeMap<String, String>> {
    let apply = observed.eks.apply.present()?;
    Some(
        apply
            .spec
            .variables
            .iter()
            .filter(|(name, _)| name.starts_with("vpc_"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// Variables of the kubeconfig template.
pub(super) fn kubeconfig(cluster: &str, region: String, endpoint: String, ca: String) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("cluster_name".to_owned(), cluster.to_owned()),
        ("region".to_owned(), region),
        ("cluster_endpoint".to_owned(), endpoint),
        ("cluster_certificate_authority_data".to_owned(), ca),
    ])
}

/// The apply of the VPC, which the EKS apply waits for.
pub(super) fn vpc_apply(observed: &Observed) -> Option<&Child> {
    observed.infrastructure.as_ref().and_then(|(_, vpc)| vpc.as_ref())
}
