//! What Cluster API core computes for a Cluster, as a function of the Cluster and its two provider objects.
//!
//! Source: `core/reconcilers/cluster` of Cluster API 1.14 for v1beta2, release 1.10 for v1beta1. Conditions that
//! speak of Machines or of core's own connection are not computed: there is nothing to compute them from.
//! `status.observedGeneration` is never set, since it is the sign by which core is known.

use capt_api::{
    CAPTCluster, CAPTControlPlane, FailureDomain,
    common::ApiEndpoint,
    foreign::{ClusterVersion, ClusterView},
    names::PAUSED_ANNOTATION,
};
use capt_status::{
    Condition, ConditionStatus, Time,
    condition::{self, AnyCondition, Reasons, Summary, Verdict, reasons, types, v1beta1},
    condition_type, reason,
};
use kube::Resource;
use serde_json::{Map, Value, json};

use crate::object::Kind;

/// Conditions of a Cluster, by core's names.
mod conditions {
    use super::{condition, condition_type};

    pub(super) const INFRASTRUCTURE_READY: condition::ConditionType = condition_type!("InfrastructureReady");
    pub(super) const CONTROL_PLANE_AVAILABLE: condition::ConditionType = condition_type!("ControlPlaneAvailable");
    pub(super) const CONTROL_PLANE_INITIALIZED: condition::ConditionType = condition_type!("ControlPlaneInitialized");
}

/// Why a stored status cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not what the CRD allows.
    #[error("the stored status does not parse, so nothing is written over it: {0}")]
    Status(#[from] serde_json::Error),
}

/// A provider object as core sees it.
#[derive(Debug)]
pub enum Provider<'a, T> {
    /// The Cluster names none.
    Unreferenced,
    /// It is not there.
    Missing,
    /// It is there.
    There(&'a T),
}

impl<T> Clone for Provider<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

// A derive would ask the object to be Copy too.
impl<T> Copy for Provider<'_, T> {}

impl<'a, T: Resource> Provider<'a, T> {
    /// The object while it is not being deleted; core takes over nothing from one that is.
    fn alive(self) -> Option<&'a T> {
        match self {
            Self::There(object) if object.meta().deletion_timestamp.is_none() => Some(object),
            Self::There(_) | Self::Unreferenced | Self::Missing => None,
        }
    }

    const fn there(self) -> Option<&'a T> {
        match self {
            Self::There(object) => Some(object),
            Self::Unreferenced | Self::Missing => None,
        }
    }
}

/// What core reads.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Cluster.
    pub cluster: &'a ClusterView,
    /// Its infrastructure.
    pub infrastructure: Provider<'a, CAPTCluster>,
    /// Its control plane.
    pub control_plane: Provider<'a, CAPTControlPlane>,
}

