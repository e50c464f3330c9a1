//! Retention: one bounded step of forgetting.

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::runs_day::Day;
use model::{TenantId, Timestamp, Usage};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::store::{PgStore, limit};
use super::uses::UseColumns;
use crate::{Keep, Retained};

/// What a job took; one that was deleted had given it back.
fn taken(row: &Row) -> Done<Usage> {
    let is_gone: bool = row.try_get(1)?;
    let payload_bytes: i32 = row.try_get(2)?;
    Ok(if is_gone {
        Usage::default()
    } else {
        Usage {
            jobs: 1,
            payload_bytes: u64::from(payload_bytes.unsigned_abs()),
        }
    })
}

impl PgStore {
    pub(super) async fn try_retain(&self, keep: &Keep) -> Done<Retained> {
        self.now();
        // Whoever reads history holds up what is dropped, which must not hold up what is needed.
        self.open_ahead(keep.now).await?;
        let partitions = self.drop_partitions(keep.now.minus(keep.history)).await?;
        let requests = self.drop_requests(keep.now.minus(IDEMPOTENCY_KEEP)).await?;
        let jobs = self.drop_jobs(keep.now.minus(keep.finished)).await?;
        self.drop_replays(keep.now.minus(keep.finished)).await?;
        let swept = self.sweep_tenants(keep.now).await?;
        let more_rollups = self.drop_rollups(keep.now).await?;
        self.sweep_outside(keep).await?;
        self.forget_presences().await?;
        self.drop_run_counts(Day::of(keep.now).before()).await?;
        Ok(Retained {
            partitions,
            jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
            more: swept
                || more_rollups
                || jobs == RETENTION_BATCH_MAX
                || requests == limit(RETENTION_BATCH_MAX).unsigned_abs(),
        })
    }

    async fn drop_requests(&self, until: Timestamp) -> Done<u64> {
        let conn = self.clients.get().await?;
        let (until, batch) = (until.as_millis(), limit(RETENTION_BATCH_MAX));
        let sql = include_str!("sql/retain_requests.sql");
        conn.execute(sql, &[&until, &batch]).await
    }

    /// Jobs that are over and of which nothing lives, locked before they go.
    async fn drop_jobs(&self, finished: Timestamp) -> Done<usize> {
        let conn = self.clients.begin().await?;
        let (finished, batch) = (finished.as_millis(), limit(RETENTION_BATCH_MAX));
        let sql = include_str!("sql/retain_jobs.sql");
        let rows = conn.rows(sql, &[&finished, &batch]).await?;
        let ids = rows.iter().map(|row| row.try_get(0));
        let ids: Vec<Uuid> = ids.collect::<Result<_, _>>()?;
        if ids.is_empty() {
            return Ok(0);
        }
        // Only now: what has come to life since the look above is seen.
        let rows = conn
            .rows(include_str!("sql/retain_job.sql"), &[&ids])
            .await?;
        let gone = rows.iter().map(|row| row.try_get(0));
        let gone: Vec<Uuid> = gone.collect::<Result<_, _>>()?;
        let sql = include_str!("sql/retain_def.sql");
        let mut given_back = Vec::with_capacity(gone.len());
        for row in &conn.rows(sql, &[&gone]).await? {
            let taken = taken(row)?;
            given_back.push((TenantId(row.try_get(0)?), taken, Usage::default()));
        }
        for sql in [
            include_str!("sql/retain_versions.sql"),
            include_str!("sql/drop_labels.sql"),
            include_str!("sql/drop_calendars.sql"),
        ] {
            conn.execute(sql, &[&gone]).await?;
        }
        UseColumns::new(given_back).write(&conn).await?;
        conn.commit().await?;
        Ok(gone.len())
    }

    /// Presences that have ended and hold nothing.
    async fn forget_presences(&self) -> Done<()> {
        let conn = self.clients.get().await?;
        let rows = conn
            .rows(include_str!("sql/retain_presences.sql"), &[])
            .await?;
        let mut clear = Self::known(&self.clear);
        for row in &rows {
            clear.remove(&row.try_get(0)?);
        }
        Ok(())
    }
}
