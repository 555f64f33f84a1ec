//! The CEL rules of the CRDs: what can be said of an object without looking at another one.
//!
//! Every rule holds on create and on change of what it speaks of, never for what is stored already:
//! an object from before a rule must stay writable (finalizers, labels and other fields of it
//! change all the time). A rule on a single field gets that from the API server, which judges
//! unchanged values no more (validation ratcheting, on for all versions since 1.30); a rule over
//! several fields must look at `oldSelf` itself. Each message names the field and says what to write
//! instead.
//!
//! A change is refused only where it would lose or replace infrastructure that is in use.

use kube::core::{Reason, Rule};

/// A rule that judges a step from a stored value to a new one.
fn transition(rule: &str) -> Rule {
    Rule::new(rule).reason(Reason::FieldValueForbidden)
}

/// Regions of all partitions: `eu-west-1`, `us-gov-west-1`, `cn-north-1`, `us-isob-east-1`.
pub(crate) fn region_format() -> Rule {
    Rule::new("self.matches('^[a-z]{2,8}(-[a-z]+)+-[0-9]+$')")
        .message("region must be the code of an AWS region: write it like eu-west-1 or us-gov-west-1")
}

/// Another region means another VPC, and the old one would be forgotten.
pub(crate) fn region_stays() -> Rule {
    transition("self == oldSelf || oldSelf == ''")
        .message("region cannot be changed, everything in the old region would be lost: create a new Cluster there")
}

/// As [`region_stays`], on the spec because `controlPlaneConfig` may come later or be taken away.
pub(crate) fn control_plane_region_stays() -> Rule {
    transition(
        "!has(oldSelf.controlPlaneConfig) || oldSelf.controlPlaneConfig.region == '' || \
         (has(self.controlPlaneConfig) && self.controlPlaneConfig.region == oldSelf.controlPlaneConfig.region)",
    )
    .field_path(".controlPlaneConfig")
    .message("controlPlaneConfig.region cannot be changed or removed, the EKS cluster would be lost: create a new Cluster there")
}

/// Ids of VPCs start with `vpc-`; names and ARNs are frequent mistakes.
pub(crate) fn vpc_id_format() -> Rule {
    Rule::new("self == '' || self.matches('^vpc-[0-9a-z]+$')")
        .message("existingVpcId must be the id of a VPC: write it like vpc-0a1b2c3d4e5f67890, not its name or ARN")
}

/// Either a VPC is made or one is used. Neither is accepted, as in Go; a condition says so.
pub(crate) fn one_vpc_source() -> Rule {
    Rule::new(
        "!has(self.vpcTemplateRef) || !has(self.existingVpcId) || self.existingVpcId == '' || \
         (oldSelf.hasValue() && has(oldSelf.value().vpcTemplateRef) && has(oldSelf.value().existingVpcId) && \
         oldSelf.value().vpcTemplateRef == self.vpcTemplateRef && oldSelf.value().existingVpcId == self.existingVpcId)",
    )
    .optional_old_self(true)
    .field_path(".existingVpcId")
    .message(
        "existingVpcId and vpcTemplateRef exclude each other: \
         keep vpcTemplateRef to have a VPC made, or existingVpcId to use one that exists",
    )
}

/// The control plane lives in that VPC. An object that also has a template never used the id.
pub(crate) fn existing_vpc_stays() -> Rule {
    transition(
        "!has(oldSelf.existingVpcId) || oldSelf.existingVpcId == '' || has(oldSelf.vpcTemplateRef) || \
         (has(self.existingVpcId) && self.existingVpcId == oldSelf.existingVpcId)",
    )
    .field_path(".existingVpcId")
    .message("existingVpcId cannot be changed or removed, the control plane runs in that VPC: create a new Cluster for another VPC")
}

/// Without its template the VPC would be forgotten. Another template (a newer version) is an update.
pub(crate) fn vpc_template_stays() -> Rule {
    transition(
        "!has(oldSelf.vpcTemplateRef) || has(self.vpcTemplateRef) || \
         (has(oldSelf.existingVpcId) && oldSelf.existingVpcId != '')",
    )
    .field_path(".vpcTemplateRef")
    .message("vpcTemplateRef cannot be removed, the VPC that it made is in use: name another template, or create a new Cluster")
}

/// One type serves both kinds, but a VPC has no control plane to wait for.
pub(crate) fn no_control_plane_timeout() -> Rule {
    Rule::new("!has(self.controlPlaneTimeout)")
        .field_path(".controlPlaneTimeout")
        .message("timeouts.controlPlaneTimeout has no meaning for a VPC: set it on the CAPTControlPlane")
}

