//! The console beside much history: how long a server takes for its pages, how large they are, and what overviews cost that many
//! have open while jobs are due.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE, HeaderValue, SET_COOKIE};
use hyper::{Method, Request, Response, StatusCode};
use model::{Role, TenantId};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::child::Server;
use super::figures::{Bar, Figures, percentile};
use super::history::{self, Filled, Size};
use super::http::{self, broken};
use super::rig::{self, Base, Place};
use super::targets::{Manner, Targets};
use crate::failure::Failure;

/// How often each page is read.
const TIMES: usize = 100;
/// What a page may take of the server's time, and its map of slots.
const PAGE_MS: f64 = 50.0;
const MAP_MS: f64 = 150.0;
/// Kilobytes that a browser loads at first, and for each page after that.
const FIRST_KB: f64 = 150.0;
const LATER_KB: f64 = 40.0;
/// Overviews that are open at once, and how many a session may have.
const OVERVIEWS: usize = 200;
const OF_A_SESSION: usize = 15;
/// Jobs due every second beside them.
const RECURRING: usize = 200;
/// How long it is measured without overviews and with them.
const ALONE: Duration = Duration::from_secs(20);
/// How long a page waits from one read to the next, as its script does.
const BETWEEN: Duration = Duration::from_millis(1_500);

type Sender = SendRequest<Full<Bytes>>;

