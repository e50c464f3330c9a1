//! Edits, and other tables of time zones: under each version of a job that was in force, no slot is without an answer, and
//! none runs that it does not have.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Job, JobId, JobState, Run, RunKind, RunState, Schedule, Slot, Timestamp};

use super::End;
use crate::record::Era;

const MILLISECOND: Duration = Duration::from_millis(1);
/// So many slots of one version are looked at.
const SLOTS_MAX: usize = 100_000;

/// The slots of a job that have an answer.
struct Answered {
    slots: BTreeSet<Slot>,
    stretches: Vec<(Slot, Slot)>,
}

impl Answered {
    fn by(runs: &[Run]) -> Self {
        let of_slots = || runs.iter().filter(|run| run.kind == RunKind::Slot);
        let stretches = of_slots().filter(|run| run.state == RunState::Skipped);
        let stretches = stretches.filter_map(|run| run.stretch);
        Self {
            slots: of_slots().filter_map(|run| run.slot).collect(),
            stretches: stretches.map(|it| (it.first, it.last)).collect(),
        }
    }

    fn has(&self, slot: Slot) -> bool {
        let within = |(first, last): &(Slot, Slot)| (*first..=*last).contains(&slot);
        self.slots.contains(&slot) || self.stretches.iter().any(within)
    }
}

/// The first slot that is this version's to answer for.
fn first(era: &Era) -> Option<Slot> {
    let job = &era.job;
    match job.state {
        JobState::Active => job.next_slot,
        JobState::Paused => {
            let last = job.slot_last.unwrap_or(era.from);
            job.def.schedule.next_after(last.max(era.from))
        }
        JobState::Finished | JobState::Invalid | JobState::Deleted => None,
    }
}

/// The moment up to which the slots of this version have an answer: the next change, or what was decided last. A clock
/// that went back takes slots away from the versions that had not come to them.
fn until(later: &[Era], now: Option<&Job>) -> Option<Timestamp> {
    let changed = later.iter().map(|era| era.from).min();
    let decided = match now {
        Some(now) => Some(now.slot_last?),
        // It was deleted, and that has explained everything before.
        None => changed,
    };
    let Some(next) = later.first() else {
        return decided;
    };
    let until = decided.min(changed);
    let before = next.before.as_ref()?;
    match before.state {
        JobState::Active | JobState::Paused => until,
        // It had come to its end before that.
        JobState::Finished | JobState::Invalid | JobState::Deleted => before.slot_last.min(until),
    }
}

impl End<'_> {
    pub(super) fn edits_lose_no_slot(&mut self, job: JobId, runs: &[Run]) {
        let eras = self.world.ledger.book().record.eras.get(&job).cloned();
        let eras = eras.unwrap_or_default();
        let answered = Answered::by(runs);
        let now = self.jobs.get(&job).cloned();
        for (index, era) in eras.iter().enumerate() {
            let schedule = &era.job.def.schedule;
            let later = eras.get(index + 1..).unwrap_or_default();
            let ends_paused = later.is_empty() && era.job.state == JobState::Paused;
            // Slots that only the end of a run sets cannot be known beforehand.
            if schedule.after_completion() || ends_paused {
                continue;
            }
            let Some(until) = until(later, now.as_deref()) else {
                continue;
            };
            let mut slot = first(era);
            for _ in 0..SLOTS_MAX {
                let Some(at) = slot.filter(|slot| slot.0 <= until) else {
                    break;
                };
                if !answered.has(at) {
                    let version = era.job.version;
                    let seen = format!("{at} of {job} at {version:?} has no answer");
                    self.broken("edits_lose_no_slot", seen);
                    break;
                }
                slot = era.next_after(at);
            }
        }
    }

    /// Every slot that was decided is one by some version of its job, as some tables of time zones had it.
    pub(super) fn slots_are_of_their_schedules(&mut self, job: JobId, runs: &[Run]) {
        let eras = self.world.ledger.book().record.eras.get(&job).cloned();
        let eras = eras.unwrap_or_default();
        let schedules: Vec<&Schedule> = eras.iter().flat_map(Era::schedules).collect();
        // What only the end of a run sets has no other rule.
        if schedules.iter().any(|schedule| schedule.after_completion()) {
            return;
        }
        let has = |schedule: &&&Schedule, slot: Slot| {
            schedule.next_after(slot.0.minus(MILLISECOND)) == Some(slot)
        };
        for run in runs.iter().filter(|run| run.kind == RunKind::Slot) {
            let Some(slot) = run.slot else { continue };
            if !schedules.iter().rev().any(|schedule| has(&schedule, slot)) {
                let seen = format!("{slot} of {job} is no slot of it: {}", run.id);
                self.broken("slots_are_of_their_schedules", seen);
            }
        }
    }
}
