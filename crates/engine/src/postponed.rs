//! Slots whose job's last run lives: they wait for its end, at the latest for their due time. What overlap says is
//! said then.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::job::Decision;
use model::{Job, JobId, Timestamp};

use crate::dispatch::Dispatch;
use crate::wheel::{Entry, Wheel};

#[derive(Default)]
pub struct Postponed {
    slots: BTreeMap<JobId, Waiting>,
}

struct Waiting {
    due_at: Timestamp,
    entry: Entry,
    /// The run is another node's: its end is not heard of here.
    elsewhere: bool,
}

impl Postponed {
    pub fn add(&mut self, due_at: Timestamp, entry: Entry, elsewhere: bool) {
        let waiting = Waiting {
            due_at,
            entry,
            elsewhere,
        };
        self.slots.insert(waiting.entry.job(), waiting);
    }

    /// One that the store would not decide before it is due, unless an edit has replaced it.
    pub fn add_early(&mut self, wheel: &Wheel, job: Arc<Job>, decision: &Decision) {
        let due_at = decision.start.map(|slot| job.due_at(slot));
        let entry = Entry::Slot(job);
        if wheel.is_current(&entry) {
            self.add(due_at.unwrap_or(decision.at), entry, true);
        }
    }

    /// Those that wait no more, up to `max`.
    pub fn ripe(
        &mut self,
        now: Timestamp,
        dispatch: &Dispatch,
        max: usize,
    ) -> Vec<(Timestamp, Entry)> {
        let is_ripe =
            |job: JobId, it: &Waiting| it.due_at <= now || (!it.elsewhere && !dispatch.lives(job));
        let ripe = self.slots.iter().filter(|(job, it)| is_ripe(**job, it));
        let ripe: Vec<JobId> = ripe.map(|(job, _)| *job).take(max).collect();
        let taken = ripe.iter().filter_map(|job| self.slots.remove(job));
        taken.map(|it| (it.due_at, it.entry)).collect()
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.slots.values().map(|it| it.due_at).min()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
