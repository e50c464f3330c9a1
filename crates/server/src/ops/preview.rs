//! When a schedule would be due, without a job.

use model::{Slot, Timestamp};

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
