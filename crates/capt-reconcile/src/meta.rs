//! Metadata of our own objects: preconditions, finalizer edits, owner references.

use std::collections::BTreeMap;

use capt_api::{WorkspaceTemplateApply, names::OWNER_ANNOTATION};
use capt_status::text::{MAX_MESSAGE, truncate};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde_json::{Value, json};

use crate::{
    managed_fields::is_update_of_status,
    object::{Kind, ObjectKey},
    plan::{Action, Event, EventType, Op, Plan, Precondition},
};

/// Collects the actions of a plan and keeps the precondition of the object itself: the first write
/// to it is guarded by what was observed, each further one by what the one before returned.
#[derive(Debug)]
pub struct Writer {
    plan: Plan,
    own: Precondition,
    /// `metadata.managedFields`, where an update of the status is among them.
    managed_fields: Vec<Value>,
}

impl Writer {
    /// A writer for the plan of the object at `key` with `meta`.
    pub fn new(key: ObjectKey, meta: &ObjectMeta) -> Self {
        let entries = meta.managed_fields.as_deref().unwrap_or_default();
        let is_update =
            entries.iter().any(|entry| is_update_of_status(entry.operation.as_deref(), entry.subresource.as_deref()));
        let managed_fields = if is_update { entries.iter().map(|entry| json!(entry)).collect() } else { Vec::new() };
        Self { plan: Plan::nothing(key, ""), own: observed(meta), managed_fields }
    }

    /// `metadata.managedFields` of the object; empty unless there is an update of the status to take over.
    pub fn managed_fields(&self) -> &[Value] {
        &self.managed_fields
    }

    /// Adds a write to another object.
    pub fn other(
        &mut self,
        target: ObjectKey,
        op: Op,
        precondition: Precondition,
        reason: impl Into<String>,
    ) -> &mut Action {
        let index = self.plan.actions.len();
        self.plan.actions.push(Action { op, target, precondition, unless: Vec::new(), reason: reason.into() });
        &mut self.plan.actions[index]
    }

    /// Adds a write to the object itself.
    pub fn own(&mut self, op: Op, reason: impl Into<String>) -> &mut Action {
        let index = self.plan.actions.len();
        let precondition = std::mem::replace(&mut self.own, Precondition::AfterAction(index));
        self.plan.actions.push(Action {
            op,
            target: self.plan.object.clone(),
            precondition,
            unless: Vec::new(),
            reason: reason.into(),
        });
        &mut self.plan.actions[index]
    }

    /// Whether the plan so far writes to `target`.
    pub fn writes_to(&self, target: &ObjectKey) -> bool {
        self.plan.actions.iter().any(|action| action.target == *target)
    }

    /// Index of the last write to `target`, whose result a further write to it is about.
    pub fn last_write_to(&self, target: &ObjectKey) -> Option<usize> {
        self.plan.actions.iter().rposition(|action| action.target == *target)
    }

    /// Adds an event, its text cut to what the API takes.
    pub fn event(&mut self, type_: EventType, reason: &'static str, note: impl AsRef<str>) {
        let note = truncate(note.as_ref(), MAX_MESSAGE);
        self.plan.events.push(Event { type_, reason, note });
    }

    /// Says why there is nothing to write, or what is waited for.
    pub fn note(&mut self, note: impl Into<String>) {
        self.plan.note = note.into();
    }

    /// The plan so far, for everything that is no action.
    pub const fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// The finished plan.
    pub fn finish(self) -> Plan {
        self.plan
    }
}

/// The precondition "exactly the object that was observed".
pub fn observed(meta: &ObjectMeta) -> Precondition {
    Precondition::Observed {
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
    }
}

/// The key of an object of ours.
pub fn key_of<K: Resource<DynamicType = ()>>(kind: Kind, object: &K) -> ObjectKey {
    ObjectKey::new(kind, &object.namespace().unwrap_or_default(), &object.name_any())
}

/// uid, or nothing; the API server sets it on every object.
pub fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// metadata.generation; 0 where it is not set.
pub fn generation<K: Resource>(object: &K) -> i64 {
    object.meta().generation.unwrap_or_default()
}

/// Whether deletionTimestamp is set.
pub fn is_deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Whether `finalizer` is set.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|found| found == finalizer)
}

/// JSON patch operations that add `finalizer`.
pub fn add_finalizer<K: Resource>(object: &K, finalizer: &str) -> Vec<Value> {
    if object.meta().finalizers.is_none() {
        vec![json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})]
    } else {
        vec![json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})]
    }
}

/// JSON patch operations that remove `finalizer`, however often it is there; `None` if it is not set.
pub fn remove_finalizer<K: Resource>(object: &K, finalizer: &str) -> Option<Vec<Value>> {
    // From the end, so that what is removed moves nothing that follows.
    let copies = object.finalizers().iter().enumerate().rev().filter(|(_, found)| *found == finalizer);
    let operations: Vec<Value> = copies
        .flat_map(|(index, _)| {
            let path = format!("/metadata/finalizers/{index}");
            [json!({"op": "test", "path": path, "value": finalizer}), json!({"op": "remove", "path": path})]
        })
        .collect();
    (!operations.is_empty()).then_some(operations)
}

