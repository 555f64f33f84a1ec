//! Argo CD: the health it shows, and the script that makes it show that.
//!
//! Argo CD has no rule for custom resources it does not know and then shows an application as
//! Healthy at once. [`LUA`] is such a rule: put it under
//! `resource.customizations.health.<group>_<Kind>` in the ConfigMap `argocd-cm`. [`health`] says
//! what it gives, so that a controller can test it.

use alloc::{borrow::Cow, format};

use super::object::Object;
use crate::condition::AnyCondition;

/// The health check as Argo CD runs it: Lua that takes `obj` and returns `status` and `message`.
pub const LUA: &str = include_str!("health.lua");

/// What Argo CD shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgoHealth {
    /// It is what its spec asks for.
    Healthy,
    /// It may get well by itself.
    Progressing,
    /// It will not get well by itself.
    Degraded,
    /// It is paused.
    Suspended,
}

impl ArgoHealth {
    /// As Argo CD writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Progressing => "Progressing",
            Self::Degraded => "Degraded",
            Self::Suspended => "Suspended",
        }
    }
}

/// What Argo CD shows of `object` with [`LUA`], and why.
///
/// A deletion is Progressing whatever a script says. Then: nothing reported or an older generation
/// reported is Progressing; a `failureMessage` or `Stalled` is Degraded; `Reconciling` or
/// `RollingOut` is Progressing; `Paused` is Suspended; `Ready` is Healthy; a False condition of
/// severity Error (contract v1beta1) is Degraded; anything else is Progressing.
pub fn health<'a, C: AnyCondition>(object: &Object<'a, C>) -> (ArgoHealth, Cow<'a, str>) {
    if object.deleting {
        return (ArgoHealth::Progressing, Cow::Borrowed("Pending deletion"));
    }
    let Some(conditions) = object.conditions else {
        return (ArgoHealth::Progressing, Cow::Borrowed("nothing is reported yet"));
    };
    if let (Some(generation), Some(observed)) = (object.generation, object.observed_generation)
        && observed < generation
    {
        let message = format!("generation {generation} is not observed yet, only {observed}");
        return (ArgoHealth::Progressing, Cow::Owned(message));
    }
    if !object.failure_message.is_empty() {
        return (ArgoHealth::Degraded, Cow::Borrowed(object.failure_message));
    }
    let decisive = [
        ("Stalled", ArgoHealth::Degraded),
        ("Reconciling", ArgoHealth::Progressing),
        ("RollingOut", ArgoHealth::Progressing),
        ("Paused", ArgoHealth::Suspended),
        ("Ready", ArgoHealth::Healthy),
    ];
    for (type_, health) in decisive {
        if let Some(condition) =
            conditions.iter().find(|condition| condition.type_() == type_ && condition.status() == "True")
        {
            return (health, Cow::Borrowed(condition.message()));
        }
    }
    if let Some(condition) =
        conditions.iter().find(|condition| condition.status() == "False" && condition.severity() == Some("Error"))
    {
        return (ArgoHealth::Degraded, Cow::Borrowed(condition.message()));
    }
    let message = conditions.iter().find(|condition| condition.type_() == "Ready").map_or("", AnyCondition::message);
    (ArgoHealth::Progressing, Cow::Borrowed(message))
}
