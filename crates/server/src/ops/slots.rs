//! What became of a job's slots, and what will: every slot of a range of time, oldest first, with its fate.
//!
//! ```text
//!    from            slot_last       now                  to
//!     ├── decided ───────┤── computed ─┼──── computed ─────┤
//!         as written       overdue, or   planned, or left
//!                          let pass      out, or let pass
//! ```
//!
//! What always holds: a page walks no more slots than it shows; the cursor is where to go on from, so
//! pages neither repeat a slot nor lose one, also when entries grow between them. A slot that should have
//! been decided and is nowhere is shown as unknown, never left out.

use std::sync::Arc;
use std::time::Duration;

use model::{Job, JobId, JobState, Reason, Slot, Stretch, TenantId, Timestamp, Version, limits};

use super::ahead::{MILLISECOND, Part, Walk};
use super::error::OpError;
use super::jobs;
use super::tenants;
use crate::access::ANONYMOUS;
use crate::api::Api;

pub use super::entry::{Entry, Fate, Range, SlotPage, Why, Written};

/// How far apart the ends of a range may lie: stretches within it are counted.
pub const RANGE_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);
/// How often a job that moves while it is looked at is looked at again.
const TRIES_MAX: u32 = 3;
/// Runs still to come that are counted one by one. Of a job that has more of them left, slots after the
/// last may be shown as planned.
const RUNS_COUNTED_MAX: u32 = 10_000;

pub async fn list(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    range: Range,
) -> Result<SlotPage, OpError> {
    let seen_from = tenants::history_from(api, tenant).await?;
    let seen_from = seen_from.unwrap_or(Timestamp::MIN);
    let range = Range {
        from: range.from.max(seen_from),
        ..range
    };
    let mut tries = 0;
    loop {
        // The job first: what is decided between the two reads is found twice rather than not at all.
        let job = jobs::get(api, tenant, id).await?;
        let mut written = Written::default();
        while let Some((from, limit)) = written.wanted(&range) {
            let runs = api
                .store
                .list_slots(tenant, id, from, range.to, limit)
                .await?;
            written.add(runs, limit);
        }
        let now = api.engine.now();
        let history_from = now.minus(api.history_keep).max(seen_from);
        let work = move || {
            let view = View {
                job: &job,
                range,
                now,
                history_from,
            };
            view.page(written)
        };
        let (page, moved) = api.permit().await?.work(work).await?;
        tries += 1;
        if !moved || tries == TRIES_MAX {
            return Ok(page);
        }
    }
}

/// A job as it was read, and which of its slots are listed.
struct View<'a> {
    job: &'a Job,
    range: Range,
    now: Timestamp,
    history_from: Timestamp,
}

