//! Start and cancel: runs that people ask for, and those they want ended.

use super::View;
use super::fire::Entry;
use crate::id::{RunId, TenantId};
use crate::job::{Job, JobState};
use crate::policy::Admission;
use crate::run::{Reason, Run, RunState};
use crate::time::Timestamp;
use crate::wait::Wait;

#[derive(Debug, Clone, PartialEq)]
pub struct StartRun {
    pub run: Run,
    /// Starts whatever else is alive.
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    Ready,
    Waiting,
    /// The job's overlap policy says no.
    Refused(Reason),
    /// The very same run was started before.
    Repeated,
    /// The job is not there, or deleted.
    Missing,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cancelled {
    /// It has ended; this is its history entry.
    Done(Box<Run>),
    /// It is marked for its holder.
    Marked,
    /// It had ended before.
    Ended(RunState),
    Missing,
}

impl View {
    /// A manual run or a replay.
    pub fn start(&mut self, start: &StartRun) -> Started {
        let requested = &start.run;
        let theirs = |state, tenant| state != JobState::Deleted && tenant == requested.tenant;
        let Some(job) = self
            .job
            .as_ref()
            .filter(|job| theirs(job.state, job.tenant))
        else {
            return Started::Missing;
        };
        if self.live.contains_key(&requested.id) || self.history.named.is_some() {
            return Started::Repeated;
        }
        let overlap = if start.force {
            Admission::Start
        } else {
            job.def.overlap.admit(self.living())
        };
        let entry = self.admit(overlap, requested.due_at);
        // It may have replaced a slot's run that its job rested for.
        self.wake(requested.due_at);
        let (wait, started) = match entry {
            Entry::Moving => (None, Started::Ready),
            Entry::Waiting => (Some(Wait::TURN), Started::Waiting),
            Entry::Not(reason) => return Started::Refused(reason),
        };
        if let Some(job) = &self.job {
            let manual_runs = job.manual_runs.saturating_add(1);
            self.put_job(Job {
                manual_runs,
                ..job.clone()
            });
        }
        self.insert_run(Run {
            state: RunState::Ready,
            claim: None,
            mark: None,
            wait,
            woken_at: None,
            ..requested.clone()
        });
        started
    }

    /// Ends a run that nobody holds; marks one that is held. What ended under its name is the tenant's.
    pub fn cancel_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Cancelled {
        let Some(run) = self.live.get(&id) else {
            let ended = self.history.named;
            return ended.map_or(Cancelled::Missing, |(state, _)| Cancelled::Ended(state));
        };
        if run.tenant != tenant {
            return Cancelled::Missing;
        }
        if run.claim.is_some() {
            self.mark_cancelled(id, Reason::Requested, now);
            return Cancelled::Marked;
        }
        let Some(ended) = self.cancel(id, Reason::Requested, now) else {
            return Cancelled::Missing;
        };
        self.free(now);
        Cancelled::Done(Box::new(ended))
    }

    /// Ends a run that nobody can ever work on: it, or its job, cannot be read.
    pub fn bury(&mut self, id: RunId, now: Timestamp) {
        let Some(run) = self.remove_run(id) else {
            return;
        };
        self.record(Run {
            state: RunState::Dead,
            reason: Some(Reason::Unreadable),
            settled_at: Some(now),
            trace: None,
            claim: None,
            mark: None,
            ..run
        });
        self.free(now);
    }
}
