//! Handed over: attempts whose work is with the outside. A heartbeat of one that is handed over already is one statement;
//! all else is decided on a view.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::view::{HandedChange, View};
use model::{
    AttemptNo, Handed, JobId, PresenceId, Progress, RunId, RunLog, Shard, TenantId, Timestamp,
    limits,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::db::Db;
use super::fault::Done;
use super::history::{ended_run, get_runs, live_row};
use super::rows::{maybe_bytes, maybe_moment, moment};
use super::store::SqliteStore;
use super::writer::By;
use crate::row::Payloads;
use crate::{
    Appended, Beaten, HandOver, HandedEnd, HandedOver, HandedStore, Heartbeat, Keep, Lapse,
    Lapsing, Leases, LogAppend, ReportKey, Reported, StoreError, Whose,
};

fn span(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    let millis: i64 = row.get(column)?;
    Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

/// Columns as `get_handed.sql` has them.
fn read(row: &Row<'_>) -> rusqlite::Result<Handed> {
    let progress: Option<String> = row.get(10)?;
    Ok(Handed {
        run: RunId::from_bytes(row.get(0)?),
        job: JobId::from_bytes(row.get(1)?),
        attempt: AttemptNo(row.get(2)?),
        node: row.get::<_, Option<String>>(3)?.map(Arc::from),
        dispatched_at: moment(row, 4)?,
        within: span(row, 5)?,
        timeout_at: moment(row, 6)?,
        until: maybe_moment(row, 7)?,
        cancelled: row.get(8)?,
        beaten_at: maybe_moment(row, 9)?,
        progress: progress.and_then(|column| Progress::from_column(&column)),
    })
}

fn get(conn: &Connection, run: RunId) -> Done<Option<Handed>> {
    let mut select = conn.prepare_cached(include_str!("sql/get_handed.sql"))?;
    Ok(select.query_row([run.as_bytes()], read).optional()?)
}

fn get_log(conn: &Connection, run: RunId) -> Done<Option<RunLog>> {
    let mut select = conn.prepare_cached(include_str!("sql/get_log.sql"))?;
    let log = select.query_row([run.as_bytes()], |row| {
        Ok(RunLog {
            head: row.get(0)?,
            tail: row.get(1)?,
            total: row.get::<_, i64>(2)?.unsigned_abs(),
        })
    });
    Ok(log.optional()?)
}

fn lapsing(conn: &Connection, shards: &ShardSet, lapsing: Lapsing) -> Done<Vec<Handed>> {
    let mut select = conn.prepare_cached(include_str!("sql/lapsing.sql"))?;
    let watched = model::time::millis(lapsing.watched);
    let (until, run) = lapsing.place();
    let params = params![lapsing.now.as_millis(), watched, until, run.as_bytes()];
    let rows = select.query_map(params, read)?;
    let mut found = Vec::new();
    for handed in rows {
        let handed = handed?;
        if found.len() == lapsing.limit {
            break;
        }
        if shards.is_all() || shards.contains(Shard::of(handed.job)) {
            found.push(handed);
        }
    }
    Ok(found)
}

fn keys(conn: &Connection) -> Done<Vec<ReportKey>> {
    let mut select = conn.prepare_cached(include_str!("sql/report_keys.sql"))?;
    let rows = select.query_map([], |row| {
        Ok(ReportKey {
            id: row.get(0)?,
            created_at: moment(row, 1)?,
            master_key: row.get(2)?,
            bytes: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Db {
    /// Decides about a run that the outside says something of.
    fn decide<T>(&mut self, run: RunId, decide: impl FnOnce(&mut View) -> T) -> Done<T> {
        let live = live_row(&self.conn, run, Payloads::Small)?;
        let Some(job) = live.map(|row| row.run.job) else {
            let mut view = View::default();
            view.history.outside = ended_run(&self.conn, &self.partitions, run)?.map(Box::new);
            view.handed
                .extend(get(&self.conn, run)?.map(|it| (run, it)));
            let answer = decide(&mut view);
            self.change_handed(view.effects.handed)?;
            return Ok(answer);
        };
        let mut view = self.view(job)?;
        view.handed
            .extend(get(&self.conn, run)?.map(|it| (run, it)));
        // Most jobs need nothing of it.
        let needs = view.needs_to_pause(self.shared.clock.now());
        view.history = self.read_history(job, needs)?;
        let answer = decide(&mut view);
        self.apply(job, view.effects)?;
        Ok(answer)
    }

    /// Writes what is decided about handed-over attempts.
    pub(super) fn change_handed(&self, changes: BTreeMap<RunId, HandedChange>) -> Done<()> {
        for (run, change) in changes {
            match change {
                HandedChange::Put(handed, checkpoint) => {
                    self.put_handed(&handed)?;
                    if let Some(checkpoint) = checkpoint {
                        self.put_checkpoint(run, &checkpoint)?;
                    }
                }
                HandedChange::Cancel(now) => {
                    if let Some(mut handed) = get(&self.conn, run)? {
                        handed.cancel(now);
                        self.put_handed(&handed)?;
                    }
                }
                HandedChange::Rest => self.about(include_str!("sql/rest_handed.sql"), run)?,
                HandedChange::Gone => {
                    self.about(include_str!("sql/drop_handed.sql"), run)?;
                    self.about(include_str!("sql/drop_checkpoint.sql"), run)?;
                }
            }
        }
        Ok(())
    }

    fn about(&self, sql: &str, run: RunId) -> Done<()> {
        self.conn.prepare_cached(sql)?.execute([run.as_bytes()])?;
        Ok(())
    }

    fn put_handed(&self, handed: &Handed) -> Done<()> {
        let sql = include_str!("sql/put_handed.sql");
        self.conn.prepare_cached(sql)?.execute(params![
            handed.run.as_bytes(),
            handed.job.as_bytes(),
            handed.attempt.0,
            handed.node.as_deref(),
            handed.dispatched_at.as_millis(),
            model::time::millis(handed.within),
            handed.timeout_at.as_millis(),
            handed.until.map(Timestamp::as_millis),
            handed.cancelled,
            handed.beaten_at.map(Timestamp::as_millis),
            handed.progress.as_ref().map(Progress::to_column),
        ])?;
        Ok(())
    }

    fn put_checkpoint(&self, run: RunId, bytes: &Bytes) -> Done<()> {
        let sql = include_str!("sql/put_checkpoint.sql");
        let row = params![run.as_bytes(), &bytes[..]];
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    fn hand_over(
        &mut self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Done<Vec<HandedOver>> {
        self.shared.presences().living(by)?;
        let items = items.iter();
        items
            .map(|it| self.decide(it.run, |view| view.hand_over(it, by, now)))
            .collect()
    }

    fn heartbeat(&mut self, beats: &[Heartbeat], now: Timestamp) -> Done<Vec<Beaten>> {
        let beat = |it: &Heartbeat| match self.beat_fast_path(it, now)? {
            Some(beaten) => Ok(beaten),
            None => self.decide(it.run, |view| view.heartbeat(it, now)),
        };
        beats.iter().map(beat).collect()
    }

    /// Takes the views in which the attempt is handed over already.
    fn beat_fast_path(&self, beat: &Heartbeat, now: Timestamp) -> Done<Option<Beaten>> {
        if !self.fast_paths.are_on {
            return Ok(None);
        }
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/heartbeat.sql"))?;
        let row = params![
            beat.run.as_bytes(),
            beat.attempt.0,
            now.as_millis(),
            beat.progress.as_ref().map(Progress::to_column),
        ];
        let beaten = update.query_row(row, |row| {
            Ok(Beaten::Done {
                cancel: row.get(0)?,
                until: moment(row, 1)?,
            })
        });
        let beaten = beaten.optional()?;
        if let (Some(_), Some(checkpoint)) = (&beaten, &beat.checkpoint) {
            self.put_checkpoint(beat.run, checkpoint)?;
        }
        self.fast_paths
            .wrote("heartbeat", usize::from(beaten.is_some()));
        Ok(beaten)
    }

    fn lapse(&mut self, leases: &Leases, lapses: &[Lapse], now: Timestamp) -> Done<Vec<HandedEnd>> {
        let no = self.shared.presences().living(leases.presence)?;
        let lapse = |it: &Lapse| {
            if self.leases.holds(no, leases, Shard::of(it.job)) {
                self.decide(it.run, |view| view.lapse(it, now))
            } else {
                Ok(HandedEnd::Stale)
            }
        };
        lapses.iter().map(lapse).collect()
    }

    fn append_log(&mut self, append: &LogAppend) -> Done<Appended> {
        let answer = self.decide(append.run, |view| {
            view.may_append(append.run, append.attempt)
        })?;
        if matches!(answer, Beaten::Done { .. }) {
            let mut log = get_log(&self.conn, append.run)?.unwrap_or_default();
            log.append(&append.bytes);
            let total = i64::try_from(log.total).unwrap_or(i64::MAX);
            let row = params![append.run.as_bytes(), log.head, log.tail, total];
            let sql = include_str!("sql/put_log.sql");
            self.conn.prepare_cached(sql)?.execute(row)?;
        }
        Ok(answer)
    }

    fn put_report_key(&self, key: &ReportKey) -> Done<()> {
        let sql = include_str!("sql/put_report_key.sql");
        let row = params![
            key.id,
            key.created_at.as_millis(),
            key.master_key,
            key.bytes
        ];
        self.conn.prepare_cached(sql)?.execute(row)?;
        let sql = include_str!("sql/prune_report_keys.sql");
        let most = limits::REPORT_KEYS_MAX as i64;
        self.conn.prepare_cached(sql)?.execute([most])?;
        Ok(())
    }

    /// What is kept of runs that are over goes: logs with their history, the rest at once.
    pub(super) fn sweep_outside(&self, keep: &Keep) -> Done<()> {
        let batch = limits::RETENTION_BATCH_MAX as i64;
        for sql in [
            include_str!("sql/retain_handed.sql"),
            include_str!("sql/retain_checkpoints.sql"),
        ] {
            self.conn.prepare_cached(sql)?.execute([batch])?;
        }
        let least = RunId::least_at(keep.now.minus(keep.history));
        let sql = include_str!("sql/retain_logs.sql");
        let row = params![batch, least.as_bytes()];
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

#[async_trait]
impl HandedStore for SqliteStore {
    async fn hand_over(
        &self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Result<Vec<HandedOver>, StoreError> {
        let items = items.to_vec();
        let rows = items.len();
        let call = move |db: &mut Db| db.hand_over(by, &items, now);
        self.write(By::Engine, rows, call).await
    }

    async fn heartbeat(
        &self,
        beats: &[Heartbeat],
        now: Timestamp,
    ) -> Result<Vec<Beaten>, StoreError> {
        let beats = beats.to_vec();
        let rows = beats.len();
        let call = move |db: &mut Db| db.heartbeat(&beats, now);
        self.write(By::Client, rows, call).await
    }

    async fn report(
        &self,
        reports: &[Reported],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let reports = reports.to_vec();
        let rows = reports.len();
        let call = move |db: &mut Db| {
            let report = |it: &Reported| db.decide(it.run, |view| view.report(it, now));
            reports.iter().map(report).collect()
        };
        self.write(By::Client, rows, call).await
    }

    async fn lapsing(
        &self,
        shards: &ShardSet,
        lapsing: Lapsing,
    ) -> Result<Vec<Handed>, StoreError> {
        let shards = *shards;
        let read = move |conn: &_| self::lapsing(conn, &shards, lapsing);
        self.read(By::Engine, read).await
    }

    async fn lapse(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let (leases, lapses) = (leases.clone(), lapses.to_vec());
        let rows = lapses.len();
        let call = move |db: &mut Db| db.lapse(&leases, &lapses, now);
        self.write(By::Engine, rows, call).await
    }

    async fn get_handed(&self, runs: &[RunId]) -> Result<Vec<Option<Handed>>, StoreError> {
        let runs = runs.to_vec();
        let read = move |conn: &_| runs.iter().map(|run| get(conn, *run)).collect();
        self.read(By::Client, read).await
    }

    async fn whose(&self, runs: &[RunId]) -> Result<Vec<Option<Whose>>, StoreError> {
        let runs = runs.to_vec();
        let read = move |conn: &Connection| {
            let live = |run: &RunId| live_row(conn, *run, Payloads::Small);
            let whose = |run| Ok(live(run)?.map(|row| Whose::of(&row.run)));
            runs.iter().map(whose).collect()
        };
        self.read(By::Client, read).await
    }

    async fn get_checkpoint(&self, run: RunId) -> Result<Option<Bytes>, StoreError> {
        let read = move |conn: &Connection| {
            let mut select = conn.prepare_cached(include_str!("sql/get_checkpoint.sql"))?;
            let bytes = select.query_row([run.as_bytes()], |row| maybe_bytes(row, 0));
            Ok(bytes.optional()?.flatten())
        };
        self.read(By::Client, read).await
    }

    async fn is_current(&self, run: RunId, attempt: AttemptNo) -> Result<bool, StoreError> {
        let read = move |conn: &Connection| {
            let mut select = conn.prepare_cached(include_str!("sql/is_current.sql"))?;
            Ok(select.exists(params![run.as_bytes(), attempt.0])?)
        };
        self.read(By::Client, read).await
    }

    async fn append_log(&self, appends: &[LogAppend]) -> Result<Vec<Appended>, StoreError> {
        let appends = appends.to_vec();
        let rows = appends.len();
        let call = move |db: &mut Db| appends.iter().map(|it| db.append_log(it)).collect();
        self.write(By::Client, rows, call).await
    }

    async fn get_log(&self, tenant: TenantId, run: RunId) -> Result<Option<RunLog>, StoreError> {
        let read = move |conn: &Connection| {
            let mut found = get_runs(conn, &[(tenant, run)])?;
            match found.pop().transpose().map_err(StoreError::from)?.flatten() {
                Some(_) => get_log(conn, run),
                None => Ok(None),
            }
        };
        self.read(By::Client, read).await
    }

    async fn report_keys(&self) -> Result<Vec<ReportKey>, StoreError> {
        self.read(By::Client, keys).await
    }

    async fn put_report_key(&self, key: &ReportKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.write(By::Client, 1, move |db| db.put_report_key(&key))
            .await
    }
}
