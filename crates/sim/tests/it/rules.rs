//! Rules that change under jobs: tables of a time zone, and who may apply them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::Registry;
use model::schedule::{Cron, CronOptions, Zone, tzdb_version};
use model::{Calendar, CalendarName, Definition, Job, JobId, Slot, Target, TenantId, Version};
use sim::clock::SimClock;
use store::mem::MemStore;
use store::{ClientStore, EngineStore, NewJob, NodeInfo, Rule, Store, StoreError};

use crate::wrapped::{Meddler, Wrapped};

const ZONE: &str = "Europe/Berlin";

/// A job at nine in the morning, scheduled an hour late, as older tables may have had it.
fn job(number: u16, zone: &str, clock: &SimClock) -> Job {
    let options = CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        ..CronOptions::default()
    };
    let cron = Cron::parse(&["0 9 * * *".to_owned()], options).unwrap();
    let def = Definition::new(cron.into(), Target::http("http://localhost/").unwrap());
    let now = Clock::now(clock);
    let [high, low] = number.to_be_bytes();
    let id = JobId::new(now, [0, 0, 0, 0, 0, 0, 0, 0, high, low]);
    let mut job = Job::new(id, TenantId::DEFAULT, None, def, now);
    let right = job.next_slot.unwrap();
    job.next_slot = Some(Slot(right.0.plus(Duration::from_secs(3_600))));
    job
}

/// A store whose jobs in Berlin were scheduled by other tables than ours.
async fn upgraded(clock: &SimClock, jobs: u16) -> (MemStore, Vec<Job>) {
    let mem = MemStore::new(Arc::new(clock.clone()));
    let mut made = Vec::new();
    for number in 0..jobs {
        made.push(job(number, ZONE, clock));
    }
    made.push(job(9_000, "Asia/Tokyo", clock));
    for job in &made {
        let new = NewJob {
            job: Arc::new(job.clone()),
            idempotency: None,
        };
        mem.create_jobs(&[new]).await.unwrap();
    }
    let rule = Rule::Zone {
        name: ZONE.to_owned(),
        digest: 1,
        known: Zone::get(ZONE).unwrap().digest(),
    };
    mem.rule_applied(&rule).await.unwrap();
    assert_eq!(mem.rules_changed().await.unwrap().len(), 1);
    (mem, made)
}

async fn start(mem: &MemStore, clock: &SimClock) -> Node {
    start_over(Arc::new(mem.clone()), clock).await
}

async fn start_over(store: Arc<dyn Store>, clock: &SimClock) -> Node {
    let config = NodeConfig {
        clock: ClockOf::Store,
        ..NodeConfig::default()
    };
    let clock = Arc::new(clock.clone());
    let started = Node::start(store, clock, Registry::default(), config).await;
    started.unwrap()
}

