//! The store for clusters: one PostgreSQL database, any number of nodes.
//!
//! Each call is a short transaction, or one statement. Batches go in as arrays, one statement for each table; the two
//! steps that everything waits for, fire and settle, are single statements for the jobs that allow it. Whatever has to
//! look before it writes locks first, always in this order: the presence that it writes as, jobs by id, live runs by
//! id; loads views, lets the model decide, and writes the effects.
//!
//! In reading order: `config`, `tls`, `dial`, `pool`, `migrate` (the way to the database), `store`, `statement`, `rows` (words
//! as columns), `batch`, `put`, `views` and `effects`; then the steps: `presence`, `listen` (and `hints`), `jobs`, `create` (and
//! `gather`), `calendars`, `access` (and `tenants`), `audit` (and `versions`), `rules`, `plan`, `fire` (and `fast_path`), `claim`, `settle`, `handed`, `history`, `overview`, `partitions`, `retain`.
//! Statements are in `sql/`, named after the method they belong to. `server` starts a real server for tests.
//!
//! What runs all the time leaves the planner one way to its rows, because statistics may say anything: of a table that is full
//! of dead rows, that it is empty. `= ANY(ARRAY[x])` instead of `= x`, and `ORDER BY coalesce(x, x)`, where an index might be
//! walked from end to end for its order. `plans_tests.rs` holds them to it.

mod access;
mod alerts;
mod audit;
mod batch;
mod calendars;
mod claim;
mod config;
mod create;
mod dial;
mod effects;
mod fault;
mod fire;
mod gather;
mod handed;
mod hints;
mod history;
mod jobs;
mod listen;
mod migrate;
mod overview;
mod partitions;
mod place;
mod plan;
mod pool;
mod presence;
mod put;
mod replays;
mod retain;
mod rows;
mod rules;
mod run_counts;
mod run_logs;
mod secrets;
#[cfg(any(test, feature = "conformance"))]
pub mod server;
mod settle;
mod statement;
mod store;
mod sweep;
mod tenants;
mod tls;
mod users;
mod uses;
mod versions;
mod views;
mod wake;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Run, RunId, TenantId, Timestamp,
    Version,
};

use crate::{
    AccessStore, AlertStore, Beat, CalendarDropped, CalendarPut, CalendarUse, Cancelled, Claimed,
    ClientStore, Created, DueCursor, DueJobs, DueOf, DueRoom, DueRun, EngineStore, Fired, Firing,
    Found, HandedStore, HeldClaim, Hint, JobChange, JobChanged, JobCounts, JobFilter, Keep, Leases,
    NewJob, NodeInfo, NodeStatus, Orphan, Page, PayloadOf, Raised, ReplayStore, Retained, Rule,
    RunFilter, Settled, Settlement, StartRun, Started, StoreError, Withdrawal,
};

pub use config::{PASSWORD_VARS, PgConfig};
pub use store::PgStore;

