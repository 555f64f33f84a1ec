//! The order in which people read conditions: availability first, operations next, then what other
//! controllers add, `Paused` and `Deleting` last (the table in Cluster API's `util/conditions`).
//!
//! For output and for lists that are not maps. It must not decide whether something changed:
//! [`same`](super::same()) does, and it ignores order.

use core::cmp::Ordering;

use super::wire::AnyCondition;

/// Types before those that have no place of their own.
const FIRST: [&str; 35] = [
    "Available",
    "Ready",
    "UpToDate",
    "RemoteConnectionProbe",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "CertificatesAvailable",
    "Initialized",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
    "NodeHealthy",
    "NodeReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "TopologyReconciled",
    "Updating",
    "RollingOut",
    "Remediating",
    "ScalingDown",
    "ScalingUp",
    "MachinesReady",
    "ControlPlaneMachinesReady",
    "WorkerMachinesReady",
    "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate",
    "WorkerMachinesUpToDate",
];

/// Types after them.
const LAST: [&str; 2] = ["Paused", "Deleting"];

fn rank(type_: &str) -> usize {
    let place = |types: &[&str]| types.iter().position(|known| *known == type_);
    match (place(&FIRST), place(&LAST)) {
        (Some(first), _) => first,
        (None, Some(last)) => FIRST.len() + 1 + last,
        (None, None) => FIRST.len(),
    }
}

/// How two condition types follow each other in canonical order.
pub fn canonical(left: &str, right: &str) -> Ordering {
    rank(left).cmp(&rank(right)).then_with(|| left.cmp(right))
}

/// Puts conditions into canonical order.
///
/// ```
/// use capt_status::condition::{Condition, ConditionStatus, sort};
///
/// let named = |type_: &str| Condition {
///     type_: type_.to_owned(),
///     status: ConditionStatus::True,
///     observed_generation: None,
///     last_transition_time: Default::default(),
///     reason: "Because".to_owned(),
///     message: String::new(),
/// };
/// let mut conditions = ["Deleting", "DiskReady", "Ready"].map(named);
/// sort(&mut conditions);
/// assert_eq!(conditions.map(|condition| condition.type_), ["Ready", "DiskReady", "Deleting"]);
/// ```
pub fn sort<C: AnyCondition>(conditions: &mut [C]) {
    conditions.sort_by(|left, right| canonical(left.type_(), right.type_()));
}
