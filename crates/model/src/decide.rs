//! Decisions: what is to be done about a job's next slot, and about those it has let pass.

use std::sync::Arc;
use std::time::Duration;

use crate::job::{Job, JobState, Standing};
use crate::limits;
use crate::policy::CatchUpPolicy;
use crate::run::{Reason, Skip, Stretch};
use crate::runs_day::Day;
use crate::time::{Slot, Timestamp};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What is to be done about a job's next slot, all slots it skips, and the one after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// When it was taken, and by which node.
    pub at: Timestamp,
    pub actor: Arc<str>,
    /// Slots that were missed or that calendars leave out, oldest first; they will not run.
    pub passed: Vec<Skip>,
    /// The slot that runs.
    pub start: Option<Slot>,
    /// Where the job goes on from there.
    pub next: Option<Slot>,
    /// Missed slots up to here were counted and are to run, one decision each; none leaves the job's cursor as it is.
    pub catch_up_to: Option<Timestamp>,
}

impl Decision {
    /// Every slot up to here is decided by it.
    pub fn slot_last(&self) -> Option<Timestamp> {
        self.start
            .map(|slot| slot.0)
            .or(self.passed.last().map(|skip| skip.slots.last.0))
    }

    /// The same for a tenant that has had all its runs of the day: the slot that would run is skipped, and nothing else
    /// is another.
    pub fn over_quota(mut self) -> Self {
        let skip = |slot| Skip {
            slots: Stretch::one(slot),
            reason: Reason::Quota,
            note: None,
            actor: Arc::clone(&self.actor),
        };
        let skipped = self.start.take().map(skip);
        self.passed.extend(skipped);
        self
    }
}

/// Slots that were missed, from the next one on.
struct Missed {
    /// Those in a row, as many as one decision may skip.
    all: Stretch,
    /// How many more come after these; no further counted than it matters.
    later: u64,
}

impl Job {
    /// On which day the run of a decision counts: when it is due, or inserted if that is later.
    pub fn run_day(&self, decision: &Decision) -> Option<Day> {
        let due_at = self.due_at(decision.start?);
        Some(Day::of(due_at.max(decision.at)))
    }

    /// What to do about `next_slot` at `now`: what calendars leave out is skipped; a slot younger than
    /// `LATE_MAX` is only late; older ones are missed, and the catch-up policy decides. Bounded: one
    /// decision skips at most `STRETCH_STEP_MAX` missed slots and `SKIPS_MAX` stretches, cut by days.
    pub fn decide(&self, slot: Slot, now: Timestamp, by: &Arc<str>) -> Decision {
        let mut decision = self.decide_whole(slot, now, by);
        decision.passed = self.by_day(decision.passed);
        decision
    }

    fn decide_whole(&self, slot: Slot, now: Timestamp, by: &Arc<str>) -> Decision {
        let mut decision = Decision {
            at: now,
            actor: Arc::clone(by),
            passed: Vec::new(),
            start: None,
            next: None,
            catch_up_to: None,
        };
        let schedule = &self.def.schedule;
        let mut slot = slot;
        if schedule.after_completion() && !schedule.keeps(slot) {
            // A calendar has changed since the run's end set this slot.
            decision.next = schedule.first_kept(slot).slot();
            return decision;
        }
        if schedule.leaves_out() {
            let mut last = self.slot_last.unwrap_or(slot.0.minus(MILLISECOND));
            let earlier = self.left_out_before(last);
            last = earlier.as_ref().map_or(last, |(it, _)| it.last.0);
            let moved = self.is_of_older_zones(slot);
            let until = if moved {
                slot.0.minus(MILLISECOND)
            } else {
                now.max(slot.0)
            };
            let left = schedule.left_out(last, until);
            last = left.stretches.last().map_or(last, |(it, _)| it.last.0);
            let stretches = earlier.into_iter().chain(left.stretches);
            decision.passed = self.by_calendars(stretches, by);
            if moved {
                if let Some(name) = schedule.left_out_by(slot) {
                    let stretch = (Stretch::one(slot), name);
                    decision.passed.extend(self.by_calendars([stretch], by));
                    decision.next = schedule.next_to_decide(slot.0);
                    return decision;
                }
                return self.decide_kept(slot, now, decision);
            }
            match left.next.filter(|_| left.kept) {
                Some(first) => slot = first,
                None => {
                    decision.next = schedule.next_to_decide(last);
                    return decision;
                }
            }
        }
        self.decide_kept(slot, now, decision)
    }

