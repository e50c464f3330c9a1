//! Workloads that cross a socket: callbacks, and creating over REST. Receiver, server and clients
//! share the machine's cores, and so do the floors.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use executor::Registry;
use executor::egress::{Dialer, Egress};
use executor::http::HttpExecutor;
use executor::{Executor, Signer, WorkOrder};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use model::{Report, Role, TenantId};
use serde_json::json;
use store::Store;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::figures::{Bar, Figures};
use super::rig::{self, Base, Place};
use super::workloads::{self, COUNT};
use super::{floor, floor_pg};
use crate::failure::Failure;

/// What PostgreSQL's bar is about, and what brings SQLite's commits together best.
fn clients(base: &Base) -> usize {
    if base.is_database() { 32 } else { 64 }
}

pub(super) fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("the bench's own connection failed: {error}"))
}

/// A receiver that reads the request and answers 200, on a thread of its own.
pub(super) struct Receiver {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Receiver {
    pub(super) fn start() -> Result<Self, Failure> {
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

pub(super) async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A request with a body of JSON.
pub(super) fn request(
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

/// What is posted, and where to.
#[derive(Clone)]
struct Post {
    address: SocketAddr,
    path: &'static str,
    body: Bytes,
    /// The value of `authorization`.
    key: Option<HeaderValue>,
}

impl Post {
    fn request(&self) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = request(Method::POST, self.path, self.address, self.body.clone())?;
        if let Some(key) = &self.key {
            request.headers_mut().insert(AUTHORIZATION, key.clone());
        }
        Ok(request)
    }
}

/// Sends a request, and waits for all of its answer.
pub(super) async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    sender.ready().await.map_err(broken)?;
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(broken)?;
    Ok((status, body.to_bytes()))
}

/// Posts `count` requests over `clients` connections, each waiting for its answer. Answers the rate.
async fn posts(post: Post, clients_max: usize, count: usize) -> Result<f64, Failure> {
    let left = Arc::new(AtomicUsize::new(count));
    let mut clients = tokio::task::JoinSet::new();
    let begun = rig::uptime();
    for _ in 0..clients_max {
        let mut sender = connect(post.address).await?;
        let (left, post) = (Arc::clone(&left), post.clone());
        clients.spawn(async move {
            while left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                let (status, _) = send(&mut sender, post.request()?).await?;
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

/// Delivers signed, whatever its order says.
struct Signed {
    http: HttpExecutor,
    signer: Arc<Signer>,
}

#[async_trait::async_trait]
impl Executor for Signed {
    async fn execute(&self, mut order: WorkOrder) -> Report {
        order.signer = Some(Arc::clone(&self.signer));
        self.http.execute(order).await
    }
}

/// Fire, call, answer, settled: how many a second, signed or not; beside clients that read, if something is said of them.
pub(super) async fn called(
    base: &Base,
    receiver: &Receiver,
    signer: Option<Arc<Signer>>,
    beside: Option<Credentials>,
) -> Result<f64, Failure> {
    let place = Place::new(base)?;
    // As a drain begins: what was written with the jobs is at rest, and nothing of it is left to be sealed.
    let store = place.open_without_audit().await?;
    let target = rig::callback(&format!("http://{}/hook", receiver.address))?;
    rig::load(&*store, &rig::overdue(COUNT, &target)).await?;
    drop(store);
    place.rest().await?;
    let store = place.open().await?;
    // The receiver is on this machine.
    let dialer = Arc::new(Dialer::new(Arc::new(Egress::unbounded())));
    let http = HttpExecutor::new(dialer).map_err(rig::failed)?;
    let http: Arc<dyn Executor> = match signer {
        Some(signer) => Arc::new(Signed { http, signer }),
        None => Arc::new(http),
    };
    let registry = Registry::default().with("http", http);
    let begun = rig::uptime();
    let credentials = beside.unwrap_or(Credentials::Nothing);
    let served = Served::on(&place, Arc::clone(&store), registry, credentials).await?;
    let readers = beside.map(|_| Readers::start(&served));
    let metrics = served.node.handle().metrics().clone();
    rig::wait("the callbacks", async || {
        metrics.dispatched.get() >= COUNT as u64 && rig::is_settled(&*store).await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    let rate = COUNT as f64 / took.as_secs_f64();
    if let Some(readers) = readers {
        readers.end(took).await?;
    }
    served.stop().await;
    drop(store);
    place.end().await?;
    Ok(rate)
}

/// Clients that read beside callbacks, at a pace of their own: with their key, if the server wants one.
struct Readers {
    clients: tokio::task::JoinSet<Result<usize, Failure>>,
    stop: CancellationToken,
}

impl Readers {
    const CLIENTS: u32 = 128;
    /// Of each; together they make a thousand requests a second, where none takes longer than this.
    const APART: Duration = Duration::from_millis(128);

    fn start(served: &Served) -> Self {
        let stop = CancellationToken::new();
        let mut clients = tokio::task::JoinSet::new();
        for number in 0..Self::CLIENTS {
            let (address, key) = (served.address, served.key.clone());
            let stopped = stop.clone();
            let read = async move {
                let mut sender = connect(address).await?;
                let (mut done, mut next) =
                    (0, rig::uptime() + Self::APART / Self::CLIENTS * number);
                while !stopped.is_cancelled() {
                    rig::pause(next.saturating_sub(rig::uptime())).await;
                    next += Self::APART;
                    let mut request = request(Method::GET, "/v1/calendars", address, Bytes::new())?;
                    if let Some(key) = &key {
                        request.headers_mut().insert(AUTHORIZATION, key.clone());
                    }
                    let (status, _) = send(&mut sender, request).await?;
                    if !status.is_success() {
                        return Err(Failure::refused(format!("the server answered {status}")));
                    }
                    done += 1;
                }
                Ok(done)
            };
            clients.spawn(read);
        }
        Self { clients, stop }
    }

    /// They must have kept their pace, or less was measured than is said.
    async fn end(mut self, took: Duration) -> Result<(), Failure> {
        self.stop.cancel();
        let mut done = 0;
        while let Some(ended) = self.clients.join_next().await {
            done += ended.map_err(broken)??;
        }
        let wanted = took.as_secs_f64() / Self::APART.as_secs_f64() * f64::from(Self::CLIENTS);
        if (done as f64) < wanted / 2.0 {
            return Err(Failure::refused(format!(
                "only {done} requests were answered beside the callbacks, of {wanted:.0}"
            )));
        }
        Ok(())
    }
}

/// Callbacks beside what a bare client can do; and beside that and a drain, one after the other: what its parts allow.
pub(super) async fn callbacks(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    let receiver = Receiver::start()?;
    let rate = called(base, &receiver, None, None).await?;
    let figures = Figures::new("http").with("callbacks", rate, "/s");
    if !with_floor {
        return Ok(figures);
    }
    // One thread is what serves a bare client best.
    let post = Post {
        address: receiver.address,
        path: "/hook",
        body: Bytes::from_static(br#"{"order":4711,"customer":"c-90210","sum":"129.90"}"#),
        key: None,
    };
    let alone = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .map_err(broken)?
            .block_on(posts(post, 64, COUNT * 2))
    });
    let floor = alone.await.map_err(broken)??;
    let place = Place::new(base)?;
    let drained = workloads::drain(&place, rig::overdue(COUNT, &rig::no_op())).await?;
    place.end().await?;
    let parts = 1.0 / (1.0 / floor + 1.0 / drained.rate);
    let figures = figures
        .with("drain", drained.rate, "/s")
        .against(floor, if base.is_database() { 0.25 } else { 0.35 });
    Ok(figures.bar(Bar::at_least("ratio to its parts", rate / parts, 0.9)))
}

/// A server on a store of its own.
pub(super) struct Served {
    pub address: SocketAddr,
    pub store: Arc<dyn Store>,
    /// What its clients show, as the value of `authorization`.
    key: Option<HeaderValue>,
    stop: CancellationToken,
    node: engine::Node,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    pub(super) async fn start(place: &Place, registry: Registry) -> Result<Self, Failure> {
        Self::on(place, place.open().await?, registry, Credentials::Nothing).await
    }

    pub(super) async fn on(
        place: &Place,
        store: Arc<dyn Store>,
        registry: Registry,
        credentials: Credentials,
    ) -> Result<Self, Failure> {
        let node = rig::start_sealing(place, &store, registry).await?;
        let (access, key) = match credentials {
            Credentials::Nothing => (server::Access::for_anyone(), None),
            Credentials::Key => by_key(&store).await?,
        };
        let access = Arc::new(access);
        // Jobs of the bench call this machine, which a server allows only where it is said.
        let api = server::Api::new(store.clone(), node.handle(), Arc::clone(&access))
            .with_egress(Arc::new(Egress::unbounded()));
        let router = server::router(api);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(broken)?;
        let address = listener.local_addr().map_err(broken)?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let handle = node.handle();
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = server::serve(listener, router, server::Door::default(), stopped) => {}
                () = kept(access, handle) => {}
            }
        });
        Ok(Self {
            address,
            store,
            key,
            stop,
            node,
            task,
        })
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ended = self.task.await;
        self.node.stop(Duration::from_secs(5)).await;
    }
}

/// Keeps keys as they are in the store. Never ends, also where there are none.
async fn kept(access: Arc<server::Access>, engine: engine::Handle) {
    access.keep(engine).await;
    std::future::pending().await
}

/// A server that asks for a key, and the one that opens it.
async fn by_key(store: &Arc<dyn Store>) -> Result<(server::Access, Option<HeaderValue>), Failure> {
    let now = engine::Clock::now(&engine::SystemClock);
    let minted = server::Minted::new(TenantId::DEFAULT, Role::Admin, now);
    let made = store.access().create_key(&minted.key).await;
    made.map_err(rig::failed)?;
    let access = server::Access::by_keys(Arc::clone(store)).await;
    let key = HeaderValue::try_from(format!("Bearer {}", minted.text)).map_err(broken)?;
    Ok((access.map_err(rig::failed)?, Some(key)))
}

pub(super) fn job_body() -> Bytes {
    let body = json!({
        "schedule": {"in": "1h"}, "target": "http://127.0.0.1:9/hook",
        "payload": {"order": 4711, "customer": "c-90210", "sum": "129.90"},
    });
    Bytes::from(body.to_string())
}

/// What a server needs from those who call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    Nothing,
    Key,
}

/// Jobs that are created; and where the audit log is measured, which is sealed once a second, so many that it is.
pub(super) const CREATED: usize = 30_000;
pub(super) const AUDITED: usize = 90_000;

/// Whether new jobs are entered in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    Kept,
    Left,
}

/// How many jobs a second are created one by one over REST, from many clients.
pub(super) async fn created(
    base: &Base,
    credentials: Credentials,
    audit: Audit,
    count: usize,
) -> Result<f64, Failure> {
    let place = Place::new(base)?;
    let store = match audit {
        Audit::Kept => place.open().await?,
        Audit::Left => place.open_without_audit().await?,
    };
    let served = Served::on(&place, store, Registry::default(), credentials).await?;
    let post = Post {
        address: served.address,
        path: "/v1/jobs",
        body: job_body(),
        key: served.key.clone(),
    };
    let rate = posts(post, clients(base), count).await?;
    let sealed = served.store.access().last_seal().await;
    if sealed.map_err(rig::failed)?.is_none() && count >= AUDITED && audit == Audit::Kept {
        return Err(Failure::refused("nothing was sealed meanwhile"));
    }
    served.stop().await;
    place.end().await?;
    Ok(rate)
}

/// Creating one by one over REST.
pub(super) async fn create(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    let rate = created(base, Credentials::Nothing, Audit::Kept, CREATED).await?;
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
