//! What workloads run on: a store with a place of its own, a node, and targets that only take notes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::vault::{MasterKey, MasterKeys};
use engine::{Clock, ClockOf, Node, NodeConfig, SystemClock};
use executor::{Executor, Registry, WorkOrder};
use hyper::Uri;
use model::schedule::{Every, Period, Zone};
use model::target::HttpTarget;
use model::{Definition, Job, JobId, Report, Schedule, Slot, Target, TenantId, Timestamp};
use rand::RngExt;
use store::sqlite::SqliteStore;
use store::{NewJob, Store};

use super::database::{Schema, Written};
use crate::failure::{Failure, chain};

/// Which store is measured.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// SQLite, in folders of this one.
    Folder(PathBuf),
    /// PostgreSQL at this address, in schemas of their own.
    Database(String),
}

impl Base {
    pub(super) fn is_database(&self) -> bool {
        match self {
            Self::Folder(_) => false,
            Self::Database(_) => true,
        }
    }
}

/// Where the data of one round is; gone with the round.
pub(super) enum Place {
    Folder(Folder),
    Schema(Schema),
}

impl Place {
    pub(super) fn new(base: &Base) -> Result<Self, Failure> {
        match base {
            Base::Folder(base) => Ok(Self::Folder(Folder::new(base)?)),
            Base::Database(address) => Ok(Self::Schema(Schema::new(address))),
        }
    }

    pub(super) async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        match self {
            Self::Folder(folder) => {
                let store = SqliteStore::open(folder.path(), Arc::new(SystemClock));
                Ok(Arc::new(store.map_err(failed)?))
            }
            Self::Schema(schema) => Ok(schema.open().await?),
        }
    }

    /// A store that enters no new job in the audit log.
    pub(super) async fn open_without_audit(&self) -> Result<Arc<dyn Store>, Failure> {
        match self {
            Self::Folder(folder) => {
                let store = SqliteStore::open(folder.path(), Arc::new(SystemClock));
                Ok(Arc::new(store.map_err(failed)?.without_audit_of_creates()))
            }
            Self::Schema(schema) => schema.open_without_audit().await,
        }
    }

    /// Lets what was written before come to rest, and says how much has been written by now.
    pub(super) async fn rest(&self) -> Result<Written, Failure> {
        match self {
            Self::Folder(_) => Ok(Written::default()),
            Self::Schema(schema) => schema.rest().await,
        }
    }

    /// Bytes on disk of everything that is stored, indexes included.
    pub(super) async fn size(&self) -> Result<u64, Failure> {
        match self {
            Self::Folder(folder) => folder.size(),
            Self::Schema(schema) => schema.size().await,
        }
    }

    /// Whose clock a node on this store fires by.
    pub(super) fn clock(&self) -> ClockOf {
        match self {
            Self::Folder(_) => ClockOf::Machine,
            Self::Schema(_) => ClockOf::Store,
        }
    }

    /// How `punctual serve` is configured for it.
    pub(super) fn arguments(&self) -> [String; 2] {
        match self {
            Self::Folder(folder) => ["--data".to_owned(), folder.path().display().to_string()],
            Self::Schema(schema) => ["--store".to_owned(), schema.address()],
        }
    }

    pub(super) async fn end(self) -> Result<(), Failure> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Schema(schema) => schema.end().await,
        }
    }
}