    /// Whether the schedule has no such slot any more: the next slot was computed from zone tables that
    /// this node does not have. It is decided all the same, as its moment was promised.
    fn is_of_older_zones(&self, slot: Slot) -> bool {
        let schedule = &self.def.schedule;
        schedule.is_recurring() && schedule.next_after(slot.0.minus(MILLISECOND)) != Some(slot)
    }

    /// What calendars left out before one of them changed: all that lies before the next slot, which was
    /// the first that they kept then.
    fn left_out_before(&self, last: Timestamp) -> Option<(Stretch, String)> {
        let schedule = &self.def.schedule;
        let changed_at = schedule.calendars.changed_at()?;
        let next = self.next_slot?.0.minus(MILLISECOND);
        let first = schedule.next_after(last)?;
        let until = changed_at.min(next);
        let name = || {
            let now = schedule.left_out_by(first);
            now.unwrap_or_else(|| schedule.calendars.named())
        };
        (first.0 <= until).then(|| (schedule.stretch(first, until), name()))
    }

    fn by_calendars(
        &self,
        stretches: impl IntoIterator<Item = (Stretch, String)>,
        by: &Arc<str>,
    ) -> Vec<Skip> {
        let skip = |(slots, name)| Skip {
            slots,
            reason: Reason::Calendar,
            note: Some(name),
            actor: Arc::clone(by),
        };
        stretches.into_iter().map(skip).collect()
    }

    /// The same for a slot that calendars keep.
    fn decide_kept(&self, slot: Slot, now: Timestamp, decision: Decision) -> Decision {
        let late_from = now.minus(limits::LATE_MAX);
        let is_missed = |slot: Slot| self.due_at(slot) < late_from;
        if !is_missed(slot) {
            return self.start(decision, None, slot);
        }
        let in_window = |slot: Slot| now.since(self.due_at(slot)) <= self.def.catch_up.window;
        let policy = self.def.catch_up.policy;
        if self.def.schedule.after_completion() {
            // Nothing follows a slot that has not run: it is the only one.
            return if policy != CatchUpPolicy::None && in_window(slot) {
                self.start(decision, None, slot)
            } else {
                let next = self.def.schedule.next_to_decide(now);
                self.skip(decision, Stretch::one(slot), next)
            };
        }
        let counted = self.catch_up_to.is_some_and(|to| slot.0 <= to);
        let age = now.since(self.due_at(slot)) / 2;
        if policy == CatchUpPolicy::All && counted && age <= self.def.catch_up.window {
            // It was counted with those before it, and may grow older while they run; not without end.
            return self.start(decision, None, slot);
        }
        if self.def.schedule.leaves_out() {
            return self.catch_up_walked(slot, now, decision);
        }
        self.catch_up(slot, now, decision)
    }

    /// How many missed slots run at the most.
    fn keep_max(&self) -> u64 {
        match self.def.catch_up.policy {
            CatchUpPolicy::None => 0,
            CatchUpPolicy::Latest => 1,
            CatchUpPolicy::All => u64::from(self.def.catch_up.max),
        }
    }

    /// Skips the missed slots that are too old or too many, and starts the first of the others. They are counted,
    /// not walked, and the cursor says that those that follow were counted too.
    fn catch_up(&self, slot: Slot, now: Timestamp, mut decision: Decision) -> Decision {
        let schedule = &self.def.schedule;
        let spread = self.due_at(slot).since(slot.0);
        let late_from = now.minus(limits::LATE_MAX).minus(spread);
        let missed = schedule.stretch(slot, late_from.minus(MILLISECOND));
        let oldest = now.minus(self.def.catch_up.window).minus(spread);
        let first = if slot.0 >= oldest {
            Some(slot)
        } else {
            let first = schedule.next_after(oldest.minus(MILLISECOND));
            first.filter(|first| *first <= missed.last)
        };
        let young = first.map(|first| schedule.stretch(first, missed.last.0));
        let Some(young) = young.filter(|_| self.keep_max() > 0) else {
            let next = schedule.next_to_decide(missed.last.0);
            return self.skip(decision, missed, next);
        };
        let start = self.last_of(young, self.keep_max());
        let too_old = (start > slot).then(|| schedule.stretch(slot, start.0.minus(MILLISECOND)));
        if start < missed.last {
            decision.catch_up_to = Some(missed.last.0);
        }
        self.start(decision, too_old, start)
    }

