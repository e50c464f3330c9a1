//! Views: what decisions of one call see, read under lock. The rules are the model's (`model::view`); what they decide is
//! written by `effects`.
//!
//! Locks are always taken in this order: a presence, jobs by id, live runs by id.

use std::collections::BTreeMap;

use model::view::View;
use model::{Job, JobId, Run, RunId};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::{Done, Fault};
use super::fire::is_exclusive;
use super::pool::Conn;
use super::put::Param;
use super::rows::{LiveRow, read_narrow};
use crate::code::bad_row;
use crate::row::{Narrow, Payloads};
use crate::{StoreError, doc};

/// Whether live runs are locked besides their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// What is written of them says what they were like, and is refused if that has changed.
    Jobs,
    /// Wherever a run may be inserted that waits for one of them, and wherever they are marked.
    JobsAndRuns,
}

impl Lock {
    fn sql(self) -> &'static str {
        match self {
            Self::Jobs => include_str!("sql/live_of_jobs.sql"),
            Self::JobsAndRuns => include_str!("sql/lock_live_of_jobs.sql"),
        }
    }
}

#[derive(Default)]
pub(super) struct Views {
    pub jobs: BTreeMap<JobId, JobView>,
    /// The number of the presence that claims what it inserts.
    pub no: Option<i32>,
}

/// One job: what a decision sees of it, and how that is stored.
#[derive(Default)]
pub(super) struct JobView {
    pub view: View,
    /// Where it stands, locked. None: nothing but some of its runs was read.
    narrow: Option<Narrow>,
    unreadable: Option<String>,
    pub stored: BTreeMap<RunId, Stored>,
}

/// What the row of a living run says besides the run itself.
pub(super) struct Stored {
    /// The number of the presence that holds it.
    pub no: Option<i32>,
    pub exclusive: bool,
    pub attempts: Option<Vec<u8>>,
}

impl JobView {
    /// Whether the end of one of its runs may mean something to the job or to another run, from now on. Where the
    /// definition was not read, what is stored stays: nothing waits that did not wait before.
    pub fn exclusive(&self, stored: bool) -> bool {
        let waits = self.view.live.values().any(|run| run.waiting);
        waits || self.view.job.as_ref().map_or(stored, is_exclusive)
    }
}

impl Views {
    /// Jobs and their live runs, locked.
    pub async fn load(conn: &Conn, ids: &[Uuid], lock: Lock) -> Done<Self> {
        Self::load_some(conn, ids, ids, lock).await
    }

    /// Jobs, locked, and the live runs of some of them. Runs are read when the locks are there.
    pub async fn load_some(conn: &Conn, ids: &[Uuid], living: &[Uuid], lock: Lock) -> Done<Self> {
        let jobs = conn.prepare(include_str!("sql/lock_jobs.sql")).await?;
        let live = conn.prepare(lock.sql()).await?;
        let (ids, living) = ([&ids as Param<'_>], [&living as Param<'_>]);
        let (jobs, live) = tokio::try_join!(biased; conn.query_prepared(&jobs, &ids), conn.query_prepared(&live, &living))?;
        let mut views = Self::default();
        for row in &jobs {
            let narrow = read_narrow(row)?;
            views.jobs.entry(narrow.id).or_default().narrow = Some(narrow);
        }
        for row in &live {
            views.add(LiveRow::read(row)?)?;
        }
        Ok(views)
    }

    pub fn add(&mut self, row: LiveRow) -> Done<()> {
        if row.no.is_some() != row.run.claim.is_some() {
            // It was claimed while its lock was waited for: the row is the new one, its holder's name is not.
            return Err(Fault::Overtaken);
        }
        // One whose attempts cannot be read is buried by whoever claims it.
        let attempts = doc::decode_attempts(row.attempts.as_deref()).unwrap_or_default();
        let held = self.jobs.entry(row.run.job).or_default();
        let stored = Stored {
            no: row.no,
            exclusive: row.exclusive,
            attempts: row.attempts,
        };
        held.stored.insert(row.run.id, stored);
        let run = Run {
            attempts,
            ..row.run
        };
        held.view.live.insert(run.id, run);
        Ok(())
    }

    /// Reads jobs that are locked, as they stand; one that cannot be read is known as such. One that was created since the
    /// locks were taken is not locked, and is taken for one that is not there.
    pub async fn read_jobs(&mut self, conn: &Conn, ids: &[Uuid], payloads: Payloads) -> Done<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &payloads.max()]).await?;
        for (id, job) in read_jobs(conn, &rows).await? {
            let locked = self.jobs.get_mut(&id).filter(|held| held.narrow.is_some());
            let Some(held) = locked else {
                continue;
            };
            let rests = held.narrow.is_some_and(|narrow| narrow.is_resting());
            held.unreadable = job.as_ref().err().map(|bad| bad.detail.clone());
            held.view.unreadable = held.unreadable.clone().filter(|_| rests);
            held.view.job = job.ok();
        }
        Ok(())
    }

    /// Reads those that rest: what the end of a run means for them takes their definitions.
    pub async fn read_resting(&mut self, conn: &Conn) -> Done<()> {
        let narrow = self.jobs.values().filter_map(|held| held.narrow);
        let resting = narrow.filter(Narrow::is_resting).map(|job| job.id.0);
        let resting: Vec<Uuid> = resting.collect();
        self.read_jobs(conn, &resting, Payloads::Small).await
    }

    /// A job that was read, if it could be.
    pub fn job(&self, id: JobId) -> Result<Option<&Job>, StoreError> {
        let Some(held) = self.jobs.get(&id) else {
            return Ok(None);
        };
        match &held.unreadable {
            None => Ok(held.view.job.as_ref()),
            Some(detail) => Err(bad_row(id, detail)),
        }
    }

    /// A job whose definition the caller has, if that is still its own.
    pub fn know(&mut self, job: &Job) {
        if let Some(held) = self.jobs.get_mut(&job.id)
            && let Some(narrow) = held.narrow.filter(|it| it.version == job.version)
        {
            held.view.job = Some(job.at_standing(narrow.stands));
        }
    }

    /// A living run, if it was read.
    pub fn run(&self, job: JobId, id: RunId) -> Option<&Run> {
        self.jobs.get(&job)?.view.live.get(&id)
    }

    /// What a decision about a job sees; nothing, if it is gone.
    pub fn view(&mut self, job: JobId) -> &mut View {
        &mut self.jobs.entry(job).or_default().view
    }
}
