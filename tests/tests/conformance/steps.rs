//! A request by chance, before it is known what uids and versions a server has given.

use capt_sim::scenario::chances::Dice;
use serde_json::{Value, json};

use crate::parts::{self, Kind};

/// Names of objects; few, so that requests meet.
const NAMES: [&str; 2] = ["a", "b"];

/// Which resourceVersion or uid a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Nothing,
    /// What was seen last.
    Last,
    /// What was seen first.
    First,
    /// What never was.
    Other,
}

#[derive(Debug, Clone)]
pub(crate) enum Verb {
    Create(Value),
    Get,
    List,
    /// The object as it was seen last, with a merge patch.
    Replace {
        edits: Value,
        version: Named,
        uid: Named,
    },
    Merge {
        patch: Value,
        version: Named,
    },
    Json(Value),
    Apply(Value),
    Delete {
        version: Named,
        uid: Named,
        propagation: Option<&'static str>,
    },
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) namespace: String,
    pub(crate) verb: Verb,
    pub(crate) status: bool,
    pub(crate) query: Vec<String>,
}

fn named(dice: &mut Dice) -> Named {
    [Named::Nothing, Named::Nothing, Named::Last, Named::Last, Named::First, Named::Other][dice.below(6)]
}

/// `content` with more metadata or less.
fn body(dice: &mut Dice, kind: Kind, status: bool) -> Value {
    let mut body = match dice.below(6) {
        0 => json!({}),
        // The API server ignores it, but not what could not be a status.
        1 if !status && kind == Kind::Cluster => json!({"status": {"ready": true}}),
        1 if !status && kind == Kind::Apply => json!({"status": {"applied": true}}),
        _ if status => parts::status(dice, kind),
        _ => parts::content(dice, kind),
    };
    if dice.below(3) == 0 {
        json_patch::merge(&mut body, &parts::metadata(dice));
    }
    body
}

/// What a valid object of the kind has at least.
pub(crate) fn basis(kind: Kind) -> Value {
    match kind {
        Kind::Cluster => json!({"spec": {"region": "eu-west-1"}}),
        Kind::Apply => json!({"spec": {"templateRef": {"name": "t"}}}),
        Kind::Secret | Kind::ConfigMap => json!({}),
    }
}

fn operations(dice: &mut Dice, kind: Kind, status: bool) -> Value {
    let pointers: &[&str] = match (kind, status) {
        (_, true) => {
            &["/status", "/status/ready", "/status/conditions", "/status/conditions/0", "/status/conditions/-"]
        }
        (Kind::Cluster, false) => &["/spec/region", "/spec/existingVpcId", "/spec", "/spec/none/deeper"],
        (Kind::Apply, false) => {
            &["/spec/templateRef/name", "/spec/variables/a", "/spec/waitForWorkspaces/0", "/spec/variables"]
        }
        (Kind::Secret, false) => &["/data/a", "/data", "/immutable", "/type"],
        (Kind::ConfigMap, false) => &["/data/a", "/data", "/immutable"],
    };
    let common = ["/metadata/labels/app", "/metadata/labels", "/metadata/finalizers", "/metadata/annotations/note"];
    let mut list = Vec::new();
    for _ in 0..=dice.below(2) {
        let all = pointers.len() + common.len();
        let at = dice.below(all);
        let pointer = pointers.get(at).copied().unwrap_or_else(|| common[at - pointers.len()]);
        let value = match (kind, pointer) {
            // Metadata and built-in kinds are decoded, and how that fails is not modelled.
            (_, "/metadata/labels") => json!({"app": "a"}),
            (_, "/metadata/finalizers") => json!(["example.com/f"]),
            (_, "/metadata/labels/app" | "/metadata/annotations/note") => json!("x"),
            (Kind::Secret | Kind::ConfigMap, "/data") => json!({"a": "MQ=="}),
            (Kind::Secret | Kind::ConfigMap, "/immutable") => json!(dice.below(2) == 0),
            (Kind::Secret | Kind::ConfigMap, _) => json!("MQ=="),
            (Kind::Cluster | Kind::Apply, _) => {
                [json!("x"), json!("eu-west-1"), json!({"a": "1"}), json!([]), json!(true)][dice.below(5)].clone()
            }
        };
        list.push(match dice.below(5) {
            0 => json!({"op": "remove", "path": pointer}),
            1 => json!({"op": "test", "path": pointer, "value": value}),
            2 => json!({"op": "replace", "path": pointer, "value": value}),
            _ => json!({"op": "add", "path": pointer, "value": value}),
        });
    }
    Value::Array(list)
}

