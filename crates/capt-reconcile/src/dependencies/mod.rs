//! What objects depend on, from the references that their specs hold: Cluster, provider objects, applies,
//! Workspaces, templates, Secrets.
//!
//! Built while a pass observes, so that whatever stands in a graph is watched; shown in the status of both
//! provider objects and by `capt-operator tree`. It must not decide what is made or deleted. The graph of a
//! status is as coarse as can be: it says of an object what its owner's latch says, and shows what a creation
//! brings about only once that has succeeded, so that it changes together with the rest of the status.

mod walk;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write,
};

use capt_status::{
    Dependencies, DependencyNode, State,
    dependencies::MAX_NODES,
    machine::Cause,
    text::{MAX_MESSAGE, truncate},
};

use crate::{
    object::{Kind, ObjectKey},
    pass::Settings,
    plan::Action,
    reasons,
    world::View,
};

#[cfg(test)]
mod tests;

/// How an object stands to those that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing is known of it.
    Unknown,
    /// It does not exist, and CAPT does not make it.
    Missing,
    /// It is being deleted.
    Deleting,
    /// It is there, and there is nothing to wait for.
    Present,
    /// CAPT makes it, and it was not there for its owner so far.
    Pending,
    /// It was there for its owner; how it is now, its own status tells.
    Provisioned,
}

impl Standing {
    /// As in a status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Missing => "Missing",
            Self::Deleting => "Deleting",
            Self::Present => "Present",
            Self::Pending => "Pending",
            Self::Provisioned => "Provisioned",
        }
    }
}

/// The provider object that makes something.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Maker {
    key: ObjectKey,
    /// Whether it was ready once.
    ready: bool,
}

/// An object of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    standing: Standing,
    maker: Option<Maker>,
    /// It comes to be while its maker becomes ready, and a status shows it only after that.
    late: bool,
}

/// Objects and what each of them depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: BTreeMap<ObjectKey, Node>,
    edges: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Whether a user said what an apply waits for; without that there is no circle.
    has_waits: bool,
}

impl Graph {
    /// The objects at `roots` and everything that they depend on.
    pub fn observe(view: &View<'_>, roots: impl IntoIterator<Item = ObjectKey>, settings: Settings) -> Self {
        walk::graph(view, roots, settings)
    }

