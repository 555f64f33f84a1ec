//! Deadlines whose start is stored, so that neither a restart, another leader nor a clock moves them.
//!
//! Place in the flow: in status, and in the decision what has taken too long. Nothing here reads a
//! clock; `now` is an argument, in whole seconds.
//!
//! * A deadline that runs keeps its start whoever looks at it ([`keep`]); its length is not stored, so
//!   a change of the spec counts at once.
//! * A pause stops it: look with [`clock`], and add the pause to it when it ends ([`resume`]).
//! * A clock that went back never makes one expire; it expires at the first look at or after its end.
//! * [`next`] says when to look again: neither in a busy loop nor after the end.
//!
//! ```
//! use capt_status::{Span, Time, deadline};
//!
//! let limit = |_: &str| Some(Span::from_minutes(5));
//! let start = Time::from_unix(1_767_225_600);
//! let running = deadline::keep(&[], &["diskTimeout"], start);
//! // Another process, four minutes later, with what the status says.
//! let now = start.plus(Span::from_minutes(4));
//! let running = deadline::keep(&running, &["diskTimeout", "userTimeout"], now);
//! assert_eq!(deadline::next(&running, limit, now, Span::from_minutes(10)), Some(Span::from_minutes(1)));
//! let now = now.plus(Span::from_minutes(1));
//! assert_eq!(deadline::expired(&running, limit, now).map(|late| &*late.name).collect::<Vec<_>>(), ["diskTimeout"]);
//! ```

mod list;
mod minutes;
mod running;
#[cfg(test)]
mod tests;
mod wire;

pub use list::{earliest, expired, keep, next, requeue, resume};
pub use minutes::{Minutes, NotMinutes};
pub use running::{Running, clock};
pub use wire::Deadline;
