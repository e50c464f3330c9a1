//! The slots of a schedule in order, from one edge of its calendars to the next: those that calendars
//! keep one by one, those that they leave out as one part. A schedule and a moment come in; the walk is
//! bounded by how often calendars are queried, whatever they leave out.

use std::time::Duration;

use model::schedule::{Exclusion, Zone};
use model::{Schedule, Slot, Timestamp, limits};

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Kept(Slot),
    /// Every slot from `first` up to `end`, which need not be one, is left out by the same calendar.
    LeftOut {
        first: Slot,
        end: Timestamp,
        by: String,
    },
}

pub(super) struct Walk<'a> {
    schedule: &'a Schedule,
    zone: Zone,
    after: Timestamp,
    until: Timestamp,
    /// What calendars said last; it holds for some time.
    said: Option<Exclusion>,
    lookups: u32,
}

impl<'a> Walk<'a> {
    /// The slots strictly after `after` and up to `until`.
    pub(super) fn new(schedule: &'a Schedule, after: Timestamp, until: Timestamp) -> Self {
        Self {
            schedule,
            zone: schedule.zone(),
            after,
            until,
            said: None,
            lookups: limits::CALENDAR_STEPS_MAX,
        }
    }

    /// Goes on after a moment, if it has not come so far yet.
    pub(super) fn skip_to(&mut self, after: Timestamp) {
        self.after = self.after.max(after);
    }

    /// Where the walk would go on, if it ended because calendars were queried often enough.
    pub(super) fn stopped_at(&self) -> Option<Slot> {
        let next = (self.lookups == 0).then(|| self.schedule.next_after(self.after));
        next.flatten().filter(|slot| slot.0 <= self.until)
    }

    /// The slots that calendars keep.
    pub(super) fn kept(&mut self) -> impl Iterator<Item = Slot> {
        self.filter_map(|part| match part {
            Part::Kept(slot) => Some(slot),
            Part::LeftOut { .. } => None,
        })
    }

    /// What calendars say about a slot; nothing once they were queried often enough.
    fn exclusion(&mut self, slot: Slot) -> Option<Exclusion> {
        if self.schedule.calendars.is_empty() {
            return Some(Exclusion {
                by: None,
                until: Timestamp::MAX,
            });
        }
        if let Some(said) = self.said.as_ref().filter(|said| slot.0 < said.until) {
            return Some(said.clone());
        }
        self.lookups = self.lookups.checked_sub(1)?;
        let said = self.schedule.calendars.exclusion(slot, &self.zone);
        self.said = Some(said.clone());
        Some(said)
    }

    /// How far the slots from `first` go on being left out by the same calendar.
    fn left_out(&mut self, first: Slot, by: String, until: Timestamp) -> Part {
        let mut end = until.minus(MILLISECOND).min(self.until);
        while let Some(slot) = self.schedule.next_after(end) {
            let said = match self.exclusion(slot) {
                Some(said) if slot.0 <= self.until && said.by.as_ref() == Some(&by) => said,
                Some(_) | None => break,
            };
            end = said.until.minus(MILLISECOND).min(self.until);
        }
        self.after = end;
        Part::LeftOut { first, end, by }
    }
}

impl Iterator for Walk<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let mut slot = self.schedule.next_after(self.after)?;
        loop {
            if slot.0 > self.until {
                return None;
            }
            let said = self.exclusion(slot)?;
            let Some(by) = said.by else {
                self.after = slot.0;
                return Some(Part::Kept(slot));
            };
            if !self.schedule.after_completion() {
                return Some(self.left_out(slot, by, said.until));
            }
            // No other slot depends on this one: it waits until calendars let it.
            slot = Slot(said.until);
        }
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
