//! What a job wants of its runs: that they start and finish within some time. Nothing is stopped by it; runs that do not
//! are marked.

use std::time::Duration;

use crate::job::Job;
use crate::run::{Run, RunKind};
use crate::time::Timestamp;

/// What is wrong with an attempt, by the bounds of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    pub late_by: Option<Duration>,
    pub long_by: Option<Duration>,
}

impl Job {
    /// When a run of this job was to start: its slot with the job's spread, or the moment somebody asked for it. A retry
    /// is due later, and that makes the run no less late.
    pub fn wanted_at(&self, run: &Run) -> Timestamp {
        match (run.kind, run.slot) {
            (RunKind::Slot, Some(slot)) => self.due_at(slot),
            (RunKind::Slot | RunKind::Manual | RunKind::Replay, _) => run.id.at(),
        }
    }

    /// By how much a run that is dispatched for the first time starts too late.
    pub fn late_by(&self, run: &Run, dispatched_at: Timestamp) -> Option<Duration> {
        let is_first = run.dispatched_at.is_none() && run.late_by().is_none();
        self.start_beyond(run, dispatched_at).filter(|_| is_first)
    }

    fn start_beyond(&self, run: &Run, dispatched_at: Timestamp) -> Option<Duration> {
        let bound = self.def.start_within?;
        beyond(bound, dispatched_at.since(self.wanted_at(run)))
    }

    /// By how much a run is taking too long, whose attempt was dispatched then: from the first dispatch to `now`.
    pub fn long_by(&self, run: &Run, dispatched_at: Timestamp, now: Timestamp) -> Option<Duration> {
        let bound = self.def.finish_within?;
        beyond(bound, now.since(run.dispatched_at.unwrap_or(dispatched_at)))
    }

    /// Both, of an attempt that has ended.
    pub fn marks(&self, run: &Run, dispatched_at: Timestamp, ended_at: Timestamp) -> Marks {
        Marks {
            late_by: self.late_by(run, dispatched_at),
            long_by: self.long_by(run, dispatched_at, ended_at),
        }
    }

    /// Both, of a run that is under way and has been since its row says.
    pub fn marks_so_far(&self, run: &Run, now: Timestamp) -> Marks {
        let Some(dispatched_at) = run.dispatched_at else {
            return Marks::default();
        };
        let late_by = || self.start_beyond(run, dispatched_at);
        Marks {
            late_by: run.late_by().or_else(late_by),
            long_by: self.long_by(run, dispatched_at, now),
        }
    }
}

fn beyond(bound: Duration, took: Duration) -> Option<Duration> {
    took.checked_sub(bound).filter(|over| !over.is_zero())
}

impl Run {
    /// By how much it started after its job's `start_within`.
    pub fn late_by(&self) -> Option<Duration> {
        self.attempts.iter().find_map(|attempt| attempt.late_by)
    }

    /// By how much it took longer than its job's `finish_within`, as of its last attempt's end.
    pub fn long_by(&self) -> Option<Duration> {
        self.attempts.last()?.long_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::{Attempt, AttemptNo, Report};
    use crate::id::{JobId, RunId, TenantId};
    use crate::job::Definition;
    use crate::schedule::Schedule;
    use crate::target::Target;
    use crate::time::Slot;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn at(seconds: u64) -> Timestamp {
        START.plus(Duration::from_secs(seconds))
    }

    fn job(start: Option<u64>, finish: Option<u64>) -> Job {
        let schedule = Schedule::from(Slot(START));
        let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
        def.start_within = start.map(Duration::from_secs);
        def.finish_within = finish.map(Duration::from_secs);
        Job::new(
            JobId::new(START, [1; 10]),
            TenantId::DEFAULT,
            None,
            def,
            START,
        )
    }

    #[track_caller]
    fn check(job: &Job, run: &Run, from: u64, to: u64, expected: (Option<u64>, Option<u64>)) {
        let Marks { late_by, long_by } = job.marks(run, at(from), at(to));
        let found = (late_by, long_by);
        let span = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        assert_eq!(found, (span(expected.0), span(expected.1)));
    }

    #[test]
    fn a_run_is_marked_only_beyond_its_bounds() {
        let bounded = job(Some(10), Some(60));
        let run = Run::of_slot(&bounded, Slot(START));
        check(&bounded, &run, 0, 0, (None, None));
        check(&bounded, &run, 10, 70, (None, None));
        check(&bounded, &run, 13, 80, (Some(3), Some(7)));
        check(&job(None, None), &run, 99, 9_999, (None, None));
    }

    #[test]
    fn a_retry_goes_on_with_its_run() {
        let bounded = job(Some(10), Some(60));
        let first = Attempt::new(AttemptNo::FIRST, Some(at(0)), at(1), Report::failed("no"));
        let run = Run {
            dispatched_at: Some(at(0)),
            due_at: at(100),
            attempt: AttemptNo(2),
            attempts: vec![first],
            ..Run::of_slot(&bounded, Slot(START))
        };
        check(&bounded, &run, 100, 101, (None, Some(41)));
        let never_left = Run {
            dispatched_at: None,
            attempts: Vec::new(),
            ..run
        };
        check(&bounded, &never_left, 100, 101, (Some(90), None));
    }

    #[test]
    fn a_manual_run_is_wanted_when_it_was_requested() {
        let bounded = job(Some(10), None);
        let run = Run {
            id: RunId::of_request(bounded.id, at(500), 7),
            kind: RunKind::Replay,
            ..Run::of_slot(&bounded, Slot(START))
        };
        check(&bounded, &run, 505, 600, (None, None));
        check(&bounded, &run, 511, 600, (Some(1), None));
    }
}
