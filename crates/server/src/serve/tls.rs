//! TLS: the node's own certificate, and those that clients have to show. The files are looked at each second; what they
//! hold is for new connections, and those that are open go on as they began.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use engine::{Clock, SystemClock};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How often the files are looked at.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Where the certificates are, all of them PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, then those between it and its authority.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// The authorities of clients' certificates; none if clients need none.
    pub client_ca: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is no file of {what} in PEM", path.display())]
    NotPem { path: PathBuf, what: &'static str },
    #[error("{} and {} do not go together", cert.display(), key.display())]
    NoPair {
        cert: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("{} cannot be used: {why}", path.display())]
    NoAuthority { path: PathBuf, why: String },
    #[error("TLS cannot be set up")]
    SetUp(#[source] rustls::Error),
}

/// Compares what the files hold with what they held.
type Mark = [u8; 32];

pub struct Tls {
    files: TlsFiles,
    /// What new connections begin with.
    config: RwLock<Arc<ServerConfig>>,
    hurry: Notify,
}

impl Tls {
    pub async fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = Contents::read(&files).await?;
        let config = contents.config(&files)?;
        Ok(Self {
            files,
            config: RwLock::new(Arc::new(config)),
            hurry: Notify::new(),
        })
    }

    /// Looks at the files now instead of within a second.
    pub fn check_files(&self) {
        self.hurry.notify_one();
    }

    /// Follows the files. Never ends.
    pub async fn keep(&self) {
        let clock = SystemClock;
        // What was used last, and what could not be used.
        let mut used: Option<Mark> = None;
        let mut refused: Option<(Mark, bool)> = None;
        loop {
            match self.step(&mut used, &mut refused).await {
                Ok(true) => tracing::info!(
                    "new connections get the certificate that {} holds now",
                    self.files.cert.display()
                ),
                Ok(false) => {}
                Err(error) => {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    let why = source.map_or_else(String::new, |source| format!(": {source}"));
                    tracing::warn!("{error}{why}; the certificate from before stays in use");
                }
            }
            tokio::select! {
                biased;
                () = self.hurry.notified() => {}
                () = clock.sleep(CHECK_EVERY) => {}
            }
        }
    }

    /// One look: whether there is something new. What cannot be used is an error once, and only when it is found for
    /// the second time: two files are not replaced in one moment.
    async fn step(
        &self,
        used: &mut Option<Mark>,
        refused: &mut Option<(Mark, bool)>,
    ) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files).await;
        let mark = contents.as_ref().map_or([0; 32], Contents::mark);
        if *used == Some(mark) {
            *refused = None;
            return Ok(false);
        }
        match contents.and_then(|contents| contents.config(&self.files)) {
            Ok(config) => {
                let is_first = used.replace(mark).is_none();
                *refused = None;
                let mut current = self.config.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(config);
                Ok(!is_first)
            }
            Err(error) => match refused {
                Some((known, said)) if *known == mark => {
                    let is_new = !std::mem::replace(said, true);
                    if is_new { Err(error) } else { Ok(false) }
                }
                Some(_) | None => {
                    *refused = Some((mark, false));
                    Ok(false)
                }
            },
        }
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = {
            let current = self.config.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current)
        };
        TlsAcceptor::from(config).accept(stream).await
    }
}

/// What the files hold.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    async fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            cert: read(&files.cert).await?,
            key: read(&files.key).await?,
            client_ca: match &files.client_ca {
                Some(path) => Some(read(path).await?),
                None => None,
            },
        })
    }

    fn mark(&self) -> Mark {
        let mut digest = Sha256::new();
        for text in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let text = text.map_or(&[][..], Vec::as_slice);
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        digest.finalize().into()
    }

    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
        let not_pem = |path: &Path, what| TlsError::NotPem {
            path: path.to_owned(),
            what,
        };
        let chain = certificates(&self.cert).ok_or_else(|| not_pem(&files.cert, "certificates"))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| not_pem(&files.key, "a private key"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::SetUp)?;
        let builder = match (&files.client_ca, &self.client_ca) {
            (Some(path), Some(text)) => {
                let all = certificates(text).ok_or_else(|| not_pem(path, "certificates"))?;
                let verifier = verifier(all, provider).map_err(|why| TlsError::NoAuthority {
                    path: path.clone(),
                    why,
                })?;
                builder.with_client_cert_verifier(verifier)
            }
            (None, _) | (_, None) => builder.with_no_client_auth(),
        };
        let mut config =
            builder
                .with_single_cert(chain, key)
                .map_err(|source| TlsError::NoPair {
                    cert: files.cert.clone(),
                    key: files.key.clone(),
                    source,
                })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = tokio::fs::read(path).await;
    read.map_err(|source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// At least one, and nothing that cannot be read between them.
fn certificates(text: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    all.ok().filter(|all| !all.is_empty())
}

fn verifier(
    authorities: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| error.to_string())?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())
}
