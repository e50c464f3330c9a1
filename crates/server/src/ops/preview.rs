//! When a schedule would be due, without a job.

use std::time::Duration;

use model::{Schedule, Slot, Timestamp};

use super::build::Context;
use super::draft::ScheduleDraft;
use super::fault::FieldError;

/// The slots ahead, and what people should know about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub slots: Vec<Slot>,
    pub words: String,
    pub notes: Vec<String>,
}

/// `count` slots strictly after `from`. Without a job there is no number to choose `H` by: zero stands for it.
pub fn preview(
    schedule: &ScheduleDraft,
    from: Timestamp,
    count: usize,
    now: Timestamp,
) -> Result<Preview, FieldError> {
    // An interval without an anchor is counted from where the preview begins.
    let start = match schedule {
        ScheduleDraft::Text(_) | ScheduleDraft::Cron(_) | ScheduleDraft::Every(_) => from,
        ScheduleDraft::At(_) | ScheduleDraft::In(_) => now,
    };
    let schedule = schedule.build(Context {
        now: start,
        hash: 0,
        before: None,
    })?;
    let next = |slot: &Slot| schedule.next_after(slot.0);
    let slots = std::iter::successors(schedule.next_after(from), next)
        .take(count)
        .collect();
    Ok(Preview {
        slots,
        words: schedule.words(),
        notes: schedule.notes(from),
    })
}

/// Slots named of each side of a difference.
const NAMED_MAX: usize = 5;
/// Slots looked at to find them: two schedules may agree for long.
const LOOKED_MAX: usize = 100;

/// What another schedule means for the slots ahead: the first that go, the first that come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub removed: Vec<Slot>,
    pub added: Vec<Slot>,
}

pub fn difference(before: &Schedule, after: &Schedule, from: Timestamp) -> Difference {
    Difference {
        removed: only_in(before, after, from),
        added: only_in(after, before, from),
    }
}

fn only_in(schedule: &Schedule, other: &Schedule, from: Timestamp) -> Vec<Slot> {
    let next = |slot: &Slot| schedule.next_after(slot.0);
    let ahead = std::iter::successors(schedule.next_after(from), next).take(LOOKED_MAX);
    let just_before = |slot: &Slot| slot.0.minus(Duration::from_millis(1));
    let is_new = |slot: &Slot| other.next_after(just_before(slot)) != Some(*slot);
    ahead.filter(is_new).take(NAMED_MAX).collect()
}