pub(super) async fn console(
    base: &Base,
    size: Size,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<Figures>, Failure> {
    let place = Place::new(base)?;
    let targets = Targets::start(1, Manner::After(Duration::ZERO))?;
    let origin = targets.origins.first().copied();
    let origin = origin.ok_or_else(|| Failure::refused("a target has no address"))?;
    let url = format!("http://{origin}/hook");
    let store = place.open_without_audit().await?;
    let filled = history::fill(&*store, size, &rig::callback(&url)?, progress).await?;
    let minted = server::Minted::new(TenantId::DEFAULT, Role::Root, rig::now());
    let made = store.access().create_key(&minted.key).await;
    made.map_err(rig::failed)?;
    let key = HeaderValue::try_from(format!("Bearer {}", minted.text)).map_err(broken)?;
    drop(store);
    place.rest().await?;
    let arguments = ["--egress-allow", "loopback", "--history-keep", "400d"];
    let server = Server::start(&place, &arguments)?;
    // What a start brings with it is over.
    rig::pause(Duration::from_secs(5)).await;
    let mut visits = Vec::new();
    for _ in 0..OVERVIEWS.div_ceil(OF_A_SESSION) {
        visits.push(Visit::begin(&server, &key).await?);
    }
    let pages = pages(&server, &visits, &filled).await?;
    recurring(&server, &key, &url).await?;
    let followed = followed(&server, &visits, &targets).await?;
    drop(server);
    place.end().await?;
    Ok(vec![pages, followed])
}

/// Somebody who has logged in.
#[derive(Clone)]
struct Visit {
    address: std::net::SocketAddr,
    cookie: HeaderValue,
}

impl Visit {
    async fn begin(server: &Server, key: &HeaderValue) -> Result<Self, Failure> {
        let address = server.address;
        let mut sender = http::connect(address).await?;
        let empty = Bytes::from_static(b"{}");
        let mut request = http::request(Method::POST, "/v1/console/links", address, empty)?;
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        let (status, body) = http::send(&mut sender, request).await?;
        let link: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = link.get("path").and_then(Value::as_str).unwrap_or_default();
        let token = path.rsplit('=').next().unwrap_or_default();
        let form = Bytes::from(format!("token={token}"));
        let mut request = http::request(Method::POST, "/login/link", address, form)?;
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert("content-type", kind);
        sender.ready().await.map_err(broken)?;
        let answer = sender.send_request(request).await.map_err(broken)?;
        let cookie = answer.headers().get(SET_COOKIE);
        let cookie = cookie.and_then(|it| it.to_str().ok()?.split(';').next());
        let cookie = cookie.ok_or_else(|| {
            Failure::refused(format!("logging in was answered {status} and no cookie"))
        })?;
        let cookie = HeaderValue::from_str(cookie).map_err(broken)?;
        Ok(Self { address, cookie })
    }

    fn get(&self, path: &str) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = http::request(Method::GET, path, self.address, Bytes::new())?;
        let headers = request.headers_mut();
        headers.insert(COOKIE, self.cookie.clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        Ok(request)
    }

    /// Reads a page: how long that took, in milliseconds, and its bytes as they came.
    async fn read(&self, sender: &mut Sender, path: &str) -> Result<(f64, Bytes), Failure> {
        let begun = rig::uptime();
        let (status, body) = http::send(sender, self.get(path)?).await?;
        let took = rig::uptime().saturating_sub(begun).as_secs_f64() * 1_000.0;
        if status != StatusCode::OK || body.is_empty() {
            return Err(Failure::refused(format!("{path} was answered {status}")));
        }
        Ok((took, body))
    }
}

/// Every page as often, one after another.
async fn pages(server: &Server, visits: &[Visit], filled: &Filled) -> Result<Figures, Failure> {
    let visit = visits.first();
    let visit = visit.ok_or_else(|| Failure::refused("nobody has logged in"))?;
    let mut sender = http::connect(server.address).await?;
    let busy = |at: usize| filled.busy.get(at % filled.busy.len().max(1));
    let of_job = |at: usize| format!("/jobs/{}", busy(at * 7).unwrap_or(&filled.minutely));
    let map = format!("/jobs/{}", filled.minutely);
    let lists = [
        ("jobs", "/jobs".to_owned()),
        ("jobs by label", "/jobs?label=team%3Dops".to_owned()),
        ("jobs by key", "/jobs?q=order-export-7".to_owned()),
        ("runs", "/runs".to_owned()),
        ("dead", "/dead".to_owned()),
        ("audit", "/audit".to_owned()),
    ];
    let mut figures = Figures::new("console").with("runs", filled.runs as f64, "");
    let (mut slowest, mut largest): (f64, f64) = (0.0, 0.0);
    let mut measured = async |path: &dyn Fn(usize) -> String| {
        let mut all = Vec::with_capacity(TIMES);
        for at in 0..TIMES {
            let (took, body) = visit.read(&mut sender, &path(at)).await?;
            largest = largest.max(body.len() as f64 / 1_000.0);
            all.push(took);
        }
        Ok::<f64, Failure>(percentile(&mut all, 99.0))
    };
    let overview = measured(&|_| "/".to_owned()).await?;
    figures = figures.with("overview", overview, " ms");
    slowest = slowest.max(overview);
    for (name, path) in &lists {
        let p99 = measured(&|_| path.clone()).await?;
        figures = figures.with(name, p99, " ms");
        slowest = slowest.max(p99);
    }
    let job = measured(&of_job).await?;
    let map = measured(&|_| map.clone()).await?;
    let first = first_load(visit, &mut sender).await?;
    Ok(figures
        .with("job", job, " ms")
        .with("map of a job due every minute", map, " ms")
        .with("first load", first, " kB")
        .with("largest page", largest, " kB")
        .bar(Bar::at_most("p99 of a page ms", slowest.max(job), PAGE_MS))
        .bar(Bar::at_most("p99 of the map ms", map, MAP_MS))
        .bar(Bar::at_most("first load kB", first, FIRST_KB))
        .bar(Bar::at_most("later page kB", largest, LATER_KB)))
}

/// The overview, with every file that it names, in kilobytes.
async fn first_load(visit: &Visit, sender: &mut Sender) -> Result<f64, Failure> {
    let (_, page) = visit.read(sender, "/").await?;
    let mut request = visit.get("/")?;
    request.headers_mut().remove(ACCEPT_ENCODING);
    let (_, plain) = http::send(sender, request).await?;
    let plain = String::from_utf8_lossy(&plain).into_owned();
    let mut bytes = page.len();
    for part in plain.split("\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap_or_default();
        bytes += visit
            .read(sender, &format!("/assets/{name}"))
            .await?
            .1
            .len();
    }
    Ok(bytes as f64 / 1_000.0)
}

/// Creates the jobs that are due beside.
async fn recurring(server: &Server, key: &HeaderValue, url: &str) -> Result<(), Failure> {
    let mut sender = http::connect(server.address).await?;
    for _ in 0..RECURRING {
        let job = json!({ "schedule": { "every": "PT1S" }, "target": url }).to_string();
        let job = Bytes::from(job);
        let mut request = http::request(Method::POST, "/v1/jobs", server.address, job)?;
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        let (status, body) = http::send(&mut sender, request).await?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            return Err(Failure::refused(format!(
                "a job was answered {status}: {said}"
            )));
        }
    }
    Ok(())
}

