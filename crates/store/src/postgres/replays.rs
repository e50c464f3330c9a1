//! Replays in bulk, and backfills.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::{JobId, ReplayId, RunId, TenantId, Timestamp, limits};
use tokio_postgres::Row;
use uuid::Uuid;

use super::access::number;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::{maybe_bytes, maybe_moment, moment, read_text, text, word};
use super::store::{PgStore, limit};
use super::tenants;
use super::views::{Lock, Views, ended_named};
use crate::audit::Change;
use crate::code::{Code, bad_row};
use crate::row::Payloads;
use crate::{
    Page, Progress, QueueRun, Queued, Replay, ReplayCreated, ReplayState, ReplayStore, StoreError,
    doc,
};

fn count(row: &Row, index: usize) -> Done<u64> {
    Ok(row.try_get::<_, i64>(index)?.unsigned_abs())
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Columns as `get_replay.sql` has them.
fn read(row: &Row) -> Done<Replay> {
    let id = ReplayId(row.try_get(0)?);
    let cursor: Option<Uuid> = row.try_get(10)?;
    let note: Option<String> = row.try_get(16)?;
    let progress = Progress {
        step: row.try_get::<_, i32>(9)?.cast_unsigned(),
        state: word(row, 2)?,
        cursor: cursor.map(RunId),
        scanned: count(row, 11)?,
        started: count(row, 12)?,
        skipped: count(row, 13)?,
        updated_at: moment(row, 14)?,
        ended_at: maybe_moment(row, 15)?,
        note: note.map(read_text),
    };
    let stored: Vec<u8> = row.try_get(7)?;
    let work = doc::decode_replay(&stored, maybe_bytes(row, 8)?);
    Ok(Replay {
        id,
        tenant: TenantId(row.try_get(1)?),
        work: work.map_err(|error| bad_row(id, &error))?,
        created_at: moment(row, 3)?,
        actor: Arc::from(read_text(row.try_get(4)?)),
        rate: row.try_get::<_, i32>(5)?.unsigned_abs(),
        limit: count(row, 6)?,
        progress,
    })
}

/// One that cannot be read is left out, and stands in nobody's way.
async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<Replay>> {
    let rows = conn.rows(sql, params).await?;
    let readable = rows.iter().filter_map(|row| {
        let replay = read(row);
        if replay.is_err() {
            let id = row.try_get::<_, Uuid>(0).map(ReplayId).ok();
            tracing::warn!(?id, "unreadable replay");
        }
        replay.ok()
    });
    Ok(readable.collect())
}

async fn get(conn: &Conn, tenant: TenantId, id: ReplayId) -> Done<Option<Replay>> {
    let sql = include_str!("sql/get_replay.sql");
    let row = conn.row(sql, &[&id.0, &tenant.0]).await?;
    row.as_ref().map(read).transpose()
}

impl PgStore {
    async fn try_create_replay(&self, replay: &Replay) -> Done<ReplayCreated> {
        let conn = self.clients.begin().await?;
        let tenant = tenants::get(&conn, replay.tenant).await?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(ReplayCreated::NoTenant);
        }
        if get(&conn, replay.tenant, replay.id).await?.is_some() {
            return Ok(ReplayCreated::Done);
        }
        let running = include_str!("sql/count_replays.sql");
        let running = number(&conn, running, &[&replay.tenant.0]).await?;
        if running >= limit(limits::REPLAYS_MAX) {
            return Ok(ReplayCreated::Full);
        }
        let payload = replay.payload().map(Bytes::as_ref);
        let work = doc::encode_replay(&replay.work).map_err(|e| bad_row(replay.id, &e))?;
        let params: &Params<'_> = &[
            &replay.id.0,
            &replay.tenant.0,
            &replay.created_at.as_millis(),
            &text(&replay.actor),
            &replay.rate.cast_signed(),
            &signed(replay.limit),
            &work,
            &payload,
            &replay.progress.state.code(),
            &replay.progress.updated_at.as_millis(),
        ];
        conn.execute(include_str!("sql/create_replay.sql"), params)
            .await?;
        self.audit(&conn, &[Change::replay_created(replay)]).await?;
        conn.commit().await?;
        Ok(ReplayCreated::Done)
    }

    async fn move_on(&self, conn: &Conn, replay: &Replay) -> Done<bool> {
        let it = &replay.progress;
        let note = it.note.as_deref().map(text);
        let params: &Params<'_> = &[
            &replay.id.0,
            &it.step.cast_signed(),
            &it.state.code(),
            &it.cursor.map(|cursor| cursor.0),
            &signed(it.scanned),
            &signed(it.started),
            &signed(it.skipped),
            &it.updated_at.as_millis(),
            &it.ended_at.map(Timestamp::as_millis),
            &note,
        ];
        let moved = conn
            .execute(include_str!("sql/move_replay.sql"), params)
            .await?;
        if moved > 0 && it.state != ReplayState::Running {
            self.audit(conn, &[Change::replay_ended(replay)]).await?;
        }
        Ok(moved > 0)
    }

    async fn try_move_replay(&self, replay: &Replay) -> Done<bool> {
        let conn = self.clients.begin().await?;
        let moved = self.move_on(&conn, replay).await?;
        conn.commit().await?;
        Ok(moved)
    }

    async fn try_cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Done<Option<Replay>> {
        loop {
            let conn = self.clients.begin().await?;
            let Some(stands) = get(&conn, tenant, id).await? else {
                return Ok(None);
            };
            if stands.progress.state != ReplayState::Running {
                return Ok(Some(stands));
            }
            let cancelled = stands.cancelled(now);
            // Whoever works on it may have written meanwhile.
            if self.move_on(&conn, &cancelled).await? {
                conn.commit().await?;
                return Ok(Some(cancelled));
            }
        }
    }

    /// Runs of one job, in one transaction.
    async fn try_queue(&self, job: JobId, runs: &[&QueueRun]) -> Done<Vec<Queued>> {
        let conn = self.clients.begin().await?;
        let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
        views.read_jobs(&conn, &[job.0], Payloads::Small).await?;
        views.job(job)?;
        let needs = QueueRun::needs(runs.iter().copied());
        let names: Vec<Uuid> = needs.names.iter().map(|id| id.0).collect();
        let ended = ended_named(&conn, &names).await?;
        let view = views.view(job);
        view.history.ended = ended.into_keys().collect();
        if let (Some((from, to)), Some(first)) = (needs.slots, runs.first()) {
            let all = usize::MAX;
            let slots = self.slots_on(&conn, first.run.tenant, job, (from, to), all);
            let slots = slots.await?.into_iter().filter(|run| !run.state.is_live());
            view.history.slots = slots.map(|run| (run.id, run)).collect();
        }
        let queued = runs.iter().map(|it| view.queue(it)).collect();
        let started: Vec<Change> = view
            .effects
            .insert
            .iter()
            .map(Change::run_started)
            .collect();
        views.flush(self, &conn).await?;
        self.audit(&conn, &started).await?;
        conn.commit().await?;
        Ok(queued)
    }

    /// What ended long enough ago.
    pub(super) async fn drop_replays(&self, ended: Timestamp) -> Done<()> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/retain_replays.sql");
        let most = limit(limits::RETENTION_BATCH_MAX);
        conn.execute(sql, &[&ended.as_millis(), &most]).await?;
        Ok(())
    }
}

