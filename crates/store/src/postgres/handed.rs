//! Handed over: attempts whose work is with the outside. Hand-overs and heartbeats are one statement for all that are as they
//! should be; what that leaves over, and all ends, are decided on views.
//!
//! What is kept of an attempt is locked after its run. A heartbeat that takes the fast path locks nothing else: whoever ends
//! the attempt meanwhile has changed the row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::view::{HandedChange, View};
use model::{
    AttemptNo, Handed, JobId, PresenceId, Progress, Run, RunId, RunLog, Shard, TenantId, Timestamp,
    limits,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::batch::{Answers, fast, left, merged};
use super::fault::Done;
use super::fire::{held, ids, live_named};
use super::pool::{Conn, Params};
use super::put::{HandOverColumns, HandedColumns};
use super::rows::{maybe_moment, moment, number, read_ended, read_text, text};
use super::run_logs::{get_checkpoint, get_keys, get_logs, is_current};
use super::store::{PgStore, limit};
use super::views::{Lock, Views};
use crate::row::Payloads;
use crate::{
    Appended, Beaten, HandOver, HandedEnd, HandedOver, HandedStore, Heartbeat, Keep, Lapse,
    Lapsing, Leases, LogAppend, ReportKey, Reported, StoreError, Whose,
};

/// Columns as `get_handed.sql` has them.
fn read(row: &Row) -> Done<Handed> {
    let (node, progress): (Option<String>, Option<String>) = (row.try_get(3)?, row.try_get(10)?);
    let within: i64 = row.try_get(5)?;
    Ok(Handed {
        run: RunId(row.try_get(0)?),
        job: JobId(row.try_get(1)?),
        attempt: AttemptNo(number(row, 2)?),
        node: node.map(|node| Arc::from(read_text(node))),
        dispatched_at: moment(row, 4)?,
        within: Duration::from_millis(u64::try_from(within).unwrap_or(0)),
        timeout_at: moment(row, 6)?,
        until: maybe_moment(row, 7)?,
        cancelled: row.try_get(8)?,
        beaten_at: maybe_moment(row, 9)?,
        progress: progress.and_then(|column| Progress::from_column(&read_text(column))),
    })
}

async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<Handed>> {
    conn.rows(sql, params).await?.iter().map(read).collect()
}

/// What decisions about some runs see: those that live with their jobs, all of it locked; and those that have ended.
struct Outside {
    views: Views,
    job_of: BTreeMap<RunId, JobId>,
    ended: BTreeMap<RunId, Run>,
}

impl Outside {
    async fn load(conn: &Conn, runs: &[Uuid]) -> Done<Self> {
        let live = live_named(conn, runs, Payloads::Small).await?;
        let jobs: BTreeSet<Uuid> = live.iter().map(|row| row.run.job.0).collect();
        let jobs: Vec<Uuid> = jobs.into_iter().collect();
        let mut views = Views::load(conn, &jobs, Lock::JobsAndRuns).await?;
        views.read_jobs(conn, &jobs, Payloads::Small).await?;
        let mut job_of = BTreeMap::new();
        for row in &live {
            if views.run(row.run.job, row.run.id).is_some() {
                job_of.insert(row.run.id, row.run.job);
            }
        }
        for handed in select(conn, include_str!("sql/lock_handed.sql"), &[&runs]).await? {
            views.view(handed.job).handed.insert(handed.run, handed);
        }
        let gone = runs.iter().filter(|id| !job_of.contains_key(&RunId(**id)));
        let gone: Vec<Uuid> = gone.copied().collect();
        let mut ended = BTreeMap::new();
        if !gone.is_empty() {
            let sql = include_str!("sql/get_run_ended.sql");
            for row in &conn.rows(sql, &[&gone]).await? {
                let run = read_ended(row)?;
                ended.insert(run.id, run);
            }
        }
        Ok(Self {
            views,
            job_of,
            ended,
        })
    }

    /// The same for ends: reads what it takes to pause a job for one.
    async fn load_to_end(conn: &Conn, runs: &[Uuid], now: Timestamp) -> Done<Self> {
        let mut outside = Self::load(conn, runs).await?;
        let jobs = outside.views.jobs.iter();
        let needs = jobs.map(|(job, held)| (*job, held.view.needs_to_pause(now)));
        let needs: Vec<_> = needs.collect();
        outside.views.read_history(conn, &needs).await?;
        Ok(outside)
    }

    /// Decides about a run; what is kept of one that is over may be under its job.
    fn decide<T>(
        &mut self,
        run: RunId,
        job: Option<JobId>,
        decide: impl FnOnce(&mut View) -> T,
    ) -> T {
        if let Some(job) = self.job_of.get(&run).copied().or(job) {
            return decide(self.views.view(job));
        }
        let mut view = View::default();
        view.history.outside = self.ended.get(&run).cloned().map(Box::new);
        decide(&mut view)
    }
}

/// Writes what is decided about handed-over attempts.
pub(super) async fn change_handed(
    conn: &Conn,
    changes: impl Iterator<Item = (&RunId, &HandedChange)>,
) -> Done<()> {
    let (mut put, mut checkpoints) = (HandedColumns::default(), (Vec::new(), Vec::new()));
    let (mut cancelled, mut moments) = (Vec::new(), Vec::new());
    let (mut rest, mut gone) = (Vec::new(), Vec::new());
    for (run, change) in changes {
        match change {
            HandedChange::Put(handed, checkpoint) => {
                put.push(handed);
                if let Some(checkpoint) = checkpoint {
                    checkpoints.0.push(run.0);
                    checkpoints.1.push(&checkpoint[..]);
                }
            }
            HandedChange::Cancel(now) => {
                cancelled.push(run.0);
                moments.push(now.as_millis());
            }
            HandedChange::Rest => rest.push(run.0),
            HandedChange::Gone => gone.push(run.0),
        }
    }
    if !put.run.is_empty() {
        let sql = include_str!("sql/put_handed.sql");
        conn.execute(sql, &put.params()).await?;
    }
    if !checkpoints.0.is_empty() {
        let sql = include_str!("sql/put_checkpoints.sql");
        conn.execute(sql, &[&checkpoints.0, &checkpoints.1]).await?;
    }
    if !cancelled.is_empty() {
        let sql = include_str!("sql/cancel_handed.sql");
        let least = model::time::millis(limits::HANDED_GRACE_MIN);
        conn.execute(sql, &[&cancelled, &moments, &least]).await?;
    }
    if !rest.is_empty() {
        conn.execute(include_str!("sql/rest_handed.sql"), &[&rest])
            .await?;
    }
    if !gone.is_empty() {
        conn.execute(include_str!("sql/drop_handed.sql"), &[&gone])
            .await?;
    }
    Ok(())
}

/// Places of items by their runs.
fn places<I>(items: &[I], run: impl Fn(&I) -> RunId) -> BTreeMap<RunId, usize> {
    let items = items.iter().enumerate();
    items.map(|(place, item)| (run(item), place)).collect()
}

impl PgStore {
    async fn hand_over_fast_path(
        &self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Done<Answers<HandedOver>> {
        let mut columns = HandOverColumns::default();
        items.iter().for_each(|item| columns.push(item));
        let now = now.as_millis();
        let mut params: Vec<super::put::Param<'_>> = vec![&by.0];
        params.extend(columns.params());
        params.push(&now);
        let conn = self.pool.get().await?;
        let rows = conn
            .rows(include_str!("sql/hand_over.sql"), &params)
            .await?;
        let places = places(items, |it| it.run);
        let moved = ids(&rows)?.into_iter();
        let moved = moved.filter_map(|run| Some((*places.get(&run)?, HandedOver::Done)));
        Ok(moved.collect())
    }

    async fn hand_over_slow_path(
        &self,
        by: PresenceId,
        items: &[&HandOver],
        now: Timestamp,
    ) -> Done<Vec<HandedOver>> {
        let conn = self.pool.begin().await?;
        self.hold(&conn, by).await?.ok_or(StoreError::Fenced)?;
        let runs: Vec<Uuid> = items.iter().map(|it| it.run.0).collect();
        let mut outside = Outside::load(&conn, &runs).await?;
        let hand_over =
            |it: &&HandOver| outside.decide(it.run, None, |view| view.hand_over(it, by, now));
        let answers = items.iter().map(hand_over).collect();
        outside.views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }

    async fn heartbeat_fast_path(
        &self,
        beats: &[Heartbeat],
        now: Timestamp,
    ) -> Done<Answers<Beaten>> {
        let runs: Vec<Uuid> = beats.iter().map(|it| it.run.0).collect();
        let attempts: Vec<i32> = beats.iter().map(|it| it.attempt.0.cast_signed()).collect();
        let progress = beats.iter().map(|it| it.progress.as_ref());
        let progress = progress.map(|it| it.map(|it| text(&it.to_column()).into_owned()));
        let progress: Vec<Option<String>> = progress.collect();
        let now = now.as_millis();
        let params: &Params<'_> = &[&runs, &attempts, &progress, &now];
        let conn = self.clients.get().await?;
        let rows = conn.rows(include_str!("sql/heartbeat.sql"), params).await?;
        let places = places(beats, |it| it.run);
        let mut beaten = Answers::new();
        for row in &rows {
            let done = Beaten::Done {
                cancel: row.try_get(1)?,
                until: moment(row, 2)?,
            };
            let place = places.get(&RunId(row.try_get(0)?));
            beaten.extend(place.map(|place| (*place, done)));
        }
        Ok(beaten)
    }

    async fn heartbeat_slow_path(&self, beats: &[&Heartbeat], now: Timestamp) -> Done<Vec<Beaten>> {
        let conn = self.clients.begin().await?;
        let runs: Vec<Uuid> = beats.iter().map(|it| it.run.0).collect();
        let mut outside = Outside::load(&conn, &runs).await?;
        let beat = |it: &&Heartbeat| outside.decide(it.run, None, |view| view.heartbeat(it, now));
        let answers = beats.iter().map(beat).collect();
        outside.views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }

    async fn try_report(&self, reports: &[Reported], now: Timestamp) -> Done<Vec<HandedEnd>> {
        let conn = self.clients.begin().await?;
        let runs: Vec<Uuid> = reports.iter().map(|it| it.run.0).collect();
        let mut outside = Outside::load_to_end(&conn, &runs, now).await?;
        let report = |it: &Reported| outside.decide(it.run, None, |view| view.report(it, now));
        let answers = reports.iter().map(report).collect();
        outside.views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }

    async fn try_lapse(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Done<Vec<HandedEnd>> {
        let conn = self.pool.begin().await?;
        let presence = leases.presence;
        self.hold(&conn, presence)
            .await?
            .ok_or(StoreError::Fenced)?;
        let shards = lapses.iter().map(|it| Shard::of(it.job)).collect();
        let held = held(&conn, leases, &shards).await?;
        let runs: Vec<Uuid> = lapses.iter().map(|it| it.run.0).collect();
        let mut outside = Outside::load_to_end(&conn, &runs, now).await?;
        let lapse = |it: &Lapse| {
            if held.contains(&Shard::of(it.job)) {
                outside.decide(it.run, Some(it.job), |view| view.lapse(it, now))
            } else {
                HandedEnd::Stale
            }
        };
        let answers = lapses.iter().map(lapse).collect();
        outside.views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }

    async fn try_append_log(&self, appends: &[LogAppend]) -> Done<Vec<Appended>> {
        let conn = self.clients.begin().await?;
        let runs: Vec<Uuid> = appends.iter().map(|it| it.run.0).collect();
        let mut outside = Outside::load(&conn, &runs).await?;
        let mut logs = get_logs(&conn, &runs).await?;
        let mut answers = Vec::with_capacity(appends.len());
        let (mut names, mut written) = (Vec::new(), BTreeMap::new());
        for it in appends {
            let answer = outside.decide(it.run, None, |view| view.may_append(it.run, it.attempt));
            if matches!(answer, Beaten::Done { .. }) {
                let mut log = logs.remove(&it.run).unwrap_or_default();
                log.append(&it.bytes);
                names.push(it.run.0);
                written.insert(it.run, log);
            }
            answers.push(answer);
        }
        let column = |part: fn(&RunLog) -> &[u8]| {
            let logs = names.iter().filter_map(|run| written.get(&RunId(*run)));
            logs.map(part).collect::<Vec<&[u8]>>()
        };
        let (heads, tails) = (column(|log| &log.head), column(|log| &log.tail));
        let totals = names.iter().filter_map(|run| written.get(&RunId(*run)));
        let totals = totals.map(|log| i64::try_from(log.total).unwrap_or(i64::MAX));
        let totals: Vec<i64> = totals.collect();
        let sql = include_str!("sql/put_logs.sql");
        conn.execute(sql, &[&names, &heads, &tails, &totals])
            .await?;
        conn.commit().await?;
        Ok(answers)
    }

    async fn try_put_report_key(&self, key: &ReportKey) -> Done<()> {
        let conn = self.clients.begin().await?;
        let created_at = key.created_at.as_millis();
        let params: &Params<'_> = &[&key.id, &created_at, &key.master_key, &key.bytes];
        conn.execute(include_str!("sql/put_report_key.sql"), params)
            .await?;
        let most = limit(limits::REPORT_KEYS_MAX);
        conn.execute(include_str!("sql/prune_report_keys.sql"), &[&most])
            .await?;
        conn.commit().await
    }

    /// What is kept of runs that are over goes: logs with their history, the rest at once.
    pub(super) async fn sweep_outside(&self, keep: &Keep) -> Done<()> {
        let conn = self.clients.get().await?;
        let batch = limit(limits::RETENTION_BATCH_MAX);
        for sql in [
            include_str!("sql/retain_handed.sql"),
            include_str!("sql/retain_checkpoints.sql"),
        ] {
            conn.execute(sql, &[&batch]).await?;
        }
        let least = RunId::least_at(keep.now.minus(keep.history)).0;
        conn.execute(include_str!("sql/retain_logs.sql"), &[&batch, &least])
            .await?;
        Ok(())
    }
}

#[async_trait]
impl HandedStore for PgStore {
    async fn hand_over(
        &self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Result<Vec<HandedOver>, StoreError> {
        self.now();
        let done = if self.fast_paths.are_on {
            fast(self.hand_over_fast_path(by, items, now).await)?
        } else {
            Answers::new()
        };
        self.fast_paths.wrote("hand_over", done.len());
        let rest = left(items, &done);
        if rest.is_empty() {
            return Ok(done.into_values().collect());
        }
        let slow = || self.hand_over_slow_path(by, &rest, now);
        let slow = self.call(slow).await?;
        Ok(merged(items.len(), done, slow))
    }

    async fn heartbeat(
        &self,
        beats: &[Heartbeat],
        now: Timestamp,
    ) -> Result<Vec<Beaten>, StoreError> {
        self.now();
        // A checkpoint is written in the transaction of its heartbeat.
        let plain = self.fast_paths.are_on && beats.iter().all(|it| it.checkpoint.is_none());
        let done = if plain {
            fast(self.heartbeat_fast_path(beats, now).await)?
        } else {
            Answers::new()
        };
        self.fast_paths.wrote("heartbeat", done.len());
        let rest = left(beats, &done);
        if rest.is_empty() {
            return Ok(done.into_values().collect());
        }
        let slow = || self.heartbeat_slow_path(&rest, now);
        let slow = self.call(slow).await?;
        Ok(merged(beats.len(), done, slow))
    }

    async fn report(
        &self,
        reports: &[Reported],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        self.call(|| self.try_report(reports, now)).await
    }

    async fn lapsing(
        &self,
        shards: &ShardSet,
        lapsing: Lapsing,
    ) -> Result<Vec<Handed>, StoreError> {
        let now = lapsing.now.as_millis();
        let watched = model::time::millis(lapsing.watched);
        let (until, run) = lapsing.place();
        let run = Uuid::from_bytes(*run.as_bytes());
        let wanted: Option<Vec<i16>> =
            (!shards.is_all()).then(|| shards.iter().map(|shard| i16::from(shard.0)).collect());
        self.call(|| async {
            let conn = self.pool.get().await?;
            let count = limit(lapsing.limit);
            let params: &Params<'_> = &[&now, &wanted, &count, &watched, &until, &run];
            select(&conn, include_str!("sql/lapsing.sql"), params).await
        })
        .await
    }

    async fn lapse(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        self.call(|| self.try_lapse(leases, lapses, now)).await
    }

    async fn get_handed(&self, runs: &[RunId]) -> Result<Vec<Option<Handed>>, StoreError> {
        let names: Vec<Uuid> = runs.iter().map(|run| run.0).collect();
        let found = self.call(|| async {
            let conn = self.clients.get().await?;
            select(&conn, include_str!("sql/get_handed.sql"), &[&names]).await
        });
        let found = found.await?.into_iter().map(|it| (it.run, it));
        let mut found: BTreeMap<RunId, Handed> = found.collect();
        Ok(runs.iter().map(|run| found.remove(run)).collect())
    }

    async fn whose(&self, runs: &[RunId]) -> Result<Vec<Option<Whose>>, StoreError> {
        self.call(|| self.try_whose(runs)).await
    }

    async fn get_checkpoint(&self, run: RunId) -> Result<Option<Bytes>, StoreError> {
        self.call(|| get_checkpoint(&self.clients, run)).await
    }

    async fn is_current(&self, run: RunId, attempt: AttemptNo) -> Result<bool, StoreError> {
        self.call(|| is_current(&self.clients, run, attempt)).await
    }

    async fn append_log(&self, appends: &[LogAppend]) -> Result<Vec<Appended>, StoreError> {
        self.call(|| self.try_append_log(appends)).await
    }

    async fn get_log(&self, tenant: TenantId, run: RunId) -> Result<Option<RunLog>, StoreError> {
        self.call(|| async {
            let mut found = self.try_get_runs(&[(tenant, run)]).await?;
            let found = found.pop().transpose().map_err(StoreError::from)?;
            if found.flatten().is_none() {
                return Ok(None);
            }
            let conn = self.readers.get().await?;
            Ok(get_logs(&conn, &[run.0]).await?.remove(&run))
        })
        .await
    }

    async fn report_keys(&self) -> Result<Vec<ReportKey>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            get_keys(&conn).await
        })
        .await
    }

    async fn put_report_key(&self, key: &ReportKey) -> Result<(), StoreError> {
        self.call(|| self.try_put_report_key(key)).await
    }
}