#[async_trait]
impl EngineStore for PgStore {
    async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
        self.call(|| self.try_join(node)).await
    }

    async fn beat(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Result<Beat, StoreError> {
        self.call(|| self.beat_in_time(presence, node_status)).await
    }

    async fn lease(&self, presence: PresenceId, wanted: &ShardSet) -> Result<Leases, StoreError> {
        self.call(|| self.try_lease(presence, wanted)).await
    }

    async fn leave(&self, presence: PresenceId) -> Result<(), StoreError> {
        self.call(|| self.try_leave(presence)).await
    }

    async fn fence(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Result<Vec<PresenceId>, StoreError> {
        self.call(|| self.try_fence(by, lapsed)).await
    }

    async fn orphans(&self, shards: &ShardSet, limit: usize) -> Result<Vec<Orphan>, StoreError> {
        let plan::Orphans { found, unreadable } =
            self.call(|| self.try_orphans(shards, limit)).await?;
        self.bury(unreadable).await?;
        Ok(found)
    }

    async fn claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<HeldClaim>, StoreError> {
        self.call(|| self.try_claims(presence, after, limit)).await
    }

    fn hint(&self, hints: &[Hint]) {
        self.hints.announce(hints);
    }

    async fn hints(&self, _presence: PresenceId) -> Result<Vec<Hint>, StoreError> {
        Ok(self.hints.hear().await)
    }

    async fn rules_changed(&self) -> Result<Vec<Rule>, StoreError> {
        self.call(|| self.try_rules_changed()).await
    }

    async fn jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, StoreError> {
        self.call(|| self.try_jobs_under(rule, after, limit)).await
    }

    async fn rule_applied(&self, rule: &Rule) -> Result<(), StoreError> {
        self.call(|| self.try_rule_applied(rule)).await
    }

    async fn due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Result<DueJobs, StoreError> {
        self.call(|| self.try_due_jobs(shards, up_to, after, limit))
            .await
    }

    async fn due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        self.call(|| self.try_due_runs(shards, up_to, after, limit))
            .await
    }

    async fn due_of(&self, jobs: &[JobId], up_to: Timestamp) -> Result<DueOf, StoreError> {
        self.call(|| self.try_due_of(jobs, up_to)).await
    }

    async fn park(&self, jobs: &[(JobId, String)], now: Timestamp) -> Result<(), StoreError> {
        self.call(|| self.try_park(jobs, now)).await
    }

    async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        self.fire_all(leases, firings).await
    }

    async fn claim(&self, leases: &Leases, runs: &[RunId]) -> Result<Vec<Claimed>, StoreError> {
        self.claim_all(leases, runs).await
    }

    async fn claim_due(
        &self,
        presence: PresenceId,
        shards: &ShardSet,
        room: DueRoom,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let wanted = claim::Wanted { shards, due: room };
        self.claim_all_due(presence, &wanted).await
    }

    async fn payloads(&self, of: &[PayloadOf]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.call(|| self.try_payloads(of)).await
    }

    async fn mark_running(
        &self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Result<(), StoreError> {
        self.call(|| self.try_mark_running(presence, runs)).await
    }

    async fn withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.call(|| self.try_withdraw(presence, answers, now))
            .await
    }

    async fn settle(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle_all(by, settlements).await
    }

    fn handed(&self) -> &dyn HandedStore {
        self
    }

    async fn retain(&self, keep: &Keep) -> Result<Retained, StoreError> {
        self.call(|| self.try_retain(keep)).await
    }

    fn waits(&self) -> u64 {
        self.pool.waits()
    }

    async fn oldest_due(
        &self,
        shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.call(|| self.try_oldest_due(shards, from, up_to)).await
    }

    async fn count_jobs(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<JobCounts, StoreError> {
        self.call(|| self.try_count_jobs(after, limit)).await
    }
}

#[async_trait]
impl ClientStore for PgStore {
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
        self.call(|| self.try_raise_level(to)).await
    }

    async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        self.create_all(jobs).await
    }

    async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
        self.change(change).await
    }

    async fn get_jobs(&self, jobs: &[(TenantId, JobId)]) -> Result<Vec<Found<Job>>, StoreError> {
        self.call(|| self.try_get_jobs(jobs)).await
    }

    async fn find_job(&self, tenant: TenantId, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.call(|| self.try_find_job(tenant, key)).await
    }

    async fn list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Result<Vec<Job>, StoreError> {
        self.call(|| self.try_list_jobs(tenant, filter, page)).await
    }

    async fn put_calendar(
        &self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> Result<CalendarPut, StoreError> {
        self.call(|| self.try_put_calendar(tenant, calendar, before))
            .await
    }

    async fn get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Result<Vec<Option<CalendarUse>>, StoreError> {
        self.call(|| self.try_get_calendars(tenant, names)).await
    }

    async fn list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        limit: usize,
    ) -> Result<Vec<CalendarUse>, StoreError> {
        self.call(|| self.try_list_calendars(tenant, after, limit))
            .await
    }

    async fn drop_calendar(
        &self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Result<CalendarDropped, StoreError> {
        self.call(|| self.try_drop_calendar(tenant, name, before))
            .await
    }

    async fn start_run(&self, start: &StartRun) -> Result<Started, StoreError> {
        self.call(|| self.try_start_run(start)).await
    }

    async fn cancel_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Cancelled, StoreError> {
        self.call(|| self.try_cancel_run(tenant, run, now)).await
    }

    async fn get_runs(&self, runs: &[(TenantId, RunId)]) -> Result<Vec<Found<Run>>, StoreError> {
        self.call(|| self.try_get_runs(runs)).await
    }

    async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<Run>, StoreError> {
        self.call(|| self.try_list_runs(tenant, filter, page)).await
    }

    async fn list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.call(|| self.try_list_slots(tenant, job, from, to, limit))
            .await
    }

    async fn count_live(&self) -> Result<u64, StoreError> {
        self.call(|| self.try_count_live()).await
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
