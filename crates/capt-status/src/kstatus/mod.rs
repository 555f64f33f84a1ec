//! What the tools of others say of an object: kstatus (Flux, kpt, cli-utils), `kubectl wait`, Argo CD.
//!
//! Place in the flow: in tests of a controller, and wherever it tells people what their tools will
//! show. It decides nothing about the object itself.
//!
//! | function | says what | of |
//! |---|---|---|
//! | [`compute`] | Current, InProgress, Failed or Terminating | custom resources, by kstatus |
//! | [`Wait::is_met`] | whether `kubectl wait --for=condition=...` returns | any object |
//! | [`argo::health`] | Healthy, Progressing, Degraded or Suspended | custom resources with [`argo::LUA`] |
//!
//! ```
//! use capt_status::{Time, condition::{self, Verdict, types}, kstatus::{self, Kstatus, Object, Wait}, reason};
//!
//! let full = Verdict::new(types::STALLED, true, reason!("DiskFull"), "disk is full");
//! let conditions = condition::merge(&[], vec![full], 3, Time::from_unix(0));
//! let object = Object::new("Database", &conditions).generations(3, Some(3));
//! let report = kstatus::compute(&object);
//! assert_eq!((report.status, &*report.message), (Kstatus::Failed, "disk is full"));
//! assert!(!Wait::parse("condition=Ready")?.is_met(&object));
//! # Ok::<(), kstatus::ParseWaitError>(())
//! ```
//!
//! A controller that is read rightly by all three sets `Ready` at first sight, `Reconciling` True
//! while work is in flight, `Stalled` True when it has given up, never both, and `observedGeneration`
//! on the status and on each condition.

pub mod argo;
mod compute;
mod manifest;
mod object;
mod wait;

#[cfg(test)]
mod tests;

pub use compute::{Kstatus, Report, compute};
pub use manifest::{LooseCondition, Manifest};
pub use object::Object;
pub use wait::{ParseWaitError, Wait};
