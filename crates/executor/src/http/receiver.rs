//! A receiver for tests: raw sockets that do exactly what a script says, and remember what came.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::target::HttpTarget;
use model::{
    AttemptNo, Definition, Job, JobId, Report, RunId, Schedule, Slot, Target, TenantId, Timestamp,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::HttpExecutor;
use crate::egress::{Dialer, Egress};
use crate::{Executor, Progress, Stopwatch, WorkOrder};

pub(super) const SLOT: Slot = Slot(Timestamp::from_millis(1_798_138_800_000));
pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What a receiver does with a request that it has read.
#[derive(Clone)]
pub(super) enum Step {
    Say(Vec<u8>),
    /// One byte at a time, with pauses.
    Drip(Vec<u8>),
    /// Again and again, for as long as someone reads.
    Flood(Vec<u8>),
    /// Nothing, until the caller goes away.
    Hang,
    Close,
    Reset,
}

pub(super) fn say(text: impl Into<Vec<u8>>) -> Vec<Step> {
    vec![Step::Say(text.into())]
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let first = found.next();
        assert!(found.next().is_none(), "{name} came twice");
        first.map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
pub(super) struct Log {
    pub(super) seen: Mutex<Vec<Seen>>,
    accepted: AtomicUsize,
    gone: AtomicUsize,
    went: Notify,
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    pub(super) log: Arc<Log>,
}

impl Receiver {
    /// Plays the same steps for every request.
    pub(super) async fn playing(steps: Vec<Step>) -> Self {
        Self::scripted(move |_| steps.clone()).await
    }

    /// Plays the steps that `script` has for the n-th request, counted from 0.
    pub(super) async fn scripted(
        script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let (script, shared) = (Arc::new(script), log.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                socket.set_nodelay(true).unwrap();
                tokio::spawn(serve(socket, script.clone(), shared.clone()));
            }
        });
        Self { address, log }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Connections so far.
    pub(super) fn accepted(&self) -> usize {
        self.log.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().unwrap().clone()
    }

    /// Waits until `count` connections have ended.
    pub(super) async fn ended(&self, count: usize) {
        soon(async {
            while self.log.gone.load(Ordering::SeqCst) < count {
                self.log.went.notified().await;
            }
        })
        .await;
    }
}

async fn serve(mut socket: TcpStream, script: Arc<impl Fn(usize) -> Vec<Step>>, log: Arc<Log>) {
    exchange(&mut socket, &*script, &log).await;
    drop(socket);
    log.gone.fetch_add(1, Ordering::SeqCst);
    log.went.notify_one();
}

async fn exchange(socket: &mut TcpStream, script: &impl Fn(usize) -> Vec<Step>, log: &Log) {
    while let Some(seen) = read(socket).await {
        let no = {
            let mut all = log.seen.lock().unwrap();
            all.push(seen);
            all.len() - 1
        };
        for step in script(no) {
            match step {
                Step::Say(bytes) => socket.write_all(&bytes).await.unwrap_or_default(),
                Step::Drip(bytes) => {
                    for byte in bytes {
                        pause(5).await;
                        if socket.write_all(&[byte]).await.is_err() {
                            return;
                        }
                    }
                }
                Step::Flood(bytes) => while socket.write_all(&bytes).await.is_ok() {},
                Step::Hang => while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {},
                Step::Close => return,
                Step::Reset => {
                    return socket.set_zero_linger().unwrap();
                }
            }
        }
    }
}

/// One request; none when the caller has gone.
pub(super) async fn read(socket: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<_> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut seen = Seen {
        line,
        headers,
        body: Vec::new(),
    };
    seen.body = vec![
        0;
        seen.header("content-length")
            .map_or(0, |n| n.parse().unwrap())
    ];
    socket.read_exact(&mut seen.body).await.ok()?;
    Some(seen)
}

/// One exchange that ends well, over any stream.
pub(super) async fn answer_ok(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<Seen> {
    let seen = read(socket).await?;
    socket.write_all(OK.as_bytes()).await.ok()?;
    Some(seen)
}

/// Fails a test that would otherwise wait for ever.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what)
        .await
        .expect("this takes too long")
}

pub(super) async fn pause(millis: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(millis), pending::<()>()).await;
}

pub(super) fn post(url: &str) -> HttpTarget {
    HttpTarget::new(url, None).unwrap()
}

pub(super) fn order(target: HttpTarget, payload: Option<&'static str>) -> WorkOrder {
    let id = JobId::new(SLOT.0, [7; 10]);
    let mut def = Definition::new(Schedule::from(SLOT), Target::Http(target));
    def.payload = payload.map(|text| Bytes::from_static(text.as_bytes()));
    let job = Job::new(id, TenantId::DEFAULT, None, def, SLOT.0);
    WorkOrder {
        run: RunId::for_slot(id, SLOT),
        attempt: AttemptNo(3),
        slot: Some(SLOT),
        job: Arc::new(job),
        payload: None,
        headers: None,
        env: None,
        trace: None,
        sent_at: SLOT.0,
        signer: None,
        path: None,
        identity: None,
        proxy: None,
        callback: None,
        node: "node-1".into(),
        progress: Progress::new(Arc::new(Machine)),
    }
}

/// What connects to receivers, which are on this machine.
pub(super) fn dialer() -> Arc<Dialer> {
    Arc::new(Dialer::new(Arc::new(Egress::unbounded())))
}

/// The machine's own time.
struct Machine;

impl Stopwatch for Machine {
    fn uptime(&self) -> Duration {
        tokio::time::Instant::now().duration_since(*BEGUN)
    }
}

static BEGUN: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);

pub(super) fn executor() -> HttpExecutor {
    HttpExecutor::new(dialer()).unwrap()
}

/// What an attempt came to, without how its answer came or whether one did.
pub(super) fn bare(mut report: Report) -> Report {
    (report.exchange, report.unreached) = (None, false);
    report
}

/// Delivers one order by a new executor.
pub(super) async fn deliver(target: HttpTarget) -> Report {
    soon(executor().execute(order(target, Some("{}")))).await
}
