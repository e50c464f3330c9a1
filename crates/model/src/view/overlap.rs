//! Overlap: which runs count against a slot, and what becomes of the slot then.
//!
//! A run counts against a slot if it was dispatched before the slot's due time and had not ended by then. A delay that
//! is the system's own is no overlap: a run that started late is given as much time more before it counts, and a run
//! that was not dispatched by then does not count at all. If one counts, the job's policy decides. If only others live,
//! the slot waits for its turn.

use std::time::Duration;

use super::{Firing, View};
use crate::id::{PresenceId, RunId};
use crate::job::Job;
use crate::limits;
use crate::policy::{Admission, Living, Overlap};
use crate::run::{Reason, Run, RunKind};
use crate::time::{Slot, Timestamp};

/// What the firing node knows of a run that it holds, when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub run: RunId,
    /// None: it waits for its time or its turn.
    pub dispatched_at: Option<Timestamp>,
    /// When the run ended, if it has for good; its end is on the way to the store.
    pub ended_at: Option<Timestamp>,
}

/// How a run stands to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    /// It was under way when the slot was due.
    Counts,
    /// It lives, and was not dispatched by then, or its end is on its way to the store. Until that is written it may still be
    /// lost and tried again.
    Other,
    /// Not known before this moment.
    Unknown(Timestamp),
}

/// How much longer than the slot's due time a run may be under way before it counts: as long as it started late.
pub fn grace(dispatched_at: Timestamp, due_at: Timestamp) -> Duration {
    dispatched_at.since(due_at).min(limits::GRACE_MAX)
}

/// What becomes of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now(Admission),
    /// Nothing is decided; to be fired again then, or when a run of the job ends.
    Early(Timestamp),
}

impl View {
    /// What becomes of a slot's run at the firing's moment.
    pub(super) fn overlap(&self, job: &Job, run: &Run, firing: &Firing, by: PresenceId) -> Turn {
        let policy = job.def.overlap;
        if policy == Overlap::Allow {
            return Turn::Now(Admission::Start);
        }
        let (due_at, now) = (run.due_at, firing.decision.at);
        let mut living = Living::default();
        let (mut counts, mut unknown) = (false, None::<Timestamp>);
        for other in self.live.values() {
            match against(job, other, due_at, firing, by) {
                Against::Counts => counts = true,
                Against::Other => {}
                Against::Unknown(at) => unknown = Some(unknown.map_or(at, |it| it.min(at))),
            }
            living.moving += u32::from(!other.waits_for_turn());
            living.waiting += u32::from(other.waits_for_turn());
        }
        let known = firing.knows.iter().filter(|known| {
            let live = self.live.get(&known.run);
            live.is_some_and(|live| counted(job, live, known, due_at))
        });
        let counted = known.count() > 0 || self.past_counts(job, due_at, now);
        if policy == Overlap::Skip && counted {
            return Turn::Now(Admission::Skip(Reason::Overlap));
        }
        if living == Living::default() {
            return Turn::Now(Admission::Start);
        }
        let admission = policy.admit(living);
        if counts {
            return Turn::Now(admission);
        }
        if let Some(at) = unknown {
            return if admission == Admission::Wait {
                Turn::Now(Admission::Wait)
            } else {
                Turn::Early(at)
            };
        }
        if due_at < now.minus(limits::LATE_MAX) {
            // Missed slots run one after another; this one stays behind the job's cursor until it is its turn. The end of a
            // run that another node holds is not heard of.
            let ours = |other: &Run| other.claim == Some(by);
            let again = if self.live.values().any(Run::waits_outside) {
                // That may take as long as its target is down.
                limits::LATE_MAX
            } else if self.live.values().any(ours) {
                limits::SLEEP_MAX
            } else {
                limits::EARLY_AGAIN
            };
            return Turn::Early(now.plus(again));
        }
        Turn::Now(self.take_turn(job, due_at))
    }

