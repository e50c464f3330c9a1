//! Claim: runs get a holder; and the runs that are asked for by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::view::Needs;
use model::{Job, JobId, PresenceId, RunId, Shard, Timestamp, limits};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::Done;
use super::fire::{held, live_named};
use super::pool::Conn;
use super::rows::LiveRow;
use super::store::PgStore;
use super::views::{Lock, Views};
use crate::row::Payloads;
use crate::{Claimed, Leases, StartRun, Started, StoreError};

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
        let Some((no, _)) = self.hold(&conn, leases.presence).await? else {
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
        let numbers: Vec<i16> = ours.iter().map(|shard| i16::from(shard.0)).collect();
        let ahead = model::time::millis(limits::RETRY_AFTER_MAX);
        conn.execute(
            include_str!("sql/claim.sql"),
            &[&names, &no, &numbers, &self.now(), &ahead],
        )
        .await?;
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
                    let job = jobs.get(&row.run.job).cloned();
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
        views.read_resting(&conn).await?;
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
async fn share_jobs(conn: &Conn, live: &[LiveRow]) -> Done<BTreeMap<JobId, Arc<Job>>> {
    let ids: BTreeSet<Uuid> = live.iter().map(|row| row.run.job.0).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let mut jobs = BTreeMap::new();
    let rows = conn
        .rows(
            include_str!("sql/share_jobs.sql"),
            &[&ids, &Payloads::Small.max()],
        )
        .await?;
    for (id, job) in read_jobs(conn, &rows).await? {
        match job {
            Ok(job) => {
                jobs.insert(id, Arc::new(job));
            }
            Err(bad) => tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job"),
        }
    }
    Ok(jobs)
}
