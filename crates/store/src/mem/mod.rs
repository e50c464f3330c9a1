//! The reference store: ordered maps, one lock, no threads. It forgets everything with the process, and is
//! simple enough to be obviously right; the simulator runs on it, and every other store must answer as it
//! does.
//!
//! In reading order: `state` (the maps, and what several steps share), then `presence`, `jobs`, `access` (and `tenants`), `audit`, `rules`, `plan`,
//! `fire`, `withdraw`, `settle`, `alerts`, `handed`, `history`, `overview`, `sweep`, each the body of the trait's methods of that step. All of them are
//! plain functions of the state and their arguments; this file takes the lock and reads the clock.

mod access;
mod alerts;
mod audit;
mod fire;
mod handed;
mod history;
mod jobs;
mod overview;
mod plan;
mod presence;
mod replays;
mod rules;
mod run_counts;
mod secrets;
mod settle;
mod state;
mod sweep;
mod tenants;
mod users;
mod wake;
mod withdraw;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Run, RunId, Shard, TenantId,
    Timestamp, Version,
};

use crate::{
    AccessStore, Acting, AlertStore, Beat, CalendarDropped, CalendarPut, CalendarUse, Cancelled,
    Claimed, ClientStore, Created, DueCursor, DueJobs, DueOf, DueRoom, DueRun, EngineStore, Fired,
    Firing, Found, HandedStore, HeldClaim, Hint, JobChange, JobChanged, JobCounts, JobFilter, Keep,
    Leases, NewJob, NodeInfo, NodeStatus, Orphan, Page, PayloadOf, Raised, ReplayStore, Retained,
    Rule, RunFilter, Settled, Settlement, StartRun, Started, StoreClock, StoreError, Withdrawal,
};
use state::State;
use tokio::sync::Notify;

/// A store in memory. A clone is the same store.
#[derive(Clone)]
pub struct MemStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn StoreClock>,
    hinted: Arc<Notify>,
    flaw: Flaw,
}

/// A bug put in on purpose: the simulator must find it, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flaw {
    #[default]
    None,
    /// Fire neither compares the job with what was planned nor minds a run that is alive already.
    SkipCompareAndSwap,
    /// Fire checks no lease.
    SkipEpochCheck,
    /// Settle checks no claim.
    SkipClaimCheck,
    /// Some jobs are accepted and not written.
    DropJob,
    /// A report counts for the attempt that its run is at, whichever its token is of.
    SkipTokenCheck,
}

impl MemStore {
    pub fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self {
            state: Arc::default(),
            clock,
            hinted: Arc::default(),
            flaw: Flaw::None,
        }
    }

    /// The same store, seen through a bug.
    pub fn with_flaw(self, flaw: Flaw) -> Self {
        Self { flaw, ..self }
    }

    /// What opening an embedded store after a crash does: whoever wrote before is gone.
    pub fn reopen(&self) {
        self.state().end_all_presences(self.clock.now());
    }

    /// Every run, live and history in one, by id.
    pub fn all_runs(&self) -> Vec<Run> {
        self.state().all_runs().into_values().collect()
    }

    /// Whether leases give the right to write about a shard at this moment; for whoever checks the checks.
    pub fn gives_right(&self, leases: &Leases, shard: Shard) -> bool {
        self.state().holds(leases, shard)
    }

    /// Every run that is alive, by id.
    pub fn live_runs(&self) -> Vec<Run> {
        self.state().live.runs.values().cloned().collect()
    }

    /// A run that is alive, as it stands.
    pub fn live_run(&self, id: RunId) -> Option<Run> {
        self.state().live.runs.get(&id).cloned()
    }

    /// Every job, deleted ones too, by id.
    pub fn all_jobs(&self) -> Vec<Arc<Job>> {
        self.state().jobs.values().cloned().collect()
    }

    /// A panic of another holder cannot have left a call half done that matters here: the state is
    /// a test's, and the panic fails that test.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = self.clock.now();
        state.seen = state.seen.max(state.now);
        state.acting = Acting::now();
        state
    }
}

