//! Decisions: what is to be done about a job's next slot, and about those it has let pass.

use crate::job::Job;
use crate::limits;
use crate::policy::CatchUpPolicy;
use crate::run::Stretch;
use crate::schedule::{Every, Period, Schedule};
use crate::time::{Slot, Timestamp};

/// What is to be done about a job's next slot, all slots it passes over, and the one after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Slots that were missed and will not run.
    pub missed: Option<Stretch>,
    /// The slot that runs.
    pub start: Option<Slot>,
    pub next: Option<Slot>,
}

impl Decision {
    /// Every slot up to here is decided by it.
    pub fn slot_last(&self) -> Option<Timestamp> {
        self.start
            .map(|slot| slot.0)
            .or(self.missed.map(|stretch| stretch.last.0))
    }
}

impl Job {
    /// What to do about `next_slot` at `now`: a slot younger than `LATE_MAX` is only late; older
    /// ones are missed, and the catch-up policy decides. Bounded: one decision passes over at most
    /// `STRETCH_STEP_MAX` slots.
    pub fn decide(&self, slot: Slot, now: Timestamp) -> Decision {
        let late_from = now.minus(limits::LATE_MAX);
        let is_missed = |slot: Slot| self.due_at(slot) < late_from;
        if !is_missed(slot) {
            return self.start(None, slot);
        }
        let walk = self.walk(slot, is_missed, limits::STRETCH_STEP_MAX);
        let all = Stretch {
            first: slot,
            last: walk.last,
            count: walk.count,
        };
        let skip_all = Decision {
            missed: Some(all),
            start: None,
            next: walk.next,
        };
        let in_window = |slot: Slot| now.since(self.due_at(slot)) <= self.def.catch_up.window;
        if walk.next.is_some_and(is_missed) {
            // Cut short: all of these are older than some that come.
            return match self.def.catch_up.policy {
                CatchUpPolicy::All if in_window(slot) => self.start(None, slot),
                CatchUpPolicy::None | CatchUpPolicy::Latest | CatchUpPolicy::All => skip_all,
            };
        }
        let keep = match self.def.catch_up.policy {
            CatchUpPolicy::None => 0,
            CatchUpPolicy::Latest => 1,
            CatchUpPolicy::All => u64::from(self.def.catch_up.max),
        };
        // Pass over what is too old or too many; the first that is neither runs.
        let mut skipped = 0;
        let old = self.walk(
            slot,
            |slot| {
                let pass = is_missed(slot) && (walk.count - skipped > keep || !in_window(slot));
                skipped += u64::from(pass);
                pass
            },
            limits::STRETCH_STEP_MAX,
        );
        let missed = (old.count > 0).then_some(Stretch {
            first: slot,
            last: old.last,
            count: old.count,
        });
        match old.next.filter(|slot| is_missed(*slot)) {
            Some(slot) => self.start(missed, slot),
            None => skip_all,
        }
    }

    fn start(&self, missed: Option<Stretch>, slot: Slot) -> Decision {
        Decision {
            missed,
            start: Some(slot),
            next: self.def.schedule.next_after(slot.0),
        }
    }

    /// The slots from `first`, which is one, up to `until`.
    pub(crate) fn stretch_until(&self, first: Slot, until: Timestamp) -> Stretch {
        if let Schedule::Every(Every {
            period: Period::Elapsed(period),
            ..
        }) = &self.def.schedule
        {
            // A year of seconds is counted, not walked.
            let more = until.since(first.0).as_millis() / period.as_millis().max(1);
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let last = Slot(first.0.plus(period.saturating_mul(more)));
            return Stretch {
                first,
                last,
                count: u64::from(more) + 1,
            };
        }
        let walk = self.walk(first, |slot| slot.0 <= until, u64::MAX);
        Stretch {
            first,
            last: walk.last,
            count: walk.count,
        }
    }

    /// Walks slots from `first` while `pass` holds.
    fn walk(&self, first: Slot, mut pass: impl FnMut(Slot) -> bool, max: u64) -> Walk {
        let mut walk = Walk {
            count: 0,
            last: first,
            next: Some(first),
        };
        while let Some(slot) = walk.next.filter(|slot| walk.count < max && pass(*slot)) {
            walk.count += 1;
            walk.last = slot;
            walk.next = self.def.schedule.next_after(slot.0);
        }
        walk
    }
}

struct Walk {
    count: u64,
    last: Slot,
    /// The first slot that was not passed over.
    next: Option<Slot>,
}
