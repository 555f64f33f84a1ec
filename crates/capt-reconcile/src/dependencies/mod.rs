//! What objects depend on, from the references that their specs hold: Cluster, provider objects, applies,
//! Workspaces, templates, Secrets.
//!
//! Built while a pass observes, so that whatever stands in a graph is watched; shown in the status of both
//! provider objects and by `capt-operator tree`. It must not decide what is made or deleted. The graph of a
//! status is as coarse as can be: it says of an object what its owner's latch says, and shows what a creation
//! brings about only once that has succeeded, so that it changes together with the rest of the status.

mod walk;

use std::{collections::VecDeque, fmt::Write};

use capt_status::{
    Dependencies, DependencyNode, State,
    dependencies::MAX_NODES,
    machine::Cause,
    text::{MAX_MESSAGE, truncate},
};

use crate::{
    lookup::Lookup,
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
    key: ObjectKey,
    standing: Standing,
    maker: Option<Maker>,
    /// It comes to be while its maker becomes ready, and a status shows it only after that.
    late: bool,
    /// Places of what it depends on, in the order of their keys.
    targets: Vec<usize>,
}

/// Objects and what each of them depends on.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Nearest to the roots first.
    nodes: Vec<Node>,
    /// Their places.
    places: Lookup<ObjectKey, usize>,
    /// Whether a user said what an apply waits for; without that there is no circle.
    has_waits: bool,
}

impl Graph {
    /// The objects at `roots` and everything that they depend on.
    pub fn observe(view: &View<'_>, roots: impl IntoIterator<Item = ObjectKey>, settings: Settings) -> Self {
        walk::graph(view, roots, settings)
    }

    /// The place of the object at `key`, the next one if it has none.
    fn place(&mut self, key: ObjectKey) -> usize {
        if let Some(at) = self.places.get(&key) {
            return *at;
        }
        let at = self.nodes.len();
        self.places.insert(key.clone(), at);
        self.nodes.push(Node { key, standing: Standing::Unknown, maker: None, late: false, targets: Vec::new() });
        at
    }

    /// Says that the object at one place depends on that at another.
    fn connect(&mut self, from: usize, to: usize) {
        let target = self.nodes.get(to).map(|node| &node.key);
        let Some(node) = self.nodes.get(from) else { return };
        let Err(order) =
            node.targets.binary_search_by(|known| self.nodes.get(*known).map(|node| &node.key).cmp(&target))
        else {
            return;
        };
        if let Some(node) = self.nodes.get_mut(from) {
            node.targets.insert(order, to);
        }
    }

    /// Says what was found of the object at a place.
    fn settle(&mut self, at: usize, standing: Standing, maker: Option<Maker>, late: bool) {
        if let Some(node) = self.nodes.get_mut(at) {
            (node.standing, node.maker, node.late) = (standing, maker, late);
        }
    }