    /// The first of the last `count` slots of a stretch: halved, as it may be a year of seconds.
    fn last_of(&self, slots: Stretch, count: u64) -> Slot {
        let schedule = &self.def.schedule;
        if slots.count <= count {
            return slots.first;
        }
        // From `low`, which is a slot, there are too many; from `high` on there are not.
        let (mut low, mut high) = (slots.first, slots.last.0);
        while low.0.plus(MILLISECOND) < high {
            let middle = low.0.plus(high.since(low.0) / 2);
            match schedule.next_after(middle.minus(MILLISECOND)) {
                Some(slot)
                    if slot.0 < high && schedule.stretch(slot, slots.last.0).count > count =>
                {
                    low = slot;
                }
                Some(_) | None => high = middle,
            }
        }
        schedule.next_after(low.0).unwrap_or(slots.last)
    }

    /// The same where calendars leave out slots in between, from slot to slot.
    fn catch_up_walked(&self, slot: Slot, now: Timestamp, mut decision: Decision) -> Decision {
        let late_from = now.minus(limits::LATE_MAX);
        let is_missed = |slot: Slot| self.due_at(slot) < late_from;
        let in_window = |slot: Slot| now.since(self.due_at(slot)) <= self.def.catch_up.window;
        let keep = self.keep_max();
        let missed = self.missed(slot, is_missed, keep);
        // Skip what is too old or too many; the first that is neither runs.
        let mut left = missed.all.count;
        let old = self.walk(
            slot,
            |slot| {
                let pass = left > 0 && (left + missed.later > keep || !in_window(slot));
                left -= u64::from(pass);
                pass
            },
            limits::STRETCH_STEP_MAX,
        );
        let too_old = (old.count > 0).then_some(Stretch {
            first: slot,
            last: old.last,
            count: old.count,
        });
        match old.next.filter(|_| left > 0) {
            Some(slot) => {
                if slot < missed.all.last {
                    decision.catch_up_to = Some(missed.all.last.0);
                }
                self.start(decision, too_old, slot)
            }
            None => {
                let next = self.def.schedule.next_to_decide(missed.all.last.0);
                self.skip(decision, missed.all, next)
            }
        }
    }

    /// The slots from `first` on that were missed; those that come later are counted up to `enough`.
    fn missed(&self, first: Slot, is_missed: impl Fn(Slot) -> bool, enough: u64) -> Missed {
        let schedule = &self.def.schedule;
        let mut edges = schedule.edges();
        let pass = |slot| is_missed(slot) && edges.keep(slot);
        let walk = self.walk(first, pass, limits::STRETCH_STEP_MAX);
        let mut later = 0;
        let mut next = schedule.next_after(walk.last.0);
        let mut steps = limits::CALENDAR_STEPS_MAX;
        while let Some(slot) = next.filter(|slot| later < enough && steps > 0 && is_missed(*slot)) {
            if edges.keep(slot) {
                later += 1;
                next = schedule.next_after(slot.0);
            } else {
                steps -= 1;
                next = edges.next();
            }
        }
        Missed {
            all: Stretch {
                first,
                last: walk.last,
                count: walk.count,
            },
            later,
        }
    }

    fn start(&self, mut decision: Decision, missed: Option<Stretch>, slot: Slot) -> Decision {
        decision
            .passed
            .extend(missed.map(|slots| skip_missed(slots, &decision.actor)));
        decision.start = Some(slot);
        decision.next = self.def.schedule.next_to_decide(slot.0);
        decision
    }

    fn skip(&self, mut decision: Decision, missed: Stretch, next: Option<Slot>) -> Decision {
        decision.passed.push(skip_missed(missed, &decision.actor));
        decision.next = next;
        decision
    }

