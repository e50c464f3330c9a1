//! Slots whose job has a run in their way: they wait for its end, or for the moment that shows whether it counts against
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{Job, JobId, Timestamp};

use crate::age::Age;

#[derive(Debug, Default)]
pub(super) struct Postponed {
    slots: BTreeMap<JobId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    due_at: Timestamp,
    /// When to ask the store, at the latest.
    query_at: Timestamp,
    job: Arc<Job>,
    /// The run is not held here: its end is not heard of.
    elsewhere: bool,
}

/// The store has nothing decided later than this after it was asked, or after the slot was due.
const QUERY_WITHIN: Duration = Duration::from_secs(2);

impl Waiting {
    /// When to ask, as seen at `now`: a moment far ahead was set by a clock that has gone back since.
    fn query_at(&self, now: Timestamp) -> Timestamp {
        if self.query_at > self.due_at.max(now).plus(QUERY_WITHIN) {
            self.due_at
        } else {
            self.query_at
        }
    }
}

impl Postponed {
    pub(super) fn add(&mut self, query_at: Timestamp, job: Arc<Job>, elsewhere: bool) {
        let waiting = Waiting {
            due_at: job.next_due_at().unwrap_or(query_at),
            query_at,
            job,
            elsewhere,
        };
        self.slots.insert(waiting.job.id, waiting);
    }

    /// Those of an age that nothing keeps any more, as far as is known here, up to `max`.
    pub(super) fn freed(
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

    /// Those of an age that the store is to be asked about although a run lives, up to `max`.
    pub(super) fn due(&mut self, age: Age, now: Timestamp, max: usize) -> Vec<Arc<Job>> {
        self.take(max, |_, it| {
            it.query_at(now) <= now && Age::of(it.due_at, now) == age
        })
    }

    fn take(&mut self, max: usize, is_ripe: impl Fn(JobId, &Waiting) -> bool) -> Vec<Arc<Job>> {
        let ripe = self.slots.iter().filter(|(job, it)| is_ripe(**job, it));
        let ripe: Vec<JobId> = ripe.map(|(job, _)| *job).take(max).collect();
        let taken = ripe.iter().filter_map(|job| self.slots.remove(job));
        taken.map(|it| it.job).collect()
    }

    pub(super) fn next_due(&self, age: Age, now: Timestamp) -> Option<Timestamp> {
        let slots = self.slots.values();
        let of_age = slots.filter(|it| Age::of(it.due_at, now) == age);
        of_age.map(|it| it.query_at(now)).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
