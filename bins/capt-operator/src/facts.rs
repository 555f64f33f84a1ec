//! What an object says of itself, in the words of `tree` and `explain`: state, progress, what it waits for or
//! suffers from, since when.
//!
//! Read from the objects alone; it must not decide anything.

use capt_api::foreign::{ForeignCondition, WorkspaceView};
use capt_reconcile::{
    dependencies::{Graph, Standing},
    memory::{Kept, Remembered},
    object::{Object, ObjectKey},
    outputs::{self, Progress as Provider},
    world::World,
};
use capt_status::{Condition, Deadline, Progress, Recovery, State, Time, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How good a word is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it should be.
    Good,
    /// Under way.
    Busy,
    /// Somebody should look.
    Bad,
}

/// What an object waits for or suffers from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Type of the condition that says it.
    pub condition: String,
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// Since when, where that is known.
    pub since: Option<Time>,
}

/// What an object says.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Its state in one word.
    pub word: String,
    /// How good that is.
    pub mood: Mood,
    /// The condition that matters most, if something is not as it should be.
    pub why: Option<Why>,
    /// How far its operation is.
    pub progress: Option<Progress>,
    /// Deadlines that run.
    pub deadlines: Vec<Deadline>,
    /// What was tried after failures.
    pub recovery: Option<Recovery>,
    /// Its conditions, for whoever wants all of them.
    pub conditions: Vec<Condition>,
}

impl Facts {
    fn plain(word: &str, mood: Mood) -> Self {
        Self {
            word: word.to_owned(),
            mood,
            why: None,
            progress: None,
            deadlines: Vec::new(),
            recovery: None,
            conditions: Vec::new(),
        }
    }
}

/// Conditions that say what an object waits for or suffers from, and the status in which they do; the first
/// that holds matters most.
const TELLING: [(&str, &str); 6] = [
    ("Stalled", "True"),
    ("Paused", "True"),
    ("Synced", "False"),
    ("Healthy", "False"),
    ("Reconciling", "True"),
    ("Ready", "False"),
];

/// What the object at `key` of `objects` says; where it is not there, how it stands in `graph`.
pub fn of(objects: &World, graph: &Graph, key: &ObjectKey) -> Facts {
    match objects.peek(key) {
        Some(Object::CaptCluster(object)) => {
            of_provider(is_deleting(&object.metadata), object.status.clone().unwrap_or_default())
        }
        Some(Object::ControlPlane(object)) => {
            of_provider(is_deleting(&object.metadata), object.status.clone().unwrap_or_default())
        }
        Some(Object::Apply(object)) => {
            let conditions = object.status.clone().unwrap_or_default().conditions;
            let (word, mood) = if is_deleting(&object.metadata) {
                ("Deleting", Mood::Busy)
            } else if condition::is_false(&conditions, "Synced") {
                ("NotSynced", if condition::is_true(&conditions, "Reconciling") { Mood::Busy } else { Mood::Bad })
            } else if condition::is_true(&conditions, "Ready") {
                ("Ready", Mood::Good)
            } else {
                ("NotReady", Mood::Busy)
            };
            Facts { why: why(&conditions), conditions, ..Facts::plain(word, mood) }
        }
        Some(Object::Workspace(workspace)) => of_workspace(workspace),
        Some(Object::Cluster(cluster)) => match cluster.phase.as_deref() {
            Some(phase @ "Failed") => Facts::plain(phase, Mood::Bad),
            Some(phase @ "Provisioned") => Facts::plain(phase, Mood::Good),
            Some(phase) => Facts::plain(phase, Mood::Busy),
            None => unseen(cluster.meta.deleting),
        },
        Some(Object::Template(_) | Object::Secret(_)) => Facts::plain("Present", Mood::Good),
        Some(Object::Malformed(problem)) => Facts {
            why: Some(Why {
                condition: String::new(),
                status: String::new(),
                reason: "Malformed".to_owned(),
                message: problem.to_string(),
                since: None,
            }),
            ..Facts::plain("Malformed", Mood::Bad)
        },
        None => {
            let standing = graph.standing(key).unwrap_or(Standing::Missing);
            let mood = match standing {
                Standing::Missing | Standing::Unknown => Mood::Bad,
                Standing::Pending | Standing::Deleting => Mood::Busy,
                Standing::Present | Standing::Provisioned => Mood::Good,
            };
            Facts::plain(standing.as_str(), mood)
        }
    }
}

const fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// An object at which nobody has looked yet.
fn unseen(deleting: bool) -> Facts {
    Facts::plain(if deleting { State::Deleting.as_str() } else { "New" }, Mood::Busy)
}

fn of_provider<S: Remembered>(deleting: bool, mut status: S) -> Facts {
    let Some(state) = status.state() else { return unseen(deleting) };
    let conditions = status.conditions().to_vec();
    let Kept { deadlines, recovery, progress, health: _, dependencies: _ } = status.kept();
    Facts {
        why: why(&conditions),
        progress: progress.take(),
        deadlines: std::mem::take(deadlines),
        recovery: recovery.take(),
        conditions,
        ..Facts::plain(state.as_str(), mood(state))
    }
}

const fn mood(state: State) -> Mood {
    match state {
        State::Ready => Mood::Good,
        State::Pending
        | State::Validating
        | State::Provisioning
        | State::Configuring
        | State::Recovering
        | State::Deleting => Mood::Busy,
        State::Degraded | State::Failed => Mood::Bad,
    }
}

