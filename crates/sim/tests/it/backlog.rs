//! Retries that wait by the thousand, slots that nobody fired for a while: a node that comes to them goes on with what
//! is due.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Period, Zone};
use model::shard::ShardSet;
use model::{
    Attempt, Definition, Job, JobId, Outcome, Overlap, Report, Run, RunState, Schedule, Slot,
    Target, TenantId, Timestamp, Verdict, limits,
};
use sim::clock::{NodeClock, SimClock};
use sim::faults::FaultStore;
use store::mem::MemStore;
use store::{ClientStore, EngineStore, Firing, NewJob, NodeInfo, NodeStatus, Settled, Settlement};

const RETRIES: u16 = 3_000;
/// What a slow target takes.
const SLOW: Duration = Duration::from_secs(1);

fn job(number: u16, schedule: Schedule, now: Timestamp) -> Arc<Job> {
    // Ids are their own hash: they have to look like chance.
    let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed.to_be_bytes());
    let id = JobId::new(now, random);
    let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    def.overlap = Overlap::Allow;
    def.retry.delay_max = Duration::from_secs(3 * 3_600);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

async fn create(mem: &MemStore, job: &Arc<Job>) {
    let new = NewJob {
        job: Arc::clone(job),
        idempotency: None,
    };
    mem.create_jobs(&[new]).await.unwrap();
}

/// A store with as many runs that wait for their second attempt; whoever made the first has left.
async fn waiting(clock: &SimClock, wait: Duration) -> MemStore {
    let mem = MemStore::new(Arc::new(clock.clone()));
    let before = NodeInfo {
        name: "before".to_owned(),
        version: String::new(),
        tables: String::new(),
        ..NodeInfo::default()
    };
    let before = mem.join(&before).await.unwrap();
    mem.beat(before, &NodeStatus::default()).await.unwrap();
    let leases = mem.lease(before, &ShardSet::ALL).await.unwrap();
    let now = Clock::now(clock);
    let mut settlements = Vec::new();
    for number in 0..RETRIES {
        let job = job(number, Schedule::from(Slot(now)), now);
        create(&mem, &job).await;
        let decision = job.decide(Slot(now), now, &Arc::from("before"));
        let claim = true;
        let firing = Firing {
            job: Arc::clone(&job),
            decision,
            claim,
            knows: Vec::new(),
        };
        mem.fire(&leases, &[firing]).await.unwrap();
        let run = Run {
            claim: Some(before),
            ..Run::of_slot(&job, Slot(now))
        };
        let failed = Attempt::new(run.attempt, Some(now), now, Report::of(Outcome::Failed));
        settlements.push(Settlement {
            run,
            verdict: Verdict::RetryAt(now.plus(wait)),
            attempt: Some(failed),
        });
    }
    let settled = mem.settle(before, &settlements).await.unwrap();
    let done = |it: &Settled| matches!(it, Settled::Done { .. });
    assert!(settled.iter().all(done), "{settled:?}");
    mem.leave(before).await.unwrap();
    mem
}

/// A job due every second from now on.
fn every_second(number: u16, clock: &SimClock) -> Arc<Job> {
    let period = Period::Elapsed(Duration::from_secs(1));
    let every = Every::new(period, Clock::now(clock), Zone::get("UTC").unwrap()).unwrap();
    job(number, every.into(), Clock::now(clock))
}

fn slow_target() -> Target {
    Target::http("http://localhost/slow").unwrap()
}

/// Succeeds, at once or after a while.
struct Work {
    clock: SimClock,
}

#[async_trait]
impl Executor for Work {
    async fn execute(&self, order: WorkOrder) -> Report {
        if order.job.def.target == slow_target() {
            self.clock.sleep(SLOW).await;
        }
        Report::succeeded()
    }
}

/// What an every-second job meets.
struct Beside<'a> {
    job: &'a Job,
    mem: &'a MemStore,
    clock: &'a SimClock,
    /// How long every call to the store takes.
    link: Duration,
    /// Slots count from so long after the node's start on.
    settled: Duration,
    running_max: usize,
}