impl View<'_> {
    /// Merges what is written with what is computed. Also answers whether the two do not fit together,
    /// as when the job was changed between the reads.
    fn page(&self, written: Written) -> (SlotPage, bool) {
        let read_up_to = written.read_up_to();
        let decided = self.with_unknown(written.entries, read_up_to.is_none());
        let mut moved = decided.iter().any(|entry| entry.fate == Fate::Unknown);
        let mut decided = decided.into_iter().peekable();
        let mut computed = self.computed();
        let mut ahead = computed.next();
        let mut covered: Option<Slot> = None;
        let mut entries: Vec<Entry> = Vec::new();
        let mut next = None;
        while entries.len() <= self.range.limit {
            let is_first = |entry: &Entry| {
                let other = ahead.as_ref();
                other.is_none_or(|other| entry.slots.first <= other.slots.first)
            };
            let entry = if let Some(entry) = decided.next_if(is_first) {
                covered = covered.max(Some(entry.slots.last));
                entry
            } else if read_up_to.is_some() && decided.peek().is_none() {
                next = read_up_to;
                break;
            } else if let Some(entry) = ahead.take() {
                if let Some(last) = covered.filter(|last| *last >= entry.slots.first) {
                    // It was decided after the job was read. A whole stretch is only if the job changed.
                    moved |= entry.slots.count > 1;
                    computed.skip_to(last);
                    let rest = entry.since(Slot(last.0.plus(MILLISECOND)), self.job);
                    ahead = rest.or_else(|| computed.next());
                    continue;
                }
                ahead = computed.next();
                entry
            } else {
                next = computed.stopped_at();
                break;
            };
            Entry::add_to(&mut entries, entry);
        }
        let beyond = entries.get(self.range.limit).map(|entry| entry.slots.first);
        entries.truncate(self.range.limit);
        let page = SlotPage {
            entries,
            next: beyond.or(next),
            history_from: self.history_from,
        };
        (page, moved)
    }

    fn entry(&self, slots: Stretch, fate: Fate) -> Entry {
        Entry {
            slots,
            due_at: self.job.due_at(slots.first),
            fate,
        }
    }

    /// What is written, and what should have been between.
    fn with_unknown(&self, decided: Vec<Entry>, all: bool) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(decided.len());
        let mut expected = self.expected();
        for entry in decided {
            if let Some(gap) = expected.as_mut() {
                entries.extend(self.unknown(*gap, entry.slots.first.0));
                gap.after = gap.after.max(entry.slots.last.0);
            }
            entries.extend(self.range.part(entry, self.job));
        }
        if let Some(gap) = expected.filter(|_| all) {
            entries.extend(self.unknown(gap, Timestamp::MAX));
        }
        entries
    }

    /// The slots of a gap before `next`, if there are any.
    fn unknown(&self, gap: Gap, next: Timestamp) -> Option<Entry> {
        let schedule = &self.job.def.schedule;
        let end = gap.end.min(next.minus(MILLISECOND));
        let first = schedule
            .next_after(gap.after)
            .filter(|slot| slot.0 <= end)?;
        Some(self.entry(schedule.stretch(first, end), Fate::Unknown))
    }

    /// Where every slot of the schedule as it stands must have been decided.
    fn expected(&self) -> Option<Gap> {
        let job = self.job;
        let schedule = &job.def.schedule;
        if schedule.after_completion() {
            return None;
        }
        let end = match job.state {
            JobState::Active if !schedule.leaves_out() => job.next_slot?.0.minus(MILLISECOND),
            JobState::Active | JobState::Paused | JobState::Finished | JobState::Invalid => {
                job.slot_last?
            }
            JobState::Deleted => return None,
        };
        // A change may have met a slot that was fired ahead, and goes on after it.
        let since = match job.version {
            Version::FIRST => job.created_at,
            _ => job.updated_at.plus(limits::LEAD_MAX),
        };
        let start = self.range.start().minus(MILLISECOND);
        Some(Gap {
            after: since.max(self.history_from).max(start),
            end: end.min(self.range.last()),
        })
    }

    /// What has not been decided.
    fn computed(&self) -> Computed<'_> {
        let job = self.job;
        match job.state {
            JobState::Active if job.def.schedule.after_completion() => {
                let next = job.next_slot.map(Stretch::one);
                Computed::of(next.map(|slots| self.planned(slots)), self)
            }
            JobState::Active => self.coming(),
            JobState::Paused => {
                let passed = job.passed_while_paused(self.now, &ANONYMOUS);
                let passed = passed.map(|skip| (skip.slots, Some(skip.actor)));
                self.let_pass(Reason::Paused, passed, job.paused_by.clone())
            }
            JobState::Invalid => {
                let passed = job.passed_while_invalid(self.now, &ANONYMOUS);
                let passed = passed.into_iter().next().map(|skip| (skip.slots, None));
                self.let_pass(Reason::Invalid, passed, None)
            }
            JobState::Finished | JobState::Deleted => Computed::of(None, self),
        }
    }

    fn planned(&self, slots: Stretch) -> Entry {
        let overdue = self.job.due_at(slots.first) < self.now;
        self.entry(slots, Fate::Planned { overdue })
    }

    /// The slots of an active job that are still to come.
    fn coming(&self) -> Computed<'_> {
        let job = self.job;
        let schedule = &job.def.schedule;
        let Some(next) = job.next_slot else {
            return Computed::of(None, self);
        };
        let before_next = next.0.minus(MILLISECOND);
        // What calendars leave out before the next slot is written down with it.
        let after = match job.slot_last.filter(|_| schedule.leaves_out()) {
            Some(last) => last.min(before_next),
            None => before_next,
        };
        let start = self.range.start().minus(MILLISECOND).max(after);
        let last = self.last_run(after).min(self.range.last());
        Computed {
            view: self,
            listed: Vec::new().into_iter(),
            walk: Some(Walk::new(schedule, start, last)),
        }
    }

    /// The slot after which all runs that the job may make are made.
    fn last_run(&self, after: Timestamp) -> Timestamp {
        let left = self
            .job
            .runs_left()
            .filter(|left| *left <= RUNS_COUNTED_MAX);
        let last = left.and_then(|left| {
            let mut walk = Walk::new(&self.job.def.schedule, after, self.range.last());
            walk.kept().nth((left as usize).saturating_sub(1))
        });
        last.map_or(Timestamp::MAX, |slot| slot.0)
    }

    /// A job that lets its slots pass: what has passed, and what will if it stays so.
    fn let_pass(
        &self,
        reason: Reason,
        passed: Option<(Stretch, Option<Arc<str>>)>,
        by: Option<Arc<str>>,
    ) -> Computed<'_> {
        let job = self.job;
        let schedule = &job.def.schedule;
        let start = self.range.start().minus(MILLISECOND);
        let after = job.slot_last.map_or(self.now, |last| last.max(self.now));
        let first = schedule
            .next_after(after.max(start))
            .filter(|slot| slot.0 < self.range.to && !schedule.after_completion());
        let ahead = first.map(|first| (schedule.stretch(first, self.range.last()), by));
        let entry = |(slots, by)| {
            let why = Why {
                reason,
                note: job.note.clone(),
                actor: by,
                at: None,
            };
            self.entry(slots, Fate::Skipped(why))
        };
        Computed::of(passed.into_iter().chain(ahead).map(entry), self)
    }
}

