//! A backlog of ten thousand slots after an outage: all of it is caught up with, once each, and nothing else is lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::policy::CatchUp;
use model::schedule::{Every, Period, Zone};
use model::{
    CatchUpPolicy, Definition, Job, JobId, Overlap, Report, RunState, Slot, Target, TenantId,
};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{ClientStore, NewJob};

const JOBS: u8 = 100;
const MISSED: u64 = 100;
const PERIOD: Duration = Duration::from_secs(10);

/// Answers at once, and remembers how often each slot was delivered.
#[derive(Clone, Default)]
struct Counter {
    seen: Arc<Mutex<BTreeMap<(JobId, Slot), u32>>>,
}

#[async_trait]
impl Executor for Counter {
    async fn execute(&self, order: WorkOrder) -> Report {
        if let Some(slot) = order.slot {
            let mut seen = self.seen.lock().unwrap();
            *seen.entry((order.job.id, slot)).or_default() += 1;
        }
        Report::succeeded()
    }
}

fn job(number: u8, clock: &SimClock) -> Arc<Job> {
    let now = Clock::now(clock);
    let anchor = now.plus(Duration::from_millis(97 * u64::from(number)));
    let every = Every::new(Period::Elapsed(PERIOD), anchor, Zone::utc()).unwrap();
    let mut def = Definition::new(every.into(), Target::http("http://localhost/").unwrap());
    def.overlap = Overlap::Allow;
    def.catch_up = CatchUp {
        policy: CatchUpPolicy::All,
        window: Duration::from_secs(24 * 3_600),
        max: CatchUp::MAX_MAX,
    };
    let id = JobId::new(now, [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_slots_of_an_outage_are_caught_up_with_once_each() {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let jobs: Vec<Arc<Job>> = (0..JOBS).map(|number| job(number, &clock)).collect();
    for job in &jobs {
        let new = NewJob {
            job: Arc::clone(job),
            idempotency: None,
        };
        mem.create_jobs(&[new]).await.unwrap();
    }
    clock.sleep(PERIOD * MISSED as u32).await;
    let counter = Counter::default();
    let registry = Registry::default().with("http", Arc::new(counter.clone()));
    let (store, own) = (Arc::new(mem.clone()), Arc::new(clock.clone()));
    let node = Node::start(store, own, registry, NodeConfig::default()).await;
    let node = node.unwrap();
    clock.sleep(Duration::from_secs(60)).await;
    node.stop(Duration::from_secs(5)).await;
    let seen = counter.seen.lock().unwrap().clone();
    assert!(seen.values().all(|count| *count == 1), "some came twice");
    for job in &jobs {
        let mut next = job.next_slot;
        for _ in 0..MISSED {
            let slot = next.unwrap();
            assert!(seen.contains_key(&(job.id, slot)), "{slot} of {}", job.id);
            next = job.def.schedule.next_after(slot.0);
        }
    }
    let skipped = |state| state == RunState::Skipped;
    assert!(!mem.all_runs().iter().any(|run| skipped(run.state)));
    assert!(seen.len() as u64 >= u64::from(JOBS) * MISSED);
}
