//! A receiver for tests over TLS that speaks HTTP/2 or HTTP/1.1 alone, by hyper's own server.

use std::convert::Infallible;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderValue;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::HttpExecutor;
use super::receiver::{dialer, pause};

/// An executor that trusts these receivers.
pub(super) fn trusting() -> HttpExecutor {
    let authority = CertificateDer::from_pem_slice(include_bytes!("fixtures/authority.pem"));
    HttpExecutor::trusting(dialer(), [authority.unwrap()]).unwrap()
}

pub(super) fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(include_bytes!("fixtures/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("fixtures/server-key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    config.alpn_protocols = (protocols.iter())
        .map(|name| name.as_bytes().to_vec())
        .collect();
    TlsAcceptor::from(Arc::new(config))
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(Default)]
pub(super) struct Counts {
    seen: Mutex<Vec<Seen>>,
    /// Connections, and those of them that have ended.
    accepted: AtomicUsize,
    gone: AtomicUsize,
    /// Requests that hang, and those of them that have ended.
    pub(super) hanging: AtomicUsize,
    pub(super) ended: AtomicUsize,
    /// Closes a connection of HTTP/2 when it is notified, as soon as nothing is under way on it.
    pub(super) close: Notify,
}

impl Counts {
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) async fn all_gone(&self) {
        while self.gone.load(Ordering::SeqCst) < self.accepted() {
            pause(5).await;
        }
    }
}

pub(super) async fn at_least(count: &AtomicUsize, least: usize) {
    while count.load(Ordering::SeqCst) < least {
        pause(5).await;
    }
}

/// What it does is said by the path: `/ok`, `/hang`, `/flood`, `/busy`, `/moved`, or a status.
pub(super) struct TlsReceiver {
    pub(super) port: u16,
    pub(super) counts: Arc<Counts>,
}

impl TlsReceiver {
    /// It agrees on this protocol and no other, and has so many requests at once on a connection.
    pub(super) async fn speaking(protocol: &'static str, streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::new(Counts::default());
        let (acceptor, shared) = (acceptor(&[protocol]), counts.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, counts) = (acceptor.clone(), shared.clone());
                counts.accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    if let Ok(socket) = acceptor.accept(socket).await {
                        serve(socket, streams, counts.clone()).await;
                    }
                    counts.gone.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, counts }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }
}

async fn serve(socket: TlsStream<TcpStream>, streams: u32, counts: Arc<Counts>) {
    let is_http2 = socket.get_ref().1.alpn_protocol() == Some(b"h2");
    let shared = counts.clone();
    let service = service_fn(move |request| answer(request, counts.clone()));
    let socket = TokioIo::new(socket);
    if is_http2 {
        let mut server = http2::Builder::new(TokioExecutor::new());
        server.max_concurrent_streams(streams);
        let mut serving = pin!(server.serve_connection(socket, service));
        tokio::select! {
            _ = &mut serving => return,
            () = shared.close.notified() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    } else {
        let _ = http1::Builder::new()
            .serve_connection(socket, service)
            .await;
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(request: Request<Incoming>, counts: Arc<Counts>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let path = head.uri.path().to_owned();
    counts.seen.lock().unwrap().push(Seen {
        uri: head.uri,
        version: head.version,
        headers: head.headers,
        body: body.unwrap_or_default(),
    });
    let answer = match path.as_str() {
        "/hang" => {
            counts.hanging.fetch_add(1, Ordering::SeqCst);
            let _ended = Ended(counts);
            pending().await
        }
        "/flood" => Response::new(Flood.boxed()),
        "/ok" => Response::new(Full::from("ok").boxed()),
        "/moved" => {
            let mut answer = Response::new(Full::default().boxed());
            *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
            let location = HeaderValue::from_static("/ok");
            answer.headers_mut().insert("location", location);
            answer
        }
        "/busy" => {
            let mut answer = Response::new(Full::default().boxed());
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            answer.headers_mut().insert("retry-after", 7.into());
            answer
        }
        path => {
            let mut answer = Response::new(Full::default().boxed());
            let (_, status) = path.split_once('/').unwrap();
            *answer.status_mut() = status.parse().unwrap();
            answer
        }
    };
    Ok(answer)
}

/// Counts the end of a request that hangs.
struct Ended(Arc<Counts>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A body without end.
struct Flood;

impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 4096])))))
    }
}
