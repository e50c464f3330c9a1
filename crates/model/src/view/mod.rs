//! The decision core: what becomes of a firing, a claim, a settlement, a withdrawal, a change, a start, a queued run or a cancel.
//!
//! A store loads a [`View`] of one job, has it decide, and writes the [`Effects`]; nothing else. A decision changes
//! the view as it goes, so several decisions about one job may follow each other on the same view before its effects
//! are written.
//!
//! ```text
//!   store: lock, load ──▶ View ──fire · settle · withdraw · change · start · cancel · report──▶ answer
//!                           └────────────────────────────▶ Effects ──▶ store: write, commit
//! ```
//!
//! What always holds: a view has the job as it stands and all of its living runs; of history it has as much as the
//! decision at hand needs, which [`Needs`] names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::handed::Handed;
use crate::id::{PresenceId, RunId};
use crate::job::Job;
use crate::policy::Living;
use crate::run::{Mark, Reason, Run, RunEvent, RunKind, RunState, Skip, Stretch};
use crate::schedule::{Kind, Schedule};
use crate::time::{Slot, Timestamp};

mod change;
mod claim;
mod failures;
mod fire;
mod handed;
mod overlap;
mod queue;
mod settle;
mod start;
mod wake;
mod withdraw;

pub use change::{JobChange, RunsOfChange};
pub use claim::{Grant, claim};
pub use failures::PausedJob;
pub use fire::{Fired, Firing};
pub use handed::{
    Appended, Beaten, EndedHanded, HandOver, HandedChange, HandedEnd, HandedOver, Heartbeat, Lapse,
    Reported,
};
pub use overlap::{Known, grace};
pub use queue::{QueueNeeds, QueueRun, Queued};
pub use settle::{Settled, Settlement};
pub use start::{Cancelled, StartRun, Started};
pub use wake::{Woken, wake};
pub use withdraw::Withdrawal;

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// What a decision sees of one job.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The job as it stands; none if it is gone, cannot be read, or does not matter to the decision.
    pub job: Option<Job>,
    /// Why the job cannot be read. One that rests is then parked when its run ends.
    pub unreadable: Option<String>,
    /// Its living runs.
    pub live: BTreeMap<RunId, Run>,
    /// What is kept of those that are handed over, as far as the decision is about them.
    pub handed: BTreeMap<RunId, Handed>,
    pub history: History,
    /// What is to be written.
    pub effects: Effects,
}

/// What history says about the job, as far as the decision may query it.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Slots whose runs have ended.
    pub ran: BTreeSet<Slot>,
    /// Skip records that reach beyond the earliest slot that may be decided again, by their ids.
    pub skips: BTreeMap<RunId, Stretch>,
    /// What ended under the name in question: that of a firing, of a run asked for or of one to be cancelled.
    pub named: Option<(RunState, Option<Reason>)>,
    /// Runs that were under way at the moment in question and have ended since.
    pub past: Vec<Past>,
    /// Which of the names in question have ended.
    pub ended: BTreeSet<RunId>,
    /// What became of the slots in question that live no more: runs of slots, and skip records.
    pub slots: BTreeMap<RunId, Run>,
    /// The run that the outside says something of, if it has ended.
    pub outside: Option<Box<Run>>,
}

/// A run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub id: RunId,
    pub kind: RunKind,
    pub dispatched_at: Timestamp,
    pub settled_at: Timestamp,
}

/// What a decision writes. Runs are whole: a store picks the columns that it keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// The job, standing where it stands now.
    pub job: Option<Job>,
    /// The job was paused by the system: as it was before. Its version and its note are written besides.
    pub paused: Option<Box<Job>>,
    /// The job cannot be planned any more: why, and when that was found.
    pub park: Option<(String, Timestamp)>,
    /// Runs that come to life.
    pub insert: Vec<Run>,
    /// Living runs that go on otherwise.
    pub change: BTreeMap<RunId, Changed>,
    /// Living runs that are gone, as they were.
    pub remove: Vec<Run>,
    /// Entries of history: ended runs and skip records.
    pub history: BTreeMap<RunId, Run>,
    /// Skip records that are deleted, or shortened to what is left.
    pub skips: BTreeMap<RunId, Option<Stretch>>,
    /// What becomes of what is kept of handed-over attempts.
    pub handed: BTreeMap<RunId, HandedChange>,
}

impl Effects {
    /// How many runs that nobody held end with them.
    pub fn runs_cancelled(&self) -> u64 {
        let ended = self.history.values();
        ended.filter(|run| run.state == RunState::Cancelled).count() as u64
    }
}

/// A living run as it was read, and as it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub was: Run,
    pub now: Run,
}

/// The slots of a job whose answers in history a decision may query: from the first moment up to but not including
/// the second.
pub type Span = (Timestamp, Timestamp);