/// Recreating deletes what a Workspace has made, so it must be said twice.
pub(crate) fn recreation_is_confirmed() -> Rule {
    Rule::new(
        "!has(self.actions) || self.actions.all(action, action.type != 'RecreateWorkspace' || \
         (has(action.parameters) && 'confirm' in action.parameters && action.parameters['confirm'] == 'true'))",
    )
    .field_path(".actions")
    .message("recoveryStrategy.actions with type RecreateWorkspace delete infrastructure: add parameters {confirm: \"true\"}")
}

/// EKS knows minor versions only; the rest of a version is accepted and ignored.
pub(crate) fn version_format() -> Rule {
    Rule::new("self.matches('^v?[0-9]{1,4}[.][0-9]{1,4}([.][0-9]+)?([-+][0-9A-Za-z.+-]*)?$')")
        .message("version must be a Kubernetes version: write it like 1.31 or v1.31.4")
}

/// The provider follows the reference of a file without a check, and crashes where there is none.
pub(crate) fn var_files_have_their_key() -> Rule {
    Rule::new(
        "self.all(file, file.source == 'SecretKey' ? has(file.secretKeyRef) : has(file.configMapKeyRef))",
    )
    .message("varFiles need the reference that their source names: secretKeyRef for SecretKey, configMapKeyRef for ConfigMapKey")
}

/// Terraform applies an empty module, and its Workspace never becomes ready.
pub(crate) fn module_is_not_empty() -> Rule {
    Rule::new("self.size() > 0")
        .reason(Reason::FieldValueRequired)
        .message("module must not be empty: write the Terraform module, or its address if source is Remote")
}

/// Without its spec an object says nothing, and every other rule would be evaded.
pub(crate) fn spec_stays() -> Rule {
    transition("!has(oldSelf.spec) || has(self.spec)").message("spec cannot be removed: send the object with its spec")
}

/// The apply holds the Workspace, and that the infrastructure. Before anything is provisioned another
/// name is how a name collision is left; the default name may be dropped, since it is filled again.
pub(crate) fn apply_name_stays(suffix: &str) -> Rule {
    transition(&format!(
        "!has(oldSelf.status) || !has(oldSelf.status.ready) || !oldSelf.status.ready || \
         !has(oldSelf.spec) || !has(oldSelf.spec.workspaceTemplateApplyName) || \
         oldSelf.spec.workspaceTemplateApplyName == '' || !has(self.spec) || \
         (has(self.spec.workspaceTemplateApplyName) && self.spec.workspaceTemplateApplyName != '' ? \
         self.spec.workspaceTemplateApplyName == oldSelf.spec.workspaceTemplateApplyName : \
         oldSelf.spec.workspaceTemplateApplyName == self.metadata.name + '{suffix}')"
    ))
    .field_path(".spec.workspaceTemplateApplyName")
    .message("workspaceTemplateApplyName cannot be changed once ready, that apply holds the infrastructure: write its name again")
}

/// EKS never goes back to an older minor version. What counts is the version that runs: a wish that
/// was not fulfilled can be taken back.
pub(crate) fn version_does_not_go_back() -> Rule {
    const MINOR: &str = "^v?1[.][0-9]{1,4}([.+-].*)?$";
    transition(&format!(
        "!has(self.spec) || !has(oldSelf.spec) || self.spec.version == oldSelf.spec.version || \
         !has(oldSelf.status) || !has(oldSelf.status.version) || \
         !self.spec.version.matches('{MINOR}') || !oldSelf.status.version.matches('{MINOR}') || \
         int(self.spec.version.find('[.][0-9]+').substring(1)) >= int(oldSelf.status.version.find('[.][0-9]+').substring(1))"
    ))
    .field_path(".spec.version")
    .message("version cannot go below the version that runs (status.version), EKS has no downgrade: write that version or a newer one")
}

/// The shortest cycle there is; longer ones need other objects and become a condition. The list is
/// compared as a whole, since the API server cannot tell what a walk over an old list costs.
/// `namespace` is a reserved word of CEL, hence the underscores.
pub(crate) fn no_wait_for_itself() -> Rule {
    Rule::new(
        "!has(self.spec) || !has(self.spec.waitForWorkspaces) || \
         !self.spec.waitForWorkspaces.exists(other, other.name == self.metadata.name && \
         (!has(other.__namespace__) || other.__namespace__ == '')) || \
         (oldSelf.hasValue() && has(oldSelf.value().spec) && has(oldSelf.value().spec.waitForWorkspaces) && \
         oldSelf.value().spec.waitForWorkspaces == self.spec.waitForWorkspaces)",
    )
    .optional_old_self(true)
    .field_path(".spec.waitForWorkspaces")
    .message("waitForWorkspaces names this apply itself, which would wait for ever: remove that entry")
}
