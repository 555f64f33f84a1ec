//! The standard conditions of each state: those that generic tools read.

use alloc::{borrow::Cow, format, string::String, vec, vec::Vec};

use super::facts::Cause;
use crate::{
    condition::{ConditionStatus, Verdict},
    state::State,
};

/// The standard conditions of `state`, in canonical order.
///
/// `cause` is what the object waits for or suffers from; `stalled` whether that needs a person;
/// `available_before` is the stored Available condition, which a deletion does not change.
pub fn verdicts(state: State, served: bool, stalled: bool, cause: &Cause, available_before: bool) -> Vec<Verdict> {
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
        if stalled {
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
