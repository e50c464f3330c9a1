//! Plan: what is due, what nobody holds, and what cannot be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{JobId, JobState, PresenceId, RunId, TenantId, Timestamp, Version};
use tokio_postgres::Row;
use uuid::Uuid;

use super::calendars::{jobs_by_id, read_jobs};
use super::fault::Done;
use super::place::{Reach, Stretch};
use super::pool::{Conn, Params};
use super::presence::{Param, some_shards};
use super::rows::{JOB_COLUMNS, LiveRow, maybe_bytes, moment, read_text, text, word};
use super::store::{PgStore, limit};
use crate::audit::Change;
use crate::row::{Payloads, planned};
use crate::{DueCursor, DueJobs, DueOf, DueRun, JobCounts, Orphan, PayloadOf, StoreError};

impl PgStore {
    pub(super) async fn try_due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        count: usize,
    ) -> Done<DueJobs> {
        let conn = self.pool.get().await?;
        let of = Stretch::after(after, up_to, shards);
        let sql = match of.reach {
            Reach::Whole => include_str!("sql/due_jobs.sql"),
            Reach::Near => include_str!("sql/due_jobs_shards.sql"),
            Reach::Far => include_str!("sql/due_jobs_steps.sql"),
        };
        let later_than = after.and_then(|after| after.later_than);
        let (place, id) = of.behind;
        let params: [Param<'_>; 8] = [
            &place,
            &id,
            &of.last,
            &limit(count.saturating_add(1)),
            &of.shards,
            &Payloads::Small.max(),
            &later_than.map_or(-1, |moment| moment.as_millis()),
            &up_to.as_millis(),
        ];
        let mut rows = conn.rows(sql, &params).await?;
        let full = rows.len() > count;
        rows.truncate(count);
        let mut due = DueJobs::default();
        if let Some(row) = rows.last().filter(|_| full) {
            let (due_at, job) = (moment(row, JOB_COLUMNS)?, JobId(row.try_get(0)?));
            due.next = Some(DueCursor::behind(after, due_at, job));
        }
        for (id, job) in read_jobs(&conn, &rows).await? {
            match planned(job) {
                Ok(job) => due.jobs.push(Arc::new(job)),
                Err(why) => due.unreadable.push((id, why)),
            }
        }
        due.jobs.sort_by_key(|job| (job.next_due_at(), job.id));
        Ok(due)
    }

    pub(super) async fn try_due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        count: usize,
    ) -> Done<Vec<DueRun>> {
        let conn = self.pool.get().await?;
        let (from, id) = match after {
            None => (-1, Uuid::nil()),
            Some((due_at, run)) => (due_at.as_millis(), run.0),
        };
        let (up_to, count, shards) = (up_to.as_millis(), limit(count), some_shards(shards));
        let sql = include_str!("sql/due_runs.sql");
        let rows = conn
            .rows(sql, &[&from, &id, &up_to, &count, &shards])
            .await?;
        rows.iter().map(due_run).collect()
    }

    pub(super) async fn try_due_of(&self, jobs: &[JobId], up_to: Timestamp) -> Done<DueOf> {
        let conn = self.pool.get().await?;
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
        let (up_to, inline) = (up_to.as_millis(), Payloads::Small.max());
        let slots = conn.prepare(include_str!("sql/due_of.sql")).await?;
        let runs = conn.prepare(include_str!("sql/due_of_runs.sql")).await?;
        let (of_slots, of_runs): (&Params<'_>, &Params<'_>) =
            (&[&ids, &up_to, &inline], &[&ids, &up_to]);
        let (slots, runs) = tokio::try_join!(biased; conn.query_prepared(&slots, of_slots), conn.query_prepared(&runs, of_runs))?;
        let mut due = DueOf {
            runs: runs.iter().map(due_run).collect::<Done<_>>()?,
            ..DueOf::default()
        };
        for (id, job) in read_jobs(&conn, &slots).await? {
            match planned(job) {
                Ok(job) => due.jobs.push(Arc::new(job)),
                Err(why) => due.unreadable.push((id, why)),
            }
        }
        Ok(due)
    }

    pub(super) async fn try_payloads(&self, of: &[PayloadOf]) -> Done<Vec<Option<Bytes>>> {
        let (mut jobs, mut runs) = (Vec::new(), Vec::new());
        for of in of {
            match of {
                PayloadOf::Job(id, _) => jobs.push(id.0),
                PayloadOf::Run(id) => runs.push(id.0),
            }
        }
        let conn = self.pool.get().await?;
        let (mut of_jobs, mut of_runs) = (BTreeMap::new(), BTreeMap::new());
        if !jobs.is_empty() {
            let sql = include_str!("sql/payloads_of_jobs.sql");
            for row in &conn.rows(sql, &[&jobs]).await? {
                let version = Version(row.try_get::<_, i32>(1)?.cast_unsigned());
                let id = JobId(row.try_get(0)?);
                of_jobs.insert((id, version), maybe_bytes(row, 2)?);
            }
        }
        if !runs.is_empty() {
            let sql = include_str!("sql/payloads_of_runs.sql");
            for row in &conn.rows(sql, &[&runs]).await? {
                of_runs.insert(RunId(row.try_get(0)?), maybe_bytes(row, 1)?);
            }
        }
        let payload = |of: &PayloadOf| match of {
            PayloadOf::Job(id, version) => of_jobs.get(&(*id, *version)).cloned().flatten(),
            PayloadOf::Run(id) => of_runs.get(id).cloned().flatten(),
        };
        Ok(of.iter().map(payload).collect())
    }

    pub(super) async fn try_park(&self, jobs: &[(JobId, String)], now: Timestamp) -> Done<()> {
        let conn = self.pool.begin().await?;
        let sorted: BTreeMap<JobId, String> = jobs
            .iter()
            .map(|(id, why)| (*id, text(why).into_owned()))
            .collect();
        let sorted: Vec<_> = sorted.into_iter().collect();
        self.park_on(&conn, &sorted, now).await?;
        conn.commit().await
    }

    /// Claims of ended presences. Once none of a presence is found in some shards, it is never searched for in these
    /// again: nothing can be claimed by it any more.
    pub(super) async fn try_orphans(&self, shards: &ShardSet, count: usize) -> Done<Orphans> {
        let conn = self.pool.get().await?;
        let mut ended: BTreeMap<i32, (Timestamp, Arc<str>)> = BTreeMap::new();
        let sql = include_str!("sql/ended_presences.sql");
        for row in &conn.rows(sql, &[]).await? {
            let node = Arc::from(row.try_get::<_, &str>(2)?);
            ended.insert(row.try_get(0)?, (moment(row, 1)?, node));
        }
        {
            let clear = Self::known(&self.clear);
            let is_clear = |no: &i32| clear.get(no).is_some_and(|it| it.covers(shards));
            ended.retain(|no, _| !is_clear(no));
        }
        let mut orphans = Orphans::default();
        if ended.is_empty() {
            return Ok(orphans);
        }
        let numbers: Vec<i32> = ended.keys().copied().collect();
        let (some, max) = (some_shards(shards), limit(count));
        let sql = include_str!("sql/orphans.sql");
        let rows = conn
            .rows(
                sql,
                &[&numbers, &some, &max, &Payloads::Small.max(), &Uuid::nil()],
            )
            .await?;
        let mut live = Vec::with_capacity(rows.len());
        for row in &rows {
            live.push(LiveRow::read(row)?);
        }
        if live.len() < count {
            let seen: BTreeSet<i32> = live.iter().filter_map(|row| row.no).collect();
            let mut clear = Self::known(&self.clear);
            for no in numbers.into_iter().filter(|no| !seen.contains(no)) {
                clear.entry(no).or_default().extend(shards);
            }
        }
        orphans.collect(&conn, live, &ended).await?;
        Ok(orphans)
    }

    pub(super) async fn try_count_jobs(
        &self,
        after: Option<JobId>,
        count: usize,
    ) -> Done<JobCounts> {
        let conn = self.readers.get().await?;
        let after = after.map_or(Uuid::nil(), |after| after.0);
        let sql = include_str!("sql/count_jobs.sql");
        let rows = conn.rows(sql, &[&after, &limit(count)]).await?;
        let mut page = Vec::with_capacity(rows.len());
        for row in &rows {
            let count: i64 = row.try_get(1)?;
            page.push((word(row, 0)?, count.unsigned_abs(), JobId(row.try_get(2)?)));
        }
        Ok(JobCounts::of(page, count))
    }

    pub(super) async fn try_oldest_due(
        &self,
        shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Done<Option<Timestamp>> {
        let conn = self.pool.get().await?;
        let of = Stretch::from(from, up_to, shards);
        let sql = match of.reach {
            Reach::Whole | Reach::Far => include_str!("sql/oldest_due.sql"),
            Reach::Near => include_str!("sql/oldest_due_shards.sql"),
        };
        let (first, _) = of.behind;
        let (from, up_to) = (from.as_millis(), up_to.as_millis());
        let params: [Param<'_>; 5] = [&first, &of.last, &from, &up_to, &of.shards];
        let row = conn.row(sql, &params).await?;
        let row = row.ok_or_else(|| StoreError::unavailable("no answer"))?;
        let (slot, run): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let oldest = slot.into_iter().chain(run).min();
        Ok(oldest.map(Timestamp::from_millis))
    }

    pub(super) async fn try_count_live(&self) -> Done<u64> {
        let conn = self.pool.get().await?;
        let row = conn.row(include_str!("sql/count_live.sql"), &[]).await?;
        let row = row.ok_or_else(|| StoreError::unavailable("no answer"))?;
        Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
    }
}

/// What a look for orphans found; the unreadable ones can only be buried.
#[derive(Default)]
pub(super) struct Orphans {
    pub found: Vec<Orphan>,
    pub unreadable: Vec<(RunId, PresenceId)>,
}

impl Orphans {
    async fn collect(
        &mut self,
        conn: &Conn,
        live: Vec<LiveRow>,
        ended: &BTreeMap<i32, (Timestamp, Arc<str>)>,
    ) -> Done<()> {
        let ids: BTreeSet<Uuid> = live.iter().map(|row| row.run.job.0).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &Payloads::Small.max()]).await?;
        let jobs = jobs_by_id(conn, &rows).await?;
        for row in live {
            let (Some((ended_at, node)), Some(holder)) =
                (row.no.and_then(|no| ended.get(&no)), row.run.claim)
            else {
                continue;
            };
            match (row.decode(), jobs.get(&row.run.job).cloned().flatten()) {
                (Ok(run), Some(job)) => self.found.push(Orphan {
                    run,
                    job,
                    ended_at: *ended_at,
                    node: Arc::clone(node),
                }),
                (Ok(_) | Err(_), _) => self.unreadable.push((row.run.id, holder)),
            }
        }
        Ok(())
    }
}

