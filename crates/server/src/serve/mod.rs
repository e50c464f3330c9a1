//! Connections in bounds: how many, how long a request's head may take, how large it may be, how long
//! nothing may happen, and how they end when the node stops.

mod hosts;
mod large;
mod watched;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Version, header};
use axum::response::IntoResponse;
use engine::{Clock, SystemClock};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::Service;

use hosts::Hosts;
use watched::{Activity, Watched};

/// The head of a request must be complete within this; an idle connection is closed after it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers of one request.
const HEADERS_MAX: usize = 64;
/// Bytes of a request's head; beyond that the answer is 431.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// A connection on which no byte has moved for this long, either way, is closed. Longer than any
/// request may take.
const IDLE_MAX: Duration = Duration::from_secs(45);
/// How often that is looked at.
const IDLE_LOOK: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 4_096;

/// Serves until `stop` is cancelled; then takes no more connections, and returns when the requests
/// under way have ended. How long they get is for the caller to say. On a loopback address it answers to `names`, and
/// to those of this machine.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    names: Vec<String>,
    stop: CancellationToken,
) {
    let clock = SystemClock;
    let hosts = Hosts::new(listener.local_addr().ok(), &names);
    let builder = builder();
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, permit) = match accepted {
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
        let activity = Activity::default();
        let io = TokioIo::new(Watched::new(stream, activity.clone()));
        let (router, hosts) = (router.clone(), hosts.clone());
        let service = service_fn(move |request| answer(router.clone(), hosts.clone(), request));
        let connection = builder.serve_connection(io, service).into_owned();
        tokio::spawn(keep(graceful.watch(connection), activity, permit));
    }
    drop(listener);
    graceful.shutdown().await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(HEAD_TIMEOUT);
    builder
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn answer(
    mut router: Router,
    hosts: Hosts,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let Err(problem) = hosts.check(&request) else {
        return router.call(request.map(Body::new)).await;
    };
    tracing::debug!(detail = problem.detail, "a request was refused at the door");
    let mut response = problem.into_response();
    if request.version() <= Version::HTTP_11 {
        // What else such a client has sent is not looked at.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response)
}

/// Drives a connection to its end, or until it has stood still for too long.
async fn keep<E: std::fmt::Debug>(
    connection: impl Future<Output = Result<(), E>>,
    activity: Activity,
    permit: OwnedSemaphorePermit,
) {
    tokio::select! {
        biased;
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(?error, "a connection ended early");
            }
        }
        () = stood_still(activity) => tracing::debug!("a connection stood still"),
    }
    drop(permit);
}

async fn stood_still(activity: Activity) {
    let clock = SystemClock;
    let mut last = activity.count();
    let mut since = clock.uptime();
    loop {
        clock.sleep(IDLE_LOOK).await;
        let count = activity.count();
        if count != last {
            (last, since) = (count, clock.uptime());
        } else if clock.uptime().saturating_sub(since) >= IDLE_MAX {
            return;
        }
    }
}
