//! Change: what an edit, a pause, a resume or a delete means for the runs of a job.

use std::sync::Arc;

use super::{MILLISECOND, Needs, View};
use crate::id::RunId;
use crate::job::{Job, JobState};
use crate::policy::Overlap;
use crate::run::{Mark, Reason, Run, Skip};

#[derive(Debug, Clone, PartialEq)]
pub struct JobChange {
    /// The job as it was read: version, `next_slot`, `slot_last` and `failures` must still be these.
    pub before: Arc<Job>,
    pub after: Arc<Job>,
    /// Slots that the change explains, such as those of a pause that ended; decided at `after.updated_at`.
    pub skipped: Vec<Skip>,
    pub runs: RunsOfChange,
}

impl JobChange {
    /// Whether nobody changed or fired the job since it was read, nor counted a failure of it. None: it is gone.
    pub fn stands(&self, job: Option<&Job>) -> Option<bool> {
        let stands = |job: &Job| (job.version, job.next_slot, job.slot_last, job.failures);
        let job = job.filter(|job| job.state != JobState::Deleted)?;
        Some(stands(job) == stands(&self.before))
    }
}

/// What a change means for the job's runs that are alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsOfChange {
    /// Nothing.
    Keep,
    /// Slots after `after.updated_at` are taken back as if never fired (pause, edit).
    TakeBack,
    /// All are cancelled (delete).
    Cancel,
}

impl View {
    /// What of history a change may query.
    pub fn needs_to_change(&self, change: &JobChange) -> Needs {
        let skipped = change.skipped.first().zip(change.skipped.last());
        let skipped =
            skipped.map(|(first, last)| (first.slots.first.0, last.slots.last.0.plus(MILLISECOND)));
        let taken_back = match change.runs {
            RunsOfChange::TakeBack => self.needs_to_take_back(),
            RunsOfChange::Keep | RunsOfChange::Cancel => Needs::default(),
        };
        Needs {
            ran: match (skipped, taken_back.ran) {
                (Some(skipped), Some(taken)) => {
                    Some((skipped.0.min(taken.0), skipped.1.max(taken.1)))
                }
                (skipped, taken) => skipped.or(taken),
            },
            ..taken_back
        }
    }

    /// Follows a change whose new definition is written: records the slots it explains, takes back or cancels runs that
    /// nobody holds, marks the others. Answers those that were marked, oldest first. The view's job is as it stands
    /// after the change.
    pub fn change(&mut self, change: &JobChange) -> Vec<RunId> {
        let JobChange {
            before,
            after,
            skipped,
            runs,
        } = change;
        self.record_skips(after, &before.def.schedule, skipped, after.updated_at);
        let marked = match runs {
            RunsOfChange::Keep => Vec::new(),
            RunsOfChange::TakeBack => self.take_back_runs(after),
            RunsOfChange::Cancel => self.cancel_runs(after),
        };
        if after.def.overlap == Overlap::Allow {
            self.free_all_waiting();
        }
        if after.def.target != before.def.target {
            self.wake_all(after.updated_at);
        }
        self.rest();
        marked
    }

    /// Nothing waits for another any more.
    fn free_all_waiting(&mut self) {
        let waiting = self.live.values().filter(|run| run.waits_for_turn());
        let waiting: Vec<Run> = waiting.cloned().collect();
        for run in waiting {
            self.change_run(Run { wait: None, ..run });
        }
    }

    /// Runs of slots ahead go back, from the latest; those that someone holds are marked.
    fn take_back_runs(&mut self, after: &Job) -> Vec<RunId> {
        let ahead = |run: &&Run| run.is_ahead(after.updated_at);
        let runs = self.live.values().rev().filter(ahead);
        let runs: Vec<_> = runs.map(|run| (run.id, run.claim)).collect();
        let mut marked = Vec::new();
        for (id, claim) in runs {
            match claim {
                None => self.take_back(id, after.updated_at),
                Some(_) => {
                    self.mark(id, Mark::TakeBack);
                    marked.push(id);
                }
            }
        }
        self.free(after.updated_at);
        marked.reverse();
        marked
    }

    fn cancel_runs(&mut self, after: &Job) -> Vec<RunId> {
        let runs: Vec<_> = self.live.values().map(|run| (run.id, run.claim)).collect();
        let mut marked = Vec::new();
        for (id, claim) in runs {
            match claim {
                None => {
                    self.cancel(id, Reason::JobDeleted, after.updated_at);
                }
                Some(_) => {
                    self.mark_cancelled(id, Reason::JobDeleted, after.updated_at);
                    marked.push(id);
                }
            }
        }
        marked
    }
}
