//! Slots that did not run: each was skipped by somebody, for a reason that held at that moment.

use std::collections::BTreeMap;
use std::time::Duration;

use model::policy::Living;
use model::{
    CatchUpPolicy, Job, JobId, JobState, Overlap, Reason, Run, RunId, RunState, Slot, Timestamp,
    limits,
};

use super::End;
use crate::record::{Cause, Passed};

/// How far a node's idea of the store's time may be off.
const DOUBT: Duration = Duration::from_millis(500);
/// How long after a step there is no saying which of two moments by the wall clock came first.
const STEP_DOUBT: Duration = Duration::from_secs(180);
/// How long a step of the store's clock excuses decisions by the time before it.
const STEP_FELT: Duration = Duration::from_secs(10);

/// The slots of an entry, first and last.
fn span(run: &Run) -> Option<(Slot, Slot)> {
    let slot = run.slot?;
    Some(
        run.stretch
            .map_or((slot, slot), |stretch| (stretch.first, stretch.last)),
    )
}

/// Whether a slot may be skipped as missed at a moment: it is old enough, and the job does not want it.
fn is_missed(job: &Job, last: Slot, at: Timestamp) -> Result<(), &'static str> {
    let age = |slot: Slot| at.since(job.due_at(slot));
    if age(last) + DOUBT < limits::LATE_MAX {
        return Err("it is only late");
    }
    let catch_up = &job.def.catch_up;
    let keep = match catch_up.policy {
        CatchUpPolicy::None => return Ok(()),
        CatchUpPolicy::Latest => 1,
        CatchUpPolicy::All => catch_up.max,
    };
    if age(last) + DOUBT > catch_up.window {
        return Ok(());
    }
    if job.def.schedule.after_completion() {
        return Err("it is the only one, and within the window");
    }
    let mut newer = 0;
    let mut next = job.def.schedule.next_after(last.0);
    while let Some(slot) = next.filter(|slot| age(*slot) + DOUBT >= limits::LATE_MAX) {
        newer += u32::from(job.def.schedule.keeps(slot));
        if newer >= keep {
            return Ok(());
        }
        next = job.def.schedule.next_after(slot.0);
    }
    Err("it is among those that are caught up with")
}

/// Why a node may not have passed slots over, if so.
fn blame_node(passed: &Passed, living: Living) -> Result<(), &'static str> {
    let job = &passed.job;
    match passed.skip.reason {
        Reason::Missed => is_missed(job, passed.skip.slots.last, passed.now),
        Reason::Calendar if !job.def.schedule.calendars.is_empty() => Ok(()),
        Reason::Overlap => match job.def.overlap {
            // Also when the run in its way has ended since: another check looks for it.
            Overlap::Skip => Ok(()),
            Overlap::QueueOne if living.waiting > 0 => Ok(()),
            Overlap::QueueOne
            | Overlap::QueueAll { .. }
            | Overlap::CancelRunning
            | Overlap::Allow => Err("no run was in its way"),
        },
        Reason::QueueFull => match job.def.overlap {
            Overlap::QueueAll { max } if living.waiting >= max => Ok(()),
            Overlap::Skip
            | Overlap::QueueOne
            | Overlap::QueueAll { .. }
            | Overlap::CancelRunning
            | Overlap::Allow => Err("there was room to wait"),
        },
        Reason::Overload if living.waiting > 0 => Ok(()),
        Reason::Overload => Err("nothing waited for its turn"),
        Reason::Calendar
        | Reason::Paused
        | Reason::AttemptsSpent
        | Reason::Refused
        | Reason::Lost
        | Reason::Poison
        | Reason::Requested
        | Reason::Replaced
        | Reason::JobDeleted
        | Reason::Unreadable
        | Reason::Invalid
        | Reason::Quota => Err("no node gives that reason"),
    }
}

/// Why a change may not have passed slots over, if so. What was overdue is dropped by it, and so explained.
fn blame_change(passed: &Passed, from: JobState, to: JobState) -> Result<(), &'static str> {
    let due = passed.skip.slots.last.0 <= passed.now.plus(DOUBT);
    let holds = match passed.skip.reason {
        Reason::Missed => from == JobState::Active && due,
        Reason::Paused => from == JobState::Paused || to == JobState::Paused,
        Reason::JobDeleted => to == JobState::Deleted,
        Reason::Invalid => from == JobState::Invalid,
        Reason::Calendar => !passed.job.def.schedule.calendars.is_empty(),
        Reason::Overlap
        | Reason::Overload
        | Reason::QueueFull
        | Reason::AttemptsSpent
        | Reason::Refused
        | Reason::Lost
        | Reason::Poison
        | Reason::Requested
        | Reason::Replaced
        | Reason::Unreadable
        | Reason::Quota => false,
    };
    if holds {
        Ok(())
    } else {
        Err("the change gives no such reason")
    }
}

