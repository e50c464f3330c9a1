//! Runs of a day. Every counter has rows of its own, so that nodes do not wait for each other.

use async_trait::async_trait;
use model::runs_day::{Day, RunCount, RunQuota};
use model::{PresenceId, TenantId, TenantName};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::store::PgStore;
use super::uses::{count, maybe_count};
use crate::{RunCountStore, StoreError};

/// Columns as `run_quotas.sql` has them; nothing for a name that no tenant can have.
fn read(row: &Row) -> Done<Option<RunQuota>> {
    let (tenant, name) = (TenantId(row.try_get(0)?), row.try_get::<_, String>(1)?);
    let (limit, others) = (maybe_count(row, 2)?, maybe_count(row, 3)?.unwrap_or(0));
    let known = TenantName::new(&name).ok().zip(limit);
    Ok(known.map(|(name, limit)| RunQuota {
        tenant,
        name,
        limit,
        others,
    }))
}

async fn put(conn: &Conn, counter: PresenceId, counts: &[RunCount]) -> Done<()> {
    let days: Vec<i64> = counts.iter().map(|it| it.day.0).collect();
    let tenants: Vec<Uuid> = counts.iter().map(|it| it.tenant.0).collect();
    let runs: Vec<i64> = counts.iter().map(|it| count(it.runs)).collect();
    let sql = include_str!("sql/count_runs.sql");
    conn.execute(sql, &[&days, &tenants, &counter.0, &runs])
        .await?;
    Ok(())
}

impl PgStore {
    async fn try_count_runs(
        &self,
        counter: PresenceId,
        counts: &[RunCount],
        today: Day,
    ) -> Done<Vec<RunQuota>> {
        let conn = self.clients.get().await?;
        if !counts.is_empty() {
            put(&conn, counter, counts).await?;
        }
        let sql = include_str!("sql/run_quotas.sql");
        let rows = conn.rows(sql, &[&today.0, &counter.0]).await?;
        let mut quotas = Vec::with_capacity(rows.len());
        for row in &rows {
            quotas.extend(read(row)?);
        }
        Ok(quotas)
    }

    async fn try_runs_of_day(&self, tenant: TenantId, day: Day) -> Done<u64> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/runs_of_day.sql");
        let row = conn.row(sql, &[&day.0, &tenant.0]).await?;
        let runs = row.map(|row| maybe_count(&row, 0)).transpose()?;
        Ok(runs.flatten().unwrap_or(0))
    }

    pub(super) async fn drop_run_counts(&self, before: Day) -> Done<()> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/retain_run_counts.sql");
        conn.execute(sql, &[&before.0]).await?;
        Ok(())
    }
}

#[async_trait]
impl RunCountStore for PgStore {
    async fn count_runs(
        &self,
        counter: PresenceId,
        counts: &[RunCount],
        today: Day,
    ) -> Result<Vec<RunQuota>, StoreError> {
        self.call(|| self.try_count_runs(counter, counts, today))
            .await
    }

    async fn runs_of_day(&self, tenant: TenantId, day: Day) -> Result<u64, StoreError> {
        self.call(|| self.try_runs_of_day(tenant, day)).await
    }
}
