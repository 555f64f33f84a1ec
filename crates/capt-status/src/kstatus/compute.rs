//! kstatus: `status.Compute` of sigs.k8s.io/cli-utils, for kinds that it has no rules of its own for.

use alloc::{borrow::Cow, format};

use super::object::Object;
use crate::condition::AnyCondition;

/// What kstatus says of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kstatus {
    /// It is what its spec asks for.
    Current,
    /// It is on its way.
    InProgress,
    /// It will not get there without help.
    Failed,
    /// It is being deleted.
    Terminating,
}

impl Kstatus {
    /// As kstatus writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
        }
    }
}

/// What kstatus says, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report<'a> {
    /// The status.
    pub status: Kstatus,
    /// Why, for people.
    pub message: Cow<'a, str>,
}

impl<'a> Report<'a> {
    fn new(status: Kstatus, message: impl Into<Cow<'a, str>>) -> Self {
        Self { status, message: message.into() }
    }
}

/// What kstatus says of `object`, in the order in which it looks.
///
/// Deletion first, then a generation that the status does not speak of, then `Reconciling` and
/// `Stalled` (whichever of them is True first in the list), then `Ready`. An object without any of
/// these is Current, so a controller sets `Ready` when it first sees an object.
pub fn compute<'a, C: AnyCondition>(object: &Object<'a, C>) -> Report<'a> {
    if object.deleting {
        return Report::new(Kstatus::Terminating, "Resource scheduled for deletion");
    }
    if let (Some(generation), Some(observed)) = (object.generation, object.observed_generation)
        && generation != observed
    {
        let kind = object.kind;
        return Report::new(
            Kstatus::InProgress,
            format!("{kind} generation is {generation}, but latest observed generation is {observed}"),
        );
    }
    let conditions = object.listed();
    for condition in conditions {
        let status = match condition.type_() {
            "Reconciling" => Kstatus::InProgress,
            "Stalled" => Kstatus::Failed,
            _ => continue,
        };
        if condition.status() == "True" {
            return Report::new(status, condition.message());
        }
    }
    for condition in conditions.iter().filter(|condition| condition.type_() == "Ready") {
        match condition.status() {
            "True" => return Report::new(Kstatus::Current, "Resource is Ready"),
            "False" | "Unknown" => return Report::new(Kstatus::InProgress, condition.message()),
            _ => {}
        }
    }
    Report::new(Kstatus::Current, "Resource is current")
}
