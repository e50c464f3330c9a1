//! Rest: a job whose next slot is set by the end of its run has none while that run lives. Every way out of
//! the live table comes by here, so which jobs rest is known by heart: for all others nothing is looked up.

use std::collections::BTreeSet;

use model::schedule::Kind;
use model::{Job, JobId, Timestamp};
use rusqlite::{Connection, params};

use super::db::Db;
use super::fault::{Done, Fault};
use super::jobs::{due_column, load_job};
use crate::StoreError;
use crate::code::Code;

/// The jobs that rest.
#[derive(Default)]
pub(super) struct Resting(BTreeSet<JobId>);

impl Resting {
    pub fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/resting.sql"))?;
        let jobs = select.query_map([], |row| row.get(0).map(JobId::from_bytes))?;
        Ok(Self(jobs.collect::<rusqlite::Result<_>>()?))
    }

    /// A run was born whose end sets the next slot.
    pub fn insert(&mut self, job: JobId) {
        self.0.insert(job);
    }

    /// Follows a job to where it stands now.
    pub fn follow(&mut self, job: &Job) {
        if job.is_resting() {
            self.0.insert(job.id);
        } else {
            self.0.remove(&job.id);
        }
    }

    /// A run of the job has ended: if it rests, and no run of a slot is left, it goes on from here. When it
    /// is due then.
    pub fn wake(
        &mut self,
        conn: &Connection,
        id: JobId,
        ended_at: Timestamp,
    ) -> Done<Option<Timestamp>> {
        if !self.0.contains(&id) || has_slot_run(conn, id)? {
            return Ok(None);
        }
        self.0.remove(&id);
        let job = match load_job(conn, id) {
            Err(Fault::Store(StoreError::BadRow { detail, .. })) => {
                park(conn, id, &detail, ended_at)?;
                return Ok(None);
            }
            read => read?,
        };
        let Some(job) = job.filter(Job::is_resting) else {
            return Ok(None);
        };
        if let Kind::Broken(broken) = &job.def.schedule.kind {
            // It is not over, but nobody can say when it goes on.
            park(conn, id, &broken.error, ended_at)?;
            return Ok(None);
        }
        let rested = job.rested(ended_at);
        put_standing(conn, &rested)?;
        Ok(rested.next_due_at())
    }
}

/// Whether a run of one of the job's slots lives.
fn has_slot_run(conn: &Connection, job: JobId) -> Done<bool> {
    let mut select = conn.prepare_cached(include_str!("sql/has_slot_run.sql"))?;
    Ok(select.exists([job.as_bytes()])?)
}

/// The narrow row of a job: where it stands.
fn put_standing(conn: &Connection, job: &Job) -> Done<()> {
    let mut narrow = conn.prepare_cached(include_str!("sql/change_job.sql"))?;
    narrow.execute(params![
        job.id.as_bytes(),
        job.state.code(),
        job.version.0,
        job.next_slot.map(|slot| slot.0.as_millis()),
        due_column(job),
        job.slot_last.map(Timestamp::as_millis),
        job.state_at.as_millis(),
        job.runs_made,
    ])?;
    Ok(())
}

fn park(conn: &Connection, id: JobId, error: &str, now: Timestamp) -> Done<()> {
    let mut narrow = conn.prepare_cached(include_str!("sql/park.sql"))?;
    if narrow.execute(params![id.as_bytes(), now.as_millis()])? == 1 {
        let mut wide = conn.prepare_cached(include_str!("sql/park_def.sql"))?;
        wide.execute(params![id.as_bytes(), now.as_millis(), error])?;
    }
    Ok(())
}

impl Db {
    pub fn put_standing(&mut self, job: &Job) -> Done<()> {
        put_standing(&self.conn, job)?;
        self.resting.follow(job);
        Ok(())
    }

    /// A job whose next slot is set by the end of its run rests while one lives, whatever was done to it.
    pub fn rest(&mut self, job: Job) -> Done<Job> {
        if !job.def.schedule.after_completion() || !has_slot_run(&self.conn, job.id)? {
            return Ok(job);
        }
        let job = job.resting();
        self.put_standing(&job)?;
        Ok(job)
    }

    /// What the end of a run at `ended_at` means for its job, if that rests.
    pub fn wake(&mut self, job: JobId, ended_at: Timestamp) -> Done<Option<Timestamp>> {
        self.resting.wake(&self.conn, job, ended_at)
    }

    pub fn park(&mut self, jobs: &[(JobId, String)], now: Timestamp) -> Done<()> {
        for (id, error) in jobs {
            park(&self.conn, *id, error, now)?;
            self.resting.0.remove(id);
        }
        Ok(())
    }
}
