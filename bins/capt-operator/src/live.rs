//! The objects of an API server as a world, for commands that look: lists, and the Secrets that matter one by one.
//!
//! It sends GETs and nothing else. What the person may not read counts as not known, and is told.

use std::{collections::BTreeSet, io, path::PathBuf, sync::Arc, time::Duration};

use capt_reconcile::{
    dependencies::Graph,
    object::{Kind, ObjectKey},
    pass::{self, Settings},
    world::{Coverage, Read, View, World},
};
use futures::{StreamExt, stream};
use kube::{Client, api::ListParams};
use tokio::{runtime::Runtime, time::timeout};

use crate::{
    causes::chain,
    connection::{self, Connection, connect},
    discovery::{self, Served, discover},
    input::Roots,
    keep::{self, Kept},
    metrics::Metrics,
    traffic::Traffic,
    watches,
};

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Objects of one answer to a list.
const PAGE: u32 = 500;
/// Secrets asked for at the same time.
const AT_ONCE: usize = 16;

/// Why the API server cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// It is not known what is served.
    #[error(transparent)]
    Discovery(#[from] discovery::Error),
    /// A request failed.
    #[error("cannot read {what}: {}", chain(.source))]
    Request {
        /// Which objects.
        what: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// No answer.
    #[error("cannot read {what}: no answer within {PATIENCE:?}")]
    Timeout {
        /// Which objects.
        what: String,
    },
    /// The operating system refuses.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// A connection that is only read from.
#[derive(Debug)]
pub struct Live {
    runtime: Runtime,
    reader: Reader,
}

#[derive(Debug)]
struct Reader {
    client: Reading,
    served: Served,
    namespace: Option<String>,
    address: String,
}

/// A client without a form for debugging.
struct Reading(Client);

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Live {
    /// Connects and asks what is served.
    pub fn connect(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        namespace: Option<String>,
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let reader = runtime.block_on(async {
            let traffic = Traffic::new(Arc::new(Metrics::new()));
            let Connection { client, address } = connect(kubeconfig, context, &traffic).await?;
            let served = discover(&client, PATIENCE).await?;
            Ok::<_, Error>(Reader { client: Reading(client), served, namespace, address })
        })?;
        Ok(Self { runtime, reader })
    }

    /// Address of the API server.
    pub fn address(&self) -> &str {
        &self.reader.address
    }

    /// What is served.
    pub const fn served(&self) -> &Served {
        &self.reader.served
    }

    /// What is there now, and what could not be read. Of Secrets only those that the passes and graphs of
    /// `roots` read.
    pub fn world(&self, settings: Settings, roots: Roots<'_>) -> Result<(World, Vec<String>), Error> {
        self.runtime.block_on(self.reader.world(settings, roots))
    }
}

/// The answer to a list.
enum Listed {
    All(Vec<Kept>),
    Forbidden,
}

impl Reader {
    async fn world(&self, settings: Settings, roots: Roots<'_>) -> Result<(World, Vec<String>), Error> {
        // What is not served has no objects.
        let mut world = World::with_coverage(Coverage::Live);
        let mut notes = Vec::new();
        for (kind, version) in self.served.kinds().filter(|(kind, _)| *kind != Kind::Secret) {
            // Templates of other namespaces are referred to, and a Workspace may be claimed from any.
            let everywhere = match kind {
                Kind::Template | Kind::Apply | Kind::Workspace(_) => self.list(kind, version, None).await?,
                Kind::Cluster | Kind::CaptCluster | Kind::CaptControlPlane | Kind::Secret => Listed::Forbidden,
            };
            let listed = match everywhere {
                Listed::All(objects) => Listed::All(objects),
                Listed::Forbidden => {
                    if let Some(namespace) = &self.namespace {
                        world.limit(kind, BTreeSet::from([namespace.clone()]));
                    }
                    self.list(kind, version, self.namespace.as_deref()).await?
                }
            };
            match listed {
                Listed::All(objects) => {
                    for Kept { key, resource_version, object } in objects {
                        world.watched(key, resource_version, object);
                    }
                }
                Listed::Forbidden => {
                    world.set_coverage(kind, Coverage::Incomplete);
                    notes.push(format!(
                        "you may not list {}.{}: nothing is known of them; name a namespace with -n",
                        kind.plural(),
                        kind.group()
                    ));
                }
            }
        }
        self.secrets(&mut world, &mut notes, settings, roots).await?;
        Ok((world, notes))
    }

    async fn list(&self, kind: Kind, version: &str, namespace: Option<&str>) -> Result<Listed, Error> {
        let what = || format!("{}.{}", kind.plural(), kind.group());
        let (api, api_version) = watches::api(&self.client.0, kind, version, namespace);
        let mut params = ListParams::default().limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let page = match timeout(PATIENCE, api.list(&params)).await {
                Err(_) => return Err(Error::Timeout { what: what() }),
                Ok(Ok(page)) => page,
                Ok(Err(kube::Error::Api(status))) if status.code == 403 => return Ok(Listed::Forbidden),
                Ok(Err(source)) => return Err(Error::Request { what: what(), source: Box::new(source) }),
            };
            objects.extend(page.items.into_iter().map(|object| keep::from_watch(kind, &api_version, object)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(Listed::All(objects)),
            }
        }
    }

    /// Reads Secrets until no pass asks for another one.
    async fn secrets(
        &self,
        world: &mut World,
        notes: &mut Vec<String>,
        settings: Settings,
        roots: Roots<'_>,
    ) -> Result<(), Error> {
        let mut asked: BTreeSet<ObjectKey> = BTreeSet::new();
        loop {
            let wanted: Vec<ObjectKey> =
                secrets_read(world, settings, &roots(world)).into_iter().filter(|key| !asked.contains(key)).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            let answers: Vec<_> =
                stream::iter(wanted.clone()).map(|key| self.secret(key)).buffer_unordered(AT_ONCE).collect().await;
            asked.extend(wanted);
            for answer in answers {
                match answer? {
                    (_, Ok(Some(Kept { key, resource_version, object }))) => {
                        world.watched(key, resource_version, object);
                    }
                    (_, Ok(None)) => {}
                    (key, Err(Forbidden)) => {
                        notes.push(format!("you may not read {key}: nothing is known of it"));
                        world.set_unknown(key);
                    }
                }
            }
        }
    }

    async fn secret(&self, key: ObjectKey) -> Result<(ObjectKey, Result<Option<Kept>, Forbidden>), Error> {
        let (api, api_version) = watches::api(&self.client.0, key.kind, key.kind.version(), key.namespace.as_deref());
        match timeout(PATIENCE, api.get_opt(&key.name)).await {
            Err(_) => Err(Error::Timeout { what: key.to_string() }),
            Ok(Ok(found)) => {
                let kept = found.map(|object| keep::from_watch(Kind::Secret, &api_version, object));
                Ok((key, Ok(kept)))
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok((key, Err(Forbidden))),
            Ok(Err(source)) => Err(Error::Request { what: key.to_string(), source: Box::new(source) }),
        }
    }
}

/// The person may not read it.
struct Forbidden;

/// The Secrets that the passes and graphs of `roots` read.
fn secrets_read(world: &World, settings: Settings, roots: &[ObjectKey]) -> BTreeSet<ObjectKey> {
    let view = View::new(world);
    let graph = Graph::observe(&view, roots.iter().cloned(), settings);
    for (key, _) in graph.objects() {
        pass::observe(&view, key, settings);
    }
    let reads = view.into_reads().into_iter().filter_map(|read| match read {
        Read::Object(key) if key.kind == Kind::Secret => Some(key),
        Read::Object(_) | Read::List(_, _) | Read::Related(_) => None,
    });
    reads.collect()
}
