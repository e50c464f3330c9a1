//! TLS for https targets: rustls with ring, the public authorities, HTTP/2 where the target speaks it, else HTTP/1.1.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::uri::Authority;
use model::limits;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::broken::Broken;
use crate::Identity;

/// What a peer that speaks HTTP/2 picks.
pub(super) const H2: &[u8] = b"h2";

/// The executor could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("a certificate that was to be trusted cannot be read")]
    Root(#[source] rustls::Error),
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// What opens TLS on sockets: one for all, made once and shared by every link, sessions included, and one for each identity.
pub(super) struct Connectors {
    roots: RootCertStore,
    usual: TlsConnector,
    /// By identity, and forgotten all at once when there are too many.
    others: Mutex<HashMap<[u8; 32], TlsConnector>>,
}

impl Connectors {
    pub(super) fn new(
        extra: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, SetupError> {
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        for root in extra {
            roots.add(root).map_err(SetupError::Root)?;
        }
        let usual = builder(roots.clone()).map_err(SetupError::Tls)?;
        let usual = finish(usual.with_no_client_auth());
        let others = Mutex::default();
        Ok(Self {
            roots,
            usual,
            others,
        })
    }

    /// The one for an identity, or the usual one.
    pub(super) fn of(&self, identity: Option<&Identity>) -> Result<TlsConnector, Broken> {
        let Some(identity) = identity else {
            return Ok(self.usual.clone());
        };
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others().get(&identity.id) {
            return Ok(known.clone());
        }
        let made = self.make(identity)?;
        let mut others = others();
        if others.len() >= limits::IDENTITIES_MAX {
            others.clear();
        }
        others.insert(identity.id, made.clone());
        Ok(made)
    }

    fn make(&self, identity: &Identity) -> Result<TlsConnector, Broken> {
        let mut roots = self.roots.clone();
        if let Some(ca) = &identity.ca {
            for root in certificates(ca).ok_or(Broken::Identity("ca is no certificate in PEM"))? {
                let added = roots.add(root);
                added.map_err(|_| Broken::Identity("ca is no certificate of an authority"))?;
            }
        }
        let builder = builder(roots).map_err(|_| Broken::Identity("TLS cannot be set up"))?;
        let Some((chain, key)) = &identity.cert else {
            return Ok(finish(builder.with_no_client_auth()));
        };
        let chain = certificates(chain).ok_or(Broken::Identity("cert is no certificate in PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|_| Broken::Identity("key is no private key in PEM"))?;
        let config = builder.with_client_auth_cert(chain, key);
        let config = config.map_err(|_| Broken::Identity("key is not that of cert"))?;
        Ok(finish(config))
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, WantsClientCert>;

fn builder(roots: RootCertStore) -> Result<Builder, rustls::Error> {
    // The provider is named here, so that this works in a process that installed none or another.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots))
}

fn finish(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// One or more; none if there is none, or something else.
fn certificates(text: &str) -> Option<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    all.ok().filter(|all| !all.is_empty())
}

/// A handshake that failed: a certificate's fault is reported, other things only by kind.
pub(super) fn refused(authority: &Authority, cause: io::Error) -> Broken {
    let authority = authority.clone();
    let inner = cause
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidCertificate(fault)) = inner {
        return Broken::Certificate {
            authority,
            detail: fault.to_string(),
            is_unknown: *fault == rustls::CertificateError::UnknownIssuer,
        };
    }
    Broken::Tls { authority, cause }
}