fn why(conditions: &[Condition]) -> Option<Why> {
    let found = TELLING.into_iter().find_map(|(type_, status)| {
        condition::find(conditions, type_).filter(|condition| condition.status.as_str() == status)
    })?;
    Some(Why {
        condition: found.type_.clone(),
        status: found.status.as_str().to_owned(),
        reason: found.reason.clone(),
        message: found.message.clone(),
        since: Some(found.last_transition_time),
    })
}

fn of_workspace(workspace: &WorkspaceView) -> Facts {
    let told = |condition: Option<&ForeignCondition>, type_: &str| {
        condition.filter(|condition| !condition.is_true()).map(|condition| Why {
            condition: type_.to_owned(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.as_deref().and_then(|time| time.parse().ok()),
        })
    };
    let why = told(workspace.synced.as_ref(), "Synced").or_else(|| told(workspace.ready.as_ref(), "Ready"));
    let (word, mood) = match outputs::progress(workspace) {
        Provider::Ready => ("Ready", Mood::Good),
        Provider::InProgress => ("InProgress", Mood::Busy),
        Provider::Paused => ("Paused", Mood::Bad),
        Provider::ObserveOnly => ("ObserveOnly", Mood::Bad),
        Provider::Deleting => ("Deleting", Mood::Busy),
        // The message is long and full of escapes; what it means is short.
        Provider::Failing(failure) => {
            let why =
                why.map(|why| Why { reason: failure.reason.as_str().to_owned(), message: failure.message, ..why });
            return Facts { why, ..Facts::plain("Failing", Mood::Bad) };
        }
    };
    Facts { why, ..Facts::plain(word, mood) }
}

/// `text` without anything that moves a cursor or colours: texts of others reach a terminal as letters only.
pub fn plain(text: &str) -> String {
    let letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    letters.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use capt_api::foreign::WorkspaceApi;
    use capt_reconcile::{
        object::Kind,
        pass::Settings,
        world::{Coverage, View},
    };
    use serde_json::{Value, json};

    use super::*;

    /// The word and its mood for an object of `kind` with `fields` beside its name.
    fn word(kind: Kind, fields: Option<&Value>) -> (String, Mood) {
        let key = ObjectKey::new(kind, "ns", "x");
        let mut world = World::with_coverage(Coverage::Live);
        if let Some(fields) = fields {
            let mut object = json!({
                "apiVersion": kind.api_version(), "kind": kind.name(),
                "metadata": {"namespace": "ns", "name": "x", "uid": "u"},
                "spec": match kind {
                    Kind::Apply => json!({"templateRef": {"name": "t"}}),
                    Kind::CaptControlPlane => json!({"version": "1.31", "workspaceTemplateRef": {"name": "t"}}),
                    _ => json!({"region": "r"}),
                },
            });
            json_patch::merge(&mut object, fields);
            world.watched(key.clone(), 1, Object::parse(kind, &object));
        }
        let graph = Graph::observe(&View::new(&world), [key.clone()], Settings::default());
        let Facts { word, mood, .. } = of(&world, &graph, &key);
        (word, mood)
    }

    #[test]
    fn an_object_is_told_in_one_word() {
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}});
        let state = |state: &str| json!({"status": {"state": state}});
        let told = |type_: &str, status: &str| {
            let time = "2026-01-01T00:00:00Z";
            json!({"status": {"conditions": [
                {"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": time},
            ]}})
        };
        let workspace = Kind::Workspace(WorkspaceApi::Namespaced);
        for (kind, fields, expected, mood) in [
            (Kind::CaptCluster, json!({}), "New", Mood::Busy),
            (Kind::CaptCluster, going.clone(), "Deleting", Mood::Busy),
            (Kind::CaptCluster, state("Ready"), "Ready", Mood::Good),
            (Kind::CaptControlPlane, json!({}), "New", Mood::Busy),
            (Kind::CaptControlPlane, going.clone(), "Deleting", Mood::Busy),
            (Kind::CaptControlPlane, state("Degraded"), "Degraded", Mood::Bad),
            (Kind::CaptControlPlane, state("Failed"), "Failed", Mood::Bad),
            (Kind::CaptControlPlane, state("Recovering"), "Recovering", Mood::Busy),
            (Kind::CaptControlPlane, json!({"spec": {"version": 1}}), "Malformed", Mood::Bad),
            (Kind::Cluster, json!({}), "New", Mood::Busy),
            (Kind::Cluster, going.clone(), "Deleting", Mood::Busy),
            (Kind::Cluster, json!({"status": {"phase": "Provisioned"}}), "Provisioned", Mood::Good),
            (Kind::Cluster, json!({"status": {"phase": "Failed"}}), "Failed", Mood::Bad),
            (Kind::Cluster, json!({"status": {"phase": "Provisioning"}}), "Provisioning", Mood::Busy),
            (Kind::Apply, json!({}), "NotReady", Mood::Busy),
            (Kind::Apply, going.clone(), "Deleting", Mood::Busy),
            (Kind::Apply, told("Ready", "True"), "Ready", Mood::Good),
            (Kind::Apply, told("Synced", "False"), "NotSynced", Mood::Bad),
            (workspace, json!({}), "InProgress", Mood::Busy),
            (workspace, going, "Deleting", Mood::Busy),
            (Kind::Secret, json!({}), "Present", Mood::Good),
        ] {
            assert_eq!(word(kind, Some(&fields)), (expected.to_owned(), mood), "{kind:?} {fields}");
        }
        assert_eq!(word(Kind::Secret, None), ("Missing".to_owned(), Mood::Bad));
    }
}