    /// All objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Standing)> {
        self.nodes.iter().map(|(key, node)| (key, node.standing))
    }

    /// How the object at `key` stands, if it is in the graph.
    pub fn standing(&self, key: &ObjectKey) -> Option<Standing> {
        self.nodes.get(key).map(|node| node.standing)
    }

    /// What the object at `key` depends on, directly.
    pub fn targets(&self, key: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.edges.get(key).into_iter().flatten()
    }

    /// The objects that depend on the one at `key`, directly.
    pub fn dependents(&self, key: &ObjectKey) -> Vec<&ObjectKey> {
        self.edges.iter().filter(|(_, targets)| targets.contains(key)).map(|(source, _)| source).collect()
    }

    /// The objects that depend on the one at `key`, directly or by way of others, each with the length of the
    /// shortest way; nearest first.
    pub fn impact(&self, key: &ObjectKey) -> Vec<(usize, &ObjectKey)> {
        let mut found: Vec<(usize, &ObjectKey)> = Vec::new();
        let mut queue = VecDeque::from([(0, key)]);
        while let Some((length, key)) = queue.pop_front() {
            for dependent in self.dependents(key) {
                if !found.iter().any(|(_, known)| *known == dependent) {
                    found.push((length + 1, dependent));
                    queue.push_back((length + 1, dependent));
                }
            }
        }
        found.retain(|(_, found)| *found != key);
        found
    }

    /// The whole graph as it is on the wire, without a limit.
    pub fn to_wire(&self) -> Dependencies {
        let mut wire = Dependencies::default();
        for (key, node) in &self.nodes {
            wire.nodes.insert(key.to_string(), wire_node(key, node.standing.as_str()));
        }
        for (key, targets) in &self.edges {
            wire.edges.insert(key.to_string(), targets.iter().map(ToString::to_string).collect());
        }
        wire
    }

    /// A circle as the cause of a failure: nothing in it can ever be the first.
    pub fn circle(&self) -> Option<Cause> {
        if !self.has_waits {
            return None;
        }
        let wire = self.to_wire();
        let path = wire.cycle()?.join(" -> ");
        let message =
            format!("{path} wait for each other: remove one of these from waitForWorkspaces or waitForSecrets");
        Some(Cause::new(reasons::DEPENDENCY_CYCLE, truncate(&message, MAX_MESSAGE)))
    }

    /// What the status of a provider object shows after a plan.
    pub fn status(&self, after: &After<'_>) -> Dependencies {
        let (shown, truncated) = self.shown(after);
        let mut graph = Dependencies { truncated, ..Dependencies::default() };
        // Each with its name on the wire, which is made once.
        let names: Vec<String> = shown.iter().map(|(key, _)| key.to_string()).collect();
        for ((key, word), name) in shown.iter().zip(&names) {
            graph.add(name, wire_node(key, word));
        }
        for ((key, _), name) in shown.iter().zip(&names) {
            for target in self.targets(key) {
                if let Some(at) = shown.iter().position(|(known, _)| *known == target) {
                    graph.connect(name, &names[at]);
                }
            }
        }
        graph
    }

    /// Whether `stored` says already what [`Graph::status`] would, the order of targets aside; builds nothing.
    pub fn is_shown_by(&self, stored: &Dependencies, after: &After<'_>) -> bool {
        let Dependencies { nodes, edges, truncated } = stored;
        let (shown, is_truncated) = self.shown(after);
        if (*truncated, nodes.len()) != (is_truncated, shown.len()) {
            return false;
        }
        let (mut name, mut target_name, mut sources) = (String::new(), String::new(), 0);
        for (key, word) in &shown {
            write_name(&mut name, key);
            let Some(DependencyNode { type_, name: of, namespace, status }) = nodes.get(&name) else { return false };
            if (type_.as_str(), of, namespace, status.as_str()) != (key.kind.name(), &key.name, &key.namespace, word) {
                return false;
            }
            let told: &[String] = edges.get(&name).map_or(&[], Vec::as_slice);
            let mut count = 0;
            for target in self.targets(key).filter(|target| shown.iter().any(|(known, _)| known == target)) {
                count += 1;
                write_name(&mut target_name, target);
                if !told.contains(&target_name) {
                    return false;
                }
            }
            if told.len() != count {
                return false;
            }
            sources += usize::from(count > 0);
        }
        edges.len() == sources
    }

    /// The objects that a status shows, nearest to the root first, each with how it stands after the plan; and
    /// whether there are more than a status has room for.
    fn shown<'g>(&'g self, after: &After<'g>) -> (Vec<(&'g ObjectKey, &'static str)>, bool) {
        let After { root, state, ready: _, actions: _ } = after;
        let is_shown = |node: &Node| !node.late || node.maker.as_ref().is_some_and(|maker| after.is_ready(maker));
        let mut shown: Vec<(&ObjectKey, &'static str)> = Vec::with_capacity(MAX_NODES / 2);
        shown.extend(self.nodes.contains_key(*root).then_some((*root, state.as_str())));
        let mut at = 0;
        while let Some((key, _)) = shown.get(at) {
            if at == MAX_NODES {
                shown.truncate(MAX_NODES);
                return (shown, true);
            }
            at += 1;
            for target in self.targets(key) {
                let is_known = shown.iter().any(|(known, _)| *known == target);
                if let Some(node) = self.nodes.get(target).filter(|node| !is_known && is_shown(node)) {
                    shown.push((target, after.standing(target, node).as_str()));
                }
            }
        }
        (shown, false)
    }
}

/// A provider object once the plan in hand is carried out.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    /// The object, from which its graph is seen.
    pub root: &'a ObjectKey,
    /// Its state.
    pub state: State,
    /// Its latch.
    pub ready: bool,
    /// What the plan writes.
    pub actions: &'a [Action],
}

impl After<'_> {
    fn is_ready(&self, maker: &Maker) -> bool {
        if maker.key == *self.root { self.ready } else { maker.ready }
    }

    /// How a node stands then, so that no second write has to follow.
    fn standing(&self, key: &ObjectKey, node: &Node) -> Standing {
        let ready = node.maker.as_ref().is_some_and(|maker| self.is_ready(maker));
        match (key.kind, node.standing) {
            (Kind::Secret, Standing::Pending | Standing::Missing) => {
                if self.actions.iter().any(|action| action.target == *key) {
                    Standing::Present
                } else if ready {
                    Standing::Missing
                } else {
                    node.standing
                }
            }
            (_, Standing::Pending) if ready => Standing::Provisioned,
            (_, standing) => standing,
        }
    }
}

/// The name of the object at `key` on the wire, in place of what `name` held.
fn write_name(name: &mut String, key: &ObjectKey) {
    name.clear();
    // A String takes all that is written.
    let _ = write!(name, "{key}");
}

fn wire_node(key: &ObjectKey, status: &str) -> DependencyNode {
    DependencyNode {
        type_: key.kind.name().to_owned(),
        name: key.name.clone(),
        namespace: key.namespace.clone(),
        status: status.to_owned(),
    }
}

/// A stored graph with the state that the object at `root` has now, and nothing else changed; `None` if it says so
/// already, or does not know the object.
pub fn with_state(graph: &Dependencies, root: &ObjectKey, state: State) -> Option<Dependencies> {
    let name = root.to_string();
    graph.nodes.get(&name).filter(|node| node.status != state.as_str())?;
    let mut graph = graph.clone();
    state.as_str().clone_into(&mut graph.nodes.get_mut(&name)?.status);
    Some(graph)
}
