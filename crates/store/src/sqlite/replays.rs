//! Replays in bulk, and backfills.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::{JobId, ReplayId, RunId, TenantId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::access::number;
use super::db::Db;
use super::fault::Done;
use super::history::ended_row;
use super::jobs::load_job;
use super::rows::{Tenant, moment, word};
use super::slots::list_slots;
use super::store::SqliteStore;
use super::tenants;
use super::writer::By;
use crate::audit::Change;
use crate::code::{Code, bad_row};
use crate::statement::statement;
use crate::{
    Page, Progress, QueueRun, Queued, Replay, ReplayCreated, ReplayState, ReplayStore, StoreError,
    doc,
};

/// Columns as `get_replay.sql` has them.
struct ReplayRow {
    replay: Replay,
    doc: Vec<u8>,
    payload: Option<Vec<u8>>,
}

fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(index)?.unsigned_abs())
}

fn read(row: &Row<'_>) -> rusqlite::Result<ReplayRow> {
    let Tenant(tenant) = row.get(1)?;
    let cursor: Option<[u8; 16]> = row.get(10)?;
    let ended_at: Option<i64> = row.get(15)?;
    let progress = Progress {
        step: row.get(9)?,
        state: word(row, 2)?,
        cursor: cursor.map(RunId::from_bytes),
        scanned: count(row, 11)?,
        started: count(row, 12)?,
        skipped: count(row, 13)?,
        updated_at: moment(row, 14)?,
        ended_at: ended_at.map(Timestamp::from_millis),
        note: row.get(16)?,
    };
    let replay = Replay {
        id: ReplayId::from_bytes(row.get(0)?),
        tenant,
        // What it is to run is read below.
        work: crate::ReplayWork::Runs(crate::RunFind::default(), None),
        created_at: moment(row, 3)?,
        actor: Arc::from(row.get::<_, String>(4)?),
        rate: row.get(5)?,
        limit: count(row, 6)?,
        progress,
    };
    Ok(ReplayRow {
        replay,
        doc: row.get(7)?,
        payload: row.get(8)?,
    })
}

impl ReplayRow {
    fn decode(self) -> Done<Replay> {
        let id = self.replay.id;
        let work = doc::decode_replay(&self.doc, self.payload.map(Bytes::from));
        Ok(Replay {
            work: work.map_err(|error| bad_row(id, &error))?,
            ..self.replay
        })
    }
}

/// One that cannot be read is left out, and stands in nobody's way.
fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Replay>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let readable = rows.into_iter().filter_map(|row| {
        let id = row.replay.id;
        let decoded = row.decode();
        if decoded.is_err() {
            tracing::warn!(%id, "unreadable replay");
        }
        decoded.ok()
    });
    Ok(readable.collect())
}

