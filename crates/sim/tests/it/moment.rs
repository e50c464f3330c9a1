//! A run is dispatched at one moment, whoever says it: fire, the run while it is under way, and history.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Alarm, Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Zone};
use model::{
    Definition, Job, JobId, Report, Run, RunId, RunKind, RunState, Slot, Target, TenantId,
    Timestamp,
};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{ClientStore, NewJob, StartRun};

const TAKES: Duration = Duration::from_secs(5);

/// Each reading is a millisecond later than the one before, as often as is left.
#[derive(Clone)]
struct Ticking {
    base: SimClock,
    left: Arc<AtomicI64>,
}

impl Ticking {
    /// Readings, from now on.
    fn tick(&self) {
        self.left.store(200, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            self.base.step(1);
        }
        Clock::now(&self.base)
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(&self.base)
    }

    async fn sleep(&self, span: Duration) {
        self.base.sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        self.base.alarm()
    }
}

struct Slow(SimClock);

#[async_trait]
impl Executor for Slow {
    async fn execute(&self, _: WorkOrder) -> Report {
        self.0.sleep(TAKES).await;
        Report::succeeded()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_under_way_was_dispatched_when_history_says() {
    let base = SimClock::new();
    let mem = MemStore::new(Arc::new(base.clone()));
    let now = Clock::now(&base);
    let anchor = now.plus(Duration::from_secs(3_600));
    let every = Every::parse("PT1H", anchor, Zone::get("UTC").unwrap()).unwrap();
    let def = Definition::new(every.into(), Target::http("http://localhost/").unwrap());
    let id = JobId::new(now, [1; 10]);
    let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
    let new = NewJob {
        job: Arc::clone(&job),
        idempotency: None,
    };
    mem.create_jobs(&[new]).await.unwrap();
    let clock = Ticking {
        base: base.clone(),
        left: Arc::default(),
    };
    let registry = Registry::default().with("http", Arc::new(Slow(base.clone())));
    let (store, config) = (Arc::new(mem.clone()), NodeConfig::default());
    let node = Node::start(store, Arc::new(clock.clone()), registry, config);
    let node = node.await.unwrap();
    base.sleep(Duration::from_secs(5)).await;

    clock.tick();
    let requested_at = Clock::now(&base);
    let run = Run {
        id: RunId::of_request(id, requested_at, 1),
        kind: RunKind::Manual,
        slot: None,
        due_at: requested_at,
        ..Run::of_slot(&job, Slot(requested_at))
    };
    let run_id = run.id;
    mem.start_run(&StartRun { run, force: true }).await.unwrap();
    base.sleep(Duration::from_secs(3)).await;
    let under_way = mem.get_run(TenantId::DEFAULT, run_id).await;
    let under_way = under_way.unwrap().unwrap();
    base.sleep(TAKES).await;
    let ended = mem.get_run(TenantId::DEFAULT, run_id).await;
    let ended = ended.unwrap().unwrap();
    let states = (under_way.state, ended.state);
    assert_eq!(states, (RunState::Running, RunState::Succeeded));
    assert!(under_way.dispatched_at.is_some());
    assert_eq!(under_way.dispatched_at, ended.dispatched_at);
    node.crash();
}
