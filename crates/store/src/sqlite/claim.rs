//! Claim: runs get a holder; and the runs that are asked for by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::shard::ShardSet;
use model::view::{Grant, Needs, claim};
use model::{Job, JobId, Lane, PresenceId, RunId, RunState, Shard, Timestamp, Version, limits};
use rusqlite::{OptionalExtension, params};

use super::calendars::Lookup;
use super::db::Db;
use super::fault::Done;
use super::history::live_row;
use super::jobs::load_job;
use super::rows::RunRow;
use crate::audit::Change;
use crate::code::{Code, Unreadable};
use crate::row::{JobRow, Payloads};
use crate::{Claimed, DueRoom, Leases, StartRun, Started};

/// A claim as the rows have it: reading the definitions is left to the caller's own thread.
pub(super) enum ClaimRow {
    Ours(Box<RunRow>),
    Stale,
    LeaseLost,
}

/// What a call of claim brings: each run's answer, and the jobs of those that are ours.
#[derive(Default)]
pub(super) struct ClaimRows {
    pub runs: Vec<ClaimRow>,
    pub jobs: Vec<JobFound>,
}

/// A job whose definition is left to the caller's own thread, unless it takes a connection to read it.
pub(super) enum JobFound {
    Row(Box<JobRow>),
    Read(Box<Result<Job, Unreadable>>),
}

impl JobFound {
    fn read(lookup: &Lookup<'_>, id: JobId) -> Done<Option<Self>> {
        Ok(match lookup.row(id)? {
            None => None,
            Some(row) if row.names_calendars => Some(Self::Read(Box::new(lookup.decode(row)?))),
            Some(row) => Some(Self::Row(Box::new(row))),
        })
    }

    fn decode(self) -> Result<Job, Unreadable> {
        match self {
            Self::Row(row) => row.decode(&|_| None),
            Self::Read(job) => *job,
        }
    }
}

impl ClaimRows {
    /// The answers, and the runs that nobody can ever work on.
    pub(super) fn decode(self) -> (Vec<Claimed>, Vec<RunId>) {
        let mut jobs: BTreeMap<JobId, Arc<Job>> = BTreeMap::new();
        for row in self.jobs {
            match row.decode() {
                Ok(job) => {
                    jobs.insert(job.id, Arc::new(job));
                }
                Err(bad) => tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job"),
            }
        }
        let mut unreadable = Vec::new();
        let answers = self.runs.into_iter().map(|row| match row {
            ClaimRow::Stale => Claimed::Stale,
            ClaimRow::LeaseLost => Claimed::LeaseLost,
            ClaimRow::Ours(row) => {
                let id = row.id();
                let run = row.decode().ok();
                match run.and_then(|run| jobs.get(&run.job).map(|job| (run, job))) {
                    Some((run, job)) => Claimed::Ours(Box::new(run), job.clone()),
                    None => {
                        unreadable.push(id);
                        Claimed::Stale
                    }
                }
            }
        });
        (answers.collect(), unreadable)
    }
}

impl Db {
    pub(super) fn claim(&mut self, leases: &Leases, runs: &[RunId]) -> Done<ClaimRows> {
        let mut found = ClaimRows {
            runs: Vec::with_capacity(runs.len()),
            jobs: Vec::new(),
        };
        let Ok(no) = self.shared.presences().living(leases.presence) else {
            found.runs.extend(runs.iter().map(|_| ClaimRow::LeaseLost));
            return Ok(found);
        };
        for id in runs {
            found.runs.push(self.claim_one(leases, no, *id)?);
        }
        self.read_jobs_of(found)
    }

    /// The same for whoever has room, of whatever nobody holds.
    pub(super) fn claim_due(
        &mut self,
        presence: PresenceId,
        shards: &ShardSet,
        due: DueRoom,
    ) -> Done<ClaimRows> {
        let no = self.shared.presences().living(presence)?;
        let mut found = ClaimRows::default();
        let rooms = due.room.into_iter().zip(due.backlog);
        for (lane, (room, backlog)) in Lane::ALL.into_iter().zip(rooms) {
            let (from, up_to) = (due.on_time_from.as_millis(), due.up_to.as_millis());
            let mut free = self.free(lane, shards, (from, up_to), room)?;
            let left = room.saturating_sub(free.len()).min(backlog);
            let before = (i64::MIN, up_to.min(from - 1));
            free.extend(self.free(lane, shards, before, left)?);
            for id in free {
                let row = live_row(&self.conn, id, Payloads::Small)?;
                let claimed = row.map(|row| self.claim_free(presence, no, row));
                found.runs.extend(claimed.transpose()?);
            }
        }
        self.read_jobs_of(found)
    }