    /// A late slot waits behind the others, as long as these are not too many.
    fn take_turn(&self, job: &Job, due_at: Timestamp) -> Admission {
        let waiting = self.live.values().filter(|run| run.waits_for_turn());
        let first = waiting.map(|run| first_due(job, run)).min();
        if first.is_none_or(|first| due_at.since(first) <= limits::LATE_MAX) {
            Admission::Wait
        } else {
            Admission::Skip(Reason::Overload)
        }
    }

    /// Whether a run that has ended since was under way when the slot was due.
    fn past_counts(&self, job: &Job, due_at: Timestamp, now: Timestamp) -> bool {
        // What ended much later than now was written by a clock that has gone back since.
        let past = self.history.past.iter();
        let mut past = past.filter(|past| past.settled_at <= now.plus(limits::SLEEP_MAX));
        past.any(|past| {
            let due = match past.kind {
                RunKind::Slot => job.due_at(Slot(past.id.at())),
                RunKind::Manual | RunKind::Replay => past.id.at(),
            };
            let until = due_at.plus(grace(past.dispatched_at, due));
            past.dispatched_at < due_at && past.settled_at > until
        })
    }
}

/// Whether a run whose end is on its way was under way when the slot was due.
fn counted(job: &Job, run: &Run, known: &Known, due_at: Timestamp) -> bool {
    let Some((dispatched_at, ended_at)) = dispatched(run, Some(known)).zip(known.ended_at) else {
        return false;
    };
    let until = due_at.plus(grace(dispatched_at, first_due(job, run)));
    dispatched_at < due_at && ended_at > until
}

/// When the run was first dispatched, as far as is known.
fn dispatched(run: &Run, known: Option<&Known>) -> Option<Timestamp> {
    let known = known.and_then(|known| known.dispatched_at);
    match (run.dispatched_at, known) {
        (Some(row), Some(known)) => Some(row.min(known)),
        // One whose first attempt was lost may have been. Then the slot waits for it, and is not lost for a crash.
        (row, known) => row.or(known),
    }
}

fn against(job: &Job, run: &Run, due_at: Timestamp, firing: &Firing, by: PresenceId) -> Against {
    let now = firing.decision.at;
    let known = firing.knows.iter().find(|known| known.run == run.id);
    if known.is_some_and(|known| known.ended_at.is_some()) && now >= due_at {
        return Against::Other;
    }
    if let Some(dispatched_at) = dispatched(run, known) {
        // One that another node holds may have ended before, and its end is on the way.
        let elsewhere = run.claim.is_some_and(|holder| holder != by);
        let written = if elsewhere {
            limits::END_WRITTEN_AFTER
        } else {
            Duration::ZERO
        };
        let until = due_at.plus(grace(dispatched_at, first_due(job, run)) + written);
        return if dispatched_at >= due_at {
            Against::Other
        } else if now < until {
            Against::Unknown(until)
        } else {
            Against::Counts
        };
    }
    if now < due_at {
        // It may be dispatched before the slot is due.
        return Against::Unknown(due_at);
    }
    if run.waits_outside() {
        // Its target keeps it from starting, which is no delay of the system's own. Since when it waits is not known: for a late
        // slot that may be since after its due time.
        return if now.since(due_at) <= limits::ON_TIME_MAX {
            Against::Counts
        } else {
            Against::Other
        };
    }
    // Had another node dispatched it by then, it would have marked it since.
    let marked_by = due_at.plus(limits::RUNNING_MARK_AFTER + limits::BEAT_EVERY);
    match run.claim {
        Some(holder) if holder != by && now < marked_by => {
            Against::Unknown(now.plus(limits::EARLY_AGAIN))
        }
        Some(_) | None => Against::Other,
    }
}

/// When the run was due at first: a retry is due again.
fn first_due(job: &Job, run: &Run) -> Timestamp {
    match (run.kind, run.slot) {
        (RunKind::Slot, Some(slot)) => job.due_at(slot),
        (RunKind::Slot | RunKind::Manual | RunKind::Replay, _) => run.id.at(),
    }
}
