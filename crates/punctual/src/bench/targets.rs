//! Targets that are slow, take work over, or are dead: many origins on this machine, on a thread of their own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::{Clock as _, SystemClock};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::http::broken;
use super::lock;
use crate::failure::Failure;

/// What they do with every request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Manner {
    /// Answer 200 after so long.
    After(Duration),
    /// Answer 202, and keep the token.
    TakeOver,
}

#[derive(Default)]
struct Seen {
    under_way: AtomicUsize,
    /// Milliseconds from the slot to the arrival.
    late: Mutex<Vec<f64>>,
    /// Runs that were taken over, with the tokens of their attempts.
    tokens: Mutex<Vec<(String, String)>>,
}

pub(super) struct Targets {
    pub origins: Vec<SocketAddr>,
    seen: Arc<Seen>,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// A queue long enough for every attempt to connect at once: a lost SYN costs a second.
const BACKLOG: u32 = 16_384;

fn listen(address: Ipv4Addr, backlog: u32) -> std::io::Result<std::net::TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((address, 0)))?;
    socket.listen(backlog)?.into_std()
}

/// The first of many addresses of this machine alone; those that follow it are, too.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);

impl Targets {
    /// Origins that have a listener each, on one address.
    pub(super) fn start(origins: usize, manner: Manner) -> Result<Self, Failure> {
        Self::on(origins, Ipv4Addr::LOCALHOST, manner)
    }

    /// Origins that have an address each, behind one listener: as many as nobody has ports and files for.
    pub(super) fn start_many(origins: u32, manner: Manner) -> Result<Self, Failure> {
        let mut targets = Self::on(1, Ipv4Addr::UNSPECIFIED, manner)?;
        let ports: Vec<u16> = targets.origins.iter().map(SocketAddr::port).collect();
        let addresses = (0..origins).map(|number| Ipv4Addr::from_bits(FIRST.to_bits() + number));
        targets.origins = addresses
            .flat_map(|address| {
                ports
                    .iter()
                    .map(move |port| SocketAddr::from((address, *port)))
            })
            .collect();
        Ok(targets)
    }

    fn on(listeners: usize, address: Ipv4Addr, manner: Manner) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        let (stop, seen) = (CancellationToken::new(), Arc::new(Seen::default()));
        let listeners: Vec<std::net::TcpListener> = {
            let _inside = runtime.enter();
            let listeners = (0..listeners).map(|_| listen(address, BACKLOG));
            listeners.collect::<std::io::Result<_>>().map_err(broken)?
        };
        let addresses = listeners.iter().map(std::net::TcpListener::local_addr);
        let addresses: std::io::Result<Vec<_>> = addresses.collect();
        let (stopped, noted) = (stop.clone(), Arc::clone(&seen));
        let serve = async move {
            for listener in listeners {
                tokio::spawn(accept(listener, manner, Arc::clone(&noted)));
            }
            stopped.cancelled().await;
        };
        let thread = std::thread::Builder::new().name("targets".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve));
        Ok(Self {
            origins: addresses.map_err(broken)?,
            seen,
            stop,
            thread: Some(thread.map_err(broken)?),
        })
    }

    /// Requests that came and are not answered yet.
    pub(super) fn under_way(&self) -> usize {
        self.seen.under_way.load(Ordering::Acquire)
    }

    /// How late requests came, in milliseconds; only once.
    pub(super) fn late(&self) -> Vec<f64> {
        std::mem::take(&mut *lock(&self.seen.late))
    }

    /// What was taken over so far.
    pub(super) fn taken_over(&self) -> usize {
        lock(&self.seen.tokens).len()
    }

    pub(super) fn tokens(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *lock(&self.seen.tokens))
    }
}

async fn accept(listener: std::net::TcpListener, manner: Manner, seen: Arc<Seen>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _slower = stream.set_nodelay(true);
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            let answer = service_fn(async |request| answer(request, manner, &seen).await);
            let _closed = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    manner: Manner,
    seen: &Seen,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let now = SystemClock.now_micros();
    let (head, body) = request.into_parts();
    let _read = body.collect().await;
    if let Some(slot) = slot_of(&head.headers) {
        lock(&seen.late).push((now - slot) as f64 / 1_000.0);
    }
    let mut response = Response::new(Full::new(Bytes::from_static(b"ok")));
    match manner {
        Manner::After(time) => {
            seen.under_way.fetch_add(1, Ordering::AcqRel);
            if !time.is_zero() {
                SystemClock.sleep(time).await;
            }
            seen.under_way.fetch_sub(1, Ordering::AcqRel);
        }
        Manner::TakeOver => {
            let text = |name| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
            let both = text("punctual-run").zip(text("punctual-token"));
            lock(&seen.tokens).extend(both);
            *response.status_mut() = StatusCode::ACCEPTED;
        }
    }
    Ok(response)
}

/// The slot that a request is for, in microseconds since the epoch.
fn slot_of(headers: &HeaderMap) -> Option<i64> {
    let slot = headers.get("punctual-slot")?.to_str().ok()?;
    Some(model::Timestamp::parse(slot).ok()?.as_millis() * 1_000)
}

/// An origin that never answers, not even to connect: its queue is full.
pub(super) struct DeadHost {
    pub origin: SocketAddr,
    _listener: std::net::TcpListener,
    _queued: Vec<TcpStream>,
}

impl DeadHost {
    pub(super) async fn start() -> Result<Self, Failure> {
        let listener = listen(Ipv4Addr::LOCALHOST, 1).map_err(broken)?;
        let origin = listener.local_addr().map_err(broken)?;
        let mut queued = Vec::new();
        // More than the queue takes: the last of them is not answered.
        for _ in 0..8 {
            let connect = TcpStream::connect(origin);
            let soon = Duration::from_millis(200);
            let connected = tokio::select! {
                biased;
                stream = connect => stream.map_err(broken)?,
                () = SystemClock.sleep(soon) => return Ok(Self { origin, _listener: listener, _queued: queued }),
            };
            queued.push(connected);
        }
        Err(Failure::refused(
            "an origin cannot be made dead on this machine",
        ))
    }
}
