//! Rest: a job whose next slot is set by the end of its run has none while that run lives. Which jobs rest is known by
//! heart, so that the end of a run of any other need not look at its job.

use std::collections::BTreeSet;

use model::{Job, JobId, Timestamp};
use rusqlite::{Connection, params};

use super::db::Db;
use super::fault::Done;
use crate::code::Code;
use crate::row::due_column;

/// The jobs that rest.
#[derive(Default)]
pub(super) struct Resting(BTreeSet<JobId>);

impl Resting {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/resting.sql"))?;
        let jobs = select.query_map([], |row| row.get(0).map(JobId::from_bytes))?;
        Ok(Self(jobs.collect::<rusqlite::Result<_>>()?))
    }

    /// A run was inserted whose end sets the next slot.
    pub(super) fn insert(&mut self, job: JobId) {
        self.0.insert(job);
    }

    pub(super) fn contains(&self, job: JobId) -> bool {
        self.0.contains(&job)
    }

    /// Follows a job to where it stands now.
    pub(super) fn follow(&mut self, job: &Job) {
        if job.is_resting() {
            self.0.insert(job.id);
        } else {
            self.0.remove(&job.id);
        }
    }
}

impl Db {
    /// The narrow row of a job: where it stands.
    pub(super) fn put_standing(&mut self, job: &Job) -> Done<()> {
        let mut narrow = self
            .conn
            .prepare_cached(include_str!("sql/change_job.sql"))?;
        narrow.execute(params![
            job.id.as_bytes(),
            job.state.code(),
            job.version.0,
            job.next_slot.map(|slot| slot.0.as_millis()),
            due_column(job),
            job.slot_last.map(Timestamp::as_millis),
            job.state_at.as_millis(),
            job.runs_made,
            job.catch_up_to.map(Timestamp::as_millis),
            job.manual_runs,
            job.failures,
        ])?;
        self.resting.follow(job);
        self.counting.follow(job);
        Ok(())
    }

    pub(super) fn park(&mut self, jobs: &[(JobId, String)], now: Timestamp) -> Done<()> {
        let mut narrow = self.conn.prepare_cached(include_str!("sql/park.sql"))?;
        let mut wide = self.conn.prepare_cached(include_str!("sql/park_def.sql"))?;
        for (id, error) in jobs {
            if let Some(tenant) = self.is_active(*id)? {
                narrow.execute(params![id.as_bytes(), now.as_millis()])?;
                wide.execute(params![id.as_bytes(), now.as_millis(), error])?;
                self.audit_parked(tenant, *id, error)?;
            }
            self.resting.0.remove(id);
        }
        Ok(())
    }
}