fn get(conn: &Connection, tenant: TenantId, id: ReplayId) -> Done<Option<Replay>> {
    let mut select = conn.prepare_cached(statement!("sql/get_replay.sql"))?;
    let row = select.query_row(params![id.as_bytes(), Tenant(tenant)], read);
    row.optional()?.map(ReplayRow::decode).transpose()
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Db {
    fn create_replay(&self, replay: &Replay) -> Done<ReplayCreated> {
        let tenant = tenants::get(&self.conn, replay.tenant)?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(ReplayCreated::NoTenant);
        }
        if get(&self.conn, replay.tenant, replay.id)?.is_some() {
            return Ok(ReplayCreated::Done);
        }
        let running = include_str!("sql/count_replays.sql");
        let running = number(&self.conn, running, [Tenant(replay.tenant)])?;
        if running >= limits::REPLAYS_MAX as i64 {
            return Ok(ReplayCreated::Full);
        }
        let payload = replay.payload().map(Bytes::as_ref);
        let work = doc::encode_replay(&replay.work).map_err(|e| bad_row(replay.id, &e))?;
        let mut insert = self
            .conn
            .prepare_cached(include_str!("sql/create_replay.sql"))?;
        insert.execute(params![
            replay.id.as_bytes(),
            Tenant(replay.tenant),
            replay.created_at.as_millis(),
            &*replay.actor,
            replay.rate,
            signed(replay.limit),
            work,
            payload,
            replay.progress.state.code(),
            replay.progress.updated_at.as_millis(),
        ])?;
        self.audit(&Change::replay_created(replay))?;
        Ok(ReplayCreated::Done)
    }

    fn move_replay(&self, replay: &Replay) -> Done<bool> {
        let it = &replay.progress;
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/move_replay.sql"))?;
        let moved = update.execute(params![
            replay.id.as_bytes(),
            it.step,
            it.state.code(),
            it.cursor.as_ref().map(RunId::as_bytes),
            signed(it.scanned),
            signed(it.started),
            signed(it.skipped),
            it.updated_at.as_millis(),
            it.ended_at.map(Timestamp::as_millis),
            it.note,
        ])? > 0;
        if moved && it.state != ReplayState::Running {
            self.audit(&Change::replay_ended(replay))?;
        }
        Ok(moved)
    }

    fn cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Done<Option<Replay>> {
        let Some(stands) = get(&self.conn, tenant, id)? else {
            return Ok(None);
        };
        if stands.progress.state != ReplayState::Running {
            return Ok(Some(stands));
        }
        let cancelled = stands.cancelled(now);
        self.move_replay(&cancelled)?;
        Ok(Some(cancelled))
    }

    fn queue_runs(&mut self, runs: &[QueueRun]) -> Done<Vec<Queued>> {
        let mut answers = BTreeMap::new();
        for (job, batch) in crate::by_job(runs) {
            let items: Vec<&QueueRun> = batch.iter().map(|(_, run)| *run).collect();
            let queued = self.queue(job, &items)?;
            answers.extend(batch.iter().map(|(index, _)| *index).zip(queued));
        }
        Ok(answers.into_values().collect())
    }

    /// Runs of one job.
    fn queue(&mut self, job: JobId, runs: &[&QueueRun]) -> Done<Vec<Queued>> {
        let mut view = self.view_of_runs(job)?;
        // One that cannot be read is not missing.
        view.job = load_job(&self.conn, job)?;
        let needs = QueueRun::needs(runs.iter().copied());
        for name in needs.names {
            if ended_row(&self.conn, &self.partitions, name)?.is_some() {
                view.history.ended.insert(name);
            }
        }
        if let (Some((from, to)), Some(first)) = (needs.slots, runs.first()) {
            let slots = list_slots(&self.conn, first.run.tenant, job, from, to, usize::MAX)?;
            let slots = slots.into_iter().filter(|run| !run.state.is_live());
            view.history.slots = slots.map(|run| (run.id, run)).collect();
        }
        let queued = runs.iter().map(|it| view.queue(it)).collect();
        let started: Vec<Change> = view
            .effects
            .insert
            .iter()
            .map(Change::run_started)
            .collect();
        self.apply(job, view.effects)?;
        for change in &started {
            self.audit(change)?;
        }
        Ok(queued)
    }

    /// What ended long enough ago.
    pub(super) fn drop_replays(&self, ended: Timestamp) -> Done<()> {
        let sql = include_str!("sql/retain_replays.sql");
        let limit = limits::RETENTION_BATCH_MAX as i64;
        let mut delete = self.conn.prepare_cached(sql)?;
        delete.execute(params![ended.as_millis(), limit])?;
        Ok(())
    }
}

#[async_trait]
impl ReplayStore for SqliteStore {
    async fn create_replay(&self, replay: &Replay) -> Result<ReplayCreated, StoreError> {
        let replay = replay.clone();
        self.write(By::Client, 1, move |db| db.create_replay(&replay))
            .await
    }

    async fn get_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
    ) -> Result<Option<Replay>, StoreError> {
        self.read(By::Client, move |conn| get(conn, tenant, id))
            .await
    }

    async fn list_replays(
        &self,
        tenant: TenantId,
        page: Page<ReplayId>,
    ) -> Result<Vec<Replay>, StoreError> {
        self.read(By::Client, move |conn| {
            let before = page
                .before
                .map_or(super::history::AFTER_ALL.to_vec(), |id| {
                    id.as_bytes().to_vec()
                });
            let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
            let params = params![Tenant(tenant), before, limit];
            select(conn, statement!("sql/list_replays.sql"), params)
        })
        .await
    }

    async fn running_replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(By::Engine, move |conn| {
            select(conn, statement!("sql/running_replays.sql"), [limit])
        })
        .await
    }

    async fn move_replay(&self, replay: &Replay) -> Result<bool, StoreError> {
        let replay = replay.clone();
        self.write(By::Client, 1, move |db| db.move_replay(&replay))
            .await
    }

    async fn cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Option<Replay>, StoreError> {
        self.write(By::Client, 1, move |db| db.cancel_replay(tenant, id, now))
            .await
    }

    async fn queue_runs(&self, runs: &[QueueRun]) -> Result<Vec<Queued>, StoreError> {
        let runs = runs.to_vec();
        self.write(By::Client, runs.len(), move |db| db.queue_runs(&runs))
            .await
    }
}
