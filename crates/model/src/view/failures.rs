//! Failures: runs in a row that end dead are counted for a job whose definition bounds them, and the last that it lets
//! pass pauses it. A success starts the count again, and so does a resume; what ends otherwise says nothing.

use std::sync::Arc;

use super::change::{JobChange, RunsOfChange};
use super::settle::Settlement;
use super::{Needs, View};
use crate::attempt::cut;
use crate::job::{Job, JobKey, JobState};
use crate::limits;
use crate::run::RunState;
use crate::time::Timestamp;

/// A job that was paused for its failures, for whoever says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedJob {
    pub key: Option<JobKey>,
    /// Why.
    pub note: String,
    /// Whether runs of slots ahead are held by someone, and marked to be taken back.
    pub marked: bool,
}

/// What becomes of a job that counts its failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Nothing.
    Same,
    /// So many in a row now.
    Now(u32),
    /// So many, and no more.
    Pause(u32),
}

impl Job {
    /// Whether the ends of its runs are counted: not while it is paused, nor after its last slot.
    fn counts_failures(&self) -> bool {
        self.state == JobState::Active && self.def.pause_after_failures.is_some()
    }

    fn after_end(&self, ended: RunState) -> Counted {
        let Some(max) = self
            .def
            .pause_after_failures
            .filter(|_| self.counts_failures())
        else {
            return Counted::Same;
        };
        let before = self.failures.unwrap_or(0);
        match ended {
            RunState::Dead => {
                let failures = before.saturating_add(1);
                if failures >= max.get() {
                    Counted::Pause(failures)
                } else {
                    Counted::Now(failures)
                }
            }
            RunState::Succeeded if before > 0 => Counted::Now(0),
            RunState::Succeeded
            | RunState::Cancelled
            | RunState::Skipped
            | RunState::Ready
            | RunState::Retrying
            | RunState::Running => Counted::Same,
        }
    }

    /// Paused by the system, as if somebody had.
    fn paused_for(&self, note: String, now: Timestamp) -> JobChange {
        let (after, skipped) = self.paused(now, Some(note), &Arc::from("system"));
        JobChange {
            before: Arc::new(self.clone()),
            after: Arc::new(after),
            skipped,
            runs: RunsOfChange::TakeBack,
        }
    }
}

/// Why a job was paused: within the bound of a note.
fn note(failures: u32, settlement: &Settlement) -> String {
    let runs = if failures == 1 {
        "paused after a failed run".to_owned()
    } else {
        format!("paused after {failures} failed runs in a row")
    };
    let attempt = settlement.attempt.as_ref();
    let error = attempt.and_then(|attempt| attempt.error.as_deref());
    let reason = settlement.end().and_then(|(_, reason)| reason);
    let last = error.or(reason.map(|reason| reason.as_str()));
    let note = match last {
        Some(last) if failures == 1 => format!("{runs}: {last}"),
        Some(last) => format!("{runs}, the last: {last}"),
        None => runs,
    };
    cut(note, limits::NOTE_MAX)
}

impl View {
    /// What of history it may take to pause the job for the end of a run.
    pub fn needs_to_pause(&self, now: Timestamp) -> Needs {
        let job = self.job.as_ref().filter(|job| job.counts_failures());
        job.map_or(Needs::default(), |job| {
            self.needs_to_change(&job.paused_for(String::new(), now))
        })
    }

    /// Counts the end of a run, and pauses the job for it if that is the last it lets pass.
    pub(super) fn count_end(
        &mut self,
        settlement: &Settlement,
        ended: RunState,
        now: Timestamp,
    ) -> Option<Box<PausedJob>> {
        let job = self.job.clone()?;
        match job.after_end(ended) {
            Counted::Same => None,
            Counted::Now(failures) => {
                self.put_job(Job {
                    failures: Some(failures),
                    ..job
                });
                None
            }
            Counted::Pause(failures) => {
                let note = note(failures, settlement);
                let job = Job {
                    failures: Some(failures),
                    ..job
                };
                Some(self.pause(&job, note, now))
            }
        }
    }

    fn pause(&mut self, job: &Job, note: String, now: Timestamp) -> Box<PausedJob> {
        let change = job.paused_for(note.clone(), now);
        self.put_job(Job::clone(&change.after));
        self.effects.paused = Some(Box::new(job.clone()));
        let marked = self.change(&change);
        Box::new(PausedJob {
            key: job.key.clone(),
            note,
            marked: !marked.is_empty(),
        })
    }
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
