//! Slots that will not run, as they are written down: cut at the midnights of UTC, because history is kept and
//! dropped by whole days. An entry that reached into a later day would be forgotten with its first.

use std::time::Duration;

use crate::id::RunId;
use crate::job::Job;
use crate::limits;
use crate::run::{Run, RunState, Skip, Stretch};
use crate::schedule::Schedule;
use crate::time::{Slot, Timestamp};

const DAY: u64 = 24 * 3_600 * 1_000;
const MILLISECOND: Duration = Duration::from_millis(1);

fn day_of(at: Timestamp) -> u64 {
    at.as_u64() / DAY
}

/// The last moment of a day.
fn end_of(day: u64) -> Timestamp {
    Timestamp::MIN.plus(Duration::from_millis(day.saturating_add(1) * DAY - 1))
}

impl Job {
    /// The same slots, oldest first, each entry within one day of UTC; the pieces of one share all but their
    /// slots. They must be slots of this job's own schedule. Bounded: days that lie more than `SKIP_DAYS_MAX`
    /// before the last slot are not told apart.
    pub fn by_day(&self, skips: Vec<Skip>) -> Vec<Skip> {
        let Some(last) = skips.last().map(|skip| day_of(skip.slots.last.0)) else {
            return skips;
        };
        let oldest = last.saturating_sub(limits::SKIP_DAYS_MAX - 1);
        let schedule = &self.def.schedule;
        let mut pieces = Vec::with_capacity(skips.len());
        for skip in skips {
            let mut slots = skip.slots;
            while let Some((piece, rest)) = first_day(schedule, slots, oldest) {
                pieces.push(Skip {
                    slots: piece,
                    ..skip.clone()
                });
                slots = rest;
            }
            pieces.push(Skip { slots, ..skip });
        }
        pieces
    }
}

/// What lies in the stretch's first day, and the rest. Days up to `oldest` are one.
fn first_day(schedule: &Schedule, slots: Stretch, oldest: u64) -> Option<(Stretch, Stretch)> {
    let day = day_of(slots.first.0).max(oldest);
    if slots.count < 2 || day_of(slots.last.0) <= day {
        return None;
    }
    let piece = schedule.stretch(slots.first, end_of(day));
    let next = schedule.next_after(piece.last.0)?;
    // A count that does not fit was made by other tables: the whole stays as it was recorded.
    let fits = piece.count < slots.count && next <= slots.last && piece.last < next;
    let rest = Stretch {
        first: next,
        last: slots.last,
        count: slots.count.saturating_sub(piece.count),
    };
    fits.then_some((piece, rest))
}

impl Job {
    /// What stays recorded of skipped slots when this job decides again from `slot_last` on: nothing, if all of them lie
    /// after it. A count that is not this schedule's cannot be divided: then the whole stays.
    pub fn still_recorded(&self, slots: Stretch) -> Option<Stretch> {
        let Some(last) = self.slot_last.filter(|last| slots.last.0 > *last) else {
            return Some(slots);
        };
        let schedule = &self.def.schedule;
        if slots.first.0 > last {
            None
        } else if schedule.stretch(slots.first, slots.last.0) == slots {
            Some(schedule.stretch(slots.first, last))
        } else {
            Some(slots)
        }
    }
}

impl Run {
    /// A skipped entry as far as its slots have no run: what was dispatched before a pause or an edit could take it
    /// back is not recorded a second time. `ran` are those that have one, oldest first.
    pub fn around(self, schedule: &Schedule, ran: &[Slot]) -> Vec<Self> {
        let Some(all) = self.slots().filter(|_| self.state == RunState::Skipped) else {
            return vec![self];
        };
        let within = |slot: &&Slot| (all.first..=all.last).contains(*slot);
        let ran: Vec<Slot> = ran.iter().filter(within).copied().collect();
        if ran.is_empty() {
            return vec![self];
        }
        let mut entries = Vec::new();
        let mut next = Some(all.first);
        for edge in ran
            .iter()
            .map(|slot| slot.0)
            .chain([all.last.0.plus(MILLISECOND)])
        {
            let before = edge.minus(MILLISECOND);
            if let Some(first) = next.filter(|first| first.0 <= before) {
                entries.push(self.over(schedule.stretch(first, before)));
            }
            next = schedule.next_after(edge);
        }
        entries
    }

    /// The same entry about other slots.
    fn over(&self, slots: Stretch) -> Self {
        let spread = self.slot.map(|slot| self.due_at.since(slot.0));
        Self {
            id: RunId::for_slot(self.job, slots.first),
            slot: Some(slots.first),
            due_at: slots.first.0.plus(spread.unwrap_or_default()),
            stretch: slots.several(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
#[path = "skip_tests.rs"]
mod tests;
