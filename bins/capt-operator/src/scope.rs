//! Which objects this process has passes for: namespaces, a label and a share of the rest.
//!
//! Whose an object is follows from the object and its owners alone, so that of several operators with
//! scopes that share everything exactly one takes care of it. Being out of scope is no reason for
//! anything: nobody here may conclude from it that an object is absent.

use std::{collections::BTreeSet, fmt, str::FromStr};

use capt_api::{
    foreign::{OwnerView, ViewMeta},
    names::WATCH_FILTER_LABEL,
};
use capt_reconcile::{
    object::{Kind, Object, ObjectKey},
    world::{View, World},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

/// One of several equal shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    index: u64,
    /// Of how many.
    count: u64,
}

impl Shard {
    /// Name of a lease of its own, beside `name` of the whole.
    pub fn lease_name(&self, name: &str) -> String {
        format!("{name}-{}-of-{}", self.index, self.count)
    }

    /// Whether what has this uid is in the share. The same in every process and version.
    pub fn holds(&self, uid: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(uid.as_bytes()).into();
        let number = digest.iter().take(8).fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
        number % self.count == self.index
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if index < count => Ok(Self { index, count }),
            Some(_) => Err("the first number must be less than the second: shards count from 0".to_owned()),
            None => Err("write it as INDEX/COUNT, as in 0/3".to_owned()),
        }
    }
}

/// Which objects have passes here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only in these namespaces; empty for all.
    pub namespaces: BTreeSet<String>,
    /// Only with this value of [`WATCH_FILTER_LABEL`], on the object or, where it has none, on its nearest owner
    /// that has one.
    pub filter: Option<String>,
    /// Only this share.
    pub shard: Option<Shard>,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespaces, filter, shard } = self;
        let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
        f.write_str(if names.is_empty() { "all namespaces" } else { "namespaces " })?;
        f.write_str(&names.join(","))?;
        if let Some(filter) = filter {
            write!(f, ", {WATCH_FILTER_LABEL}={filter}")?;
        }
        shard.map_or(Ok(()), |shard| write!(f, ", shard {shard}"))
    }
}

/// Kinds of which an operator of some namespaces sees only these namespaces. The others it reads everywhere: a
/// Workspace may be claimed by an apply of any namespace, and not to know that apply could mean to take or
/// destroy what is somebody else's.
const LIMITED: [Kind; 4] = [Kind::Cluster, Kind::CaptCluster, Kind::CaptControlPlane, Kind::Secret];

impl Scope {
    /// Where objects of `kind` are watched; absent for everywhere.
    pub fn places(&self, kind: Kind) -> Vec<Option<String>> {
        if self.namespaces.is_empty() || !LIMITED.contains(&kind) {
            vec![None]
        } else {
            self.namespaces.iter().cloned().map(Some).collect()
        }
    }

    /// Says in `world` what is not watched.
    pub fn limit(&self, world: &mut World) {
        if !self.namespaces.is_empty() {
            for kind in LIMITED {
                world.limit(kind, self.namespaces.clone());
            }
        }
    }

    /// Whether this operator is the one that tells of Workspaces whose apply is gone: nobody's label or uid says
    /// whose they are.
    pub fn tells_orphans(&self) -> bool {
        let Self { namespaces, filter, shard } = self;
        namespaces.is_empty() && filter.is_none() && shard.is_none_or(|shard| shard.index == 0)
    }

    /// Whether the object at `key` has passes here. One that is not known has one, which finds that out.
    pub fn holds(&self, view: &View<'_>, key: &ObjectKey) -> bool {
        let Self { namespaces, filter, shard } = self;
        if !namespaces.is_empty() && key.namespace.as_ref().is_none_or(|it| !namespaces.contains(it)) {
            return false;
        }
        if filter.is_none() && shard.is_none() {
            return true;
        }
        let Some(lineage) = Lineage::of(view, key) else { return true };
        filter.as_ref().is_none_or(|filter| lineage.label.as_ref() == Some(filter))
            && shard.is_none_or(|shard| shard.holds(&lineage.root))
    }
}

/// What an object has from its owners.
#[derive(Debug, PartialEq, Eq)]
struct Lineage {
    /// The nearest label.
    label: Option<String>,
    /// uid of the Cluster, or of the last owner that is known.
    root: String,
}

impl Lineage {
    /// `None` if there is no such object. What is looked at counts as read.
    fn of(view: &View<'_>, key: &ObjectKey) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut next = Some(key.clone());
        while let Some(key) = next.take() {
            view.read(&key);
            let Some(meta) = view.peek(&key).map(Meta::of) else { break };
            let owner = meta.owner(key.kind);
            // The reference tells the uid also where the owner is not there (any more).
            let root = owner.as_ref().map_or_else(|| meta.uid.to_owned(), |owner| owner.uid.clone());
            let label = found.and_then(|found| found.label).or_else(|| meta.label.map(str::to_owned));
            next = owner
                .and_then(|owner| Kind::find(owner.group(), &owner.kind).map(|kind| (kind, owner.name)))
                .map(|(kind, name)| ObjectKey::new(kind, key.namespace.as_deref().unwrap_or_default(), &name));
            found = Some(Self { label, root });
        }
        found
    }
}

