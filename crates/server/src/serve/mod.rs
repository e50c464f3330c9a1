//! Connections in bounds: how many, with TLS or without, how long a request's head may take, how large it may be, how long
//! nothing may happen, and how they end when the node stops.

mod bounds;
mod cors;
mod door;
mod headers;
mod hosts;
mod large;
mod link;
mod proxies;
mod tls;
mod watched;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use engine::{Clock, SystemClock};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub use bounds::Bounds;
use bounds::{HEAD_BYTES_MAX, HEADERS_MAX};
pub use cors::Origin;
pub use door::Door;
use door::Opened;
use link::Link;
pub use proxies::{Proxies, ProxyHeader};
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
    let graceful = GracefulShutdown::new();
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
        // Answers are small and whole: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let guest = Guest {
            address,
            door: Arc::clone(&door),
            builder: Arc::clone(&builder),
            watcher: graceful.watcher(),
            permit,
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
    drop(listener);
    graceful.shutdown().await;
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
    watcher: Watcher,
    permit: OwnedSemaphorePermit,
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

    /// Answers to the end of the connection.
    async fn attend(self, link: Link) {
        let activity = Activity::default();
        let io = TokioIo::new(Watched::new(link, activity.clone()));
        let (address, bounds) = (self.address.ip(), self.door.bounds);
        let door = self.door;
        let service = service_fn(move |request| Arc::clone(&door).answer(address, request));
        let connection = self.builder.serve_connection(io, service);
        keep(self.watcher.watch(connection), activity, bounds).await;
        drop(self.permit);
    }
}

/// Drives a connection to its end, or until it has stood still for too long.
async fn keep<E: std::fmt::Debug>(
    connection: impl Future<Output = Result<(), E>>,
    activity: Activity,
    bounds: Bounds,
) {
    tokio::select! {
        biased;
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(?error, "a connection ended early");
            }
        }
        () = stood_still(activity, bounds) => tracing::debug!("a connection stood still"),
    }
}

async fn stood_still(activity: Activity, bounds: Bounds) {
    let clock = SystemClock;
    let mut last = activity.count();
    let mut since = clock.uptime();
    loop {
        clock.sleep(bounds.idle_look()).await;
        let count = activity.count();
        if count != last {
            (last, since) = (count, clock.uptime());
        } else if clock.uptime().saturating_sub(since) >= bounds.idle_max {
            return;
        }
    }
}
