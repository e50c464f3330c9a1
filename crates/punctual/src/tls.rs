//! TLS to a server: rustls with ring, the public authorities, and those that a file names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsConnector;

use crate::failure::Failure;

/// Whom to trust besides the public authorities, and what to show to a server that wants to know who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trust {
    /// A file of certificates, PEM, to trust for an https:// server besides the public authorities
    #[arg(long, global = true, value_name = "FILE", env = "PUNCTUAL_SERVER_CA")]
    #[arg(hide_env_values = true, display_order = 900)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_ca: Option<PathBuf>,
    /// A certificate, PEM, to show to an https:// server that asks for one
    #[arg(long, global = true, value_name = "FILE", env = "PUNCTUAL_CLIENT_CERT")]
    #[arg(hide_env_values = true, display_order = 900)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_cert: Option<PathBuf>,
    /// The private key of --client-cert, PEM
    #[arg(long, global = true, value_name = "FILE", env = "PUNCTUAL_CLIENT_KEY")]
    #[arg(hide_env_values = true, display_order = 900)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_key: Option<PathBuf>,
}

impl Trust {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is said here, and where nothing is, what is said there.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let first = |one: &Option<PathBuf>, other: &Option<PathBuf>| one.clone().or(other.clone());
        // A certificate and its key stay together.
        let own = if self.client_cert.is_some() || self.client_key.is_some() {
            self
        } else {
            other
        };
        Self {
            server_ca: first(&self.server_ca, &other.server_ca),
            client_cert: own.client_cert.clone(),
            client_key: own.client_key.clone(),
        }
    }

    /// The same wherever it is read from.
    pub(crate) fn absolute(&self) -> Result<Self, Failure> {
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        let all = || -> std::io::Result<Self> {
            Ok(Self {
                server_ca: absolute(&self.server_ca)?,
                client_cert: absolute(&self.client_cert)?,
                client_key: absolute(&self.client_key)?,
            })
        };
        all().map_err(|error| Failure::usage(format!("a file's place cannot be found: {error}")))
    }
}

pub(crate) fn connector(trust: &Trust) -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(path) = &trust.server_ca {
        add(&mut roots, path)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let set_up = |error: rustls::Error| Failure::usage(format!("TLS cannot be set up: {error}"));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(set_up)?
        .with_root_certificates(roots);
    let mut config = match (&trust.client_cert, &trust.client_key) {
        (Some(cert), Some(key)) => {
            let (chain, key) = own(cert, key)?;
            builder.with_client_auth_cert(chain, key).map_err(set_up)?
        }
        (None, None) => builder.with_no_client_auth(),
        (Some(_), None) | (None, Some(_)) => {
            let why = "--client-cert and --client-key need each other";
            return Err(Failure::usage(why));
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Whether a handshake failed because the server's certificate is not believed.
pub(crate) fn is_distrust(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// What to show to a server.
fn own(
    cert: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let refused = |flag: &str, path: &Path, why: String| {
        Failure::usage(format!("{flag} {}: {why}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| refused("--client-cert", cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(refused(
            "--client-cert",
            cert,
            "it holds no certificate".into(),
        ));
    }
    let read = PrivateKeyDer::from_pem_file(key);
    let key = read.map_err(|error| refused("--client-key", key, error.to_string()))?;
    Ok((chain, key))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Failure> {
    let refused = |why: String| Failure::usage(format!("--server-ca {}: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| refused(error.to_string()))?;
    }
    if roots.len() == before {
        return Err(refused("it holds no certificate".to_owned()));
    }
    Ok(())
}
