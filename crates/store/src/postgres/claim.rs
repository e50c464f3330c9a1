//! Claim: runs get a holder, by their names or, whoever has room, those that others left. In `claim_due` runs are locked before
//! their jobs, against the order of all other steps; that is safe because nothing waits: what someone else has locked is
//! left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use model::shard::ShardSet;
use model::view::{Grant, Needs, claim};
use model::{Job, JobId, Lane, PresenceId, Run, RunId, Shard, Timestamp, limits};
use uuid::Uuid;

use super::calendars::{JobsById, jobs_by_id};
use super::fault::{Done, Fault};
use super::fire::{held, live_named};
use super::pool::{Conn, Params};
use super::presence::some_shards;
use super::put::{ClaimColumns, Param};
use super::rows::LiveRow;
use super::store::{PgStore, limit};
use super::views::{Lock, Views};
use crate::audit::Change;
use crate::code::Code;
use crate::row::Payloads;
use crate::{Claimed, DueRoom, Leases, StartRun, Started, StoreError};

/// What a call of claim brings, and the runs that nobody can ever work on.
struct Claims {
    answers: Vec<Claimed>,
    unreadable: Vec<RunId>,
}

impl PgStore {
    pub(super) async fn claim_all(
        &self,
        leases: &Leases,
        runs: &[RunId],
    ) -> Result<Vec<Claimed>, StoreError> {
        let claims = self.call(|| self.try_claim(leases, runs)).await?;
        let holder = leases.presence;
        let unreadable = claims.unreadable.into_iter().map(|run| (run, holder));
        self.bury(unreadable.collect()).await?;
        Ok(claims.answers)
    }

    async fn try_claim(&self, leases: &Leases, runs: &[RunId]) -> Done<Claims> {
        let conn = self.pool.begin().await?;
        let mut claims = Claims {
            answers: Vec::with_capacity(runs.len()),
            unreadable: Vec::new(),
        };
        let Some((no, now)) = self.hold(&conn, leases.presence).await? else {
            claims
                .answers
                .extend(runs.iter().map(|_| Claimed::LeaseLost));
            return Ok(claims);
        };
        let names: Vec<Uuid> = runs.iter().map(|run| run.0).collect();
        let live = live_named(&conn, &names, Payloads::Small).await?;
        // One that is inserted from here on is not claimed: of its shard and its job nothing is known.
        let names: Vec<Uuid> = live.iter().map(|row| row.run.id.0).collect();
        let shards: BTreeSet<Shard> = live.iter().map(|row| row.run.shard()).collect();
        let ours = held(&conn, leases, &shards).await?;
        // Jobs before runs, as everywhere; they stay as they are until the claim is written.
        let jobs = share_jobs(&conn, &live).await?;
        if self.fast_paths.are_on {
            let numbers: Vec<i16> = ours.iter().map(|shard| i16::from(shard.0)).collect();
            let ahead = model::time::millis(limits::RETRY_AFTER_MAX);
            let params: &Params<'_> = &[&names, &no, &numbers, &self.now(), &ahead];
            let claimed = conn.execute(include_str!("sql/claim.sql"), params).await?;
            let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
            self.fast_paths.wrote("claim", claimed);
        } else {
            let held = |shard| ours.contains(&shard);
            let by = (leases.presence, no);
            claim_slow_path(&conn, by, &names, held, &jobs, now).await?;
        }
        let live = live_named(&conn, &names, Payloads::Small).await?;
        conn.commit().await?;
        let live: BTreeMap<RunId, LiveRow> =
            live.into_iter().map(|row| (row.run.id, row)).collect();
        for id in runs {
            let Some(row) = live.get(id) else {
                claims.answers.push(Claimed::Stale);
                continue;
            };
            let answer = match row.run.claim {
                Some(holder) if holder == leases.presence => {
                    let job = jobs.get(&row.run.job).cloned().flatten();
                    match row.decode().ok().zip(job) {
                        Some((run, job)) => Claimed::Ours(Box::new(run), job),
                        None => {
                            claims.unreadable.push(*id);
                            Claimed::Stale
                        }
                    }
                }
                _ if !ours.contains(&row.run.shard()) => Claimed::LeaseLost,
                None | Some(_) => Claimed::Stale,
            };
            claims.answers.push(answer);
        }
        Ok(claims)
    }

    /// Runs that cannot be read, or whose job cannot, end here: nobody could ever work on them.
    pub(super) async fn bury(&self, runs: Vec<(RunId, PresenceId)>) -> Result<(), StoreError> {
        for (run, holder) in runs {
            self.call(|| self.try_bury(run, holder)).await?;
        }
        Ok(())
    }

