//! The crowd: runs that nobody holds wait here until they can be claimed.

use std::collections::VecDeque;

use model::{JobId, Timestamp, limits};
use store::DueRun;

use crate::age::{Age, ByAge};
use crate::by_id::MapById;

#[derive(Debug, Default)]
pub(super) struct Crowd {
    runs: ByAge<VecDeque<(Timestamp, DueRun)>>,
    /// Their jobs and those of claims being written, with how many runs each: they live, and while they are claimed the
    /// store keeps their jobs locked.
    claiming: MapById<JobId, usize>,
}

impl Crowd {
    pub(super) fn len(&self, age: Age) -> usize {
        self.runs.get(age).len()
    }

    pub(super) fn is_empty(&self) -> bool {
        Age::ALL.into_iter().all(|age| self.len(age) == 0)
    }

    /// Whether a run of the job waits here, or its claim is being written.
    pub(super) fn is_claiming(&self, job: JobId) -> bool {
        self.claiming.contains_key(&job)
    }

    /// One more, unless there are too many: then it is left in the store. Answers whether it is here.
    pub(super) fn add(&mut self, age: Age, due_at: Timestamp, run: DueRun) -> bool {
        let fits = self.len(age) < limits::CROWDED_MAX;
        if fits {
            *self.claiming.entry(run.job).or_default() += 1;
            self.runs.get_mut(age).push_back((due_at, run));
        }
        fits
    }

    /// Those that have waited longest, to be claimed.
    pub(super) fn take(&mut self, age: Age, max: usize) -> Vec<(Timestamp, DueRun)> {
        let runs = self.runs.get_mut(age);
        let count = runs.len().min(max);
        runs.drain(..count).collect()
    }

    /// The claim of one has been answered, one way or the other.
    pub(super) fn answered(&mut self, run: &DueRun) {
        if let Some(count) = self.claiming.get_mut(&run.job) {
            *count -= 1;
            if *count == 0 {
                self.claiming.remove(&run.job);
            }
        }
    }
}
