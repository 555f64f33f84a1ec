//! The pass of a WorkspaceTemplateApply: render its template into a Workspace and mirror that.
//!
//! It creates with a name that follows from the apply, updates and never re-creates, touches nothing
//! that is not proved to be its own, and on deletion waits for whoever needs its Workspace.
//!
//! * [`plan`]: what is made and recorded; `takeover`: what is written to a Workspace that is there.
//! * `verdicts`: what the conditions say.
//! * `pausing`: how a pause reaches the Workspace; `delete`: how the apply goes.
//! * `owner`, `waits`: what it reads of its owner and of those it waits for.

mod delete;
mod observe;
mod owner;
mod pausing;
mod plan;
mod takeover;
mod verdicts;
mod waits;

pub(crate) use observe::is_current;
pub use observe::{Evidence, Observed, observe};
pub use owner::Owner;
pub use plan::plan;
pub use waits::{Dependents, Wait};
