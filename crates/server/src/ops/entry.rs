//! Entries of a list of slots: one slot, or several that share their fate. How a page shows a part of one,
//! and how the pieces that a store keeps of one become one again.

use std::sync::Arc;

use model::{Job, Reason, Run, RunState, Schedule, Slot, Stretch, Timestamp};

use super::ahead::MILLISECOND;

/// Which slots are asked for: from `from`, or where the last page ended, up to but not including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub from: Timestamp,
    pub to: Timestamp,
    pub cursor: Option<Slot>,
    pub limit: usize,
}

impl Range {
    pub fn start(&self) -> Timestamp {
        self.cursor.map_or(self.from, |slot| slot.0.max(self.from))
    }

    /// The last moment that belongs to it.
    pub fn last(&self) -> Timestamp {
        self.to.minus(MILLISECOND)
    }

    /// What is to be shown of an entry: not what an earlier page has shown.
    pub fn part(&self, entry: Entry, job: &Job) -> Option<Entry> {
        let Stretch { first, last, .. } = entry.slots;
        if first.0 >= self.to || last.0 < self.start() {
            return None;
        }
        match self.cursor {
            Some(cursor) => entry.since(cursor, job),
            None => Some(entry),
        }
    }
}

/// One slot, or several that share their fate.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub slots: Stretch,
    /// Of the first.
    pub due_at: Timestamp,
    pub fate: Fate,
}

impl Entry {
    /// Whether it is written down.
    pub fn is_decided(&self) -> bool {
        match &self.fate {
            Fate::Ran(_) => true,
            Fate::Skipped(why) => why.at.is_some(),
            Fate::Planned { .. } | Fate::Unknown => false,
        }
    }

    /// Whether its slots are those of a schedule. If not, another one decided it, which is not kept.
    pub fn is_of(&self, schedule: &Schedule) -> bool {
        let first = self.slots.first;
        schedule.next_after(first.0.minus(MILLISECOND)) == Some(first)
            && schedule.stretch(first, self.slots.last.0) == self.slots
    }

    /// What of it lies at or after a moment. Where the slots of one that another schedule decided lie is not
    /// known, so it stays whole.
    pub fn since(self, start: Slot, job: &Job) -> Option<Self> {
        let Stretch { first, last, .. } = self.slots;
        let schedule = &job.def.schedule;
        if last < start {
            return None;
        }
        if first >= start || !self.is_of(schedule) {
            return Some(self);
        }
        let first = schedule.next_after(start.0.minus(MILLISECOND))?;
        (first <= last).then(|| Self {
            slots: schedule.stretch(first, last.0),
            due_at: job.due_at(first),
            fate: self.fate,
        })
    }

    /// Whether another is a piece of the same: what is written at once is kept in pieces, one for each day.
    fn goes_on_in(&self, other: &Self) -> bool {
        match (&self.fate, &other.fate) {
            (Fate::Skipped(why), Fate::Skipped(other)) => why.at.is_some() && why == other,
            (Fate::Ran(_) | Fate::Skipped(_) | Fate::Planned { .. } | Fate::Unknown, _) => false,
        }
    }

    /// Adds an entry to those before it; a piece of the last becomes a part of it.
    pub fn add_to(entries: &mut Vec<Self>, entry: Self) {
        match entries.last_mut() {
            Some(last) if last.goes_on_in(&entry) => {
                last.slots.last = last.slots.last.max(entry.slots.last);
                last.slots.count = last.slots.count.saturating_add(entry.slots.count);
            }
            Some(_) | None => entries.push(entry),
        }
    }

    fn of_run(run: Run) -> Self {
        let slot = Slot(run.slot.map_or(run.due_at, |slot| slot.0));
        let due_at = run.due_at;
        let slots = run.stretch.unwrap_or(Stretch::one(slot));
        let fate = match run.state {
            RunState::Skipped => Fate::Skipped(Why {
                reason: run.reason.unwrap_or(Reason::Missed),
                note: run.note,
                actor: run.actor,
                at: run.settled_at,
            }),
            RunState::Ready
            | RunState::Running
            | RunState::Retrying
            | RunState::Succeeded
            | RunState::Dead
            | RunState::Cancelled => Fate::Ran(Box::new(run)),
        };
        Self {
            slots,
            due_at,
            fate,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    Ran(Box<Run>),
    Skipped(Why),
    Planned {
        overdue: bool,
    },
    /// It should have been decided and was not.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub reason: Reason,
    pub note: Option<String>,
    pub actor: Option<Arc<str>>,
    /// When it was written down; not at all of what is computed.
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SlotPage {
    pub entries: Vec<Entry>,
    /// Where the next page begins.
    pub next: Option<Slot>,
    /// What ended before is not kept any more.
    pub history_from: Timestamp,
}

/// Rows read at once after the first read: they are pieces of few entries.
const READ_MORE: usize = 500;
/// Rows read for one page. Ten years of days are fewer; if they do not do, the page ends early.
const ROWS_MAX: usize = 4_000;

/// What a store has written about a range, as far as a page needs it.
#[derive(Debug, Default)]
pub struct Written {
    /// As they are kept, in pieces.
    pub entries: Vec<Entry>,
    /// Those that are no piece of the one before.
    whole: usize,
    /// Whether there are no more.
    all: bool,
}

impl Written {
    /// What to read next, from when and how much; nothing once there is enough for a page.
    pub fn wanted(&self, range: &Range) -> Option<(Timestamp, usize)> {
        // One more than fits shows where the next page begins; another may have been shown before.
        let enough = range.limit + 2;
        let Some(last) = self.entries.last() else {
            return (!self.all).then_some((range.start(), enough));
        };
        let more = !self.all && self.whole < enough && self.entries.len() < ROWS_MAX;
        more.then(|| (last.slots.first.0.plus(MILLISECOND), enough.max(READ_MORE)))
    }

    /// Takes in what was read when `limit` rows were asked for.
    pub fn add(&mut self, runs: Vec<Run>, limit: usize) {
        self.all = runs.len() < limit;
        for entry in runs.into_iter().map(Entry::of_run) {
            let last = self.entries.last();
            // The last one is read again if it covers where the next read begins.
            if last.is_some_and(|last| entry.slots.first <= last.slots.first) {
                continue;
            }
            let piece = last.is_some_and(|last| last.goes_on_in(&entry));
            self.whole += usize::from(!piece);
            self.entries.push(entry);
        }
    }

    /// Where to go on, if there is more than was read.
    pub fn read_up_to(&self) -> Option<Slot> {
        let last = self.entries.last().filter(|_| !self.all)?;
        Some(Slot(last.slots.last.0.plus(MILLISECOND)))
    }
}