#[async_trait]
impl EngineStore for MemStore {
    async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
        self.state()
            .join(node, self.clock.now(), self.clock.uptime())
    }

    async fn beat(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Result<Beat, StoreError> {
        let (now, uptime) = (self.clock.now_micros(), self.clock.uptime());
        self.state().beat(presence, node_status, now, uptime)
    }

    fn hint(&self, hints: &[Hint]) {
        self.state().hint(hints);
        self.hinted.notify_waiters();
    }

    async fn hints(&self, presence: PresenceId) -> Result<Vec<Hint>, StoreError> {
        loop {
            let hinted = self.hinted.notified();
            let hints = self.state().hints(presence)?;
            if !hints.is_empty() {
                return Ok(hints);
            }
            hinted.await;
        }
    }

    async fn lease(&self, presence: PresenceId, wanted: &ShardSet) -> Result<Leases, StoreError> {
        self.state().lease(presence, wanted)
    }

    async fn leave(&self, presence: PresenceId) -> Result<(), StoreError> {
        self.state().end(presence, self.clock.now());
        Ok(())
    }

    async fn fence(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Result<Vec<PresenceId>, StoreError> {
        Ok(self.state().fence(by, lapsed, self.clock.now()))
    }

    async fn orphans(&self, shards: &ShardSet, limit: usize) -> Result<Vec<Orphan>, StoreError> {
        Ok(self.state().orphans(shards, limit))
    }

    async fn claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<HeldClaim>, StoreError> {
        Ok(self.state().claims(presence, after, limit))
    }

    async fn rules_changed(&self) -> Result<Vec<Rule>, StoreError> {
        Ok(self.state().rules_changed())
    }

    async fn jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, StoreError> {
        Ok(self.state().jobs_under(rule, after, limit))
    }

    async fn rule_applied(&self, rule: &Rule) -> Result<(), StoreError> {
        self.state().rule_applied(rule);
        Ok(())
    }

    async fn due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Result<DueJobs, StoreError> {
        Ok(self.state().due_jobs(shards, up_to, after, limit))
    }

    async fn due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        Ok(self.state().due_runs(shards, up_to, after, limit))
    }

    async fn due_of(&self, jobs: &[JobId], up_to: Timestamp) -> Result<DueOf, StoreError> {
        Ok(self.state().due_of(jobs, up_to))
    }

    async fn park(&self, jobs: &[(JobId, String)], now: Timestamp) -> Result<(), StoreError> {
        self.state().park(jobs, now);
        Ok(())
    }

    async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let mut state = self.state();
        Ok(firings
            .iter()
            .map(|firing| state.fire(leases, firing, self.flaw))
            .collect())
    }

    async fn claim(&self, leases: &Leases, runs: &[RunId]) -> Result<Vec<Claimed>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let claims = runs.iter().map(|run| state.claim(leases, *run, now));
        Ok(claims.collect())
    }

    async fn claim_due(
        &self,
        presence: PresenceId,
        shards: &ShardSet,
        room: DueRoom,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let now = self.clock.now();
        self.state().claim_due(presence, shards, room, now)
    }

    async fn payloads(&self, of: &[PayloadOf]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let state = self.state();
        Ok(of.iter().map(|of| state.payload(*of)).collect())
    }

    async fn mark_running(
        &self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Result<(), StoreError> {
        self.state().mark_running(presence, runs)
    }

    async fn withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.state().withdraw(presence, answers, now)
    }

    async fn settle(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        state.living(by)?;
        let settle = |settlement| state.settle(by, settlement, now, self.flaw);
        Ok(settlements.iter().map(settle).collect())
    }

    fn handed(&self) -> &dyn HandedStore {
        self
    }

    async fn retain(&self, keep: &Keep) -> Result<Retained, StoreError> {
        Ok(self.state().retain(keep))
    }

    async fn oldest_due(
        &self,
        shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state().oldest_due(shards, from, up_to))
    }

    async fn count_jobs(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<JobCounts, StoreError> {
        let state = self.state();
        let jobs = state.jobs.values().map(|job| (job.state, 1, job.id));
        let page = jobs.filter(|(_, _, id)| Some(*id) > after).take(limit);
        Ok(JobCounts::of(page, limit))
    }
}

#[async_trait]
impl ClientStore for MemStore {
    fn access(&self) -> &dyn AccessStore {
        self
    }

    fn replays(&self) -> &dyn ReplayStore {
        self
    }

    fn alerts(&self) -> &dyn AlertStore {
        self
    }

    async fn raise_level(&self, to: Level) -> Result<Raised, StoreError> {
        Ok(self.state().raise_level(to))
    }

    async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        let mut state = self.state();
        let drops =
            |new: &NewJob| self.flaw == Flaw::DropJob && new.job.shard().0.is_multiple_of(8);
        let create = |new: &NewJob| {
            if drops(new) {
                Created::Done
            } else {
                state.create_job(new)
            }
        };
        Ok(jobs.iter().map(create).collect())
    }

    async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
        Ok(self.state().change_job(change))
    }

    async fn get_jobs(&self, jobs: &[(TenantId, JobId)]) -> Result<Vec<Found<Job>>, StoreError> {
        let state = self.state();
        let read = |(tenant, id): &(TenantId, JobId)| Ok(state.get_job(*tenant, *id));
        Ok(jobs.iter().map(read).collect())
    }

    async fn find_job(&self, tenant: TenantId, key: &JobKey) -> Result<Option<Job>, StoreError> {
        Ok(self.state().find_job(tenant, key))
    }

    async fn list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Result<Vec<Job>, StoreError> {
        Ok(self.state().list_jobs(tenant, filter, page))
    }

    async fn put_calendar(
        &self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> Result<CalendarPut, StoreError> {
        Ok(self.state().put_calendar(tenant, calendar, before))
    }

    async fn get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Result<Vec<Option<CalendarUse>>, StoreError> {
        Ok(self.state().get_calendars(tenant, names))
    }

    async fn list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        limit: usize,
    ) -> Result<Vec<CalendarUse>, StoreError> {
        Ok(self.state().list_calendars(tenant, after, limit))
    }

    async fn drop_calendar(
        &self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Result<CalendarDropped, StoreError> {
        Ok(self.state().drop_calendar(tenant, name, before))
    }

    async fn start_run(&self, start: &StartRun) -> Result<Started, StoreError> {
        Ok(self.state().start_run(start))
    }

    async fn cancel_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Cancelled, StoreError> {
        Ok(self.state().cancel_run(tenant, run, now))
    }

    async fn get_runs(&self, runs: &[(TenantId, RunId)]) -> Result<Vec<Found<Run>>, StoreError> {
        let state = self.state();
        let read = |(tenant, id): &(TenantId, RunId)| Ok(state.get_run(*tenant, *id));
        Ok(runs.iter().map(read).collect())
    }

    async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<Run>, StoreError> {
        Ok(self.state().list_runs(tenant, filter, page))
    }

    async fn list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        Ok(self.state().list_slots(tenant, job, from, to, limit))
    }

    async fn count_live(&self) -> Result<u64, StoreError> {
        Ok(self.state().count_live())
    }
}