/// Columns as `due_runs.sql` has them.
pub(super) fn due_run(row: &Row) -> Done<DueRun> {
    Ok(DueRun {
        run: RunId(row.try_get(1)?),
        job: JobId(row.try_get(2)?),
        tenant: TenantId(row.try_get(3)?),
        due_at: moment(row, 0)?,
        state: word(row, 4)?,
    })
}

/// Takes jobs out of the plan, in the order of ids; their notes are as PostgreSQL can hold them.
impl PgStore {
    pub(super) async fn park_on(
        &self,
        conn: &Conn,
        jobs: &[(JobId, String)],
        now: Timestamp,
    ) -> Done<()> {
        let ids: Vec<Uuid> = jobs.iter().map(|(id, _)| id.0).collect();
        let now = now.as_millis();
        let rows = conn
            .rows(include_str!("sql/park.sql"), &[&ids, &now])
            .await?;
        let mut parked = BTreeMap::new();
        for row in &rows {
            parked.insert(JobId(row.try_get(0)?), TenantId(row.try_get(1)?));
        }
        let parked = jobs
            .iter()
            .filter_map(|(id, why)| Some((*id, *parked.get(id)?, why.as_str())));
        let parked: Vec<(JobId, TenantId, &str)> = parked.collect();
        let (ids, notes): (Vec<Uuid>, Vec<&str>) =
            parked.iter().map(|(id, _, why)| (id.0, *why)).unzip();
        conn.execute(include_str!("sql/park_def.sql"), &[&ids, &notes, &now])
            .await?;
        let changes = parked.iter().map(|(id, tenant, why)| {
            Change::job_moved(
                *tenant,
                *id,
                JobState::Invalid,
                Some(&read_text((*why).to_owned())),
            )
        });
        self.audit(conn, &changes.collect::<Vec<_>>()).await
    }
}
