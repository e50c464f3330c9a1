//! Runs of a day.

use async_trait::async_trait;
use model::runs_day::{Day, RunCount, RunQuota};
use model::{PresenceId, TenantId, TenantName};
use rusqlite::{Connection, Row, params};

use super::db::Db;
use super::fault::Done;
use super::rows::Tenant;
use super::store::SqliteStore;
use super::uses::{count, maybe_count};
use super::writer::By;
use crate::{RunCountStore, StoreError};

/// Columns as `run_quotas.sql` has them; nothing for a name that no tenant can have.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<RunQuota>> {
    let Tenant(tenant) = row.get(0)?;
    let (name, limit): (String, _) = (row.get(1)?, maybe_count(row, 2)?);
    let others = maybe_count(row, 3)?.unwrap_or(0);
    let known = TenantName::new(&name).ok().zip(limit);
    Ok(known.map(|(name, limit)| RunQuota {
        tenant,
        name,
        limit,
        others,
    }))
}

fn quotas(conn: &Connection, counter: PresenceId, today: Day) -> Done<Vec<RunQuota>> {
    let mut select = conn.prepare_cached(include_str!("sql/run_quotas.sql"))?;
    let rows = select.query_map(params![today.0, counter.as_bytes()], read)?;
    let found: rusqlite::Result<Vec<_>> = rows.collect();
    Ok(found?.into_iter().flatten().collect())
}

fn of_day(conn: &Connection, tenant: TenantId, day: Day) -> Done<u64> {
    let mut select = conn.prepare_cached(include_str!("sql/runs_of_day.sql"))?;
    let params = params![day.0, Tenant(tenant)];
    Ok(select
        .query_row(params, |row| maybe_count(row, 0))?
        .unwrap_or(0))
}

impl Db {
    fn count_runs(&self, counter: PresenceId, counts: &[RunCount]) -> Done<()> {
        let mut put = self
            .conn
            .prepare_cached(include_str!("sql/count_runs.sql"))?;
        for RunCount { tenant, day, runs } in counts {
            put.execute(params![
                day.0,
                Tenant(*tenant),
                counter.as_bytes(),
                count(*runs)
            ])?;
        }
        Ok(())
    }

    pub(super) fn drop_run_counts(&self, before: Day) -> Done<()> {
        let sql = include_str!("sql/retain_run_counts.sql");
        self.conn.prepare_cached(sql)?.execute([before.0])?;
        Ok(())
    }
}

#[async_trait]
impl RunCountStore for SqliteStore {
    async fn count_runs(
        &self,
        counter: PresenceId,
        counts: &[RunCount],
        today: Day,
    ) -> Result<Vec<RunQuota>, StoreError> {
        if !counts.is_empty() {
            let counts = counts.to_vec();
            self.write(By::Client, counts.len(), move |db| {
                db.count_runs(counter, &counts)
            })
            .await?;
        }
        self.read(By::Engine, move |conn| quotas(conn, counter, today))
            .await
    }

    async fn runs_of_day(&self, tenant: TenantId, day: Day) -> Result<u64, StoreError> {
        self.read(By::Client, move |conn| of_day(conn, tenant, day))
            .await
    }
}
