//! Rules for failures of which the text does not tell whether they pass, and for messages without a text.

use super::Rule;
use crate::failure::class::Class::Unknown;

/// A process that ended without a word.
pub(crate) const KILLED: &str = "ProcessKilled";
/// A message without text.
pub(crate) const NO_MESSAGE: &str = "NoMessage";
/// An encoded log of which nothing can be read, and no text beside it.
pub(crate) const UNREADABLE: &str = "MessageUnreadable";
/// A text that no rule knows.
pub(crate) const UNRECOGNISED: &str = "Unrecognised";

pub(super) const RULES: &[Rule] = &[
    Rule::new(Unknown, KILLED, "Raise the memory limit of the provider's pod: the process was killed before it said anything, mostly for want of memory.")
        .causes(&[
            "signal: killed",
            "oomkilled",
            "out of memory",
            "cannot allocate memory",
            "exit status 137",
            "exit code 137",
        ]),
    Rule::new(Unknown, "DiskFull", "Make room on the disk of the provider's pod, or give it a larger volume.")
        .causes(&[
            "no space left on device",
            "disk quota exceeded",
            "not enough space on the disk",
            "read-only file system",
            "too many open files",
        ]),
    Rule::new(Unknown, "ProviderCrashed", "Report it to the makers of the Terraform provider; look whether its process ran out of memory.")
        .causes(&[
            "error reading from server: eof",
            "transport is closing",
            "plugin did not respond",
            "plugin crashed",
            "plugin process exited",
            "failed to respond to the plugin",
            "failed to load plugin schemas",
            "failed to instantiate provider",
            "unrecognized remote plugin message",
            "panic: runtime error",
            "the plugin encountered an error",
            "stack trace from the",
            "nil pointer dereference",
            "terraform crashed",
            "dial unix",
        ]),
    Rule::new(Unknown, "WorkingDirectoryStale", "Restart the provider's pod, or remove the Workspace's directory in it: terraform init must run again.")
        .causes(&[
            "module not installed",
            "this module is not yet installed",
            "inconsistent dependency lock file",
            "required plugins are not installed",
            "required plugins are not",
            "backend initialization required",
            "please run \"terraform init\"",
            "missing or corrupted provider plugins",
            "missing or corrupted .. plugin",
            "initialization required",
            "could not load plugin",
            "plugin reinitialization required",
            "there is no package for .. cached in",
        ]),
    Rule::new(Unknown, "TerraformWorkspaceMissing", "If the infrastructure is gone, remove the Workspace's finalizer; else create the terraform workspace again.")
        .causes(&["workspace .. doesn't exist", "workspace .. does not exist", "currently selected workspace"]),
    Rule::new(Unknown, "TerraformWorkspaceExists", "Look why the existing terraform workspace could not be selected: lock, credentials or network of the backend.")
        .causes(&["workspace .. already exists"]),
    Rule::new(Unknown, "StateFileMissing", "Use a backend that survives the provider's pod; if nothing was created yet, wait.")
        .causes(&[
            "no state file was found",
            "no stored state was found",
            "unable to find remote state",
            "state file .. does not exist",
        ]),
    Rule::new(Unknown, "StateUnreadable", "Restore the state from a backup of the backend: it is damaged.")
        .causes(&[
            "state file could not be parsed",
            "state data .. corrupt",
            "error parsing state",
            "failed to read state",
            "could not be parsed as json",
            "invalid character .. state",
            "state lineage",
            "state serial",
            "resource instance data in state",
            "failed to decode resource from state",
            "failed to unlock state",
            "error releasing the state lock",
        ])
        .vague(&["error loading state", "failed to load state", "error refreshing state"]),
    Rule::new(Unknown, "DataSourceEmpty", "Wait if it is being created; else correct the filter or the tags: nothing was found.")
        .causes(&[
            "no matching .. found",
            "query returned no results",
            "returned no results",
            "no cluster found for name",
            "empty result",
            "no .. matched",
            "found no matching",
        ])
        .texts(&["couldn't find resource", "couldn't find any"]),
    Rule::new(Unknown, "DataSourceAmbiguous", "Narrow the filter or the tags: more than one object fits.")
        .causes(&[
            "query returned more than one result",
            "returned more than one",
            "multiple .. matched",
            "use additional constraints",
        ]),
    Rule::new(Unknown, "InUse", "Remove what still uses it (load balancers, network interfaces, attached policies); AWS cleans up some of it by itself.")
        .causes(&[
            "has dependencies and cannot be deleted",
            "has a dependent object",
            "has some mapped public address",
        ])
        .codes(&[
            "DependencyViolation",
            "DeleteConflict",
            "DeleteConflictException",
            "BucketNotEmpty",
            "HostedZoneNotEmpty",
            "RepositoryNotEmptyException",
            "RepositoryPolicyNotFoundException",
            "InvalidGroup.InUse",
            "InvalidNetworkInterface.InUse",
            "InvalidPlacementGroup.InUse",
            "VolumeInUse",
            "ResourceInUse",
            "OrganizationalUnitNotEmptyException",
            "OrganizationNotEmptyException",
        ])
        .texts(&[
            "is currently in use",
            "currently in use",
            "still in use",
            "is in use",
            "cannot be deleted",
            "must detach all policies",
            "still has",
        ])
        .vague(&["ResourceInUseException"]),
    Rule::new(Unknown, "NodesNotJoining", "Look why the nodes do not reach the API server: routes, security groups, node role, user data.")
        .causes(&[
            "failed to join the kubernetes cluster",
            "NodeCreationFailure",
            "unhealthy nodes in the kubernetes cluster",
        ]),
    Rule::new(Unknown, "PodEvictionFailure", "Look which PodDisruptionBudget keeps the pods on the node, or force the update.")
        .causes(&["PodEvictionFailure", "maximum retries in evicting", "cannot evict pod"]),
    Rule::new(Unknown, "ResourceFailed", "Look at the resource in the console or its status: it ended in a failed state.")
        .texts(&["back-off pulling image", "is in failed state"])
        .vague(&[
            "AsgInstanceLaunchFailures",
            "unexpected state 'create_failed'",
            "unexpected state",
            "create_failed",
            "update_failed",
            "delete_failed",
            "rollback_complete",
            "rollback_failed",
            "degraded",
            "ClusterUnreachable",
            "instance launch failed",
            "launching ec2 instance failed",
            "could not launch",
            "failed to become active",
        ]),
    Rule::new(Unknown, "ReleaseFailed", "Look at the pods of the release: helm status, kubectl get events.")
        .vague(&[
            "installation failed",
            "upgrade failed",
            "has no deployed releases",
            "failed post-install",
            "failed pre-install",
            "failed pre-upgrade",
            "failed post-upgrade",
            "backofflimitexceeded",
            "uninstalled due to atomic",
            "release .. failed",
            "imagepullbackoff",
            "crashloopbackoff",
        ]),
    Rule::new(Unknown, "ProviderInconsistent", "Report it to the makers of the Terraform provider, or use another version of it.")
        .causes(&[
            "produced invalid plan",
            "produced invalid object",
            "produced an unexpected new value",
            "returned invalid result object after apply",
            "provider returned invalid",
            "this is a bug in the provider",
        ]),
    Rule::new(Unknown, "CommandFailed", "Look at the output of the command that the module runs.")
        .vague(&[
            "local-exec provisioner error",
            "remote-exec provisioner error",
            "provisioner error",
            "external program execution failed",
            "error running command",
            "exit status",
            "exited with",
        ]),
    Rule::new(Unknown, "FileMissing", "Look at the path in the message: a file or directory of the run is missing.")
        .vague(&["no such file or directory", "file not found"]),
    Rule::new(Unknown, "NotFound", "Look at what the message names: it is missing.").vague(&["not found", "not exist", "doesn't exist", "no such", "cannot find", "could not find"]),
    Rule::new(Unknown, UNREADABLE, "Look at the provider's log: the message is damaged."),
    Rule::new(Unknown, NO_MESSAGE, "Look at the provider's log: there is no message."),
    Rule::new(Unknown, UNRECOGNISED, "Read the message; nothing is known about errors of this kind."),
];