    /// Where a decision leaves the job. `inserted` says whether the slot that starts has made a run:
    /// overlap may have it skipped instead.
    pub fn standing_after(&self, decision: &Decision, inserted: bool) -> Standing {
        let mut stands = Standing {
            slot_last: decision.slot_last().or(self.slot_last),
            next_slot: decision.next,
            catch_up_to: decision.catch_up_to.or(self.catch_up_to),
            ..self.standing()
        };
        let mut rests = false;
        if inserted {
            let bounded = self.def.schedule.bounds.runs_max.is_some();
            stands.runs_made = self.runs_made.saturating_add(u32::from(bounded));
            rests = self.def.schedule.after_completion();
        }
        let spent = self.left_after(stands.runs_made) == Some(0);
        if inserted && (rests || spent) {
            stands.next_slot = None;
        }
        if stands.next_slot.is_none() && (spent || !rests) {
            stands.state = JobState::Finished;
            stands.state_at = stands.slot_last.unwrap_or(self.state_at);
        }
        stands
    }

    /// The slots up to `until` that were not decided, oldest first: `reason` for those that calendars
    /// keep. Bounded: a very long list ends with one entry for all the rest.
    pub fn undecided(&self, until: Timestamp, reason: Reason, by: &Arc<str>) -> Vec<Skip> {
        let schedule = &self.def.schedule;
        let skip = |slots| Skip {
            slots,
            reason,
            note: None,
            actor: Arc::clone(by),
        };
        if !schedule.leaves_out() {
            let first = self.next_slot.filter(|slot| slot.0 <= until);
            let stretch = first.map(|first| self.stretch_until(first, until));
            return stretch.map(skip).into_iter().collect();
        }
        let Some(next) = self.next_slot else {
            return Vec::new();
        };
        // Where accounting began; nothing lies before a one-off.
        let mut last = self.slot_last.unwrap_or(next.0.minus(MILLISECOND));
        let earlier = self
            .left_out_before(last)
            .filter(|(it, _)| it.last.0 <= until);
        last = earlier.as_ref().map_or(last, |(it, _)| it.last.0);
        let mut skips = self.by_calendars(earlier, by);
        if next.0 <= until && self.is_of_older_zones(next) {
            let left = schedule.left_out(last, next.0.minus(MILLISECOND));
            skips.extend(self.by_calendars(left.stretches, by));
            let one = Stretch::one(next);
            match schedule.left_out_by(next) {
                Some(name) => skips.extend(self.by_calendars([(one, name)], by)),
                None => skips.push(skip(one)),
            }
            last = next.0;
        }
        for _ in 0..limits::CALENDAR_STEPS_MAX {
            if skips.len() >= limits::SKIPS_MAX {
                break;
            }
            let left = schedule.left_out(last, until);
            let goes_on = left.stretches.is_empty();
            skips.extend(self.by_calendars(left.stretches, by));
            let Some(first) = left.next.filter(|slot| slot.0 <= until) else {
                return skips;
            };
            let stretch = if left.kept {
                schedule.kept_stretch(first, until)
            } else {
                schedule.stretch(first, until)
            };
            let before = skips.last_mut().filter(|it| goes_on && it.reason == reason);
            match before {
                // Calendars came to an edge, and keep what follows as well.
                Some(before) => {
                    before.slots.last = stretch.last;
                    before.slots.count += stretch.count;
                }
                None => skips.push(skip(stretch)),
            }
            last = stretch.last.0;
        }
        if let Some(first) = schedule.next_after(last).filter(|slot| slot.0 <= until) {
            skips.push(skip(schedule.stretch(first, until)));
        }
        skips
    }

    /// The slots from `first`, which is one, up to `until`.
    pub(crate) fn stretch_until(&self, first: Slot, until: Timestamp) -> Stretch {
        self.def.schedule.stretch(first, until)
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

fn skip_missed(slots: Stretch, by: &Arc<str>) -> Skip {
    Skip {
        slots,
        reason: Reason::Missed,
        note: None,
        actor: Arc::clone(by),
    }
}

struct Walk {
    count: u64,
    last: Slot,
    /// The first slot that was not skipped.
    next: Option<Slot>,
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

// The whole life of jobs: those that follow a schedule, and those that rest while a run lives.
#[cfg(test)]
#[path = "life_tests.rs"]
mod life_tests;
#[cfg(test)]
#[path = "rest_tests.rs"]
mod rest_tests;
