//! Status of Kubernetes objects as values: wire types and the rules that move them.
//!
//! This crate is the bottom of the workspace. It owns the wire types of status (they are used as
//! they are in the CRDs, in plans and in tests) and the decisions that need nothing but values:
//! which state follows from which facts, and which conditions that state shows.
//!
//! It must not know kube, a clock, an environment or randomness: `now` is always an
//! argument, in whole seconds ([`Time`]), because `metav1.Time` keeps no more.
//!
//! Of any controller:
//!
//! | module | what is in it |
//! |---|---|
//! | [`condition`] | `metav1.Condition`: checked names, merging, summary, aggregate, mirror |
//! | [`kstatus`] | what kstatus, `kubectl wait` and Argo CD say of an object |
//! | [`deadline`] | deadlines that nothing moves but a pause; timeouts in whole minutes |
//! | [`backoff`] | trying again: intervals, budget, attempts |
//! | [`failure`] | what an error message means, and what to do about it |
//! | [`time`] | [`Time`] and [`Span`]: whole seconds, RFC 3339 and Go duration text |
//! | [`text`] | messages within their bounds |
//!
//! Of the CAPT kinds:
//!
//! | module | what is in it |
//! |---|---|
//! | [`state`] | the nine states, the phases they project to, the legal edges |
//! | [`machine`] | facts in, next state and standard conditions out |
//! | [`endpoint`] | host and port of an API server, parsed from what Terraform outputs |
//! | [`health`] | named checks and what they come to |
//! | [`recovery`], [`progress`], [`dependencies`] | wire types of the remaining status |
//!
//! The modules of the first table use none of the second.
#![no_std]

extern crate alloc;

pub mod backoff;
pub mod condition;
pub mod deadline;
pub mod dependencies;
pub mod endpoint;
pub mod failure;
pub mod health;
pub mod kstatus;
pub mod machine;
pub mod progress;
pub mod recovery;
pub mod state;
pub mod text;
pub mod time;

pub use condition::{Condition, ConditionStatus};
pub use deadline::Deadline;
pub use dependencies::{Dependencies, DependencyNode};
pub use endpoint::Endpoint;
pub use failure::{Class, Failure, Reason, Stage};
pub use health::{CheckName, CheckResult, CheckStatus, Health, HealthCheck, HealthStatus};
pub use progress::{Operation, OperationRecord, OperationResult, Progress};
pub use recovery::{ActionType, BackoffConfig, EffectiveStrategy, Recovery, RecoveryAction, RecoveryStrategy};
pub use state::{Phase, State};
pub use time::{Span, Time};

/// The code of the README, which has to work.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
