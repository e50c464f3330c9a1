//! Duties that panic: each is started again alone, and nobody notices but the log.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Schedule, Zone};
use model::{
    AttemptNo, Definition, Job, JobId, Outcome, Overlap, Report, Run, RunId, Target, TenantId,
    Timestamp,
};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{ClientStore, NewJob, StoreError};

use crate::wrapped::{Meddler, Wrapped};

const JOBS: u8 = 12;
const SECONDS: u64 = 60;

/// Panics at every so many calls of one kind, before they are written or after, and takes a moment for each.
struct Panicker {
    clock: SimClock,
    call: &'static str,
    every: u64,
    after: bool,
    calls: AtomicU64,
}

impl Panicker {
    fn panic(&self, call: &'static str) {
        if call == self.call {
            let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(!calls.is_multiple_of(self.every), "a panic on purpose");
        }
    }
}

#[async_trait]
impl Meddler for Panicker {
    async fn before(&self, call: &'static str) -> Result<(), StoreError> {
        self.clock.sleep(Duration::from_millis(3)).await;
        if !self.after {
            self.panic(call);
        }
        Ok(())
    }

    async fn after(&self, call: &'static str) -> Result<(), StoreError> {
        self.clock.sleep(Duration::from_millis(3)).await;
        if self.after {
            self.panic(call);
        }
        Ok(())
    }
}

type Deliveries = Arc<Mutex<BTreeMap<(RunId, AttemptNo), u32>>>;

/// Fails the first attempt of every fourth slot, so that there are retries.
#[derive(Clone, Default)]
struct Counter {
    deliveries: Deliveries,
}

#[async_trait]
impl Executor for Counter {
    async fn execute(&self, order: WorkOrder) -> Report {
        let key = (order.run, order.attempt);
        *self.deliveries.lock().unwrap().entry(key).or_default() += 1;
        let fourth = order.slot.unwrap().0.as_millis() / 1_000 % 4 == 0;
        Report::of(if fourth && order.attempt == AttemptNo::FIRST {
            Outcome::Failed
        } else {
            Outcome::Succeeded
        })
    }
}

struct Ending {
    panics: u64,
    joins: usize,
    runs: Vec<Run>,
    deliveries: BTreeMap<(RunId, AttemptNo), u32>,
    /// Slots that must have a run.
    slots: usize,
}

/// A minute of jobs that run every second, while one kind of call panics now and then.
async fn minute(call: &'static str, duty: &'static str, every: u64, after: bool) -> Ending {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let meddler = Panicker {
        clock: clock.clone(),
        call,
        every,
        after,
        // The first one does.
        calls: AtomicU64::new(every - 1),
    };
    let store = Wrapped::new(&mem, meddler);
    let counter = Counter::default();
    let registry = Registry::default().with("http", Arc::new(counter.clone()));
    let (config, shared) = (NodeConfig::default(), Arc::new(store.clone()));
    let node = Node::start(shared, Arc::new(clock.clone()), registry, config).await;
    let node = node.unwrap();
    let now = Clock::now(&clock);
    let end = now.plus(Duration::from_secs(SECONDS));
    for number in 0..JOBS {
        create(&mem, number, now, end).await;
    }
    // The last slots have time to be tried again.
    clock.sleep(Duration::from_secs(SECONDS + 20)).await;
    let handle = node.handle();
    let panics = handle.metrics().duty_panics(duty);
    node.stop(Duration::from_secs(5)).await;
    let deliveries = counter.deliveries.lock().unwrap().clone();
    Ending {
        panics,
        joins: store.joins.load(Ordering::SeqCst),
        runs: mem.all_runs(),
        deliveries,
        slots: usize::from(JOBS) * SECONDS as usize,
    }
}

/// One that runs every second from `now` up to `end`, a little after the others.
async fn create(mem: &MemStore, number: u8, now: Timestamp, end: Timestamp) {
    let offset = Duration::from_millis(50 + 70 * u64::from(number));
    let every = Every::parse("PT1S", now.plus(offset), Zone::get("UTC").unwrap()).unwrap();
    let mut schedule = Schedule::from(every);
    schedule.bounds.ends_at = Some(end);
    let overlap = [Overlap::Allow, Overlap::QueueAll { max: 100 }][usize::from(number % 2)];
    let mut def = Definition {
        overlap,
        ..Definition::new(schedule, Target::http("http://localhost/").unwrap())
    };
    def.retry.delay_first = Duration::from_millis(100);
    let id = JobId::new(now, [number; 10]);
    let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
    let idempotency = None;
    mem.create_jobs(&[NewJob { job, idempotency }])
        .await
        .unwrap();
}

async fn check(call: &'static str, duty: &'static str, every: u64) {
    for after in [false, true] {
        let ending = minute(call, duty, every, after).await;
        let context = format!("{duty} panics in {call}, after: {after}");
        assert!(ending.panics > 0, "{context}: {}", ending.panics);
        assert_eq!(ending.joins, 1, "{context}: the presence stays");
        assert!(ending.runs.len() >= ending.slots, "{context}");
        for run in &ending.runs {
            assert_eq!(run.lost, 0, "{context}: {run:?}");
            assert_eq!(run.state, model::RunState::Succeeded, "{context}: {run:?}");
        }
        let twice: Vec<_> = ending.deliveries.iter().filter(|(_, n)| **n > 1).collect();
        assert!(twice.is_empty(), "{context}: {twice:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fire_that_panics_loses_no_slot() {
    check("fire", "fire", 7).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_panics_loses_no_retry() {
    check("claim", "fire", 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_settle_that_panics_loses_no_ending() {
    check("settle", "settle", 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_panics_misses_no_slot() {
    check("due_jobs", "plan", 3).await;
    check("due_runs", "plan", 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_watchdog_that_panics_is_back_at_once() {
    check("oldest_due", "watchdog", 3).await;
    check("claims", "watchdog", 2).await;
}

#[tokio::test(start_paused = true)]
async fn beats_that_panic_cost_no_presence() {
    check("beat", "beats", 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_for_leases_that_panics_is_made_again() {
    check("lease", "leases", 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn rules_and_retention_that_panic_hold_up_nothing() {
    check("rules_changed", "rules", 2).await;
    check("retain", "retention", 2).await;
}
