//! What the provider writes to a Workspace at each stage: annotations, conditions and outputs.

use capt_reconcile::object::ObjectKey;
use serde_json::{Value, json};

use super::{FAILED, FINALIZER, Outputs, PENDING, SUCCEEDED, has, secrets};
use crate::objects::Objects;

/// A condition to be told.
pub(super) struct Told {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Told {
    pub(super) fn new(type_: &'static str, status: &'static str, reason: &'static str) -> Self {
        Self { type_, status, reason, message: String::new() }
    }

    pub(super) fn error(message: String) -> Self {
        Self { message, ..Self::new("Synced", "False", "ReconcileError") }
    }
}

/// Writes conditions; others stay. As in the real one a condition is replaced when anything of it differs,
/// and Ready=True carries no observedGeneration.
pub(super) fn tell(objects: &mut impl Objects, key: &ObjectKey, told: &[Told]) {
    tell_with(objects, key, told, None);
}

/// The same, and in the same write what is known of the resource, if there is news of it.
fn tell_with(objects: &mut impl Objects, key: &ObjectKey, told: &[Told], at_provider: Option<Value>) {
    let now = objects.now();
    objects.edit(key, |workspace| {
        let generation = workspace["metadata"]["generation"].clone();
        let mut conditions = workspace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for Told { type_, status, reason, message } in told {
            let mut condition = json!({"type": type_, "status": status, "reason": reason});
            if !message.is_empty() {
                condition["message"] = json!(message);
            }
            if (*type_, *status) != ("Ready", "True") {
                condition["observedGeneration"] = generation.clone();
            }
            let before = conditions.iter().position(|before| before["type"] == *type_);
            let mut same = before.and_then(|index| conditions.get(index)).cloned().unwrap_or_default();
            let since = same.as_object_mut().and_then(|fields| fields.remove("lastTransitionTime"));
            condition["lastTransitionTime"] = match since {
                Some(since) if same == condition => since,
                Some(_) | None => json!(now),
            };
            match before {
                Some(index) => conditions[index] = condition,
                None => conditions.push(condition),
            }
        }
        workspace["status"]["conditions"] = json!(conditions);
        let shown = &mut workspace["status"]["atProvider"];
        if let Some(at_provider) = at_provider {
            *shown = at_provider;
        } else if shown.is_null() {
            *shown = json!({});
        }
    });
}

/// The first apply begins: finalizer, the mark of a creation, and an empty Secret.
pub(super) fn begun(objects: &mut impl Objects, key: &ObjectKey, workspace: &Value) {
    let now = json!(objects.now());
    objects.edit(key, |workspace| {
        workspace["metadata"]["finalizers"] = json!([FINALIZER]);
        workspace["metadata"]["annotations"][PENDING] = now;
    });
    secrets::publish(objects, key, workspace, &Outputs::default());
}

/// The first apply is over; what it made is not looked at yet.
pub(super) fn succeeded(objects: &mut impl Objects, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    secrets::publish(objects, key, workspace, outputs);
    let now = json!(objects.now());
    objects.edit(key, |workspace| workspace["metadata"]["annotations"][SUCCEEDED] = now);
    let told = [Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Creating")];
    tell_with(objects, key, &told, Some(json!({})));
}

/// Everything is as wanted and was looked at.
pub(super) fn observed_fully(objects: &mut impl Objects, key: &ObjectKey, workspace: &Value, outputs: &Outputs) {
    if outputs.is_empty() {
        // Without resources and outputs it does not exist for the provider, for ever.
        let told = [Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "False", "Creating")];
        return tell(objects, key, &told);
    }
    secrets::publish(objects, key, workspace, outputs);
    let told = [Told::new("Synced", "True", "ReconcileSuccess"), Told::new("Ready", "True", "Available")];
    tell_with(objects, key, &told, Some(json!({"checksum": "0", "outputs": outputs.plain})));
}

/// A Workspace that is only looked at and differs from what is wanted: Ready is never set.
pub(super) fn only_observed(objects: &mut impl Objects, key: &ObjectKey, outputs: &Outputs) {
    let shown = json!({"checksum": "0", "outputs": outputs.plain});
    tell_with(objects, key, &[Told::new("Synced", "True", "ReconcileSuccess")], Some(shown));
}

/// What a failed run leaves: the text in Synced, and Ready as it was or, before the first success, False.
pub(super) fn failed(
    objects: &mut impl Objects,
    key: &ObjectKey,
    workspace: &Value,
    outputs: &Outputs,
    stderr: &str,
    made: bool,
) {
    let failed_before = has(workspace, FAILED);
    // What the first try has made is found by the second one, whose apply is an update.
    let left = !made && failed_before && !outputs.leaves.is_empty();
    let stage = if made || left { "update" } else { "create" };
    let message = format!("{stage} failed: cannot apply Terraform configuration: {}", encountered(stderr));
    if !failed_before && !made {
        let now = json!(objects.now());
        objects.edit(key, |workspace| workspace["metadata"]["annotations"][FAILED] = now);
    }
    let partial = left.then(|| {
        let partial = Outputs { plain: outputs.leaves.clone(), ..Outputs::default() };
        secrets::publish(objects, key, workspace, &partial);
        json!({"checksum": "0", "outputs": outputs.leaves})
    });
    let mut told = vec![Told::error(message)];
    if condition(&workspace["status"], "Ready").is_none() {
        told.push(Told::new("Ready", "False", "Creating"));
    }
    tell_with(objects, key, &told, partial);
}

/// What a failed destroy leaves; from the second try on the state that it reads shows no outputs.
pub(super) fn undestroyed(objects: &mut impl Objects, key: &ObjectKey, stderr: &str, again: bool) {
    let message = format!("delete failed: cannot destroy Terraform configuration: {}", encountered(stderr));
    let told = [Told::error(message), Told::new("Ready", "False", "Deleting")];
    tell_with(objects, key, &told, again.then(|| json!({})));
}

/// The words around what Terraform wrote.
pub(super) fn encountered(stderr: &str) -> String {
    format!("Terraform encountered an error. Summary: {stderr}")
}

pub(super) fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}