#[async_trait]
impl ReplayStore for PgStore {
    async fn create_replay(&self, replay: &Replay) -> Result<ReplayCreated, StoreError> {
        self.call(|| self.try_create_replay(replay)).await
    }

    async fn get_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
    ) -> Result<Option<Replay>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            get(&conn, tenant, id).await
        })
        .await
    }

    async fn list_replays(
        &self,
        tenant: TenantId,
        page: Page<ReplayId>,
    ) -> Result<Vec<Replay>, StoreError> {
        self.call(|| async {
            let conn = self.readers.get().await?;
            let before = page.before.map_or(Uuid::max(), |before| before.0);
            let params: &Params<'_> = &[&tenant.0, &before, &limit(page.limit)];
            select(&conn, include_str!("sql/list_replays.sql"), params).await
        })
        .await
    }

    async fn running_replays(&self, count: usize) -> Result<Vec<Replay>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            let sql = include_str!("sql/running_replays.sql");
            select(&conn, sql, &[&limit(count)]).await
        })
        .await
    }

    async fn move_replay(&self, replay: &Replay) -> Result<bool, StoreError> {
        self.call(|| self.try_move_replay(replay)).await
    }

    async fn cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Option<Replay>, StoreError> {
        self.call(|| self.try_cancel_replay(tenant, id, now)).await
    }

    async fn queue_runs(&self, runs: &[QueueRun]) -> Result<Vec<Queued>, StoreError> {
        let mut answers = BTreeMap::new();
        for (job, batch) in crate::by_job(runs) {
            let items: Vec<&QueueRun> = batch.iter().map(|(_, run)| *run).collect();
            let queued = self.call(|| self.try_queue(job, &items)).await?;
            answers.extend(batch.iter().map(|(index, _)| *index).zip(queued));
        }
        Ok(answers.into_values().collect())
    }
}
