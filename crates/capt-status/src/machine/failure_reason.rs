//! `status.failureReason`: the five words of Cluster API's contract that a Failed object shows.
//!
//! Place in the flow: after [`follow`](super::follow), beside the conditions, which carry the stable
//! reason and the text; this word is for tools that know nothing but Cluster API's list.

use super::{
    facts::{Facts, Inputs, Lifecycle},
    step::{Because, Next},
};
use crate::{failure::Class, progress::Operation, state::State};

/// Why an object is Failed, in the words of Cluster API.
///
/// ```
/// use capt_status::{Class, Operation, machine::FailureReason};
///
/// assert_eq!(FailureReason::new(Class::Config, Operation::Create).as_str(), "InvalidConfiguration");
/// assert_eq!(FailureReason::new(Class::Quota, Operation::Upgrade).as_str(), "UpdateError");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureReason {
    /// It could not be made.
    CreateError,
    /// It could not be changed.
    UpdateError,
    /// It could not be removed.
    DeleteError,
    /// The configuration has to change.
    InvalidConfiguration,
    /// The change that is asked for cannot be made on what exists.
    UnsupportedChange,
}

impl FailureReason {
    /// Every word.
    pub const ALL: [Self; 5] =
        [Self::CreateError, Self::UpdateError, Self::DeleteError, Self::InvalidConfiguration, Self::UnsupportedChange];

    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateError => "CreateError",
            Self::UpdateError => "UpdateError",
            Self::DeleteError => "DeleteError",
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::UnsupportedChange => "UnsupportedChange",
        }
    }

    /// The word that is written so; `None` for those of others.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.as_str() == text)
    }

    /// The word for a failure of `class` in `operation`.
    pub const fn new(class: Class, operation: Operation) -> Self {
        match (class, operation) {
            (Class::Config, _) => Self::InvalidConfiguration,
            (Class::Transient | Class::Quota | Class::Permission | Class::Unknown, Operation::Create) => {
                Self::CreateError
            }
            (
                Class::Transient | Class::Quota | Class::Permission | Class::Unknown,
                Operation::Update | Operation::Upgrade | Operation::Recover,
            ) => Self::UpdateError,
            (Class::Transient | Class::Quota | Class::Permission | Class::Unknown, Operation::Delete) => {
                Self::DeleteError
            }
        }
    }

    /// What the status shows after the step `next` from `facts`: something in state Failed only.
    ///
    /// `shown` is what it shows already: a failure that nobody answered keeps its word, whatever the
    /// provider does meanwhile.
    pub fn of(next: &Next, facts: &Facts, shown: Option<Self>) -> Option<Self> {
        if next.state != State::Failed {
            return None;
        }
        let operation = match (facts.lifecycle, next.memory.served) {
            (Lifecycle::Deleting(_), _) => Operation::Delete,
            (Lifecycle::Active | Lifecycle::Paused, true) => Operation::Update,
            (Lifecycle::Active | Lifecycle::Paused, false) => Operation::Create,
        };
        if let (Lifecycle::Paused, _, Some(shown)) | (_, Because::StillFailed, Some(shown)) =
            (facts.lifecycle, next.because, shown)
        {
            return Some(shown);
        }
        Some(match facts.inputs {
            Inputs::Unsupported => Self::UnsupportedChange,
            Inputs::Invalid => Self::InvalidConfiguration,
            // What it refers to did not come within its time.
            Inputs::Unresolved => Self::InvalidConfiguration,
            Inputs::Valid => Self::new(facts.failure().unwrap_or(Class::Unknown), operation),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Checks, Configuration, Infrastructure, Memory, Owner, Role, Timer, Workspace};

    fn facts(inputs: Inputs, workspace: Workspace) -> Facts {
        Facts {
            role: Role::ControlPlane,
            lifecycle: Lifecycle::Active,
            owner: Owner::Known,
            inputs,
            infrastructure: Infrastructure::Ready,
            workspace,
            busy: false,
            configuration: Configuration::Incomplete,
            checks: Checks::Passing,
            same_failure: true,
            user_changed: false,
        }
    }

    fn next(state: State, because: Because) -> Next {
        let memory = Memory { state: Some(state), ..Memory::default() };
        Next { memory, state, because, stalled: state == State::Failed, act: false, at: None }
    }

    #[test]
    fn every_class_and_operation_has_its_word() {
        use FailureReason::{CreateError, DeleteError, InvalidConfiguration, UpdateError};
        use Operation::{Create, Delete, Recover, Update, Upgrade};
        for class in Class::ALL {
            let words =
                [Create, Update, Upgrade, Recover, Delete].map(|operation| FailureReason::new(class, operation));
            let expected = if class == Class::Config {
                [InvalidConfiguration; 5]
            } else {
                [CreateError, UpdateError, UpdateError, UpdateError, DeleteError]
            };
            assert_eq!(words, expected, "{class}");
        }
    }

    #[test]
    fn a_failed_object_shows_the_word_of_what_failed() {
        use FailureReason::{CreateError, InvalidConfiguration, UnsupportedChange};
        let (facts_, expired) = (Because::Facts, Because::Expired(Timer::ControlPlane));
        for (inputs, workspace, because, word) in [
            (Inputs::Valid, Workspace::Failing(Class::Config), facts_, InvalidConfiguration),
            (Inputs::Valid, Workspace::Failing(Class::Permission), facts_, CreateError),
            (Inputs::Valid, Workspace::Failing(Class::Quota), Because::BudgetSpent, CreateError),
            (Inputs::Valid, Workspace::Applying, expired, CreateError),
            (Inputs::Invalid, Workspace::Queued, facts_, InvalidConfiguration),
            (Inputs::Unresolved, Workspace::Queued, expired, InvalidConfiguration),
            (Inputs::Unsupported, Workspace::Ready, facts_, UnsupportedChange),
        ] {
            let facts = facts(inputs, workspace);
            assert_eq!(FailureReason::of(&next(State::Failed, because), &facts, None), Some(word), "{facts:?}");
        }
    }

    #[test]
    fn a_failure_that_nobody_answered_keeps_its_word() {
        let facts = facts(Inputs::Valid, Workspace::Applying);
        let still = next(State::Failed, Because::StillFailed);
        for word in FailureReason::ALL {
            assert_eq!(FailureReason::of(&still, &facts, Some(word)), Some(word));
            let paused = Facts { lifecycle: Lifecycle::Paused, ..facts };
            assert_eq!(FailureReason::of(&next(State::Failed, Because::Facts), &paused, Some(word)), Some(word));
        }
        assert_eq!(FailureReason::of(&still, &facts, None), Some(FailureReason::CreateError));
    }

    #[test]
    fn only_what_is_failed_shows_one() {
        for state in State::ALL.into_iter().filter(|state| *state != State::Failed) {
            let facts = facts(Inputs::Invalid, Workspace::Failing(Class::Config));
            let shown = Some(FailureReason::CreateError);
            assert_eq!(FailureReason::of(&next(state, Because::Facts), &facts, shown), None, "{state:?}");
        }
    }

    #[test]
    fn a_word_is_found_by_its_text() {
        for word in FailureReason::ALL {
            assert_eq!(FailureReason::find(word.as_str()), Some(word));
        }
        assert_eq!(FailureReason::find("VPCCreationFailed"), None);
    }
}
