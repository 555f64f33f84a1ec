//! What the pass of a Cluster writes: in contract mode nothing but one repair, in standalone mode what core would.
//!
//! Order of writes: owner references of the provider objects, the Cluster's endpoint, its status last. The status
//! is a merge patch of the fields that differ and not a server-side apply: core and users write the object in
//! two API versions, and what nobody reports any more has to go whoever set it.

use capt_api::{
    foreign::{ClusterVersion, ClusterView, OwnerView},
    names::{CLUSTER_GROUP, CLUSTER_NAME_LABEL, CLUSTER_STATUS_MANAGER, PAUSED_ANNOTATION},
};
use capt_status::Time;
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde_json::{Map, Value, json};

use super::{
    formula::{self, Input, Provider},
    mode::{self, Mode},
    observe::{Observed, Referenced},
};
use crate::{
    meta::{self, Writer},
    object::{Kind, ObjectKey},
    plan::{Event, EventType, Op, Plan},
    reasons,
    world::Seen,
};

/// What to write for a Cluster.
pub fn plan(observed: &Observed, now: Time) -> Plan {
    let cluster = observed.cluster.as_ref();
    let key = ObjectKey::of_view(Kind::Cluster, &cluster.meta);
    if let Some(why) = not_ours(observed) {
        return Plan::nothing(key, why);
    }
    let settings = observed.settings;
    match mode::decide(settings.cluster_status, settings.cluster_crd, observed.core_seen, cluster, now) {
        Mode::Contract(why) => contract(observed, key, why),
        Mode::Undecided(at) => {
            let note = format!("contract until {at}: Cluster API core may still take the Cluster");
            let mut plan = contract(observed, key, "Cluster API core may still take the Cluster");
            plan.note = note;
            plan.next = Some(at);
            plan
        }
        Mode::Standalone(why) => standalone(observed, key, why, now),
    }
}

/// Why the Cluster is none of our business, if it is not.
fn not_ours(observed: &Observed) -> Option<String> {
    match (&observed.infrastructure, &observed.control_plane) {
        (Referenced::Foreign(kind), _) | (_, Referenced::Foreign(kind)) => {
            Some(format!("left alone: it refers to a {kind}, which is not ours"))
        }
        (Referenced::None, Referenced::None) => Some("left alone: it refers to no object of ours".to_owned()),
        (Referenced::None | Referenced::NotRead | Referenced::Ours(..), _) => None,
    }
}

/// Beside core: nothing that core owns, but for what core never repairs.
fn contract(observed: &Observed, key: ObjectKey, why: &str) -> Plan {
    let mut writer = writer(observed, key);
    if formula::paused(&observed.cluster).is_none() && !observed.cluster.meta.deleting {
        clear_failure(observed, &mut writer);
    }
    writer.note(format!("contract: {why}, so it publishes the status"));
    writer.finish()
}

/// A failure text that core copied from an object of ours and never clears. Where both versions are served it has
/// no effect on anything.
fn clear_failure(observed: &Observed, writer: &mut Writer) {
    let cluster = observed.cluster.as_ref();
    let Some(text) = &cluster.failure_message else { return };
    let Some(input) = input(observed).filter(|_| cluster.version == ClusterVersion::V1Beta1) else { return };
    // Only what is known to be there can be known to report nothing.
    let all_there =
        !matches!(input.infrastructure, Provider::Missing) && !matches!(input.control_plane, Provider::Missing);
    let copied = [input.infrastructure_prefix(), input.control_plane_prefix()];
    if all_there && input.failure() == (None, None) && copied.iter().any(|prefix| text.starts_with(prefix)) {
        let status = json!({"failureReason": null, "failureMessage": null});
        writer.own(
            Op::MergeStatus { manager: CLUSTER_STATUS_MANAGER, status },
            "a failure that core copied from us and that nobody reports any more",
        );
    }
}

/// Without core: what core would write.
fn standalone(observed: &Observed, key: ObjectKey, why: &str, now: Time) -> Plan {
    let cluster = observed.cluster.as_ref();
    let Some(input) = input(observed) else {
        return Plan::nothing(key, "standalone: a provider object is not known yet");
    };
    let mut writer = writer(observed, key);
    let stored: Value = match cluster.status.as_str() {
        "" => Value::Null,
        text => match serde_json::from_str(text) {
            Ok(status) => status,
            Err(error) => {
                writer.note(format!("standalone: {}", formula::Error::from(error)));
                return writer.finish();
            }
        },
    };
    let wanted = if let Some(paused) = formula::paused(cluster) {
        input.paused_status(&stored, &paused, now)
    } else {
        if !cluster.meta.deleting {
            adopt(&mut writer, cluster, &observed.infrastructure);
            adopt(&mut writer, cluster, &observed.control_plane);
        }
        if let Some(endpoint) = input.endpoint() {
            let body = json!({"spec": {"controlPlaneEndpoint": endpoint}});
            writer.own(Op::MergePatch { body }, "the control plane serves here");
        }
        input.status(&stored, now)
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => {
            writer.note(format!("standalone: {error}"));
            return writer.finish();
        }
    };
    writer.note(format!("standalone: {why}, so the status is published here"));
    if let Some(status) = difference(&stored, &wanted) {
        announce(&mut writer, cluster, &stored, &wanted, why);
        let fields = status.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let reason = format!("in the place of Cluster API core: {}", fields.join(", "));
        writer.own(Op::MergeStatus { manager: CLUSTER_STATUS_MANAGER, status }, reason);
    }
    writer.finish()
}

