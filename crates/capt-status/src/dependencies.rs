//! Wire type of the dependency graph (requirements 003): nodes by key, edges from dependent to dependency.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use serde::{Deserialize, Serialize};

/// The objects an object depends on; at most 32 nodes.
///
/// ```
/// use capt_status::{Dependencies, DependencyNode};
///
/// let mut graph = Dependencies::default();
/// for (key, type_, name) in [("Cluster/a", "Cluster", "a"), ("Network/n", "Network", "n")] {
///     let (type_, name, status) = (type_.to_owned(), name.to_owned(), "Ready".to_owned());
///     graph.add(key, DependencyNode { type_, name, namespace: None, status });
/// }
/// graph.connect("Cluster/a", "Network/n");
/// assert_eq!((graph.dependents("Network/n"), graph.cycle()), (vec!["Cluster/a"], None));
/// graph.connect("Network/n", "Cluster/a");
/// assert_eq!(graph.cycle(), Some(vec!["Cluster/a", "Network/n", "Cluster/a"]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Dependencies {
    /// Objects, by "Kind/namespace/name".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(extend("maxProperties" = 32)))]
    pub nodes: BTreeMap<String, DependencyNode>,
    /// For each object, the keys of the objects it depends on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "edges"))]
    pub edges: BTreeMap<String, Vec<String>>,
    /// Whether objects were left out to stay within the limit.
    #[serde(default)]
    pub truncated: bool,
}

#[cfg(feature = "schemars")]
fn edges(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    // A key holds a kind, a namespace and a name.
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 512}},
    })
}

/// One object of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct DependencyNode {
    /// Kind of the object.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 253)))]
    pub type_: String,
    /// Name of the object.
    #[cfg_attr(feature = "schemars", schemars(length(max = 253)))]
    pub name: String,
    /// Namespace of the object; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 63)))]
    pub namespace: Option<String>,
    /// Its state in one word.
    #[cfg_attr(feature = "schemars", schemars(length(max = 64)))]
    pub status: String,
}

/// Most objects that a status shows.
pub const MAX_NODES: usize = 32;

impl Dependencies {
    /// The objects that depend on the one at `key`, directly: the edges read backwards.
    pub fn dependents(&self, key: &str) -> Vec<&str> {
        self.edges
            .iter()
            .filter(|(_, targets)| targets.iter().any(|target| target == key))
            .map(|(source, _)| source.as_str())
            .collect()
    }

    /// A circle, from one object along the edges back to it, both ends included; the same one for the same graph.
    pub fn cycle(&self) -> Option<Vec<&str>> {
        // Visited objects are done for good: whatever can be reached from them has been looked at.
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in self.edges.keys() {
            let mut way: Vec<(&str, usize)> = Vec::from([(start.as_str(), 0)]);
            while let Some((key, next)) = way.last_mut() {
                let target = self.edges.get(*key).and_then(|targets| targets.get(*next));
                *next += 1;
                let Some(target) = target.map(String::as_str) else {
                    done.insert(key);
                    way.pop();
                    continue;
                };
                if let Some(at) = way.iter().position(|(key, _)| *key == target) {
                    let circle = way.iter().skip(at).map(|(key, _)| *key);
                    return Some(circle.chain([target]).collect());
                }
                if !done.contains(target) {
                    way.push((target, 0));
                }
            }
        }
        None
    }

    /// Puts an object in unless it is there; false if there is no room for it, which `truncated` then says.
    pub fn add(&mut self, key: &str, node: DependencyNode) -> bool {
        if self.nodes.contains_key(key) {
            return true;
        }
        if self.nodes.len() >= MAX_NODES {
            self.truncated = true;
            return false;
        }
        self.nodes.insert(String::from(key), node);
        true
    }

    /// Says that the object at `from` depends on the one at `to`, if both are there. Targets stay in order and
    /// without repetition.
    pub fn connect(&mut self, from: &str, to: &str) {
        if !self.nodes.contains_key(from) || !self.nodes.contains_key(to) {
            return;
        }
        let targets = self.edges.entry(String::from(from)).or_default();
        if let Err(at) = targets.binary_search_by(|target| target.as_str().cmp(to)) {
            targets.insert(at, String::from(to));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString};

    use proptest::prelude::*;

    use super::*;

    fn node(name: &str) -> DependencyNode {
        let (type_, status) = ("Secret".to_string(), "Present".to_string());
        DependencyNode { type_, name: name.to_string(), namespace: None, status }
    }

    fn graph(edges: &[(&str, &str)]) -> Dependencies {
        let mut graph = Dependencies::default();
        for (from, to) in edges {
            assert!(graph.add(from, node(from)) && graph.add(to, node(to)));
            graph.connect(from, to);
        }
        graph
    }

    #[test]
    fn edges_are_read_both_ways() {
        let graph = graph(&[("a", "c"), ("b", "c"), ("a", "b"), ("a", "b")]);
        assert_eq!(graph.edges["a"], ["b", "c"]);
        assert_eq!(graph.dependents("c"), ["a", "b"]);
        assert_eq!(graph.dependents("a"), Vec::<&str>::new());
    }

    #[test]
    fn a_circle_is_found_with_its_path() {
        assert_eq!(graph(&[("a", "b"), ("b", "c"), ("c", "b")]).cycle(), Some(["b", "c", "b"].to_vec()));
        assert_eq!(graph(&[("a", "a")]).cycle(), Some(["a", "a"].to_vec()));
        // Two ways to one object are no circle.
        assert_eq!(graph(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]).cycle(), None);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let mut graph = Dependencies::default();
        for number in 0..MAX_NODES {
            assert!(graph.add(&format!("n{number}"), node("n")));
        }
        assert!(!graph.truncated && graph.add("n0", node("n")), "that one is there");
        assert!(!graph.add("more", node("n")) && graph.truncated);
        graph.connect("n0", "more");
        assert!(graph.edges.is_empty(), "no edge leads nowhere");
    }

    proptest! {
        /// By definition: some object can be reached from itself.
        #[test]
        fn there_is_a_circle_exactly_if_an_object_reaches_itself(edges in prop::collection::vec((0u8..6, 0u8..6), 0..12)) {
            let mut graph = Dependencies::default();
            let mut reach = [[false; 6]; 6];
            for (from, to) in edges {
                let (a, b) = (from.to_string(), to.to_string());
                graph.add(&a, node(&a));
                graph.add(&b, node(&b));
                graph.connect(&a, &b);
                reach[usize::from(from)][usize::from(to)] = true;
            }
            for via in 0..6 {
                for from in 0..6 {
                    for to in 0..6 {
                        reach[from][to] |= reach[from][via] && reach[via][to];
                    }
                }
            }
            let circle = graph.cycle();
            prop_assert_eq!(circle.is_some(), (0..6).any(|object| reach[object][object]));
            if let Some(circle) = circle {
                prop_assert_eq!(circle.first(), circle.last());
                for step in circle.windows(2) {
                    prop_assert!(graph.edges[step[0]].iter().any(|target| target == step[1]));
                }
            }
        }
    }
}
