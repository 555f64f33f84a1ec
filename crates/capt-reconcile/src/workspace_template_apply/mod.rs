//! The pass of a WorkspaceTemplateApply: render its template into a Workspace and mirror that.
//!
//! It creates with a name that follows from the apply, updates and never re-creates, touches nothing
//! that is not proved to be its own, and on deletion waits for whoever needs its Workspace.
//! What to do with drift that was there before a takeover, and with a provider that gives up, will
//! be decided in [`plan`].

mod delete;
mod observe;
mod plan;

pub(crate) use observe::is_current;
pub use observe::{Evidence, Observed, Wait, observe};
pub use plan::plan;
