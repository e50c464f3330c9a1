//! Retries that wait by the thousand: a node that comes to them goes on with what is due.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::Registry;
use model::schedule::{Every, Period, Zone};
use model::shard::ShardSet;
use model::{
    Attempt, Definition, Job, JobId, Outcome, Overlap, Parts, Report, Run, RunState, Schedule,
    Slot, Target, TenantId, Timestamp, Verdict,
};
use sim::clock::{NodeClock, SimClock};
use sim::faults::FaultStore;
use store::mem::MemStore;
use store::{Firing, NewJob, NodeInfo, Settled, Settlement, Store, Vitals};

const RETRIES: u16 = 3_000;

fn job(number: u16, schedule: Schedule, now: Timestamp) -> Arc<Job> {
    let [high, low] = number.to_be_bytes();
    let id = JobId::new(now, [0, 0, 0, 0, 0, 0, 0, 0, high, low]);
    let mut def = Definition::new(schedule, Target::Fake(String::new()));
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
        parts: Parts::default(),
    };
    let before = mem.join(&before).await.unwrap();
    mem.beat(before, &Vitals::default()).await.unwrap();
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

/// How late the slots of an every-second job were, beside retries that wait so long, on a link of three milliseconds.
async fn lateness(wait: Duration) -> Duration {
    let clock = SimClock::new();
    let mem = waiting(&clock, wait).await;
    let period = Period::Elapsed(Duration::from_secs(1));
    let every = Every::new(period, Clock::now(&clock), Zone::get("UTC").unwrap()).unwrap();
    let beside = job(RETRIES, every.into(), Clock::now(&clock));
    create(&mem, &beside).await;
    let node_clock = NodeClock::new(clock.clone(), 1);
    let way = FaultStore::at(Duration::from_millis(3), &mem, &clock, &node_clock.pause);
    let config = NodeConfig {
        clock: ClockOf::Store,
        ..NodeConfig::default()
    };
    let started = Clock::now(&clock);
    let node = Node::start(
        Arc::new(way),
        Arc::new(node_clock),
        Registry::default(),
        config,
    );
    let node = node.await.unwrap();
    clock.sleep(Duration::from_secs(30)).await;
    let (from, to) = (started.plus(Duration::from_secs(3)), Clock::now(&clock));
    let slots = mem.list_slots(TenantId::DEFAULT, beside.id, from, to, 99);
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

#[tokio::test(start_paused = true)]
async fn retries_that_wait_hold_up_nothing_that_is_due() {
    for hours in [0, 2] {
        let late = lateness(Duration::from_secs(1_800 + hours * 3_600)).await;
        assert!(late < Duration::from_millis(100), "{hours} h: {late:?}");
    }
}
