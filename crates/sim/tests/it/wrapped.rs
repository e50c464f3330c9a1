//! The reference store in a wrapper that may have any call panic, fail, wait, or be answered otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Run, RunId, TenantId, Timestamp,
    Version, WaitReason,
};
use store::mem::MemStore;
use store::*;

/// What a call meets, before it is made and after. May panic.
#[async_trait]
pub trait Meddler: Send + Sync + 'static {
    async fn before(&self, _call: &'static str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn after(&self, _call: &'static str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Settles in the store's place.
    async fn settle(
        &self,
        mem: &MemStore,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        mem.settle(by, settlements).await
    }
}

#[derive(Clone)]
pub struct Wrapped {
    pub mem: MemStore,
    pub meddler: Arc<dyn Meddler>,
    /// How often a presence was joined.
    pub joins: Arc<AtomicUsize>,
}

impl Wrapped {
    pub fn new(mem: &MemStore, meddler: impl Meddler) -> Self {
        Self {
            mem: mem.clone(),
            meddler: Arc::new(meddler),
            joins: Arc::default(),
        }
    }
}

macro_rules! wrapped {
    ($trait:ident { $($own:tt)* } $($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $trait for Wrapped {
            $(async fn $name(&self, $($arg: $kind),*) -> Result<$answer, StoreError> {
                self.meddler.before(stringify!($name)).await?;
                let answer = self.mem.$name($($arg),*).await;
                self.meddler.after(stringify!($name)).await?;
                answer
            })*
            $($own)*
        }
    };
}

wrapped! {
    WaitStore {}

    wake_due(shards: &ShardSet, now: Timestamp, limit: usize) -> Vec<DueRun>;
    wake(runs: &[RunId], now: Timestamp) -> Vec<DueRun>;
    wake_run(tenant: TenantId, run: RunId, now: Timestamp) -> Woken;
    count_waiting() -> BTreeMap<WaitReason, u64>;
}

wrapped! {
    EngineStore {
        fn handed(&self) -> &dyn HandedStore {
            self.mem.handed()
        }

        async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
            self.joins.fetch_add(1, Ordering::SeqCst);
            self.mem.join(node).await
        }

        async fn settle(
            &self,
            by: PresenceId,
            settlements: &[Settlement],
        ) -> Result<Vec<Settled>, StoreError> {
            self.meddler.before("settle").await?;
            let answer = self.meddler.settle(&self.mem, by, settlements).await;
            self.meddler.after("settle").await?;
            answer
        }

        fn hint(&self, hints: &[Hint]) {
            self.mem.hint(hints);
        }
    }

    beat(presence: PresenceId, node_status: &NodeStatus) -> Beat;
    lease(presence: PresenceId, wanted: &ShardSet) -> Leases;
    leave(presence: PresenceId) -> ();
    fence(by: PresenceId, lapsed: &[model::presence::LastBeat]) -> Vec<PresenceId>;
    orphans(shards: &ShardSet, limit: usize) -> Vec<Orphan>;
    claims(presence: PresenceId, after: Option<RunId>, limit: usize) -> Vec<HeldClaim>;
    hints(presence: PresenceId) -> Vec<Hint>;
    rules_changed() -> Vec<Rule>;
    jobs_under(rule: &Rule, after: Option<JobId>, limit: usize) -> Vec<(TenantId, JobId)>;
    rule_applied(rule: &Rule) -> ();
    due_jobs(shards: &ShardSet, up_to: Timestamp, after: Option<DueCursor>, limit: usize) -> DueJobs;
    due_runs(shards: &ShardSet, up_to: Timestamp, after: Option<(Timestamp, RunId)>, limit: usize) -> Vec<DueRun>;
    due_of(jobs: &[JobId], up_to: Timestamp) -> DueOf;
    payloads(of: &[PayloadOf]) -> Vec<Option<Bytes>>;
    park(jobs: &[(JobId, String)], now: Timestamp) -> ();
    fire(leases: &Leases, firings: &[Firing]) -> Vec<Fired>;
    claim(leases: &Leases, runs: &[RunId]) -> Vec<Claimed>;
    claim_due(presence: PresenceId, shards: &ShardSet, room: DueRoom) -> Vec<(Run, Arc<Job>)>;
    mark_running(presence: PresenceId, runs: &[(RunId, Timestamp)]) -> ();
    withdraw(presence: PresenceId, answers: &[Withdrawal], now: Timestamp) -> ();
    retain(keep: &Keep) -> Retained;
    oldest_due(shards: &ShardSet, from: Timestamp, up_to: Timestamp) -> Option<Timestamp>;
    count_jobs(after: Option<JobId>, limit: usize) -> JobCounts;
}

wrapped! {
    ClientStore {
        fn access(&self) -> &dyn AccessStore {
            self.mem.access()
        }

        fn replays(&self) -> &dyn ReplayStore {
            self.mem.replays()
        }

        fn alerts(&self) -> &dyn AlertStore {
            self.mem.alerts()
        }
    }

    raise_level(to: Level) -> Raised;
    create_jobs(jobs: &[NewJob]) -> Vec<Created>;
    change_job(change: &JobChange) -> JobChanged;
    get_jobs(jobs: &[(TenantId, JobId)]) -> Vec<Found<Job>>;
    find_job(tenant: TenantId, key: &JobKey) -> Option<Job>;
    list_jobs(tenant: TenantId, filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
    put_calendar(tenant: TenantId, calendar: &Calendar, before: Option<Version>) -> CalendarPut;
    get_calendars(tenant: TenantId, names: &[CalendarName]) -> Vec<Option<CalendarUse>>;
    list_calendars(tenant: TenantId, after: Option<&CalendarName>, limit: usize) -> Vec<CalendarUse>;
    drop_calendar(tenant: TenantId, name: &CalendarName, before: Option<Version>) -> CalendarDropped;
    start_run(start: &StartRun) -> Started;
    cancel_run(tenant: TenantId, run: RunId, now: Timestamp) -> Cancelled;
    get_runs(runs: &[(TenantId, RunId)]) -> Vec<Found<Run>>;
    list_runs(tenant: TenantId, filter: &RunFilter, page: Page<RunId>) -> Vec<Run>;
    list_slots(tenant: TenantId, job: JobId, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run>;
    count_live() -> u64;
}
