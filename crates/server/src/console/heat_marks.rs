//! Where the slots of entries lie on a heat map, and which of them count as run.

use std::time::Duration;

use model::{RunState, Schedule, Slot, Stretch, Timestamp};

use super::format::State;
use super::heat::state_of;
use crate::ops::slots::{Entry, Fate};

/// Slots of one entry that are marked one by one; those of a longer one are marked together, hour by hour.
const ONES_MAX: u64 = 1_000;
const HOUR: i64 = 3_600_000;
const MILLISECOND: Duration = Duration::from_millis(1);

/// One slot on the map, or several of an hour that share their fate.
pub(super) struct Mark {
    pub at: Timestamp,
    pub slots: u64,
    pub state: State,
    /// Whether it ran; none while that is not decided.
    pub ran: Option<bool>,
}

/// A day, from its first moment up to but not including the next day's.
#[derive(Clone, Copy)]
pub(super) struct Day {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Whether a slot ran. What has not ended is not decided, and what lies ahead is not either, though it may be known already
/// that it will be skipped.
fn has_run(fate: &Fate, at: Timestamp, now: Timestamp) -> Option<bool> {
    match fate {
        Fate::Ran(run) => match run.state {
            RunState::Ready | RunState::Running | RunState::Retrying => None,
            RunState::Succeeded => Some(true),
            RunState::Dead | RunState::Cancelled | RunState::Skipped => Some(false),
        },
        Fate::Skipped(_) => (at <= now).then_some(false),
        Fate::Planned { .. } | Fate::Unknown => None,
    }
}

/// The slots of an entry that lie in a day. Where those of one lie that another schedule made is not known: they are taken to lie
/// evenly.
pub(super) fn marks(entry: &Entry, schedule: &Schedule, day: Day, now: Timestamp) -> Vec<Mark> {
    let state = state_of(&entry.fate);
    let schedule = Some(schedule).filter(|schedule| entry.is_of(schedule));
    let lie = if entry.slots.count <= ONES_MAX {
        one_by_one(entry.slots, schedule)
    } else {
        by_hour(entry.slots, schedule, day, now)
    };
    let in_day = |(at, _): &(Timestamp, u64)| (day.from..day.to).contains(at);
    let mark = |(at, slots): (Timestamp, u64)| Mark {
        at,
        slots,
        state: state.clone(),
        ran: has_run(&entry.fate, at, now),
    };
    lie.into_iter().filter(in_day).map(mark).collect()
}

fn one_by_one(slots: Stretch, schedule: Option<&Schedule>) -> Vec<(Timestamp, u64)> {
    let Stretch { first, last, count } = slots;
    let one = |at: Timestamp| (at, 1);
    if count <= 1 {
        return vec![one(first.0)];
    }
    if let Some(schedule) = schedule {
        let next = |slot: &Slot| schedule.next_after(slot.0).filter(|next| *next <= last);
        let all = std::iter::successors(Some(first), next);
        return all.map(|slot| one(slot.0)).collect();
    }
    let count = i64::try_from(count).unwrap_or(1);
    let (from, to) = (first.0.as_millis(), last.0.as_millis());
    let step = (to - from) / (count - 1).max(1);
    let at = |number: i64| Timestamp::from_millis(from + step * number);
    (0..count).map(|number| one(at(number))).collect()
}

/// Hours that now divides come in two parts: one has passed.
fn by_hour(
    slots: Stretch,
    schedule: Option<&Schedule>,
    day: Day,
    now: Timestamp,
) -> Vec<(Timestamp, u64)> {
    let to = day.to.min(slots.last.0.plus(MILLISECOND));
    let mut at = day.from.max(slots.first.0);
    let mut hours = Vec::new();
    while at < to {
        let hour = Timestamp::from_millis((at.as_millis().div_euclid(HOUR) + 1) * HOUR);
        let passed = Some(now.plus(MILLISECOND)).filter(|now| at < *now);
        let end = passed.unwrap_or(hour).min(hour).min(to);
        let count = schedule.map_or_else(
            || evenly(&slots, at, end),
            |schedule| between(schedule, at, end),
        );
        hours.extend((count > 0).then_some((at, count)));
        at = end;
    }
    hours
}

/// Slots of a schedule from one moment up to but not including another.
fn between(schedule: &Schedule, from: Timestamp, to: Timestamp) -> u64 {
    let first = schedule.next_after(from.minus(MILLISECOND));
    let first = first.filter(|slot| slot.0 < to);
    first.map_or(0, |first| {
        schedule.stretch(first, to.minus(MILLISECOND)).count
    })
}

fn evenly(slots: &Stretch, from: Timestamp, to: Timestamp) -> u64 {
    let first = i128::from(slots.first.0.as_millis());
    let span = (i128::from(slots.last.0.as_millis()) - first).max(1);
    let gaps = i128::from(slots.count.saturating_sub(1));
    // How many lie before a moment.
    let before = |at: Timestamp| {
        let after = i128::from(at.as_millis()) - first;
        if after <= 0 {
            return 0;
        }
        ((after * gaps + span - 1) / span).min(gaps + 1)
    };
    u64::try_from(before(to) - before(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_760_000_400_000 / HOUR * HOUR + hours * HOUR)
    }

    fn day(from: i64) -> Day {
        Day {
            from: at(from),
            to: at(from + 24),
        }
    }

    #[test]
    fn a_long_stretch_is_counted_hour_by_hour_and_each_slot_once() {
        let slots = Stretch {
            first: Slot(at(0)),
            last: Slot(at(48)),
            count: 48 * 3_600 + 1,
        };
        let mut sum = 0;
        for from in [0, 24, 48] {
            let hours = by_hour(slots, None, day(from), at(30));
            assert!(hours.iter().all(|(_, count)| *count <= 3_600));
            sum += hours.iter().map(|(_, count)| count).sum::<u64>();
        }
        assert_eq!(sum, slots.count);
        let passed = by_hour(slots, None, day(24), at(30));
        let passed = passed.iter().filter(|(it, _)| *it <= at(30));
        assert_eq!(passed.map(|(_, count)| count).sum::<u64>(), 6 * 3_600 + 1);
    }

    #[test]
    fn slots_of_another_schedule_lie_evenly() {
        let slots = Stretch {
            first: Slot(at(0)),
            last: Slot(at(4)),
            count: 5,
        };
        let lie: Vec<Timestamp> = one_by_one(slots, None).iter().map(|it| it.0).collect();
        assert_eq!(lie, [0, 1, 2, 3, 4].map(at));
    }
}