impl Input<'_> {
    /// `status.initialization.infrastructureProvisioned`; a latch.
    pub fn provisioned(&self) -> bool {
        let published = self.infrastructure.alive().and_then(|object| object.status.as_ref()).is_some_and(|status| {
            status.ready || status.initialization.as_ref().and_then(|done| done.provisioned) == Some(true)
        });
        let needs_none = match self.infrastructure {
            Provider::Unreferenced => !self.cluster.meta.deleting,
            Provider::Missing | Provider::There(_) => false,
        };
        self.cluster.infrastructure_provisioned || published || needs_none
    }

    /// `status.initialization.controlPlaneInitialized`; a latch.
    pub fn initialized(&self) -> bool {
        let published = self.control_plane.alive().and_then(|object| object.status.as_ref()).is_some_and(|status| {
            status.initialized
                || status.initialization.as_ref().and_then(|done| done.control_plane_initialized) == Some(true)
        });
        self.cluster.control_plane_initialized || published
    }

    /// The endpoint to copy into the Cluster's spec: only where it has none, and only of an initialized control
    /// plane.
    pub fn endpoint(&self) -> Option<&ApiEndpoint> {
        if self.cluster.endpoint.is_some() || !self.initialized() || self.cluster.meta.deleting {
            return None;
        }
        self.control_plane.alive()?.spec.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_set())
    }

    /// `status.phase`.
    pub fn phase(&self) -> &'static str {
        let references = self.cluster.infrastructure_ref.is_some() || self.cluster.control_plane_ref.is_some();
        if self.cluster.meta.deleting {
            "Deleting"
        } else if self.cluster.version == ClusterVersion::V1Beta1 && self.failure() != (None, None) {
            "Failed"
        } else if self.provisioned() && (self.cluster.endpoint.is_some() || self.endpoint().is_some()) {
            "Provisioned"
        } else if references {
            "Provisioning"
        } else {
            "Pending"
        }
    }

    /// Failure reason and text: the control plane's go before the infrastructure's.
    pub fn failure(&self) -> (Option<String>, Option<String>) {
        let of_infrastructure = self.infrastructure.there().and_then(|object| object.status.as_ref()).map(|status| {
            (status.failure_reason.clone(), status.failure_message.as_ref(), self.infrastructure_prefix())
        });
        let of_control_plane = self.control_plane.there().and_then(|object| object.status.as_ref()).map(|status| {
            (status.failure_reason.clone(), status.failure_message.as_ref(), self.control_plane_prefix())
        });
        let (mut reason, mut text) = (None, None);
        for (own_reason, own_text, prefix) in [of_infrastructure, of_control_plane].into_iter().flatten() {
            reason = own_reason.filter(|reason| !reason.is_empty()).or(reason);
            text = own_text.filter(|text| !text.is_empty()).map(|own| format!("{prefix}{own}")).or(text);
        }
        (reason, text)
    }

    /// What core puts before a failure text of the infrastructure.
    pub fn infrastructure_prefix(&self) -> String {
        prefix(Kind::CaptCluster, self.cluster.infrastructure_ref.as_ref().map_or("", |found| &found.name))
    }

    /// What core puts before a failure text of the control plane.
    pub fn control_plane_prefix(&self) -> String {
        prefix(Kind::CaptControlPlane, self.cluster.control_plane_ref.as_ref().map_or("", |found| &found.name))
    }

    fn failure_domains(&self) -> Option<&[FailureDomain]> {
        let status = self.infrastructure.alive()?.status.as_ref();
        self.provisioned().then(|| status.map_or(&[][..], |status| &status.failure_domains))
    }

    /// The status with all that core would have set, starting from the stored one.
    pub fn status(&self, stored: &Value, now: Time) -> Result<Value, Error> {
        let mut status = stored.as_object().cloned().unwrap_or_default();
        status.insert("phase".to_owned(), json!(self.phase()));
        let (reason, text) = self.failure();
        let failure = [("failureReason", reason), ("failureMessage", text)];
        match self.cluster.version {
            ClusterVersion::V1Beta2 => {
                for (field, is_set) in
                    [("infrastructureProvisioned", self.provisioned()), ("controlPlaneInitialized", self.initialized())]
                {
                    if is_set {
                        status.entry("initialization").or_insert_with(|| json!({}))[field] = json!(true);
                    }
                }
                if let Some(domains) = self.failure_domains() {
                    set_or_remove(&mut status, "failureDomains", (!domains.is_empty()).then(|| json!(domains)));
                }
                if failure.iter().any(|(_, value)| value.is_some()) || status.contains_key("deprecated") {
                    let deprecated = status.entry("deprecated").or_insert_with(|| json!({}));
                    if !deprecated["v1beta1"].is_object() {
                        deprecated["v1beta1"] = json!({});
                    }
                    if let Some(fields) = deprecated["v1beta1"].as_object_mut() {
                        for (field, value) in failure {
                            set_or_remove(fields, field, value.map(Value::from));
                        }
                    }
                }
                self.write_conditions(&mut status, now)?;
            }
            ClusterVersion::V1Beta1 => {
                if self.provisioned() {
                    status.insert("infrastructureReady".to_owned(), json!(true));
                }
                let was_ready = status.get("controlPlaneReady") == Some(&json!(true));
                let is_ready = self.control_plane.alive().and_then(|object| object.status.as_ref());
                if was_ready || is_ready.is_some_and(|status| status.ready) {
                    status.insert("controlPlaneReady".to_owned(), json!(true));
                }
                for (field, value) in failure {
                    set_or_remove(&mut status, field, value.map(Value::from));
                }
                self.write_v1beta1_conditions(&mut status, now)?;
            }
        }
        Ok(Value::Object(status))
    }

    /// The status of a paused Cluster: core sets the condition Paused and nothing else.
    pub fn paused_status(&self, stored: &Value, paused: &str, now: Time) -> Result<Value, Error> {
        let mut status = stored.as_object().cloned().unwrap_or_default();
        let verdict = Verdict::new(types::PAUSED, true, reasons::PAUSED, paused);
        match self.cluster.version {
            ClusterVersion::V1Beta2 => merge_conditions(&mut status, vec![verdict], self.cluster.meta.generation, now)?,
            // There is no such condition in v1beta1.
            ClusterVersion::V1Beta1 => {}
        }
        Ok(Value::Object(status))
    }

    fn write_conditions(&self, status: &mut Map<String, Value>, now: Time) -> Result<(), Error> {
        let generation = self.cluster.meta.generation;
        let stored: Vec<Condition> = parsed(status.get("conditions"))?;
        let mut verdicts = vec![self.infrastructure_ready(), self.control_plane_available()];
        // Once True it is left alone.
        if !condition::is_true(&stored, &conditions::CONTROL_PLANE_INITIALIZED) {
            verdicts.push(self.control_plane_initialized());
        }
        verdicts.push(Verdict::new(types::PAUSED, false, reasons::NOT_PAUSED, ""));
        verdicts.push(self.deleting());
        let merged = condition::merge(&stored, verdicts.clone(), generation, now);
        verdicts.extend(self.available(&merged));
        merge_conditions(status, verdicts, generation, now)
    }

    fn infrastructure_ready(&self) -> Verdict {
        let conditions = self.infrastructure.there().and_then(|object| object.status.as_ref());
        let told = Told {
            target: conditions::INFRASTRUCTURE_READY,
            mirrored: conditions
                .and_then(|status| mirrored(&status.conditions, "Ready", conditions::INFRASTRUCTURE_READY)),
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
            target: conditions::CONTROL_PLANE_AVAILABLE,
            mirrored: conditions
                .and_then(|status| mirrored(&status.conditions, "Available", conditions::CONTROL_PLANE_AVAILABLE)),
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
        let target = conditions::CONTROL_PLANE_INITIALIZED;
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

    fn write_v1beta1_conditions(&self, status: &mut Map<String, Value>, now: Time) -> Result<(), Error> {
        let stored: Vec<v1beta1::V1Beta1Condition> = parsed(status.get("conditions"))?;
        let infrastructure = match self.infrastructure {
            Provider::Unreferenced => Some(Fallback::Holds),
            Provider::Missing => None,
            Provider::There(object) => {
                let ready = object.status.as_ref().and_then(|status| condition::find(&status.conditions, "Ready"));
                Some(Fallback::of(ready, self.provisioned(), "WaitingForInfrastructure"))
            }
        };
        let control_plane = self.control_plane.there().map(|object| {
            let ready = object.status.as_ref().and_then(|status| condition::find(&status.conditions, "Ready"));
            Fallback::of(ready, self.initialized(), "WaitingForControlPlane")
        });
        let initialized = self.control_plane.there().map(|_| {
            if self.initialized() {
                Fallback::Holds
            } else {
                Fallback::Waits(
                    "WaitingForControlPlaneProviderInitialized",
                    "Waiting for control plane provider to indicate the control plane has been initialized",
                )
            }
        });
        let told = [
            ("ControlPlaneInitialized", initialized),
            ("ControlPlaneReady", control_plane),
            ("InfrastructureReady", infrastructure),
        ];
        let mut wanted = stored.clone();
        for (type_, fallback) in told.into_iter().filter_map(|(type_, fallback)| Some((type_, fallback?))) {
            let condition = fallback.condition(type_, stored.iter().find(|old| old.type_ == type_), now);
            match wanted.iter_mut().find(|old| old.type_ == type_) {
                Some(old) => *old = condition,
                None => wanted.push(condition),
            }
        }
        if wanted != stored {
            status.insert("conditions".to_owned(), json!(wanted));
        }
        Ok(())
    }
}

/// Why a Cluster is paused, in core's words, if it is.
pub fn paused(cluster: &ClusterView) -> Option<String> {
    let mut parts = Vec::new();
    if cluster.paused {
        parts.push("Cluster spec.paused is set to true".to_owned());
    }
    if cluster.meta.annotations.contains_key(PAUSED_ANNOTATION) {
        parts.push(format!("Cluster has the {PAUSED_ANNOTATION} annotation"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// As Go prints a GroupVersionKind.
fn prefix(kind: Kind, name: &str) -> String {
    format!(
        "Failure detected from referenced resource {}, Kind={} with name \"{name}\": ",
        kind.api_version(),
        kind.name()
    )
}

fn set_or_remove(fields: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(field.to_owned(), value);
        }
        None => {
            fields.remove(field);
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(list: Option<&Value>) -> Result<Vec<T>, Error> {
    Ok(match list {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => serde_json::from_value(list.clone())?,
    })
}

/// Takes `verdicts` over into the list of conditions; one that says the same already stays as it is, in its order.
fn merge_conditions(
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

fn mirrored<C: AnyCondition>(conditions: &[C], source: &str, target: condition::ConditionType) -> Option<Verdict> {
    condition::mirror(conditions, source, target)
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

/// What a condition of contract v1beta1 says.
enum Fallback<'a> {
    Mirrors(&'a Condition),
    Holds,
    Waits(&'static str, &'static str),
}

impl<'a> Fallback<'a> {
    const fn of(ready: Option<&'a Condition>, holds: bool, waits: &'static str) -> Self {
        match (ready, holds) {
            (Some(ready), _) => Self::Mirrors(ready),
            (None, true) => Self::Holds,
            (None, false) => Self::Waits(waits, ""),
        }
    }

    fn condition(
        self,
        type_: &str,
        stored: Option<&v1beta1::V1Beta1Condition>,
        now: Time,
    ) -> v1beta1::V1Beta1Condition {
        let (status, severity, reason, message) = match self {
            Self::Mirrors(ready) => (ready.status, None, ready.reason.clone(), ready.message.clone()),
            Self::Holds => (ConditionStatus::True, None, String::new(), String::new()),
            Self::Waits(reason, message) => {
                (ConditionStatus::False, Some(v1beta1::Severity::Info), reason.to_owned(), message.to_owned())
            }
        };
        let same = stored.filter(|old| {
            (old.status, old.severity, &old.reason, &old.message) == (status, severity, &reason, &message)
        });
        let last_transition_time = same.map_or(now, |old| old.last_transition_time);
        v1beta1::V1Beta1Condition { type_: type_.to_owned(), status, severity, last_transition_time, reason, message }
    }
}
