//! Retention: one bounded step of forgetting.

use model::Timestamp;
use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use uuid::Uuid;

use super::fault::Done;
use super::store::{PgStore, limit};
use crate::{Keep, Retained};

impl PgStore {
    pub(super) async fn try_retain(&self, keep: &Keep) -> Done<Retained> {
        self.now();
        // Whoever reads history holds up what is dropped, which must not hold up what is needed.
        self.open_ahead(keep.now).await?;
        let ranges = self.drop_days(keep.now.minus(keep.history)).await?;
        let requests = self.drop_requests(keep.now.minus(IDEMPOTENCY_KEEP)).await?;
        let jobs = self.drop_jobs(keep.now.minus(keep.finished)).await?;
        self.forget_presences().await?;
        Ok(Retained {
            ranges,
            jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
            more: jobs == RETENTION_BATCH_MAX
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
        for sql in [
            include_str!("sql/retain_def.sql"),
            include_str!("sql/drop_labels.sql"),
            include_str!("sql/drop_calendars.sql"),
        ] {
            conn.execute(sql, &[&gone]).await?;
        }
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
