//! Targets as they are: slow ones, one that is dead among many, and those that report later.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use executor::Registry;
use executor::egress::{Dialer, Egress};
use executor::http::HttpExecutor;
use hyper::Method;
use hyper::header::HeaderValue;
use model::{Completion, Job, Overlap, Timestamp};

use super::child::Server;
use super::database::{Spent, connect};
use super::figures::{Bar, Figures, median, percentile};
use super::http;
use super::output;
use super::rig::{self, Base, Place};
use super::targets::{DeadHost, Manner, Targets};
use crate::failure::Failure;

/// Ten thousand targets that take five seconds, called all at once: what memory the node takes.
pub(super) async fn slow_targets(base: &Base) -> Result<Figures, Failure> {
    const COUNT: usize = 10_000;
    let targets = Targets::start_many(COUNT as u32, Manner::After(Duration::from_secs(5)))?;
    let place = Place::new(base)?;
    let store = place.open().await?;
    let due_at = rig::now().plus(Duration::from_secs(3));
    let mut jobs = Vec::with_capacity(COUNT);
    for origin in &targets.origins {
        jobs.push(rig::one_off(due_at, rig::callback(&hook(*origin))?));
    }
    rig::load(&*store, &jobs).await?;
    drop((jobs, store));
    let max = COUNT.to_string();
    let server = Server::start(
        &place,
        &["--running-max", &max, "--egress-allow", "loopback"],
    )?;
    let (mut at_once, mut resident) = (0, 0.0_f64);
    rig::wait("the calls", async || {
        at_once = at_once.max(targets.under_way());
        resident = resident.max(server.resident().unwrap_or(0.0));
        at_once >= COUNT || rig::now() > due_at.plus(Duration::from_secs(20))
    })
    .await?;
    // Until the answers are on their way.
    rig::pause(Duration::from_secs(6)).await;
    resident = resident.max(server.resident()?);
    drop(server);
    place.end().await?;
    Ok(Figures::new("slow-targets")
        .with("under way", at_once as f64, "")
        .with("memory", resident, " MB")
        .bar(Bar::at_least("under way", at_once as f64, COUNT as f64))
        .bar(Bar::at_most("memory MB", resident, 400.0)))
}

/// Jobs that call the dead host every second.
const DEAD_JOBS: usize = 300;

fn hook(origin: SocketAddr) -> String {
    format!("http://{origin}/hook")
}