/// Metadata, whatever form the object has.
struct Meta<'a> {
    uid: &'a str,
    label: Option<&'a str>,
    owners: Vec<OwnerView>,
}

impl<'a> Meta<'a> {
    fn of(object: &'a Object) -> Self {
        match object {
            Object::CaptCluster(object) => Self::of_ours(&object.metadata),
            Object::ControlPlane(object) => Self::of_ours(&object.metadata),
            Object::Apply(object) => Self::of_ours(&object.metadata),
            Object::Template(object) => Self::of_ours(&object.metadata),
            Object::Cluster(object) => Self::of_view(&object.meta),
            Object::Workspace(object) => Self::of_view(&object.meta),
            Object::Secret(object) => Self::of_view(&object.meta),
            Object::Malformed(object) => Self::of_view(&object.meta),
        }
    }

    fn of_ours(meta: &'a ObjectMeta) -> Self {
        let owners = meta.owner_references.iter().flatten().map(|owner| OwnerView {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            controller: owner.controller == Some(true),
        });
        Self {
            uid: meta.uid.as_deref().unwrap_or_default(),
            label: meta.labels.as_ref().and_then(|labels| labels.get(WATCH_FILTER_LABEL)).map(String::as_str),
            owners: owners.collect(),
        }
    }

    fn of_view(meta: &'a ViewMeta) -> Self {
        Self {
            uid: &meta.uid,
            label: meta.labels.get(WATCH_FILTER_LABEL).map(String::as_str),
            owners: meta.owner_references.clone(),
        }
    }

