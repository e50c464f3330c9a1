//! Nodes that have different executors: each claims only what it can deliver, and no attempt is spent on the rest.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::{Registry, WorkOrder};
use model::schedule::{Every, Zone};
use model::{
    AttemptNo, Definition, Job, JobId, Outcome, Report, Run, RunState, Schedule, Slot, Target,
    TenantId,
};
use sim::clock::{NodeClock, SimClock};
use sim::target::Answers;
use store::mem::MemStore;
use store::{ClientStore, NewJob, Page, RunFilter};

struct Fleet {
    clock: SimClock,
    mem: MemStore,
    /// Who started which attempt.
    started: Arc<Mutex<Vec<(String, AttemptNo)>>>,
}

impl Fleet {
    fn new() -> Self {
        let clock = SimClock::new();
        Self {
            mem: MemStore::new(Arc::new(clock.clone())),
            clock,
            started: Arc::default(),
        }
    }

    /// A node with an executor for targets of this kind.
    async fn node(&self, name: &str, kind: &'static str, outcome: Outcome) -> Node {
        let config = NodeConfig {
            name: name.to_owned(),
            clock: ClockOf::Store,
            ..NodeConfig::default()
        };
        let started = Arc::clone(&self.started);
        let executor = Answers(move |order: &WorkOrder| {
            let start = (order.node.to_string(), order.attempt);
            started.lock().unwrap().push(start);
            Report::of(outcome)
        });
        let registry = Registry::default().with(kind, Arc::new(executor));
        let clock = Arc::new(NodeClock::new(self.clock.clone(), 1));
        let store = Arc::new(self.mem.clone());
        Node::start(store, clock, registry, config).await.unwrap()
    }

    async fn create(&self, number: u8, schedule: Schedule) -> JobId {
        let now = Clock::now(&self.clock);
        let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
        let id = JobId::new(now, [number; 10]);
        let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
        let new = NewJob {
            job,
            idempotency: None,
        };
        self.mem.create_jobs(&[new]).await.unwrap();
        id
    }

    async fn sleep(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    async fn runs(&self) -> Vec<Run> {
        let all = Page {
            before: None,
            limit: 1_000,
        };
        let (me, every) = (TenantId::DEFAULT, RunFilter::default());
        self.mem.list_runs(me, &every, all).await.unwrap()
    }

    fn starts(&self) -> Vec<(String, AttemptNo)> {
        std::mem::take(&mut *self.started.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_a_node_that_can_execute_it() {
    let fleet = Fleet::new();
    let unable = fleet.node("unable", "other", Outcome::Succeeded).await;
    let soon = Clock::now(&fleet.clock).plus(Duration::from_secs(5));
    fleet.create(1, Slot(soon).into()).await;
    fleet.sleep(60).await;
    let runs = fleet.runs().await;
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.state, run.claim), (RunState::Ready, None));
    assert_eq!((run.attempt, run.lost), (AttemptNo::FIRST, 0));
    assert!(run.attempts.is_empty(), "{run:?}");
    let able = fleet.node("able", "http", Outcome::Succeeded).await;
    fleet.sleep(5).await;
    assert_eq!(fleet.starts(), [("able".to_owned(), AttemptNo::FIRST)]);
    let runs = fleet.runs().await;
    assert_eq!((runs[0].state, runs[0].lost), (RunState::Succeeded, 0));
    unable.stop(Duration::ZERO).await;
    able.stop(Duration::ZERO).await;
}

/// Shards are dealt out among both; whoever fires, the one that can executes, also the retries.
#[tokio::test(start_paused = true)]
async fn of_two_nodes_the_one_with_the_executor_does_the_work() {
    let fleet = Fleet::new();
    let unable = fleet.node("unable", "other", Outcome::Succeeded).await;
    let able = fleet.node("able", "http", Outcome::Failed).await;
    fleet.sleep(5).await;
    for number in 0..20 {
        let now = Clock::now(&fleet.clock);
        let every = Every::parse("PT10S", now, Zone::get("UTC").unwrap()).unwrap();
        fleet.create(number, every.into()).await;
    }
    fleet.sleep(60).await;
    let starts = fleet.starts();
    assert!(starts.iter().all(|(node, _)| node == "able"), "{starts:?}");
    assert!(starts.len() > 60, "{}", starts.len());
    assert!(starts.iter().any(|(_, attempt)| *attempt > AttemptNo(2)));
    for run in fleet.runs().await {
        assert_eq!(run.lost, 0, "{run:?}");
        let by_able = |it: &model::Attempt| it.node.as_deref() == Some("able");
        assert!(run.attempts.iter().all(by_able), "{run:?}");
    }
    unable.stop(Duration::ZERO).await;
    able.stop(Duration::ZERO).await;
}