    /// All objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Standing)> {
        let mut objects: Vec<(&ObjectKey, Standing)> =
            self.nodes.iter().map(|node| (&node.key, node.standing)).collect();
        objects.sort_unstable_by_key(|(key, _)| *key);
        objects.into_iter()
    }

    fn node(&self, key: &ObjectKey) -> Option<&Node> {
        self.nodes.get(*self.places.get(key)?)
    }

    fn targets_of<'g>(&'g self, node: &'g Node) -> impl Iterator<Item = &'g Node> {
        node.targets.iter().filter_map(|at| self.nodes.get(*at))
    }

    /// How the object at `key` stands, if it is in the graph.
    pub fn standing(&self, key: &ObjectKey) -> Option<Standing> {
        self.node(key).map(|node| node.standing)
    }

    /// What the object at `key` depends on, directly.
    pub fn targets(&self, key: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.node(key).into_iter().flat_map(|node| self.targets_of(node)).map(|node| &node.key)
    }

    /// The objects that depend on the one at `key`, directly, in the order of their keys.
    pub fn dependents(&self, key: &ObjectKey) -> Vec<&ObjectKey> {
        let Some(at) = self.places.get(key) else { return Vec::new() };
        let sources = self.nodes.iter().filter(|node| node.targets.contains(at));
        let mut sources: Vec<&ObjectKey> = sources.map(|node| &node.key).collect();
        sources.sort_unstable();
        sources
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
        for node in &self.nodes {
            let name = node.key.to_string();
            if !node.targets.is_empty() {
                let targets = self.targets_of(node).map(|target| target.key.to_string());
                wire.edges.insert(name.clone(), targets.collect());
            }
            wire.nodes.insert(name, wire_node(&node.key, node.standing.as_str()));
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
        let shown = self.shown(after);
        let mut graph = Dependencies { truncated: shown.is_truncated, ..Dependencies::default() };
        // Each with its name on the wire, which is made once.
        let told = |(node, has): (&Node, &bool)| if *has { node.key.to_string() } else { String::new() };
        let names: Vec<String> = self.nodes.iter().zip(&shown.has).map(told).collect();
        let name = |at: usize| names.get(at).map(String::as_str);
        for (at, node, word) in &shown.nodes {
            if let Some(name) = name(*at) {
                graph.add(name, wire_node(&node.key, word));
            }
        }
        for (at, node, _) in &shown.nodes {
            for target in shown.targets(node) {
                if let (Some(source), Some(target)) = (name(*at), name(target)) {
                    graph.connect(source, target);
                }
            }
        }
        graph
    }

    /// Whether `stored` says already what [`Graph::status`] would, the order of targets aside; builds nothing.
    pub fn is_shown_by(&self, stored: &Dependencies, after: &After<'_>) -> bool {
        let Dependencies { nodes, edges, truncated } = stored;
        let shown = self.shown(after);
        if (*truncated, nodes.len()) != (shown.is_truncated, shown.nodes.len()) {
            return false;
        }
        let (mut name, mut sources) = (String::new(), 0);
        for (_, node, word) in &shown.nodes {
            let key = &node.key;
            write_name(&mut name, key);
            let Some(DependencyNode { type_, name: of, namespace, status }) = nodes.get(&name) else { return false };
            if (type_.as_str(), of, namespace, status.as_str()) != (key.kind.name(), &key.name, &key.namespace, word) {
                return false;
            }
            let told: &[String] = edges.get(&name).map_or(&[], Vec::as_slice);
            let count = shown.targets(node).count();
            if told.len() != count {
                return false;
            }
            for target in shown.targets(node).filter_map(|at| self.nodes.get(at)) {
                if !told.iter().any(|told| is_name(told, &target.key)) {
                    return false;
                }
            }
            sources += usize::from(count > 0);
        }
        edges.len() == sources
    }

    /// The objects that a status shows.
    fn shown<'g>(&'g self, after: &After<'g>) -> Shown<'g> {
        let After { root, state, ready: _, actions: _ } = after;
        let is_shown = |node: &Node| !node.late || node.maker.as_ref().is_some_and(|maker| after.is_ready(maker));
        let mut shown =
            Shown { nodes: Vec::with_capacity(MAX_NODES / 2), has: vec![false; self.nodes.len()], is_truncated: false };
        if let Some((place, node)) = self.places.get(*root).and_then(|place| Some((*place, self.nodes.get(*place)?))) {
            shown.add(place, node, || state.as_str());
        }
        let mut at = 0;
        while let Some((_, node, _)) = shown.nodes.get(at).copied() {
            if at == MAX_NODES {
                shown.truncate();
                break;
            }
            at += 1;
            for target in &node.targets {
                if let Some(node) = self.nodes.get(*target).filter(|node| is_shown(node)) {
                    shown.add(*target, node, || after.standing(&node.key, node).as_str());
                }
            }
        }
        shown
    }
}

/// What a status shows of a graph.
struct Shown<'g> {
    /// The objects with their places, nearest to the root first, each with how it stands after the plan.
    nodes: Vec<(usize, &'g Node, &'static str)>,
    /// Whether the object at a place is among them.
    has: Vec<bool>,
    /// Whether there are more than a status has room for.
    is_truncated: bool,
}

impl<'g> Shown<'g> {
    /// Adds the object at a place, if it is not there yet.
    fn add(&mut self, place: usize, node: &'g Node, word: impl FnOnce() -> &'static str) {
        if let Some(has @ false) = self.has.get_mut(place) {
            *has = true;
            self.nodes.push((place, node, word()));
        }
    }

    /// Leaves out what a status has no room for.
    fn truncate(&mut self) {
        self.is_truncated = true;
        for (place, _, _) in self.nodes.drain(MAX_NODES..) {
            if let Some(has) = self.has.get_mut(place) {
                *has = false;
            }
        }
    }

    /// Places of those that a node depends on and that are shown as well.
    fn targets(&self, node: &'g Node) -> impl Iterator<Item = usize> {
        node.targets.iter().copied().filter(|place| self.has.get(*place) == Some(&true))
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

/// Whether `name` is that of the object at `key` on the wire.
fn is_name(name: &str, key: &ObjectKey) -> bool {
    let parts = key.namespace.iter().chain([&key.name]);
    let rest = parts.fold(name.strip_prefix(key.kind.name()), |rest, part| {
        rest.and_then(|rest| rest.strip_prefix('/')).and_then(|rest| rest.strip_prefix(part.as_str()))
    });
    rest == Some("")
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