    /// The owner on the way to the Cluster: of an apply its provider object, of that the Cluster. Core's reference
    /// does not say that it is the controller.
    fn owner(&self, kind: Kind) -> Option<OwnerView> {
        let owners: &[Kind] = match kind {
            Kind::Apply => &[Kind::CaptCluster, Kind::CaptControlPlane],
            Kind::CaptCluster | Kind::CaptControlPlane => &[Kind::Cluster],
            Kind::Cluster | Kind::Template | Kind::Workspace(_) | Kind::Secret => &[],
        };
        let is_one = |owner: &&OwnerView| Kind::find(owner.group(), &owner.kind).is_some_and(|it| owners.contains(&it));
        self.owners.iter().find(is_one).cloned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::keep;

    fn put(world: &mut World, kind: Kind, namespace: &str, name: &str, metadata: &Value) -> ObjectKey {
        let spec = match kind {
            Kind::Apply => json!({"templateRef": {"name": "t"}}),
            _ => json!({"region": "eu-west-1"}),
        };
        let mut value = json!({"metadata": metadata, "spec": spec});
        value["apiVersion"] = json!(kind.api_version());
        value["kind"] = json!(kind.name());
        value["metadata"]["name"] = json!(name);
        value["metadata"]["namespace"] = json!(namespace);
        let kept = keep::from_value(kind, value);
        world.watched(kept.key.clone(), 1, kept.object);
        kept.key
    }

    fn owned_by(kind: Kind, name: &str, uid: &str) -> Value {
        json!([{"apiVersion": kind.api_version(), "kind": kind.name(), "name": name, "uid": uid}])
    }

    /// A Cluster with its two provider objects and an apply of each.
    fn family(world: &mut World, name: &str) -> [ObjectKey; 5] {
        let uid = |kind: &str| format!("{kind}-{name}");
        let cluster = put(world, Kind::Cluster, "ns", name, &json!({"uid": uid("cluster")}));
        let mut keys = vec![cluster];
        for (kind, short) in [(Kind::CaptCluster, "infra"), (Kind::CaptControlPlane, "plane")] {
            let owners = owned_by(Kind::Cluster, name, &uid("cluster"));
            keys.push(put(world, kind, "ns", name, &json!({"uid": uid(short), "ownerReferences": owners})));
            let owners = owned_by(kind, name, &uid(short));
            let apply = format!("{name}-{short}");
            keys.push(put(world, Kind::Apply, "ns", &apply, &json!({"uid": uid(&apply), "ownerReferences": owners})));
        }
        keys.try_into().unwrap()
    }

    fn held<const N: usize>(scope: &Scope, world: &World, keys: &[ObjectKey; N]) -> [bool; N] {
        keys.each_ref().map(|key| scope.holds(&View::new(world), key))
    }

    proptest! {
        #[test]
        fn everything_of_a_cluster_is_in_one_shard_and_in_no_other(name in "[a-z]{1,8}", count in 1u64..7) {
            let mut world = World::default();
            let keys = family(&mut world, &name);
            let mut holders = 0;
            for index in 0..count {
                let scope = Scope { shard: Some(format!("{index}/{count}").parse().unwrap()), ..Scope::default() };
                let [cluster, rest @ ..] = held(&scope, &world, &keys);
                prop_assert!(rest.iter().all(|held| *held == cluster), "{}: {:?}", scope, rest);
                holders += usize::from(cluster);
            }
            prop_assert_eq!(holders, 1);
        }
    }

    #[test]
    fn shards_are_about_equal_and_written_from_zero() {
        let shards: Vec<Shard> = ["0/3", "1/3", "2/3"].into_iter().map(|text| text.parse().unwrap()).collect();
        let counts = shards.iter().map(|shard| (0..3_000).filter(|n| shard.holds(&format!("uid-{n}"))).count());
        assert!(counts.clone().all(|count| (900..1_100).contains(&count)), "{:?}", counts.collect::<Vec<_>>());
        assert_eq!(shards[1].lease_name("capt-operator"), "capt-operator-1-of-3");
        for wrong in ["3/3", "1", "a/b", "0/0", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_does_not_move_between_versions() {
        let shard: Shard = "0/2".parse().unwrap();
        let held: String = "abcdefghijkl".chars().filter(|uid| shard.holds(&uid.to_string())).collect();
        // As `printf a | sha256sum` says: the eighth byte is even.
        assert_eq!(held, "abcefikl");
    }

    #[test]
    fn the_nearest_label_decides() {
        let mut world = World::default();
        let [cluster, infra, _, plane, _] = family(&mut world, "c");
        let applies = ["c-infra", "c-plane"].map(|name| ObjectKey::new(Kind::Apply, "ns", name));
        let blue = Scope { filter: Some("blue".to_owned()), ..Scope::default() };
        let keys = [cluster, infra, plane, applies[0].clone(), applies[1].clone()];
        assert_eq!(held(&blue, &world, &keys), [false; 5], "nobody is labelled");
        let label = |value: &str| json!({WATCH_FILTER_LABEL: value});
        let world = relabelled(world, &keys[0], &label("blue"));
        assert_eq!(held(&blue, &world, &keys), [true; 5], "a Cluster's label is enough");
        let world = relabelled(world, &keys[2], &label("green"));
        assert_eq!(held(&blue, &world, &keys), [true, true, false, true, false], "and what is nearer goes before it");
        let green = Scope { filter: Some("green".to_owned()), ..Scope::default() };
        assert_eq!(held(&green, &world, &keys), [false, false, true, false, true], "so that exactly one has it");
    }

    /// `world` with other labels on one object.
    fn relabelled(mut world: World, key: &ObjectKey, labels: &Value) -> World {
        let meta = world.peek(key).map(Meta::of).unwrap();
        let owners: Vec<Value> = meta
            .owners
            .iter()
            .map(|owner| {
                json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid})
            })
            .collect();
        let metadata = json!({"uid": meta.uid, "ownerReferences": owners, "labels": labels});
        world.deleted(key, 0);
        put(&mut world, key.kind, "ns", &key.name, &metadata);
        world
    }

    #[test]
    fn namespaces_limit_passes_and_what_is_known_but_not_whose_a_workspace_is() {
        let scope = Scope { namespaces: BTreeSet::from(["b".to_owned()]), ..Scope::default() };
        let mut world = World::default();
        scope.limit(&mut world);
        let a = put(&mut world, Kind::Apply, "a", "x", &json!({"uid": "1"}));
        let b = put(&mut world, Kind::Apply, "b", "x", &json!({"uid": "2"}));
        assert_eq!(
            held(&scope, &world, &[a.clone(), b, ObjectKey::new(Kind::CaptCluster, "b", "unknown")]),
            [false, true, true]
        );
        assert!(world.covers(&a) && !world.covers(&ObjectKey::new(Kind::Secret, "a", "s")));
        assert_eq!(scope.places(Kind::Secret), [Some("b".to_owned())]);
        assert_eq!(scope.places(Kind::Apply), [None], "any of them may claim a Workspace");
        assert!(!scope.tells_orphans() && Scope::default().tells_orphans());
    }

    #[test]
    fn a_scope_says_what_it_is() {
        let scope = Scope {
            namespaces: BTreeSet::from(["b".to_owned(), "a".to_owned()]),
            filter: Some("blue".to_owned()),
            shard: Some("1/2".parse().unwrap()),
        };
        assert_eq!(scope.to_string(), "namespaces a,b, cluster.x-k8s.io/watch-filter=blue, shard 1/2");
        assert_eq!(Scope::default().to_string(), "all namespaces");
    }
}
