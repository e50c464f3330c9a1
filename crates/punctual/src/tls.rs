//! TLS to a server: rustls with ring, the public authorities, and those that a file names.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::failure::Failure;

pub fn connector(ca: Option<&Path>) -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(path) = ca {
        add(&mut roots, path)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::usage(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Whether a handshake failed because the server's certificate is not believed.
pub fn is_distrust(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
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
