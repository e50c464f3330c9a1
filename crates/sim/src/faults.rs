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

use crate::checks::Broken;
use crate::clock::{Pause, SimClock};

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
    /// Whose calls these are may stand still.
    pub pause: Pause,
    /// What the store let through and should not have.
    pub seen: Arc<Mutex<Vec<Broken>>>,
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
        self.pause.over_there(&self.clock).await;
        if self.down.load(Ordering::SeqCst) || first < badness.before {
            return Err(StoreError::unavailable("lost before it was written"));
        }
        let answer = call.await;
        self.clock.sleep(after).await;
        self.pause.over_there(&self.clock).await;
        if second < badness.after {
            return Err(StoreError::unavailable("the answer was lost"));
        }
        answer
    }
}

impl FaultStore {
    fn broken(&self, check: &'static str, what: String) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Broken::new(check, what));
    }

    /// Fires, and looks whether every lease that counted was a current one.
    async fn fire_watched(
        &self,
        leases: &Leases,
        firings: &[Firing],
    ) -> Result<Vec<Fired>, StoreError> {
        let right = |firing: &Firing| self.inner.gives_right(leases, firing.job.shard());
        let rights: Vec<bool> = firings.iter().map(right).collect();
        let answers = self.inner.fire(leases, firings).await?;
        for ((firing, right), answer) in firings.iter().zip(rights).zip(&answers) {
            let wrote = !matches!(answer, Fired::LeaseLost | Fired::Stale | Fired::Refused(_));
            if wrote && !right {
                let what = format!("{} by {}", firing.job.id, leases.presence);
                self.broken("old_epoch_fires_nothing", what);
            }
        }
        Ok(answers)
    }

    /// Settles, and looks whether every claim that counted was the run's.
    async fn settle_watched(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let token = |run: &Run| (run.claim, run.attempt);
        let stood = |settlement: &Settlement| {
            let live = self.inner.live_run(settlement.run.id);
            live.is_some_and(|run| token(&run) == token(&settlement.run))
        };
        let stand: Vec<bool> = settlements.iter().map(stood).collect();
        let answers = self.inner.settle(by, settlements).await?;
        for ((settlement, stood), answer) in settlements.iter().zip(stand).zip(&answers) {
            if *answer != Settled::Stale && !stood {
                let what = format!("{} by {by}", settlement.run.id);
                self.broken("old_epoch_settles_nothing", what);
            }
        }
        Ok(answers)
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

            async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
                self.through(self.fire_watched(leases, firings)).await
            }

            async fn settle(
                &self,
                by: PresenceId,
                settlements: &[Settlement],
            ) -> Result<Vec<Settled>, StoreError> {
                self.through(self.settle_watched(by, settlements)).await
            }
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
    claim(leases: &Leases, runs: &[RunId]) -> Vec<Claimed>;
    start_run(start: &StartRun) -> Started;
    mark_running(presence: PresenceId, runs: &[(RunId, Timestamp)]) -> ();
    cancel_run(tenant: TenantId, run: RunId, now: Timestamp) -> Cancelled;
    withdraw(presence: PresenceId, answers: &[Withdrawal], now: Timestamp) -> ();
    get_run(tenant: TenantId, run: RunId) -> Option<Run>;
    list_runs(tenant: TenantId, filter: &RunFilter, page: Page<RunId>) -> Vec<Run>;
    list_slots(tenant: TenantId, job: JobId, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run>;
    retain(keep: &Keep) -> Retained;
    pulse() -> Pulse;
}
