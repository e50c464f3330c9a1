//! Slots beside clients: how late slots are while others create jobs and many edit one job, at half the pace that they
//! could keep up alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::{Clock, SystemClock};
use hyper::{Method, StatusCode};
use model::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::figures::{Bar, Figures, percentile};
use super::http::{self, Served, job_body};
use super::rig::{self, Base, Notes, Place};
use crate::failure::Failure;

/// Slots due every second, two milliseconds apart.
const SLOTS: u32 = 500;
const APART: Duration = Duration::from_millis(2);
/// How far ahead the first slots are: their jobs are put into the store beside the node, which finds them within 5 s.
const AHEAD: Duration = Duration::from_secs(6);
/// For so long slots are measured alone, clients at full speed, and slots beside clients.
const ALONE: Duration = Duration::from_secs(10);
const FULL: Duration = Duration::from_secs(4);
const BESIDE: Duration = Duration::from_secs(15);
/// Clients that edit one job, and clients that create.
const EDITORS: usize = 64;
const CREATORS: usize = 32;
/// How much later slots may be beside clients.
const GROWTH_MAX: f64 = 10.0;

/// What a client does, over and over.
#[derive(Clone)]
enum Wish {
    Create,
    Edit(Arc<str>),
}

/// Answers so far, by wish.
#[derive(Default)]
struct Answers {
    created: AtomicUsize,
    edited: AtomicUsize,
}

impl Answers {
    fn of(&self, wish: &Wish) -> &AtomicUsize {
        match wish {
            Wish::Create => &self.created,
            Wish::Edit(_) => &self.edited,
        }
    }
}

/// How often each kind of client is answered in a second.
#[derive(Clone, Copy)]
struct Pace {
    created: f64,
    edited: f64,
}

impl Pace {
    /// How long one client waits from one request to the next, at half of it.
    fn half(self, wish: &Wish) -> Duration {
        let (clients, rate) = match wish {
            Wish::Create => (CREATORS, self.created),
            Wish::Edit(_) => (EDITORS, self.edited),
        };
        Duration::from_secs_f64(clients as f64 / (rate / 2.0).max(1.0))
    }
}

pub(super) async fn beside_clients(base: &Base) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let notes = Notes::new(40_000);
    let served = Served::start(&place, notes.registry()).await?;
    let anchor = rig::now().plus(AHEAD);
    let slots: Vec<_> = (0..SLOTS)
        .map(|n| rig::every(Duration::from_secs(1), anchor.plus(APART * n), rig::no_op()))
        .collect();
    rig::load(&*served.store, &slots).await?;
    let job = create(served.address).await?;
    rig::pause(AHEAD).await;
    let alone = measure(&notes, rig::pause(ALONE)).await;
    let begun = rig::uptime();
    let answers = clients(served.address, &job, FULL, None).await?;
    let full = pace(&answers, rig::uptime().saturating_sub(begun));
    rig::pause(Duration::from_secs(1)).await;
    let mut answers = Answers::default();
    let begun = rig::uptime();
    let beside = measure(&notes, async {
        answers = clients(served.address, &job, BESIDE, Some(full)).await?;
        Ok::<_, Failure>(())
    });
    let (mut beside, ended) = beside.await;
    ended?;
    let half = pace(&answers, rig::uptime().saturating_sub(begun));
    served.stop().await;
    place.end().await?;
    let (mut alone, ()) = alone;
    let before = percentile(&mut alone, 99.0);
    let after = percentile(&mut beside, 99.0);
    Ok(Figures::new("beside-clients")
        .with("alone p99", before, " ms")
        .with("beside p99", after, " ms")
        .with("edits of one job", half.edited, "/s")
        .with("creates", half.created, "/s")
        .with("edits alone", full.edited, "/s")
        .with("creates alone", full.created, "/s")
        .bar(Bar::at_most("growth of p99 ms", after - before, GROWTH_MAX)))
}

fn pace(answers: &Answers, took: Duration) -> Pace {
    let rate = |count: &AtomicUsize| count.load(Ordering::Acquire) as f64 / took.as_secs_f64();
    Pace {
        created: rate(&answers.created),
        edited: rate(&answers.edited),
    }
}

/// How late slots are that are due while something goes on, and what came of that.
async fn measure<T>(notes: &Notes, meanwhile: impl Future<Output = T>) -> (Vec<f64>, T) {
    let from = rig::now();
    let _earlier = notes.take();
    let came = meanwhile.await;
    let until = rig::now();
    // What is late has a moment to come.
    rig::pause(Duration::from_secs(1)).await;
    let seen = notes.take().into_iter();
    let due = seen.filter(|(_, slot, _)| (from..until).contains(slot));
    let late = |slot: Timestamp, at: i64| (at - slot.as_millis() * 1_000) as f64 / 1e3;
    (due.map(|(_, slot, at)| late(slot, at)).collect(), came)
}

/// The job that many edit. It is never due while this lasts.
async fn create(address: SocketAddr) -> Result<Arc<str>, Failure> {
    let mut sender = http::connect(address).await?;
    let request = http::request(Method::POST, "/v1/jobs", address, job_body())?;
    let (status, body) = http::send(&mut sender, request).await?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = body.get("id").and_then(Value::as_str);
    id.map(Arc::from)
        .ok_or_else(|| Failure::refused(format!("creating a job was answered {status}")))
}

/// All clients at once for so long: as fast as they are answered, or at half that pace.
async fn clients(
    address: SocketAddr,
    job: &Arc<str>,
    time: Duration,
    pace: Option<Pace>,
) -> Result<Answers, Failure> {
    let answers = Arc::new(Answers::default());
    let until = rig::uptime() + time;
    let editors = std::iter::repeat_n(Wish::Edit(Arc::clone(job)), EDITORS);
    let creators = std::iter::repeat_n(Wish::Create, CREATORS);
    let mut tasks = JoinSet::new();
    for wish in editors.chain(creators) {
        let every = pace.map(|pace| pace.half(&wish));
        let answers = Arc::clone(&answers);
        tasks.spawn(async move { client(address, &wish, every, until, &answers).await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(http::broken)??;
    }
    Arc::into_inner(answers).ok_or_else(|| Failure::refused("a client has not ended"))
}

async fn client(
    address: SocketAddr,
    wish: &Wish,
    every: Option<Duration>,
    until: Duration,
    answers: &Answers,
) -> Result<(), Failure> {
    let mut sender = http::connect(address).await?;
    // They do not all begin at once.
    let mut next = rig::uptime() + every.unwrap_or_default().mul_f64(rand::random());
    while rig::uptime() < until {
        SystemClock.sleep(next.saturating_sub(rig::uptime())).await;
        let request = match wish {
            Wish::Create => http::request(Method::POST, "/v1/jobs", address, job_body())?,
            Wish::Edit(job) => {
                let body = json!({ "payload": { "edit": rand::random::<u32>() } }).to_string();
                let path = format!("/v1/jobs/{job}");
                http::request(Method::PATCH, &path, address, Bytes::from(body))?
            }
        };
        let (status, _) = http::send(&mut sender, request).await?;
        match status {
            status if status.is_success() => answers.of(wish).fetch_add(1, Ordering::AcqRel),
            // Too many at once for this job: that is an answer, though not the one wished for.
            StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => 0,
            status => return Err(Failure::refused(format!("the server answered {status}"))),
        };
        next += every.unwrap_or_default();
    }
    Ok(())
}