    async fn try_bury(&self, id: RunId, holder: PresenceId) -> Done<()> {
        let conn = self.pool.begin().await?;
        let live = live_named(&conn, &[id.0], Payloads::Small).await?;
        let Some(job) = live.first().map(|row| row.run.job) else {
            return Ok(());
        };
        let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
        views.read_concerned(&conn).await?;
        if views.run(job, id).and_then(|run| run.claim) != Some(holder) {
            return Ok(());
        }
        let now = conn
            .row(include_str!("sql/now.sql"), &[&self.now()])
            .await?;
        let now: i64 = now.map_or(Ok(0), |row| row.try_get(0))?;
        views.view(job).bury(id, Timestamp::from_millis(now));
        views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(())
    }

    pub(super) async fn try_start_run(&self, start: &StartRun) -> Done<Started> {
        let job = start.run.job;
        let conn = self.clients.begin().await?;
        let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
        views.read_jobs(&conn, &[job.0], Payloads::Small).await?;
        views.job(job)?;
        let needs = Needs {
            named: Some(start.run.id),
            ..Needs::default()
        };
        views.read_history(&conn, &[(job, needs)]).await?;
        let started = views.view(job).start(start);
        views.flush(self, &conn).await?;
        if matches!(started, Started::Ready | Started::Waiting) {
            self.audit(&conn, &[Change::run_started(&start.run)])
                .await?;
        }
        conn.commit().await?;
        Ok(started)
    }

    pub(super) async fn try_mark_running(
        &self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Done<()> {
        let conn = self.pool.begin().await?;
        let (no, _) = self
            .hold(&conn, presence)
            .await?
            .ok_or(StoreError::Fenced)?;
        // In the order of ids, as others lock them.
        let sorted: BTreeMap<RunId, Timestamp> = runs.iter().copied().collect();
        let (ids, moments): (Vec<Uuid>, Vec<i64>) =
            sorted.iter().map(|(id, at)| (id.0, at.as_millis())).unzip();
        conn.execute(include_str!("sql/mark_running.sql"), &[&ids, &moments, &no])
            .await?;
        conn.commit().await?;
        Ok(())
    }
}

/// The jobs of runs as they stand, locked against changes.
async fn share_jobs(conn: &Conn, live: &[LiveRow]) -> Done<JobsById> {
    let ids: BTreeSet<Uuid> = live.iter().map(|row| row.run.job.0).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let sql = include_str!("sql/share_jobs.sql");
    let rows = conn.rows(sql, &[&ids, &Payloads::Small.max()]).await?;
    jobs_by_id(conn, &rows).await
}

/// What is to be claimed.
pub(super) struct Wanted<'a> {
    pub shards: &'a ShardSet,
    pub due: DueRoom,
}

/// What a call brings, and the runs that nobody can ever work on.
#[derive(Default)]
struct ClaimedDue {
    runs: Vec<(Run, Arc<Job>)>,
    unreadable: Vec<(RunId, PresenceId)>,
}

impl PgStore {
    pub(super) async fn claim_all_due(
        &self,
        presence: PresenceId,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let claimed_due = self.call(|| self.try_claim_due(presence, wanted)).await?;
        self.bury(claimed_due.unreadable).await?;
        Ok(claimed_due.runs)
    }

    async fn try_claim_due(&self, presence: PresenceId, wanted: &Wanted<'_>) -> Done<ClaimedDue> {
        let conn = self.pool.begin().await?;
        let held = self.hold(&conn, presence).await?;
        let (no, now) = held.ok_or(StoreError::Fenced)?;
        let free = free(&conn, wanted).await?;
        let jobs = jobs(&conn, &free).await?;
        let names = free.iter().filter(|(_, job)| jobs.contains_key(job));
        let names: Vec<Uuid> = names.map(|(run, _)| run.0).collect();
        if names.is_empty() {
            return Ok(ClaimedDue::default());
        }
        let by = (presence, no);
        let live = if self.fast_paths.are_on {
            let live = claim_due_fast_path(&conn, by, &names).await?;
            self.fast_paths.wrote("claim_due", live.len());
            live
        } else {
            claim_slow_path(&conn, by, &names, |_| true, &jobs, now).await?;
            let live = live_named(&conn, &names, Payloads::Small).await?;
            conn.commit().await?;
            live
        };
        let live: BTreeMap<RunId, LiveRow> =
            live.into_iter().map(|row| (row.run.id, row)).collect();
        let mut claimed_due = ClaimedDue::default();
        for row in names.iter().filter_map(|id| live.get(&RunId(*id))) {
            let job = jobs.get(&row.run.job).cloned().flatten();
            match row.decode().ok().zip(job) {
                Some(claimed) => claimed_due.runs.push(claimed),
                None => claimed_due.unreadable.push((row.run.id, presence)),
            }
        }
        Ok(claimed_due)
    }
}

