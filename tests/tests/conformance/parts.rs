//! What bodies are made of: for each kind, fields as users write them and fields as they should not.

use capt_sim::scenario::chances::Dice;
use serde_json::{Value, json};

/// A kind that requests are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cluster,
    Apply,
    Secret,
    ConfigMap,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Cluster, Self::Apply, Self::Secret, Self::ConfigMap];

    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::Cluster | Self::Apply => "infrastructure.cluster.x-k8s.io/v1beta1",
            Self::Secret | Self::ConfigMap => "v1",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "CAPTCluster",
            Self::Apply => "WorkspaceTemplateApply",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// Path of the collection in `namespace`.
    pub(crate) fn path(self, namespace: &str) -> String {
        let (prefix, plural) = match self {
            Self::Cluster => ("apis", "captclusters"),
            Self::Apply => ("apis", "workspacetemplateapplies"),
            Self::Secret => ("api", "secrets"),
            Self::ConfigMap => ("api", "configmaps"),
        };
        format!("/{prefix}/{}/namespaces/{namespace}/{plural}", self.api_version())
    }

    pub(crate) const fn has_status(self) -> bool {
        match self {
            Self::Cluster | Self::Apply => true,
            Self::Secret | Self::ConfigMap => false,
        }
    }
}

fn one(dice: &mut Dice, values: &Value) -> Value {
    let values = values.as_array().unwrap();
    values[dice.below(values.len())].clone()
}

/// Some of `fields`, each with one of its values.
fn some(dice: &mut Dice, fields: &[(&str, Value)], most: usize) -> Value {
    let mut object = json!({});
    for _ in 0..=dice.below(most) {
        let (name, values) = &fields[dice.below(fields.len())];
        object[*name] = one(dice, values);
    }
    object
}

/// Fields of the spec, or of the object itself where the kind has no spec.
pub(crate) fn content(dice: &mut Dice, kind: Kind) -> Value {
    match kind {
        Kind::Cluster => json!({"spec": some(dice, &[
            ("region", json!(["eu-west-1", "eu-west-1", "us-east-1", "", 5, null])),
            ("vpcTemplateRef", json!([{"name": "vpc"}, {"name": "vpc", "namespace": "x"}, {}, {"name": 1}, null])),
            ("existingVpcId", json!(["vpc-1", "vpc-2", "no", null])),
            ("retainVpcOnDelete", json!([true, false, "yes"])),
            ("timeouts", json!([{"vpcReadyTimeout": 5}, {"vpcReadyTimeout": 0}, {"vpcReadyTimeout": "x"}, {}, null])),
            ("workspaceTemplateApplyName", json!(["x", "y", "n".repeat(300)])),
            ("recoveryStrategy", json!([{"maxRetries": 3}, {"maxRetries": -1}, {"surprise": 1}])),
            ("surprise", json!([{"a": 1}, null])),
        ], 3)}),
        Kind::Apply => json!({"spec": some(dice, &[
            ("templateRef", json!([{"name": "t"}, {"name": "t"}, {"name": "u", "namespace": "x"}, {}, "t"])),
            ("variables", json!([{"a": "1"}, {"a": null, "b": "2"}, {"b": 2}, {}, null])),
            ("waitForWorkspaces", json!([[{"name": "w"}], [{"name": "w"}, {"name": "w"}], [{"name": "a"}], [], [{}]])),
            ("waitForSecrets", json!([[{"name": "s", "namespace": "n"}], [{"name": "s"}], []])),
            ("writeConnectionSecretToRef", json!([{"name": "s", "namespace": "n"}, {"name": "s"}, null])),
            ("retainWorkspaceOnDelete", json!([true, false, null, 1])),
            ("surprise", json!([1])),
        ], 3)}),
        Kind::Secret => some(
            dice,
            &[
                ("data", json!([{"a": "MQ=="}, {"a": "MQ==", "b": "Mg=="}, {"b": "Mw=="}, {}])),
                ("type", json!(["Opaque", "example.com/other"])),
            ],
            2,
        ),
        Kind::ConfigMap => some(dice, &[("data", json!([{"a": "1"}, {"a": "1", "b": "2"}, {"b": "3"}, {}]))], 1),
    }
}

pub(crate) fn status(dice: &mut Dice, kind: Kind) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = json!([
        [condition("Ready", "True", "Ready")],
        [condition("Ready", "False", "NotReady")],
        [condition("Ready", "True", "Ready"), condition("Synced", "True", "Done")],
        [condition("Ready", "True", "A"), condition("Ready", "True", "B")],
        [condition("Ready", "Perhaps", "A")],
        [condition("Ready", "True", "")],
        [{"type": "Ready"}],
        [],
    ]);
    json!({"status": match kind {
        Kind::Cluster => some(dice, &[
            ("ready", json!([true, false, "x", null])),
            ("state", json!(["Ready", "Creating", "Bogus", null])),
            ("vpcId", json!(["vpc-1", null, 1])),
            ("failureDomains", json!([[{"name": "a"}], [{"name": "a", "controlPlane": true}, {"name": "b"}],
                [{"name": "a"}, {"name": "a"}], [{}], []])),
            ("initialization", json!([{"provisioned": true}, {"surprise": true}, {}, null])),
            ("observedGeneration", json!([1, 2, -1])),
            ("conditions", conditions),
            ("surprise", json!([1])),
        ], 3),
        Kind::Apply | Kind::Secret | Kind::ConfigMap => some(dice, &[
            ("applied", json!([true, false, null])),
            ("workspaceName", json!(["w", "v", null, 5])),
            ("wasReady", json!([true, false])),
            ("conditions", conditions),
        ], 3),
    }})
}

/// Fields of metadata that a writer may or may not change.
pub(crate) fn metadata(dice: &mut Dice) -> Value {
    let owner = |uid: &str, controller: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid, "controller": controller});
    json!({"metadata": some(dice, &[
        ("labels", json!([{"app": "a"}, {"app": "b", "tier": "x"}, {"app": null}, {"app": "not a value"}, {"not a key!": "v"}, {}])),
        ("annotations", json!([{"note": "1"}, {"note": "2", "other": "3"}, {"note": null}, {"note": "5"}])),
        ("finalizers", json!([["example.com/f"], ["example.com/f", "example.com/g"], [], [], ["not a finalizer"], null])),
        ("ownerReferences", json!([
            [owner("uid of ConfigMap a", json!(false))], [owner("other", json!(true))],
            [owner("one", json!(true)), owner("two", json!(true))], [{"kind": "ConfigMap"}], []])),
        ("generation", json!([7])),
        ("creationTimestamp", json!(["2020-01-01T00:00:00Z"])),
    ], 2)})
}
