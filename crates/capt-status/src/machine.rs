//! The state machine of CAPTCluster and CAPTControlPlane: facts in, state and standard conditions out.
//!
//! Both controllers share it. Facts are small enums made at the edge of capt-reconcile; texts
//! travel beside them in a [`Cause`], so that the decision itself stays enumerable. The conditions
//! are those that generic tools read (kubectl wait, kstatus, Flux, Argo CD): Ready, Available,
//! Healthy, Reconciling, Stalled, Paused, Deleting.
//!
//! Failure classes, deadlines and recovery will add facts here and the edges to `Failed` and
//! `Recovering`; until then a failing Workspace keeps an object in `Provisioning` (or `Degraded`
//! once it has served) with the reason in its conditions.

use alloc::{borrow::Cow, format, string::String, vec, vec::Vec};

use crate::{
    condition::{ConditionStatus, Verdict},
    state::State,
};

/// What a pass found out about one object, abstract enough to enumerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Alive or on its way out.
    pub lifecycle: Lifecycle,
    /// Whether the owner Cluster is known.
    pub owner: Owner,
    /// Whether the object's own spec can be worked with.
    pub inputs: Inputs,
    /// What must be there before the Workspace: the VPC for a control plane, nothing for a CAPTCluster.
    pub infrastructure: Infrastructure,
    /// The Workspace that does the work.
    pub workspace: Workspace,
    /// What is collected once the Workspace is ready.
    pub configuration: Configuration,
    /// Latch: the object was ready once.
    pub served: bool,
}

/// Alive or on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// No deletionTimestamp.
    Active,
    /// deletionTimestamp is set.
    Deleting,
}

/// Whether the owner Cluster is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// No owner reference to a Cluster, or that Cluster is not there.
    Missing,
    /// The Cluster is there.
    Known,
}

/// Whether the object's own spec can be worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inputs {
    /// It can.
    Valid,
    /// It needs a change by the user.
    Invalid,
}

/// What must be there before the Workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Infrastructure {
    /// Not there yet.
    Waiting,
    /// There, or not needed.
    Ready,
}

/// The Workspace that does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workspace {
    /// Nothing of it yet, or the provider works on the current generation.
    InProgress,
    /// The provider reports an error, or the Workspace is missing or not ours.
    Failing,
    /// Synced and Ready, both of the current generation.
    Ready,
}

/// What is collected once the Workspace is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Configuration {
    /// Something is missing.
    Incomplete,
    /// Everything is there.
    Complete,
}

/// Why an object is not simply Ready: a reason for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// CamelCase reason.
    pub reason: Cow<'static, str>,
    /// Text that names the object that is waited for.
    pub message: String,
}

