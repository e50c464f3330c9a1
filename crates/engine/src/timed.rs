//! The store as a node calls it: every call is timed, by the name of its method.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    AttemptNo, Calendar, CalendarName, Handed, Job, JobId, JobKey, Level, PresenceId, Run, RunId,
    RunLog, TenantId, Timestamp, Version, WaitReason,
};
use store::*;

use crate::clock::Clock;
use crate::metrics::Metrics;

/// What stands between a caller and a store, around every call.
pub(crate) trait Around: Send + Sync + 'static {
    fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// A store with something around every call.
pub(crate) struct Between<A> {
    pub inner: Arc<dyn Store>,
    pub around: A,
}

impl<A> Between<A> {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn inner_handed(&self) -> &dyn HandedStore {
        self.inner.handed()
    }
}

/// Times every call.
pub(crate) struct Timed {
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
}

impl Around for Timed {
    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let begun = self.clock.uptime();
        let answer = call.await;
        let took = self.clock.uptime().saturating_sub(begun);
        self.metrics.store_answered(operation, took);
        answer
    }
}

macro_rules! between {
    ($trait:ident of $inner:ident { $($apart:tt)* } $($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl<A: Around> $trait for Between<A> {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                let call = self.$inner().$name($($arg),*);
                self.around.around(stringify!($name), call).await
            })*
            $($apart)*
        }
    };
}

between! {
    WaitStore of inner {}

    wake_due(shards: &ShardSet, now: Timestamp, limit: usize) -> Vec<DueRun>;
    wake(runs: &[RunId], now: Timestamp) -> Vec<DueRun>;
    wake_run(tenant: TenantId, run: RunId, now: Timestamp) -> Woken;
    count_waiting() -> BTreeMap<WaitReason, u64>;
}

between! {
    EngineStore of inner {
        fn hint(&self, hints: &[Hint]) {
            self.inner.hint(hints);
        }

        /// Waits for others, which is not the store's doing.
        async fn hints(&self, presence: PresenceId) -> Result<Vec<Hint>, StoreError> {
            self.inner.hints(presence).await
        }

        fn handed(&self) -> &dyn HandedStore {
            self
        }

        fn waits(&self) -> u64 {
            self.inner.waits()
        }
    }

    join(node: &NodeInfo) -> PresenceId;
    beat(presence: PresenceId, node_status: &NodeStatus) -> Beat;
    lease(presence: PresenceId, wanted: &ShardSet) -> Leases;
    leave(presence: PresenceId) -> ();
    fence(by: PresenceId, lapsed: &[LastBeat]) -> Vec<PresenceId>;
    orphans(shards: &ShardSet, limit: usize) -> Vec<Orphan>;
    claims(presence: PresenceId, after: Option<RunId>, limit: usize) -> Vec<HeldClaim>;
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
    settle(by: PresenceId, settlements: &[Settlement]) -> Vec<Settled>;
    retain(keep: &Keep) -> Retained;
    oldest_due(shards: &ShardSet, from: Timestamp, up_to: Timestamp) -> Option<Timestamp>;
    count_jobs(after: Option<JobId>, limit: usize) -> JobCounts;
}

between! {
    HandedStore of inner_handed {}

    hand_over(by: PresenceId, items: &[HandOver], now: Timestamp) -> Vec<HandedOver>;
    heartbeat(beats: &[Heartbeat], now: Timestamp) -> Vec<Beaten>;
    report(reports: &[Reported], now: Timestamp) -> Vec<HandedEnd>;
    lapsing(shards: &ShardSet, lapsing: Lapsing) -> Vec<Handed>;
    lapse(leases: &Leases, lapses: &[Lapse], now: Timestamp) -> Vec<HandedEnd>;
    get_handed(runs: &[RunId]) -> Vec<Option<Handed>>;
    whose(runs: &[RunId]) -> Vec<Option<Whose>>;
    get_checkpoint(run: RunId) -> Option<Bytes>;
    is_current(run: RunId, attempt: AttemptNo) -> bool;
    append_log(appends: &[LogAppend]) -> Vec<Appended>;
    get_log(tenant: TenantId, run: RunId) -> Option<RunLog>;
    report_keys() -> Vec<ReportKey>;
    put_report_key(key: &ReportKey) -> ();
}

between! {
    ClientStore of inner {
        fn access(&self) -> &dyn AccessStore {
            self.inner.access()
        }

        fn replays(&self) -> &dyn ReplayStore {
            self.inner.replays()
        }

        fn alerts(&self) -> &dyn AlertStore {
            self.inner.alerts()
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