/// What of history has to be read before a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Slots whose runs have ended, in this span.
    pub ran: Option<Span>,
    /// Skip records from the first moment of that span on.
    pub skips: bool,
    /// What ended under this name.
    pub named: Option<RunId>,
    /// Runs that were dispatched before this moment and ended after it, among the newest `PAST_MAX` whose ids lie in the day
    /// before it. Skip records are none. A bound on what is read, not on what is found: it usually finds nothing.
    pub past: Option<Timestamp>,
}

/// Ended runs that a decision looks at.
pub const PAST_MAX: usize = 8;
/// How far back they are looked for, by their ids.
pub const PAST_BACK: Duration = Duration::from_secs(24 * 3_600);

impl View {
    pub fn new(job: Job, live: impl IntoIterator<Item = Run>) -> Self {
        Self {
            job: Some(job),
            live: live.into_iter().map(|run| (run.id, run)).collect(),
            ..Self::default()
        }
    }

    pub fn living(&self) -> Living {
        let mut living = Living::default();
        for run in self.live.values() {
            if run.waits_for_turn() {
                living.waiting += 1;
            } else {
                living.moving += 1;
            }
        }
        living
    }

    pub fn has_slot_run(&self) -> bool {
        self.live.values().any(|run| run.kind == RunKind::Slot)
    }

    /// Whether taking back any of its living runs may query history, and for which slots.
    pub fn needs_to_take_back(&self) -> Needs {
        let slots = || self.live.values().filter_map(|run| run.slot);
        let Some(job) = &self.job else {
            return Needs::default();
        };
        let from = slots().map(|slot| job.decided_before(slot)).min();
        Needs {
            ran: from.zip(slots().max().map(|slot| slot.0)),
            skips: true,
            ..Needs::default()
        }
    }

    /// The slots from `first` up to but not including `end` that have a run, live or ended, oldest first.
    fn ran(&self, first: Timestamp, end: Timestamp) -> Vec<Slot> {
        let live = self.live.values().filter(|run| run.kind == RunKind::Slot);
        // Those that end with this very decision are in neither place yet.
        let ended = self.effects.history.values();
        let ended = ended.filter(|run| run.kind == RunKind::Slot && run.state != RunState::Skipped);
        let all = live.chain(ended).filter_map(|run| run.slot);
        let all = all.chain(self.history.ran.iter().copied());
        let within: BTreeSet<Slot> = all.filter(|it| it.0 >= first && it.0 < end).collect();
        within.into_iter().collect()
    }

    fn put_job(&mut self, job: Job) {
        self.effects.job = Some(job.clone());
        self.job = Some(job);
    }

    fn insert_run(&mut self, run: Run) {
        self.effects.insert.push(run.clone());
        self.live.insert(run.id, run);
    }

    fn change_run(&mut self, now: Run) {
        let Some(was) = self.live.insert(now.id, now.clone()) else {
            return;
        };
        if let Some(inserted) = self.effects.insert.iter_mut().find(|run| run.id == now.id) {
            *inserted = now;
            return;
        }
        let changed = self.effects.change.entry(now.id);
        changed
            .and_modify(|changed| changed.now = now.clone())
            .or_insert(Changed { was, now });
    }

    fn remove_run(&mut self, id: RunId) -> Option<Run> {
        let run = self.live.remove(&id)?;
        let before = self.effects.insert.len();
        self.effects.insert.retain(|inserted| inserted.id != id);
        if self.effects.insert.len() == before {
            let changed = self.effects.change.remove(&id);
            let was = changed.map_or_else(|| run.clone(), |changed| changed.was);
            self.effects.remove.push(was);
        }
        if run.claim == Some(PresenceId::OUTSIDE) {
            self.effects.handed.insert(id, HandedChange::Gone);
        }
        Some(run)
    }

    fn record(&mut self, entry: Run) {
        self.effects.history.insert(entry.id, entry);
    }

    /// Records slots of a schedule that will not run, except for those that have a run.
    fn record_skips(&mut self, job: &Job, of: &Schedule, skips: &[Skip], at: Timestamp) {
        for skip in skips {
            let end = skip.slots.last.0.plus(MILLISECOND);
            let ran = self.ran(skip.slots.first.0, end);
            for entry in Run::skipped(job, skip, at).around(of, &ran) {
                self.record(entry);
            }
        }
    }

    /// Ends a run before anyone took its next attempt, and keeps it as cancelled.
    fn cancel(&mut self, id: RunId, reason: Reason, at: Timestamp) -> Option<Run> {
        let state = self.live.get(&id)?.state.after(RunEvent::Cancelled).ok()?;
        let run = self.remove_run(id)?;
        let ended = Run {
            state,
            reason: Some(reason),
            settled_at: Some(at),
            trace: None,
            claim: None,
            mark: None,
            wait: None,
            woken_at: None,
            ..run
        };
        self.record(ended.clone());
        Some(ended)
    }

