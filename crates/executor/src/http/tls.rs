//! TLS for https targets: rustls with ring, the public authorities, HTTP/1.1 and nothing else.

use std::io;
use std::sync::Arc;

use hyper::http::uri::Authority;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::broken::Broken;

/// The executor could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("a certificate that was to be trusted cannot be read")]
    Root(#[source] rustls::Error),
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// What opens TLS on a socket; made once and shared by every link, sessions included.
pub(super) fn connector(
    extra: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<TlsConnector, SetupError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for root in extra {
        roots.add(root).map_err(SetupError::Root)?;
    }
    // The provider is named here, so that this works in a process that installed none or another.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(SetupError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A handshake that failed: a certificate's fault is told, other things only by kind.
pub(super) fn refused(authority: &Authority, cause: io::Error) -> Broken {
    let authority = authority.clone();
    let inner = cause
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidCertificate(fault)) = inner {
        return Broken::Certificate {
            authority,
            detail: fault.to_string(),
        };
    }
    Broken::Tls { authority, cause }
}
