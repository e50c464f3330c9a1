//! A scene: some jobs and all that lives of them, read under lock; what is done to it in memory is done by the same
//! rules as in the reference store, written down as it happens, and flushed as one statement for each table.
//!
//! Locks are always taken in this order: a presence, jobs by id, live runs by id.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use model::policy::Living;
use model::schedule::Kind;
use model::{
    Ask, Job, JobId, JobState, Reason, Run, RunId, RunKind, RunState, Standing, Stretch, Timestamp,
};
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::{Done, Fault};
use super::pool::Conn;
use super::put::{
    EndedColumns, LiveColumns, MoveColumns, StandingColumns, TokenColumns, UntoldColumns, asks,
};
use super::ran::Ran;
use super::rows::{EndedRow, LiveRow, Narrow, text};
use super::store::PgStore;
use crate::StoreError;

type Param<'a> = &'a (dyn tokio_postgres::types::ToSql + Sync);

/// Whether live runs are locked besides their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// What is written of them says what they were like, and is refused if that has changed.
    Jobs,
    JobsAndRuns,
}

#[derive(Default)]
pub(super) struct Scene {
    pub jobs: BTreeMap<JobId, Narrow>,
    /// Those whose definitions were read.
    pub full: BTreeMap<JobId, Job>,
    unreadable: BTreeMap<JobId, String>,
    live: BTreeMap<JobId, BTreeMap<RunId, LiveRow>>,
    pub ran: Ran,
    pub writes: Writes,
}

/// What is to be written.
#[derive(Default)]
pub(super) struct Writes {
    pub standings: BTreeMap<JobId, (Standing, Option<Timestamp>)>,
    pub born: Vec<LiveRow>,
    asked: BTreeMap<RunId, Ask>,
    freed: Vec<Uuid>,
    moved: MoveColumns,
    moves: usize,
    gone: TokenColumns,
    going: usize,
    pub ended: BTreeMap<RunId, EndedRow>,
    /// Skipped entries that go, or lose slots that are decided anew.
    pub untold: BTreeMap<RunId, Option<Stretch>>,
    parked: BTreeMap<JobId, (String, Timestamp)>,
}

impl Scene {
    /// Jobs and their live runs, locked.
    pub async fn load(conn: &Conn, ids: &[Uuid], lock: Lock) -> Done<Self> {
        Self::load_some(conn, ids, ids, lock).await
    }

    /// Jobs, locked, and the live runs of some of them. Runs are read when the locks are there.
    pub async fn load_some(conn: &Conn, ids: &[Uuid], living: &[Uuid], lock: Lock) -> Done<Self> {
        let jobs = conn.prepare(include_str!("sql/lock_jobs.sql")).await?;
        let live = conn.prepare(lock.sql()).await?;
        let (ids, living) = ([&ids as Param<'_>], [&living as Param<'_>]);
        let (jobs, live) =
            tokio::try_join!(biased; conn.ask(&jobs, &ids), conn.ask(&live, &living))?;
        let mut scene = Self::default();
        for row in &jobs {
            let narrow = Narrow::read(row)?;
            scene.jobs.insert(narrow.id, narrow);
        }
        for row in &live {
            scene.add(LiveRow::read(row)?);
        }
        Ok(scene)
    }

    pub fn add(&mut self, row: LiveRow) {
        let runs = self.live.entry(row.run.job).or_default();
        runs.insert(row.run.id, row);
    }