impl Cause {
    /// A cause from its parts.
    pub fn new(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// The state that follows from `facts`.
///
/// Total and without memory but for the latch in the facts: a pass that sees the same world says
/// the same, whatever it said before.
pub const fn state(facts: &Facts) -> State {
    match facts.lifecycle {
        Lifecycle::Deleting => return State::Deleting,
        Lifecycle::Active => {}
    }
    // An owner reference that got lost says nothing about the cluster that runs.
    match facts.owner {
        Owner::Missing if !facts.served => return State::Pending,
        Owner::Missing | Owner::Known => {}
    }
    match (facts.inputs, facts.infrastructure, facts.workspace, facts.configuration) {
        (Inputs::Invalid, _, _, _) | (_, _, Workspace::Failing, _) if facts.served => State::Degraded,
        (Inputs::Invalid, _, _, _) => State::Validating,
        (Inputs::Valid, Infrastructure::Waiting, _, _) if facts.served => State::Degraded,
        (Inputs::Valid, Infrastructure::Waiting, _, _)
        | (Inputs::Valid, Infrastructure::Ready, Workspace::InProgress | Workspace::Failing, _) => State::Provisioning,
        (Inputs::Valid, Infrastructure::Ready, Workspace::Ready, Configuration::Complete) => State::Ready,
        (Inputs::Valid, Infrastructure::Ready, Workspace::Ready, Configuration::Incomplete) => {
            if facts.served {
                State::Degraded
            } else {
                State::Configuring
            }
        }
    }
}

/// The standard conditions of `state`, in canonical order.
///
/// `cause` is what the object waits for or suffers from; `available_before` is the stored Available
/// condition, which a deletion does not change.
pub fn verdicts(state: State, served: bool, cause: &Cause, available_before: bool) -> Vec<Verdict> {
    let serving = served || state == State::Ready;
    let ready = match state {
        State::Ready | State::Degraded => true,
        State::Pending | State::Validating | State::Provisioning | State::Configuring | State::Recovering => serving,
        State::Failed | State::Deleting => false,
    };
    let available = if state == State::Deleting { available_before } else { ready };
    let working = match state {
        State::Pending
        | State::Validating
        | State::Provisioning
        | State::Configuring
        | State::Recovering
        | State::Deleting => true,
        State::Ready | State::Degraded | State::Failed => false,
    };
    let because = |is_so: bool, reason: &'static str| {
        if is_so { (Cow::Borrowed(reason), String::new()) } else { (cause.reason.clone(), cause.message.clone()) }
    };
    let (available_reason, available_message) = because(available, "Available");
    let (ready_reason, ready_message) = because(ready, "Ready");
    let healthy = match state {
        State::Ready => Verdict::new("Healthy", true, "Healthy", ""),
        State::Degraded | State::Failed => Verdict::new("Healthy", false, cause.reason.clone(), cause.message.clone()),
        State::Pending
        | State::Validating
        | State::Provisioning
        | State::Configuring
        | State::Recovering
        | State::Deleting => Verdict::new(
            "Healthy",
            ConditionStatus::Unknown,
            "NotChecked",
            format!("health is judged in state Ready, not in {}", state.as_str()),
        ),
    };
    vec![
        Verdict::new("Available", available, available_reason, available_message),
        Verdict::new("Ready", ready, ready_reason, ready_message),
        healthy,
        if working {
            Verdict::new("Reconciling", true, cause.reason.clone(), cause.message.clone())
        } else {
            Verdict::new("Reconciling", false, "NotReconciling", "")
        },
        if state == State::Failed {
            Verdict::new("Stalled", true, cause.reason.clone(), cause.message.clone())
        } else {
            Verdict::new("Stalled", false, "NotStalled", "")
        },
        Verdict::new("Paused", false, "NotPaused", ""),
        if state == State::Deleting {
            Verdict::new("Deleting", true, "Deleting", cause.message.clone())
        } else {
            Verdict::new("Deleting", false, "NotDeleting", "")
        },
    ]
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::condition::ConditionStatus::{False, True};

    fn all_facts() -> Vec<Facts> {
        let mut all = Vec::new();
        for lifecycle in [Lifecycle::Active, Lifecycle::Deleting] {
            for owner in [Owner::Missing, Owner::Known] {
                for inputs in [Inputs::Valid, Inputs::Invalid] {
                    for infrastructure in [Infrastructure::Waiting, Infrastructure::Ready] {
                        for workspace in [Workspace::InProgress, Workspace::Failing, Workspace::Ready] {
                            for configuration in [Configuration::Incomplete, Configuration::Complete] {
                                for served in [false, true] {
                                    all.push(Facts {
                                        lifecycle,
                                        owner,
                                        inputs,
                                        infrastructure,
                                        workspace,
                                        configuration,
                                        served,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        all
    }

    fn status_of(verdicts: &[Verdict], type_: &str) -> ConditionStatus {
        verdicts.iter().find(|verdict| verdict.type_ == type_).unwrap().status
    }

    #[test]
    fn ready_is_honest() {
        for facts in all_facts() {
            let is_ready = state(&facts) == State::Ready;
            let everything_there = facts.lifecycle == Lifecycle::Active
                && facts.inputs == Inputs::Valid
                && facts.infrastructure == Infrastructure::Ready
                && facts.workspace == Workspace::Ready
                && facts.configuration == Configuration::Complete
                && (facts.owner == Owner::Known || facts.served);
            assert_eq!(is_ready, everything_there, "{facts:?}");
        }
    }

    #[test]
    fn what_has_served_never_goes_back_to_a_first_creation() {
        for facts in all_facts().into_iter().filter(|facts| facts.served && facts.lifecycle == Lifecycle::Active) {
            let now = state(&facts);
            assert!(matches!(now, State::Provisioning | State::Ready | State::Degraded), "{facts:?} gives {now:?}");
            assert_eq!(status_of(&verdicts(now, true, &Cause::new("X", "x"), true), "Ready"), True, "{facts:?}");
        }
    }

    #[test]
    fn every_step_is_a_legal_edge_and_these_states_are_reached() {
        let mut reached = BTreeSet::new();
        for before in all_facts() {
            for after in all_facts() {
                // Neither a deletion nor a latch nor a known owner of an object that works is taken back.
                if before.lifecycle == Lifecycle::Deleting && after.lifecycle == Lifecycle::Active
                    || before.served && !after.served
                    || before.owner == Owner::Known && after.owner == Owner::Missing
                {
                    continue;
                }
                let (from, to) = (state(&before), state(&after));
                // The latch is set by the pass that says Ready, so nothing is served before.
                if !before.served && from != State::Ready && after.served && to != State::Ready {
                    continue;
                }
                reached.insert(to);
                assert!(from == to || from.successors().contains(&to), "{from:?} -> {to:?}: {before:?} {after:?}");
            }
        }
        let expected = [
            State::Pending,
            State::Validating,
            State::Provisioning,
            State::Configuring,
            State::Ready,
            State::Degraded,
            State::Deleting,
        ];
        assert_eq!(reached, BTreeSet::from(expected));
    }

    #[test]
    fn the_conditions_of_each_state_are_those_of_the_table() {
        // state, served, Ready, Available, Reconciling, Stalled
        let table = [
            (State::Pending, false, False, False, True, False),
            (State::Validating, false, False, False, True, False),
            (State::Provisioning, false, False, False, True, False),
            (State::Configuring, false, False, False, True, False),
            (State::Provisioning, true, True, True, True, False),
            (State::Ready, true, True, True, False, False),
            (State::Ready, false, True, True, False, False),
            (State::Degraded, true, True, True, False, False),
            (State::Recovering, false, False, False, True, False),
            (State::Recovering, true, True, True, True, False),
            (State::Failed, false, False, False, False, True),
            (State::Deleting, true, False, True, True, False),
        ];
        for (state, served, ready, available, reconciling, stalled) in table {
            let verdicts = verdicts(state, served, &Cause::new("Because", "because"), true);
            let shown = ["Ready", "Available", "Reconciling", "Stalled"].map(|type_| status_of(&verdicts, type_));
            let available = if state == State::Deleting { True } else { available };
            assert_eq!(shown, [ready, available, reconciling, stalled], "{state:?} served={served}");
        }
    }
}
