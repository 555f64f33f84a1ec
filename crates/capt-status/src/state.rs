//! The nine states of a provider object, the phases they project to, and the legal edges.
//!
//! `status.state` is the state machine (requirements 003), `status.phase` its projection for the
//! people who know three words (requirements 000 and 001).

use serde::{Deserialize, Serialize};

/// State of a CAPTCluster or CAPTControlPlane.
///
/// Pending: no owner Cluster yet. Validating: references, version and names are checked.
/// Provisioning: waiting for the VPC or the Workspace, or an update is in flight.
/// Configuring: the Workspace is ready; endpoint, CA and kubeconfig are collected.
/// Ready: serving and up to date. Degraded: serving, but the last apply or a check fails.
/// Recovering: a recovery action runs. Failed: never ready so far, and given up for now.
/// Deleting: the object is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum State {
    Pending,
    Validating,
    Provisioning,
    Configuring,
    Ready,
    Degraded,
    Recovering,
    Failed,
    Deleting,
}

/// Short form of a [`State`]: Creating, Ready, Failed or Deleting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum Phase {
    Creating,
    Ready,
    Failed,
    Deleting,
}

impl State {
    /// Every state, in the order of an object's life.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Validating,
        Self::Provisioning,
        Self::Configuring,
        Self::Ready,
        Self::Degraded,
        Self::Recovering,
        Self::Failed,
        Self::Deleting,
    ];

    /// What `status.phase` says in this state.
    ///
    /// ```
    /// use capt_status::{Phase, State};
    ///
    /// assert_eq!(State::Degraded.phase(), Phase::Ready);
    /// assert!(!State::Ready.successors().contains(&State::Failed));
    /// ```
    pub const fn phase(self) -> Phase {
        match self {
            Self::Pending | Self::Validating | Self::Provisioning | Self::Configuring | Self::Recovering => {
                Phase::Creating
            }
            Self::Ready | Self::Degraded => Phase::Ready,
            Self::Failed => Phase::Failed,
            Self::Deleting => Phase::Deleting,
        }
    }

    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Validating => "Validating",
            Self::Provisioning => "Provisioning",
            Self::Configuring => "Configuring",
            Self::Ready => "Ready",
            Self::Degraded => "Degraded",
            Self::Recovering => "Recovering",
            Self::Failed => "Failed",
            Self::Deleting => "Deleting",
        }
    }

    /// The states that may follow this one; staying is always legal.
    ///
    /// A pass sees a level and not every step to it, so a fast provider may take an object from
    /// `Pending` to `Ready` in one step. What was ready once never goes back to a first creation and
    /// is never `Failed`; nothing comes back out of `Deleting`.
    pub const fn successors(self) -> &'static [Self] {
        use State::{Configuring, Degraded, Deleting, Failed, Pending, Provisioning, Ready, Recovering, Validating};
        match self {
            Pending => &[Validating, Provisioning, Configuring, Ready, Degraded, Recovering, Failed, Deleting],
            Validating => &[Pending, Provisioning, Configuring, Ready, Degraded, Recovering, Failed, Deleting],
            Provisioning => &[Pending, Validating, Configuring, Ready, Degraded, Recovering, Failed, Deleting],
            Configuring => &[Pending, Validating, Provisioning, Ready, Degraded, Recovering, Failed, Deleting],
            Ready => &[Provisioning, Degraded, Deleting],
            Degraded => &[Provisioning, Ready, Deleting],
            Recovering => &[Pending, Validating, Provisioning, Configuring, Ready, Degraded, Failed, Deleting],
            Failed => &[Pending, Validating, Provisioning, Configuring, Ready, Degraded, Recovering, Deleting],
            Deleting => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_called_as_on_the_wire() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