    /// Reads definitions of jobs that are here; one that cannot be read is known as such.
    pub async fn read_full(&mut self, conn: &Conn, ids: &[Uuid]) -> Done<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let rows = conn.rows(include_str!("sql/get_job.sql"), &[&ids]).await?;
        for (id, job) in read_jobs(conn, &rows).await? {
            match job {
                Ok(job) => {
                    self.full.insert(id, job);
                }
                Err(bad) => {
                    self.unreadable.insert(id, bad.detail);
                }
            }
        }
        Ok(())
    }

    /// The same, if it can be read.
    pub fn readable(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        match self.unreadable.get(&id) {
            None => Ok(self.job(id)),
            Some(detail) => Err(StoreError::BadRow {
                what: id.to_string(),
                detail: detail.clone(),
            }),
        }
    }

    /// An edit was written: the job stands as it says, and from now on the ends of its runs are looked at.
    pub fn changed(&mut self, after: &Job) {
        if let Some(narrow) = self.jobs.get_mut(&after.id) {
            (narrow.version, narrow.stands) = (after.version, after.standing());
        }
        for row in self.live.entry(after.id).or_default().values_mut() {
            row.exclusive = true;
        }
    }

    /// The job as it stands in this scene.
    pub fn job(&self, id: JobId) -> Option<Job> {
        let stands = self.jobs.get(&id)?.stands;
        Some(self.full.get(&id)?.at_standing(stands))
    }

    pub fn run(&self, job: JobId, id: RunId) -> Option<&LiveRow> {
        self.live.get(&job)?.get(&id)
    }

    /// A job's runs, oldest first.
    pub fn runs(&self, job: JobId) -> Vec<LiveRow> {
        let runs = self.live.get(&job);
        runs.into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }

    pub fn living(&self, job: JobId) -> Living {
        let mut living = Living::default();
        for row in self.live.get(&job).into_iter().flat_map(BTreeMap::values) {
            match row.run.waiting {
                true => living.waiting += 1,
                false => living.moving += 1,
            }
        }
        living
    }

    pub fn has_slot_run(&self, job: JobId) -> bool {
        let runs = self.live.get(&job);
        runs.is_some_and(|runs| runs.values().any(|row| row.run.kind == RunKind::Slot))
    }

    /// Where a job stands from now on.
    pub fn put_standing(&mut self, job: &Job) {
        if let Some(narrow) = self.jobs.get_mut(&job.id) {
            narrow.stands = job.standing();
        }
        let due_at = due_at(job);
        self.writes
            .standings
            .insert(job.id, (job.standing(), due_at));
    }

    pub fn bear(&mut self, row: LiveRow) {
        self.writes.born.push(row.clone());
        self.add(row);
    }

    pub fn end(&mut self, row: EndedRow) {
        self.writes.ended.insert(row.run.id, row);
    }

    pub fn remove(&mut self, job: JobId, id: RunId) -> Option<LiveRow> {
        let row = self.live.get_mut(&job)?.remove(&id)?;
        self.writes.gone.push(&row);
        self.writes.going += 1;
        Some(row)
    }

    /// A run goes on otherwise.
    pub fn change(&mut self, now: LiveRow) {
        if let Some(was) = self.run(now.run.job, now.run.id) {
            let was = was.clone();
            self.writes.moved.push(&was, &now);
            self.writes.moves += 1;
            self.add(now);
        }
    }

    /// Ends a live run before anyone took its next attempt, and keeps it as cancelled.
    pub fn cancel(
        &mut self,
        job: JobId,
        id: RunId,
        reason: Reason,
        at: Timestamp,
    ) -> Option<EndedRow> {
        let row = self.remove(job, id)?;
        let run = Run {
            state: RunState::Cancelled,
            reason: Some(reason),
            settled_at: Some(at),
            claim: None,
            ask: None,
            waiting: false,
            ..row.run
        };
        let ended = EndedRow {
            run,
            last: None,
            attempts: row.attempts,
        };
        self.end(ended.clone());
        Some(ended)
    }

    /// Marks a run that someone holds. A wish to end it is never weakened to one to take it back.
    pub fn ask(&mut self, job: JobId, id: RunId, ask: Ask) {
        let Some(row) = self.live.get_mut(&job).and_then(|runs| runs.get_mut(&id)) else {
            return;
        };
        let ask = match (row.run.ask, ask) {
            (Some(Ask::Cancel(reason)), Ask::TakeBack | Ask::TooLate) => Ask::Cancel(reason),
            (Some(Ask::Cancel(_)), Ask::Cancel(_))
            | (None | Some(Ask::TakeBack | Ask::TooLate), _) => ask,
        };
        row.run.ask = Some(ask);
        self.writes.asked.insert(id, ask);
    }

    /// Takes a run back as if it had never been fired: its job decides the slot anew. A job that cannot be
    /// read decides nothing, and is or will be parked.
    pub fn take_back(&mut self, job: JobId, id: RunId, now: Timestamp) {
        let Some(row) = self.remove(job, id) else {
            return;
        };
        if let (Some(slot), Some(job)) = (row.run.slot, self.job(job)) {
            let ran = self.ran_before(&job, slot);
            let job = job.taken_back(slot, now, &ran);
            self.untell(&job);
            self.put_standing(&job);
        }
    }

    /// What the end of a run at `ended_at` means for its job: the oldest waiting run may go when no other
    /// moves, and a job that rests gets its next slot when no slot's run is left.
    pub fn free(&mut self, job: JobId, ended_at: Timestamp) -> (Option<RunId>, Option<Timestamp>) {
        (self.free_waiting(job), self.wake(job, ended_at))
    }

    fn free_waiting(&mut self, job: JobId) -> Option<RunId> {
        if self.living(job).moving > 0 {
            return None;
        }
        let runs = self.live.get_mut(&job)?;
        let row = runs.values_mut().find(|row| row.run.waiting)?;
        row.run.waiting = false;
        self.writes.freed.push(row.run.id.0);
        Some(row.run.id)
    }

    /// A job that rests gets its next slot when no run of its slots is left.
    pub fn wake(&mut self, id: JobId, ended_at: Timestamp) -> Option<Timestamp> {
        let rests = self.jobs.get(&id).is_some_and(Narrow::is_resting);
        if !rests || self.has_slot_run(id) {
            return None;
        }
        if let Some(why) = self.unreadable.get(&id).cloned() {
            self.park(id, why, ended_at);
            return None;
        }
        let job = self.job(id)?;
        if let Kind::Broken(broken) = &job.def.schedule.kind {
            // It is not over, but nobody can say when it goes on.
            self.park(id, broken.error.clone(), ended_at);
            return None;
        }
        let rested = job.rested(ended_at);
        self.put_standing(&rested);
        rested.next_due_at()
    }

    /// A job whose next slot is set by the end of its run rests while one lives.
    pub fn rest(&mut self, id: JobId) {
        if !self.has_slot_run(id) {
            return;
        }
        if let Some(job) = self.job(id) {
            let resting = job.resting();
            if resting.next_slot != job.next_slot {
                self.put_standing(&resting);
            }
        }
    }

    fn park(&mut self, id: JobId, why: String, at: Timestamp) {
        if let Some(narrow) = self.jobs.get_mut(&id) {
            narrow.stands.state = JobState::Invalid;
        }
        self.writes.parked.insert(id, (why, at));
    }

    /// Jobs that rest: what the end of their runs means takes their definitions.
    pub fn resting(&self) -> Vec<Uuid> {
        let resting = self.jobs.values().filter(|job| job.is_resting());
        resting.map(|job| job.id.0).collect()
    }
}

