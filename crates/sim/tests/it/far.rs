//! A store far away: every call takes a while, and slots start on time all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Zone};
use model::{Definition, Job, JobId, Outcome, Overlap, Report, Target, TenantId};
use sim::clock::{NodeClock, SimClock};
use sim::faults::FaultStore;
use store::mem::MemStore;
use store::{ClientStore, NewJob};

/// The most that a call takes on each side.
const DISTANCE: Duration = Duration::from_millis(100);
const JOBS: u8 = 100;

/// Remembers how late each attempt started.
#[derive(Clone)]
struct Recorder {
    clock: SimClock,
    late: Arc<Mutex<Vec<Duration>>>,
}

#[async_trait]
impl Executor for Recorder {
    async fn execute(&self, order: WorkOrder) -> Report {
        let now = Clock::now(&self.clock);
        let due_at = order.slot.map_or(now, |slot| order.job.due_at(slot));
        assert!(now >= due_at, "{} started early", order.run);
        self.late.lock().unwrap().push(now.since(due_at));
        Report::of(Outcome::Succeeded)
    }
}

/// Jobs that run every second, each at its own milliseconds, over a store so far away; how late each slot of ten
/// seconds started.
async fn lateness(overlap: Overlap, distance: Duration) -> Vec<Duration> {
    let clock = SimClock::new();
    let recorder = Recorder {
        clock: clock.clone(),
        late: Arc::default(),
    };
    let mem = MemStore::new(Arc::new(clock.clone()));
    let own = NodeClock::new(clock.clone(), 1);
    let store = FaultStore::at(distance, &mem, &clock, &own.pause);
    let registry = Registry::default().with("http", Arc::new(recorder.clone()));
    let config = NodeConfig::default();
    let node = Node::start(Arc::new(store), Arc::new(own), registry, config).await;
    let node = node.unwrap();
    for number in 0..JOBS {
        let now = Clock::now(&clock);
        let anchor = now.plus(Duration::from_millis(10 * u64::from(number)));
        let every = Every::parse("PT1S", anchor, Zone::get("UTC").unwrap()).unwrap();
        let def = Definition {
            overlap,
            ..Definition::new(every.into(), Target::http("http://localhost/").unwrap())
        };
        let id = JobId::new(now, [number; 10]);
        let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
        let idempotency = None;
        mem.create_jobs(&[NewJob { job, idempotency }])
            .await
            .unwrap();
    }
    // What it has to learn how far away the store is.
    clock.sleep(Duration::from_secs(5)).await;
    recorder.late.lock().unwrap().clear();
    clock.sleep(Duration::from_secs(10)).await;
    let late = recorder.late.lock().unwrap().clone();
    node.stop(Duration::ZERO).await;
    late
}

#[tokio::test(start_paused = true)]
async fn slots_start_on_time_although_the_store_is_far() {
    for overlap in [Overlap::Allow, Overlap::Skip] {
        let late = lateness(overlap, DISTANCE).await;
        let (count, latest) = (late.len(), late.iter().max().unwrap());
        let on_time = late.iter().filter(|late| late.is_zero()).count();
        assert_eq!(count, 10 * usize::from(JOBS), "{overlap:?}");
        assert!(
            on_time * 100 >= count * 99,
            "{overlap:?}: {on_time} of {count}"
        );
        assert!(*latest < DISTANCE, "{overlap:?}: {latest:?}");
    }
}