fn blame(passed: &Passed) -> Result<(), &'static str> {
    match passed.cause {
        Cause::Fire { living, .. } => blame_node(passed, living),
        Cause::Change { from, to } => blame_change(passed, from, to),
    }
}

impl End<'_> {
    /// Whether the store's clock was stepped just before a moment.
    fn is_unaware(&self, at: Duration) -> bool {
        let felt = |step: &Duration| (*step..*step + STEP_FELT).contains(&at);
        self.world.steps.iter().any(felt)
    }

    /// Whoever passes a slot over has a reason that holds: one that is due while somebody is well enough to fire it
    /// has a run.
    pub(super) fn skips_have_an_excuse(&mut self) {
        let passed = self.world.ledger.book().record.passed.clone();
        for passed in &passed {
            let Err(why) = blame(passed) else { continue };
            if !self.is_unaware(passed.at) {
                let (job, skip) = (passed.job.id, &passed.skip);
                let (cause, at) = (passed.cause, passed.at);
                let seen = format!("{why}: {skip:?} of {job} by {cause:?} at {at:?}");
                self.broken("skips_have_an_excuse", seen);
            }
        }
        let mut recorded: BTreeMap<JobId, Vec<&Passed>> = BTreeMap::new();
        for passed in &passed {
            recorded.entry(passed.job.id).or_default().push(passed);
        }
        let mut unrecorded = Vec::new();
        for run in &self.runs {
            let skipped = run.state == RunState::Skipped;
            let Some((first, last)) = span(run).filter(|_| skipped) else {
                continue;
            };
            let covers = |passed: &&Passed| {
                let slots = passed.skip.slots;
                slots.first <= first && last <= slots.last && run.reason == Some(passed.skip.reason)
            };
            let recorded = recorded
                .get(&run.job)
                .map(Vec::as_slice)
                .unwrap_or_default();
            if !recorded.iter().copied().any(|passed| covers(&passed)) {
                unrecorded.push(format!("nobody skipped {run:?}"));
            }
        }
        for seen in unrecorded {
            self.broken("skips_have_an_excuse", seen);
        }
    }

    /// A slot is no overlap unless a run of its job was under way when it was due. Which of them still stands is what
    /// history says: an entry that was taken back does not count.
    pub(super) fn overlap_has_a_run_that_counts(&mut self) {
        let mut begun: BTreeMap<RunId, Duration> = BTreeMap::new();
        for delivery in &self.deliveries {
            begun.entry(delivery.run).or_insert(delivery.from);
        }
        // One that waits for its origin has its turn.
        for (run, at) in &self.world.ledger.book().waited {
            let from = begun.entry(*run).or_insert(*at);
            *from = (*from).min(*at);
        }
        let gone = self.world.ledger.book().gone.clone();
        let passed = self.world.ledger.book().record.passed.clone();
        let of_overlap = passed
            .iter()
            .filter(|passed| passed.skip.reason == Reason::Overlap);
        for passed in of_overlap {
            let due_at = passed.job.due_at(passed.skip.slots.first);
            let due = passed.at.saturating_sub(passed.now.since(due_at));
            let counts = |run: &&Run| {
                let first = begun.get(&run.id).copied();
                let began = first.is_some_and(|from| from < due + DOUBT);
                let over = gone.get(&run.id).is_some_and(|at| *at + DOUBT < due);
                run.job == passed.job.id && began && !over
            };
            // By a clock that was stepped since the run began there is no saying which came first.
            let since = passed.at.saturating_sub(STEP_DOUBT);
            let stepped = |step: &Duration| (since..=passed.at).contains(step);
            let stepped = self.world.steps.iter().any(stepped);
            if !stepped && !self.runs.iter().any(|run| counts(&run)) {
                let (job, skip) = (passed.job.id, &passed.skip);
                let seen = format!("{skip:?} of {job}, due at {due_at}, at {:?}", passed.at);
                self.broken("overlap_has_a_run_that_counts", seen);
            }
        }
    }
}
