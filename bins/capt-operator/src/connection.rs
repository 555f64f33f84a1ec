//! The client: where the API server is and how it is spoken to.

use std::{path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::traffic::Traffic;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a kubeconfig nor a service account.
    #[error("no API server is configured: give --kubeconfig, set KUBECONFIG, or run in a cluster ({0})")]
    Nothing(#[source] Box<kube::config::InferConfigError>),
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig{}: {source}", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Kubeconfig {
        /// Where it is, if a path was given.
        path: Option<PathBuf>,
        /// What is wrong with it.
        source: Box<kube::config::KubeconfigError>,
    },
    /// The certificates or the credentials cannot be used.
    #[error("cannot use the certificates or credentials for {address}: {source}")]
    Client {
        /// Where the API server is.
        address: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
}

/// A client and where it goes.
pub struct Connection {
    /// The client; it makes each request once, without a second try.
    pub client: Client,
    /// URL of the API server.
    pub address: String,
}

/// Reads the configuration. Nothing is sent yet; whatever is sent later is counted in `traffic`.
pub async fn connect(
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    traffic: &Traffic,
) -> Result<Connection, Error> {
    let mut config = config(kubeconfig, context).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // kube would repeat a request up to 15 times within one call, for minutes. A pass is repeated
    // instead, since by then it may have to write something else.
    config.default_retry = false;
    let address = config.cluster_url.to_string();
    match ClientBuilder::try_from(config) {
        Ok(builder) => Ok(Connection { client: builder.with_layer(traffic).build(), address }),
        Err(source) => Err(Error::Client { address, source: Box::new(source) }),
    }
}

async fn config(path: Option<PathBuf>, context: Option<String>) -> Result<Config, Error> {
    if path.is_none() && context.is_none() {
        return Config::infer().await.map_err(|error| Error::Nothing(Box::new(error)));
    }
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = match &path {
        Some(file) => match Kubeconfig::read_from(file) {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            Err(error) => Err(error),
        },
        None => Config::from_kubeconfig(&options).await,
    };
    config.map_err(|source| Error::Kubeconfig { path, source: Box::new(source) })
}
