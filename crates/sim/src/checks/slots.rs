//! Slots: each has one answer, within the bounds of its job.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{
    Job, JobId, JobState, Run, RunId, RunKind, RunState, Schedule, Slot, Timestamp, limits,
};

use super::{Broken, End};

/// The slots a run or an entry stands for, of an unedited schedule.
fn slots_of(run: &Run, schedule: &Schedule) -> Vec<Slot> {
    let Some(stretch) = run.stretch else {
        return run.slot.into_iter().collect();
    };
    let mut slots = vec![stretch.first];
    let mut last = stretch.first;
    while last < stretch.last && (slots.len() as u64) < stretch.count + 1 {
        let Some(next) = schedule.next_after(last.0) else {
            break;
        };
        slots.push(next);
        last = next;
    }
    slots
}

/// Which run decided each slot.
fn decided(
    accepted: &Job,
    edited: bool,
    runs: &[Run],
    broken: &mut Vec<Broken>,
) -> BTreeMap<Slot, RunId> {
    let check = "every_slot_decided_once";
    let mut decided: BTreeMap<Slot, RunId> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.kind == RunKind::Slot) {
        let slots = if edited {
            run.slot.into_iter().collect()
        } else {
            slots_of(run, &accepted.def.schedule)
        };
        if !edited
            && let Some(stretch) = run.stretch
            && slots.len() as u64 != stretch.count
        {
            let seen = format!("{} counts {} slots, not {stretch:?}", run.id, slots.len());
            broken.push(Broken::new(check, seen));
        }
        for slot in slots {
            if let Some(other) = decided.insert(slot, run.id) {
                let seen = format!("{slot} of {} by {other} and {}", run.job, run.id);
                broken.push(Broken::new(check, seen));
            }
        }
    }
    decided
}

impl End<'_> {
    pub(super) fn every_slot_decided_once(&mut self, accepted: &Job, edited: bool, runs: &[Run]) {
        let decided = decided(accepted, edited, runs, &mut self.broken);
        // Slots that only the end of a run sets cannot be known beforehand.
        let is_foreseeable = !edited && !accepted.def.schedule.after_completion();
        let now = self.jobs.get(&accepted.id).cloned();
        let Some(now) = now.filter(|_| is_foreseeable) else {
            return;
        };
        // Everything up to the last decided slot has an answer.
        let Some(last) = now.slot_last else { return };
        let paused = now.state == JobState::Paused || now.state == JobState::Deleted;
        let mut slot = if accepted.def.schedule.is_recurring() {
            accepted.def.schedule.next_after(accepted.created_at)
        } else {
            accepted.next_slot
        };
        while let Some(at) = slot.filter(|slot| slot.0 <= last) {
            let explained = decided.contains_key(&at) || (paused && at.0 >= now.state_at);
            if !explained {
                let seen = format!("{at} of {} has no answer (last {last})", now.id);
                self.broken("every_slot_decided_once", seen);
                return;
            }
            slot = accepted.def.schedule.next_after(at.0);
        }
    }

    /// As many runs of slots as the bounds allow, the first no sooner and the last no later than they say;
    /// and nobody rests without a run that will end.
    pub(super) fn bounds_hold(&mut self, job: JobId, runs: &[Run]) {
        let Some(job) = self.jobs.get(&job).cloned() else {
            return;
        };
        let of_slots = || runs.iter().filter(|run| run.kind == RunKind::Slot);
        if job.is_resting() && !of_slots().any(|run| run.state.is_live()) {
            let seen = format!("{} rests, and no run of it lives", job.id);
            self.broken("who_rests_is_woken", seen);
        }
        if job.version > model::Version::FIRST {
            return;
        }
        let bounds = &job.def.schedule.bounds;
        let count = of_slots()
            .filter(|run| run.state != RunState::Skipped)
            .count() as u32;
        if let Some((max, left)) = bounds.runs_max.zip(job.runs_left())
            && count + left != max
        {
            let seen = format!("{} made {count} runs and has {left} left of {max}", job.id);
            self.broken("bounds_hold", seen);
        }
        let outside = |run: &&Run| {
            let slot = run.slot.map(|slot| slot.0);
            slot < bounds.starts_at.filter(|_| slot.is_some())
                || bounds.ends_at.is_some_and(|end| slot > Some(end))
        };
        if let Some(run) = of_slots().find(outside) {
            self.broken("bounds_hold", format!("{} is outside", run.id));
        }
    }

    /// No more runs wait than the job lets, as long as its policy stands, besides late ones that wait for their turn.
    pub(super) fn waiting_runs_are_few(&mut self, job: &Job, edited: bool, runs: &[Run]) {
        let max = match job.def.overlap {
            model::Overlap::QueueOne | model::Overlap::CancelRunning => 1,
            model::Overlap::QueueAll { max } => max,
            model::Overlap::Skip | model::Overlap::Allow => 0,
        };
        let waiting = runs
            .iter()
            .filter(|run| run.state.is_live() && run.waits_for_turn());
        let due: Vec<Timestamp> = waiting.map(|run| run.due_at).collect();
        let span = due.iter().max().zip(due.iter().min());
        let span = span.map_or(Duration::ZERO, |(last, first)| last.since(*first));
        if !edited && due.len() > max as usize && span > limits::LATE_MAX {
            let seen = format!("{} runs of {} wait, {span:?}", due.len(), job.id);
            self.broken("limits_hold", seen);
        }
    }
}
