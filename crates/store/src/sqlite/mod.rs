//! The default store: one SQLite file, nothing to install.
//!
//! One thread writes (`writer`), committing many calls together; a few others read, each read in one snapshot (`reader`). What a
//! call has to encode or work out it does before it reaches the writer, so that the writer's time is SQLite's. Live runs are a small
//! table; runs that ended are in one table for each day of UTC, dropped whole (`retain`).
//!
//! In reading order: `open` (the file), `db` and `writer`, `archive`, `reader`, `store`, `rows` (words as columns), `view` (what
//! decisions see and write); then the steps: `presence`, `jobs`, `list`, `calendars`, `alerts`, `access` (and `tenants`), `audit` (and `versions`), `rules`, `plan`, `fire`, `claim`, `withdraw`, `settle`, `handed`, `rest`,
//! `history`, `slots`, `overview`, `retain`; last `backup`. Statements are in `sql/`, named after the method they belong to.

mod access;
mod alerts;
mod archive;
mod audit;
mod backup;
mod calendars;
mod claim;
mod counting;
mod db;
mod fault;
mod fire;
mod handed;
mod history;
mod jobs;
mod list;
mod open;
mod overview;
mod plan;
mod presence;
mod reader;
mod replays;
mod rest;
mod retain;
mod rows;
mod rules;
mod run_counts;
mod secrets;
mod settle;
mod slots;
mod store;
mod sweep;
mod tenants;
mod users;
mod uses;
mod versions;
mod view;
mod wake;
mod withdraw;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Run, RunId, TenantId, Timestamp,
    Version,
};
use writer::By;

use crate::budget::bytes_of;
use crate::{
    AccessStore, AlertStore, Beat, CalendarDropped, CalendarPut, CalendarUse, Cancelled, Claimed,
    ClientStore, Created, DueCursor, DueJobs, DueOf, DueRoom, DueRun, EngineStore, Fired, Firing,
    Found, HandedStore, HeldClaim, JobChange, JobChanged, JobCounts, JobFilter, Keep, Leases,
    NewJob, NodeInfo, NodeStatus, Orphan, Page, PayloadOf, Raised, ReplayStore, Retained, Rule,
    RunFilter, Settled, Settlement, StartRun, Started, StoreError, Withdrawal,
};

pub use backup::backup;
pub use open::FILE;
pub use store::SqliteStore;

/// The statements that make the table of one day of history, for whoever writes such a file by hand.
pub fn range_schema(day: i64) -> String {
    archive::Partitions::sql(include_str!("sql/create_partition.sql"), day)
}