/// Runs that are locked, and whose jobs are, get their holder.
async fn claim_due_fast_path(
    conn: &Conn,
    (presence, no): (PresenceId, i32),
    names: &[Uuid],
) -> Done<Vec<LiveRow>> {
    let sql = include_str!("sql/claim_due_claim.sql");
    let claim = conn.prepare(sql).await?;
    let inline = Payloads::Small.max();
    let params: &Params<'_> = &[&names, &no, &presence.0, &inline];
    let (rows, ()) = tokio::try_join!(biased; conn.query_prepared(&claim, params), conn.commit())?;
    rows.iter().map(LiveRow::read).collect()
}

/// The slow path of both: runs get their holder as the core decides.
async fn claim_slow_path(
    conn: &Conn,
    (presence, no): (PresenceId, i32),
    names: &[Uuid],
    held: impl Fn(Shard) -> bool,
    jobs: &JobsById,
    now: Timestamp,
) -> Done<()> {
    let mut columns = ClaimColumns::default();
    for mut row in live_named(conn, names, Payloads::Small).await? {
        let run = &mut row.run;
        let job = jobs.get(&run.job).cloned().flatten();
        // One whose job cannot be read is buried by whoever claims it.
        let version = job.map_or(run.version, |job| job.version);
        if claim(run, presence, held(run.shard()), version, now) == Grant::New {
            columns.push(run);
        }
    }
    let mut params: Vec<Param<'_>> = vec![&no];
    params.extend(columns.params());
    let sql = include_str!("sql/put_claims.sql");
    let written = conn.execute(sql, &params).await?;
    if written != columns.id.len() as u64 {
        return Err(Fault::Overtaken);
    }
    Ok(())
}

/// Runs that nobody holds, lane by lane, locked.
async fn free(conn: &Conn, wanted: &Wanted<'_>) -> Done<Vec<(RunId, JobId)>> {
    let select = conn.prepare(include_str!("sql/claim_due.sql")).await?;
    let (due, shards) = (wanted.due, some_shards(wanted.shards));
    let (from, up_to) = (due.on_time_from.as_millis(), due.up_to.as_millis());
    let rooms = due.room.into_iter().zip(due.backlog);
    let lanes = Lane::ALL.into_iter().zip(rooms);
    let lanes = lanes.filter(|(_, (room, _))| *room > 0);
    let lanes = lanes.map(async |(lane, (room, backlog))| {
        let (lane, room, backlog) = (lane.code(), limit(room), limit(backlog));
        let params: &Params<'_> = &[&lane, &up_to, &room, &shards, &from, &backlog];
        conn.query_prepared(&select, params).await
    });
    let mut free = Vec::new();
    for row in try_join_all(lanes).await?.iter().flatten() {
        free.push((RunId(row.try_get(0)?), JobId(row.try_get(1)?)));
    }
    Ok(free)
}

/// The jobs of these runs as they stand, locked against changes; none for one that cannot be read or is not there. One
/// that someone is changing is left out.
async fn jobs(conn: &Conn, runs: &[(RunId, JobId)]) -> Done<JobsById> {
    let ids: BTreeSet<Uuid> = runs.iter().map(|(_, job)| job.0).collect();
    if ids.is_empty() {
        return Ok(JobsById::new());
    }
    let mut ids: Vec<Uuid> = ids.into_iter().collect();
    let sql = include_str!("sql/claim_due_jobs.sql");
    let rows = conn.rows(sql, &[&ids, &Payloads::Small.max()]).await?;
    let mut jobs = jobs_by_id(conn, &rows).await?;
    ids.retain(|id| !jobs.contains_key(&JobId(*id)));
    if !ids.is_empty() {
        let sql = include_str!("sql/job_exists.sql");
        let there = conn.rows(sql, &[&ids]).await?;
        let there = there.iter().map(|row| row.try_get(0));
        let there: BTreeSet<Uuid> = there.collect::<Result<_, _>>()?;
        let gone = ids.into_iter().filter(|id| !there.contains(id));
        jobs.extend(gone.map(|id| (JobId(id), None)));
    }
    Ok(jobs)
}
