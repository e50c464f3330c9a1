//! Plan: what is due, what nobody holds, and what cannot be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{Job, JobId, JobState, PresenceId, RunId, Shard, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::calendars::Lookup;
use super::db::Shared;
use super::fault::Done;
use super::history::live_run;
use super::rows::{Tenant, Word, read_job};
use crate::row::{self, JobRow, Payloads};
use crate::{
    DueCursor, DueJobs, DueOf, DueRun, HeldClaim, JobCounts, Orphan, PayloadOf, StoreError,
};

pub(super) fn due_jobs(
    conn: &Connection,
    shards: &ShardSet,
    up_to: Timestamp,
    after: Option<DueCursor>,
    limit: usize,
) -> Done<DueJobs> {
    let mut select = conn.prepare_cached(include_str!("sql/due_jobs.sql"))?;
    let last = after.and_then(|after| after.last);
    let later_than = after.and_then(|after| after.later_than);
    let (from, id) = match (last, later_than) {
        (Some((due_at, job)), _) => (due_at.as_millis(), *job.as_bytes()),
        (None, Some(later_than)) => (later_than.as_millis(), [u8::MAX; 16]),
        (None, None) => (-1, [0; 16]),
    };
    let payloads = Payloads::Small;
    let mut rows = select.query(params![from, id, up_to.as_millis(), payloads.max()])?;
    let mut due = DueJobs::default();
    let lookup = Lookup::new(conn, payloads);
    let mut last = None;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let due_at = Timestamp::from_millis(row.get(22)?);
        let job = JobId::from_bytes(row.get(0)?);
        if !shards.is_all() && !shards.contains(Shard::of(job)) {
            continue;
        }
        if count == limit {
            due.next = last;
            break;
        }
        count += 1;
        last = Some(DueCursor::behind(after, due_at, job));
        let is_missing: bool = row.get(23)?;
        let row = (!is_missing).then(|| read_job(row)).transpose()?;
        match planned(&lookup, row)? {
            Ok(job) => due.jobs.push(Arc::new(job)),
            Err(why) => due.unreadable.push((job, why)),
        }
    }
    Ok(due)
}

/// A job that is due, or why it cannot be planned.
fn planned(lookup: &Lookup<'_>, row: Option<JobRow>) -> Done<Result<Job, String>> {
    let Some(row) = row else {
        return Ok(Err("its definition is missing".to_owned()));
    };
    Ok(row::planned(lookup.decode(row)?))
}

pub(super) fn due_runs(
    conn: &Connection,
    shards: &ShardSet,
    up_to: Timestamp,
    after: Option<(Timestamp, RunId)>,
    limit: usize,
) -> Done<Vec<DueRun>> {
    let mut select = conn.prepare_cached(include_str!("sql/due_runs.sql"))?;
    let (from, id) = match after {
        None => (-1, [0; 16]),
        Some((due_at, run)) => (due_at.as_millis(), *run.as_bytes()),
    };
    let mut rows = select.query(params![from, id, up_to.as_millis()])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        if due.len() == limit {
            break;
        }
        let run = due_run(row)?;
        if shards.is_all() || shards.contains(Shard::of(run.job)) {
            due.push(run);
        }
    }
    Ok(due)
}

/// Columns as `due_runs.sql` has them.
pub(super) fn due_run(row: &Row<'_>) -> rusqlite::Result<DueRun> {
    Ok(DueRun {
        run: RunId::from_bytes(row.get(1)?),
        job: JobId::from_bytes(row.get(2)?),
        tenant: row.get::<_, Tenant>(3)?.0,
        due_at: Timestamp::from_millis(row.get(0)?),
        state: row.get::<_, Word<_>>(4)?.0,
    })
}

pub(super) fn due_of(conn: &Connection, jobs: &BTreeSet<JobId>, up_to: Timestamp) -> Done<DueOf> {
    let mut is_due = conn.prepare_cached(include_str!("sql/due_of.sql"))?;
    let mut runs = conn.prepare_cached(include_str!("sql/due_of_runs.sql"))?;
    let lookup = Lookup::new(conn, Payloads::Small);
    let mut due = DueOf::default();
    for id in jobs {
        let by_then = params![id.as_bytes(), up_to.as_millis()];
        if is_due.exists(by_then)? {
            match planned(&lookup, lookup.row(*id)?)? {
                Ok(job) => due.jobs.push(Arc::new(job)),
                Err(why) => due.unreadable.push((*id, why)),
            }
        }
        for run in runs.query_map(by_then, due_run)? {
            due.runs.push(run?);
        }
    }
    Ok(due)
}

/// Payloads that were left where they are.
pub(super) fn payloads(conn: &Connection, of: &[PayloadOf]) -> Done<Vec<Option<Bytes>>> {
    let mut job = conn.prepare_cached(include_str!("sql/payload_of_job.sql"))?;
    let mut run = conn.prepare_cached(include_str!("sql/payload_of_run.sql"))?;
    let bytes = |row: &Row<'_>| row.get::<_, Option<Vec<u8>>>(0);
    let mut payloads = Vec::with_capacity(of.len());
    for of in of {
        let read = match of {
            PayloadOf::Job(id, version) => job.query_row(params![id.as_bytes(), version.0], bytes),
            PayloadOf::Run(id) => run.query_row([id.as_bytes()], bytes),
        };
        payloads.push(read.optional()?.flatten().map(Bytes::from));
    }
    Ok(payloads)
}