#[async_trait]
impl EngineStore for SqliteStore {
    async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
        let (id, node) = (self.new_presence(), node.clone());
        self.write(By::Engine, 1, move |db| db.join(id, &node))
            .await
    }

    async fn beat(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Result<Beat, StoreError> {
        self.beat_now(presence, node_status).await
    }

    async fn lease(&self, presence: PresenceId, wanted: &ShardSet) -> Result<Leases, StoreError> {
        let wanted = *wanted;
        self.write(By::Engine, 1, move |db| db.lease(presence, &wanted))
            .await
    }

    async fn leave(&self, presence: PresenceId) -> Result<(), StoreError> {
        self.write(By::Engine, 1, move |db| db.leave(presence))
            .await
    }

    async fn fence(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Result<Vec<PresenceId>, StoreError> {
        let lapsed = lapsed.to_vec();
        self.write(By::Engine, 1, move |db| db.fence(by, &lapsed))
            .await
    }

    async fn orphans(&self, shards: &ShardSet, limit: usize) -> Result<Vec<Orphan>, StoreError> {
        let (shared, shards) = (self.shared.clone(), *shards);
        let read = move |conn: &_| plan::orphans(conn, &shared, &shards, limit);
        let plan::Orphans { found, unreadable } = self.read(By::Engine, read).await?;
        if !unreadable.is_empty() {
            self.write(By::Engine, unreadable.len(), move |db| {
                db.bury_unreadable(&unreadable)
            })
            .await?;
        }
        Ok(found)
    }

    async fn claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<HeldClaim>, StoreError> {
        self.shared.see();
        let number = self.shared.presences().number(presence);
        let Some(no) = number else {
            return Ok(Vec::new());
        };
        self.read(By::Engine, move |conn| plan::claims(conn, no, after, limit))
            .await
    }

    async fn rules_changed(&self) -> Result<Vec<Rule>, StoreError> {
        self.read(By::Client, rules::rules_changed).await
    }

    async fn jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, StoreError> {
        let rule = rule.clone();
        self.read(By::Client, move |conn| {
            rules::jobs_under(conn, &rule, after, limit)
        })
        .await
    }

    async fn rule_applied(&self, rule: &Rule) -> Result<(), StoreError> {
        let rule = rule.clone();
        self.write(By::Client, 1, move |db| db.rule_applied(&rule))
            .await
    }

    async fn due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Result<DueJobs, StoreError> {
        let shards = *shards;
        self.read(By::Engine, move |conn| {
            plan::due_jobs(conn, &shards, up_to, after, limit)
        })
        .await
    }

    async fn due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        let shards = *shards;
        self.read(By::Engine, move |conn| {
            plan::due_runs(conn, &shards, up_to, after, limit)
        })
        .await
    }

    async fn due_of(&self, jobs: &[JobId], up_to: Timestamp) -> Result<DueOf, StoreError> {
        let jobs = jobs.iter().copied().collect();
        self.read(By::Engine, move |conn| plan::due_of(conn, &jobs, up_to))
            .await
    }

    async fn park(&self, jobs: &[(JobId, String)], now: Timestamp) -> Result<(), StoreError> {
        let jobs = jobs.to_vec();
        self.write(By::Engine, jobs.len(), move |db| db.park(&jobs, now))
            .await
    }

    async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let rows: Vec<_> = firings.iter().map(fire::FiringRow::new).collect();
        let leases = leases.clone();
        self.write(By::Engine, rows.len(), move |db| db.fire(&leases, &rows))
            .await
    }

    async fn claim(&self, leases: &Leases, runs: &[RunId]) -> Result<Vec<Claimed>, StoreError> {
        let (held, runs) = (leases.clone(), runs.to_vec());
        let rows = self
            .write(By::Engine, runs.len(), move |db| db.claim(&held, &runs))
            .await?;
        let (answers, unreadable) = rows.decode();
        self.bury(unreadable, leases.presence).await?;
        Ok(answers)
    }

    async fn claim_due(
        &self,
        presence: PresenceId,
        shards: &ShardSet,
        room: DueRoom,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let rows = room.room.into_iter().fold(0, usize::saturating_add);
        let shards = *shards;
        let claim_due = move |db: &mut db::Db| db.claim_due(presence, &shards, room);
        let (answers, unreadable) = self.write(By::Engine, rows, claim_due).await?.decode();
        self.bury(unreadable, presence).await?;
        let ours = |claimed| match claimed {
            Claimed::Ours(run, job) => Some((*run, job)),
            Claimed::Stale | Claimed::LeaseLost => None,
        };
        Ok(answers.into_iter().filter_map(ours).collect())
    }

    async fn payloads(&self, of: &[PayloadOf]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let of = of.to_vec();
        self.read(By::Engine, move |conn| plan::payloads(conn, &of))
            .await
    }

    async fn mark_running(
        &self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        self.write(By::Engine, runs.len(), move |db| {
            db.mark_running(presence, &runs)
        })
        .await
    }

    async fn withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let answers = answers.to_vec();
        self.write(By::Engine, answers.len(), move |db| {
            db.withdraw(presence, &answers, now)
        })
        .await
    }

    async fn settle(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let now = self.shared.clock.now();
        let (rows, refused) = settle::SettleRow::all(settlements, now);
        let settled = self.write(By::Engine, rows.len(), move |db| db.settle(by, &rows, now));
        let mut answers = settled.await?;
        for (index, answer) in refused {
            answers.insert(index, answer);
        }
        Ok(answers)
    }

    fn handed(&self) -> &dyn HandedStore {
        self
    }

    async fn retain(&self, keep: &Keep) -> Result<Retained, StoreError> {
        let keep = *keep;
        let find = move |conn: &_| retain::find_over(conn, &keep);
        let over = self.read(By::Client, find).await?;
        self.write(By::Client, model::limits::RETENTION_BATCH_MAX, move |db| {
            db.retain(&keep, &over)
        })
        .await
    }

    async fn oldest_due(
        &self,
        _shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.read(By::Engine, move |conn| plan::oldest_due(conn, from, up_to))
            .await
    }

    async fn count_jobs(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<JobCounts, StoreError> {
        self.read(By::Client, move |conn| plan::count_jobs(conn, after, limit))
            .await
    }
}

