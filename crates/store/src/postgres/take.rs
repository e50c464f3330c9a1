//! Take: whoever has room gets runs that others left. Runs are locked before their jobs here, against the order of all
//! other steps; that is safe because nothing waits: what someone else has locked is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use model::shard::ShardSet;
use model::{Job, JobId, Lane, PresenceId, Run, RunId, Timestamp};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::presence::some_shards;
use super::rows::LiveRow;
use super::store::{PgStore, limit};
use crate::StoreError;
use crate::code::Code;
use crate::row::Payloads;

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub shards: &'a ShardSet,
    pub up_to: Timestamp,
    pub room: [usize; Lane::COUNT],
}

/// What a call brings, and the runs that nobody can ever work on.
#[derive(Default)]
struct Taken {
    runs: Vec<(Run, Arc<Job>)>,
    unreadable: Vec<(RunId, PresenceId)>,
}

/// Jobs of runs; those of neither kind are being changed by someone.
#[derive(Default)]
struct Jobs {
    read: BTreeMap<JobId, Arc<Job>>,
    /// Cannot be read, or are not there.
    unreadable: BTreeSet<JobId>,
}

impl PgStore {
    pub(super) async fn take_all(
        &self,
        presence: PresenceId,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let taken = self.call(|| self.try_take(presence, wanted)).await?;
        self.bury(taken.unreadable).await?;
        Ok(taken.runs)
    }

    async fn try_take(&self, presence: PresenceId, wanted: &Wanted<'_>) -> Done<Taken> {
        let conn = self.pool.begin().await?;
        let held = self.hold(&conn, presence).await?;
        let (no, _) = held.ok_or(StoreError::Fenced)?;
        let free = free(&conn, wanted).await?;
        let jobs = jobs(&conn, &free).await?;
        let known = |job: &JobId| jobs.read.contains_key(job) || jobs.unreadable.contains(job);
        let names = free.iter().filter(|(_, job)| known(job));
        let names: Vec<Uuid> = names.map(|(run, _)| run.0).collect();
        if names.is_empty() {
            return Ok(Taken::default());
        }
        let claim = conn.prepare(include_str!("sql/take_claim.sql")).await?;
        let inline = Payloads::Small.max();
        let params: &Params<'_> = &[&names, &no, &presence.0, &inline];
        let (rows, ()) =
            tokio::try_join!(biased; conn.query_prepared(&claim, params), conn.commit())?;
        let mut live = BTreeMap::new();
        for row in &rows {
            let row = LiveRow::read(row)?;
            live.insert(row.run.id, row);
        }
        let mut taken = Taken::default();
        for row in names.iter().filter_map(|id| live.get(&RunId(*id))) {
            match row.decode().ok().zip(jobs.read.get(&row.run.job)) {
                Some((run, job)) => taken.runs.push((run, Arc::clone(job))),
                None => taken.unreadable.push((row.run.id, presence)),
            }
        }
        Ok(taken)
    }
}

/// Runs that nobody holds, lane by lane, locked.
async fn free(conn: &Conn, wanted: &Wanted<'_>) -> Done<Vec<(RunId, JobId)>> {
    let take = conn.prepare(include_str!("sql/take.sql")).await?;
    let (up_to, shards) = (wanted.up_to.as_millis(), some_shards(wanted.shards));
    let lanes = Lane::ALL.into_iter().zip(wanted.room);
    let lanes = lanes.filter(|(_, room)| *room > 0);
    let lanes = lanes.map(async |(lane, room)| {
        let (lane, room) = (lane.code(), limit(room));
        conn.query_prepared(&take, &[&lane, &up_to, &room, &shards])
            .await
    });
    let mut free = Vec::new();
    for row in try_join_all(lanes).await?.iter().flatten() {
        free.push((RunId(row.try_get(0)?), JobId(row.try_get(1)?)));
    }
    Ok(free)
}

/// The jobs of these runs as they stand, as far as nobody is changing them; locked against changes.
async fn jobs(conn: &Conn, runs: &[(RunId, JobId)]) -> Done<Jobs> {
    let mut jobs = Jobs::default();
    let ids: BTreeSet<Uuid> = runs.iter().map(|(_, job)| job.0).collect();
    if ids.is_empty() {
        return Ok(jobs);
    }
    let names: Vec<Uuid> = ids.iter().copied().collect();
    let sql = include_str!("sql/take_jobs.sql");
    let rows = conn.rows(sql, &[&names, &Payloads::Small.max()]).await?;
    for (id, job) in read_jobs(conn, &rows).await? {
        match job {
            Ok(job) => {
                jobs.read.insert(id, Arc::new(job));
            }
            Err(bad) => {
                tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job");
                jobs.unreadable.insert(id);
            }
        }
    }
    if rows.len() < ids.len() {
        let absent = ids
            .iter()
            .filter(|id| !jobs.read.contains_key(&JobId(**id)));
        let absent: Vec<Uuid> = absent.copied().collect();
        let sql = include_str!("sql/job_exists.sql");
        let there = conn.rows(sql, &[&absent]).await?;
        let there = there.iter().map(|row| row.try_get(0));
        let there: BTreeSet<Uuid> = there.collect::<Result<_, _>>()?;
        let gone = absent.into_iter().filter(|id| !there.contains(id));
        jobs.unreadable.extend(gone.map(JobId));
    }
    Ok(jobs)
}
