//! What overviews are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use model::limits::RETENTION_BATCH_MAX;
use model::rollup::Step;
use model::shard::ShardSet;
use model::{JobId, JobState, Rollup, RollupRow, TenantId, Timestamp};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::Done;
use super::place::Stretch;
use super::pool::Params;
use super::put::columns;
use super::rows::{moment, word};
use super::store::{PgStore, limit};
use crate::code::{Code, bad_row};
use crate::doc::{decode_rollup, encode_rollup};
use crate::row::{Payloads, planned};
use crate::{DueCursor, DuePage, DueSpan, LiveCount, OverviewStore, StandingCounts, StoreError};

columns! {
    /// Rollups; columns as `put_rollups.sql` has them.
    RollupColumns(row: &RollupRow, doc: Vec<u8>) [
        tenant: Uuid = row.tenant.0,
        step: i16 = row.step.code(),
        at: i64 = row.at.as_millis(),
        counter: Uuid = row.by.0,
        expires_at: i64 = row.expires_at().as_millis(),
        doc: Vec<u8> = doc,
    ]
}

impl PgStore {
    async fn try_put_rollups(&self, columns: &RollupColumns) -> Done<()> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/put_rollups.sql");
        conn.execute(sql, &columns.params()).await?;
        Ok(())
    }

    async fn try_read_rollups(
        &self,
        tenant: TenantId,
        step: Step,
        (from, to): (Timestamp, Timestamp),
    ) -> Done<Vec<(Timestamp, Rollup)>> {
        let conn = self.readers.get().await?;
        let sql = include_str!("sql/read_rollups.sql");
        let params: &Params<'_> = &[&tenant.0, &step.code(), &from.as_millis(), &to.as_millis()];
        let mut sums = BTreeMap::<Timestamp, Rollup>::new();
        for row in &conn.rows(sql, params).await? {
            let rollup =
                decode_rollup(row.try_get(1)?).map_err(|error| bad_row("rollup", &error))?;
            sums.entry(moment(row, 0)?).or_default().add(&rollup);
        }
        Ok(sums.into_iter().collect())
    }

    async fn try_count_standing(&self, most: usize) -> Done<StandingCounts> {
        let conn = self.readers.get().await?;
        let sql = include_str!("sql/count_standing_live.sql");
        let mut live = Vec::new();
        for row in &conn.rows(sql, &[&limit(most)]).await? {
            live.push(LiveCount {
                tenant: TenantId(row.try_get(0)?),
                lane: word(row, 1)?,
                state: word(row, 2)?,
                waiting: row.try_get(3)?,
                runs: row.try_get::<_, i64>(4)?.unsigned_abs(),
            });
        }
        let sql = include_str!("sql/count_standing_jobs.sql");
        let mut jobs = Vec::new();
        for row in &conn.rows(sql, &[&limit(most)]).await? {
            let count = row.try_get::<_, i64>(2)?.unsigned_abs();
            jobs.push((TenantId(row.try_get(0)?), word(row, 1)?, count));
        }
        Ok(StandingCounts::new(live, jobs, most))
    }

    async fn try_list_due(&self, tenant: TenantId, span: &DueSpan, reads: usize) -> Done<DuePage> {
        let conn = self.readers.get().await?;
        let of = Stretch::after(span.after, span.up_to, &ShardSet::ALL);
        let later_than = span.after.and_then(|after| after.later_than);
        let later_than = later_than.map_or(-1, |moment| moment.as_millis());
        let ((place, id), reads) = (of.behind, limit(reads));
        let up_to = span.up_to.as_millis();
        let sample = i32::try_from(span.sample).unwrap_or(i32::MAX);
        let sql = include_str!("sql/list_due.sql");
        let params: &Params<'_> = &[
            &place,
            &id,
            &of.last,
            &reads,
            &tenant.0,
            &sample,
            &later_than,
            &up_to,
        ];
        let (mut page, mut ids) = (DuePage::default(), Vec::new());
        for row in &conn.rows(sql, params).await? {
            let job: Uuid = row.try_get(0)?;
            if row.try_get(2)? {
                ids.push(job);
            }
            if row.try_get(3)? {
                page.next = Some(DueCursor::behind(span.after, moment(row, 1)?, JobId(job)));
            }
        }
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &Payloads::Small.max()]).await?;
        let jobs = read_jobs(&conn, &rows).await?.into_iter();
        // Some may have moved on since they were found.
        let jobs = jobs.filter_map(|(_, job)| planned(job).ok());
        let jobs = jobs.filter(|job| job.state == JobState::Active);
        let jobs = jobs.filter_map(|job| Some((job.next_due_at()?, job.id, job)));
        let mut jobs: Vec<_> = jobs.collect();
        jobs.sort_by_key(|(due_at, id, _)| (*due_at, *id));
        page.jobs = jobs.into_iter().map(|(.., job)| Arc::new(job)).collect();
        Ok(page)
    }

    /// Rollups that were kept long enough go, so many at a time; whether there may be more.
    pub(super) async fn drop_rollups(&self, now: Timestamp) -> Done<bool> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/retain_rollups.sql");
        let batch = limit(RETENTION_BATCH_MAX);
        let dropped = conn.execute(sql, &[&now.as_millis(), &batch]).await?;
        Ok(dropped == batch.unsigned_abs())
    }
}

#[async_trait]
impl OverviewStore for PgStore {
    async fn put_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let mut columns = RollupColumns::default();
        for row in rows {
            let doc = encode_rollup(&row.rollup);
            columns.push(row, doc.map_err(|error| bad_row("rollup", &error))?);
        }
        self.call(|| self.try_put_rollups(&columns)).await
    }

    async fn read_rollups(
        &self,
        tenant: TenantId,
        step: Step,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Rollup)>, StoreError> {
        self.call(|| self.try_read_rollups(tenant, step, (from, to)))
            .await
    }

    async fn count_standing(&self, limit: usize) -> Result<StandingCounts, StoreError> {
        self.call(|| self.try_count_standing(limit)).await
    }

    async fn list_due(
        &self,
        tenant: TenantId,
        span: &DueSpan,
        reads: usize,
    ) -> Result<DuePage, StoreError> {
        self.call(|| self.try_list_due(tenant, span, reads)).await
    }
}