/// Slots after `after` and up to `end`.
#[derive(Debug, Clone, Copy)]
struct Gap {
    after: Timestamp,
    end: Timestamp,
}

/// What has not been decided, in order: a few entries, or a walk over what is to come.
struct Computed<'a> {
    view: &'a View<'a>,
    listed: std::vec::IntoIter<Entry>,
    walk: Option<Walk<'a>>,
}

impl<'a> Computed<'a> {
    fn of(entries: impl IntoIterator<Item = Entry>, view: &'a View<'a>) -> Self {
        let part = |entry| view.range.part(entry, view.job);
        let shown = entries.into_iter().filter_map(part);
        Self {
            view,
            listed: shown.collect::<Vec<_>>().into_iter(),
            walk: None,
        }
    }

    /// Goes on after a slot.
    fn skip_to(&mut self, slot: Slot) {
        if let Some(walk) = self.walk.as_mut() {
            walk.skip_to(slot.0);
        }
    }

    fn stopped_at(&self) -> Option<Slot> {
        self.walk.as_ref().and_then(Walk::stopped_at)
    }
}

impl Iterator for Computed<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(entry) = self.listed.next() {
            return Some(entry);
        }
        Some(match self.walk.as_mut()?.next()? {
            Part::Kept(slot) => self.view.planned(Stretch::one(slot)),
            Part::LeftOut { first, end, by } => {
                let why = Why {
                    reason: Reason::Calendar,
                    note: Some(by),
                    actor: None,
                    at: None,
                };
                let slots = self.view.job.def.schedule.stretch(first, end);
                self.view.entry(slots, Fate::Skipped(why))
            }
        })
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