/// JSON patch operations that set annotations, or remove them where the value is `None`; none for what is
/// so already.
pub fn edit_annotations<K: Resource>(object: &K, edits: &[(&str, Option<&str>)]) -> Vec<Value> {
    let stored = object.annotations();
    let changes = edits.iter().filter(|(name, value)| stored.get(*name).map(String::as_str) != *value);
    if object.meta().annotations.is_some() {
        return changes
            .map(|(name, value)| match value {
                Some(value) => json!({"op": "add", "path": annotation_path(name), "value": value}),
                None => json!({"op": "remove", "path": annotation_path(name)}),
            })
            .collect();
    }
    let map: serde_json::Map<String, Value> =
        changes.filter_map(|(name, value)| Some(((*name).to_owned(), json!((*value)?)))).collect();
    if map.is_empty() {
        return Vec::new();
    }
    vec![json!({"op": "add", "path": "/metadata/annotations", "value": map})]
}

/// RFC 6901: `~` and `/` are escaped in a path.
fn annotation_path(name: &str) -> String {
    format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A controller owner reference to an object of ours.
pub fn controller_reference<K: Resource<DynamicType = ()>>(kind: Kind, owner: &K) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "name": owner.name_any(),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Whether `child` has an owner reference to `owner`: by uid, or by kind and name where a move or a
/// restore changed the uid. [`Counts::OwnedBy`](crate::plan::Counts::OwnedBy) is the same rule.
pub fn is_owned_by<C: Resource, O: Resource<DynamicType = ()>>(child: &C, kind: Kind, owner: &O) -> bool {
    let (uid, name) = (uid(owner), owner.name_any());
    child.owner_references().iter().any(|reference| {
        is_reference_to(kind, &name, uid, (&reference.api_version, &reference.kind, &reference.name, &reference.uid))
    })
}

/// The value of [`OWNER_ANNOTATION`] for the apply of the object `name` of `kind`.
pub fn maker(kind: Kind, name: &str) -> String {
    format!("{}/{name}", kind.name())
}

/// Kind and name of the provider object that made an apply which has lost all its owners, as it says itself.
pub fn made_by(apply: &WorkspaceTemplateApply) -> Option<(Kind, &str)> {
    said_maker(apply.owner_references().len(), apply.annotations())
}

/// [`made_by()`] of an apply with so many owners and these annotations.
pub fn said_maker(owners: usize, annotations: &BTreeMap<String, String>) -> Option<(Kind, &str)> {
    if owners > 0 {
        return None;
    }
    let (kind, name) = annotations.get(OWNER_ANNOTATION)?.split_once('/')?;
    let kind = [Kind::CaptCluster, Kind::CaptControlPlane].into_iter().find(|known| known.name() == kind)?;
    Some((kind, name))
}

/// Group of an `apiVersion`; empty for the core group.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether an owner reference, given as apiVersion, kind, name and uid, is one to the object of `kind`
/// with this name and uid.
pub fn is_reference_to(kind: Kind, name: &str, uid: &str, reference: (&str, &str, &str, &str)) -> bool {
    let (api_version, found_kind, found_name, found_uid) = reference;
    found_uid == uid || found_kind == kind.name() && found_name == name && group(api_version) == kind.group()
}

/// Name of the owner Cluster: the owner reference with kind Cluster of Cluster API's group, in
/// whatever version, and never by equal names.
pub fn owner_cluster_name<K: Resource>(object: &K) -> Option<&str> {
    object
        .owner_references()
        .iter()
        .find(|reference| {
            reference.kind == Kind::Cluster.name() && group(&reference.api_version) == Kind::Cluster.group()
        })
        .map(|reference| reference.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_write_to_an_object_is_about_what_the_one_before_left() {
        let key = |name: &str| ObjectKey::new(Kind::Apply, "ns", name);
        let meta =
            ObjectMeta { uid: Some("u".to_owned()), resource_version: Some("7".to_owned()), ..ObjectMeta::default() };
        let mut writer = Writer::new(key("own"), &meta);
        let patch = || Op::MergePatch { body: json!({}) };
        writer.own(patch(), "first");
        writer.other(key("child"), patch(), Precondition::Uid("c".to_owned()), "");
        assert_eq!(writer.last_write_to(&key("child")), Some(1));
        writer.own(patch(), "second");
        writer.other(key("child"), patch(), Precondition::AfterAction(1), "");
        assert_eq!(writer.last_write_to(&key("child")), Some(3), "not the first one, whose result is old");
        assert_eq!(writer.last_write_to(&key("other")), None);
        writer.own(patch(), "third");
        let plan = writer.finish();
        let own = plan.actions.iter().filter(|action| action.target == plan.object);
        let preconditions: Vec<Precondition> = own.map(|action| action.precondition.clone()).collect();
        let first = Precondition::Observed { uid: "u".to_owned(), resource_version: "7".to_owned() };
        assert_eq!(preconditions, [first, Precondition::AfterAction(0), Precondition::AfterAction(2)]);
    }
}
