//! TLS of the metrics server: with the certificate of a directory, read anew at each connection so
//! that a rotated one counts at once, or with one that this process makes for itself.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be used.
    #[error("cannot use {path} as a certificate or key in PEM: {message}")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The pair cannot be used.
    #[error("the certificate and the key do not serve TLS: {0}")]
    Pair(#[from] rustls::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}; give one with --metrics-cert-dir")]
    Make(String),
}

/// Makes TLS of connections; cheap to clone.
#[derive(Clone)]
pub struct Tls {
    made: Arc<ServerConfig>,
    directory: Option<Arc<Path>>,
}

impl Tls {
    /// With `tls.crt` and `tls.key` of `directory`; without one, with a certificate that nobody vouches
    /// for.
    pub fn new(directory: Option<PathBuf>) -> Result<Self, Error> {
        let made = match &directory {
            Some(directory) => read(directory)?,
            None => make()?,
        };
        Ok(Self { made: Arc::new(made), directory: directory.map(Arc::from) })
    }

    /// Takes a connection.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = match &self.directory {
            // In the middle of a rotation the old pair still serves.
            Some(directory) => read(directory).map_or_else(|_| Arc::clone(&self.made), Arc::new),
            None => Arc::clone(&self.made),
        };
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn read(directory: &Path) -> Result<ServerConfig, Error> {
    let (certificate, key) = (directory.join("tls.crt"), directory.join("tls.key"));
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error: rustls::pki_types::pem::Error| Error::File { path, message: error.to_string() }
    };
    let chain = CertificateDer::pem_file_iter(&certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(fail(&certificate))?;
    let key = PrivateKeyDer::from_pem_file(&key).map_err(fail(&key))?;
    config(chain, key)
}

fn make() -> Result<ServerConfig, Error> {
    let made = rcgen::generate_simple_self_signed(["capt-operator".to_owned(), "localhost".to_owned()])
        .map_err(|error| Error::Make(error.to_string()))?;
    let key =
        PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(|error| Error::Make(error.to_owned()))?;
    config(vec![made.cert.der().clone()], key)
}

fn config(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, Error> {
    Ok(ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read_from_a_directory_or_made() {
        assert!(Tls::new(None).is_ok());
        let directory = tempfile::tempdir().unwrap();
        let error = Tls::new(Some(directory.path().to_owned())).err().unwrap().to_string();
        assert!(error.contains("tls.crt"), "{error}");
        let pair = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        std::fs::write(directory.path().join("tls.crt"), pair.cert.pem()).unwrap();
        std::fs::write(directory.path().join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
        assert!(Tls::new(Some(directory.path().to_owned())).is_ok());
    }
}
