//! Certificates of one stack: an authority of its own, made at the start and gone with it.
//!
//! The authority signs the API server's certificate, that of Cluster API's webhooks and one client
//! certificate per user. A user's name is the certificate's common name and its group is its
//! organisation, as Kubernetes reads them, so every component is a user of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// Why a certificate or kubeconfig could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that does not fit into a certificate, or a failing random source.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The kubeconfig could not be written as YAML.
    #[error("cannot write a kubeconfig as YAML: {0}")]
    Yaml(String),
}

/// A certificate and its private key, both PEM.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The certificate authority of one stack.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new authority with a fresh key.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut params = params("capt-stack-ca", None, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// The authority's own certificate, PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// The same in base64, as `caBundle` and kubeconfigs hold it.
    pub(crate) fn bundle(&self) -> String {
        STANDARD.encode(self.pem())
    }

    /// A certificate for servers on this machine.
    pub(crate) fn server(&self) -> Result<Pair, Error> {
        let mut params = params("capt-stack", None, &["127.0.0.1", "localhost"])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A self-contained kubeconfig of `user` for the API server at `url`, as YAML.
    pub(crate) fn kubeconfig(&self, url: &str, user: &str, group: Option<&str>) -> Result<String, Error> {
        let mut params = params(user, group, &[])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let pair = self.sign(params)?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stack",
            "clusters": [{"name": "stack", "cluster": {
                "server": url,
                "certificate-authority-data": self.bundle(),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate-data": STANDARD.encode(&pair.certificate),
                "client-key-data": STANDARD.encode(&pair.key),
            }}],
            "contexts": [{"name": "stack", "context": {"cluster": "stack", "user": user}}],
        });
        serde_saphyr::to_string(&config).map_err(|error| Error::Yaml(error.to_string()))
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair, Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate()?;
        Ok(Pair { certificate: params.signed_by(&key, &self.0)?.pem(), key: key.serialize_pem() })
    }
}

/// The key pair with which the API server signs service account tokens: public and private, PEM.
pub(crate) fn signing_key() -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

fn params(name: &str, organisation: Option<&str>, hosts: &[&str]) -> Result<CertificateParams, Error> {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organisation) = organisation {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    Ok(params)
}
