//! From an origin to an open link: dial, or the way through a proxy; TLS.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use hyper::Uri;
use hyper::client::conn::{http1, http2};
use hyper::http::uri::{Authority, Scheme};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::Proxy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::broken::Broken;
use super::link::Link;
use super::shared::Shared;
use super::tls::{self, Connectors};
use super::tunnel;
use crate::egress::Dialer;
use crate::{Identity, Progress};

/// Bytes of an answer's head, and of what is read ahead of whoever reads its body.
const HEAD_MAX: usize = 64 * 1024;

/// Bytes that a peer may send ahead of whoever reads them: of one answer, which is more than is read of any, and of all
/// answers of a connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

const _: () = assert!(STREAM_WINDOW as usize >= model::limits::OUTPUT_MAX);

/// What drives a connection; nothing that runs under its lock can leave it half done.
fn hold<T>(driver: &Mutex<T>) -> MutexGuard<'_, T> {
    driver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whom a link is connected to. Names compare without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    secure: bool,
    authority: Authority,
    /// Whose certificates its links were made with: those of others are no use to it.
    identity: Option<[u8; 32]>,
    /// What its links lead through: they are of no use to whoever has another way.
    proxy: Option<Arc<Proxy>>,
}

impl Origin {
    pub(super) fn of(url: &Uri) -> Result<Self, Broken> {
        let authority = url.authority().cloned().ok_or(Broken::NoHost)?;
        Ok(Self {
            secure: url.scheme() == Some(&Scheme::HTTPS),
            authority,
            identity: None,
            proxy: None,
        })
    }

    /// The same, called with certificates of its own, and through a proxy.
    pub(super) fn with(mut self, identity: Option<&Identity>, proxy: Option<&Arc<Proxy>>) -> Self {
        self.identity = identity.map(|identity| identity.id);
        self.proxy = proxy.cloned();
        self
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
}

pub(super) struct Connector {
    dialer: Arc<Dialer>,
    tls: Connectors,
    http: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Connector {
    pub(super) fn new(dialer: Arc<Dialer>, tls: Connectors) -> Self {
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_MAX).max_header_size(HEAD_MAX);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .max_header_list_size(HEAD_MAX as u32)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        Self {
            dialer,
            tls,
            http,
            http2,
        }
    }

    pub(super) async fn open(
        &self,
        origin: &Origin,
        identity: Option<&Identity>,
        progress: &Progress,
    ) -> Result<Link, Broken> {
        // Before anyone is called: certificates that cannot be used are nobody else's fault.
        let tls = self.tls.of(identity)?;
        let begun = progress.now();
        let (socket, peer) = match &origin.proxy {
            None => self.dial(origin).await?,
            // Boxed because few have one.
            Some(proxy) => Box::pin(self.tunnel(origin, proxy, progress)).await?,
        };
        progress.connected(begun);
        progress.reached(peer);
        if !origin.secure {
            return Ok(self.link(socket).await?.to(peer));
        }
        let name = ServerName::try_from(origin.host().to_owned()).map_err(|_| {
            let detail = "no certificate can name this host".to_owned();
            Broken::Certificate {
                authority: origin.authority.clone(),
                detail,
                is_unknown: false,
            }
        })?;
        let refused = |cause| tls::refused(&origin.authority, cause);
        let begun = progress.now();
        let socket = tls.connect(name, socket).await.map_err(refused)?;
        progress.secured(begun);
        let link = if socket.get_ref().1.alpn_protocol() == Some(tls::H2) {
            self.stream(socket).await?
        } else {
            self.link(socket).await?
        };
        Ok(link.to(peer))
    }

    async fn dial(&self, origin: &Origin) -> Result<(TcpStream, Option<SocketAddr>), Broken> {
        let dialled = self.dialer.dial(origin.host(), origin.port()).await;
        let socket = dialled.map_err(|error| Broken::undialled(&origin.authority, error))?;
        let peer = socket.peer_addr().ok();
        Ok((socket, peer))
    }

    /// What is shown as the peer is the target, by the address that was checked.
    async fn tunnel(
        &self,
        origin: &Origin,
        proxy: &Proxy,
        progress: &Progress,
    ) -> Result<(TcpStream, Option<SocketAddr>), Broken> {
        let found = self.dialer.addresses(origin.host(), origin.port()).await;
        let found = found.map_err(|error| Broken::undialled(&origin.authority, error))?;
        progress.waits_for_proxy(Some(proxy.address()));
        let (socket, peer) = tunnel::open(&self.dialer, proxy, &found).await?;
        progress.waits_for_proxy(None);
        Ok((socket, Some(peer)))
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
        // What goes wrong on a link is reported to whoever has a request on it; an idle one just ends.
        let driver = tokio::spawn(async move { driver.await.unwrap_or_default() });
        Ok(Link::new(sender, driver.abort_handle()))
    }

    /// The first stream of a connection that others can use too.
    async fn stream<T>(&self, socket: T) -> Result<Link, Broken>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, driver) = self
            .http2
            .handshake(TokioIo::new(socket))
            .await
            .map_err(Broken::Cut)?;
        // Shared with whoever wants to know what the peer allows, and gone when it has ended: that closes the sender.
        let driver = Arc::new(Mutex::new(Some(driver)));
        let allowed = {
            let driver = Arc::clone(&driver);
            Box::new(move || {
                let driver = hold(&driver);
                driver
                    .as_ref()
                    .map_or(0, |it| it.current_max_send_streams())
            })
        };
        let driven = poll_fn(move |cx| {
            let mut held = hold(&driver);
            let polled = held.as_mut().map(|driver| Pin::new(driver).poll(cx));
            if polled.is_some_and(|polled| polled.is_pending()) {
                return Poll::Pending;
            }
            *held = None;
            Poll::Ready(())
        });
        let driver = tokio::spawn(driven);
        let shared = Shared::new(sender, (driver.abort_handle(), allowed));
        Ok(Link::on(shared.open(), None))
    }
}