async fn stands(mem: &MemStore, job: &Job) -> (Version, Option<Slot>) {
    let read = mem.get_job(TenantId::DEFAULT, job.id).await;
    let read = read.unwrap().unwrap();
    (read.version, read.next_slot)
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_zone_whose_tables_changed_are_rescheduled_and_no_others() {
    let clock = SimClock::new();
    let (mem, jobs) = upgraded(&clock, 1_100).await;
    let node = start(&mem, &clock).await;
    clock.sleep(Duration::from_secs(10)).await;
    let (berlin, tokyo) = jobs.split_at(1_100);
    for job in berlin {
        let right = job.def.schedule.next_after(job.created_at);
        assert_eq!(stands(&mem, job).await, (Version(2), right));
    }
    for job in tokyo {
        assert_eq!(stands(&mem, job).await, (Version(1), job.next_slot));
    }
    assert!(mem.rules_changed().await.unwrap().is_empty());
    node.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn tables_wait_until_no_node_with_others_lives() {
    let clock = SimClock::new();
    let (mem, jobs) = upgraded(&clock, 3).await;
    let older = NodeInfo {
        name: "older".to_owned(),
        version: "0.0.9".to_owned(),
        tables: "2019a".to_owned(),
        ..NodeInfo::default()
    };
    let older = mem.join(&older).await.unwrap();
    let node = start(&mem, &clock).await;
    for _ in 0..20 {
        clock.sleep(Duration::from_secs(1)).await;
        mem.beat(older, &store::NodeStatus::default())
            .await
            .unwrap();
    }
    assert_ne!(tzdb_version(), "2019a");
    assert_eq!(stands(&mem, &jobs[0]).await.0, Version(1));
    mem.leave(older).await.unwrap();
    clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(stands(&mem, &jobs[0]).await.0, Version(2));
    node.stop(Duration::ZERO).await;
}

/// An upgrade that is taken back: for a while nodes disagreed about where slots are, and the zone never changed.
#[tokio::test(start_paused = true)]
async fn what_a_node_with_other_tables_has_scheduled_is_rescheduled_when_it_is_gone() {
    let clock = SimClock::new();
    let (mem, made) = upgraded(&clock, 1).await;
    let node = start(&mem, &clock).await;
    clock.sleep(Duration::from_secs(10)).await;
    assert!(mem.rules_changed().await.unwrap().is_empty());
    let newer = NodeInfo {
        name: "newer".to_owned(),
        tables: "2099a".to_owned(),
        ..NodeInfo::default()
    };
    let newer = mem.join(&newer).await.unwrap();
    // Until it is heard of, which takes a beat, the node may still apply what it then has to apply again.
    clock.sleep(Duration::from_secs(2)).await;
    let theirs = job(9, ZONE, &clock);
    let new = NewJob {
        job: Arc::new(theirs.clone()),
        idempotency: None,
    };
    mem.create_jobs(&[new]).await.unwrap();
    for _ in 0..10 {
        clock.sleep(Duration::from_secs(1)).await;
        mem.beat(newer, &store::NodeStatus::default())
            .await
            .unwrap();
    }
    let stood = (Version(1), theirs.next_slot);
    assert_eq!(stands(&mem, &theirs).await, stood, "it lives");
    mem.leave(newer).await.unwrap();
    clock.sleep(Duration::from_secs(10)).await;
    let right = |job: &Job| (Version(2), job.def.schedule.next_after(job.created_at));
    assert_eq!(stands(&mem, &theirs).await, right(&theirs));
    assert_eq!(stands(&mem, &made[0]).await, right(&made[0]), "as before");
    assert!(mem.rules_changed().await.unwrap().is_empty());
    node.stop(Duration::ZERO).await;
}

/// Fails every so many changes of jobs.
struct Failing {
    every: u64,
    changes: Arc<AtomicU64>,
}

#[async_trait]
impl Meddler for Failing {
    async fn before(&self, call: &'static str) -> Result<(), StoreError> {
        if call == "change_job" {
            let changes = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
            if changes.is_multiple_of(self.every) {
                return Err(StoreError::unavailable("it fails on purpose"));
            }
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_store_costs_no_progress() {
    let clock = SimClock::new();
    let (mem, jobs) = upgraded(&clock, 1_100).await;
    let changes = Arc::new(AtomicU64::new(0));
    let failing = Failing {
        every: 100,
        changes: Arc::clone(&changes),
    };
    let store = Wrapped::new(&mem, failing);
    let node = start_over(Arc::new(store), &clock).await;
    clock.sleep(Duration::from_secs(60)).await;
    for job in &jobs[..1_100] {
        let right = job.def.schedule.next_after(job.created_at);
        assert_eq!(stands(&mem, job).await, (Version(2), right));
    }
    assert!(mem.rules_changed().await.unwrap().is_empty());
    let changes = changes.load(Ordering::SeqCst);
    assert!(changes < 1_130, "{changes} changes for 1,100 jobs");
    node.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_stays_where_it_is_keeps_its_version() {
    let clock = SimClock::new();
    let (mem, _) = upgraded(&clock, 0).await;
    let mut right = job(7, ZONE, &clock);
    right.next_slot = right.def.schedule.next_after(right.created_at);
    let new = NewJob {
        job: Arc::new(right.clone()),
        idempotency: None,
    };
    mem.create_jobs(&[new]).await.unwrap();
    let node = start(&mem, &clock).await;
    clock.sleep(Duration::from_secs(10)).await;
    assert!(mem.rules_changed().await.unwrap().is_empty());
    let stood = (Version(1), right.next_slot);
    assert_eq!(stands(&mem, &right).await, stood);
    node.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_calendar_that_moves_nothing_changes_only_jobs_that_are_due_soon() {
    let clock = SimClock::new();
    let mem = MemStore::new(Arc::new(clock.clone()));
    let tenant = TenantId::DEFAULT;
    let name = CalendarName::new("holidays").unwrap();
    let calendar = Calendar::new(name, Clock::now(&clock));
    mem.put_calendar(tenant, &calendar, None).await.unwrap();
    let [mut far, mut near] = [job(1, ZONE, &clock), job(2, ZONE, &clock)];
    far.next_slot = far.def.schedule.next_after(far.created_at);
    near.next_slot = Some(Slot(Clock::now(&clock).plus(Duration::from_secs(15))));
    for job in [&mut far, &mut near] {
        let calendars = &mut Arc::make_mut(&mut job.def).schedule.calendars;
        calendars.exclude.push(Arc::new(calendar.clone()));
        let new = NewJob {
            job: Arc::new(job.clone()),
            idempotency: None,
        };
        mem.create_jobs(&[new]).await.unwrap();
    }
    let changed = Calendar {
        version: Version(2),
        note: Some("the same days".to_owned()),
        ..calendar
    };
    let before = Some(Version(1));
    mem.put_calendar(tenant, &changed, before).await.unwrap();
    let node = start(&mem, &clock).await;
    clock.sleep(Duration::from_secs(10)).await;
    assert!(mem.rules_changed().await.unwrap().is_empty());
    assert_eq!(stands(&mem, &far).await, (Version(1), far.next_slot));
    // A wheel may have it with the calendar as it was.
    assert_eq!(stands(&mem, &near).await.0, Version(2));
    node.stop(Duration::ZERO).await;
}
