//! Where the commands that look take their objects from: documents, or an API server that is only read.
//!
//! Both become the world that passes read. Nothing here decides anything or writes to an API server.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use capt_api::foreign::WorkspaceApi;
use capt_reconcile::{
    object::{Kind, ObjectKey},
    pass::Settings,
    world::World,
};

use crate::{
    Io,
    cli::{SourceArgs, WorkspaceApiChoice},
    documents::{self, Documents, Source},
    live::{self, Live},
    unreadable::Unreadable,
};

/// Why there are no objects.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    /// The standard input twice.
    #[error("the standard input can be read once: give `-f -` once")]
    StdinTwice,
    /// The input is wrong.
    #[error(transparent)]
    Documents(#[from] documents::Error),
    /// The API server cannot be read.
    #[error(transparent)]
    Live(#[from] live::Error),
    /// Standard error is closed.
    #[error("cannot write a note: {0}")]
    Output(#[from] io::Error),
}

/// Which objects of a world a command is about.
pub type Roots<'a> = &'a dyn Fn(&World) -> Vec<ObjectKey>;

/// A source of objects, ready to be read.
#[derive(Debug)]
pub enum Input {
    /// Documents, read once.
    Files(Documents),
    /// An API server, read each time.
    Live(Box<Live>),
}

impl Input {
    /// Opens what `args` name; tells on standard error what is left out.
    pub fn open(args: &SourceArgs, io: &mut Io<'_>) -> Result<Self, Error> {
        if args.files.is_empty() {
            let live = Live::connect(args.kubeconfig.clone(), args.context.clone(), args.namespace.clone())?;
            return Ok(Self::Live(Box::new(live)));
        }
        let documents = Documents::read(&sources(&args.files, io.stdin)?)?;
        for note in &documents.notes {
            writeln!(io.stderr, "note: {note}")?;
        }
        Ok(Self::Files(documents))
    }

    /// Address of the API server; `None` for files.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Files(_) => None,
            Self::Live(live) => Some(live.address()),
        }
    }

    /// What `run` would be told here.
    pub fn settings(&self, args: &SourceArgs) -> Settings {
        let (auto, cluster_crd) = match self {
            Self::Files(_) => (WorkspaceApi::Cluster, Settings::default().cluster_crd),
            Self::Live(live) => (live.served().workspace_api(), live.served().cluster_crd()),
        };
        let workspace_api = match args.workspace_api {
            WorkspaceApiChoice::Auto => auto,
            WorkspaceApiChoice::Cluster => WorkspaceApi::Cluster,
            WorkspaceApiChoice::Namespaced => WorkspaceApi::Namespaced,
        };
        Settings { workspace_api, cluster_crd, timeouts: args.timers.timeouts(), ..Settings::default() }
    }

    /// The objects as they are now, those at `unknown` not known. Of an API server, only those Secrets are read that `roots` depend on.
    pub fn with_world<T>(
        &self,
        settings: Settings,
        unknown: &[ObjectKey],
        roots: Roots<'_>,
        io: &mut Io<'_>,
        then: impl FnOnce(&World, &mut Io<'_>) -> T,
    ) -> Result<T, Error> {
        let mut world = match self {
            Self::Files(documents) => documents.clone().into_world(),
            Self::Live(live) => {
                let (world, notes) = live.world(settings, roots)?;
                for note in notes {
                    writeln!(io.stderr, "note: {note}")?;
                }
                world
            }
        };
        for object in unknown {
            world.set_unknown(object.clone());
        }
        Ok(then(&world, io))
    }
}

/// The objects of `kinds` in `world`, those of one namespace or all.
pub fn keys(world: &World, kinds: impl IntoIterator<Item = Kind>, namespace: Option<&str>) -> Vec<ObjectKey> {
    let all = kinds.into_iter().flat_map(|kind| world.keys(kind)).cloned();
    let all: BTreeSet<ObjectKey> =
        all.filter(|key| namespace.is_none() || key.namespace.as_deref() == namespace).collect();
    all.into_iter().collect()
}

fn sources(files: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Source>, Error> {
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(Error::StdinTwice);
    }
    files.iter().map(|file| source(file, stdin)).collect()
}

fn source(file: &Path, stdin: &mut dyn Read) -> Result<Source, Error> {
    let (name, text) = if is_stdin(file) {
        let mut text = String::new();
        let read = stdin.read_to_string(&mut text).map(|_| text);
        ("standard input".to_owned(), read)
    } else {
        (file.display().to_string(), fs::read_to_string(file))
    };
    match text {
        Ok(text) => Ok(Source { name, text }),
        Err(source) => Err(Unreadable { name, source }.into()),
    }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}
