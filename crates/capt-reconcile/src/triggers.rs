//! Which passes an event concerns.
//!
//! A pass leaves behind what it read; an event on an object starts the passes that read it, and the
//! object's own. Nothing is listed by hand, so no dependency can be forgotten. This is a plain
//! index: it must not know when a pass runs or what an event says.

use std::collections::BTreeSet;

use crate::{
    lookup::Lookup,
    object::ObjectKey,
    pass,
    world::{Read, Reads, Relation},
};

/// Reads of each pass, and the way back. What stands in both is there once: this grows with the number of clusters like
/// what is known of them.
#[derive(Debug, Default)]
pub struct Triggers {
    reads: Lookup<ObjectKey, Box<[Read]>>,
    /// Each list in order.
    readers: Lookup<Read, Vec<ObjectKey>>,
}

impl Triggers {
    /// Takes over what the pass of `object` read; what an earlier pass of it read no longer counts.
    pub fn replace(&mut self, object: &ObjectKey, reads: Reads) {
        if self.reads.get(object).is_some_and(|known| reads.are(known)) {
            return;
        }
        self.forget(object);
        let shared = reads.into_iter().map(|read| {
            // Where the read was known, this is the one that stands there.
            let (read, readers) = self.readers.or_default(read);
            if let Err(place) = readers.binary_search(object) {
                readers.insert(place, object.clone());
            }
            read
        });
        let shared = shared.collect();
        self.reads.insert(object.clone(), shared);
    }

    /// The object is gone and has no passes any more.
    pub fn forget(&mut self, object: &ObjectKey) {
        for read in self.reads.remove(object).unwrap_or_default() {
            if let Some(readers) = self.readers.get_mut(&read) {
                if let Ok(place) = readers.binary_search(object) {
                    readers.remove(place);
                }
                if readers.is_empty() {
                    self.readers.remove(&read);
                }
            }
        }
    }

    /// The objects whose passes an event on the object at `key` concerns; `relations` is what it said of others before
    /// and says now.
    pub fn concerned<'r>(
        &self,
        key: &ObjectKey,
        relations: impl IntoIterator<Item = &'r Relation>,
    ) -> BTreeSet<ObjectKey> {
        let mut reads =
            vec![Read::Object(key.clone()), Read::List(key.kind, None), Read::List(key.kind, key.namespace.clone())];
        // Of a cluster-scoped object the last two are the same.
        reads.dedup();
        reads.extend(relations.into_iter().cloned().map(Read::Related));
        let mut concerned: BTreeSet<ObjectKey> =
            reads.iter().filter_map(|read| self.readers.get(read)).flatten().cloned().collect();
        if pass::KINDS.contains(&key.kind) {
            concerned.insert(key.clone());
        }
        concerned
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use capt_api::foreign::WorkspaceApi;
    use proptest::prelude::*;

    use super::*;
    use crate::object::Kind;

    fn apply(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Apply, "ns", name)
    }

    fn secret(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Secret, namespace, name)
    }

    #[test]
    fn an_object_concerns_its_own_pass_even_before_the_first() {
        let triggers = Triggers::default();
        assert_eq!(triggers.concerned(&apply("a"), &[]), BTreeSet::from([apply("a")]));
        assert_eq!(triggers.concerned(&secret("ns", "a"), &[]), BTreeSet::new(), "a Secret has no passes");
    }

    #[test]
    fn a_list_is_read_by_namespace_or_everywhere() {
        let mut triggers = Triggers::default();
        triggers.replace(&apply("one"), Reads::from_iter([Read::List(Kind::Secret, Some("ns".into()))]));
        triggers.replace(&apply("all"), Reads::from_iter([Read::List(Kind::Secret, None)]));
        assert_eq!(triggers.concerned(&secret("ns", "x"), &[]), BTreeSet::from([apply("one"), apply("all")]));
        assert_eq!(triggers.concerned(&secret("other", "x"), &[]), BTreeSet::from([apply("all")]));
    }

    #[test]
    fn only_the_last_reads_of_a_pass_count() {
        let mut triggers = Triggers::default();
        triggers.replace(&apply("a"), Reads::from_iter([Read::Object(secret("ns", "old"))]));
        triggers.replace(&apply("a"), Reads::from_iter([Read::Object(secret("ns", "new"))]));
        assert_eq!(triggers.concerned(&secret("ns", "old"), &[]), BTreeSet::new());
        assert_eq!(triggers.concerned(&secret("ns", "new"), &[]), BTreeSet::from([apply("a")]));
        triggers.forget(&apply("a"));
        assert!(triggers.readers.is_empty() && triggers.reads.is_empty(), "nothing is left behind");
    }

    fn any_key() -> impl Strategy<Value = ObjectKey> {
        let kinds = vec![Kind::Apply, Kind::CaptCluster, Kind::Secret, Kind::Workspace(WorkspaceApi::Cluster)];
        (prop::sample::select(kinds), 0..3u8, 0..2u8)
            .prop_map(|(kind, name, namespace)| ObjectKey::new(kind, &format!("ns{namespace}"), &format!("n{name}")))
    }

    fn any_relation() -> impl Strategy<Value = Relation> {
        any_key().prop_map(Relation::Waiting)
    }

    fn any_read() -> impl Strategy<Value = Read> {
        prop_oneof![
            any_key().prop_map(Read::Object),
            any_key().prop_map(|key| Read::List(key.kind, key.namespace.clone())),
            any_key().prop_map(|key| Read::List(key.kind, None)),
            any_relation().prop_map(Read::Related),
        ]
    }

    /// By definition: the last reads of each pass, searched one by one.
    fn searched(last: &BTreeMap<ObjectKey, Reads>, key: &ObjectKey, said: &[Relation]) -> BTreeSet<ObjectKey> {
        let about = |read: &Read| match read {
            Read::Object(object) => object == key,
            Read::List(kind, None) => *kind == key.kind,
            Read::List(kind, namespace) => *kind == key.kind && *namespace == key.namespace,
            Read::Related(relation) => said.contains(relation),
        };
        let readers = last.iter().filter(|(_, reads)| reads.iter().any(about)).map(|(object, _)| object.clone());
        readers.chain(pass::KINDS.contains(&key.kind).then(|| key.clone())).collect()
    }

    proptest! {
        #[test]
        fn the_index_answers_as_a_search_would(
            steps in prop::collection::vec((any_key(), prop::option::of(prop::collection::vec(any_read(), 0..4))), 0..24),
            event in any_key(),
            said in prop::collection::vec(any_relation(), 0..3),
        ) {
            let (mut triggers, mut last) = (Triggers::default(), BTreeMap::new());
            for (object, reads) in steps {
                if let Some(reads) = reads.map(Reads::from_iter) {
                    triggers.replace(&object, reads.clone());
                    last.insert(object, reads);
                } else {
                    triggers.forget(&object);
                    last.remove(&object);
                }
            }
            prop_assert_eq!(triggers.concerned(&event, &said), searched(&last, &event, &said));
        }
    }
}
