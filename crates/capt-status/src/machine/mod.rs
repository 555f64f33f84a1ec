//! The state machine of CAPTCluster and CAPTControlPlane: facts in, state and standard conditions out.
//!
//! Both controllers share it. Deadlines and attempts are those of [`crate::deadline`] and
//! [`crate::backoff`]; here is which of them an object has when.
//!
//! | module | what is in it |
//! |---|---|
//! | [`facts`] | what a pass found out, as small enums |
//! | [`timers`] | which timer runs when, and its expiry |
//! | [`step`](mod@step) | what was and what is -> what follows |
//! | [`progress`] | milestones, percentage, estimate and history of operations |
//! | [`conditions`] | what a state shows to kubectl wait, kstatus, Flux and Argo CD |
//! | [`events`](mod@events) | what of a step is told as an event |
//! | [`failure_reason`] | the word of Cluster API for a failure |

pub mod conditions;
pub mod events;
pub mod facts;
pub mod failure_reason;
pub mod progress;
pub mod step;
pub mod timers;

pub use conditions::verdicts;
pub use events::{Event, EventType, events};
pub use facts::{
    Cause, Checks, Configuration, Facts, Infrastructure, Inputs, Lifecycle, Owner, Role, Teardown, Workspace,
};
pub use failure_reason::FailureReason;
pub use step::{Because, Limits, Memory, Next, follow, step};
pub use timers::{Timeouts, Timer, Timers};

#[cfg(test)]
mod tests;
