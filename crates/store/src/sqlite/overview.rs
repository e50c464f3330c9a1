//! What overviews are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use model::limits::RETENTION_BATCH_MAX;
use model::rollup::Step;
use model::{JobId, JobState, Rollup, RollupRow, TenantId, Timestamp};
use rusqlite::{Connection, params};

use super::calendars::Lookup;
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant, Word, moment};
use super::store::SqliteStore;
use super::writer::By;
use crate::code::{Code, bad_row};
use crate::doc::{decode_rollup, encode_rollup};
use crate::row::{Payloads, planned};
use crate::{DueCursor, DuePage, DueSpan, LiveCount, OverviewStore, StandingCounts, StoreError};

fn read(
    conn: &Connection,
    tenant: TenantId,
    step: Step,
    (from, to): (Timestamp, Timestamp),
) -> Done<Vec<(Timestamp, Rollup)>> {
    let mut select = conn.prepare_cached(include_str!("sql/read_rollups.sql"))?;
    let mut rows = select.query(params![
        Tenant(tenant),
        step.code(),
        from.as_millis(),
        to.as_millis()
    ])?;
    let mut sums = BTreeMap::<Timestamp, Rollup>::new();
    while let Some(row) = rows.next()? {
        let doc: Vec<u8> = row.get(1)?;
        let rollup = decode_rollup(&doc).map_err(|error| bad_row("rollup", &error))?;
        sums.entry(moment(row, 0)?).or_default().add(&rollup);
    }
    Ok(sums.into_iter().collect())
}

fn count_standing(conn: &Connection, limit: usize) -> Done<StandingCounts> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(include_str!("sql/count_standing_live.sql"))?;
    let live = select.query_map([most], |row| {
        let Tenant(tenant) = row.get(0)?;
        Ok(LiveCount {
            tenant,
            lane: row.get::<_, Word<_>>(1)?.0,
            state: row.get::<_, Word<_>>(2)?.0,
            waiting: row.get(3)?,
            runs: row.get::<_, i64>(4)?.unsigned_abs(),
        })
    })?;
    let live = live.collect::<rusqlite::Result<_>>()?;
    let mut select = conn.prepare_cached(include_str!("sql/count_standing_jobs.sql"))?;
    let jobs = select.query_map([most], |row| {
        let Tenant(tenant) = row.get(0)?;
        let state: JobState = row.get::<_, Word<_>>(1)?.0;
        Ok((tenant, state, row.get::<_, i64>(2)?.unsigned_abs()))
    })?;
    let jobs = jobs.collect::<rusqlite::Result<_>>()?;
    Ok(StandingCounts::new(live, jobs, limit))
}

fn list_due(conn: &Connection, tenant: TenantId, span: &DueSpan, reads: usize) -> Done<DuePage> {
    let mut select = conn.prepare_cached(include_str!("sql/list_due.sql"))?;
    let mut is_of = conn.prepare_cached(include_str!("sql/list_due_tenant.sql"))?;
    let last = span.after.and_then(|after| after.last);
    let later_than = span.after.and_then(|after| after.later_than);
    let (from, id) = match (last, later_than) {
        (Some((due_at, job)), _) => (due_at.as_millis(), *job.as_bytes()),
        (None, Some(later_than)) => (later_than.as_millis(), [u8::MAX; 16]),
        (None, None) => (-1, [0; 16]),
    };
    let mut rows = select.query(params![from, id, span.up_to.as_millis()])?;
    let lookup = Lookup::new(conn, Payloads::Small);
    let (mut page, mut last, mut so_far) = (DuePage::default(), None, 0);
    while let Some(row) = rows.next()? {
        if so_far == reads {
            page.next = last;
            break;
        }
        so_far += 1;
        let job = JobId::from_bytes(row.get(1)?);
        last = Some(DueCursor::behind(span.after, moment(row, 0)?, job));
        if !span.samples(job) || !is_of.exists(params![job.as_bytes(), Tenant(tenant)])? {
            continue;
        }
        if let Some(row) = lookup.row(job)? {
            let job = planned(lookup.decode(row)?).ok();
            page.jobs.extend(job.map(Arc::new));
        }
    }
    Ok(page)
}

impl Db {
    fn put_rollups(&self, rows: &[(RollupRow, Vec<u8>)]) -> Done<()> {
        let mut put = self
            .conn
            .prepare_cached(include_str!("sql/put_rollup.sql"))?;
        for (row, doc) in rows {
            put.execute(params![
                Tenant(row.tenant),
                row.step.code(),
                row.at.as_millis(),
                row.by.as_bytes(),
                row.expires_at().as_millis(),
                doc
            ])?;
        }
        Ok(())
    }

    /// Rollups that were kept long enough go, so many at a time; whether there may be more.
    pub(super) fn drop_rollups(&self, now: Timestamp) -> Done<bool> {
        let sql = include_str!("sql/retain_rollups.sql");
        let mut delete = self.conn.prepare_cached(sql)?;
        let batch = i64::try_from(RETENTION_BATCH_MAX).unwrap_or(i64::MAX);
        let dropped = delete.execute(params![now.as_millis(), batch])?;
        Ok(dropped == RETENTION_BATCH_MAX)
    }
}

#[async_trait]
impl OverviewStore for SqliteStore {
    async fn put_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let encoded = |row: &RollupRow| Ok((row.clone(), encode_rollup(&row.rollup)?));
        let rows: Result<Vec<_>, crate::doc::DocError> = rows.iter().map(encoded).collect();
        let rows = rows.map_err(|error| bad_row("rollup", &error))?;
        self.write(By::Client, rows.len(), move |db| db.put_rollups(&rows))
            .await
    }

    async fn read_rollups(
        &self,
        tenant: TenantId,
        step: Step,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Rollup)>, StoreError> {
        let wanted = move |conn: &_| read(conn, tenant, step, (from, to));
        self.read(By::Client, wanted).await
    }

    async fn count_standing(&self, limit: usize) -> Result<StandingCounts, StoreError> {
        self.read(By::Client, move |conn| count_standing(conn, limit))
            .await
    }

    async fn list_due(
        &self,
        tenant: TenantId,
        span: &DueSpan,
        reads: usize,
    ) -> Result<DuePage, StoreError> {
        let span = *span;
        self.read(By::Client, move |conn| list_due(conn, tenant, &span, reads))
            .await
    }
}
