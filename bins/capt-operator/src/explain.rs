//! `explain`: what an object waits for, since when, what was decided last and why, and what to do about it.
//!
//! Put together from what the objects say, from the pass that would run over it now, and from the meanings of
//! reasons. It writes nothing and decides nothing.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use capt_reconcile::{
    dependencies::Graph,
    meanings::{self, Meaning},
    object::{Kind, ObjectKey},
    ownership,
    pass::{self, Observation, Settings},
    plan::Plan,
    world::{View, World},
};
use capt_status::{
    Time,
    machine::{Timeouts, Timer},
};
use serde_json::{Value, json};

use crate::{
    Io, OK,
    cli::{ExplainArgs, OutputFormat},
    facts::{self, Facts, Mood, Why, plain},
    input::{self, Input},
    text::verb,
    worker::system_clock,
};

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No objects.
    #[error(transparent)]
    Input(#[from] input::Error),
    /// No such object.
    #[error("{0}")]
    NoObject(String),
    /// The explanation cannot be written as JSON.
    #[error("cannot write the explanation as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The output is closed or full.
    #[error("cannot write the explanation: {0}")]
    Output(#[from] io::Error),
}

/// The command; returns the exit code.
pub fn command(args: &ExplainArgs, io: &mut Io<'_>) -> Result<u8, Error> {
    let input = Input::open(&args.source, io)?;
    let settings = input.settings(&args.source);
    let namespace = args.source.namespace.as_deref();
    let find = |world: &World| args.object.find(Kind::ALL.into_iter().flat_map(|kind| world.keys(kind)), namespace);
    let roots = |world: &World| find(world).into_iter().collect();
    let now = args.source.now.unwrap_or_else(system_clock);
    input.with_world(settings, &[], &roots, io, |world, io| {
        let key = find(world).map_err(Error::NoObject)?;
        let told = Explanation::of(world, key, settings, now);
        match args.output {
            OutputFormat::Text => told.write(&mut io.stdout)?,
            OutputFormat::Json => writeln!(io.stdout, "{}", serde_json::to_string_pretty(&told.json())?)?,
        }
        io.stdout.flush()?;
        Ok(OK)
    })?
}

/// A deadline that runs.
struct Limit {
    name: String,
    /// When it passes; absent where its limit is not known here.
    at: Option<Time>,
}

struct Explanation {
    object: ObjectKey,
    facts: Facts,
    limits: Vec<Limit>,
    /// What is not as it should be among what it depends on, from the object to the cause.
    because: Vec<(ObjectKey, Facts)>,
    /// What the next pass would write.
    pass: Option<Plan>,
    /// What there is to say beside that.
    remarks: Vec<String>,
    now: Time,
}

impl Explanation {
    fn of(world: &World, key: ObjectKey, settings: Settings, now: Time) -> Self {
        let view = View::new(world);
        let graph = Graph::observe(&view, [key.clone()], settings);
        let facts = facts::of(world, &graph, &key);
        let mut remarks = Vec::new();
        let pass = match pass::observe(&view, &key, settings) {
            Observation::Complete(observed) => Some(pass::plan(&observed, now)),
            Observation::Malformed(problem) => {
                remarks.push(format!("it does not parse and is left alone: {problem}"));
                None
            }
            Observation::Gone => None,
        };
        if let Some(orphan) = ownership::orphans(&view).into_iter().flatten().find(|orphan| orphan.key == key) {
            remarks.push(orphan.message);
        }
        if let Some(circle) = graph.circle() {
            remarks.push(circle.message);
        }
        Self {
            limits: limits(world, &key, &facts, settings.timeouts),
            because: because(world, &graph, &key),
            object: key,
            facts,
            pass,
            remarks,
            now,
        }
    }

    /// The reason that a person can do something about: that of the cause, else the object's own.
    fn remedy(&self) -> Option<(&ObjectKey, &Why, Option<Meaning>)> {
        let own = std::iter::once((&self.object, &self.facts));
        let all: Vec<_> = own.chain(self.because.iter().map(|(key, facts)| (key, facts))).collect();
        all.into_iter().rev().find_map(|(key, facts)| {
            let why = facts.why.as_ref()?;
            Some((key, why, meanings::find(&why.reason)))
        })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { object, facts, limits, because, pass, remarks, now } = self;
        writeln!(out, "{object}: {}", facts.word)?;
        match &facts.why {
            Some(why) => writeln!(out, "  says      {}", said(why, *now))?,
            None if facts.mood == Mood::Good => writeln!(out, "  says      nothing is waited for")?,
            None => writeln!(out, "  says      nothing yet")?,
        }
        for (key, facts) in because {
            let why = facts.why.as_ref().map_or_else(String::new, |why| format!(": {}", said(why, *now)));
            writeln!(out, "  because   {key} is {}{why}", facts.word)?;
        }
        if let Some(progress) = &facts.progress {
            if let Some(operation) = progress.current_operation {
                let milestone = progress.milestone.as_deref().unwrap_or("begun");
                let since =
                    progress.started_at.map_or_else(String::new, |at| format!(", since {at} ({} ago)", now.since(at)));
                let left =
                    progress.estimated_time_remaining.map_or_else(String::new, |left| format!(", about {left} left"));
                writeln!(out, "  operation {operation:?}, {milestone}{since}{left}")?;
            }
            if let Some(last) = progress.history.last() {
                let at = last.completed_at.map_or_else(String::new, |at| format!(" at {at}"));
                let message = plain(&last.message);
                let colon = if message.is_empty() { "" } else { ": " };
                writeln!(out, "  before    {:?} {:?}{at}{colon}{message}", last.operation, last.result)?;
            }
        }
        for Limit { name, at } in limits {
            match at {
                Some(at) if at > now => writeln!(out, "  deadline  {name} at {at}, in {}", at.since(*now))?,
                Some(at) => writeln!(out, "  deadline  {name} passed at {at}")?,
                None => writeln!(out, "  deadline  {name} runs")?,
            }
        }
        if let Some(recovery) = facts.recovery.as_ref().filter(|recovery| recovery.attempts > 0) {
            let next = recovery.next_attempt_time.map_or_else(String::new, |at| format!(", the next one at {at}"));
            let result =
                recovery.last_result.as_ref().map_or_else(String::new, |result| format!(", the last one {result}"));
            let spent = if recovery.escalated { "; no more are made" } else { "" };
            writeln!(out, "  recovery  {} attempts{result}{next}{spent}", recovery.attempts)?;
        }
        if let Some((since, decided)) = decided(facts) {
            writeln!(out, "  decided   at {since}: {decided}")?;
        }
        if let Some(plan) = pass {
            let writes: Vec<String> =
                plan.actions.iter().map(|action| format!("{} {}", verb(&action.op), action.target)).collect();
            let writes = if writes.is_empty() { "nothing to write".to_owned() } else { writes.join(", ") };
            let note = if plan.note.is_empty() { String::new() } else { format!(" ({})", plain(&plan.note)) };
            writeln!(out, "  next pass {writes}{note}")?;
            if let Some(next) = plan.next {
                writeln!(out, "  looks     again at {next}, or when something changes")?;
            }
        }
        for remark in remarks {
            writeln!(out, "  note      {}", plain(remark))?;
        }
        if let Some((key, _, Some(Meaning { reason: _, group, meaning, remedy }))) = self.remedy() {
            let meaning = if meaning.is_empty() { group.title().1 } else { meaning };
            writeln!(out, "  means     {meaning}")?;
            if !remedy.is_empty() {
                let of = if *key == *object { String::new() } else { format!(" ({key})") };
                writeln!(out, "  to do     {remedy}{of}")?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let Self { object, facts, limits, because, pass, remarks, now: _ } = self;
        let why = |facts: &Facts| {
            facts.why.as_ref().map(|Why { condition, status, reason, message, since }| {
                json!({"condition": condition, "status": status, "reason": reason, "message": message, "since": since})
            })
        };
        let remedy = self.remedy().map(|(key, why, meaning)| {
            json!({
                "object": key.to_string(),
                "reason": why.reason,
                "meaning": meaning.map(|meaning| meaning.meaning),
                "remedy": meaning.map(|meaning| meaning.remedy),
            })
        });
        json!({
            "object": object.to_string(),
            "state": facts.word,
            "why": why(facts),
            "because": because.iter().map(|(key, facts)| {
                json!({"object": key.to_string(), "state": facts.word, "why": why(facts)})
            }).collect::<Vec<_>>(),
            "progress": facts.progress,
            "deadlines": limits.iter().map(|Limit { name, at }| json!({"name": name, "at": at})).collect::<Vec<_>>(),
            "recovery": facts.recovery,
            "decided": decided(facts).map(|(at, what)| json!({"at": at, "what": what})),
            "nextPass": pass.as_ref().map(|plan| json!({
                "writes": plan.actions.iter().map(|action| {
                    json!({"op": verb(&action.op), "object": action.target.to_string(), "reason": action.reason})
                }).collect::<Vec<_>>(),
                "note": plan.note,
                "next": plan.next,
            })),
            "notes": remarks,
            "remedy": remedy,
        })
    }
}

fn said(why: &Why, now: Time) -> String {
    let Why { condition, status, reason, message, since } = why;
    let since = since.map_or_else(String::new, |since| format!(" since {since} ({} ago)", now.since(since)));
    let message = plain(message);
    let colon = if message.is_empty() { "" } else { ": " };
    let condition = if condition.is_empty() { String::new() } else { format!("{condition}={status}{since}, ") };
    format!("{condition}{reason}{colon}{message}")
}

/// The condition that changed last: what was decided last, and why.
fn decided(facts: &Facts) -> Option<(Time, String)> {
    let last = facts.conditions.iter().map(|condition| condition.last_transition_time).max()?;
    let changed: Vec<String> = facts
        .conditions
        .iter()
        .filter(|condition| condition.last_transition_time == last)
        .map(|condition| format!("{}={} ({})", condition.type_, condition.status.as_str(), condition.reason))
        .collect();
    Some((last, changed.join(", ")))
}

/// Along what is worst, from the object's own dependencies down to one that suffers from nothing else.
fn because(world: &World, graph: &Graph, key: &ObjectKey) -> Vec<(ObjectKey, Facts)> {
    let mut way = Vec::new();
    let mut seen = BTreeSet::from([key.clone()]);
    let mut at = key.clone();
    loop {
        let worst = graph
            .targets(&at)
            .filter(|target| target.kind != Kind::Cluster && !seen.contains(*target))
            .map(|target| (target.clone(), facts::of(world, graph, target)))
            .filter(|(_, facts)| facts.mood != Mood::Good)
            // The first of the worst ones.
            .min_by_key(|(_, facts)| facts.mood != Mood::Bad);
        let Some((next, facts)) = worst else { return way };
        seen.insert(next.clone());
        at = next.clone();
        way.push((next, facts));
    }
}

/// The deadlines that run, with their limits from the spec or from the defaults.
fn limits(world: &World, key: &ObjectKey, facts: &Facts, timeouts: Timeouts) -> Vec<Limit> {
    let limits = world.peek(key).and_then(|object| pass::limits(object, timeouts));
    let of = |name: &str| Timer::ALL.into_iter().find(|timer| timer.name() == name);
    facts
        .deadlines
        .iter()
        .map(|deadline| Limit {
            name: deadline.name.clone(),
            at: of(&deadline.name).zip(limits.as_ref()).map(|(timer, limits)| {
                deadline.started_at.plus(deadline.suspended_for).plus(limits.timeouts.of(timer))
            }),
        })
        .collect()
}
