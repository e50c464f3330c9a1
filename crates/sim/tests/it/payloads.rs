//! Large payloads and large answers: never more of them in memory than there is room for. And what one job needs is
//! read alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::{
    Definition, Job, JobId, Outcome, Overlap, PresenceId, Report, Run, RunId, RunKind, RunState,
    Schedule, Slot, Target, TenantId, Timestamp, Version, limits,
};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{
    ClientStore, EngineStore, JobChange, JobChanged, NewJob, RunsOfChange, Settled, Settlement,
    StartRun, Started, Store, StoreError,
};

use crate::wrapped::{Meddler, Wrapped};

/// A job, and the first byte of its payload.
type Arrived = (JobId, Option<Bytes>);

/// Takes its time, and notes what it was given.
#[derive(Clone)]
struct Slow {
    clock: SimClock,
    takes: Duration,
    /// Bytes of the answer.
    output: usize,
    /// Bytes of payloads that it has at the moment, and the most that it had.
    has: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Slow {
    fn new(clock: &SimClock, takes: Duration) -> Self {
        Self {
            clock: clock.clone(),
            takes,
            output: 0,
            has: Arc::default(),
            most: Arc::default(),
            arrived: Arc::default(),
        }
    }

    fn count(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }
}

#[async_trait]
impl Executor for Slow {
    async fn execute(&self, order: WorkOrder) -> Report {
        let payload = order
            .payload()
            .map(|sent| Bytes::copy_from_slice(sent.get(..1).unwrap_or_default()));
        let len = order.payload().map_or(0, Bytes::len);
        self.arrived.lock().unwrap().push((order.job.id, payload));
        let has = self.has.fetch_add(len, Ordering::SeqCst) + len;
        self.most.fetch_max(has, Ordering::SeqCst);
        self.clock.sleep(self.takes).await;
        self.has.fetch_sub(len, Ordering::SeqCst);
        Report::of(Outcome::Succeeded).with_output(Bytes::from(vec![0; self.output]))
    }
}

fn job(number: u16, due_at: Timestamp, payload: usize) -> Job {
    let mut def = Definition::new(
        Schedule::from(Slot(due_at)),
        Target::http("http://localhost/").unwrap(),
    );
    def.overlap = Overlap::Allow;
    def.payload = (payload > 0).then(|| Bytes::from(vec![1; payload]));
    let [high, low] = number.to_be_bytes();
    let id = JobId::new(due_at, [0, 0, 0, 0, 0, 0, 0, 0, high, low]);
    Job::new(
        id,
        TenantId::DEFAULT,
        None,
        def,
        due_at.minus(Duration::from_secs(9)),
    )
}

async fn create(mem: &MemStore, job: Job) -> Arc<Job> {
    let job = Arc::new(job);
    let new = NewJob {
        job: Arc::clone(&job),
        idempotency: None,
    };
    mem.create_jobs(&[new]).await.unwrap();
    job
}

async fn start(store: Arc<dyn Store>, clock: &SimClock, target: &Slow, most: usize) -> Node {
    let registry = Registry::default().with("http", Arc::new(target.clone()));
    let config = NodeConfig {
        running_max: most,
        ..NodeConfig::default()
    };
    let node = Node::start(store, Arc::new(clock.clone()), registry, config).await;
    node.unwrap()
}

#[tokio::test(start_paused = true)]
async fn payloads_in_memory_are_bounded_by_bytes() {
    const JOBS: u16 = 1_000;
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let due_at = Clock::now(&clock).plus(Duration::from_secs(3));
    for number in 0..JOBS {
        create(&mem, job(number, due_at, limits::PAYLOAD_MAX)).await;
    }
    let target = Slow::new(&clock, Duration::from_secs(1));
    let node = start(Arc::new(mem), &clock, &target, 1_000).await;
    clock.sleep(Duration::from_secs(20)).await;
    assert_eq!(target.count(), usize::from(JOBS));
    let most = target.most.load(Ordering::SeqCst);
    assert_eq!(most, limits::PAYLOADS_MAX, "all of the room, and no more");
    node.stop(Duration::from_secs(1)).await;
}

/// Fails to settle until a moment.
struct Away {
    clock: SimClock,
    until: Timestamp,
}

#[async_trait]
impl Meddler for Away {
    async fn settle(
        &self,
        mem: &MemStore,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        if Clock::now(&self.clock) < self.until {
            return Err(StoreError::unavailable("away"));
        }
        mem.settle(by, settlements).await
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_wait_to_be_written_are_bounded_by_bytes() {
    const JOBS: u16 = 3_000;
    const RUNNING: usize = 100;
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let now = Clock::now(&clock);
    for number in 0..JOBS {
        create(&mem, job(number, now.plus(Duration::from_secs(3)), 0)).await;
    }
    let mut target = Slow::new(&clock, Duration::from_millis(10));
    target.output = limits::OUTPUT_MAX;
    let until = now.plus(Duration::from_secs(20));
    let away = Away {
        clock: clock.clone(),
        until,
    };
    let store = Arc::new(Wrapped::new(&mem, away));
    let node = start(store, &clock, &target, RUNNING).await;
    clock.sleep(Duration::from_secs(19)).await;
    let room = limits::OUTPUTS_MAX / limits::OUTPUT_MAX;
    assert_eq!(target.count(), room + RUNNING);
    clock.sleep(Duration::from_secs(20)).await;
    assert_eq!(target.count(), usize::from(JOBS));
    let runs = mem.all_runs();
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded));
    node.stop(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_edited_before_its_run_starts_runs_as_it_stands_with_the_payload_that_belongs_to_it()
{
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let due_at = Clock::now(&clock).plus(Duration::from_secs(3));
    let first = create(&mem, job(1, due_at, 0)).await;
    let large = job(2, due_at.plus(Duration::from_millis(100)), 5_000);
    let large = create(&mem, large).await;
    let target = Slow::new(&clock, Duration::from_secs(2));
    let node = start(Arc::new(mem.clone()), &clock, &target, 1).await;
    // The first is under way, and the other is due, ours, and waits for its turn.
    clock.sleep(Duration::from_secs(4)).await;
    assert_eq!(target.count(), 1);
    let id = RunId::for_slot(large.id, Slot(due_at.plus(Duration::from_millis(100))));
    let run = mem.get_run(large.tenant, id).await.unwrap().unwrap();
    assert!(run.claim.is_some(), "{run:?}");
    let before = mem.get_job(large.tenant, large.id).await.unwrap().unwrap();
    let mut def = Definition::clone(&before.def);
    def.payload = Some(Bytes::from(vec![2; 6_000]));
    let (after, skipped) = before.edited(None, def, Clock::now(&clock), &Arc::from("someone"));
    let change = JobChange {
        before: Arc::new(before),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let changed = mem.change_job(&change).await.unwrap();
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    clock.sleep(Duration::from_secs(6)).await;
    let arrived = target.arrived.lock().unwrap().clone();
    let second = Some(Bytes::from_static(&[2]));
    assert_eq!(arrived, [(first.id, None), (large.id, second)]);
    let run = mem.get_run(large.tenant, id).await.unwrap().unwrap();
    assert_eq!(
        (run.state, run.version, run.attempts.len()),
        (RunState::Succeeded, Version(2), 1)
    );
    node.stop(Duration::from_secs(1)).await;
}

/// Counts calls.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Counter {
    fn of(&self, call: &str) -> u32 {
        self.0.lock().unwrap().get(call).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Meddler for Counter {
    async fn before(&self, call: &'static str) -> Result<(), StoreError> {
        *self.0.lock().unwrap().entry(call).or_default() += 1;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_by_hand_makes_plan_read_its_job_alone() {
    const RUNS: u32 = 20;
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let now = Clock::now(&clock);
    let job = create(&mem, job(1, now.plus(Duration::from_secs(3_600)), 0)).await;
    let target = Slow::new(&clock, Duration::ZERO);
    let calls = Counter::default();
    let store = Arc::new(Wrapped::new(&mem, calls.clone()));
    let node = start(store, &clock, &target, 9).await;
    clock.sleep(Duration::from_secs(2)).await;
    let before = (calls.of("due_jobs"), calls.of("due_of"));
    for nonce in 1..=RUNS {
        let now = Clock::now(&clock);
        let run = Run {
            id: RunId::of_request(job.id, now, u64::from(nonce)),
            kind: RunKind::Manual,
            slot: None,
            due_at: now,
            ..Run::of_slot(&job, Slot(now))
        };
        let started = mem.start_run(&StartRun { run, force: true }).await.unwrap();
        assert_eq!(started, Started::Ready);
        node.handle().nudge_plan(job.tenant, job.id);
        clock.sleep(Duration::from_millis(20)).await;
        assert_eq!(target.count(), nonce as usize, "it starts at once");
    }
    assert_eq!(calls.of("due_of") - before.1, RUNS);
    // The window moves on as it does when nobody queries: in less than half a second once, and for the backlog.
    let reads = calls.of("due_jobs") - before.0;
    assert!(reads <= 2, "{reads}");
    node.stop(Duration::from_secs(1)).await;
}