    /// Runs of one lane that nobody holds, due from one moment up to another.
    fn free(
        &self,
        lane: Lane,
        shards: &ShardSet,
        (from, up_to): (i64, i64),
        room: usize,
    ) -> Done<Vec<RunId>> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/claim_due.sql"))?;
        let mut rows = select.query(params![from, up_to, lane.code()])?;
        let mut free = Vec::new();
        while free.len() < room {
            let Some(row) = rows.next()? else { break };
            if shards.contains(Shard::of(JobId::from_bytes(row.get(1)?))) {
                free.push(RunId::from_bytes(row.get(0)?));
            }
        }
        Ok(free)
    }

    /// The jobs of the runs that are ours.
    fn read_jobs_of(&self, mut found: ClaimRows) -> Done<ClaimRows> {
        let job = |row: &ClaimRow| match row {
            ClaimRow::Ours(run) => Some(run.run.job),
            ClaimRow::Stale | ClaimRow::LeaseLost => None,
        };
        let jobs: BTreeSet<JobId> = found.runs.iter().filter_map(job).collect();
        let lookup = Lookup::new(&self.conn, Payloads::Small);
        for id in jobs {
            found.jobs.extend(JobFound::read(&lookup, id)?);
        }
        Ok(found)
    }

    fn claim_one(&mut self, leases: &Leases, no: i64, id: RunId) -> Done<ClaimRow> {
        let Some(row) = live_row(&self.conn, id, Payloads::Small)? else {
            return Ok(ClaimRow::Stale);
        };
        let ours = row.run.claim == Some(leases.presence);
        if !ours && !self.leases.holds(no, leases, row.run.shard()) {
            return Ok(ClaimRow::LeaseLost);
        }
        match row.run.claim {
            None if row.run.wait.is_none() => self.claim_free(leases.presence, no, row),
            Some(holder) if holder == leases.presence => Ok(ClaimRow::Ours(Box::new(row))),
            None | Some(_) => Ok(ClaimRow::Stale),
        }
    }

    /// A run that nobody holds gets its holder.
    fn claim_free(&self, presence: PresenceId, no: i64, mut row: RunRow) -> Done<ClaimRow> {
        if !self.fast_paths.are_on {
            return self.claim_slow_path(presence, no, row);
        }
        let mut update = self.conn.prepare_cached(include_str!("sql/claim.sql"))?;
        let id = row.run.id;
        let now = self.shared.clock.now().as_millis();
        let ahead = model::time::millis(limits::RETRY_AFTER_MAX);
        let claimed = update.query_row(params![id.as_bytes(), no, now, ahead], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        let Some((version, due_at)) = claimed.optional()? else {
            return Ok(ClaimRow::Stale);
        };
        self.fast_paths.wrote("claim", 1);
        row.run.claim = Some(presence);
        row.run.state = RunState::Ready;
        row.run.version = Version(version);
        row.run.due_at = Timestamp::from_millis(due_at);
        Ok(ClaimRow::Ours(Box::new(row)))
    }

    /// The same as the core decides.
    fn claim_slow_path(&self, presence: PresenceId, no: i64, mut row: RunRow) -> Done<ClaimRow> {
        let now = self.shared.clock.now();
        let job = Lookup::new(&self.conn, Payloads::Small).row(row.run.job)?;
        let version = job.map_or(row.run.version, |job| job.narrow.version);
        if claim(&mut row.run, presence, true, version, now) != Grant::New {
            return Ok(ClaimRow::Stale);
        }
        let run = &row.run;
        let sql = include_str!("sql/put_claim.sql");
        let (state, due_at) = (run.state.code(), run.due_at.as_millis());
        let params = params![run.id.as_bytes(), no, state, due_at, run.version.0];
        self.conn.prepare_cached(sql)?.execute(params)?;
        Ok(ClaimRow::Ours(Box::new(row)))
    }

    /// Runs that cannot be read, or whose job cannot, end here: nobody could ever work on them.
    pub(super) fn bury_unreadable(&mut self, runs: &[(RunId, PresenceId)]) -> Done<()> {
        let now = self.shared.clock.now();
        for (id, holder) in runs {
            let row = live_row(&self.conn, *id, Payloads::Small)?;
            let Some(run) = row
                .map(|row| row.run)
                .filter(|run| run.claim == Some(*holder))
            else {
                continue;
            };
            let mut view = self.view(run.job)?;
            view.bury(*id, now);
            self.apply(run.job, view.effects)?;
        }
        Ok(())
    }

    pub(super) fn start_run(&mut self, start: &StartRun) -> Done<Started> {
        let id = start.run.job;
        let mut view = self.view_of_runs(id)?;
        // One that cannot be read is not missing.
        view.job = load_job(&self.conn, id)?;
        let needs = Needs {
            named: Some(start.run.id),
            ..Needs::default()
        };
        view.history = self.read_history(id, needs)?;
        let started = view.start(start);
        self.apply(id, view.effects)?;
        if matches!(started, Started::Ready | Started::Waiting) {
            self.audit(&Change::run_started(&start.run))?;
        }
        Ok(started)
    }

    pub(super) fn mark_running(
        &mut self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Done<()> {
        let no = self.shared.presences().living(presence)?;
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/mark_running.sql"))?;
        for (id, dispatched_at) in runs {
            update.execute(params![id.as_bytes(), no, dispatched_at.as_millis()])?;
        }
        Ok(())
    }
}
