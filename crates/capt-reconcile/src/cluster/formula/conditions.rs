//! The conditions of a Cluster in v1beta2.

use capt_status::{
    Condition, ConditionStatus, Time,
    condition::{self, Reasons, Summary, Verdict, reasons, types},
    condition_type, reason,
};
use serde_json::{Map, Value, json};

use super::{Error, Input, Provider, parsed};
use crate::object::Kind;

/// By core's names.
mod names {
    use super::{condition, condition_type};

    pub(super) const INFRASTRUCTURE_READY: condition::ConditionType = condition_type!("InfrastructureReady");
    pub(super) const CONTROL_PLANE_AVAILABLE: condition::ConditionType = condition_type!("ControlPlaneAvailable");
    pub(super) const CONTROL_PLANE_INITIALIZED: condition::ConditionType = condition_type!("ControlPlaneInitialized");
}

impl Input<'_> {
    pub(super) fn write_conditions(&self, status: &mut Map<String, Value>, now: Time) -> Result<(), Error> {
        let generation = self.cluster.meta.generation;
        let stored: Vec<Condition> = parsed(status.get("conditions"))?;
        let mut verdicts = vec![self.infrastructure_ready(), self.control_plane_available()];
        // Once True it is left alone.
        if !condition::is_true(&stored, &names::CONTROL_PLANE_INITIALIZED) {
            verdicts.push(self.control_plane_initialized());
        }
        verdicts.push(Verdict::new(types::PAUSED, false, reasons::NOT_PAUSED, ""));
        verdicts.push(self.deleting());
        let merged = condition::merge(&stored, verdicts.clone(), generation, now);
        verdicts.extend(self.available(&merged));
        merge(status, verdicts, generation, now)
    }

    fn infrastructure_ready(&self) -> Verdict {
        let conditions = self.infrastructure.there().and_then(|object| object.status.as_ref());
        let told = Told {
            target: names::INFRASTRUCTURE_READY,
            mirrored: conditions
                .and_then(|status| condition::mirror(&status.conditions, "Ready", names::INFRASTRUCTURE_READY)),
            latch: self.provisioned(),
            kind: Kind::CaptCluster,
            good: "Provisioned",
            bad: "NotReady",
            deleted: "InfrastructureDeleted",
            missing: "InfrastructureDoesNotExist",
            unreported: "status.initialization.provisioned is false",
        };
        told.verdict(self.infrastructure, self.cluster.meta.deleting)
    }

    fn control_plane_available(&self) -> Verdict {
        let conditions = self.control_plane.there().and_then(|object| object.status.as_ref());
        let told = Told {
            target: names::CONTROL_PLANE_AVAILABLE,
            mirrored: conditions
                .and_then(|status| condition::mirror(&status.conditions, "Available", names::CONTROL_PLANE_AVAILABLE)),
            latch: self.initialized(),
            kind: Kind::CaptControlPlane,
            good: "Available",
            bad: "NotAvailable",
            deleted: "ControlPlaneDeleted",
            missing: "ControlPlaneDoesNotExist",
            unreported: "status.initialization.controlPlaneInitialized is false",
        };
        told.verdict(self.control_plane, self.cluster.meta.deleting)
    }

    fn control_plane_initialized(&self) -> Verdict {
        let target = names::CONTROL_PLANE_INITIALIZED;
        match self.control_plane {
            Provider::Missing => Verdict::new(
                target,
                ConditionStatus::Unknown,
                "ControlPlaneDoesNotExist",
                format!("{} does not exist", Kind::CaptControlPlane.name()),
            ),
            Provider::There(_) | Provider::Unreferenced if self.initialized() => {
                Verdict::new(target, true, "Initialized", "")
            }
            Provider::There(_) => Verdict::new(target, false, "NotInitialized", "Control plane not yet initialized"),
            Provider::Unreferenced => Verdict::new(
                target,
                false,
                "NotInitialized",
                "Waiting for the first control plane machine to have status.nodeRef set",
            ),
        }
    }

    fn deleting(&self) -> Verdict {
        if !self.cluster.meta.deleting {
            return Verdict::new(types::DELETING, false, reasons::NOT_DELETING, "");
        }
        let waiting = |kind: Kind| format!("Waiting for {} to be deleted", kind.name());
        let (reason, message) = if self.control_plane.there().is_some() {
            (reason!("WaitingForControlPlaneDeletion"), waiting(Kind::CaptControlPlane))
        } else if self.infrastructure.there().is_some() {
            (reason!("WaitingForInfrastructureDeletion"), waiting(Kind::CaptCluster))
        } else {
            (reason!("DeletionCompleted"), "Deletion completed".to_owned())
        };
        Verdict::new(types::DELETING, true, reason, message)
    }

    /// The summary of `conditions`. What nobody computes without core does not count; a gate of the user does.
    fn available(&self, conditions: &[Condition]) -> Option<Verdict> {
        let mut summarized = vec![
            "Deleting",
            "RemoteConnectionProbe",
            "InfrastructureReady",
            "ControlPlaneAvailable",
            "WorkersAvailable",
        ];
        let mut negative = vec!["Deleting"];
        for (gate, is_negative) in &self.cluster.availability_gates {
            summarized.push(gate);
            if *is_negative {
                negative.push(gate);
            }
        }
        let reasons =
            Reasons { issue: reasons::NOT_AVAILABLE, unknown: reasons::AVAILABLE_UNKNOWN, info: reasons::AVAILABLE };
        Summary::new(&summarized)
            .negative(&negative)
            .ignore_if_missing(&["RemoteConnectionProbe", "WorkersAvailable"])
            .reasons(reasons)
            .of(conditions, types::AVAILABLE)
            .ok()
    }
}

/// Takes `verdicts` over into the list of conditions; one that says the same already stays as it is, in its order.
pub(super) fn merge(
    status: &mut Map<String, Value>,
    verdicts: Vec<Verdict>,
    generation: i64,
    now: Time,
) -> Result<(), Error> {
    let stored: Vec<Condition> = parsed(status.get("conditions"))?;
    let mut merged = condition::merge(&stored, verdicts, generation, now);
    if !condition::same(&stored, &merged) {
        condition::sort(&mut merged);
        status.insert("conditions".to_owned(), json!(merged));
    }
    Ok(())
}

/// A condition of a Cluster that follows one of a provider object.
struct Told {
    target: condition::ConditionType,
    mirrored: Option<Verdict>,
    latch: bool,
    kind: Kind,
    good: &'static str,
    bad: &'static str,
    deleted: &'static str,
    missing: &'static str,
    unreported: &'static str,
}

impl Told {
    fn verdict<T>(self, provider: Provider<'_, T>, deleting: bool) -> Verdict {
        let Self { target, mirrored, latch, kind, good, bad, deleted, missing, unreported } = self;
        let kind = kind.name();
        match provider {
            Provider::There(_) => mirrored.unwrap_or_else(|| {
                if latch {
                    Verdict::new(target, true, good, "")
                } else {
                    Verdict::new(target, false, bad, format!("{kind} {unreported}"))
                }
            }),
            Provider::Missing | Provider::Unreferenced if latch && deleting => {
                Verdict::new(target, false, deleted, format!("{kind} has been deleted"))
            }
            Provider::Missing if latch => {
                Verdict::new(target, false, deleted, format!("{kind} has been deleted while the cluster still exists"))
            }
            Provider::Missing | Provider::Unreferenced => {
                Verdict::new(target, false, missing, format!("{kind} does not exist"))
            }
        }
    }
}