#[async_trait]
impl ClientStore for SqliteStore {
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
        self.write(By::Client, 1, move |db| db.raise_level(to))
            .await
    }

    async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        let held = self.waiting.hold_jobs(jobs)?;
        let audits = self.audits_creates;
        let rows = jobs.iter().map(|new| jobs::CreateRow::new(new, audits));
        let rows: Vec<_> = rows.collect();
        self.write_held(held, rows.len(), move |db| db.create_jobs(&rows))
            .await
    }

    async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
        let held = self.waiting.hold(bytes_of(&change.after))?;
        let row = jobs::ChangeRow::new(change);
        self.write_held(held, 1, move |db| db.change_job(&row))
            .await
    }

    async fn get_jobs(&self, jobs: &[(TenantId, JobId)]) -> Result<Vec<Found<Job>>, StoreError> {
        let jobs = jobs.to_vec();
        self.read(By::Engine, move |conn| jobs::get_jobs(conn, &jobs))
            .await
    }

    async fn find_job(&self, tenant: TenantId, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let key = key.clone();
        self.read(By::Client, move |conn| jobs::find_job(conn, tenant, &key))
            .await
    }

    async fn list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Result<Vec<Job>, StoreError> {
        let filter = filter.clone();
        self.read(By::Client, move |conn| {
            list::list_jobs(conn, tenant, &filter, page)
        })
        .await
    }

    async fn put_calendar(
        &self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> Result<CalendarPut, StoreError> {
        let put = calendars::CalendarToPut::new(calendar)?;
        self.write(By::Client, 1, move |db| {
            db.put_calendar(tenant, &put, before)
        })
        .await
    }

    async fn get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Result<Vec<Option<CalendarUse>>, StoreError> {
        let names = names.to_vec();
        self.read(By::Client, move |conn| {
            calendars::get_calendars(conn, tenant, &names)
        })
        .await
    }

    async fn list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        limit: usize,
    ) -> Result<Vec<CalendarUse>, StoreError> {
        let after = after.cloned();
        self.read(By::Client, move |conn| {
            calendars::list_calendars(conn, tenant, after.as_ref(), limit)
        })
        .await
    }

    async fn drop_calendar(
        &self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Result<CalendarDropped, StoreError> {
        let name = name.clone();
        self.write(By::Client, 1, move |db| {
            db.drop_calendar(tenant, &name, before)
        })
        .await
    }

    async fn start_run(&self, start: &StartRun) -> Result<Started, StoreError> {
        let bytes = start.run.payload.as_ref().map_or(0, |it| it.len());
        let held = self.waiting.hold(bytes)?;
        let start = start.clone();
        self.write_held(held, 1, move |db| db.start_run(&start))
            .await
    }

    async fn cancel_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Cancelled, StoreError> {
        self.write(By::Client, 1, move |db| db.cancel_run(tenant, run, now))
            .await
    }

    async fn get_runs(&self, runs: &[(TenantId, RunId)]) -> Result<Vec<Found<Run>>, StoreError> {
        let runs = runs.to_vec();
        self.read(By::Engine, move |conn| history::get_runs(conn, &runs))
            .await
    }

    async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<Run>, StoreError> {
        let filter = filter.clone();
        self.read(By::Client, move |conn| {
            history::list_runs(conn, tenant, &filter, page)
        })
        .await
    }

    async fn list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(By::Client, move |conn| {
            slots::list_slots(conn, tenant, job, from, to, limit)
        })
        .await
    }

    async fn count_live(&self) -> Result<u64, StoreError> {
        Ok(self.shared.live())
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;

#[cfg(test)]
mod time_tests;

#[cfg(test)]
mod tenants_tests;
