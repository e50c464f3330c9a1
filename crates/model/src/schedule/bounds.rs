//! Bounds: from when to when a schedule has slots, and how many of them run.

use std::time::Duration;

use crate::time::{Slot, Timestamp};

/// No bound unless it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// There is no slot before it; one at this very moment is the first.
    pub starts_at: Option<Timestamp>,
    /// There is no slot after it; one at this very moment is the last.
    pub ends_at: Option<Timestamp>,
    /// After so many runs of its slots the job is finished. Skipped slots and runs by hand do not count.
    pub runs_max: Option<u32>,
}

impl Bounds {
    /// Where a search for the next slot may begin.
    pub(super) fn enter(&self, after: Timestamp) -> Timestamp {
        let before = |start: Timestamp| start.minus(Duration::from_millis(1));
        self.starts_at
            .map_or(after, |start| before(start).max(after))
    }

    /// A slot that depends on no other, held back to the start.
    pub(super) fn hold(&self, slot: Slot) -> Slot {
        Slot(self.starts_at.map_or(slot.0, |start| start.max(slot.0)))
    }

    pub(super) fn holds(&self, slot: Slot) -> bool {
        self.ends_at.is_none_or(|end| slot.0 <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::schedule::samples::{at, cron, every};

    fn slots(schedule: &Schedule, from: &str) -> Vec<String> {
        let first = schedule.next_after(at(from));
        let slots = std::iter::successors(first, |slot| schedule.next_after(slot.0));
        slots
            .take(4)
            .map(|slot| slot.to_string().replace(".000Z", "Z"))
            .collect()
    }

    #[test]
    fn both_ends_belong_to_it() {
        let hourly = cron("0 * * * *", "UTC")
            .starting("2026-06-01T09:00:00Z")
            .ending("2026-06-01T11:00:00Z");
        let all = [
            "2026-06-01T09:00:00Z",
            "2026-06-01T10:00:00Z",
            "2026-06-01T11:00:00Z",
        ];
        assert_eq!(slots(&hourly, "2026-01-01T00:00:00Z"), all);
        assert_eq!(slots(&hourly, "2026-06-01T08:59:59.999Z"), all);
        assert_eq!(slots(&hourly, "2026-06-01T09:00:00Z"), all[1..]);
        assert_eq!(slots(&hourly, "2026-06-01T11:00:00Z"), all[3..]);
        let narrower = hourly
            .starting("2026-06-01T09:00:00.001Z")
            .ending("2026-06-01T10:59:59.999Z");
        assert_eq!(slots(&narrower, "2026-01-01T00:00:00Z"), all[1..2]);
    }

    #[test]
    fn a_start_within_a_period_does_not_move_the_slots() {
        let every = |text: &str| {
            every(text, "2026-06-01T00:00:00Z", "Europe/Berlin").starting("2026-06-03T10:07:30Z")
        };
        assert_eq!(
            slots(&every("45m"), "2026-01-01T00:00:00Z")[..2],
            ["2026-06-03T10:30:00Z", "2026-06-03T11:15:00Z"]
        );
        assert_eq!(
            slots(&every("P1D"), "2026-01-01T00:00:00Z")[..2],
            ["2026-06-04T00:00:00Z", "2026-06-05T00:00:00Z"]
        );
    }

    #[test]
    fn an_end_before_the_start_leaves_nothing() {
        let none = cron("* * * * *", "UTC")
            .starting("2026-06-02T00:00:00Z")
            .ending("2026-06-01T00:00:00Z");
        assert_eq!(none.next_after(at("2026-01-01T00:00:00Z")), None);
        let one = none.ending("2026-06-02T00:00:00Z");
        assert_eq!(
            slots(&one, "2026-01-01T00:00:00Z"),
            ["2026-06-02T00:00:00Z"]
        );
    }

    #[test]
    fn a_stretch_ends_with_the_schedule() {
        let minutes = cron("* * * * *", "UTC").ending("2026-06-01T00:10:30Z");
        let stretch = minutes.stretch(Slot(at("2026-06-01T00:00:00Z")), at("2026-07-01T00:00:00Z"));
        assert_eq!(stretch.count, 11);
        assert_eq!(stretch.last, Slot(at("2026-06-01T00:10:00Z")));
    }

    #[test]
    fn the_number_of_runs_takes_no_slot_away() {
        let mut minutes = cron("* * * * *", "UTC");
        minutes.bounds.runs_max = Some(1);
        assert_eq!(slots(&minutes, "2026-06-01T00:00:00Z").len(), 4);
    }
}
