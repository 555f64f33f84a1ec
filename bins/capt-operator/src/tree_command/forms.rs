//! A graph as text for other programs.

use std::{collections::BTreeMap, fmt::Write as _};

use capt_reconcile::{dependencies::Graph, object::ObjectKey};
use capt_status::Dependencies;

/// The part of a graph that has to do with the impact of `object`: it, and whatever depends on it.
pub(super) fn part(graph: &Graph, object: &ObjectKey) -> Dependencies {
    let mut whole = graph.to_wire();
    let mut kept: Vec<String> = graph.impact(object).into_iter().map(|(_, key)| key.to_string()).collect();
    kept.push(object.to_string());
    whole.nodes.retain(|key, _| kept.contains(key));
    whole.edges.retain(|key, _| kept.contains(key));
    for targets in whole.edges.values_mut() {
        targets.retain(|target| kept.contains(target));
    }
    whole.edges.retain(|_, targets| !targets.is_empty());
    whole
}

/// For Graphviz.
pub(super) fn dot(graph: &Dependencies) -> String {
    let mut text = "digraph capt {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (key, node) in &graph.nodes {
        let _ = writeln!(text, "  {} [label={}];", quoted(key), quoted(&format!("{key}\n{}", node.status)));
    }
    for (from, to) in edges(graph) {
        let _ = writeln!(text, "  {} -> {};", quoted(from), quoted(to));
    }
    text + "}\n"
}

/// A string of Graphviz; a line break stays one.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// For Mermaid, as GitHub shows it.
pub(super) fn mermaid(graph: &Dependencies) -> String {
    let ids: BTreeMap<&str, usize> = graph.nodes.keys().enumerate().map(|(id, key)| (key.as_str(), id)).collect();
    let mut text = "graph LR\n".to_owned();
    for ((key, node), id) in graph.nodes.iter().zip(0..) {
        let label = format!("{key}<br/>{}", node.status).replace('"', "#quot;");
        let _ = writeln!(text, "  n{id}[\"{label}\"]");
    }
    for (from, to) in edges(graph) {
        if let (Some(from), Some(to)) = (ids.get(from), ids.get(to)) {
            let _ = writeln!(text, "  n{from} --> n{to}");
        }
    }
    text
}

fn edges(graph: &Dependencies) -> impl Iterator<Item = (&str, &str)> {
    graph.edges.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from.as_str(), to.as_str())))
}
