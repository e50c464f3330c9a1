//! What fire does to the board: it takes out what is due, and puts back what could not be written.

use std::sync::Arc;
use std::time::Duration;

use model::view::Known;
use model::{Job, JobId, Overlap, RunId, Timestamp, limits};
use store::DueRun;

use super::wheel::Entry;
use super::{Board, State};
use crate::age::Age;

/// Slots that may be written now.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Those that start, as far as is known.
    pub fast: Vec<Arc<Job>>,
    /// Those whose job may have runs, with what is known here of them.
    pub slow: Vec<(Arc<Job>, Vec<Known>)>,
}

/// Which slots and runs the next write of an age may be about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub age: Age,
    pub now: Timestamp,
    /// How far ahead slots are fired.
    pub lead: Duration,
    /// Whether one may begin that the store takes its time for.
    pub has_patience: bool,
    /// Whether the wheel may be taken from.
    pub may_take: bool,
}

impl State {
    /// What is known here of the job's runs, where that matters.
    fn beside(&self, job: Arc<Job>) -> (Arc<Job>, Vec<Known>) {
        let matters = job.def.overlap != Overlap::Allow;
        let knows = matters.then(|| self.claims.known(job.id));
        (job, knows.unwrap_or_default())
    }

    /// Those that an edit has not replaced: what it put in instead may go with the same write, which holds a job once.
    fn current(&self, mut jobs: Vec<Arc<Job>>) -> Vec<Arc<Job>> {
        jobs.retain(|job| self.wheel.is_current(&Entry::Slot(Arc::clone(job))));
        jobs
    }

    /// The claim of a run was answered, one way or the other: a slot of its job may have waited for that.
    pub(super) fn end_claiming(&mut self, run: &DueRun) {
        self.crowd.answered(run);
        self.postponed.stir(run.job);
    }

    /// A slot that was taken out: it is written, or waits for the run in its way.
    fn sort(&mut self, due_at: Timestamp, job: Arc<Job>, now: Timestamp, due: &mut Due) {
        let claiming = self.crowd.is_claiming(job.id);
        let waits = job.def.overlap != Overlap::Allow && (claiming || self.claims.lives(job.id));
        if waits {
            let missed = due_at < now.minus(limits::LATE_MAX);
            let query_at = if missed && !self.claims.was_dispatched_before(job.id, due_at) {
                // It is its turn when the run before it has ended. One that was under way when it was due is another matter:
                // then the policy decides at once.
                now.plus(limits::SLEEP_MAX)
            } else {
                self.claims.shows_at(job.id, due_at)
            };
            self.postponed.add(query_at, job, false);
        } else if claiming {
            due.slow.push(self.beside(job));
        } else {
            due.fast.push(job);
        }
    }
}

impl Board {
    /// How many slots and runs are on time and due at or before `until`.
    pub(crate) fn count_until(&self, until: Timestamp) -> usize {
        self.state().wheel.count_until(until)
    }

    /// What is due within the lead and may be written now. Runs that nobody holds join the crowd.
    pub(crate) fn take_due(&self, scope: Scope) -> Due {
        let Scope { age, now, .. } = scope;
        let mut due = Due::default();
        let most = limits::FIRE_BATCH_MAX;
        let mut guard = self.state();
        let state = &mut *guard;
        if scope.has_patience {
            let ripe = state.postponed.due(age, now, most);
            let ripe = state.current(ripe);
            due.slow = ripe.into_iter().map(|job| state.beside(job)).collect();
        }
        if !scope.may_take {
            return due;
        }
        let (claims, crowd) = (&state.claims, &state.crowd);
        let keeps = |job: JobId| claims.lives(job) || crowd.is_claiming(job);
        let freed = state.postponed.freed(age, now, keeps, most);
        due.fast = state.current(freed);
        state.wheel.age(now);
        let left = most - due.fast.len();
        for (due_at, entry) in state.wheel.take(age, now.plus(scope.lead), left) {
            if !state.wheel.is_current(&entry) {
                continue;
            }
            match entry {
                Entry::Slot(job) => state.sort(due_at, job, now, &mut due),
                Entry::Run(run) => {
                    if !state.crowd.add(age, due_at, run) {
                        // The store has it; plan finds it again when there is room.
                        state.wheel.answered(&entry);
                    }
                }
            }
        }
        due
    }

    /// Takes runs out of the crowd, to be claimed.
    pub(crate) fn take_crowd(&self, age: Age, max: usize) -> Vec<(Timestamp, DueRun)> {
        self.state().crowd.take(age, max)
    }

    /// When the next write of an age may begin: `ahead` of the next that is due, or when a slot that waits is to be fired
    /// again.
    pub(crate) fn next_write(&self, scope: Scope, ahead: Duration) -> Option<Timestamp> {
        let mut state = self.state();
        let in_wheel = scope
            .may_take
            .then(|| state.wheel.next_due(scope.age))
            .flatten();
        let postponed = || state.postponed.next_due(scope.age, scope.now);
        let postponed = scope.has_patience.then(postponed).flatten();
        let in_wheel = in_wheel.map(|due_at| due_at.minus(ahead));
        in_wheel.into_iter().chain(postponed).min()
    }

    /// A write that makes or claims these runs begins.
    pub(crate) fn begin_writing(&self, runs: impl Iterator<Item = RunId>) {
        self.state().wheel.begin_write(runs);
    }

    /// A write of slots failed. It may have happened: what it was about stays known, and writing again is harmless.
    pub(crate) fn put_back_slots(&self, runs: impl Iterator<Item = RunId>, jobs: Vec<Arc<Job>>) {
        let mut state = self.state();
        state.wheel.end_write(runs);
        for job in jobs {
            let due_at = job.next_due_at().unwrap_or(Timestamp::MIN);
            state.wheel.put_back(due_at, Entry::Slot(job));
        }
    }

    /// The same of claims.
    pub(crate) fn put_back_runs(&self, runs: Vec<(Timestamp, DueRun)>) {
        let mut state = self.state();
        for (due_at, run) in runs {
            state.end_claiming(&run);
            state.wheel.end_write(std::iter::once(run.run));
            state.wheel.put_back(due_at, Entry::Run(run));
        }
    }
}
