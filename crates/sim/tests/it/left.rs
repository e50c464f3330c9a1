//! What a node that is gone leaves behind: what may have been dispatched is lost, what was not due yet never was.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Clock, Node, NodeConfig};
use executor::{Registry, WorkOrder};
use model::shard::ShardSet;
use model::{
    Attempt, AttemptNo, Definition, Job, JobId, Outcome, PresenceId, Report, Run, Schedule, Slot,
    Target, TenantId, Timestamp, Verdict,
};
use sim::clock::SimClock;
use sim::target::Answers;
use store::mem::MemStore;
use store::{ClientStore, EngineStore, Firing, Leases, NewJob, NodeInfo, NodeStatus, Settlement};

struct Gone {
    clock: SimClock,
    mem: MemStore,
    me: PresenceId,
    leases: Leases,
}

/// A presence that holds every shard, and is about to be gone.
async fn gone() -> Gone {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let info = NodeInfo {
        name: "gone".to_owned(),
        version: String::new(),
        tables: String::new(),
        ..NodeInfo::default()
    };
    let me = mem.join(&info).await.unwrap();
    mem.beat(me, &NodeStatus::default()).await.unwrap();
    let leases = mem.lease(me, &ShardSet::ALL).await.unwrap();
    Gone {
        clock,
        mem,
        me,
        leases,
    }
}

impl Gone {
    /// A claimed run of a one-off that is due then.
    async fn claim(&self, due_at: Timestamp) -> Run {
        let now = Clock::now(&self.clock);
        let schedule = Schedule::from(Slot(due_at));
        let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
        let id = JobId::new(now, [1; 10]);
        let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now));
        let new = NewJob {
            job: Arc::clone(&job),
            idempotency: None,
        };
        self.mem.create_jobs(&[new]).await.unwrap();
        let firing = Firing {
            decision: job.decide(Slot(due_at), now, &Arc::from("gone")),
            job: Arc::clone(&job),
            claim: true,
            knows: Vec::new(),
        };
        self.mem.fire(&self.leases, &[firing]).await.unwrap();
        Run {
            claim: Some(self.me),
            ..Run::of_slot(&job, Slot(due_at))
        }
    }

    /// The first attempt fails, and the second, due so much later, is claimed.
    async fn retry(&self, run: &Run, wait: Duration) {
        let now = Clock::now(&self.clock);
        let failed = Attempt::new(run.attempt, Some(now), now, Report::of(Outcome::Failed));
        let retry = Settlement {
            run: run.clone(),
            verdict: Verdict::RetryAt(now.plus(wait)),
            attempt: Some(failed),
        };
        self.mem.settle(self.me, &[retry]).await.unwrap();
        self.mem.claim(&self.leases, &[run.id]).await.unwrap();
    }

    /// It leaves, and another node takes over: the attempts that that one starts, and the run as it stands then.
    async fn taken_over(self, run: &Run) -> (Vec<AttemptNo>, Run) {
        self.mem.leave(self.me).await.unwrap();
        let started: Arc<Mutex<Vec<AttemptNo>>> = Arc::default();
        let starts = Arc::clone(&started);
        let executor = Answers(move |order: &WorkOrder| {
            starts.lock().unwrap().push(order.attempt);
            Report::of(Outcome::Succeeded)
        });
        let registry = Registry::default().with("http", Arc::new(executor));
        let (store, clock) = (Arc::new(self.mem.clone()), Arc::new(self.clock.clone()));
        let node = Node::start(store, clock, registry, NodeConfig::default()).await;
        let node = node.unwrap();
        self.clock.sleep(Duration::from_secs(20)).await;
        node.stop(Duration::ZERO).await;
        let run = self.mem.get_run(run.tenant, run.id).await.unwrap();
        let started = started.lock().unwrap().clone();
        (started, run.unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_marked_as_running_is_lost_whenever_its_row_says_that_it_is_due() {
    let gone = gone().await;
    let now = Clock::now(&gone.clock);
    let run = gone.claim(now).await;
    // The second attempt is due in two hours, and the clock went back: it is made due now, and starts.
    gone.retry(&run, Duration::from_secs(7_200)).await;
    let marks = [(run.id, now)];
    gone.mem.mark_running(gone.me, &marks).await.unwrap();
    let (started, run) = gone.taken_over(&run).await;
    assert_eq!(started, [AttemptNo(3)]);
    assert_eq!(run.lost, 1, "{run:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_due_when_its_node_was_gone_is_no_lost_attempt() {
    let gone = gone().await;
    let due_at = Clock::now(&gone.clock).plus(Duration::from_millis(900));
    let run = gone.claim(due_at).await;
    let (started, run) = gone.taken_over(&run).await;
    assert_eq!(started, [AttemptNo::FIRST]);
    assert_eq!(run.lost, 0, "{run:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_not_due_when_its_node_was_gone_is_no_lost_attempt() {
    let gone = gone().await;
    let now = Clock::now(&gone.clock);
    let run = gone.claim(now).await;
    // Its first attempt was dispatched; the second is claimed ahead, and never leaves.
    gone.retry(&run, Duration::from_millis(900)).await;
    let (started, run) = gone.taken_over(&run).await;
    assert_eq!(started, [AttemptNo(2)]);
    assert_eq!(run.lost, 0, "{run:?}");
}
