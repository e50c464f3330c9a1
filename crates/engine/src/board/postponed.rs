//! Slots whose job has a run in their way: they wait for its end, or for the moment that shows whether it counts against
//! them. There may be many, so none is looked at before one of the two has come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{Job, JobId, Timestamp};
use uuid::Uuid;

use crate::age::Age;
use crate::by_id::MapById;

#[derive(Debug)]
pub(super) struct Postponed {
    slots: MapById<JobId, Waiting>,
    /// The same, by when the store is queried about them at the latest.
    by_moment: BTreeSet<(Timestamp, JobId)>,
    /// Jobs of which a run has ended since: their slots may go.
    stirred: BTreeSet<JobId>,
    /// When this was looked at last.
    now: Timestamp,
}

#[derive(Debug)]
struct Waiting {
    due_at: Timestamp,
    /// When to query the store, at the latest.
    query_at: Timestamp,
    job: Arc<Job>,
    /// The run is not held here: its end is not heard of.
    elsewhere: bool,
}

/// The store has nothing decided later than this after it was queried, or after the slot was due.
const QUERY_WITHIN: Duration = Duration::from_secs(2);

impl Default for Postponed {
    fn default() -> Self {
        Self {
            slots: MapById::default(),
            by_moment: BTreeSet::new(),
            stirred: BTreeSet::new(),
            now: Timestamp::MIN,
        }
    }
}

impl Postponed {
    pub(super) fn add(&mut self, query_at: Timestamp, job: Arc<Job>, elsewhere: bool) {
        self.remove(job.id);
        self.by_moment.insert((query_at, job.id));
        let waiting = Waiting {
            due_at: job.next_due_at().unwrap_or(query_at),
            query_at,
            job,
            elsewhere,
        };
        self.slots.insert(waiting.job.id, waiting);
    }

    fn remove(&mut self, job: JobId) -> Option<Arc<Job>> {
        let waiting = self.slots.remove(&job)?;
        self.by_moment.remove(&(waiting.query_at, job));
        self.stirred.remove(&job);
        Some(waiting.job)
    }

    /// A run of the job has ended, or is not being claimed any more.
    pub(super) fn stir(&mut self, job: JobId) {
        if self.slots.get(&job).is_some_and(|it| !it.elsewhere) {
            self.stirred.insert(job);
        }
    }

    /// A run of the job is held here since: its end is heard of after all.
    pub(super) fn is_held(&mut self, job: JobId) {
        if let Some(waiting) = self.slots.get_mut(&job) {
            waiting.elsewhere = false;
        }
    }

    /// Somebody has written about the job or its runs: what was in the way may be no more.
    pub(super) fn is_written(&mut self, job: JobId) {
        self.is_held(job);
        self.stir(job);
    }

    fn is_of(&self, age: Age, job: JobId, now: Timestamp) -> bool {
        let waiting = self.slots.get(&job);
        waiting.is_some_and(|it| Age::of(it.due_at, now) == age)
    }

    /// Those of an age that nothing keeps any more, as far as is known here, up to `max`.
    pub(super) fn freed(
        &mut self,
        age: Age,
        now: Timestamp,
        keeps: impl Fn(JobId) -> bool,
        max: usize,
    ) -> Vec<Arc<Job>> {
        // One that is still kept is stirred again by the end of what keeps it.
        self.stirred.retain(|job| !keeps(*job));
        let of_age = self.stirred.iter().copied();
        let of_age = of_age.filter(|job| self.is_of(age, *job, now));
        let freed: Vec<JobId> = of_age.take(max).collect();
        freed.into_iter().filter_map(|it| self.remove(it)).collect()
    }

    /// Those of an age that the store is to be queried about although a run lives, up to `max`.
    pub(super) fn due(&mut self, age: Age, now: Timestamp, max: usize) -> Vec<Arc<Job>> {
        self.turn(now);
        let ripe = self.by_moment.range(..=(now, JobId(Uuid::max())));
        let ripe = ripe.map(|(_, job)| *job);
        let ripe = ripe.filter(|job| self.is_of(age, *job, now));
        let ripe: Vec<JobId> = ripe.take(max).collect();
        ripe.into_iter().filter_map(|it| self.remove(it)).collect()
    }

