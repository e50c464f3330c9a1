//! Workloads that cross a socket: callbacks, and creating over REST. Receiver, server and clients
//! share the machine's cores, and so do the floors.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use executor::Registry;
use executor::http::HttpExecutor;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use store::Store;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::figures::Figures;
use super::rig::{self, Base, Place};
use super::{floor, floor_pg};
use crate::failure::Failure;

/// What PostgreSQL's bar is about, and what brings SQLite's commits together best.
fn clients(base: &Base) -> usize {
    if base.is_database() { 32 } else { 64 }
}

pub fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("the bench's own connection failed: {error}"))
}

/// A receiver that reads the request and answers 200, on a thread of its own.
struct Receiver {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Receiver {
    fn start() -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        // A queue long enough for every attempt to connect at once: a lost SYN costs a second.
        let listen = || -> std::io::Result<std::net::TcpListener> {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            socket.listen(4_096)?.into_std()
        };
        let listener = listen().map_err(broken)?;
        let address = listener.local_addr().map_err(broken)?;
        let thread = std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || runtime.block_on(Self::receive(listener, stopped)))
            .map_err(broken)?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    async fn receive(listener: std::net::TcpListener, stop: CancellationToken) {
        let Ok(listener) = TcpListener::from_std(listener) else {
            return;
        };
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else { continue };
            let _slower = stream.set_nodelay(true);
            tokio::spawn(async move {
                let answer = service_fn(async |request: Request<hyper::body::Incoming>| {
                    let _body = request.into_body().collect().await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
                });
                let _closed = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

pub async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A request with a body of JSON.
pub fn request(
    method: Method,
    path: &str,
    address: SocketAddr,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failure> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .body(Full::new(body))
        .map_err(broken)
}

/// Sends a request, and waits for all of its answer.
pub async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(broken)?;
    Ok((status, body.to_bytes()))
}

/// Posts `count` requests over `clients` connections, each waiting for its answer. Answers the rate.
async fn posts(
    address: SocketAddr,
    path: &'static str,
    body: Bytes,
    clients_max: usize,
    count: usize,
) -> Result<f64, Failure> {
    let left = Arc::new(AtomicUsize::new(count));
    let mut clients = tokio::task::JoinSet::new();
    let begun = rig::uptime();
    for _ in 0..clients_max {
        let mut sender = connect(address).await?;
        let (left, body) = (Arc::clone(&left), body.clone());
        clients.spawn(async move {
            while left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                let request = request(Method::POST, path, address, body.clone())?;
                let (status, _) = ask(&mut sender, request).await?;
                if !status.is_success() {
                    return Err(Failure::refused(format!("the server answered {status}")));
                }
            }
            Ok(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(broken)??;
    }
    let took = rig::uptime().saturating_sub(begun);
    Ok(count as f64 / took.as_secs_f64())
}

/// Callbacks: fire, call, answer, settled.
pub async fn callbacks(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    const COUNT: usize = 100_000;
    let receiver = Receiver::start()?;
    let place = Place::new(base)?;
    let store = place.open().await?;
    let target = rig::callback(&format!("http://{}/hook", receiver.address))?;
    let jobs = rig::overdue(COUNT, &target);
    rig::load(&*store, &jobs).await?;
    drop(jobs);
    let http = HttpExecutor::new().map_err(rig::failed)?;
    let registry = Registry::default().with("http", Arc::new(http));
    let begun = rig::uptime();
    let node = rig::start(&place, &store, registry).await?;
    let metrics = node.handle().metrics().clone();
    rig::wait("the callbacks", async || {
        metrics.dispatched.get() >= COUNT as u64 && rig::is_settled(&*store).await
    })
    .await?;
    let rate = COUNT as f64 / rig::uptime().saturating_sub(begun).as_secs_f64();
    node.stop(Duration::from_secs(5)).await;
    drop(store);
    place.end().await?;
    let figures = Figures::new("http").with("callbacks", rate, "/s");
    if !with_floor {
        return Ok(figures);
    }
    let body = Bytes::from_static(br#"{"order":4711,"customer":"c-90210","sum":"129.90"}"#);
    // One thread is what serves a bare client best.
    let address = receiver.address;
    let alone = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .map_err(broken)?
            .block_on(posts(address, "/hook", body, 64, COUNT * 2))
    });
    let floor = alone.await.map_err(broken)??;
    Ok(figures.against(floor, 0.35))
}

/// A server on a store of its own.
pub struct Served {
    pub address: SocketAddr,
    pub store: Arc<dyn Store>,
    stop: CancellationToken,
    node: engine::Node,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    pub async fn start(place: &Place, registry: Registry) -> Result<Self, Failure> {
        let store = place.open().await?;
        let node = rig::start(place, &store, registry).await?;
        let access = Arc::new(server::Access::for_anyone());
        let api = server::Api::new(store.clone(), node.handle(), access);
        let router = server::router(api);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(broken)?;
        let address = listener.local_addr().map_err(broken)?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            server::serve(listener, router, Vec::new(), stopped).await;
        });
        Ok(Self {
            address,
            store,
            stop,
            node,
            task,
        })
    }

    pub async fn stop(self) {
        self.stop.cancel();
        let _ended = self.task.await;
        self.node.stop(Duration::from_secs(5)).await;
    }
}

pub fn job_body() -> Bytes {
    let body = json!({
        "schedule": {"in": "1h"}, "target": "http://127.0.0.1:9/hook",
        "payload": {"order": 4711, "customer": "c-90210", "sum": "129.90"},
    });
    Bytes::from(body.to_string())
}

/// Creating one by one over REST, from many clients.
pub async fn create(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    const COUNT: usize = 30_000;
    let place = Place::new(base)?;
    let served = Served::start(&place, Registry::default()).await?;
    let rate = posts(served.address, "/v1/jobs", job_body(), clients(base), COUNT).await?;
    served.stop().await;
    place.end().await?;
    let figures = Figures::new("create").with("jobs", rate, "/s");
    if !with_floor {
        return Ok(figures);
    }
    let place = Place::new(base)?;
    match &place {
        Place::Folder(folder) => {
            let floor = floor::insert_jobs(folder.path(), 1, 5_000)?;
            Ok(figures.against(floor, 3.0))
        }
        Place::Schema(schema) => {
            let floor = floor_pg::pgbench(schema, clients(base), 4).await?;
            place.end().await?;
            Ok(figures.against(floor, 0.8))
        }
    }
}