/// What the server spends in a second of time, in percent of a core, and how late its calls come.
async fn spent(server: &Server, targets: &Targets) -> Result<(f64, f64), Failure> {
    drop(targets.late());
    let (before, begun) = (server.spent()?, rig::uptime());
    rig::pause(ALONE).await;
    let took = rig::uptime().saturating_sub(begun).as_secs_f64();
    let spent = server.spent()?.saturating_sub(before).as_secs_f64();
    Ok((spent / took * 100.0, percentile(&mut targets.late(), 99.0)))
}

/// Jobs that are due every second, alone and beside overviews that follow them.
async fn followed(
    server: &Server,
    visits: &[Visit],
    targets: &Targets,
) -> Result<Figures, Failure> {
    rig::pause(Duration::from_secs(6)).await;
    let (alone, late_alone) = spent(server, targets).await?;
    let stop = CancellationToken::new();
    let mut overviews = JoinSet::new();
    let reads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for visit in visits.iter().cycle().take(OVERVIEWS) {
        let (visit, stop, reads) = (visit.clone(), stop.clone(), Arc::clone(&reads));
        overviews.spawn(async move { follow(&visit, &stop, &reads).await });
    }
    rig::pause(Duration::from_secs(6)).await;
    let before = reads.load(std::sync::atomic::Ordering::Acquire);
    let (beside, late_beside) = spent(server, targets).await?;
    let after = reads.load(std::sync::atomic::Ordering::Acquire);
    stop.cancel();
    while let Some(ended) = overviews.join_next().await {
        ended.map_err(broken)??;
    }
    Ok(Figures::new("open overviews")
        .with("alone", alone, " % of a core")
        .with("beside", beside, " % of a core")
        .with("reads", (after - before) as f64 / ALONE.as_secs_f64(), "/s")
        .with("late alone p99", late_alone, " ms")
        .with("late beside p99", late_beside, " ms")
        .bar(Bar::at_most("% of a core", beside - alone, 10.0))
        .bar(Bar::at_most("later ms", late_beside - late_alone, 5.0)))
}

/// One overview that is open, as its script goes about it.
async fn follow(
    visit: &Visit,
    stop: &CancellationToken,
    reads: &std::sync::atomic::AtomicUsize,
) -> Result<(), Failure> {
    let mut stream = http::connect(visit.address).await?;
    let mut sender = http::connect(visit.address).await?;
    let opened = stream.send_request(visit.get("/live")?).await;
    let mut answer: Response<hyper::body::Incoming> = opened.map_err(broken)?;
    if answer.status() != StatusCode::OK {
        return Err(Failure::refused(format!(
            "a stream was answered {}",
            answer.status()
        )));
    }
    loop {
        let frame = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            frame = answer.body_mut().frame() => frame,
        };
        let Some(frame) = frame else {
            return Err(Failure::refused("a stream has ended"));
        };
        let frame = frame.map_err(broken)?;
        if frame.data_ref().is_none_or(|data| data.starts_with(b":")) {
            continue;
        }
        let mut request = visit.get("/")?;
        let live = HeaderValue::from_static("1");
        request.headers_mut().insert("punctual-live", live);
        let (status, _) = http::send(&mut sender, request).await?;
        if status != StatusCode::OK {
            return Err(Failure::refused(format!(
                "an overview was answered {status}"
            )));
        }
        reads.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        rig::pause(BETWEEN).await;
    }
}
