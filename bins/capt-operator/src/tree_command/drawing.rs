//! A graph as a tree for people: each Cluster, below it what nothing else depends on, below that what it depends on.

use std::collections::BTreeSet;

use capt_reconcile::{
    dependencies::Graph,
    object::{Kind, ObjectKey},
    world::World,
};
use capt_status::Time;

use super::terminal::Paper;
use crate::facts::{self, Facts, Mood, Why};

/// The objects at `roots` with everything that they depend on.
pub(super) fn tree(world: &World, graph: &Graph, roots: &[ObjectKey], now: Time, paper: Paper) -> String {
    let mut drawing = Drawing { world, graph, now, paper, drawn: BTreeSet::new(), out: String::new() };
    // A Cluster is the heading of what belongs to it and not a branch of each of them.
    let clusters: BTreeSet<&ObjectKey> =
        graph.objects().map(|(key, _)| key).filter(|key| key.kind == Kind::Cluster).collect();
    let of = |root: &ObjectKey| graph.targets(root).find(|key| key.kind == Kind::Cluster).cloned();
    for cluster in clusters {
        drawing.heading(cluster, roots.iter().filter(|root| of(root).as_ref() == Some(cluster)));
    }
    // What has no Cluster, and circles, in which every object has a dependent.
    let is_top = |root: &&ObjectKey| graph.dependents(root).is_empty();
    for root in roots.iter().filter(is_top).chain(roots) {
        if !drawing.drawn.contains(root) {
            drawing.object(root, "", "");
        }
    }
    if let Some(circle) = graph.circle() {
        drawing.line("", "", Some(("CyclicDependency", Mood::Bad)), &format!(": {}", circle.message));
    }
    if roots.is_empty() {
        drawing.out.push_str("There is no object of CAPT here.\n");
    }
    drawing.out
}

/// What depends on `object`, nearest first.
pub(super) fn impact(world: &World, graph: &Graph, object: &ObjectKey, now: Time, paper: Paper) -> String {
    let mut drawing = Drawing { world, graph, now, paper, drawn: BTreeSet::new(), out: String::new() };
    let found = graph.impact(object);
    drawing.head(object, "", "", "");
    if found.is_empty() {
        drawing.out.push_str("Nothing depends on it.\n");
    }
    for (length, key) in found {
        drawing.head(key, &"  ".repeat(length), &"  ".repeat(length), "");
    }
    drawing.out
}

struct Drawing<'a> {
    world: &'a World,
    graph: &'a Graph,
    now: Time,
    paper: Paper,
    drawn: BTreeSet<ObjectKey>,
    out: String,
}

impl Drawing<'_> {
    fn heading<'a>(&mut self, cluster: &ObjectKey, members: impl Iterator<Item = &'a ObjectKey>) {
        self.drawn.insert(cluster.clone());
        self.head(cluster, "", "", "");
        let members: Vec<&ObjectKey> =
            members.filter(|key| !self.graph.dependents(key).iter().any(|other| other.kind != Kind::Cluster)).collect();
        self.branches(&members, "");
    }

    fn object(&mut self, key: &ObjectKey, first: &str, rest: &str) {
        let targets: Vec<&ObjectKey> = self.graph.targets(key).filter(|target| target.kind != Kind::Cluster).collect();
        let again = !self.drawn.insert(key.clone());
        self.head(key, first, rest, if again && !targets.is_empty() { "  (see above)" } else { "" });
        if !again {
            self.branches(&targets, rest);
        }
    }

    fn branches(&mut self, targets: &[&ObjectKey], rest: &str) {
        for (index, target) in targets.iter().enumerate() {
            let (branch, below) = if index + 1 == targets.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.object(target, &format!("{rest}{branch}"), &format!("{rest}{below}"));
        }
    }

    /// The object in one line, and in a second one what it waits for or suffers from.
    fn head(&mut self, key: &ObjectKey, first: &str, rest: &str, note: &str) {
        let facts = facts::of(self.world, self.graph, key);
        let more = format!("{}{note}", operation(&facts, self.now));
        self.line(&format!("{first}{key}  "), "", Some((&facts.word, facts.mood)), &more);
        if note.is_empty()
            && let Some(Why { condition: _, status: _, reason, message, since }) = &facts.why
        {
            let age = since.map_or_else(String::new, |since| format!(" for {}", self.now.since(since)));
            let message = facts::plain(message);
            let colon = if message.is_empty() { "" } else { ": " };
            self.line(rest, "   ", None, &format!("{reason}{age}{colon}{message}"));
        }
    }

    /// One line, cut to the width before it is coloured.
    fn line(&mut self, start: &str, indent: &str, word: Option<(&str, Mood)>, more: &str) {
        let mut room = self.paper.width;
        let mut put = |text: &str, mood: Option<Mood>, out: &mut String| {
            let length = text.chars().count();
            let fits = length <= room;
            let shown: String =
                if fits { text.to_owned() } else { text.chars().take(room.saturating_sub(1)).collect() };
            match mood {
                Some(mood) if !shown.is_empty() => out.push_str(&self.paper.paint(&shown, mood)),
                Some(_) | None => out.push_str(&shown),
            }
            if !fits && room > 0 {
                out.push('…');
            }
            room = room.saturating_sub(length);
        };
        put(&format!("{start}{indent}"), None, &mut self.out);
        if let Some((word, mood)) = word {
            put(word, Some(mood), &mut self.out);
        }
        put(more, None, &mut self.out);
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push('\n');
    }
}

/// The operation that runs, how far it is and since when; nothing of what is over.
fn operation(facts: &Facts, now: Time) -> String {
    let Some(progress) = &facts.progress else { return String::new() };
    let Some(operation) = progress.current_operation.filter(|_| facts.mood == Mood::Busy) else { return String::new() };
    let milestone = progress.milestone.as_ref().map_or_else(String::new, |milestone| format!(" {milestone}"));
    let age = progress.started_at.map_or_else(String::new, |since| format!(", for {}", now.since(since)));
    let left = progress.estimated_time_remaining.map_or_else(String::new, |left| format!(", about {left} left"));
    format!("  {operation:?}{milestone}{age}{left}")
}
