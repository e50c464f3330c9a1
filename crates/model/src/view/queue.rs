//! Queue: runs that somebody wants many of, one after another. A replay has a name of its own; the run of a slot that never ran
//! has the slot's, and takes the place of what was recorded of it.
//!
//! What always holds: a slot that is not decided yet is left to fire, so that nobody decides it twice; and no slot is left
//! without a run or a record ([decision 10](docs/decisions/0010-backfill.md)).

use std::collections::BTreeSet;

use super::{MILLISECOND, Span, View};
use crate::id::{ReplayId, RunId};
use crate::job::{Job, JobState};
use crate::limits;
use crate::policy::Overlap;
use crate::run::{Run, RunKind, RunState};
use crate::time::{Slot, Timestamp};
use crate::wait::Wait;

/// A run that is wanted by a replay or a backfill.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueRun {
    /// Of kind `Slot` for a slot that may never have run, else of kind `Replay`.
    pub run: Run,
    /// Who wants it: part of the name of what is made from a run that has ended.
    pub replay: ReplayId,
    /// Since when it is wanted. What has ended since then is not run again.
    pub since: Timestamp,
}

/// What became of a run that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    Ready(RunId),
    /// It waits for the job's runs before it.
    Waiting(RunId),
    /// The very same run is there, alive or ended.
    Repeated,
    /// As many of the job's runs wait as may: to be queued again when some have ended.
    Full,
    /// The slot is not decided yet, and is left to fire.
    Undecided,
    /// What was recorded of the slot was counted by another schedule, and cannot be divided.
    Undivided,
    /// The job is not there, or deleted.
    Missing,
}

/// What of history it takes to decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueNeeds {
    /// Which of these names have ended.
    pub names: Vec<RunId>,
    /// What became of the slots of this span.
    pub slots: Option<Span>,
}

impl QueueRun {
    /// A run that is wanted once, and by no replay.
    pub fn alone(run: Run) -> Self {
        Self {
            since: run.due_at,
            run,
            replay: ReplayId::from_bytes([0; 16]),
        }
    }

    /// The name of a replay that is made of a run that has ended, always the same.
    fn name_after(&self, ended: RunId) -> RunId {
        RunId::replayed(self.run.job, self.since, self.replay, ended)
    }

    /// What of history a batch needs. All of them are of one job.
    pub fn needs<'a>(batch: impl Iterator<Item = &'a Self> + Clone) -> QueueNeeds {
        let of_slots = batch.clone().filter(|it| it.run.kind == RunKind::Slot);
        let slots: BTreeSet<Slot> = of_slots.clone().filter_map(|it| it.run.slot).collect();
        let span = slots.first().zip(slots.last());
        let names = batch.map(|it| it.run.id);
        QueueNeeds {
            names: names
                .chain(of_slots.map(|it| it.name_after(it.run.id)))
                .collect(),
            slots: span.map(|(first, last)| (first.0, last.0.plus(MILLISECOND))),
        }
    }
}

impl Job {
    /// Whether a slot is decided, or lies before all that ever will be.
    fn is_decided(&self, slot: Slot) -> bool {
        let before_all = slot.0 < self.created_at && self.next_slot.is_none_or(|next| slot < next);
        before_all || self.slot_last.is_some_and(|last| slot.0 <= last)
    }
}

impl View {
    pub fn queue(&mut self, wanted: &QueueRun) -> Queued {
        let run = &wanted.run;
        let theirs = |job: &&Job| job.state != JobState::Deleted && job.tenant == run.tenant;
        let Some(job) = self.job.as_ref().filter(theirs).cloned() else {
            return Queued::Missing;
        };
        if self.live.contains_key(&run.id) {
            return Queued::Repeated;
        }
        match run.slot.filter(|_| run.kind == RunKind::Slot) {
            None if self.history.ended.contains(&run.id) => Queued::Repeated,
            None => self.insert_queued(&job, run.clone()),
            Some(slot) if !job.is_decided(slot) => Queued::Undecided,
            Some(slot) => self.queue_slot(&job, wanted, slot),
        }
    }

    fn queue_slot(&mut self, job: &Job, wanted: &QueueRun, slot: Slot) -> Queued {
        let covers = |entry: &&Run| {
            let slots = entry.slots().filter(|_| entry.state == RunState::Skipped);
            slots.is_some_and(|slots| slots.first <= slot && slot <= slots.last)
        };
        if let Some(ended) = self.history.slots.get(&wanted.run.id)
            && ended.state != RunState::Skipped
        {
            return self.queue_replay(job, wanted, ended.clone());
        }
        let record = self.history.slots.values().find(covers).cloned();
        let schedule = &job.def.schedule;
        if let Some(slots) = record.as_ref().and_then(Run::slots)
            && slots.count > 1
            && schedule.stretch(slots.first, slots.last.0) != slots
        {
            return Queued::Undivided;
        }
        let queued = self.insert_queued(job, wanted.run.clone());
        if let (Queued::Ready(_) | Queued::Waiting(_), Some(record)) = (queued, record) {
            self.divide(job, record, slot);
        }
        queued
    }

    /// A slot that ran is replayed, unless that run has ended since this was wanted.
    fn queue_replay(&mut self, job: &Job, wanted: &QueueRun, ended: Run) -> Queued {
        let id = wanted.name_after(ended.id);
        let since = ended.settled_at.is_none_or(|at| at >= wanted.since);
        if since || self.live.contains_key(&id) || self.history.ended.contains(&id) {
            return Queued::Repeated;
        }
        let replay = Run {
            id,
            kind: RunKind::Replay,
            replay_of: Some(ended.id),
            payload: ended.payload,
            ..wanted.run.clone()
        };
        self.insert_queued(job, replay)
    }

    /// The record of a slot that runs after all goes; what it says of others stays.
    fn divide(&mut self, job: &Job, record: Run, slot: Slot) {
        self.history.slots.remove(&record.id);
        self.effects.history.remove(&record.id);
        self.effects.skips.insert(record.id, None);
        for piece in record.around(&job.def.schedule, &[slot]) {
            self.history.slots.insert(piece.id, piece.clone());
            self.record(piece);
        }
    }

    fn insert_queued(&mut self, job: &Job, run: Run) -> Queued {
        let living = self.living();
        let alone = living.moving == 0 && living.waiting == 0;
        let waiting = match job.def.overlap {
            Overlap::Allow if (living.moving as usize) < limits::QUEUED_MOVING_MAX => false,
            Overlap::Allow => return Queued::Full,
            Overlap::Skip
            | Overlap::QueueOne
            | Overlap::QueueAll { .. }
            | Overlap::CancelRunning => !alone,
        };
        if waiting && living.waiting as usize >= limits::QUEUED_WAITING_MAX {
            return Queued::Full;
        }
        let id = run.id;
        // A firing that looked before sees by it that there is one more.
        self.put_job(Job {
            manual_runs: job.manual_runs.saturating_add(1),
            ..job.clone()
        });
        self.insert_run(Run {
            state: RunState::Ready,
            claim: None,
            mark: None,
            wait: waiting.then_some(Wait::TURN),
            ..run
        });
        if waiting {
            Queued::Waiting(id)
        } else {
            Queued::Ready(id)
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