pub(super) fn claims(
    conn: &Connection,
    no: i64,
    after: Option<RunId>,
    limit: usize,
) -> Done<Vec<HeldClaim>> {
    let mut select = conn.prepare_cached(include_str!("sql/claims.sql"))?;
    let after = after.map_or(Vec::new(), |after| after.as_bytes().to_vec());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let held = select.query_map(params![no, after, limit], |row| {
        Ok(HeldClaim {
            run: RunId::from_bytes(row.get(0)?),
            attempt: model::AttemptNo(row.get(1)?),
            due_at: Timestamp::from_millis(row.get(2)?),
            mark: row.get::<_, Option<Word<_>>>(3)?.map(|word| word.0),
        })
    })?;
    Ok(held.collect::<rusqlite::Result<_>>()?)
}

/// What a look for orphans found; the unreadable ones can only be buried.
#[derive(Default)]
pub(super) struct Orphans {
    pub found: Vec<Orphan>,
    pub unreadable: Vec<(RunId, PresenceId)>,
}

/// Claims of ended presences. Once a look at the whole live table finds none of a presence, it is
/// never looked for again: nothing can be claimed by it any more.
pub(super) fn orphans(
    conn: &Connection,
    shared: &Shared,
    shards: &ShardSet,
    limit: usize,
) -> Done<Orphans> {
    let mut orphans = Orphans::default();
    let mut gone = ended_presences(conn, shared)?;
    if gone.is_empty() {
        return Ok(orphans);
    }
    let mut select = conn.prepare_cached(include_str!("sql/orphans.sql"))?;
    let mut rows = select.query([])?;
    let mut jobs: BTreeMap<JobId, Option<Arc<Job>>> = BTreeMap::new();
    let lookup = Lookup::new(conn, Payloads::Small);
    while let Some(row) = rows.next()? {
        if orphans.found.len() == limit {
            return Ok(orphans);
        }
        let Some(holder) = gone.get_mut(&row.get(2)?) else {
            continue;
        };
        holder.seen = true;
        let (id, job) = (
            RunId::from_bytes(row.get(0)?),
            JobId::from_bytes(row.get(1)?),
        );
        if !shards.is_all() && !shards.contains(Shard::of(job)) {
            continue;
        }
        let job = match jobs.get(&job) {
            Some(job) => job.clone(),
            None => jobs
                .entry(job)
                .or_insert(readable(lookup.job(job))?.map(Arc::new))
                .clone(),
        };
        match (job, readable(live_run(conn, id, Payloads::Small))?) {
            (Some(job), Some(run)) => {
                orphans.found.push(Orphan {
                    run,
                    job,
                    ended_at: holder.ended_at,
                    node: Arc::clone(&holder.node),
                });
            }
            (_, _) => orphans.unreadable.push((id, holder.id)),
        }
    }
    let clear = gone
        .iter()
        .filter(|(_, holder)| !holder.seen)
        .map(|(no, _)| *no);
    shared.presences().set_clear(clear);
    Ok(orphans)
}

/// What cannot be read is nothing here, and a line in the log.
fn readable<T>(found: Done<Option<T>>) -> Done<Option<T>> {
    match found {
        Err(super::fault::Fault::Store(StoreError::BadRow(bad))) => {
            tracing::warn!(what = bad.what, detail = bad.detail, "unreadable row");
            Ok(None)
        }
        found => found,
    }
}

struct Gone {
    id: PresenceId,
    ended_at: Timestamp,
    node: Arc<str>,
    /// Whether it still holds something.
    seen: bool,
}

/// As the snapshot has them: what memory knows may be newer than what this read can see.
fn ended_presences(conn: &Connection, shared: &Shared) -> Done<BTreeMap<i64, Gone>> {
    let mut select = conn.prepare_cached(include_str!("sql/ended_presences.sql"))?;
    let mut rows = select.query([])?;
    let mut gone = BTreeMap::new();
    let presences = shared.presences();
    while let Some(row) = rows.next()? {
        let no: i64 = row.get(0)?;
        if !presences.is_clear(no) {
            let id = PresenceId::from_bytes(row.get(1)?);
            let ended_at = Timestamp::from_millis(row.get(2)?);
            let node = Arc::from(row.get::<_, String>(3)?);
            gone.insert(
                no,
                Gone {
                    id,
                    ended_at,
                    node,
                    seen: false,
                },
            );
        }
    }
    Ok(gone)
}

pub(super) fn beat_marks(conn: &Connection, no: i64) -> Done<Vec<(RunId, model::Mark)>> {
    let mut select = conn.prepare_cached(include_str!("sql/beat.sql"))?;
    let marks = select.query_map([no], |row| {
        Ok((RunId::from_bytes(row.get(0)?), row.get::<_, Word<_>>(1)?.0))
    })?;
    Ok(marks.collect::<rusqlite::Result<_>>()?)
}

/// When the oldest slot or run was due that nobody holds.
pub(super) fn oldest_due(
    conn: &Connection,
    from: Timestamp,
    up_to: Timestamp,
) -> Done<Option<Timestamp>> {
    let mut select = conn.prepare_cached(include_str!("sql/oldest_due.sql"))?;
    let (slot, run): (Option<i64>, Option<i64>) = select
        .query_row([from.as_millis(), up_to.as_millis()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(slot
        .into_iter()
        .chain(run)
        .min()
        .map(Timestamp::from_millis))
}

/// The states of a page of jobs.
pub(super) fn count_jobs(conn: &Connection, after: Option<JobId>, limit: usize) -> Done<JobCounts> {
    let mut select = conn.prepare_cached(include_str!("sql/count_jobs.sql"))?;
    let after = after.map_or([0; 16], |after| *after.as_bytes());
    let page = select.query_map(params![after, limit as i64], |row| {
        let id = JobId::from_bytes(row.get(0)?);
        Ok((row.get::<_, Word<_>>(1)?.0, 1, id))
    })?;
    let page: Vec<(JobState, u64, JobId)> = page.collect::<rusqlite::Result<_>>()?;
    Ok(JobCounts::of(page, limit))
}
