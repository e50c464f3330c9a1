//! Ends that the store takes its time for, or will not have: the others do not wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Zone};
use model::{
    Definition, Job, JobId, Outcome, Overlap, PresenceId, Report, Run, RunId, RunState, Schedule,
    Slot, Target, TenantId, Timestamp,
};
use sim::clock::SimClock;
use sim::target::Answers;
use store::mem::MemStore;
use store::{BadRow, ClientStore, EngineStore, NewJob, Settled, Settlement, StoreError};

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
        ..Definition::new(schedule, Target::http("http://localhost/").unwrap())
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

async fn start(store: &Wrapped, clock: &SimClock, executor: impl Executor) -> Node {
    let registry = Registry::default().with("http", Arc::new(executor));
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
    let executor = Answers(|_: &WorkOrder| Report::of(Outcome::Succeeded));
    let node = start(&Wrapped::new(&mem, slow), &clock, executor).await;
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

/// How the store takes it badly that one job's run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It answers so, until the end says nothing any more.
    Answered,
    /// The whole batch fails, until the end says nothing any more.
    Failed,
    /// It panics, until the end says nothing any more.
    Panics,
    /// It never takes it.
    ForEver,
}

struct Refusing {
    refusal: Refusal,
    job: JobId,
}

#[async_trait]
impl Meddler for Refusing {
    async fn settle(
        &self,
        mem: &MemStore,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let says = |it: &Settlement| {
            let attempt = it.attempt.as_ref();
            attempt.is_some_and(|attempt| !attempt.output.is_empty())
        };
        let is_bad = |it: &Settlement| {
            it.run.job == self.job && (says(it) || self.refusal == Refusal::ForEver)
        };
        if self.refusal == Refusal::Failed && settlements.iter().any(is_bad) {
            let (what, detail) = ("a settlement".to_owned(), "its data".to_owned());
            return Err(StoreError::BadRow(BadRow { what, detail }));
        }
        let panics = self.refusal == Refusal::Panics && settlements.iter().any(is_bad);
        assert!(!panics, "a panic on purpose");
        let mut answers = Vec::new();
        for settlement in settlements {
            if is_bad(settlement) {
                answers.push(Settled::Refused("its data".to_owned()));
            } else {
                answers.extend(mem.settle(by, std::slice::from_ref(settlement)).await?);
            }
        }
        Ok(answers)
    }
}

/// Jobs that all are due at one moment, one of which the store takes badly: how often that one was delivered, and how
/// it stands after a while.
async fn refused(refusal: Refusal) -> (u32, Run) {
    let clock = SimClock::new();
    let now = Clock::now(&clock);
    let mem = MemStore::new(Arc::new(clock.clone()));
    let soon = Schedule::from(Slot(now.plus(Duration::from_secs(3))));
    let mut jobs = Vec::new();
    for number in 0..100 {
        jobs.push(create(&mem, number, now, soon.clone(), Overlap::Allow).await);
    }
    let job = jobs.remove(41);
    let store = Wrapped::new(&mem, Refusing { refusal, job });
    let deliveries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&deliveries);
    let executor = Answers(move |order: &WorkOrder| {
        if order.job.id == job {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        let mut report = Report::of(Outcome::Succeeded);
        report.output = "all is well".into();
        report
    });
    let node = start(&store, &clock, executor).await;
    clock.sleep(Duration::from_secs(30)).await;
    assert!(node.handle().metrics().refused.get() > 0);
    for other in jobs {
        let run = RunId::for_slot(other, Slot(now.plus(Duration::from_secs(3))));
        let run = mem.get_run(TenantId::DEFAULT, run).await.unwrap().unwrap();
        assert_eq!(run.state, RunState::Succeeded, "{refusal:?}: {run:?}");
    }
    let run = RunId::for_slot(job, Slot(now.plus(Duration::from_secs(3))));
    let run = mem.get_run(TenantId::DEFAULT, run).await.unwrap().unwrap();
    node.stop(Duration::from_secs(1)).await;
    (deliveries.load(Ordering::SeqCst), run)
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_refused_is_written_without_what_it_said() {
    for refusal in [Refusal::Answered, Refusal::Failed, Refusal::Panics] {
        let (deliveries, run) = refused(refusal).await;
        assert_eq!(deliveries, 1, "{refusal:?}");
        assert_eq!(run.state, RunState::Succeeded, "{refusal:?}: {run:?}");
        let attempt = run.attempts.last().unwrap();
        assert!(attempt.output.is_empty() && attempt.error.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_written_at_all_is_given_up_and_not_delivered_again() {
    let (deliveries, run) = refused(Refusal::ForEver).await;
    assert_eq!(deliveries, 1);
    assert!(run.claim.is_some(), "{run:?}");
}
