//! Ends that the store takes its time for, or will not have: the others do not wait for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::Registry;
use executor::fake::Fake;
use model::schedule::{Every, Zone};
use model::{
    Definition, Job, JobId, Outcome, Overlap, PresenceId, Report, RunState, Schedule, Slot, Target,
    TenantId, Timestamp,
};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{NewJob, Settled, Settlement, Store, StoreError};

use crate::wrapped::{Meddler, Wrapped};

/// More than one write and one line hold.
const SLOW: u16 = 2_500;

async fn create(
    mem: &MemStore,
    number: u16,
    now: Timestamp,
    schedule: Schedule,
    over: Overlap,
) -> JobId {
    let def = Definition {
        overlap: over,
        ..Definition::new(schedule, Target::Fake(String::new()))
    };
    let [high, low] = number.to_be_bytes();
    let id = JobId::new(now, [0, 0, 0, 0, 0, 0, 0, 0, high, low]);
    let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
    let idempotency = None;
    mem.create_jobs(&[NewJob { job, idempotency }])
        .await
        .unwrap();
    id
}

async fn start(store: &Wrapped, clock: &SimClock) -> Node {
    let fake = Fake(|_: &executor::WorkOrder| Report::of(Outcome::Succeeded));
    let registry = Registry::default().with("fake", Arc::new(fake));
    let (config, store) = (NodeConfig::default(), Arc::new(store.clone()));
    let node = Node::start(store, Arc::new(clock.clone()), registry, config).await;
    node.unwrap()
}

fn every_second(now: Timestamp) -> Schedule {
    let every = Every::parse("PT1S", now, Zone::get("UTC").unwrap());
    every.unwrap().into()
}

/// Takes a minute for whatever holds an end of a job other than this one.
struct Slow {
    clock: SimClock,
    quick: JobId,
}

#[async_trait]
impl Meddler for Slow {
    async fn settle(
        &self,
        mem: &MemStore,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        if settlements.iter().any(|it| it.run.job != self.quick) {
            self.clock.sleep(Duration::from_secs(60)).await;
        }
        mem.settle(by, settlements).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_line_of_slow_ends_holds_up_no_simple_ones() {
    let clock = SimClock::new();
    let now = Clock::now(&clock);
    let mem = MemStore::new(Arc::new(clock.clone()));
    let quick = create(&mem, 0, now, every_second(now), Overlap::Allow).await;
    let soon = Schedule::from(Slot(now.plus(Duration::from_secs(3))));
    for number in 1..=SLOW {
        create(&mem, number, now, soon.clone(), Overlap::QueueOne).await;
    }
    let slow = Slow {
        clock: clock.clone(),
        quick,
    };
    let node = start(&Wrapped::new(&mem, slow), &clock).await;
    clock.sleep(Duration::from_secs(30)).await;
    let (from, to) = (
        now.plus(Duration::from_secs(5)),
        now.plus(Duration::from_secs(28)),
    );
    let runs = mem.list_slots(TenantId::DEFAULT, quick, from, to, 99);
    let runs = runs.await.unwrap();
    assert_eq!(runs.len(), 23);
    for run in runs {
        assert_eq!(run.state, RunState::Succeeded, "{run:?}");
    }
    node.crash();
}
