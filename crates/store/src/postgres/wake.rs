//! Waiting: runs that wait for something outside of their jobs are woken. Waking is one statement, which takes the views in
//! which a run waits so; nobody holds such a run, and nothing else follows from it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::shard::ShardSet;
use model::view::View;
use model::{RunId, TenantId, Timestamp, WaitReason};
use uuid::Uuid;

use super::fault::Done;
use super::fire::live_named;
use super::plan::due_run;
use super::presence::some_shards;
use super::rows::word;
use super::store::{PgStore, limit};
use super::views::{Lock, Views, ended_named};
use crate::audit::Change;
use crate::row::Payloads;
use crate::{DueRun, StoreError, WaitStore, Woken};

impl PgStore {
    async fn try_wake_due(
        &self,
        shards: &ShardSet,
        now: Timestamp,
        count: usize,
    ) -> Done<Vec<DueRun>> {
        let conn = self.pool.get().await?;
        let sql = include_str!("sql/wake_due.sql");
        let params = (now.as_millis(), some_shards(shards), limit(count));
        let rows = conn.rows(sql, &[&params.0, &params.1, &params.2]).await?;
        rows.iter().map(due_run).collect()
    }

    async fn try_wake(&self, runs: &[RunId], now: Timestamp) -> Done<Vec<DueRun>> {
        let conn = self.pool.get().await?;
        let names: Vec<Uuid> = runs.iter().map(|run| run.0).collect();
        let sql = include_str!("sql/wake.sql");
        let rows = conn.rows(sql, &[&names, &now.as_millis()]).await?;
        rows.iter().map(due_run).collect()
    }

    async fn try_wake_run(&self, tenant: TenantId, id: RunId, now: Timestamp) -> Done<Woken> {
        let conn = self.clients.begin().await?;
        let live = live_named(&conn, &[id.0], Payloads::Small).await?;
        if let Some(job) = live.first().map(|row| row.run.job) {
            let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
            if views.run(job, id).is_some() {
                let woken = views.view(job).wake_run(tenant, id, now);
                views.flush(self, &conn).await?;
                if matches!(woken, Woken::Done(_)) {
                    let change = Change::run_woken(tenant, job, id);
                    self.audit(&conn, &[change]).await?;
                }
                conn.commit().await?;
                return Ok(woken);
            }
        }
        let ended = ended_named(&conn, &[id.0]).await?.remove(&id);
        let mut view = View::default();
        view.history.named = ended.filter(|(of, _)| *of == tenant).map(|(_, how)| how);
        Ok(view.wake_run(tenant, id, now))
    }

    async fn try_count_waiting(&self) -> Done<BTreeMap<WaitReason, u64>> {
        let conn = self.readers.get().await?;
        let rows = conn
            .rows(include_str!("sql/count_waiting.sql"), &[])
            .await?;
        let mut counts = BTreeMap::new();
        for row in &rows {
            counts.insert(word(row, 0)?, row.try_get::<_, i64>(1)?.unsigned_abs());
        }
        Ok(counts)
    }
}

#[async_trait]
impl WaitStore for PgStore {
    async fn wake_due(
        &self,
        shards: &ShardSet,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        self.call(|| self.try_wake_due(shards, now, limit)).await
    }

    async fn wake(&self, runs: &[RunId], now: Timestamp) -> Result<Vec<DueRun>, StoreError> {
        self.call(|| self.try_wake(runs, now)).await
    }

    async fn wake_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Woken, StoreError> {
        self.call(|| self.try_wake_run(tenant, run, now)).await
    }

    async fn count_waiting(&self) -> Result<BTreeMap<WaitReason, u64>, StoreError> {
        self.call(|| self.try_count_waiting()).await
    }
}
