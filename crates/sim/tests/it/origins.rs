//! An origin that dies: its runs wait and spend no attempts, runs of others start in time, and once it is back everything
//! of it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Period, Zone};
use model::{Definition, Job, JobId, Overlap, Report, RunState, Target, TenantId};
use sim::clock::SimClock;
use sim::origins::{Dead, Origins};
use store::mem::MemStore;
use store::{ClientStore, NewJob};

const DEAD: &str = "http://dead";
const WELL: &str = "http://well";
/// Jobs of each origin, each due once a second.
const JOBS: u8 = 10;
const SECONDS: u64 = 120;
/// When the origin dies, when it is back, and when everything of it must have ended.
const DIES: Duration = Duration::from_secs(20);
const BACK: Duration = Duration::from_secs(100);

/// A dead origin never answers; a living one does at once.
#[derive(Clone)]
struct Called {
    clock: SimClock,
    origins: Origins,
    /// When each call began, how late it was, and whom it called.
    calls: Arc<Mutex<Vec<(Duration, Duration, String)>>>,
}

#[async_trait]
impl Executor for Called {
    async fn execute(&self, order: WorkOrder) -> Report {
        let origin = order.job.def.target.origin().unwrap();
        let (now, uptime) = (Clock::now(&self.clock), Clock::uptime(&self.clock));
        let late = order.slot.map_or(Duration::ZERO, |slot| now.since(slot.0));
        let call = (uptime, late, origin.clone());
        self.calls.lock().unwrap().push(call);
        if self.origins.is_dead(&origin, uptime) {
            std::future::pending::<()>().await;
        }
        Report::succeeded()
    }
}

fn job(number: u8, origin: &str, clock: &SimClock) -> Arc<Job> {
    let now = Clock::now(clock);
    let anchor = now.plus(Duration::from_millis(1_000 + 41 * u64::from(number)));
    let period = Period::Elapsed(Duration::from_secs(1));
    let every = Every::new(period, anchor, Zone::utc()).unwrap();
    let mut def = Definition::new(every.into(), Target::http(origin).unwrap());
    def.overlap = Overlap::Allow;
    def.timeout = Duration::from_secs(3);
    let id = JobId::new(now, [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, now))
}

#[tokio::test(start_paused = true)]
async fn a_dead_origin_delays_no_other_and_its_runs_wait_until_it_is_back() {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let origins = Origins::default();
    let (from, to) = (DIES, BACK);
    origins.die(DEAD, Dead { from, to });
    for number in 0..2 * JOBS {
        let origin = if number < JOBS { DEAD } else { WELL };
        let new = NewJob {
            job: job(number, origin, &clock),
            idempotency: None,
        };
        mem.create_jobs(&[new]).await.unwrap();
    }
    let called = Called {
        clock: clock.clone(),
        origins,
        calls: Arc::default(),
    };
    let registry = Registry::default().with("http", Arc::new(called.clone()));
    let config = NodeConfig {
        running_max: 16,
        ..NodeConfig::default()
    };
    let (store, own) = (Arc::new(mem.clone()), Arc::new(clock.clone()));
    let node = Node::start(store, own, registry, config).await.unwrap();
    clock.sleep(Duration::from_secs(90)).await;
    let waits = mem
        .live_runs()
        .iter()
        .filter(|run| run.waits_outside())
        .count();
    assert!(waits > usize::from(JOBS) * 50, "{waits} runs wait");
    clock.sleep(Duration::from_secs(SECONDS)).await;
    let waits = mem.live_runs().iter().any(|run| run.waits_outside());
    assert!(!waits, "the origin is back for nearly two minutes");
    node.stop(Duration::from_secs(5)).await;

    let calls = called.calls.lock().unwrap().clone();
    let to_dead = |(at, _, origin): &&(Duration, Duration, String)| {
        origin == DEAD && (DIES..BACK).contains(at)
    };
    let count = calls.iter().filter(to_dead).count();
    assert!(count < 40, "a dead origin was called {count} times");
    // Until the first calls have timed out, nobody can know.
    let known = DIES + Duration::from_secs(6);
    let others = calls.iter().filter(|(_, _, origin)| origin == WELL);
    let others = others.filter(|(at, _, _)| *at < DIES || *at > known);
    let latest = others.map(|(_, late, _)| *late).max().unwrap();
    assert!(
        latest < Duration::from_millis(100),
        "another is late by {latest:?}"
    );
    let runs = mem.all_runs();
    let ended = runs.iter().filter(|run| !run.state.is_live());
    let bad = ended.filter(|run| run.state != RunState::Succeeded).count();
    assert_eq!(bad, 0, "runs that did not succeed");
    assert!(
        runs.len() >= 2 * usize::from(JOBS) * 200,
        "{} runs",
        runs.len()
    );
}
