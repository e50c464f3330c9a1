//! From an origin to an open link: resolve, dial, TLS.

use hyper::Uri;
use hyper::client::conn::http1;
use hyper::http::uri::{Authority, Scheme};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::broken::Broken;
use super::link::Link;
use super::names::Names;
use super::tls;

/// Bytes of an answer's head, and of what is read ahead of whoever reads its body.
const HEAD_MAX: usize = 64 * 1024;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Whom a link is connected to. Names compare without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    secure: bool,
    authority: Authority,
}

impl Origin {
    pub(super) fn of(url: &Uri) -> Result<Self, Broken> {
        let authority = url.authority().cloned().ok_or(Broken::NoHost)?;
        Ok(Self {
            secure: url.scheme() == Some(&Scheme::HTTPS),
            authority,
        })
    }

    /// The host as it is resolved and as a certificate names it: IPv6 without its brackets.
    fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(host)
    }

    fn port(&self) -> u16 {
        self.authority
            .port_u16()
            .unwrap_or(if self.secure { 443 } else { 80 })
    }

    fn unreachable(&self, cause: Option<std::io::Error>) -> Broken {
        Broken::Unreachable {
            authority: self.authority.clone(),
            cause,
        }
    }
}

pub(super) struct Connector {
    names: Names,
    tls: TlsConnector,
    http: http1::Builder,
}

impl Connector {
    pub(super) fn new(tls: TlsConnector) -> Self {
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_MAX).max_header_size(HEAD_MAX);
        Self {
            names: Names::default(),
            tls,
            http,
        }
    }

    pub(super) async fn open(&self, origin: &Origin) -> Result<Link, Broken> {
        let socket = self.dial(origin).await?;
        if !origin.secure {
            return self.link(socket).await;
        }
        let name = ServerName::try_from(origin.host().to_owned()).map_err(|_| {
            let detail = "no certificate can name this host".to_owned();
            Broken::Certificate {
                authority: origin.authority.clone(),
                detail,
            }
        })?;
        let refused = |cause| tls::refused(&origin.authority, cause);
        self.link(self.tls.connect(name, socket).await.map_err(refused)?)
            .await
    }

    /// Connects to the first address that answers. This is the one place where an address is
    /// dialled, and it is the resolved one: a rule about addresses belongs here.
    async fn dial(&self, origin: &Origin) -> Result<TcpStream, Broken> {
        let mut last = None;
        let addresses = self.names.resolve(origin.host()).await?;
        for address in addresses.iter().take(ADDRESSES_MAX) {
            match TcpStream::connect((*address, origin.port())).await {
                Ok(socket) => {
                    socket
                        .set_nodelay(true)
                        .map_err(|cause| origin.unreachable(Some(cause)))?;
                    return Ok(socket);
                }
                Err(cause) => last = Some(cause),
            }
        }
        Err(origin.unreachable(last))
    }

    async fn link<T>(&self, socket: T) -> Result<Link, Broken>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, driver) = self
            .http
            .handshake(TokioIo::new(socket))
            .await
            .map_err(Broken::Cut)?;
        // What goes wrong on a link is told to whoever has a request on it; an idle one just ends.
        let driver = tokio::spawn(async move { driver.await.unwrap_or_default() });
        Ok(Link::new(sender, driver.abort_handle()))
    }
}
