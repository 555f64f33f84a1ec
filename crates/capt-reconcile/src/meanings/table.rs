//! The reasons that CAPT gives itself.

use super::{Group, Meaning};
#[allow(clippy::wildcard_imports, reason = "a table of all of them")]
use crate::reasons::*;

macro_rules! table {
    ($($group:ident { $($reason:expr => $meaning:literal, $remedy:literal;)* })*) => {
        &[$($(Meaning { reason: $reason, group: Group::$group, meaning: $meaning, remedy: $remedy },)*)*]
    };
}

/// In the order in which a cluster meets them.
#[rustfmt::skip]
pub(super) const OWN: &[Meaning] = table! {
    Waiting {
        WAITING_FOR_CLUSTER => "No owner reference to a Cluster yet, or that Cluster does not exist.", "Create the Cluster that refers to this object. Where no Cluster API core runs, see --cluster-status.";
        WAITING_FOR_VPC => "The control plane waits for its VPC.", "Explain the CAPTCluster.";
        WAITING_FOR_WORKSPACE => "Terraform is at work on the Workspace, or has yet to begin.", "Wait. Its events and conditions say more.";
        WAITING_FOR_SECRETS => "A Secret of waitForSecrets does not exist or is empty.", "Create it, or wait for whoever does.";
        WAITING_FOR_WORKSPACES => "An apply or a Workspace of waitForWorkspaces is not ready.", "Explain the object that the message names.";
        NOT_WANTED => "The object that owns the apply is gone, is being deleted or uses another apply, so nothing is made for it.", "Nothing, or delete the apply. If its owner was lost, restore it.";
        CREATING => "The provider applies the Workspace.", "Wait. Its events and conditions say more.";
        ENDPOINT_NOT_READY => "The Workspace is ready and no valid endpoint is known.", "Add the output cluster_endpoint to the template.";
        CA_NOT_READY => "The Workspace is ready and puts out no certificate authority.", "Add the output cluster_certificate_authority_data to the template.";
        KUBECONFIG_NOT_READY => "There is no kubeconfig yet.", "Explain the apply that makes it, which the message names.";
        DELETING => "It is being deleted.", "";
        WAITING_FOR_DELETION => "What belongs to this object is deleted first.", "Explain the object that the message names.";
        WAITING_FOR_DEPENDENTS => "Something else still needs this object, so it goes later.", "Explain the object that the message names.";
        "Paused" => "The object or its Cluster is paused: nothing is written but this.", "Set spec.paused of the Cluster to false, or remove the annotation cluster.x-k8s.io/paused.";
        CLUSTER_DELETING => "The Cluster is being deleted, so nothing new is made.", "";
        NAMESPACE_TERMINATING => "The namespace is being deleted, so nothing new is made.", "";
        "NotChecked" => "Health is judged only of what serves.", "";
        "NotRendered" => "A Workspace was taken over, and what would change in it is not known before its apply can be rendered.", "Mend what the condition Synced of the apply names.";
    }
    Wrong {
        NO_VPC_CONFIGURED => "Neither a template for a VPC nor an existing VPC is named.", "Set spec.vpcTemplateRef or spec.existingVpcId.";
        REGION_MISSING => "No region is named anywhere.", "Set spec.controlPlaneConfig.region, the CAPTCluster's spec.region, or the Cluster's annotation cluster.x-k8s.io/region.";
        VARIABLES_TOO_LARGE => "The outputs of the VPC and the spec make more variables than an object can hold.", "Output less in the VPC template; only what the EKS template uses is needed.";
        TEMPLATE_NOT_FOUND => "The WorkspaceTemplate does not exist.", "Create it, or correct the reference.";
        UNDEFINED_VARIABLE => "The template uses a variable that the apply does not define.", "Define it in spec.variables of the apply, or correct the template.";
        INVALID_TEMPLATE => "The template cannot become a Workspace.", "Correct the field that the message names.";
        DEPENDENCY_CYCLE => "Objects wait for each other in a circle, which the message shows.", "Remove one of the named waitForWorkspaces or waitForSecrets.";
        NAME_COLLISION => "An object of the wanted name belongs to somebody else; it was not touched.", "Choose another name in spec.workspaceTemplateApplyName, or let the apply take the Workspace with the annotation capt.cluster.x-k8s.io/adopt.";
        WORKSPACE_MISSING => "The Workspace is gone although it was ready once. None is made, since what it stood for may still run.", "Restore the Workspace. Where nothing runs any more, allow a new one with the annotation capt.cluster.x-k8s.io/recreate-workspace.";
        WORKSPACE_DELETING => "Somebody else deletes the Workspace, and what it stands for goes with it.", "Find out who. A new one is made only if nothing of it was ever ready.";
        WORKSPACE_PAUSED => "Somebody paused the Workspace, so the provider leaves it alone.", "Remove its annotation crossplane.io/paused.";
        OBSERVE_ONLY => "The Workspace may only be observed, and Terraform would change something.", "Allow more in managementPolicies of the template, or bring the template in line with what runs.";
        VPC_ID_NOT_FOUND => "The VPC's Workspace is ready and puts out no vpc_id.", "Add the output vpc_id to the template.";
        KUBECONFIG_TEMPLATE_NOT_FOUND => "Nothing makes a kubeconfig: there is no such output, and no template for one.", "Add the output kubeconfig to the EKS template, set spec.kubeconfigTemplateRef, or create the template eks-kubeconfig-template.";
        KUBECONFIG_EXPIRED => "The token in the kubeconfig has expired, and its Workspace has not put out another one.", "Explain the Workspace that the message names.";
        ENDPOINT_CHANGED => "Terraform puts out another endpoint than the one in use, which stays.", "Find out whether the cluster was replaced. If so, clear spec.controlPlaneEndpoint to take the new one.";
        ENDPOINT_OVERRIDDEN => "The endpoint in the spec is not the one that Terraform puts out; the one in the spec is used.", "If that is not intended, clear spec.controlPlaneEndpoint.";
        NAME_TOO_LONG => "The name is longer than a label may be, so nothing can be labelled with it.", "Create the object under a name of at most 63 letters.";
        CONNECTION_DOWN => "The API server of the cluster has not answered for five minutes.", "Look at the network between both clusters, at endpoint access, and at the kubeconfig.";
        SECRET_NOT_OURS => "A Secret of the wanted name belongs to somebody else and is not changed.", "Complete it, or delete it so that CAPT makes it.";
        UNSUPPORTED_CHANGE => "EKS cannot make this change, or it would replace what serves. Nothing of the spec is applied meanwhile.", "Take the change back.";
        "SpecDiffers" => "A Workspace was taken over, and applying its template would change it. It stays as it is.", "Look at the fields in the message. Set the annotation capt.cluster.x-k8s.io/apply-pending to the hash in it to apply them.";
    }
    Fine {
        READY => "It is what its spec asks for.", "";
        AVAILABLE => "It serves.", "";
        WORKSPACE_SYNCED => "The Workspace carries the current rendering.", "";
        "Healthy" => "All checks pass.", "";
        "Initialized" => "Endpoint and kubeconfig are there, so the control plane accepts requests.", "";
        "ClusterFound" => "The Cluster exists.", "";
        "NothingPending" => "What differed after a takeover was applied, or differs no more.", "";
        "RoleExists" => "The account has the role for Spot instances.", "";
        "RoleCreated" => "The role for Spot instances was made.", "";
        "NotReconciling" => "Nothing is under way.", "";
        "NotStalled" => "Nothing needs a person.", "";
        "NotPaused" => "It is not paused.", "";
        "NotDeleting" => "It is not being deleted.", "";
        "NotCreating" => "It is not being made for the first time.", "";
        "NotFailed" => "It has not failed.", "";
        "NotRollingOut" => "No update or upgrade is under way.", "";
    }
    Event {
        "Recovering" => "A failure that may pass, before the object was ever ready.", "Explain the object: it says when the next attempt is.";
        "RecoveryAttempt" => "An attempt to recover begins.", "";
        "RecoveryGivenUp" => "The attempts of spec.recoveryStrategy are used up.", "Mend the cause, then set the annotation capt.cluster.x-k8s.io/retry to a new value.";
        "Recovered" => "It serves without trouble again.", "";
        "Degraded" => "It serves, and the last apply or a check fails.", "Explain the object.";
        "Failed" => "It was never ready, and the failure will not pass by itself.", "Mend the cause, then change the spec or set the annotation capt.cluster.x-k8s.io/retry to a new value.";
        "RollingOut" => "An update or upgrade of what serves begins.", "";
        "Retrying" => "It is tried again after it had failed.", "";
        "DeletionBlocked" => "The deletion cannot go on without a person.", "Explain the object: its message says what stands in the way.";
        WORKSPACE_RECREATED => "A lost Workspace is made anew, as somebody allowed.", "";
        WORKSPACE_ADOPTED => "An existing Workspace was taken over as it is.", "Look at the condition PendingTakeoverChanges of the apply for what differs.";
        WORKSPACE_ORPHANED => "A Workspace is left without its apply. It is reported and never deleted.", "Make an apply of its namespace and name to take it over, or delete the Workspace to destroy what it made.";
        VPC_RETAINED => "The CAPTCluster is deleted; its VPC and Workspace stay, as retainVpcOnDelete asks.", "";
        FOREIGN_OPERATOR => "Another operator writes the statuses that are CAPT's, so CAPT does nothing until that one is quiet.", "Stop it: the Go implementation's Deployment, or a second CAPT without the lease.";
        NOT_WATCHED => "Something that it refers to is in a namespace that this operator does not watch, so nothing is known of it and nothing is decided by it.", "Add that namespace to --namespace, or refer to an object in a watched one.";
        CLUSTER_STATUS_STANDALONE => "No Cluster API core was found, so CAPT publishes the status of this Cluster.", "If core runs, set --cluster-status=contract.";
    }
    FailureReason {
        "InvalidConfiguration" => "The spec, a template or something else that it refers to is wrong or missing.", "Correct it; a change of the spec starts again by itself.";
        "CreateError" => "It could not be made.", "The condition Stalled has the reason and what to do about it.";
        "UpdateError" => "It could not be changed.", "The condition Stalled has the reason and what to do about it.";
        "DeleteError" => "It could not be deleted.", "The condition Stalled has the reason and what to do about it.";
    }
    Cluster {
        "Provisioned" => "The infrastructure is there.", "";
        "NotReady" => "The infrastructure is not ready.", "Explain the CAPTCluster.";
        "NotAvailable" => "The control plane does not serve, or a part of the Cluster is not as it should be.", "Explain the CAPTControlPlane.";
        "NotInitialized" => "The control plane does not accept requests yet.", "Explain the CAPTControlPlane.";
        "InfrastructureDoesNotExist" => "The CAPTCluster that the Cluster refers to does not exist.", "Create it, or correct spec.infrastructureRef.";
        "InfrastructureDeleted" => "The CAPTCluster was deleted.", "";
        "ControlPlaneDoesNotExist" => "The CAPTControlPlane that the Cluster refers to does not exist.", "Create it, or correct spec.controlPlaneRef.";
        "ControlPlaneDeleted" => "The CAPTControlPlane was deleted.", "";
        "WaitingForInfrastructure" => "The CAPTCluster is not provisioned yet.", "Explain the CAPTCluster.";
        "WaitingForControlPlane" => "The CAPTControlPlane is not ready yet.", "Explain the CAPTControlPlane.";
        "WaitingForControlPlaneProviderInitialized" => "The CAPTControlPlane does not accept requests yet.", "Explain the CAPTControlPlane.";
        "WaitingForInfrastructureDeletion" => "The CAPTCluster is being deleted.", "Explain the CAPTCluster.";
        "WaitingForControlPlaneDeletion" => "The CAPTControlPlane is being deleted.", "Explain the CAPTControlPlane.";
        "DeletionCompleted" => "Everything of the Cluster is gone.", "";
    }
};
