//! What calendars leave of a schedule: the next slot that stays, and the stretches that do not. Both jump
//! from one edge of a calendar to the next instead of checking slot by slot.

use std::time::Duration;

use super::{Schedule, Zone};
use crate::limits;
use crate::run::Stretch;
use crate::time::{Slot, Timestamp};

const MILLISECOND: Duration = Duration::from_millis(1);

/// The next slot with regard to calendars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// They keep it.
    Kept(Slot),
    /// They leave out every slot up to this one, itself included: the last of the schedule, or the
    /// last that was looked at. `Schedule::is_last` says which.
    LeftOut(Slot),
    /// There is no slot.
    Nothing,
}

impl Found {
    /// Where a job goes on.
    pub(crate) fn slot(self) -> Option<Slot> {
        match self {
            Self::Kept(slot) | Self::LeftOut(slot) => Some(slot),
            Self::Nothing => None,
        }
    }
}

/// Slots that calendars leave out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// In order, each with the calendar's name.
    pub stretches: Vec<(Stretch, String)>,
    /// The first slot after them.
    pub next: Option<Slot>,
    /// Whether calendars keep that one.
    pub kept: bool,
}

impl Schedule {
    /// The first slot after a moment that calendars keep. Bounded.
    pub fn find_kept(&self, after: Timestamp) -> Found {
        match self.next_after(after) {
            Some(slot) => self.first_kept(slot),
            None => Found::Nothing,
        }
    }

    /// The first that calendars keep from `slot` on, which is one. Bounded.
    pub(crate) fn first_kept(&self, mut slot: Slot) -> Found {
        if self.calendars.is_empty() {
            return Found::Kept(slot);
        }
        let zone = self.zone();
        let mut left_out = slot;
        for _ in 0..limits::CALENDAR_STEPS_MAX {
            let exclusion = self.calendars.exclusion(slot, &zone);
            if exclusion.by.is_none() {
                return Found::Kept(slot);
            }
            left_out = slot;
            if exclusion.until <= slot.0 {
                // The end of time.
                break;
            }
            if self.after_completion() {
                // No other slot depends on this one: it waits until calendars let it.
                slot = Slot(exclusion.until);
                if !self.bounds.holds(slot) {
                    return Found::Nothing;
                }
                continue;
            }
            match self.next_after(exclusion.until.minus(MILLISECOND)) {
                Some(next) => slot = next,
                None => return Found::LeftOut(self.last_from(slot, exclusion.until)),
            }
        }
        Found::LeftOut(left_out)
    }

    /// Whether no slot follows this one: where calendars leave out every slot up to it, the schedule ends,
    /// and not only the search.
    pub fn is_last(&self, slot: Slot) -> bool {
        self.next_after(slot.0).is_none()
    }

    /// The last slot of the schedule, which lies between `slot`, which is one, and `end`: halved, as either
    /// may be thousands of years away.
    fn last_from(&self, mut slot: Slot, mut end: Timestamp) -> Slot {
        while slot.0.plus(MILLISECOND) < end {
            let middle = slot.0.plus(end.since(slot.0) / 2);
            match self.next_after(middle) {
                Some(next) => slot = next,
                None => end = middle,
            }
        }
        // At the very end itself there may still be one.
        self.next_after(slot.0).unwrap_or(slot)
    }

    /// Looks slots up in calendars, in their order.
    pub(crate) fn edges(&self) -> Edges<'_> {
        let unasked = self.calendars.is_empty();
        Edges {
            schedule: self,
            zone: self.zone(),
            kept: true,
            until: if unasked {
                Timestamp::MAX
            } else {
                Timestamp::MIN
            },
        }
    }

    /// The slot after a moment at which something is to be decided: the first that calendars keep, or
    /// the one at which those they left out are written down.
    pub fn next_to_decide(&self, after: Timestamp) -> Option<Slot> {
        self.find_kept(after).slot()
    }

    /// Whether calendars may leave out slots. What is set by the end of a run is not left out, but waits.
    pub fn leaves_out(&self) -> bool {
        !self.calendars.is_empty() && !self.after_completion()
    }

    /// Whether calendars keep a slot.
    pub fn keeps(&self, slot: Slot) -> bool {
        self.left_out_by(slot).is_none()
    }

    /// The name of the calendar that leaves out a slot.
    pub fn left_out_by(&self, slot: Slot) -> Option<String> {
        if self.calendars.is_empty() {
            return None;
        }
        self.calendars.exclusion(slot, &self.zone()).by
    }

    /// The slots after a moment and up to `until` that calendars leave out, up to the first they keep.
    /// Bounded: `next` may be one that they leave out too.
    pub fn left_out(&self, after: Timestamp, until: Timestamp) -> LeftOut {
        let mut found = LeftOut {
            next: self.next_after(after),
            ..LeftOut::default()
        };
        let zone = self.zone();
        for _ in 0..limits::CALENDAR_STEPS_MAX {
            let Some(slot) = found.next.filter(|slot| slot.0 <= until) else {
                return found;
            };
            let exclusion = self.calendars.exclusion(slot, &zone);
            let Some(name) = exclusion.by else {
                found.kept = true;
                return found;
            };
            let stretch = self.stretch(slot, exclusion.until.minus(MILLISECOND).min(until));
            let full = found.stretches.len() >= limits::SKIPS_MAX;
            match found.stretches.last_mut() {
                Some((before, by)) if *by == name => {
                    before.last = stretch.last;
                    before.count += stretch.count;
                }
                Some(_) | None if full => return found,
                Some(_) | None => found.stretches.push((stretch, name)),
            }
            found.next = self.next_after(stretch.last.0);
        }
        found
    }

    /// How far the slots from `first`, which calendars keep, go on being kept.
    pub(crate) fn kept_stretch(&self, first: Slot, until: Timestamp) -> Stretch {
        let exclusion = self.calendars.exclusion(first, &self.zone());
        self.stretch(first, exclusion.until.minus(MILLISECOND).min(until))
    }
}

/// What calendars say about slots that come in their order: queried once from edge to edge.
pub(crate) struct Edges<'a> {
    schedule: &'a Schedule,
    zone: Zone,
    kept: bool,
    until: Timestamp,
}

impl Edges<'_> {
    /// Whether calendars keep a slot, which is none before the last one checked.
    pub(crate) fn keep(&mut self, slot: Slot) -> bool {
        if slot.0 >= self.until {
            let exclusion = self.schedule.calendars.exclusion(slot, &self.zone);
            (self.kept, self.until) = (exclusion.by.is_none(), exclusion.until);
        }
        self.kept
    }

    /// The first slot about which they may say something else than about the last one.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.schedule.next_after(self.until.minus(MILLISECOND))
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
