//! Slots whose job's last run lives: they wait for its end, at the latest for their due time. What overlap says is
//! said then.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::job::Decision;
use model::{Job, JobId, Timestamp};

use crate::age::Age;
use crate::wheel::{Entry, Wheel};

#[derive(Default)]
pub struct Postponed {
    slots: BTreeMap<JobId, Waiting>,
}

struct Waiting {
    due_at: Timestamp,
    job: Arc<Job>,
    /// The run is another node's: its end is not heard of here.
    elsewhere: bool,
}

impl Postponed {
    pub fn add(&mut self, due_at: Timestamp, job: Arc<Job>, elsewhere: bool) {
        let waiting = Waiting {
            due_at,
            job,
            elsewhere,
        };
        self.slots.insert(waiting.job.id, waiting);
    }

    /// One that the store would not decide before it is due, unless an edit has replaced it.
    pub fn add_early(&mut self, wheel: &Wheel, job: Arc<Job>, decision: &Decision) {
        let due_at = decision.start.map(|slot| job.due_at(slot));
        if wheel.is_current(&Entry::Slot(Arc::clone(&job))) {
            self.add(due_at.unwrap_or(decision.at), job, true);
        }
    }

    /// Those of an age that nothing keeps any more, as far as is known here, up to `max`.
    pub fn freed(
        &mut self,
        age: Age,
        now: Timestamp,
        keeps: impl Fn(JobId) -> bool,
        max: usize,
    ) -> Vec<Arc<Job>> {
        self.take(max, |job, it| {
            !it.elsewhere && Age::of(it.due_at, now) == age && !keeps(job)
        })
    }

    /// Those of an age that are due although a run lives, up to `max`: overlap says what becomes of them.
    pub fn due(&mut self, age: Age, now: Timestamp, max: usize) -> Vec<Arc<Job>> {
        self.take(max, |_, it| {
            it.due_at <= now && Age::of(it.due_at, now) == age
        })
    }

    fn take(&mut self, max: usize, is_ripe: impl Fn(JobId, &Waiting) -> bool) -> Vec<Arc<Job>> {
        let ripe = self.slots.iter().filter(|(job, it)| is_ripe(**job, it));
        let ripe: Vec<JobId> = ripe.map(|(job, _)| *job).take(max).collect();
        let taken = ripe.iter().filter_map(|job| self.slots.remove(job));
        taken.map(|it| it.job).collect()
    }

    pub fn next_due(&self, age: Age, now: Timestamp) -> Option<Timestamp> {
        let moments = self.slots.values().map(|it| it.due_at);
        moments.filter(|due_at| Age::of(*due_at, now) == age).min()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