    /// When the next of an age is.
    pub(super) fn next_due(&mut self, age: Age, now: Timestamp) -> Option<Timestamp> {
        self.turn(now);
        let mut moments = self.by_moment.iter();
        let next = moments.find(|(_, job)| self.is_of(age, *job, now));
        next.map(|(query_at, _)| *query_at)
    }

    /// Sets the time. Where the clock has gone back, a moment that was set before may be far ahead.
    fn turn(&mut self, now: Timestamp) {
        let went_back = now < std::mem::replace(&mut self.now, now);
        if !went_back {
            return;
        }
        for waiting in self.slots.values_mut() {
            if waiting.query_at > waiting.due_at.max(now).plus(QUERY_WITHIN) {
                waiting.query_at = waiting.due_at;
            }
        }
        let waiting = self.slots.values();
        self.by_moment = waiting.map(|it| (it.query_at, it.job.id)).collect();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use model::{Definition, Schedule, Slot, Target, TenantId};

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn job(number: u8) -> Arc<Job> {
        let def = Definition::new(
            Schedule::from(Slot(at(100))),
            Target::http("http://localhost/").unwrap(),
        );
        let id = JobId::new(at(0), [number; 10]);
        Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(0)))
    }

    fn freed(postponed: &mut Postponed, keeps: impl Fn(JobId) -> bool) -> usize {
        postponed.freed(Age::OnTime, at(60), keeps, 10).len()
    }

    #[test]
    fn a_slot_goes_when_the_run_in_its_way_has_ended() {
        let mut postponed = Postponed::default();
        postponed.add(at(100), job(1), false);
        postponed.add(at(100), job(2), false);
        assert_eq!(freed(&mut postponed, |_| false), 0, "nothing has ended");
        postponed.stir(job(1).id);
        assert_eq!(freed(&mut postponed, |_| true), 0, "another run lives");
        postponed.stir(job(1).id);
        assert_eq!(freed(&mut postponed, |_| false), 1);
        assert!(!postponed.is_empty());
    }

    #[test]
    fn a_slot_behind_a_run_elsewhere_goes_at_its_moment_only() {
        let mut postponed = Postponed::default();
        postponed.add(at(250), job(1), true);
        postponed.stir(job(1).id);
        assert_eq!(freed(&mut postponed, |_| false), 0);
        assert_eq!(postponed.next_due(Age::OnTime, at(60)), Some(at(250)));
        assert_eq!(postponed.due(Age::OnTime, at(249), 10).len(), 0);
        assert_eq!(postponed.due(Age::OnTime, at(250), 10).len(), 1);
        assert!(postponed.is_empty());
    }

    #[test]
    fn a_slot_that_is_put_in_again_waits_for_its_new_moment() {
        let mut postponed = Postponed::default();
        postponed.add(at(100), job(1), false);
        postponed.add(at(300), job(1), false);
        assert_eq!(postponed.due(Age::OnTime, at(200), 10).len(), 0);
        assert_eq!(postponed.next_due(Age::OnTime, at(200)), Some(at(300)));
    }

    #[test]
    fn ages_are_kept_apart() {
        let mut postponed = Postponed::default();
        postponed.add(at(2_000), job(1), false);
        let later = at(2_000);
        assert_eq!(postponed.next_due(Age::OnTime, later), None);
        assert_eq!(postponed.next_due(Age::Backlog, later), Some(at(2_000)));
        assert_eq!(postponed.due(Age::OnTime, later, 10).len(), 0);
        assert_eq!(postponed.due(Age::Backlog, later, 10).len(), 1);
    }

    #[test]
    fn a_moment_set_by_a_clock_that_went_back_is_not_waited_for() {
        let mut postponed = Postponed::default();
        assert_eq!(postponed.next_due(Age::OnTime, at(60_000)), None);
        postponed.add(at(61_000), job(1), false);
        assert_eq!(postponed.next_due(Age::OnTime, at(50)), Some(at(100)));
    }
}
