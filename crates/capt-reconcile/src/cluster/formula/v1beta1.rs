//! The conditions of a Cluster in v1beta1.

use capt_status::{
    Condition, ConditionStatus, Time,
    condition::{self, v1beta1},
};
use serde_json::{Map, Value, json};

use super::{Error, Input, Provider, parsed};

impl Input<'_> {
    pub(super) fn write_v1beta1_conditions(&self, status: &mut Map<String, Value>, now: Time) -> Result<(), Error> {
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