    /// Marks a run that someone holds. A mark to end it is never weakened to one to take it back.
    fn mark(&mut self, id: RunId, mark: Mark) {
        let Some(run) = self.live.get(&id) else {
            return;
        };
        let mark = match (run.mark, mark) {
            (Some(Mark::Cancel(reason)), Mark::TakeBack | Mark::TooLate) => Mark::Cancel(reason),
            (Some(Mark::Cancel(_)), Mark::Cancel(_))
            | (None | Some(Mark::TakeBack | Mark::TooLate), _) => mark,
        };
        self.change_run(Run {
            mark: Some(mark),
            ..run.clone()
        });
    }

    /// Marks a run that someone holds to be ended. Whoever has it outside hears of it with the next heartbeat.
    fn mark_cancelled(&mut self, id: RunId, reason: Reason, now: Timestamp) {
        let held_by = self.live.get(&id).and_then(|run| run.claim);
        if held_by == Some(PresenceId::OUTSIDE) {
            self.effects.handed.insert(id, HandedChange::Cancel(now));
        }
        self.mark(id, Mark::Cancel(reason));
    }

    /// Takes a run back as if it had never been fired: its job decides the slot again. A job that cannot be read
    /// decides nothing, and is or will be parked.
    fn take_back(&mut self, id: RunId, now: Timestamp) {
        let Some(run) = self.remove_run(id) else {
            return;
        };
        if let (Some(slot), Some(job)) = (run.slot, self.job.clone()) {
            let own = job.def.schedule.after_completion() || job.has_slot(slot);
            if slot.0 <= job.updated_at && !own {
                return self.record_orphan(job, slot, now);
            }
            let first = job.decided_before(slot).plus(MILLISECOND);
            let ran = self.ran(first, slot.0);
            let job = job.taken_back(slot, now, &ran);
            self.delete_skips(&job);
            self.put_job(job);
        }
    }

    /// A slot of a definition that another one has replaced since, after the slot's own time: nobody decides it again.
    fn record_orphan(&mut self, mut job: Job, slot: Slot, now: Timestamp) {
        let skip = Skip {
            slots: Stretch::one(slot),
            reason: Reason::Missed,
            note: Some("taken back for an edit, and edited again".to_owned()),
            actor: Arc::from("punctual"),
        };
        self.record(Run::skipped(&job, &skip, now));
        job.runs_made = job.runs_made.saturating_sub(1);
        self.put_job(job);
    }

    /// Slots after the job's last decided one are decided again: what was recorded of them is deleted.
    fn delete_skips(&mut self, job: &Job) {
        let effects = &mut self.effects;
        self.history.skips.retain(|id, slots| {
            let left = job.still_recorded(*slots);
            if left != Some(*slots) {
                effects.skips.insert(*id, left);
            }
            *slots = left.unwrap_or(*slots);
            left.is_some()
        });
    }

    /// What the end of a run at `ended_at` means for its job: the oldest waiting run may go when no other moves, and a
    /// job that rests gets its next slot when no slot's run is left.
    fn free(&mut self, ended_at: Timestamp) -> (Option<RunId>, Option<Timestamp>) {
        (self.free_waiting(), self.wake(ended_at))
    }

    fn free_waiting(&mut self) -> Option<RunId> {
        if self.living().moving > 0 {
            return None;
        }
        let run = self.live.values().find(|run| run.waits_for_turn())?.clone();
        let id = run.id;
        self.change_run(Run { wait: None, ..run });
        Some(id)
    }

    /// A job that rests gets its next slot when no run of its slots is left.
    fn wake(&mut self, ended_at: Timestamp) -> Option<Timestamp> {
        if self.has_slot_run() {
            return None;
        }
        if let Some(why) = self.unreadable.clone() {
            self.effects.park = Some((why, ended_at));
            return None;
        }
        let job = self.job.as_ref().filter(|job| job.is_resting())?;
        if let Kind::Broken(broken) = &job.def.schedule.kind {
            // It is not over, but nobody can say when it goes on.
            self.effects.park = Some((broken.error.clone(), ended_at));
            return None;
        }
        let rested = job.rested(ended_at);
        let due_at = rested.next_due_at();
        self.put_job(rested);
        due_at
    }

    /// A job whose next slot is set by the end of its run rests while one lives, whatever was done to it.
    fn rest(&mut self) {
        if !self.has_slot_run() {
            return;
        }
        if let Some(job) = &self.job {
            let resting = job.resting();
            if resting.next_slot != job.next_slot {
                self.put_job(resting);
            }
        }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
