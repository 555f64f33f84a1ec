//! What each reason means and what to do about it: the one table behind `capt-operator reasons`, `explain`
//! and `docs/reasons.md`.
//!
//! Reasons of failures that Terraform reports bring their own hint along ([`capt_status::Reason`]). It must
//! not decide anything: who sets a reason does not look here.

mod table;

use capt_status::{Class, Reason, machine::Timer};

/// A reason for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The reason: one CamelCase word.
    pub reason: &'static str,
    /// Where it is said.
    pub group: Group,
    /// What it says, in sentences.
    pub meaning: &'static str,
    /// What to do, in sentences; empty if there is nothing to do.
    pub remedy: &'static str,
}

/// Where a reason is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// In conditions and events: something is waited for or under way.
    Waiting,
    /// In conditions and events: something is wrong, and CAPT says what.
    Wrong,
    /// In conditions: everything is as it should be.
    Fine,
    /// In events only.
    Event,
    /// In conditions and events: a deadline has passed.
    Deadline,
    /// In `status.failureReason`.
    FailureReason,
    /// In conditions of a Cluster, where CAPT publishes its status; these are Cluster API's own words.
    Cluster,
    /// In conditions: what Terraform reports; it may pass by itself.
    Transient,
    /// In conditions: what Terraform reports; a limit of the account.
    Quota,
    /// In conditions: what Terraform reports; a right is missing.
    Permission,
    /// In conditions: what Terraform reports; the input is wrong.
    Config,
    /// In conditions: what Terraform reports; of no known kind.
    Unknown,
}

impl Group {
    /// Every group, in the order of the document.
    pub const ALL: [Self; 12] = [
        Self::Waiting,
        Self::Wrong,
        Self::Deadline,
        Self::Permission,
        Self::Config,
        Self::Quota,
        Self::Transient,
        Self::Unknown,
        Self::FailureReason,
        Self::Event,
        Self::Fine,
        Self::Cluster,
    ];

    /// One word for scripts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Wrong => "Wrong",
            Self::Fine => "Fine",
            Self::Event => "Event",
            Self::Deadline => "Deadline",
            Self::FailureReason => "FailureReason",
            Self::Cluster => "Cluster",
            Self::Transient => "Transient",
            Self::Quota => "Quota",
            Self::Permission => "Permission",
            Self::Config => "Config",
            Self::Unknown => "Unknown",
        }
    }

    /// Heading and first sentence in the document.
    pub const fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Waiting => ("Waiting", "Something is under way, or has to come first."),
            Self::Wrong => ("Wrong", "CAPT sees what is wrong, without Terraform."),
            Self::Fine => ("Fine", "The reasons of conditions that are as they should be."),
            Self::Event => ("Events", "Beside the reasons above, these are told by events."),
            Self::Deadline => (
                "Deadlines",
                "Something was not done in time. A late success still counts. The limits are in `spec.timeouts`.",
            ),
            Self::FailureReason => (
                "failureReason",
                "`status.failureReason`, in state Failed only. Failed is left by success, by a change of the spec, or by a \
                 new value of the annotation `capt.cluster.x-k8s.io/retry`.",
            ),
            Self::Cluster => (
                "Cluster",
                "Where no Cluster API core runs, CAPT publishes the status of a Cluster in core's own words.",
            ),
            Self::Transient => (
                "Terraform: may pass",
                "Class Transient: tried again by the provider, and by CAPT within `spec.recoveryStrategy`.",
            ),
            Self::Quota => ("Terraform: limits", "Class Quota: tried again, at long intervals."),
            Self::Permission => (
                "Terraform: rights",
                "Class Permission: tried again for ten minutes, since rights need time to spread; then a person is needed.",
            ),
            Self::Config => ("Terraform: input", "Class Config: not tried again before something is changed."),
            Self::Unknown => ("Terraform: not known", "Class Unknown: treated as if it may pass."),
        }
    }
}

impl From<Class> for Group {
    fn from(class: Class) -> Self {
        match class {
            Class::Transient => Self::Transient,
            Class::Quota => Self::Quota,
            Class::Permission => Self::Permission,
            Class::Config => Self::Config,
            Class::Unknown => Self::Unknown,
        }
    }
}

/// What a passed deadline means; `PermissionDenied` is also what Terraform may report.
const fn expired(timer: Timer) -> (&'static str, &'static str) {
    match timer {
        Timer::VpcCreation => (
            "The provider has not begun on the VPC's Workspace in time.",
            "See whether provider-terraform runs, whether its ProviderConfig exists, and how long its queue is.",
        ),
        Timer::VpcReady => ("The VPC was not ready in time.", "Explain the CAPTCluster and its Workspace."),
        Timer::WorkspaceReady => {
            ("The Workspace was not ready in time.", "Look at the Workspace's conditions and events.")
        }
        Timer::ControlPlane => (
            "The control plane was not created, updated or upgraded in time.",
            "Explain the CAPTControlPlane: the condition Reconciling says what it waits for.",
        ),
        Timer::Secret => (
            "Endpoint, certificate authority and kubeconfig were not complete in time.",
            "Compare the outputs of the EKS template with docs/workspaces.md.",
        ),
        Timer::PermissionGrace => (
            "A right was missing for longer than rights take to spread.",
            "Grant what the message names, then set the annotation capt.cluster.x-k8s.io/retry to a new value.",
        ),
    }
}

/// Every reason, in the order of the groups.
pub fn all() -> Vec<Meaning> {
    let mut all = table::OWN.to_vec();
    for timer in Timer::ALL {
        let (meaning, remedy) = expired(timer);
        all.push(Meaning { reason: timer.reason(), group: Group::Deadline, meaning, remedy });
    }
    for reason in Reason::ALL {
        if all.iter().any(|known| known.reason == reason.as_str()) {
            continue;
        }
        let group = Group::from(reason.class());
        all.push(Meaning { reason: reason.as_str(), group, meaning: "", remedy: reason.hint() });
    }
    all.sort_by_key(|meaning| Group::ALL.iter().position(|group| *group == meaning.group));
    all
}

/// What `reason` means, if CAPT can set it.
pub fn find(reason: &str) -> Option<Meaning> {
    all().into_iter().find(|meaning| meaning.reason == reason)
}

#[cfg(test)]
mod tests;
