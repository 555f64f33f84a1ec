//! Workspaces whose apply is gone: told to people and never deleted.
//!
//! They stand beside the passes: no object of ours is left that could have one. Nothing is read for
//! it but the cache.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use capt_reconcile::{
    ownership::Orphan,
    plan::{Event, EventType},
    reasons,
};
use tokio::time::sleep;

use crate::{cache::Cache, events::Events};

/// How often to look. An apply that is made anew, as after a restore, takes its Workspace over meanwhile.
const EVERY: Duration = Duration::from_mins(1);

/// Tells each orphan once by an event on the Workspace. Runs until it is dropped.
///
/// Of several operators with a scope each, one is enough.
pub async fn tell(cache: Arc<Cache>, events: Events) {
    let mut told = BTreeSet::new();
    loop {
        sleep(EVERY).await;
        let Some(orphans) = cache.orphans() else { continue };
        for Orphan { key, uid, message } in news(&mut told, orphans) {
            tracing::warn!(workspace = %key, "{message}");
            let event = Event { type_: EventType::Warning, reason: reasons::WORKSPACE_ORPHANED, note: message };
            events.publish(&key, Some(uid), &[event]).await;
        }
    }
}

/// Those that are not in `told` by their uid; afterwards they are, and no others.
fn news(told: &mut BTreeSet<String>, orphans: Vec<Orphan>) -> Vec<Orphan> {
    let before = std::mem::replace(told, orphans.iter().map(|orphan| orphan.uid.clone()).collect());
    orphans.into_iter().filter(|orphan| !before.contains(&orphan.uid)).collect()
}

#[cfg(test)]
mod tests {
    use capt_reconcile::object::{Kind, ObjectKey};

    use super::*;

    fn orphan(uid: &str) -> Orphan {
        let key = ObjectKey::new(Kind::Workspace(capt_api::foreign::WorkspaceApi::Cluster), "", uid);
        Orphan { key, uid: uid.to_owned(), message: String::new() }
    }

    #[test]
    fn each_orphan_is_told_once_and_again_after_it_was_none() {
        let mut told = BTreeSet::new();
        let uids = |orphans: Vec<Orphan>| orphans.into_iter().map(|orphan| orphan.uid).collect::<Vec<_>>();
        assert_eq!(uids(news(&mut told, vec![orphan("a"), orphan("b")])), ["a", "b"]);
        assert_eq!(uids(news(&mut told, vec![orphan("a"), orphan("c")])), ["c"]);
        assert_eq!(uids(news(&mut told, Vec::new())), [""; 0]);
        assert_eq!(uids(news(&mut told, vec![orphan("a")])), ["a"]);
    }
}