/// Events on transitions: that we take over, and each new phase, as core tells it.
fn announce(writer: &mut Writer, cluster: &ClusterView, stored: &Value, wanted: &Value, why: &str) {
    let events = &mut writer.plan().events;
    if stored["phase"].is_null() {
        let note = format!("status of Cluster {} is published by CAPT: {why}", cluster.meta.name);
        events.push(Event { type_: EventType::Normal, reason: reasons::CLUSTER_STATUS_STANDALONE, note });
    }
    if stored["phase"] != wanted["phase"]
        && let Some(reason) = wanted["phase"].as_str().and_then(phase_reason)
    {
        let note = format!("Cluster {} is {reason}", cluster.meta.name);
        events.push(Event { type_: EventType::Normal, reason, note });
    }
}

fn phase_reason(phase: &str) -> Option<&'static str> {
    ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed"].into_iter().find(|known| *known == phase)
}

/// Owner reference and label, as core sets them on what a Cluster refers to. An object of another Cluster, one that
/// is paused and one that is being deleted are left alone.
fn adopt<T: Resource<DynamicType = ()>>(writer: &mut Writer, cluster: &ClusterView, referenced: &Referenced<T>) {
    let (Referenced::Ours(key, _), Some(object)) = (referenced, referenced.present()) else { return };
    let other = meta::owner_cluster_name(object).filter(|name| *name != cluster.meta.name);
    let paused = object.annotations().contains_key(PAUSED_ANNOTATION);
    if other.is_some() || paused || meta::is_deleting(object) {
        return;
    }
    let owners = owner_references(object.meta(), cluster);
    let is_labelled = object.labels().get(CLUSTER_NAME_LABEL) == Some(&cluster.meta.name);
    if owners.is_none() && is_labelled {
        return;
    }
    let mut metadata = json!({"labels": {CLUSTER_NAME_LABEL: cluster.meta.name}});
    if let Some(owners) = owners {
        metadata["ownerReferences"] = owners;
    }
    let precondition = meta::observed(object.meta());
    let reason = format!("belongs to Cluster {}, in the place of Cluster API core", cluster.meta.name);
    writer.other(key.clone(), Op::MergePatch { body: json!({"metadata": metadata}) }, precondition, reason);
}

/// The owner references with one to `cluster`, unless it is there; all others stay.
fn owner_references(metadata: &ObjectMeta, cluster: &ClusterView) -> Option<Value> {
    let mut references = metadata.owner_references.clone().unwrap_or_default();
    let is_cluster = |api_version: &str, kind: &str| {
        let owner = OwnerView { api_version: api_version.to_owned(), ..OwnerView::default() };
        kind == Kind::Cluster.name() && owner.group() == CLUSTER_GROUP
    };
    if references.iter().any(|found| is_cluster(&found.api_version, &found.kind) && found.uid == cluster.meta.uid) {
        return None;
    }
    // A Cluster of the same name that was made again has another uid.
    references.retain(|found| !(is_cluster(&found.api_version, &found.kind) && found.name == cluster.meta.name));
    let mut references = json!(references);
    if let Some(list) = references.as_array_mut() {
        list.push(json!({
            "apiVersion": format!("{CLUSTER_GROUP}/{}", cluster.version.as_str()),
            "kind": Kind::Cluster.name(),
            "name": cluster.meta.name,
            "uid": cluster.meta.uid,
        }));
    }
    Some(references)
}

/// What core reads; `None` if it is not known.
fn input(observed: &Observed) -> Option<Input<'_>> {
    Some(Input {
        cluster: &observed.cluster,
        infrastructure: provider(&observed.infrastructure)?,
        control_plane: provider(&observed.control_plane)?,
    })
}

fn provider<T>(referenced: &Referenced<T>) -> Option<Provider<'_, T>> {
    match referenced {
        Referenced::None => Some(Provider::Unreferenced),
        Referenced::Ours(_, Seen::Present(object)) => Some(Provider::There(object)),
        Referenced::Ours(_, Seen::Absent { live: _ }) => Some(Provider::Missing),
        Referenced::Ours(_, Seen::Unknown) | Referenced::Foreign(_) | Referenced::NotRead => None,
    }
}

fn writer(observed: &Observed, key: ObjectKey) -> Writer {
    let cluster = &observed.cluster.meta;
    let metadata = ObjectMeta {
        uid: Some(cluster.uid.clone()),
        resource_version: Some(cluster.resource_version.clone()),
        ..ObjectMeta::default()
    };
    Writer::new(key, &metadata)
}

/// The merge patch that turns `from` into `to`; `None` if they are equal.
fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else { return Some(to.clone()) };
    let mut patch: Map<String, Value> =
        from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        if let Some(difference) = difference(from.get(name).unwrap_or(&Value::Null), value) {
            patch.insert(name.clone(), difference);
        }
    }
    Some(Value::Object(patch))
}