/// How late its slots are in half a minute.
async fn lateness_of(beside: Beside<'_>) -> Duration {
    let Beside {
        job, mem, clock, ..
    } = beside;
    let node_clock = NodeClock::new(clock.clone(), 1);
    let way = FaultStore::at(beside.link, mem, clock, &node_clock.pause);
    let config = NodeConfig {
        clock: ClockOf::Store,
        running_max: beside.running_max,
        ..NodeConfig::default()
    };
    let started = Clock::now(clock);
    let target = Work {
        clock: clock.clone(),
    };
    let registry = Registry::default().with("http", Arc::new(target));
    let node = Node::start(Arc::new(way), Arc::new(node_clock), registry, config);
    let node = node.await.unwrap();
    clock.sleep(Duration::from_secs(30)).await;
    let (from, to) = (started.plus(beside.settled), Clock::now(clock));
    let slots = mem.list_slots(TenantId::DEFAULT, job.id, from, to, 99);
    let slots = slots.await.unwrap();
    node.stop(Duration::ZERO).await;
    assert!(slots.len() >= 25, "{}", slots.len());
    let late = |run: &Run| {
        assert_ne!(run.state, RunState::Skipped);
        let first = run.attempts.first().and_then(|it| it.dispatched_at);
        let slot = run.slot.unwrap().0;
        first.or(run.dispatched_at).unwrap_or(to).since(slot)
    };
    slots.iter().map(late).max().unwrap()
}

/// The same beside retries that wait so long.
async fn lateness(wait: Duration) -> Duration {
    let clock = SimClock::new();
    let mem = waiting(&clock, wait).await;
    let job = every_second(RETRIES, &clock);
    create(&mem, &job).await;
    lateness_of(Beside {
        job: &job,
        mem: &mem,
        clock: &clock,
        link: Duration::from_millis(3),
        settled: Duration::from_secs(3),
        running_max: limits::RUNNING_MAX,
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn retries_that_wait_hold_up_nothing_that_is_due() {
    for hours in [0, 2] {
        let late = lateness(Duration::from_secs(1_800 + hours * 3_600)).await;
        assert!(late < Duration::from_millis(100), "{hours} h: {late:?}");
    }
}

/// A store with so many slots that were due a minute ago, in the lane of what is on time.
async fn overdue(count: u16, slow: bool, clock: &SimClock) -> (MemStore, Vec<NewJob>) {
    let mem = MemStore::new(Arc::new(clock.clone()));
    let now = Clock::now(clock);
    let one = |number: u16| {
        let mut job = Job::clone(&job(number, Schedule::from(Slot(now)), now));
        if slow {
            Arc::make_mut(&mut job.def).target = slow_target();
        }
        NewJob {
            job: Arc::new(job),
            idempotency: None,
        }
    };
    let backlog: Vec<NewJob> = (0..count).map(one).collect();
    mem.create_jobs(&backlog).await.unwrap();
    clock.sleep(Duration::from_secs(60)).await;
    (mem, backlog)
}

#[tokio::test(start_paused = true)]
async fn a_backlog_larger_than_its_room_makes_no_slot_late_that_is_on_time() {
    const COUNT: u16 = 26_000;
    assert!(usize::from(COUNT) > limits::WHEEL_BACKLOG_MAX);
    let clock = SimClock::new();
    let (mem, backlog) = overdue(COUNT, false, &clock).await;
    let job = every_second(COUNT, &clock);
    create(&mem, &job).await;
    let late = lateness_of(Beside {
        job: &job,
        mem: &mem,
        clock: &clock,
        link: Duration::from_millis(90),
        settled: Duration::from_millis(500),
        running_max: limits::RUNNING_MAX,
    })
    .await;
    assert!(late < Duration::from_millis(100), "{late:?}");
    for new in backlog.iter().step_by(997) {
        let read = mem.get_job(TenantId::DEFAULT, new.job.id).await.unwrap();
        assert_eq!(read.unwrap().next_slot, None, "{}", new.job.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_slow_targets_leaves_permits_for_what_is_on_time() {
    let clock = SimClock::new();
    let (mem, _) = overdue(3_000, true, &clock).await;
    let job = every_second(3_000, &clock);
    create(&mem, &job).await;
    let late = lateness_of(Beside {
        job: &job,
        mem: &mem,
        clock: &clock,
        link: Duration::from_millis(3),
        settled: Duration::from_secs(1),
        running_max: 100,
    })
    .await;
    assert!(late < Duration::from_millis(100), "{late:?}");
}
