//! `tree`: what the objects of a Cluster depend on, how far they are, and what an object has an impact on.
//!
//! Shows the same graph that a pass puts into a status, with what each object says of itself now.

mod drawing;
mod forms;
mod terminal;

use std::{collections::BTreeSet, io, thread::sleep, time::Duration};

use capt_api::names::CLUSTER_NAME_LABEL;
use capt_reconcile::{
    dependencies::Graph,
    meta,
    object::{Kind, Object, ObjectKey},
    pass::Settings,
    world::{View, World},
};
use kube::ResourceExt;

use crate::{
    Io, OK,
    cli::{TreeArgs, TreeFormat},
    input::{self, Input},
    worker::system_clock,
};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// Kinds that a tree begins with, in the order in which they are looked at.
const ROOTS: [Kind; 3] = [Kind::CaptCluster, Kind::CaptControlPlane, Kind::Apply];

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No objects.
    #[error(transparent)]
    Input(#[from] input::Error),
    /// No such Cluster.
    #[error("there is no Cluster {wanted} with objects of CAPT: name one of {known}")]
    NoCluster {
        /// The one that was asked for.
        wanted: String,
        /// Those that there are.
        known: String,
    },
    /// No such object.
    #[error("{0}: write it as `tree` without --impact shows it")]
    NoObject(String),
    /// The graph cannot be written as JSON.
    #[error("cannot write the tree as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The output is closed or full.
    #[error("cannot write the tree: {0}")]
    Output(#[from] io::Error),
}

/// The command; returns the exit code.
pub fn command(args: &TreeArgs, io: &mut Io<'_>) -> Result<u8, Error> {
    let input = Input::open(&args.source, io)?;
    let settings = input.settings(&args.source);
    let roots = |world: &World| roots(world, args.cluster.as_deref(), args.source.namespace.as_deref());
    let mut shown = None;
    loop {
        let text =
            input.with_world(settings, &[], &roots, io, |world, _| render(args, world, &roots(world), settings))??;
        // A tree tells ages, so at each look there is something new while anything is under way.
        if shown.as_ref() != Some(&text) {
            if args.watch && shown.is_some() {
                io.stdout.write_all(terminal::NEXT.as_bytes())?;
            }
            io.stdout.write_all(text.as_bytes())?;
            io.stdout.flush()?;
            shown = Some(text);
        }
        if !args.watch {
            return Ok(OK);
        }
        sleep(EVERY);
    }
}

fn render(args: &TreeArgs, world: &World, roots: &[ObjectKey], settings: Settings) -> Result<String, Error> {
    if let (Some(wanted), true) = (&args.cluster, roots.is_empty()) {
        let known: BTreeSet<&str> = ROOTS
            .into_iter()
            .flat_map(|kind| world.keys(kind))
            .filter_map(|key| cluster_of(world.peek(key)?))
            .collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        return Err(Error::NoCluster { wanted: wanted.clone(), known });
    }
    let graph = Graph::observe(&View::new(world), roots.iter().cloned(), settings);
    let now = args.source.now.unwrap_or_else(system_clock);
    let paper = terminal::Paper::of(args.colour, args.width);
    if let Some(wanted) = &args.impact {
        let known = graph.objects().map(|(key, _)| key);
        let object = wanted.find(known, args.source.namespace.as_deref()).map_err(Error::NoObject)?;
        return match args.output {
            TreeFormat::Text => Ok(drawing::impact(world, &graph, &object, now, paper)),
            TreeFormat::Json => Ok(format!("{}\n", serde_json::to_string_pretty(&forms::part(&graph, &object))?)),
            TreeFormat::Dot => Ok(forms::dot(&forms::part(&graph, &object))),
            TreeFormat::Mermaid => Ok(forms::mermaid(&forms::part(&graph, &object))),
        };
    }
    match args.output {
        TreeFormat::Text => Ok(drawing::tree(world, &graph, roots, now, paper)),
        TreeFormat::Json => Ok(format!("{}\n", serde_json::to_string_pretty(&graph.to_wire())?)),
        TreeFormat::Dot => Ok(forms::dot(&graph.to_wire())),
        TreeFormat::Mermaid => Ok(forms::mermaid(&graph.to_wire())),
    }
}

/// The objects with passes, of one Cluster or of all; whatever they depend on is reached from these.
fn roots(world: &World, cluster: Option<&str>, namespace: Option<&str>) -> Vec<ObjectKey> {
    let of_cluster = |key: &ObjectKey| cluster.is_none() || world.peek(key).and_then(cluster_of) == cluster;
    ROOTS.into_iter().flat_map(|kind| input::keys(world, [kind], namespace)).filter(of_cluster).collect()
}

/// Name of the Cluster that an object of ours belongs to.
fn cluster_of(object: &Object) -> Option<&str> {
    match object {
        Object::CaptCluster(object) => meta::owner_cluster_name(object.as_ref()),
        Object::ControlPlane(object) => meta::owner_cluster_name(object.as_ref()),
        Object::Apply(object) => object.labels().get(CLUSTER_NAME_LABEL).map(String::as_str),
        Object::Cluster(_) | Object::Template(_) | Object::Workspace(_) | Object::Secret(_) | Object::Malformed(_) => {
            None
        }
    }
}
