//! What tools look at in an object.

use crate::condition::{AnyCondition, Condition};

/// The parts of an object that tools look at; borrowed, so that looking costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a, C = Condition> {
    /// Its kind, for messages.
    pub kind: &'a str,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// `status.observedGeneration`.
    pub observed_generation: Option<i64>,
    /// `status.conditions`; `None` if there is no such list.
    pub conditions: Option<&'a [C]>,
    /// `status.failureMessage`, which Argo CD looks at; empty if there is none.
    pub failure_message: &'a str,
}

impl<'a, C: AnyCondition> Object<'a, C> {
    /// An object of `kind` that is not being deleted, with `conditions`.
    pub const fn new(kind: &'a str, conditions: &'a [C]) -> Self {
        Self {
            kind,
            deleting: false,
            generation: None,
            observed_generation: None,
            conditions: Some(conditions),
            failure_message: "",
        }
    }

    /// With `metadata.generation` and `status.observedGeneration`.
    #[must_use]
    pub const fn generations(mut self, generation: i64, observed: Option<i64>) -> Self {
        self.generation = Some(generation);
        self.observed_generation = observed;
        self
    }

    /// With or without a `metadata.deletionTimestamp`.
    #[must_use]
    pub const fn deleting(mut self, deleting: bool) -> Self {
        self.deleting = deleting;
        self
    }

    /// The conditions, none if there is no list.
    pub(super) fn listed(&self) -> &'a [C] {
        self.conditions.unwrap_or_default()
    }
}
