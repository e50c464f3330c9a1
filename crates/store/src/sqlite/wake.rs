//! Waiting: runs that wait for something outside of their jobs are woken. Waking is one statement for each run, which takes
//! the views in which it waits so; nobody holds such a run, and nothing else follows from it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::shard::ShardSet;
use model::view::Needs;
use model::{JobId, RunId, Shard, TenantId, Timestamp, WaitReason};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::db::Db;
use super::fault::Done;
use super::history::{ended_row, live_row};
use super::plan::due_run;
use super::rows::Word;
use super::writer::By;
use crate::audit::Change;
use crate::row::Payloads;
use crate::{DueRun, StoreError, WaitStore, Woken};

impl Db {
    fn wake(&self, runs: &[RunId], now: Timestamp) -> Done<Vec<DueRun>> {
        let mut update = self.conn.prepare_cached(include_str!("sql/wake.sql"))?;
        let mut woken = Vec::new();
        for run in runs {
            let row = update.query_row(params![run.as_bytes(), now.as_millis()], due_run);
            woken.extend(row.optional()?);
        }
        Ok(woken)
    }

    fn wake_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Done<Woken> {
        let live = live_row(&self.conn, id, Payloads::Small)?;
        let ended = match &live {
            None => ended_row(&self.conn, &self.partitions, id)?,
            Some(_) => None,
        };
        let named = Some(id).filter(|_| ended.is_some());
        let Some(run) = live.or(ended).map(|row| row.run) else {
            return Ok(Woken::Missing);
        };
        if run.tenant != tenant {
            return Ok(Woken::Missing);
        }
        let mut view = self.view_of_runs(run.job)?;
        let needs = Needs {
            named,
            ..Needs::default()
        };
        view.history = self.read_history(run.job, needs)?;
        let woken = view.wake_run(tenant, id, now);
        self.apply(run.job, view.effects)?;
        if matches!(woken, Woken::Done(_)) {
            self.audit(&Change::run_woken(tenant, run.job, id))?;
        }
        Ok(woken)
    }
}

/// Runs whose wait is over.
fn over(conn: &Connection, shards: &ShardSet, now: Timestamp, limit: usize) -> Done<Vec<RunId>> {
    let mut select = conn.prepare_cached(include_str!("sql/wake_due.sql"))?;
    let mut rows = select.query([now.as_millis()])?;
    let mut over = Vec::new();
    while over.len() < limit {
        let Some(row) = rows.next()? else { break };
        if shards.contains(Shard::of(JobId::from_bytes(row.get(1)?))) {
            over.push(RunId::from_bytes(row.get(0)?));
        }
    }
    Ok(over)
}

fn count_waiting(conn: &Connection) -> Done<BTreeMap<WaitReason, u64>> {
    let mut select = conn.prepare_cached(include_str!("sql/count_waiting.sql"))?;
    let counts = select.query_map([], |row| {
        Ok((
            row.get::<_, Word<_>>(0)?.0,
            row.get::<_, i64>(1)?.unsigned_abs(),
        ))
    })?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

#[async_trait]
impl WaitStore for SqliteStore {
    /// Nearly always nothing is to be woken, and then nothing is written.
    async fn wake_due(
        &self,
        shards: &ShardSet,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        let shards = *shards;
        let read = move |conn: &_| over(conn, &shards, now, limit);
        let over = self.read(By::Engine, read).await?;
        if over.is_empty() {
            return Ok(Vec::new());
        }
        self.wake(&over, now).await
    }

    async fn wake(&self, runs: &[RunId], now: Timestamp) -> Result<Vec<DueRun>, StoreError> {
        let runs = runs.to_vec();
        self.write(By::Engine, runs.len(), move |db| db.wake(&runs, now))
            .await
    }

    async fn wake_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Woken, StoreError> {
        self.write(By::Client, 1, move |db| db.wake_run(tenant, run, now))
            .await
    }

    async fn count_waiting(&self) -> Result<BTreeMap<WaitReason, u64>, StoreError> {
        self.read(By::Client, count_waiting).await
    }
}