/// A folder that is removed with everything in it.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(base: &Path) -> Result<Self, Failure> {
        let number: u32 = rand::rng().random();
        let path = base.join(format!(
            "punctual-bench-{}-{number:08x}",
            std::process::id()
        ));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::usage(format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn size(&self) -> Result<u64, Failure> {
        let failed = |error: std::io::Error| {
            Failure::usage(format!("cannot read {}: {error}", self.0.display()))
        };
        let mut size = 0;
        for file in std::fs::read_dir(&self.0).map_err(failed)? {
            size += file.and_then(|file| file.metadata()).map_err(failed)?.len();
        }
        Ok(size)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn failed(error: impl std::error::Error) -> Failure {
    Failure::usage(chain(&error))
}

pub(super) fn now() -> Timestamp {
    Clock::now(&SystemClock)
}

pub(super) fn uptime() -> Duration {
    Clock::uptime(&SystemClock)
}

/// A job of the usual size.
pub(super) fn job(schedule: Schedule, target: Target) -> Arc<Job> {
    let mut def = Definition::new(schedule, target);
    def.payload = Some(bytes::Bytes::from_static(
        br#"{"order":4711,"customer":"c-90210","sum":"129.90"}"#,
    ));
    let now = now();
    let id = JobId::new(now, rand::rng().random());
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

pub(super) fn one_off(due_at: Timestamp, target: Target) -> Arc<Job> {
    job(Schedule::from(Slot(due_at)), target)
}

/// One-offs that were due in the last few seconds, one after another, as a backlog is.
pub(super) fn overdue(count: usize, target: &Target) -> Vec<Arc<Job>> {
    overdue_since(
        count,
        Duration::from_secs(6),
        Duration::from_secs(5),
        target,
    )
}

/// Likewise, the first of them so long ago and the last `span` later.
pub(super) fn overdue_since(
    count: usize,
    ago: Duration,
    span: Duration,
    target: &Target,
) -> Vec<Arc<Job>> {
    let from = now().minus(ago);
    let step = span / count.max(1) as u32;
    (0..count)
        .map(|n| one_off(from.plus(step * n as u32), target.clone()))
        .collect()
}

/// Recurring jobs, each with one slot that was due in the last few seconds.
pub(super) fn overdue_recurring(count: usize, target: &Target) -> Vec<Arc<Job>> {
    let from = now().minus(Duration::from_secs(6));
    let step = Duration::from_secs(5) / count.max(1) as u32;
    let one = |n: usize| {
        let slot = from.plus(step * n as u32);
        let job = every(Duration::from_secs(3_600), slot, target.clone());
        let mut job = Job::clone(&job);
        job.next_slot = Some(Slot(slot));
        Arc::new(job)
    };
    (0..count).map(one).collect()
}

/// A job that is due every so often.
pub(super) fn every(period: Duration, anchor: Timestamp, target: Target) -> Arc<Job> {
    let every = Every {
        period: Period::Elapsed(period),
        anchor,
        zone: Zone::utc(),
        after_completion: false,
    };
    job(Schedule::from(every), target)
}

pub(super) fn callback(url: &str) -> Result<Target, Failure> {
    Target::http(url).map_err(|error| Failure::usage(error.to_string()))
}

/// What is answered by `Notes`, which calls nobody.
pub(super) fn no_op() -> Target {
    Target::Http(HttpTarget::at(Uri::from_static("http://127.0.0.1:9/")))
}

/// Writes jobs, a thousand at a time.
pub(super) async fn load(store: &dyn Store, jobs: &[Arc<Job>]) -> Result<(), Failure> {
    for chunk in jobs.chunks(1_000) {
        let new: Vec<NewJob> = chunk
            .iter()
            .map(|job| NewJob {
                job: Arc::clone(job),
                idempotency: None,
            })
            .collect();
        store.create_jobs(&new).await.map_err(failed)?;
    }
    Ok(())
}

/// What a target saw: the slot and, in microseconds since the epoch, when.
#[derive(Clone)]
pub(super) struct Notes {
    seen: Arc<std::sync::Mutex<Vec<(JobId, Timestamp, i64)>>>,
    count: Arc<AtomicUsize>,
}

/// Takes notes and succeeds at once.
#[async_trait]
impl Executor for Notes {
    async fn execute(&self, order: WorkOrder) -> Report {
        let micros = SystemClock.now_micros();
        let slot = order.slot.map_or(Timestamp::MIN, |slot| slot.0);
        crate::bench::lock(&self.seen).push((order.job.id, slot, micros));
        self.count.fetch_add(1, Ordering::Release);
        Report::succeeded()
    }
}

impl Notes {
    pub(super) fn new(room: usize) -> Self {
        Self {
            seen: Arc::new(std::sync::Mutex::new(Vec::with_capacity(room))),
            count: Arc::default(),
        }
    }

    /// Every target is answered by these notes.
    pub(super) fn registry(&self) -> Registry {
        Registry::default().with("http", Arc::new(self.clone()))
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<(JobId, Timestamp, i64)> {
        std::mem::take(&mut crate::bench::lock(&self.seen))
    }
}

pub(super) async fn start(
    place: &Place,
    store: &Arc<dyn Store>,
    registry: Registry,
) -> Result<Node, Failure> {
    start_with(place, store, registry, None).await
}

/// A node with a master key of its own, as those that people start have one: it seals the audit log.
pub(super) async fn start_sealing(
    place: &Place,
    store: &Arc<dyn Store>,
    registry: Registry,
) -> Result<Node, Failure> {
    let keys = MasterKeys::new(MasterKey::new(rand::random()));
    start_with(place, store, registry, Some(Arc::new(keys))).await
}

async fn start_with(
    place: &Place,
    store: &Arc<dyn Store>,
    registry: Registry,
    master_keys: Option<Arc<MasterKeys>>,
) -> Result<Node, Failure> {
    let store = Arc::clone(store);
    let config = NodeConfig {
        name: "bench".to_owned(),
        clock: place.clock(),
        master_keys,
        ..NodeConfig::default()
    };
    Node::start(store, Arc::new(SystemClock), registry, config)
        .await
        .map_err(failed)
}

pub(super) async fn pause(time: Duration) {
    SystemClock.sleep(time).await;
}

/// Waits until `done` holds, for two minutes at most.
pub(super) async fn wait(what: &str, mut done: impl AsyncFnMut() -> bool) -> Result<(), Failure> {
    let begun = uptime();
    while !done().await {
        if uptime().saturating_sub(begun) > Duration::from_secs(120) {
            return Err(Failure::refused(format!("gave up waiting for {what}")));
        }
        SystemClock.sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Whether nothing is alive in the store.
pub(super) async fn is_settled(store: &dyn Store) -> bool {
    has_settled_but(store, 0).await
}

/// Whether at most so many are.
pub(super) async fn has_settled_but(store: &dyn Store, few: usize) -> bool {
    store
        .count_live()
        .await
        .is_ok_and(|live| live as usize <= few)
}
