//! What workloads run on: a store in a folder of its own, a node, and targets that only take notes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{Clock, Node, NodeConfig, SystemClock};
use executor::Registry;
use executor::fake::Fake;
use model::target::HttpTarget;
use model::{Definition, Job, JobId, Report, Schedule, Slot, Target, TenantId, Timestamp};
use rand::RngExt;
use store::sqlite::SqliteStore;
use store::{NewJob, Store};

use crate::failure::{Failure, chain};

/// A folder that is removed with everything in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(base: &Path) -> Result<Self, Failure> {
        let number: u32 = rand::rng().random();
        let path = base.join(format!(
            "punctual-bench-{}-{number:08x}",
            std::process::id()
        ));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::usage(format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

pub fn failed(error: impl std::error::Error) -> Failure {
    Failure::usage(chain(&error))
}

pub fn open(folder: &Path) -> Result<Arc<SqliteStore>, Failure> {
    SqliteStore::open(folder, Arc::new(SystemClock))
        .map(Arc::new)
        .map_err(failed)
}

pub fn now() -> Timestamp {
    Clock::now(&SystemClock)
}

pub fn uptime() -> Duration {
    Clock::uptime(&SystemClock)
}

/// A job of the usual size.
pub fn job(schedule: Schedule, target: Target) -> Arc<Job> {
    let mut def = Definition::new(schedule, target);
    def.payload = Some(bytes::Bytes::from_static(
        br#"{"order":4711,"customer":"c-90210","sum":"129.90"}"#,
    ));
    let now = now();
    let id = JobId::new(now, rand::rng().random());
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

pub fn one_off(due_at: Timestamp, target: Target) -> Arc<Job> {
    job(Schedule::from(Slot(due_at)), target)
}

/// One-offs that were due in the last few seconds, one after another, as a backlog is.
pub fn overdue(count: usize, target: &Target) -> Vec<Arc<Job>> {
    let from = now().minus(Duration::from_secs(6));
    let step = Duration::from_secs(5) / count.max(1) as u32;
    (0..count)
        .map(|n| one_off(from.plus(step * n as u32), target.clone()))
        .collect()
}

pub fn no_op() -> Target {
    Target::Fake(String::new())
}

pub fn callback(url: &str) -> Result<Target, Failure> {
    HttpTarget::new(url, Some("POST"))
        .map(Target::Http)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Writes jobs, a thousand at a time.
pub async fn load(store: &SqliteStore, jobs: &[Arc<Job>]) -> Result<(), Failure> {
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
pub struct Notes {
    seen: Arc<std::sync::Mutex<Vec<(JobId, Timestamp, i64)>>>,
    count: Arc<AtomicUsize>,
}

impl Notes {
    pub fn new(room: usize) -> Self {
        Self {
            seen: Arc::new(std::sync::Mutex::new(Vec::with_capacity(room))),
            count: Arc::default(),
        }
    }

    /// An executor that takes notes and succeeds.
    pub fn registry(&self) -> Registry {
        let notes = self.clone();
        let fake = Fake(move |order: &executor::WorkOrder| {
            let micros = SystemClock.now_micros();
            let slot = order.slot.map_or(Timestamp::MIN, |slot| slot.0);
            crate::bench::lock(&notes.seen).push((order.job.id, slot, micros));
            notes.count.fetch_add(1, Ordering::Release);
            Report::succeeded()
        });
        Registry::default().with("fake", Arc::new(fake))
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn take(&self) -> Vec<(JobId, Timestamp, i64)> {
        std::mem::take(&mut crate::bench::lock(&self.seen))
    }
}

pub async fn start(store: &Arc<SqliteStore>, registry: Registry) -> Result<Node, Failure> {
    let store: Arc<dyn Store> = Arc::clone(store) as Arc<dyn Store>;
    let config = NodeConfig {
        name: "bench".to_owned(),
        ..NodeConfig::default()
    };
    Node::start(store, Arc::new(SystemClock), registry, config)
        .await
        .map_err(failed)
}

/// Waits until `done` holds, for two minutes at most.
pub async fn wait(what: &str, mut done: impl AsyncFnMut() -> bool) -> Result<(), Failure> {
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
pub async fn is_settled(store: &SqliteStore) -> bool {
    store.pulse().await.is_ok_and(|pulse| pulse.live == 0)
}
