//! Which passes have read what, so that an event starts those that it concerns.

use std::collections::{BTreeMap, BTreeSet};

use capt_reconcile::{
    object::ObjectKey,
    world::{Read, Relation},
};

/// What each pass read when it was run last, and the other way round.
#[derive(Debug, Default)]
pub(super) struct Readers {
    reads: BTreeMap<ObjectKey, BTreeSet<Read>>,
    readers: BTreeMap<Read, BTreeSet<ObjectKey>>,
}

impl Readers {
    /// The pass over `pass` has read `reads` and nothing else.
    pub(super) fn read(&mut self, pass: &ObjectKey, reads: BTreeSet<Read>) {
        if self.reads.get(pass) == Some(&reads) {
            return;
        }
        self.forget(pass);
        for read in &reads {
            self.readers.entry(read.clone()).or_default().insert(pass.clone());
        }
        self.reads.insert(pass.clone(), reads);
    }

    /// The object of the pass is gone.
    pub(super) fn forget(&mut self, pass: &ObjectKey) {
        for read in self.reads.remove(pass).into_iter().flatten() {
            if let Some(passes) = self.readers.get_mut(&read) {
                passes.remove(pass);
            }
        }
    }

    /// Adds the passes that a change of `key` concerns; `relations` is what it said of others before and says now.
    pub(super) fn concerned<'r>(
        &self,
        key: &ObjectKey,
        relations: impl IntoIterator<Item = &'r Relation>,
        due: &mut BTreeSet<ObjectKey>,
    ) {
        let lists = [Read::List(key.kind, None), Read::List(key.kind, key.namespace.clone())];
        let related: Vec<Read> = relations.into_iter().cloned().map(Read::Related).collect();
        for read in [Read::Object(key.clone())].iter().chain(&lists).chain(&related) {
            due.extend(self.readers.get(read).into_iter().flatten().cloned());
        }
    }
}