/// How late callbacks come to a thousand origins, while all are well and while one of them is dead.
pub(super) async fn dead_host(base: &Base) -> Result<Figures, Failure> {
    const TURNS: usize = 3;
    let targets = Targets::start(1_000, Manner::After(Duration::ZERO))?;
    let dead = DeadHost::start().await?;
    let (mut well, mut beside, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 1..=TURNS {
        let alone = lateness(base, &targets, None).await?;
        let with = lateness(base, &targets, Some(dead.origin)).await?;
        output::note(&format!(
            "  turn {turn} of {TURNS}: p99 {alone:.2} ms, {with:.2} ms beside a dead host"
        ));
        well.push(alone);
        beside.push(with);
        more.push(with - alone);
    }
    let more = median(more.into_iter());
    Ok(Figures::new("dead-host")
        .with("p99", median(well.into_iter()), " ms")
        .with("p99 beside it", median(beside.into_iter()), " ms")
        .bar(Bar::at_most("p99 more ms", more, 10.0)))
}

/// The 99th percentile of how late callbacks of those that live come, in milliseconds.
async fn lateness(
    base: &Base,
    targets: &Targets,
    dead: Option<SocketAddr>,
) -> Result<f64, Failure> {
    let place = Place::new(base)?;
    let store = place.open().await?;
    let anchor = rig::now().plus(Duration::from_secs(3)).as_millis() / 1_000 * 1_000;
    let anchor = Timestamp::from_millis(anchor);
    let mut jobs = Vec::new();
    let every_second = |n: usize, origin| {
        let anchor = anchor.plus(Duration::from_millis(n as u64 % 1_000));
        let target = rig::callback(&hook(origin))?;
        Ok::<_, Failure>(rig::every(Duration::from_secs(1), anchor, target))
    };
    for (n, origin) in targets.origins.iter().copied().enumerate() {
        jobs.push(every_second(n, origin)?);
    }
    // More calls hang than one origin may have under way, and they fail soon enough to open its breaker.
    for origin in dead.into_iter().flat_map(|origin| [origin; DEAD_JOBS]) {
        let mut job = Job::clone(&*every_second(jobs.len(), origin)?);
        let def = Arc::make_mut(&mut job.def);
        def.timeout = Duration::from_secs(2);
        def.overlap = Overlap::Allow;
        jobs.push(Arc::new(job));
    }
    rig::load(&*store, &jobs).await?;
    let dialer = Arc::new(Dialer::new(Arc::new(Egress::unbounded())));
    let http = HttpExecutor::new(dialer).map_err(rig::failed)?;
    let registry = Registry::default().with("http", Arc::new(http));
    drop(targets.late());
    let node = rig::start(&place, &store, registry).await?;
    // Connections are made in the first seconds.
    rig::pause(Duration::from_secs(6)).await;
    drop(targets.late());
    rig::pause(Duration::from_secs(10)).await;
    let mut late = targets.late();
    node.stop(Duration::from_secs(1)).await;
    drop(store);
    place.end().await?;
    Ok(percentile(&mut late, 99.0))
}

/// A hundred thousand attempts that are handed over and live, each heard once a minute: what server and node spend.
pub(super) async fn handed_over(base: &Base) -> Result<Figures, Failure> {
    const COUNT: usize = 100_000;
    let place = Place::new(base)?;
    let Place::Schema(schema) = &place else {
        return Err(Failure::usage(
            "handed-over needs a database: give one with --store",
        ));
    };
    let targets = Targets::start(4, Manner::TakeOver)?;
    let store = place.open().await?;
    let now = rig::now();
    let mut jobs = Vec::with_capacity(COUNT);
    for origin in targets.origins.iter().cycle().take(COUNT) {
        let mut job = Job::clone(&rig::one_off(now, rig::callback(&hook(*origin))?));
        let def = Arc::make_mut(&mut job.def);
        def.timeout = Duration::from_secs(3_600);
        def.completion = Completion::Callback {
            heartbeat_within: Duration::from_secs(600),
        };
        jobs.push(Arc::new(job));
    }
    rig::load(&*store, &jobs).await?;
    drop((jobs, store));
    let server = Server::start(&place, &["--egress-allow", "loopback"])?;
    rig::wait("the targets to take over", async || {
        targets.taken_over() >= COUNT
    })
    .await?;
    rig::pause(Duration::from_secs(5)).await;
    let tokens = targets.tokens();
    let client = connect(schema.server()).await?;
    let before = (Spent::by_now(&client).await?, server.spent()?);
    let begun = rig::uptime();
    let refused = beat(server.address, tokens, Duration::from_secs(60)).await?;
    let took = rig::uptime().saturating_sub(begun).as_secs_f64();
    let rate = COUNT as f64 / took;
    let after = (Spent::by_now(&client).await?, server.spent()?);
    let of_server = after.0.since(before.0).as_secs_f64() / took * 100.0;
    let of_node = after.1.saturating_sub(before.1).as_secs_f64() / took * 100.0;
    drop((server, client));
    place.end().await?;
    Ok(Figures::new("handed-over")
        .with("heartbeats", rate, "/s")
        .with("database", of_server, " % of a core")
        .with("node", of_node, " % of a core")
        .bar(Bar::at_most("% of a core", of_server + of_node, 15.0))
        // Clients that fall behind would make the node spend less.
        .bar(Bar::at_least(
            "heartbeats /s",
            rate,
            0.98 * COUNT as f64 / 60.0,
        ))
        .bar(Bar::at_most("refused", refused as f64, 0.0)))
}

/// One heartbeat for each token, evenly over the time. Answers how many were refused.
async fn beat(
    address: SocketAddr,
    tokens: Vec<(String, String)>,
    time: Duration,
) -> Result<usize, Failure> {
    const CLIENTS: usize = 500;
    let begun = rig::uptime();
    let step = time / tokens.len().max(1) as u32;
    let mut clients = tokio::task::JoinSet::new();
    let tokens = Arc::new(tokens);
    for client in 0..CLIENTS {
        let tokens = Arc::clone(&tokens);
        let mut sender = http::connect(address).await?;
        clients.spawn(async move {
            let mut refused = 0;
            for (n, (run, token)) in tokens.iter().enumerate().skip(client).step_by(CLIENTS) {
                let at = begun + step * n as u32;
                let early = at.saturating_sub(rig::uptime());
                if !early.is_zero() {
                    rig::pause(early).await;
                }
                let path = format!("/v1/runs/{run}/heartbeat");
                let mut request = http::request(Method::POST, &path, address, Bytes::new())?;
                let token = HeaderValue::try_from(token).map_err(http::broken)?;
                request.headers_mut().insert("punctual-token", token);
                request.headers_mut().remove("content-type");
                let (status, body) = http::send(&mut sender, request).await?;
                if !status.is_success() {
                    let said = String::from_utf8_lossy(&body);
                    output::note(&format!("  a heartbeat was answered {status}: {said}"));
                    refused += 1;
                }
            }
            Ok::<_, Failure>(refused)
        });
    }
    let mut refused = 0;
    while let Some(ended) = clients.join_next().await {
        refused += ended.map_err(http::broken)??;
    }
    Ok(refused)
}
