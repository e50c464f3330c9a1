//! What plan does to the board: it puts in what it read.

use std::sync::Arc;

use model::{Job, JobId, Timestamp};
use store::DueRun;

use super::{Board, CHUNK};
use crate::age::Age;

impl Board {
    /// Sets the time, and drops the latest of the backlog where it has become too much. Answers whether any was.
    pub(crate) fn shed(&self, now: Timestamp) -> bool {
        let mut state = self.state();
        state.wheel.age(now);
        state.wheel.shed()
    }

    /// Whether another page of plan fits. If not, whoever makes room says so.
    pub(crate) fn has_room(&self, age: Age) -> bool {
        self.state().wheel.has_room(age)
    }

    /// Plan begins to read the store. What is answered from now on is newer than what it reads.
    pub(crate) fn begin_reading(&self) {
        self.state().wheel.begin_reading();
    }

    /// Somebody has written about these jobs or their runs: what kept a slot of theirs may be over.
    pub(crate) fn written(&self, jobs: &[JobId]) {
        let mut state = self.state();
        jobs.iter().for_each(|job| state.postponed.is_written(*job));
    }

    /// Puts in the jobs and runs that were read, each run at its own moment.
    pub(crate) fn insert_read(&self, jobs: Vec<Arc<Job>>, runs: Vec<(Timestamp, DueRun)>) {
        let (mut jobs, mut runs) = (jobs.into_iter(), runs.into_iter());
        while jobs.len() > 0 || runs.len() > 0 {
            let mut state = self.state();
            for job in jobs.by_ref().take(CHUNK) {
                state.wheel.insert_read_job(job);
            }
            for (due_at, run) in runs.by_ref().take(CHUNK) {
                state.wheel.insert_read_run(run, due_at);
            }
        }
        self.state().wheel.end_reading();
    }
}
