//! Counting: jobs that are paused after so many failures in a row keep their count. Which they are is known by heart, so
//! that the end of a run of any other need not look at its job.

use std::collections::BTreeSet;

use model::{Job, JobId};
use rusqlite::{Connection, params};

use super::db::Db;
use super::fault::Done;
use crate::Acting;
use crate::audit::Change;

/// The jobs that count their failures.
#[derive(Default)]
pub(super) struct Counting(BTreeSet<JobId>);

impl Counting {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/counting.sql"))?;
        let jobs = select.query_map([], |row| row.get(0).map(JobId::from_bytes))?;
        Ok(Self(jobs.collect::<rusqlite::Result<_>>()?))
    }

    pub(super) fn contains(&self, job: JobId) -> bool {
        self.0.contains(&job)
    }

    /// Follows a job to what it is now.
    pub(super) fn follow(&mut self, job: &Job) {
        if job.failures.is_some() {
            self.0.insert(job.id);
        } else if !self.0.is_empty() {
            self.0.remove(&job.id);
        }
    }
}

/// Whether the last run of a job that ended by itself has failed.
pub(super) fn has_failures(conn: &Connection, job: JobId) -> Done<bool> {
    let sql = include_str!("sql/has_failures.sql");
    Ok(conn.prepare_cached(sql)?.exists([job.as_bytes()])?)
}

impl Db {
    /// A job that was paused by the system says why; where it stands is written.
    pub(super) fn pause(&self, before: &Job, after: &Job) -> Done<()> {
        let sql = include_str!("sql/pause_def.sql");
        self.conn.prepare_cached(sql)?.execute(params![
            after.id.as_bytes(),
            after.updated_at.as_millis(),
            after.note,
            after.paused_by.as_deref(),
        ])?;
        self.audit_as(&Acting::default(), &Change::job_changed(before, after))
    }
}