impl Step {
    pub(crate) fn by_chance(dice: &mut Dice, namespace: &str) -> Self {
        let kind =
            [Kind::Cluster, Kind::Cluster, Kind::Apply, Kind::Apply, Kind::Secret, Kind::ConfigMap][dice.below(6)];
        let name = NAMES[dice.below(NAMES.len())];
        let status = kind.has_status() && dice.below(3) == 0;
        let is_write = |query: &mut Vec<String>, dice: &mut Dice| {
            query.push(format!("fieldManager={}", ["one", "two", "three"][dice.below(3)]));
            query.extend(match dice.below(4) {
                0 => Some("fieldValidation=Strict".to_owned()),
                1 => Some("fieldValidation=Ignore".to_owned()),
                _ => None,
            });
            query.extend((dice.below(12) == 0).then(|| "dryRun=All".to_owned()));
        };
        let mut query = Vec::new();
        let mut status_counts = false;
        let verb = match dice.below(20) {
            0..=3 => {
                is_write(&mut query, dice);
                let mut object = basis(kind);
                json_patch::merge(&mut object, &body(dice, kind, false));
                Verb::Create(object)
            }
            4 => Verb::Get,
            5 => {
                let selectors =
                    ["app=a", "app!=a", "app", "!app", "app in (a,b)", "app notin (a)", "app=a,tier=x", "=", "a=b=c"];
                query.extend(
                    (dice.below(2) == 0).then(|| format!("labelSelector={}", encode(selectors[dice.below(9)]))),
                );
                let fields = ["metadata.name=a", "metadata.name!=a", "spec.none=1"];
                query.extend((dice.below(4) == 0).then(|| format!("fieldSelector={}", encode(fields[dice.below(3)]))));
                Verb::List
            }
            6..=8 => {
                is_write(&mut query, dice);
                status_counts = true;
                Verb::Replace { edits: body(dice, kind, status), version: named(dice), uid: named(dice) }
            }
            9..=11 => {
                is_write(&mut query, dice);
                status_counts = true;
                Verb::Merge { patch: body(dice, kind, status), version: named(dice) }
            }
            12..=13 => {
                is_write(&mut query, dice);
                status_counts = true;
                Verb::Json(operations(dice, kind, status))
            }
            14..=17 => {
                is_write(&mut query, dice);
                status_counts = true;
                query.extend((dice.below(3) == 0).then(|| "force=true".to_owned()));
                {
                    let mut config = if status { json!({}) } else { basis(kind) };
                    json_patch::merge(&mut config, &body(dice, kind, status));
                    // What is stored with an empty map or list of metadata is written once more by whatever comes next.
                    if let Some(metadata) = config["metadata"].as_object_mut() {
                        metadata.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
                    }
                    if config["metadata"].is_null() {
                        config.as_object_mut().unwrap().remove("metadata");
                    }
                    Verb::Apply(config)
                }
            }
            _ => Verb::Delete {
                version: named(dice),
                uid: named(dice),
                propagation: [None, None, Some("Background"), Some("Foreground"), Some("Orphan")][dice.below(5)],
            },
        };
        Self { kind, name, namespace: namespace.to_owned(), verb, status: status && status_counts, query }
    }
}

fn encode(text: &str) -> String {
    text.replace('=', "%3D").replace(' ', "%20").replace('!', "%21").replace(',', "%2C")
}