/// When a job is to be planned: active ones only.
pub(super) fn due_at(job: &Job) -> Option<Timestamp> {
    match job.state {
        JobState::Active => job.next_due_at(),
        JobState::Paused | JobState::Finished | JobState::Invalid | JobState::Deleted => None,
    }
}

impl Lock {
    fn sql(self) -> &'static str {
        match self {
            Self::Jobs => include_str!("sql/live_of_jobs.sql"),
            Self::JobsAndRuns => include_str!("sql/lock_live_of_jobs.sql"),
        }
    }
}

impl Writes {
    /// Writes everything in the order of locks, all under way at once. A day of history that is entered and not there is
    /// made while nothing is locked, and then the call is to be done again.
    pub async fn flush(self, store: &PgStore, conn: &Conn) -> Done<()> {
        if !store.has_days(self.ended.keys().copied()) {
            conn.rollback().await?;
            store.open_days(self.ended.keys().copied()).await?;
            return Err(Fault::Overtaken);
        }
        self.flush_parked(conn).await?;
        self.flush_untold(conn).await?;
        let (ids, marks) = asks(&self.asked);
        let standings = StandingColumns::new(&self.standings);
        let ended = EndedColumns::new(self.ended.values());
        let born = LiveColumns::new(&self.born);
        // A statement, what it writes, whether there is anything to write, and how many rows if that matters.
        let all: [Call<'_>; 7] = [
            (
                include_str!("sql/put_jobs.sql"),
                standings.params(),
                self.standings.len(),
                None,
            ),
            (
                include_str!("sql/ask.sql"),
                vec![&ids, &marks],
                ids.len(),
                None,
            ),
            (
                include_str!("sql/free_waiting.sql"),
                vec![&self.freed],
                self.freed.len(),
                None,
            ),
            (
                include_str!("sql/move_live.sql"),
                self.moved.params().to_vec(),
                self.moves,
                Some(self.moves),
            ),
            (
                include_str!("sql/gone_live.sql"),
                self.gone.params().to_vec(),
                self.going,
                Some(self.going),
            ),
            (
                include_str!("sql/put_ended.sql"),
                ended.params(),
                self.ended.len(),
                None,
            ),
            (
                include_str!("sql/put_live.sql"),
                born.params(),
                self.born.len(),
                None,
            ),
        ];
        tell(conn, &all).await
    }

    /// What is told no more, before anything is told anew.
    async fn flush_untold(&self, conn: &Conn) -> Done<()> {
        let untold = UntoldColumns::new(&self.untold);
        let (gone, cut) = (include_str!("sql/untell.sql"), include_str!("sql/cut.sql"));
        let all = [
            (
                gone,
                vec![&untold.gone as Param<'_>],
                untold.gone.len(),
                None,
            ),
            (cut, untold.params(), untold.id.len(), None),
        ];
        tell(conn, &all).await
    }

    async fn flush_parked(&self, conn: &Conn) -> Done<()> {
        for (id, (why, at)) in &self.parked {
            super::plan::park_on(conn, &[(*id, text(why).into_owned())], *at).await?;
        }
        Ok(())
    }
}

type Call<'a> = (&'static str, Vec<Param<'a>>, usize, Option<usize>);

async fn tell(conn: &Conn, all: &[Call<'_>]) -> Done<()> {
    let mut calls = Vec::new();
    for (sql, params, rows, expected) in all {
        if *rows > 0 {
            calls.push((conn.prepare(sql).await?, params, *expected));
        }
    }
    let told = calls
        .iter()
        .map(|(statement, params, _)| conn.tell(statement, params));
    let written = try_join_all(told).await?;
    for ((_, _, expected), written) in calls.iter().zip(written) {
        // Someone else may have been faster with a run that was not locked.
        if expected.is_some_and(|expected| expected as u64 != written) {
            return Err(Fault::Overtaken);
        }
    }
    Ok(())
}
