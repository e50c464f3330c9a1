//! A backlog of ten thousand slots after an outage: all of it is caught up with, once each, and nothing else is lost.

use std::collections::{BTreeMap, BTreeSet};
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
const MISSED: usize = 100;
const PERIOD: Duration = Duration::from_secs(10);
/// What each run takes.
const WORK: Duration = Duration::from_millis(20);
/// How long all of the backlog may take.
const CAUGHT_UP_IN: Duration = Duration::from_secs(300);

/// What was delivered.
#[derive(Default)]
struct Seen {
    /// The slots of each job, as they came.
    slots: BTreeMap<JobId, Vec<Slot>>,
    under_way: BTreeMap<JobId, u32>,
    /// Jobs that had two runs under way at once.
    at_once: BTreeSet<JobId>,
}

#[derive(Clone)]
struct Work {
    clock: SimClock,
    seen: Arc<Mutex<Seen>>,
}

#[async_trait]
impl Executor for Work {
    async fn execute(&self, order: WorkOrder) -> Report {
        let job = order.job.id;
        {
            let seen = &mut *self.seen.lock().unwrap();
            seen.slots.entry(job).or_default().extend(order.slot);
            let under_way = seen.under_way.entry(job).or_default();
            *under_way += 1;
            if *under_way > 1 {
                seen.at_once.insert(job);
            }
        }
        self.clock.sleep(WORK).await;
        *self.seen.lock().unwrap().under_way.entry(job).or_default() -= 1;
        Report::succeeded()
    }
}

fn job(number: u8, overlap: Overlap, clock: &SimClock) -> Arc<Job> {
    let now = Clock::now(clock);
    let anchor = now.plus(Duration::from_millis(97 * u64::from(number)));
    let every = Every::new(Period::Elapsed(PERIOD), anchor, Zone::utc()).unwrap();
    let mut def = Definition::new(every.into(), Target::http("http://localhost/").unwrap());
    def.overlap = overlap;
    def.catch_up = CatchUp {
        policy: CatchUpPolicy::All,
        window: Duration::from_secs(24 * 3_600),
        max: CatchUp::MAX_MAX,
    };
    let id = JobId::new(now, [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

/// Every slot that was missed, and what was due while they ran, is delivered once and none is skipped.
async fn catches_up(overlap: Overlap) -> Seen {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let jobs: Vec<Arc<Job>> = (0..JOBS)
        .map(|number| job(number, overlap, &clock))
        .collect();
    for job in &jobs {
        let new = NewJob {
            job: Arc::clone(job),
            idempotency: None,
        };
        mem.create_jobs(&[new]).await.unwrap();
    }
    clock.sleep(PERIOD * (MISSED as u32 + 1)).await;
    let back_at = Clock::now(&clock);
    let work = Work {
        clock: clock.clone(),
        seen: Arc::default(),
    };
    let registry = Registry::default().with("http", Arc::new(work.clone()));
    let (store, own) = (Arc::new(mem.clone()), Arc::new(clock.clone()));
    let node = Node::start(store, own, registry, NodeConfig::default()).await;
    let node = node.unwrap();
    clock.sleep(CAUGHT_UP_IN).await;
    let end = Clock::now(&clock);
    node.stop(Duration::from_secs(5)).await;
    let seen = std::mem::take(&mut *work.seen.lock().unwrap());
    for job in &jobs {
        let mut slots = seen.slots[&job.id].clone();
        let count = slots.len();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), count, "some of {} came twice", job.id);
        let next = |slot: &Slot| job.def.schedule.next_after(slot.0);
        let due = std::iter::successors(job.next_slot, next);
        let due: Vec<Slot> = due.take_while(|slot| slot.0 < end).collect();
        assert!(due.iter().filter(|slot| slot.0 < back_at).count() >= MISSED);
        let lost = due.iter().find(|slot| slots.binary_search(slot).is_err());
        assert_eq!(lost, None, "of {}: {overlap:?}", job.id);
    }
    let runs = mem.all_runs();
    let skipped = runs.iter().find(|run| run.state == RunState::Skipped);
    assert_eq!(skipped, None, "{overlap:?}");
    seen
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_slots_of_an_outage_are_caught_up_with_once_each() {
    catches_up(Overlap::Allow).await;
}

/// A delay that is the system's own is no overlap.
#[tokio::test(start_paused = true)]
async fn jobs_that_want_one_run_at_a_time_catch_up_one_after_another() {
    for overlap in [Overlap::Skip, Overlap::QueueAll { max: 3 }] {
        let seen = catches_up(overlap).await;
        assert_eq!(seen.at_once, BTreeSet::new(), "{overlap:?}");
        for (job, slots) in &seen.slots {
            assert!(slots.is_sorted(), "{job}, {overlap:?}: {slots:?}");
        }
    }
}
