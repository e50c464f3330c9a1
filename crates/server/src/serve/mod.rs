//! Connections in bounds: how many, with TLS or without, how long a request's head may take, how large it may be, how long
//! nothing may happen, and how they end when the node stops.

mod bounds;
mod cors;
mod door;
mod headers;
mod hosts;
mod idle;
mod large;
mod link;
mod proxies;
mod shares;
mod tls;
mod watched;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use engine::{Clock, SystemClock};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub use bounds::Bounds;
use bounds::{HEAD_BYTES_MAX, HEADERS_MAX};
pub use cors::Origin;
pub use door::Door;
use door::Opened;
use idle::{Answered, Idle, Requests, Watch};
use link::Link;
pub use proxies::{Proxies, ProxyHeader};
use shares::{Share, Shares};
pub use tls::{Tls, TlsError, TlsFiles};
use watched::{Activity, Watched};

/// How long to wait when no connection can be accepted, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is cancelled; then takes no more connections, and returns when the requests
/// under way have ended. How long they get is for the caller to say.
pub async fn serve(listener: TcpListener, router: Router, door: Door, stop: CancellationToken) {
    let clock = SystemClock;
    let door = Arc::new(door.opened(listener.local_addr().ok(), router));
    let builder = Arc::new(door.bounds.builder());
    // Every guest has one end: when all are gone, so is the last.
    let (guests, mut gone) = mpsc::channel::<Infallible>(1);
    // Whoever is to go finds that nobody else comes any more.
    let closed = CancellationToken::new();
    let shares = Shares::new(door.bounds.of_address());
    let room = Arc::new(Semaphore::new(door.bounds.connections_max));
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, address, permit) = match accepted {
            Ok(accepted) => {
                failing = false;
                accepted
            }
            Err(error) => {
                // Once for a row of them: a log that fills up helps nobody.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "a connection could not be accepted");
                }
                clock.sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_proxy = door.proxies.trusts(address.ip());
        let Some(share) = shares.take(address.ip(), is_proxy) else {
            continue;
        };
        // Answers are small and whole: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let guest = Guest {
            address,
            door: Arc::clone(&door),
            builder: Arc::clone(&builder),
            stopped: closed.clone(),
            _present: guests.clone(),
            _room: (permit, share),
        };
        let stopped = stop.clone();
        tokio::spawn(async move {
            // Nobody waits at the end for those who have not said what they want.
            let link = tokio::select! {
                biased;
                () = stopped.cancelled() => None,
                link = guest.link(stream) => link,
            };
            if let Some(link) = link {
                guest.attend(link).await;
            }
        });
    }
    drop((listener, guests));
    closed.cancel();
    while gone.recv().await.is_some() {}
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    Ok((stream, address, permit))
}

/// Whoever has connected.
struct Guest {
    address: SocketAddr,
    door: Arc<Opened>,
    builder: Arc<Builder<TokioExecutor>>,
    stopped: CancellationToken,
    _present: mpsc::Sender<Infallible>,
    /// What it takes up.
    _room: (OwnedSemaphorePermit, Share),
}

impl Guest {
    /// What the two of us talk over; none if we do not get so far.
    async fn link(&self, stream: TcpStream) -> Option<Link> {
        let Some(tls) = &self.door.tls else {
            return Some(Link::Plain(stream));
        };
        let late = Clock::sleep(&SystemClock, self.door.bounds.handshake_wait);
        let why = tokio::select! {
            biased;
            agreed = tls.accept(stream) => match agreed {
                Ok(stream) => return Some(Link::Tls(Box::new(stream))),
                Err(error) => error.to_string(),
            },
            () = late => "it took too long".to_owned(),
        };
        tracing::debug!(address = %self.address, why, "no TLS came about");
        None
    }

    /// Answers to the end of the connection, or until it has served nobody for too long.
    async fn attend(self, link: Link) {
        let (activity, requests) = (Activity::default(), Arc::<Requests>::default());
        let io = TokioIo::new(Watched::new(link, activity.clone()));
        let (address, bounds) = (self.address.ip(), self.door.bounds);
        let service = service_fn(|request| {
            let (door, under_way) = (Arc::clone(&self.door), requests.begin());
            async move {
                let answered = door.answer(address, request).await;
                answered.map(|answer| {
                    answer.map(|body| Answered {
                        body,
                        _request: under_way,
                    })
                })
            }
        });
        let mut connection = pin!(self.builder.serve_connection(io, service));
        let mut watch = Watch::new(activity, Arc::clone(&requests), bounds);
        let mut is_ending = false;
        loop {
            let why = tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(?error, "a connection ended early");
                    }
                    return;
                }
                () = self.stopped.cancelled(), if !is_ending => None,
                idle = watch.idle() => Some(idle),
            };
            match why {
                Some(Idle::Still) => return tracing::debug!("a connection stood still"),
                // It was given time to end by itself.
                Some(Idle::Unused) if is_ending => {
                    return tracing::debug!("a connection did not end");
                }
                Some(Idle::Unused) | None => {}
            }
            // What is under way is answered first.
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}
