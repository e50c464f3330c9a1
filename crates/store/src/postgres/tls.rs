//! TLS to the database, with the same library and the same roots as everything else.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use super::config::{PgConfig, Tls};
use crate::{BoxError, StoreError};

/// Makes connections, each under the server's name.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

impl Connector {
    pub(super) fn new(config: &PgConfig) -> Result<Self, StoreError> {
        let unusable = |error: &dyn std::fmt::Display| {
            StoreError::Unusable(format!("TLS to the database cannot be set up: {error}"))
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let named = match (&config.roots, config.tls) {
            (None, _) | (_, Tls::Disable) => None,
            (Some(path), _) => Some(read_roots(path).map_err(|error| {
                unusable(&format_args!("sslrootcert {}: {error}", path.display()))
            })?),
        };
        let client = match config.tls {
            Tls::VerifyFull => {
                let roots = Arc::new(named.unwrap_or_else(usual_roots));
                let checks = WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| unusable(&error))?;
                builder.with_webpki_verifier(checks).with_no_client_auth()
            }
            Tls::Disable | Tls::Prefer | Tls::Require | Tls::VerifyCa => {
                let believer = Believer {
                    provider,
                    roots: named,
                };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(believer))
                    .with_no_client_auth()
            }
        };
        Ok(Self(Arc::new(client)))
    }
}

fn usual_roots() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

fn read_roots(path: &Path) -> Result<RootCertStore, BoxError> {
    let text = std::fs::read(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        Err("it holds no certificate".into())
    } else {
        Ok(roots)
    }
}

/// Does not ask for a name: `sslmode=require` asks for secrecy, not for proof. With certificates to trust, one of them
/// must have signed the server's.
#[derive(Debug)]
struct Believer {
    provider: Arc<CryptoProvider>,
    roots: Option<RootCertStore>,
}

impl ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A connector for one server.
pub(super) struct Named {
    client: Arc<ClientConfig>,
    /// Asked for before it is known whether there will be TLS at all: sockets of this machine have no name.
    name: Result<ServerName<'static>, InvalidDnsNameError>,
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Named;
    type Error = BoxError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Named, BoxError> {
        Ok(Named {
            client: Arc::clone(&self.0),
            name: ServerName::try_from(domain.to_owned()),
        })
    }
}

impl<S> TlsConnect<S> for Named
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream<S>, BoxError>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = tokio_rustls::TlsConnector::from(self.client);
            let stream = connector.connect(self.name?, stream).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

pub(super) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
