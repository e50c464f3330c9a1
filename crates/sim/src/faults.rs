//! A store behind faults: slow, failing before it wrote, or failing after it wrote.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::Clock;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, PresenceId, Run, RunId, TenantId, Timestamp,
    Version,
};
use rand::RngExt;
use rand::rngs::StdRng;
use store::mem::MemStore;
use store::*;

use crate::clock::SimClock;

/// How bad the store is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Badness {
    /// The chance that a call fails before it is written, in thousandths.
    pub before: u32,
    /// The chance that it fails after it was written.
    pub after: u32,
    /// The most that a call takes on each side of the write.
    pub slow: Duration,
}

#[derive(Clone)]
pub struct FaultStore {
    pub inner: MemStore,
    pub clock: SimClock,
    pub rng: Arc<Mutex<StdRng>>,
    pub badness: Arc<Mutex<Badness>>,
    /// Nothing gets through at all.
    pub down: Arc<AtomicBool>,
}

impl FaultStore {
    fn draw(&self) -> (Badness, u32, u32, Duration, Duration) {
        let badness = *self.badness.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let slow = badness.slow.as_micros() as u64 + 1;
        let (first, second) = (rng.random_range(0..1_000), rng.random_range(0..1_000));
        let before = Duration::from_micros(rng.random_range(0..slow));
        let after = Duration::from_micros(rng.random_range(0..slow));
        (badness, first, second, before, after)
    }

    async fn through<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (badness, first, second, before, after) = self.draw();
        self.clock.sleep(before).await;
        if self.down.load(Ordering::SeqCst) || first < badness.before {
            return Err(StoreError::unavailable("lost before it was written"));
        }
        let answer = call.await;
        self.clock.sleep(after).await;
        if second < badness.after {
            return Err(StoreError::unavailable("the answer was lost"));
        }
        answer
    }
}

/// Every method passes through the faults.
macro_rules! faulty {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for FaultStore {
            $(async fn $name(&self, $($arg: $kind),*) -> Result<$answer, StoreError> {
                self.through(self.inner.$name($($arg),*)).await
            })*
        }
    };
}

faulty! {
    join(node: &NodeInfo) -> PresenceId;
    beat(presence: PresenceId) -> Beat;
    lease(presence: PresenceId, wanted: &ShardSet) -> Leases;
    leave(presence: PresenceId) -> ();
    bar_lapsed(by: PresenceId) -> Vec<PresenceId>;
    orphans(shards: &ShardSet, limit: usize) -> Vec<Orphan>;
    claims(presence: PresenceId, after: Option<RunId>, limit: usize) -> Vec<HeldClaim>;
    create_jobs(jobs: &[NewJob]) -> Vec<Created>;
    change_job(change: &JobChange) -> JobChanged;
    get_job(tenant: TenantId, id: JobId) -> Option<Job>;
    find_job(tenant: TenantId, key: &JobKey) -> Option<Job>;
    list_jobs(tenant: TenantId, filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
    put_calendar(tenant: TenantId, calendar: &Calendar, before: Option<Version>) -> CalendarPut;
    get_calendars(tenant: TenantId, names: &[CalendarName]) -> Vec<Option<CalendarUse>>;
    list_calendars(tenant: TenantId, after: Option<&CalendarName>, limit: usize) -> Vec<CalendarUse>;
    drop_calendar(tenant: TenantId, name: &CalendarName, before: Option<Version>) -> CalendarDropped;
    rules_changed() -> Vec<Rule>;
    jobs_under(rule: &Rule, after: Option<JobId>, limit: usize) -> Vec<(TenantId, JobId)>;
    rule_applied(rule: &Rule) -> ();
    due_jobs(shards: &ShardSet, up_to: Timestamp, after: Option<DueCursor>, limit: usize) -> DueJobs;
    due_runs(shards: &ShardSet, up_to: Timestamp, after: Option<(Timestamp, RunId)>, limit: usize) -> Vec<DueRun>;
    park(jobs: &[(JobId, String)], now: Timestamp) -> ();
    fire(leases: &Leases, firings: &[Firing]) -> Vec<Fired>;
    claim(leases: &Leases, runs: &[RunId]) -> Vec<Claimed>;
    start_run(start: &StartRun) -> Started;
    mark_running(presence: PresenceId, runs: &[(RunId, Timestamp)]) -> ();
    cancel_run(tenant: TenantId, run: RunId, now: Timestamp) -> Cancelled;
    withdraw(presence: PresenceId, answers: &[Withdrawal], now: Timestamp) -> ();
    settle(by: PresenceId, settlements: &[Settlement]) -> Vec<Settled>;
    get_run(tenant: TenantId, run: RunId) -> Option<Run>;
    list_runs(tenant: TenantId, filter: &RunFilter, page: Page<RunId>) -> Vec<Run>;
    list_slots(tenant: TenantId, job: JobId, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run>;
    retain(keep: &Keep) -> Retained;
    pulse() -> Pulse;
}
