//! `metav1.Condition`, how a stored list of conditions takes over new verdicts, and how many
//! conditions become one.
//!
//! Rules, from Kubernetes and from the Cluster API conditions proposal: `lastTransitionTime` moves
//! only with `status`, every condition of ours carries `observedGeneration`, types of others stay as
//! they are, a type that should be there and is not counts as Unknown.
//!
//! ```
//! use capt_status::{Time, condition::{self, Summary, Verdict, types}, condition_type, reason};
//!
//! let now = Time::from_unix(1_767_225_600);
//! let verdicts = vec![
//!     Verdict::new(condition_type!("DiskReady"), true, reason!("Bound"), ""),
//!     Verdict::new(condition_type!("UserReady"), false, reason!("PasswordMissing"), "Secret db is not there"),
//! ];
//! let mut conditions = condition::merge(&[], verdicts, 1, now);
//! let ready = Summary::new(&["DiskReady", "UserReady"]).of(&conditions, types::READY)?;
//! assert_eq!(ready.message, "* UserReady: Secret db is not there");
//! condition::set(&mut conditions, ready, 1, now);
//! assert!(condition::is_false(&conditions, types::READY));
//! # Ok::<(), condition::CombineError>(())
//! ```
//!
//! It must not know any object: [`AnyCondition`] is all that is read of conditions of others.

mod aggregate;
mod combine;
#[cfg(feature = "k8s-openapi")]
mod k8s;
mod list;
mod mirror;
mod names;
mod order;
mod plural;
mod standard;
mod summary;
pub mod v1beta1;
mod verdict;
mod wire;

#[cfg(test)]
mod tests;

pub use aggregate::{Aggregate, Source};
pub use combine::{CombineError, Reasons};
#[cfg(feature = "k8s-openapi")]
pub use k8s::NotACondition;
pub use list::{find, is_false, is_told, is_true, is_unknown, merge, of_types, remove, same, set};
pub use mirror::{mirror, not_yet_reported};
pub use names::{ConditionType, MAX_REASON, MAX_TYPE, NameError, Reason};
pub use order::{canonical, sort};
pub use standard::{reasons, types};
pub use summary::Summary;
pub use verdict::Verdict;
pub use wire::{AnyCondition, Condition, ConditionStatus};
